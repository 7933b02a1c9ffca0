"""`bitwatt estimate model.onnx`."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import helper

import bitwatt
from bitwatt.cli import main
from bitwatt.errors import BitwattError
from onnx_counter.graphs import model, weight


@pytest.fixture
def path(tmp_path: Path) -> Path:
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="/head/MatMul")
    onnx.save(model([node], {"x": ("n", "length", 8)}, [weight("w", 8, 3)]), tmp_path / "open.onnx")
    return tmp_path / "open.onnx"


def test_a_file_is_counted_and_shown(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimate", str(path), "--batch", "4", "--shape", "length=10"]) == 0
    text = capsys.readouterr().out
    assert "960 MAC" in text
    assert "onnx.MatMul" in text
    assert "head" in text


@pytest.mark.parametrize("format", ["json", "markdown", "html"])
def test_formats_of_reports(path: Path, format: str, capsys: pytest.CaptureFixture[str]) -> None:
    target = path.with_suffix(f".{format}")
    assert main(["estimate", str(path), "--shape", "x=4,10,8", "--format", format, "-o", str(target)]) == 0
    assert capsys.readouterr().out == ""
    text = target.read_text(encoding="utf-8")
    assert "onnx.MatMul" in text
    if format == "json":
        assert json.loads(text)["run"]["name"] == "open.onnx"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "leaves length of 'x' open"),
        (["--shape", "x"], "--shape is NAME=SIZES"),
        (["--shape", "x=a,b"], "--shape is NAME=SIZES"),
        (["--cost-model", "nonsense"], "no cost model is called"),
    ],
)
def test_what_is_wrong_is_told(
    path: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["estimate", str(path), *options]) == 2
    assert message in capsys.readouterr().err


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimate", "absent.onnx"]) == 2
    assert "absent.onnx is not there" in capsys.readouterr().err


def test_a_batch_of_nothing_is_refused(tmp_path):
    with pytest.raises(BitwattError, match="a batch of 0 computes nothing"):
        bitwatt.estimate(tmp_path / "m.onnx", batch=0)
