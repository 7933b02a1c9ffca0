"""A model file is looked into without running any of it."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import pickle
import tracemalloc
import zipfile
import zlib
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import torch
from families import fitted

from bitwatt.deploy.given import loading, trust
from bitwatt.errors import BitwattError


class Evil:
    """Makes a file when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        return (os.system, (f"touch {self.target}",))


def _eval(target: Path) -> bytes:
    """By hand, in the oldest protocol: no string in it says builtins.eval in one piece to a search of new ones."""
    return f"cbuiltins\neval\n(V__import__('pathlib').Path({str(target)!r}).touch()\ntR.".encode()


@pytest.mark.parametrize("compress", [0, 3, ("gzip", 3), ("bz2", 3), ("lzma", 3), ("xz", 3)])
def test_what_a_joblib_file_imports_is_told_whatever_it_is_packed_with(tmp_path: Path, compress: Any) -> None:
    path = tmp_path / "model.joblib"
    joblib.dump(fitted("logistic")[0], path, compress=compress)
    assert "sklearn.linear_model._logistic.LogisticRegression" in trust.contents(path)


def test_names_behind_arrays_are_found_too(tmp_path: Path) -> None:
    """joblib writes arrays as plain bytes in the middle of the pickle."""
    target, path = tmp_path / "ran", tmp_path / "model.joblib"
    objects = np.array([{"a": 1}, "b"], dtype=object)
    joblib.dump([np.arange(1000.0), objects, np.array(["ab", "c"]), np.zeros(3, "i4,f8"), Evil(target)], path)
    assert trust.contents(path)[0] == "posix.system"
    assert not target.exists()


@pytest.mark.parametrize("form", ["pickle", "joblib", "packed", "torch", "old"])
def test_a_malicious_file_is_refused_and_nothing_of_it_runs(tmp_path: Path, form: str) -> None:
    target, path = tmp_path / "ran", tmp_path / "model.joblib"
    if form == "pickle":
        path.write_bytes(pickle.dumps({"model": Evil(target)}))
    elif form == "old":
        path.write_bytes(_eval(target))
    elif form == "torch":
        torch.save({"model": Evil(target)}, path)
    else:
        joblib.dump({"model": Evil(target)}, path, compress=3 if form == "packed" else 0)
    with pytest.raises(BitwattError) as refused:
        loading.case(path, np.zeros((3, 2)))
    said = str(refused.value)
    assert "--trust" in said
    first = said.partition("SUSPICIOUS")[2]
    assert ("builtins.eval" if form == "old" else "posix.system") in first
    assert not target.exists()


def test_the_test_above_could_fail(tmp_path: Path) -> None:
    target = tmp_path / "ran"
    pickle.loads(_eval(target))
    assert target.exists()


def test_a_refusal_lists_what_an_honest_file_needs(tmp_path: Path) -> None:
    path = tmp_path / "model.joblib"
    joblib.dump(fitted("forest")[0], path)
    with pytest.raises(BitwattError, match="RandomForestClassifier") as refused:
        loading.case(path, np.zeros((3, 2)))
    assert "SUSPICIOUS" not in str(refused.value)


def test_names_that_steer_terminals_are_made_harmless(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    path.write_bytes(b"cos\x1b[31m\nsystem\n.")
    assert "\x1b" not in str(trust.refuse(path))


@pytest.mark.parametrize("bytes_", [b"", b"hello world", b"\x80\x04", b"\x1f\x8bnothing", b"PK\x03\x04broken"])
def test_what_is_no_pickle_is_told(tmp_path: Path, bytes_: bytes) -> None:
    path = tmp_path / "model.pkl"
    path.write_bytes(bytes_)
    with pytest.raises(BitwattError, match="is not a pickle"):
        loading.case(path, np.zeros((3, 2)))


def test_pickles_inside_archives_inside_archives_are_found(tmp_path: Path) -> None:
    inner, target, path = io.BytesIO(), tmp_path / "ran", tmp_path / "model.pt2"
    torch.save(Evil(target), inner)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/data/sample_inputs/model.pt", inner.getvalue())
    assert "posix.system" in trust.contents(path)


def test_the_registry_of_extensions_is_not_asked(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    path.write_bytes(b"\x82\x01.")  # EXT1: whatever this process has registered under 1
    with pytest.raises(BitwattError, match="extensions"):
        trust.contents(path)


@pytest.mark.parametrize("pack", [zlib.compress, gzip.compress, bz2.compress, lzma.compress])
def test_a_small_file_that_unpacks_to_a_large_one_is_not_unpacked(tmp_path: Path, pack: Any) -> None:
    """256 MiB of zeros behind the model, less than 1 MB on disk."""
    path = tmp_path / "bomb.joblib"
    head = pickle.dumps({"model": Evil(tmp_path / "ran")})
    large = b"\x80\x04\x8e" + (1 << 28).to_bytes(8, "little")  # a text of bytes, of which this is the length
    path.write_bytes(pack(head + large + bytes(1 << 28)))
    assert path.stat().st_size < 1e6
    tracemalloc.start()
    with pytest.raises(BitwattError) as refused:
        loading.case(path, np.zeros((3, 2)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "more than the 32 MiB that are looked into" in str(refused.value)
    assert "posix.system" in str(refused.value)
    assert peak < 200e6
    assert not (tmp_path / "ran").exists()
