"""INT8 is proven by the graph that is executed, or denied."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from families import fitted
from networks_small import made
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPClassifier

from bitwatt.deploy.given import loading
from bitwatt.deploy.judging import quality
from bitwatt.deploy.making import building, converting, integers, optimising, products, pruning, quantising
from bitwatt.deploy.records import Artefact, UnfitError
from bitwatt.deploy.runtimes import onnx_int8


def int8(case: Any, folder: Path) -> Artefact:
    [row] = building.build_all(case, folder, ("onnx-int8",))
    assert row.artefact is not None, row.failure
    return row.artefact


def test_an_mlp_is_integer_to_the_last_product(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    rows, labels = draw.normal(size=(300, 784)), np.arange(300) % 10
    model = MLPClassifier((512, 512), max_iter=1, random_state=0).fit(rows, labels)
    precision = int8(loading.case(model, rows, labels), tmp_path).precision
    assert precision.mode == "int8"
    assert precision.macs == 784 * 512 + 512 * 512 + 512 * 10
    assert (precision.integer_share or 0) > 0.99
    assert "onnxruntime" in precision.evidence


@pytest.mark.parametrize(
    "kind", [LogisticRegression, pytest.param(RidgeClassifier, marks=pytest.mark.slow), LinearRegression]
)
def test_linear_models_have_integer_products(tmp_path: Path, kind: Any) -> None:
    _, rows, y, train = fitted("logistic")
    artefact = int8(loading.case(kind().fit(rows, y), rows, y, train=train), tmp_path)
    assert artefact.precision.mode == "int8"
    assert artefact.precision.integer_macs == artefact.precision.macs != 0
    assert artefact.ranked_as == ""
    assert any("quantised" in note for note in artefact.notes)


@pytest.mark.parametrize("family", ["forest", "kmeans", pytest.param("neighbours", marks=pytest.mark.slow)])
def test_what_has_no_integer_kernel_says_so_and_is_not_ranked_as_int8(tmp_path: Path, family: str) -> None:
    model, rows, y, _ = fitted(family)
    artefact = int8(loading.case(model, rows, y), tmp_path)
    assert artefact.precision.mode == "fp32"
    assert artefact.precision.integer_nodes == 0
    assert artefact.ranked_as == "onnx-fp32"
    assert f"INT8 changes nothing: 0 of {artefact.precision.nodes} nodes are integer" in artefact.notes


def test_a_part_in_integers_is_called_mixed_with_its_share(tmp_path: Path) -> None:
    """Two products, one of them quantised by hand: 32 of 64 + 32 multiply-accumulates."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    weights = [np.ones((8, 8), np.float32), np.ones((8, 4), np.int8)]
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["h"]),
        helper.make_node("DynamicQuantizeLinear", ["h"], ["q", "scale", "zero"]),
        helper.make_node("MatMulInteger", ["q", "w1", "zero"], ["i"]),
        helper.make_node("Cast", ["i"], ["y"], to=1),
    ]
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", 1, [None, 8])], [helper.make_tensor_value_info("y", 1, [None, 4])],
        [numpy_helper.from_array(weight, f"w{at}") for at, weight in enumerate(weights)],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, tmp_path / "model.onnx")
    found = integers.inspect(tmp_path / "model.onnx", "int8")
    assert found.mode == "mixed"
    assert found.integer_share == pytest.approx(32 / 96)
    assert "33 % of the multiply-accumulates" in found.note


@pytest.mark.slow
def test_torch_modules_are_quantised_both_ways(tmp_path: Path) -> None:
    model, rows = made("convolutions")
    case = loading.case(model, rows, model(rows).argmax(1), train=rows)
    found = building.build_all(case, tmp_path, ("onnx-int8-dynamic", "onnx-int8-static"))
    for row in found:
        assert row.artefact is not None, row.failure
        assert row.artefact.precision.mode == "int8"
    static = found[1].artefact
    assert static is not None
    assert any("96 training rows" in note for note in static.notes)


def test_of_the_two_forms_of_a_static_graph_the_one_with_more_integers_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here onnxruntime fuses all pairs of the first form; where it does not, the other is tried and told."""
    model, rows, y, train = fitted("logistic")
    case = loading.case(model, rows, y, train=train)
    made = converting.convert(case)
    made = replace(made, model=products.spelled_out(made.model))
    static = quantising.static

    def unfused(model: Any, feeds: Any, rows: Any, form: str) -> Any:
        return model if form == "QDQ" else static(model, feeds, rows, form)

    for at, (quantise, form) in enumerate([(static, "QDQ"), (unfused, "QOperator")]):
        monkeypatch.setattr(quantising, "static", quantise)
        (tmp_path / str(at)).mkdir()
        found = onnx_int8.quantised(case, made, tmp_path / str(at), "onnx-int8", "static")
        assert found.precision.integer_share == 1.0
        assert f"quantised statically ({form}): calibrated with 400 training rows" in found.notes
        assert [path.name for path in (tmp_path / str(at)).iterdir()] == ["model.onnx"]


def test_calibration_says_when_it_uses_the_rows_it_is_judged_on() -> None:
    model, rows, y, train = fitted("logistic")
    assert "judged on" in quantising.calibration(loading.case(model, rows, y))[1]
    assert quantising.calibration(loading.case(model, rows, y, train=train))[1] == "calibrated with 400 training rows"


@pytest.mark.parametrize("family", ["logistic", "linear svc", "ridge"])
def test_linear_operators_spelled_out_give_the_same(family: str) -> None:
    import onnxruntime

    model, rows, y, _ = fitted(family)
    made = converting.convert(loading.case(model, rows, y))
    spelled = products.spelled_out(made.model)
    assert {"LinearClassifier", "LinearRegressor"}.isdisjoint(node.op_type for node in spelled.graph.node)
    answers = [
        onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"]).run(
            None, {"rows": rows.astype(np.float32)}
        )[0]
        for graph in (made.model, spelled)
    ]
    assert np.allclose(*answers, atol=1e-6)


def test_a_graph_keeps_only_what_was_asked_for() -> None:
    model, rows, y, _ = fitted("logistic")
    for method in ("predict", "predict_proba"):
        graph = converting.convert(loading.case(model, rows, y, method=method)).model.graph
        assert len(graph.output) == 1
        assert "ZipMap" not in {node.op_type for node in graph.node}
        assert {"Normalizer"}.isdisjoint(node.op_type for node in graph.node) == (method == "predict")


def test_standard_operators_are_declared_once() -> None:
    model = onnx.helper.make_model(
        onnx.helper.make_graph([], "g", [], []), opset_imports=[onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    )
    assert sorted(entry.domain for entry in pruning.imported(model).opset_import) == ["", "ai.onnx.ml"]
    assert len(pruning.imported(model).opset_import) == 2


def test_a_graph_that_the_runtime_refuses_is_told(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(UnfitError, match="cannot load it"):
        integers.inspect(tmp_path / "model.onnx")


def test_a_runtime_that_dies_costs_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dying = tmp_path / "python"
    dying.write_text("#!/bin/sh\nkill -SEGV $$\n")
    dying.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(dying))
    with pytest.raises(UnfitError, match="signal 11"):
        optimising.optimise(tmp_path / "model.onnx", tmp_path / "out.onnx")


@pytest.mark.slow
def test_int8_is_the_better_of_both_ways(tmp_path: Path) -> None:
    model, rows, y, train = fitted("mlp")
    case = loading.case(model, rows, y, train=train)
    [row] = quality.judged(case, building.build_all(case, tmp_path / "best", ("onnx-int8",)))
    made = converting.convert(case)
    native = model.predict(rows)
    from bitwatt.deploy.runtimes.onnx_int8 import Session, quantised

    flips = []
    for way in ("dynamic", "static"):
        (tmp_path / way).mkdir()
        artefact = quantised(case, made, tmp_path / way, "onnx-int8", way)
        assert artefact.precision.mode == "int8"
        flips.append(int((quality.labels(case, Session(artefact, 1).predict(rows)) != native).sum()))
    assert row.artefact is not None
    labels = quality.labels(case, Session(row.artefact, 1).predict(rows))
    assert int((labels != native).sum()) == min(flips)
