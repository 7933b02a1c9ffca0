"""Models and rows, from files and from objects; what is wrong with them is told in a sentence."""

from __future__ import annotations

import copy
import pickle
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from families import fitted, table
from networks_small import made
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from bitwatt.deploy.given import loading
from bitwatt.deploy.given import rows as rows_of
from bitwatt.errors import BitwattError

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def logistic() -> Any:
    return fitted("logistic")


def test_files_and_objects_give_the_same_case(tmp_path: Path, logistic: Any) -> None:
    model, rows, y, _train = logistic
    joblib.dump(model, tmp_path / "model.joblib")
    np.savez(tmp_path / "test.npz", X=rows, y=y)
    filed = loading.case(tmp_path / "model.joblib", tmp_path / "test.npz", trust=True)
    direct = loading.case(model, rows, y)
    assert np.array_equal(filed.inputs, direct.inputs)
    assert np.array_equal(filed.target, direct.target)
    assert filed.classes == direct.classes == (0, 1, 2)
    assert filed.method == "predict_proba"
    assert filed.model_digest == loading.digest(tmp_path / "model.joblib")
    assert loading.described(filed)["rows"] == 200


@pytest.mark.parametrize(
    "names", [("X", "y"), ("x_test", "y_test"), ("data", "target"), ("inputs", "labels"), ("only", None)]
)
def test_arrays_are_found_by_usual_names(tmp_path: Path, logistic: Any, names: Any) -> None:
    model, rows, y, _ = logistic
    held = {names[0]: rows} | ({names[1]: y} if names[1] else {})
    np.savez(tmp_path / "test.npz", **held)
    case = loading.case(model, tmp_path / "test.npz")
    assert rows_of.count(case.inputs) == 200
    assert (case.target is None) == (names[1] is None)


def test_a_file_with_both_halves_gives_the_training_rows_too(tmp_path: Path, logistic: Any) -> None:
    model, rows, y, train = logistic
    np.savez(tmp_path / "all.npz", X_train=train, X_test=rows, y_test=y)
    case = loading.case(model, tmp_path / "all.npz")
    assert rows_of.count(case.inputs) == 200
    assert rows_of.count(case.train) == 400


def test_arrays_that_cannot_be_told_apart_are_listed(tmp_path: Path, logistic: Any) -> None:
    np.savez(tmp_path / "test.npz", left=logistic[1], right=logistic[1])
    with pytest.raises(BitwattError, match="left, right"):
        loading.case(logistic[0], tmp_path / "test.npz")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("target", ["label", None])
def test_tables_have_their_target_by_name_or_as_what_is_left_over(tmp_path: Path, ending: str, target: Any) -> None:
    model, rows, y, _ = fitted("columns")
    frame = rows.assign(label=y)[["label", *reversed(rows.columns)]]
    path = tmp_path / f"test.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    case = loading.case(model, path, target=target)
    assert list(case.inputs.columns) == list(rows.columns)
    assert np.array_equal(case.target, y)


def test_a_column_of_texts_becomes_a_list(tmp_path: Path) -> None:
    model, rows, y, _ = fitted("texts")
    pd.DataFrame({"review": rows, "label": y}).to_csv(tmp_path / "test.csv", index=False)
    case = loading.case(model, tmp_path / "test.csv", target="label")
    assert case.inputs == rows


def test_tensors_come_from_their_own_files(tmp_path: Path) -> None:
    model, rows = made("convolutions")
    torch.save({"x": rows, "y": model(rows).argmax(1)}, tmp_path / "test.pt")
    torch.save(model, tmp_path / "model.pt")
    case = loading.case(tmp_path / "model.pt", tmp_path / "test.pt", trust=True)
    assert case.framework == "torch"
    assert case.classes == tuple(range(10))
    assert case.method == "forward"


def test_a_module_may_come_from_a_function_or_as_script_or_exported(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(HERE)
    model, rows = made("perceptron")
    assert loading.case("networks_small:perceptron", rows).framework == "torch"
    torch.jit.save(torch.jit.trace(model, rows), str(tmp_path / "script.pt"))
    torch.export.save(
        torch.export.export(model, (rows,), dynamic_shapes=({0: torch.export.Dim("rows")},)), tmp_path / "model.pt2"
    )
    for path in (tmp_path / "script.pt", tmp_path / "model.pt2"):
        assert rows_of.count(loading.case(path, rows, trust=True).inputs) == 96


def refused(match: str, *args: Any, **kwargs: Any) -> None:
    with pytest.raises(BitwattError, match=match):
        loading.case(*args, **kwargs)


def test_rows_that_do_not_fit_are_refused(logistic: Any) -> None:
    model, rows, y, train = logistic
    refused("takes 20 features, the data has 5", model, rows[:, :5])
    refused("200 rows and 7 targets", model, rows, y[:7])
    refused("has no rows", model, rows[:0])
    refused("targets have 7", model, rows, np.where(y == 1, 7, y))
    refused("targets are missing", model, rows, np.where(y == 1, np.nan, y))
    refused("Python objects", model, np.array([["a", 1] * 10], dtype=object))
    refused("no common shape", model, [[1, 2], [3]])
    refused("training rows have 3", model, rows, y, train=train[:, :3])
    refused("no decision", model, rows, method="decision")


def test_missing_values_are_refused_only_by_models_that_take_none(logistic: Any) -> None:
    model, rows, y, _ = logistic
    holed = rows.copy()
    holed[150, 3] = np.nan  # beyond the first rows, which are tried
    refused("1 of 200 rows has missing values", model, holed)
    for taker in (HistGradientBoostingClassifier(max_iter=2), make_pipeline(SimpleImputer(), LogisticRegression())):
        assert loading.case(taker.fit(rows, y), holed, y).method == "predict_proba"


def test_tables_that_do_not_fit_are_refused() -> None:
    model, rows, _, _ = fitted("columns")
    refused("trained on colour", model, rows.drop(columns="colour"))
    plain = LogisticRegression().fit(table()[["age", "weight"]], np.arange(600) % 2)
    renamed = table()[["age", "colour"]].rename(columns={"colour": "weight"})
    refused("columns weight hold no numbers", plain, renamed)


def test_models_that_are_none_are_refused(tmp_path: Path, logistic: Any) -> None:
    _, rows, _y, _ = logistic
    refused("is not fitted", LogisticRegression(), rows)
    refused("neither an estimator", {"a": 1}, rows)
    refused("there is no file", tmp_path / "nothing.joblib", rows)
    refused("cannot be imported", "no_such_module_here:make", rows)
    torch.save(made("perceptron")[0].state_dict(), tmp_path / "weights.pt")
    refused("weights without their module", tmp_path / "weights.pt", rows, trust=True)
    refused("does not take rows of the shape", made("perceptron")[0], torch.zeros(4, 3))


def test_what_a_pickle_lacks_is_named(tmp_path: Path, monkeypatch: Any, logistic: Any) -> None:
    (tmp_path / "gone_package.py").write_text("class Model:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    import gone_package  # type: ignore[import-not-found]

    (tmp_path / "model.pkl").write_bytes(pickle.dumps(gone_package.Model()))
    (tmp_path / "gone_package.py").unlink()
    sys.modules.pop("gone_package")
    refused("needs the package gone_package", tmp_path / "model.pkl", logistic[1], trust=True)
    (tmp_path / "main.pkl").write_bytes(b"c__main__\nNoSuchModel\n.")
    refused("NoSuchModel", tmp_path / "main.pkl", logistic[1], trust=True)


def test_data_that_would_run_code_needs_trust(tmp_path: Path, logistic: Any) -> None:
    np.savez(tmp_path / "test.npz", X=logistic[1].astype(object))
    refused("Python objects", logistic[0], tmp_path / "test.npz")
    assert loading.case(logistic[0], tmp_path / "test.npz", trust=True).inputs.dtype == object


@pytest.mark.parametrize("name", ["test.npz", "test.parquet", "test.pt", "test.xlsx"])
def test_files_that_are_not_what_they_are_called_are_told(tmp_path: Path, logistic: Any, name: str) -> None:
    (tmp_path / name).write_bytes(b"\x00\x01 nothing")
    refused(name, logistic[0], tmp_path / name)


def test_digests_tell_data_apart_and_no_order_of_memory(logistic: Any) -> None:
    rows = logistic[1]
    assert rows_of.digest(rows) == rows_of.digest(np.asfortranarray(rows)) != rows_of.digest(rows + 1e-12)
    assert rows_of.digest(["ab", "c"]) != rows_of.digest(["a", "bc"])


def test_targets_of_several_columns_are_no_labels() -> None:
    model, rows, y, _ = fitted("logistic")
    with pytest.raises(BitwattError, match="the targets have 2 columns, and the model predicts one label"):
        loading.case(model, rows, np.stack([y, y], axis=1))
    model, rows, y, _ = fitted("ridge")
    with pytest.raises(BitwattError, match="and the model predicts one value for each row"):
        loading.case(model, rows, np.stack([y, y], axis=1))


def test_infinite_values_and_what_was_lost_on_the_way_are_named() -> None:
    model, rows, y, _ = fitted("logistic")
    odd = rows.astype(float)
    odd[-1, 2] = np.inf
    with pytest.raises(BitwattError, match=f"1 of {len(odd)} rows has infinite values, which this"):
        loading.case(model, odd, y)
    half = copy.deepcopy(model)
    del half.intercept_
    with pytest.raises(BitwattError, match=r"lacks something .*: was it saved by another version of its library"):
        loading.case(half, rows, y)


def test_a_device_that_is_not_there_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    model, rows = torch.nn.Linear(4, 2), np.zeros((8, 4), np.float32)
    assert loading.case(model, rows, device="cpu").options == {"device": "cpu"}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert loading.case(model, rows, device="cuda").options == {"device": "cuda"}
    with pytest.raises(BitwattError, match="cannot use the device 'cuda:1' here: 1 GPU can be used"):
        loading.case(model, rows, device="cuda:1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(BitwattError, match="cannot use the device 'cuda' here: 0 GPUs can be used"):
        loading.case(model, rows, device="cuda")
    with pytest.raises(BitwattError, match="cannot use the device 'gpu' here: Expected one of cpu"):
        loading.case(model, rows, device="gpu")


def test_a_program_is_no_model_and_the_way_to_name_one_is_told(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("model = None")
    with pytest.raises(BitwattError, match=r"mine.py is a program, not a trained model; .* such as mine:model"):
        loading.case(tmp_path / "mine.py", np.zeros((8, 4)))
