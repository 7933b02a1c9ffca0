"""Every family goes through every runtime that applies, with the same answers in the same shape."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from families import FAMILIES, fitted
from networks_small import made

from bitwatt.deploy import documents, runtimes
from bitwatt.deploy.given import estimators, loading
from bitwatt.deploy.given import rows as rows_of
from bitwatt.deploy.judging import quality
from bitwatt.deploy.making import building, converting
from bitwatt.deploy.records import Artefact, Case, Loaded, Scenario, UnfitError
from bitwatt.errors import UnknownNameError

QUICK = {"columns"}
NUMERIC = ["sklearn-fp64", "sklearn-fp32", "onnx-fp32", "onnx-int8"]
LINEAR = {"logistic", "ridge", "linear svc", "scaled linear svc", "pca", "scaled sgd"}
HERE = str(Path(__file__).parent)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in FAMILIES])
def test_every_family_goes_through(name: str, tmp_path: Path) -> None:
    model, rows, y, train = fitted(name)
    case = loading.case(model, rows, y, train=train)
    found = quality.judged(case, building.build_all(case, tmp_path))
    assert {one.name: one.failure for one in found if one.failure} == {}
    expected = {*NUMERIC} - ({"sklearn-fp32"} if name == "texts" else set()) | ({"numpy"} if name in LINEAR else set())
    assert {one.name for one in found} == expected
    native = estimators.answer(model, case.method, rows)
    for one in found:
        assert one.artefact is not None
        assert one.quality is not None
        answer = runtimes.load(one.artefact).predict(rows)
        assert answer.shape == native.shape, one.name
        assert runtimes.load(one.artefact).predict(rows_of.take(rows, slice(3, 4))).shape == native[3:4].shape
        assert one.artefact.bytes == sum(
            (Path(one.artefact.folder) / file).stat().st_size for file in one.artefact.files
        )
        assert one.artefact.versions
        assert one.artefact.imports
        if one.artefact.precision.integer_nodes:
            continue
        assert one.quality.flips in (0, None), one.name
        assert (one.quality.max_difference or 0) < 1e-4 * max(
            1, np.abs(native).max() if native.dtype.kind == "f" else 1
        )
        assert one.quality.warnings == ()


@pytest.mark.parametrize("name", ["perceptron", "convolutions", "encoder"])
@pytest.mark.slow
def test_torch_modules_go_through_every_runtime(name: str, tmp_path: Path) -> None:
    _torch(name, tmp_path, ())


@pytest.mark.slow
def test_a_torch_module_goes_through(tmp_path: Path) -> None:
    _torch("perceptron", tmp_path, ("torch-eager", "onnx-fp32", "onnx-fp16", "onnx-int8-dynamic", "torchao-int8"))


def _torch(name: str, folder: Path, chosen: tuple[str, ...]) -> None:
    model, rows = made(name)
    case = loading.case(model, rows, model(rows).argmax(1))
    found = {one.name: one for one in quality.judged(case, building.build_all(case, folder, chosen))}
    assert {one.name: one.failure for one in found.values() if one.failure} == {}
    assert chosen or set(found) == {
        "torch-eager", "torch-compile", "torchao-int8", "onnx-fp32", "onnx-fp16", "onnx-int8-dynamic",
        "onnx-int8-static",
    }  # fmt: skip
    for one in found.values():
        assert one.artefact is not None
        assert one.quality is not None
        loaded = runtimes.load(one.artefact)
        assert loaded.predict(rows[:5]).shape == model(rows[:5]).shape, "another number of rows than was exported"
        assert np.allclose(loaded.predict(rows[:5].numpy()), loaded.predict(rows[:5])), "arrays are taken as well"
        exact = one.artefact.precision.mode == "fp32" and one.name != "onnx-fp16"
        assert (one.quality.max_difference or 0) < (1e-4 if exact else 0.1), one.name
    assert found["torch-eager"].baseline == "native"
    assert found["onnx-fp32"].baseline == "onnx"


def test_weights_that_layers_share_survive_quantising(tmp_path: Path) -> None:
    """onnxruntime's quantiser transposes a weight for every Gemm that has it; square ones come out wrong in silence."""
    import torch
    from torch import nn

    shared = nn.Linear(16, 16, bias=False)
    model = nn.Sequential(shared, nn.ReLU(), shared, nn.ReLU(), nn.Linear(16, 4)).eval()
    rows = torch.randn(64, 16)
    case = loading.case(model, rows)
    found = building.build_all(case, tmp_path, ("torch-eager", "onnx-int8-dynamic"))
    judged = quality.judged(case, found)[1].quality
    assert judged is not None
    assert judged.max_difference is not None
    assert judged.max_difference < 0.05 * float(model(rows).abs().max().detach())


def test_a_fresh_process_loads_an_artefact_with_its_library_alone(tmp_path: Path) -> None:
    model, rows, y, _ = fitted("logistic")
    case = loading.case(model, rows, y)
    [built] = building.build_all(case, tmp_path, ("onnx-fp32",))
    np.save(tmp_path / "rows.npy", rows)
    (tmp_path / "artefact.json").write_text(json.dumps(documents.as_json(built.artefact)))
    code = (
        "import json, sys, numpy; from bitwatt.deploy import documents, records, runtimes; "
        "artefact = documents.of_json(records.Artefact, json.load(open('artefact.json'))); "
        "found = runtimes.load(artefact).predict(numpy.load('rows.npy')); "
        "print(found.shape, sorted({'sklearn', 'torch', 'onnx', 'pandas', 'scipy'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.stdout.strip() == "(200, 3) []", ended.stderr


@pytest.mark.slow
def test_a_class_of_the_users_script_is_carried_along(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import numpy as np, subprocess, sys, json\n"
        "from pathlib import Path\n"
        "from sklearn.base import BaseEstimator, TransformerMixin\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from bitwatt.deploy import documents\nfrom bitwatt.deploy.given import loading\n"
        "from bitwatt.deploy.making import building\n"
        "class Doubled(TransformerMixin, BaseEstimator):\n"
        "    def fit(self, X, y=None): return self\n"
        "    def transform(self, X): return X * 2\n"
        "X = np.random.default_rng(0).normal(size=(50, 3)); y = (X[:, 0] > 0).astype(int)\n"
        "case = loading.case(make_pipeline(Doubled(), LogisticRegression()).fit(X, y), X, y)\n"
        "built = building.build_all(case, Path('built'))\n"
        "print(json.dumps(documents.as_json(built)))\n"
    )
    ended = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=True)
    rows = {row["name"]: row for row in json.loads(ended.stdout)}
    assert "Doubled" in rows["onnx-fp32"]["failure"]
    artefact = documents.of_json(Artefact, rows["sklearn-fp64"]["artefact"])
    artefact = replace(artefact, folder=str(tmp_path / artefact.folder))
    assert runtimes.load(artefact).predict(np.zeros((2, 3))).shape == (2, 2)


def test_names_that_nobody_knows_are_told(tmp_path: Path) -> None:
    model, rows, y, _ = fitted("logistic")
    with pytest.raises(UnknownNameError, match="sklearn-fp64"):
        building.build_all(loading.case(model, rows, y), tmp_path, ("onnx-fp12",))


def test_a_runtime_that_does_not_apply_is_a_row_when_it_was_asked_for(tmp_path: Path) -> None:
    model, rows, y, _ = fitted("logistic")
    [row] = building.build_all(loading.case(model, rows, y), tmp_path, ("torch-compile",))
    assert "no way to run" in row.failure


class Broken:
    name, baseline, order = "broken", "", 99

    def __init__(self, error: Exception) -> None:
        self.error = error

    def applies(self, case: Case) -> bool:
        return True

    def build(self, case: Case, folder: Path) -> Artefact:
        raise self.error

    def load(self, artefact: Artefact, threads: int) -> Loaded:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (UnfitError("has no products"), "has no products"),
        (KeyError("x"), "KeyError: 'x'"),
        (RuntimeError("a\nb"), "RuntimeError: a"),
    ],
)
def test_whatever_a_converter_raises_is_a_row(tmp_path: Path, error: Exception, told: str) -> None:
    model, rows, y, _ = fitted("logistic")
    row = building.build(loading.case(model, rows, y), Broken(error), tmp_path)
    assert row == Scenario("broken", "broken", told)


def test_an_unconvertible_step_costs_its_rows_alone(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    _, rows, y, _ = fitted("logistic")
    case = loading.case(make_pipeline(FunctionTransformer(np.arctan), LogisticRegression()).fit(rows, y), rows, y)
    found = {one.name: one for one in building.build_all(case, tmp_path)}
    assert found["sklearn-fp64"].artefact is not None
    assert not found["sklearn-fp64"].failure
    assert "cannot be converted" in found["onnx-fp32"].failure
    assert "cannot be converted" in found["onnx-int8"].failure


def test_the_users_model_and_threads_stay_as_they_were(tmp_path: Path) -> None:
    import torch
    from threadpoolctl import threadpool_info

    model, rows, y, _ = fitted("forest")
    before = (model.n_jobs, [one["num_threads"] for one in threadpool_info()], torch.get_num_threads())
    case = loading.case(model, rows, y)
    quality.judged(case, building.build_all(case, tmp_path, ("sklearn-fp64", "sklearn-fp32")))
    assert before == (model.n_jobs, [one["num_threads"] for one in threadpool_info()], torch.get_num_threads())


@pytest.mark.slow
def test_methods_that_are_asked_for_are_answered(tmp_path: Path) -> None:
    model, rows, y, _ = fitted("linear svc")
    for method in ("decision_function", "predict"):
        case = loading.case(model, rows, y, method=method)
        for one in quality.judged(case, building.build_all(case, tmp_path, ("sklearn-fp64", "numpy", "onnx-fp32"))):
            assert one.quality is not None
            assert one.quality.flips == 0
            assert not one.failure
            assert (one.quality.max_difference or 0) < 1e-5


@pytest.mark.slow
def test_string_labels_and_two_classes(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    _, rows, y, _ = fitted("logistic")
    named = np.where(y > 0, "yes", "no")
    for model in (LogisticRegression(), LinearSVC()):
        case = loading.case(model.fit(rows, named), rows, named)
        assert case.classes == ("no", "yes")
        for one in quality.judged(case, building.build_all(case, tmp_path)):
            assert one.quality is not None
            assert (one.quality.value or 0) > 0.7, one
            assert set(one.quality.per_class) == {"no", "yes"}


def test_a_locale_that_the_machine_does_not_know_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """onnxruntime folds texts in en_US.UTF-8 unless told otherwise, which few containers have."""
    model, rows, y, _ = fitted("texts")
    monkeypatch.setattr(converting, "LOCALES", ("xx_XX.UTF-8", "C"))
    made = converting.convert(loading.case(model, rows, y))
    assert any("locale C, which folds ASCII letters alone" in note for note in made.notes)


def test_importing_the_runtimes_imports_no_framework() -> None:
    code = (
        "import sys; from bitwatt.deploy.runtimes import RUNTIMES; list(RUNTIMES); "
        "print(sorted({'torch', 'numpy', 'sklearn', 'onnx', 'onnxruntime', 'pandas', 'joblib'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


def test_an_exported_program_is_its_own_baseline(tmp_path: Path) -> None:
    """Its module cannot be pickled: the program is saved as what it is. What would change its numbers says why not."""
    import torch

    module, rows = made("perceptron")
    program = torch.export.export(module, (rows[:4],), dynamic_shapes=({0: torch.export.Dim("rows", min=1)},))
    torch.export.save(program, tmp_path / "model.pt2")
    case = loading.case(tmp_path / "model.pt2", rows, module(rows).argmax(1), trust=True)
    chosen = ("torch-eager", "torchao-int8", "onnx-fp32")
    found = {one.name: one for one in building.build_all(case, tmp_path, chosen)}
    assert "exported program" in found["torchao-int8"].failure
    judged = {one.name: one for one in quality.judged(case, [found["torch-eager"], found["onnx-fp32"]])}
    for one in judged.values():
        assert one.failure == ""
        assert one.quality is not None
        assert one.quality.value == 1.0
    assert judged["torch-eager"].artefact is not None
    assert judged["torch-eager"].artefact.files == ("model.pt2",)
