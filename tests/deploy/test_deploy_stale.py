"""Do results still hold: by the model's bytes, the data's, the machine and the versions."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

pytest.importorskip("numpy")

import studies

from bitwatt.deploy.telling import stale
from bitwatt.errors import BitwattError

MACHINE = {"cpu": "a processor", "flags": "avx2 avx512_vnni", "copy_gbps_L1": "210.0"}


@pytest.fixture
def made(tmp_path):
    model, data = tmp_path / "model.joblib", tmp_path / "test.npz"
    model.write_bytes(b"a model")
    data.write_bytes(b"rows")
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (model, data)]
    case = {"path": str(model), "data_path": str(data), "model_digest": digests[0], "data_digest": digests[1]}
    return studies.study(case=case, machine=MACHINE, versions={"onnxruntime": "1.31", "scikit-learn": "1.9"})


def checked(study, versions=None, **more):
    known = {"onnxruntime": "1.31", "scikit-learn": "1.9"} | (versions or {})
    found = stale.check(study, installed=known.get, **{"machine": MACHINE} | more)
    return {one.name: one for one in found}, stale.is_stale(found)


def test_unchanged_results_hold(made):
    found, is_stale = checked(made)
    assert not is_stale
    assert {one.passed for one in found.values()} == {True}


@pytest.mark.parametrize(("which", "name"), [("path", "model"), ("data_path", "data")])
def test_a_file_that_was_changed_is_found(made, tmp_path, which, name):
    with open(made.case[which], "ab") as file:
        file.write(b"!")
    found, is_stale = checked(made)
    assert is_stale
    assert [one.name for one in found.values() if one.passed is False] == [name]
    assert "was changed" in found[name].told


def test_a_file_that_is_gone_makes_them_stale(made, tmp_path):
    (tmp_path / "model.joblib").unlink()
    found, is_stale = checked(made)
    assert is_stale
    assert "No such file" in found["model"].told


def test_another_place_may_be_told(made, tmp_path):
    (tmp_path / "model.joblib").rename(tmp_path / "moved")
    assert not checked(made, model=tmp_path / "moved")[1]
    with pytest.raises(BitwattError, match="cannot be read"):
        checked(made, model=tmp_path / "nowhere")


def test_another_processor_or_version_is_told_with_both(made):
    found, is_stale = checked(made, machine=MACHINE | {"cpu": "another"})
    assert is_stale
    assert found["machine"].told == "cpu a processor then, another now"
    found, is_stale = checked(made, {"onnxruntime": "1.40"})
    assert is_stale
    assert found["versions"].told == "onnxruntime 1.31 then, 1.40 now"
    assert "not installed now" in checked(made, {"scikit-learn": None})[0]["versions"].told


def test_what_is_measured_anew_each_time_is_no_change(made):
    assert not checked(made, machine=MACHINE | {"copy_gbps_L1": "180.0", "os": "another"})[1]


def test_what_was_no_file_cannot_be_found_out(made):
    found, is_stale = checked(replace(made, case={"model_digest": "", "data_digest": "abc"}))
    assert not is_stale
    assert (found["model"].passed, found["data"].passed) == (None, None)


def test_what_is_installed_here_is_found():
    assert stale.present("pytest") == pytest.__version__
    assert stale.present("sklearn-of-nobody") is None
    assert "cpu" in stale.here()
