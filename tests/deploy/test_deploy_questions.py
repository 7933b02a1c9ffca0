"""What is asked of a model, and what is told before anything is measured."""

import logging
import sys
from dataclasses import replace

import joblib
import numpy as np
import pandas
import pytest
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import FixedThresholdClassifier
from threadpoolctl import threadpool_info, threadpool_limits

from bitwatt.deploy.given import loading
from bitwatt.deploy.judging import quality
from bitwatt.deploy.making import building
from bitwatt.deploy.measuring import counts
from bitwatt.deploy.telling.rules import Rules
from bitwatt.errors import BitwattError

X, Y = make_classification(400, 8, n_informative=5, random_state=0)


def test_quality_is_of_what_the_model_predicts(tmp_path):
    model = FixedThresholdClassifier(LogisticRegression(), threshold=0.1).fit(X, Y)
    case = loading.case(model, X, Y)
    assert case.method == "predict"
    (native,) = quality.judged(case, building.build_all(case, tmp_path, ["sklearn-fp64"]))
    assert native.quality.value == model.score(X, Y)
    assert loading.case(LogisticRegression().fit(X, Y), X, Y).method == "predict_proba"


def test_several_labels_for_a_row_are_refused():
    rows, labels = make_multilabel_classification(50, 5, random_state=0)
    with pytest.raises(BitwattError, match="several labels for each row"):
        loading.case(RandomForestClassifier(3).fit(rows, labels), rows, labels)
    assert loading.case(Ridge().fit(X, np.c_[Y, Y]), X, np.c_[Y, Y]).method == "predict"


@pytest.mark.parametrize(("metric", "why"), [("nosuch", "knows no metric"), ("roc_auc", "cannot be computed")])
def test_a_metric_is_tried_before_anything_is_measured(metric, why):
    rows, labels = make_classification(200, 8, n_informative=5, n_classes=3, random_state=0)
    with pytest.raises(BitwattError, match=why):
        loading.case(LogisticRegression(max_iter=500).fit(rows, labels), rows, labels, metric=metric)


def test_targets_are_taken_by_name_and_never_by_chance():
    frame = pandas.DataFrame(X[:, :3], columns=["a", "b", "c"])
    model = LogisticRegression().fit(frame, Y)
    assert (loading.case(model, frame.assign(y=Y, id=range(400))).target == Y).all()
    case = loading.case(model, frame.assign(id=range(400)))
    assert case.target is None
    assert any("id is not used" in note for note in case.notes)


def test_one_row_is_enough():
    model = LogisticRegression().fit(X, Y)
    assert loading.case(model, X[:1], Y[:1]).target.shape == (1,)
    assert loading.case(model, X, Y.reshape(-1, 1)).target.shape == (400,)


def test_training_rows_need_no_targets(tmp_path):
    frame = pandas.DataFrame(X[:, :3], columns=["a", "b", "c"])
    frame.to_csv(tmp_path / "train.csv", index=False)
    frame.assign(goal=Y).to_csv(tmp_path / "test.csv", index=False)
    model = LogisticRegression().fit(frame, Y)
    case = loading.case(model, tmp_path / "test.csv", target="goal", train=tmp_path / "train.csv")
    assert len(case.train) == 400


def test_an_error_with_its_sign_turned_is_lost_as_a_share():
    assert Rules().loss(-0.009, -0.001) == pytest.approx(8.0)
    assert Rules().loss(0.92, 0.93) == pytest.approx(0.01)


def test_a_study_knows_its_files_from_any_folder(tmp_path, monkeypatch):
    joblib.dump(LogisticRegression().fit(X, Y), tmp_path / "model.joblib")
    np.savez(tmp_path / "test.npz", X=X, y=Y)
    monkeypatch.chdir(tmp_path)
    told = loading.described(loading.case("model.joblib", "test.npz", trust=True))
    assert (told["path"], told["data_path"]) == (str(tmp_path / "model.joblib"), str(tmp_path / "test.npz"))


def test_the_users_process_stays_as_it_was(tmp_path):
    case = loading.case(LogisticRegression().fit(X, Y), X, Y)
    path, handlers = sys.path[:], logging.root.handlers[:]
    with threadpool_limits(2):
        before = [pool["num_threads"] for pool in threadpool_info()]
        scenarios = building.build_all(case, tmp_path)
        quality.judged(case, scenarios)
        for one in scenarios:
            if one.artefact is not None:
                counts.of(one.artefact, case, 4)
        after = [pool["num_threads"] for pool in threadpool_info()][: len(before)]
    assert (sys.path, logging.root.handlers) == (path, handlers)
    assert after == before


def test_a_conversion_that_is_another_model_is_not_recommended():
    from studies import calls, quality, scenario, study

    from bitwatt.deploy.telling.findings import found

    ways = (
        scenario("sklearn-fp64", "fp64", baseline="native", quality=quality(0.9)),
        scenario("onnx-fp32", baseline="onnx", quality=quality(0.9)),
    )
    times = {"sklearn-fp64": 1.0, "onnx-fp32": 0.1}
    assert found(study(*ways), calls(times)).recommended.scenario == "onnx-fp32"
    wrong = (ways[0], replace(ways[1], quality=quality(0.9, doubtful=True)))
    chosen = found(study(*wrong), calls(times)).recommended
    assert chosen.scenario == "sklearn-fp64"
    assert "onnx-fp32: quicker, but perhaps another model" in chosen.why


def test_a_graph_is_no_trained_model(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"\x08")
    with pytest.raises(BitwattError, match="converted already"):
        loading.case(tmp_path / "model.onnx", X, Y, trust=True)
