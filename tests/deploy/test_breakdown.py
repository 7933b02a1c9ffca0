"""Where the time of a prediction goes: real sessions, pipelines and modules, in this process."""

from __future__ import annotations

import copy
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitwatt.deploy import breakdown
from bitwatt.deploy.breakdown import onnxruntime as sessions
from bitwatt.deploy.breakdown.timeline import Part, Timeline
from bitwatt.deploy.records import Artefact, Breakdown, Case

SECONDS = 0.25
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(600, 64)).astype(np.float32)


class Native:
    def __init__(self, model: Any, method: str = "predict_proba") -> None:
        self.model, self.method = model, method

    def predict(self, rows: Any) -> Any:
        return getattr(self.model, self.method)(rows)


def of_estimator(model: Any, rows: Any, batch: int = 32, method: str = "predict_proba") -> Breakdown:
    artefact = Artefact("native", "native", "", (), method)
    again = Native(copy.deepcopy(model), method)
    return breakdown.split(artefact, Native(model, method), lambda: again, breakdown.cut(rows, batch), batch, SECONDS)


def stage(found: Breakdown, name: str, group: str | None = None) -> float:
    return sum(part.ms for part in found.stages if part.name == name and group in (None, part.group))


def fitted(model: Any, rows: Any = ROWS) -> Any:
    return model.fit(rows, RNG.integers(0, 3, len(rows)))


class Slow:
    """A transformer that takes 20 ms, whatever it is given."""

    def fit(self, X: Any, y: Any = None) -> Slow:
        return self

    def transform(self, X: Any) -> Any:
        time.sleep(0.02)
        return X

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}

    def set_params(self, **_: Any) -> Slow:
        return self


def test_a_slow_step_shows_before_the_operator() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline

    found = of_estimator(fitted(Pipeline([("slow", Slow()), ("model", LogisticRegression())])), ROWS)
    assert stage(found, "slow", "preprocess") >= 20
    assert (found.ms("preprocess") or 0) >= 20 > (found.ms("linear") or 0) + (found.ms("postprocess") or 0)
    assert found.plain_ms is not None
    assert found.plain_ms >= 20
    assert abs(found.unattributed_ms or 0) < 0.5 * found.plain_ms


def test_columns_are_told_apart_inside_their_transformer() -> None:
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    columns = ColumnTransformer([("quick", StandardScaler(), [0, 1]), ("slow", Slow(), [2, 3])])
    found = of_estimator(fitted(Pipeline([("columns", columns), ("model", LogisticRegression())])), ROWS)
    assert stage(found, "columns.slow", "preprocess") >= 20
    assert 0 < stage(found, "columns.quick", "preprocess") < 20
    assert 0 < stage(found, "columns") < 20, "its own time is without theirs"


def test_scores_and_what_is_made_of_them_are_told_apart() -> None:
    from sklearn.linear_model import LogisticRegression

    model = fitted(LogisticRegression())
    for method in ("predict_proba", "predict"):
        found = of_estimator(model, ROWS, method=method)
        assert stage(found, "LogisticRegression.decision_function", "linear") > 0
        assert stage(found, "LogisticRegression", "postprocess") > 0
        assert stage(found, "LogisticRegression: checks of the input", "preprocess") > 0
    assert "decision_function" not in vars(model), "the model that was called plainly is as it was"


@pytest.mark.parametrize("name", ["GradientBoostingClassifier", "RandomForestClassifier"])
@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_every_estimator_has_an_operator(name: str, method: str) -> None:
    from sklearn import ensemble

    found = of_estimator(fitted(getattr(ensemble, name)(n_estimators=5)), ROWS, method=method)
    assert (found.ms("linear") or 0) > 0.5 * (found.plain_ms or 0) - (found.ms("preprocess") or 0)
    assert not any(part.name.startswith("rows") and part.group == "linear" for part in found.stages)


def test_what_was_watched_is_as_before() -> None:
    from sklearn.linear_model import LogisticRegression, _base

    before = _base.validate_data
    model = fitted(LogisticRegression())
    again = Native(copy.deepcopy(model))
    artefact = Artefact("native", "native", "", (), "predict_proba")
    breakdown.split(artefact, Native(model), lambda: again, breakdown.cut(ROWS, 8), 8, 0.05)
    assert _base.validate_data is before
    assert vars(again.model).keys() == vars(model).keys()


def graph(folder: Path, quantised: bool = False) -> Path:
    """Sub, MatMul + bias, Relu, MatMul, Softmax."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from onnxruntime.quantization import quantize_dynamic

    nodes = [
        helper.make_node("Sub", ["x", "mean"], ["a"], "centre"),
        helper.make_node("MatMul", ["a", "w"], ["b"], "first"),
        helper.make_node("Add", ["b", "bias"], ["c"]),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("MatMul", ["d", "v"], ["e"]),
        helper.make_node("Softmax", ["e"], ["y"], "chances"),
    ]
    sizes = {"mean": (64,), "w": (64, 256), "bias": (256,), "v": (256, 10)}
    weights = [numpy_helper.from_array(RNG.normal(size=s).astype("f4"), name) for name, s in sizes.items()]
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size])] for name, size in (("x", 64), ("y", 10))
    ]
    made = helper.make_model(
        helper.make_graph(nodes, "g", *ends, weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=10
    )
    path = folder / "model.onnx"
    onnx.save(made, path)
    if quantised:
        quantize_dynamic(path, folder / "integers.onnx")
        path = folder / "integers.onnx"
    return path


class Session:
    def __init__(self, path: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def predict(self, rows: Any) -> Any:
        return self.session.run(None, {"x": rows})[0]


def of_session(path: Path, batch: int) -> Breakdown:
    artefact = Artefact("onnx", "onnx", str(path.parent), (path.name,), "predict_proba")
    return sessions.split(artefact, Session(path), breakdown.cut(ROWS, batch), batch, SECONDS)


def test_a_sessions_nodes_are_those_it_runs_and_stand_in_their_groups(tmp_path: Path) -> None:
    found = of_session(graph(tmp_path), 512)
    placed = {part.name.split()[0]: part.group for part in found.stages if "graph" not in part.name}
    assert placed == {"Sub": "preprocess", "FusedGemm": "linear", "MatMul": "linear", "Softmax": "postprocess"}
    assert found.plain_ms is not None
    assert 0.5 * found.plain_ms < sum(part.ms for part in found.stages) < 1.5 * found.plain_ms
    assert (found.ms("linear") or 0) > (found.ms("postprocess") or 0)
    assert found.overhead is not None
    assert "onnxruntime" in found.source


def test_integer_products_are_the_operator(tmp_path: Path) -> None:
    found = of_session(graph(tmp_path, quantised=True), 256)
    integer = [part for part in found.stages if "Integer" in part.name or "DynamicQuantizeMatMul" in part.name]
    assert len(integer) == 2
    assert {part.group for part in integer} == {"linear"}


def test_times_at_the_profilers_floor_are_marked(tmp_path: Path) -> None:
    found = of_session(graph(tmp_path), 1)
    assert "upper bounds" in found.note
    assert (found.overhead or 0) > 0.2, "what looking costs at batch 1 is not hidden"


def test_a_loop_whose_every_turn_is_profiled_takes_no_more_than_a_plain_call(tmp_path: Path) -> None:
    """64 turns of a product and a sum: nearly all that the loop's node reads is the profiler's."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def value(name: str, shape: list[Any], kind: int = TensorProto.FLOAT) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    body = helper.make_graph(
        [helper.make_node("Mul", ["v", "v"], ["w"]), helper.make_node("Add", ["w", "s"], ["t"]),
         helper.make_node("Identity", ["t"], ["u"])],
        "body", [value("s", [64]), value("v", [64])], [value("t", [64]), value("u", [64])],
    )  # fmt: skip
    nodes = [helper.make_node("Scan", ["zero", "x"], ["y", "all"], "turns", num_scan_inputs=1, body=body)]
    zero = numpy_helper.from_array(np.zeros(64, np.float32), "zero")
    graph = helper.make_graph(nodes, "g", [value("x", ["n", 64])], [value("y", [64])], [zero])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    onnx.save(made, tmp_path / "loop.onnx")
    found = of_session(tmp_path / "loop.onnx", 64)
    (loop,) = (part for part in found.stages if part.name.startswith("Scan"))
    assert loop.group == "linear"
    assert 0 < loop.ms <= (found.plain_ms or 0)
    assert "every turn of Scan" in found.note
    assert "times a plain call" not in found.note


def test_the_session_is_left_as_it_was(tmp_path: Path) -> None:
    path = graph(tmp_path)
    loaded = Session(path)
    before = loaded.session
    artefact = Artefact("onnx", "onnx", str(tmp_path), (path.name,), "predict_proba")
    sessions.split(artefact, loaded, breakdown.cut(ROWS, 8), 8, 0.05)
    assert loaded.session is before
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"], "no profile is left behind"


def test_nodes_inside_a_loop_are_in_the_loops_time() -> None:
    def event(name: str, op: str, ts: int, dur: int) -> dict[str, Any]:
        return {"cat": "Node", "name": f"{name}_kernel_time", "ts": ts, "dur": dur, "args": {"op_name": op}}

    run = [event("s", "Scan", 10, 100), event("m", "MatMul", 20, 30), event("m", "MatMul", 60, 30)]
    run.append(event("t", "TopK", 110, 7))
    assert sessions.medians(run, drop=0) == [("s", "Scan", 100.0), ("t", "TopK", 7.0)]


class Module:
    def __init__(self, module: Any) -> None:
        self.module = module

    def predict(self, rows: Any) -> Any:
        import torch

        with torch.inference_mode():
            return self.module(torch.as_tensor(rows)).numpy()


def of_module(module: Any, rows: Any, batch: int = 32) -> Breakdown:
    artefact = Artefact("eager", "eager", "", (), "forward")
    again = Module(copy.deepcopy(module))
    return breakdown.split(artefact, Module(module), lambda: again, breakdown.cut(rows, batch), batch, SECONDS)


def test_modules_before_between_and_after_products() -> None:
    from torch import nn

    layers = (nn.LayerNorm(64), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10), nn.Softmax(-1))
    found = of_module(nn.Sequential(*layers).eval(), ROWS)
    placed = [(part.name, part.group) for part in found.stages if part.name[0].isdigit()]
    assert placed == [
        ("0 (LayerNorm)", "preprocess"), ("1 (Linear)", "linear"), ("2 (ReLU)", "linear"), ("3 (Linear)", "linear"),
        ("4 (Softmax)", "postprocess"),
    ]  # fmt: skip
    assert found.plain_ms is not None
    assert abs(found.unattributed_ms or 0) < 0.5 * found.plain_ms


def test_an_encoder_stays_on_its_fast_path() -> None:
    """With hooks it would leave it: its children would be called."""
    from torch import nn

    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    model = nn.Sequential(nn.Embedding(50, 32), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)).eval()
    found = of_module(model, RNG.integers(0, 50, (100, 8)))
    names = {part.name: part.group for part in found.stages}
    assert names["0 (Embedding)"] == "preprocess"
    assert names["1.layers.0 (TransformerEncoderLayer)"] == "linear"
    assert not any("self_attn" in name for name in names)


def test_what_is_compiled_is_not_split_and_says_so() -> None:
    import torch

    module = torch.export.export(torch.nn.Sequential(torch.nn.Linear(64, 3)), (torch.ones(32, 64),)).module()
    found = of_module(module, ROWS)
    assert stage(found, "all of the module", "linear") > 0
    assert "not split" in found.note


def test_a_runtime_that_shows_nothing_has_no_parts() -> None:
    class Closed:
        def predict(self, rows: Any) -> Any:
            return rows @ rows.T

    found = breakdown.split(Artefact("x", "closed", "", (), ""), Closed(), Closed, breakdown.cut(ROWS, 8), 8, 0.05)
    assert (found.stages, found.ms("preprocess")) == ((), None), "not 0: nobody knows"
    assert found.plain_ms
    assert "closed does not tell" in found.note


def test_plain_products_have_steps_and_a_head() -> None:
    class Products:
        def __init__(self) -> None:
            self.steps, self.head = [("minus", 1.0)], lambda x: x.argmax(axis=1)

        def predict(self, rows: Any) -> Any:
            for _, array in self.steps:
                time.sleep(0.002)
                rows = rows - array
            return self.head(rows @ rows.T)

    artefact = Artefact("x", "numpy", "", (), "")
    found = breakdown.split(artefact, Products(), Products, breakdown.cut(ROWS, 64), 64, 0.1)
    assert stage(found, "steps before the product", "preprocess") >= 2
    assert stage(found, "the product", "linear") > 0
    assert stage(found, "answers of the scores", "postprocess") > 0


def test_a_runtime_may_answer_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from bitwatt.deploy import runtimes

    class Own:
        def load(self, artefact: Artefact, threads: int) -> Any:
            return Native(None)

        def breakdown(self, artefact: Artefact, loaded: Any, rows: Any, batch: int) -> Breakdown:
            return Breakdown(batch, (), source="my own")

    monkeypatch.setattr(runtimes, "runtime", lambda name: Own())
    found = breakdown.of(Artefact("x", "theirs", "", (), ""), ROWS, 8, apart=False)
    assert (found.batch, found.source) == (8, "my own")


def test_own_time_is_without_that_of_parts_inside() -> None:
    ticks = iter(range(0, 1000, 10))
    timeline = Timeline(lambda: next(ticks))
    scores = timeline.wrap(lambda: None, Part("scores", core=2))
    model = timeline.wrap(lambda: scores(), Part("model", core=1))
    # 0 whole 10 model 20 scores 30 model 40 whole 50
    assert timeline.of(model) == {
        (timeline.whole, "preprocess"): 10, ("model", "preprocess"): 10, ("scores", "linear"): 10,
        ("model", "postprocess"): 10, (timeline.whole, "postprocess"): 10,
    }  # fmt: skip


def test_an_error_in_the_model_is_not_swallowed() -> None:
    timeline = Timeline()

    def broken() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        timeline.of(timeline.wrap(broken, Part("broken")))
    assert set(timeline.of(timeline.wrap(lambda: None, Part("fine", core=1)))) >= {("fine", "linear")}


def test_in_a_fresh_process_by_the_runtime_that_made_it(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from bitwatt.deploy import runtimes

    model = fitted(make_pipeline(StandardScaler(), LogisticRegression()))
    case = Case(model, "sklearn", "lr", ROWS, classes=(0, 1, 2))
    for name in ("sklearn-fp64", "onnx-fp32"):
        (tmp_path / name).mkdir()
        artefact = runtimes.runtime(name).build(case, tmp_path / name)
        found = breakdown.of(artefact, case, 64, seconds=SECONDS)
        assert found.batch == 64
        assert all((found.ms(group) or 0) > 0 for group in ("preprocess", "linear", "postprocess")), found
        assert found.overhead is not None


def test_a_process_that_dies_is_told_and_breaks_nothing(tmp_path: Path) -> None:
    gone = Artefact("gone", "onnx-fp32", str(tmp_path), ("model.onnx",), "predict", options={"feeds": [], "tail": None})
    found = breakdown.of(gone, ROWS, 8)
    assert found.stages == ()
    assert found.note.startswith("not broken down")
