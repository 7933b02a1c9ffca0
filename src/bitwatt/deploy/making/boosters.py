"""Tells skl2onnx how XGBoost, LightGBM and CatBoost are converted, alone and as steps of pipelines."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from typing import Any

from bitwatt.deploy.given import estimators


def register() -> None:
    """For those that are imported: a model of the others cannot be here."""
    for library in ("xgboost", "lightgbm", "catboost"):
        if library in sys.modules:
            _register(library)


def converters(model: Any) -> tuple[str, ...]:
    """Packages that convert it, besides skl2onnx."""
    kinds = {type(part).__module__.partition(".")[0] for part in estimators.parts(model)}
    return ("onnxmltools",) if kinds & {"xgboost", "lightgbm"} else ()


@cache
def _register(library: str) -> None:
    from skl2onnx import update_registered_converter as known
    from skl2onnx.common.shape_calculator import (
        calculate_linear_classifier_output_shapes as classes,
    )
    from skl2onnx.common.shape_calculator import (
        calculate_linear_regressor_output_shapes as values,
    )

    zipmap: dict[str, Any] = {"nocl": [True, False], "zipmap": [True, False, "columns"]}
    if library == "xgboost" and importlib.util.find_spec("onnxmltools"):
        import xgboost
        from onnxmltools.convert.xgboost.operator_converters.XGBoost import convert_xgboost

        for name in ("XGBClassifier", "XGBRFClassifier"):
            known(getattr(xgboost, name), f"Bitwatt{name}", classes, convert_xgboost, options=zipmap)
        for name in ("XGBRegressor", "XGBRFRegressor", "XGBRanker"):
            known(getattr(xgboost, name), f"Bitwatt{name}", values, convert_xgboost)
    if library == "lightgbm" and importlib.util.find_spec("onnxmltools"):
        import lightgbm
        from onnxmltools.convert.lightgbm.operator_converters.LightGbm import convert_lightgbm

        known(lightgbm.LGBMClassifier, "BitwattLGBMClassifier", classes, convert_lightgbm, options=zipmap)
        known(lightgbm.LGBMRegressor, "BitwattLGBMRegressor", values, convert_lightgbm, options={"split": None})
    if library == "catboost":
        import catboost

        known(
            catboost.CatBoostClassifier, "BitwattCatBoostClassifier", _shapes, _catboost, parser=_parse, options=zipmap
        )
        known(catboost.CatBoostRegressor, "BitwattCatBoostRegressor", _shapes, _catboost, parser=_parse)


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    from skl2onnx import get_model_alias
    from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType

    operator = scope.declare_local_operator(get_model_alias(type(model)), model)
    operator.inputs = inputs
    if hasattr(model, "classes_"):
        texts = any(isinstance(label, str) for label in model.classes_)
        label = StringTensorType() if texts else Int64TensorType()
        operator.outputs.append(scope.declare_local_variable("label", label))
        operator.outputs.append(scope.declare_local_variable("probabilities", FloatTensorType()))
    else:
        operator.outputs.append(scope.declare_local_variable("variable", FloatTensorType()))
    return operator.outputs


def _shapes(operator: Any) -> None:
    rows = operator.inputs[0].get_first_dimension()
    for position, output in enumerate(operator.outputs):
        width = len(operator.raw_operator.classes_) if position else 1
        output.type.shape = [rows, width] if position or len(operator.outputs) == 1 else [rows]


def _catboost(scope: Any, operator: Any, container: Any) -> None:
    """Its own exporter's nodes, with names of this graph."""
    import onnx
    from catboost.utils import convert_to_onnx_object

    from bitwatt.deploy.making.pruning import without_zipmap

    made = without_zipmap(convert_to_onnx_object(operator.raw_operator))
    names = {made.graph.input[0].name: operator.inputs[0].full_name}
    names |= {value.name: output.full_name for value, output in zip(made.graph.output, operator.outputs, strict=True)}

    def named(name: str) -> Any:
        return names.setdefault(name, scope.get_unique_variable_name(name))

    for weight in made.graph.initializer:
        array = onnx.numpy_helper.to_array(weight)
        container.add_initializer(named(weight.name), weight.data_type, array.shape, array.ravel().tolist())
    for node in made.graph.node:
        attributes = {entry.name: onnx.helper.get_attribute_value(entry) for entry in node.attribute}
        container.add_node(
            node.op_type, [named(name) for name in node.input], [named(name) for name in node.output],
            op_domain=node.domain, op_version=1 if node.domain else None,
            name=scope.get_unique_operator_name(node.op_type), **attributes,
        )  # fmt: skip
