"""Every operator that ONNX has is counted, free with a reason, or listed here; and onnx's own examples leave no rule
failing and no shape wrong."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.defs
import pytest
from onnx import helper

import bitwatt
from bitwatt.backends.onnx import count
from bitwatt.backends.onnx.binding import Bound
from bitwatt.backends.onnx.facts import name_of
from bitwatt.backends.onnx.inferring import Opsets
from bitwatt.backends.onnx.walk import Walk
from bitwatt.pricing import entries_of
from bitwatt.registry import RULES
from bitwatt.testing import check_work

#: Reviewed: it stands for the gradient of a graph, which a runtime makes of it before anything runs.
UNKNOWN = {"onnx_preview_training.Gradient"}

SCHEMAS = {
    name_of(helper.make_node(schema.name, [], [], domain=schema.domain)): schema
    for schema in onnx.defs.get_all_schemas()
}


def test_every_operator_has_a_rule() -> None:
    assert len(SCHEMAS) > 220
    assert {name for name in SCHEMAS if RULES.find(name) is None} == UNKNOWN


def test_every_rule_names_an_operator_that_onnx_has() -> None:
    own = {"Affine", "Crop", "ImageScaler", "ParametricSoftplus", "Scale", "ScaledTanh", "SimplifiedLayerNormalization"}
    named = {rule.name for rule in RULES if rule.name.startswith(("onnx.", "onnx_ml."))}
    assert named - set(SCHEMAS) == {f"onnx.{name}" for name in own}  # ONNX Runtime's, in the default domain


def examples() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return list(collect_testcases(None))


def with_constants(case: Any) -> onnx.ModelProto:
    """The example with its small integer inputs (shapes, axes, lengths) held by the graph, as exporters write them."""
    given = onnx.ModelProto()
    given.CopyFrom(case.model)
    held = (onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.BOOL, onnx.TensorProto.UINT64)
    for info, array in zip(given.graph.input, case.data_sets[0][0], strict=False):
        small = isinstance(array, np.ndarray) and array.size < 64
        if small and info.type.HasField("tensor_type") and info.type.tensor_type.elem_type in held:
            given.graph.initializer.append(onnx.numpy_helper.from_array(array, info.name))
    return given


#: Old exports of known networks (opset 7 to 9) that come with onnx; torchvision publishes the GMAC of the same ones.
PUBLISHED = {"resnet50": 4.089, "vgg19": 19.632, "densenet121": 2.834, "squeezenet": 0.349}


@pytest.mark.parametrize("network", PUBLISHED)
def test_networks_that_come_with_onnx_are_as_published(network: str) -> None:
    path = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{network}.onnx"
    totals = bitwatt.totals(count(path), "macs")
    assert totals.missing == {}
    assert round(totals.total / 1e9, 3) == PUBLISHED[network]


#: onnx's examples declare shapes that their data do not have.
MISDECLARED = {"test_optional_get_element_optional_tensor"}


@pytest.mark.slow
def test_examples_of_every_operator_are_priced_and_their_shapes_found() -> None:
    troubles: list[str] = []
    seen: set[str] = set()
    for case in examples():
        if case.name.endswith("_expanded") or "_expanded_ver" in case.name:
            continue  # the same, unfolded
        given = with_constants(case)
        versions = {opset.domain: opset.version for opset in given.opset_import}
        walk = Walk(Opsets(versions, given.ir_version), Bound(None, None))
        made = walk.model(given.graph)
        for value, array in zip(made, case.data_sets[0][1], strict=False):
            known = isinstance(array, np.ndarray) and value.spec is not None and case.name not in MISDECLARED
            if known and value.spec.shape != array.shape:  # type: ignore[union-attr]
                troubles.append(f"{case.name}: {value.spec} but it is {array.shape}")
        for entry in entries_of(walk.ledger):
            seen.add(entry.op.name)
            if entry.work is None:
                troubles.append(f"{case.name}: {entry.op.name}: {entry.reason}")
            else:
                check_work(entry.work, str(entry.op))
    assert troubles == []
    assert len(seen) > 180
