"""bitwatt what-if: tables and plots of a kept run, and one clear line for a mistake."""

import json

import pytest
import torch
from torch import nn

import bitwatt
from bitwatt.cli import main


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with torch.no_grad(), bitwatt.measure("small"):
        nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))(torch.randn(4, 16))
    return tmp_path


def told(capsys, *arguments: str, status: int = 0) -> str:
    assert main(["what-if", *arguments]) == status
    captured = capsys.readouterr()
    return captured.err if status else captured.out


def test_formats_layers_and_tables(kept, capsys):
    assert "2 layers with weights int4" in told(capsys, "--weights", "int4")
    assert "unchanged, excepted: 2" in told(capsys, "small", "--weights", "int8", "--except-layers", "2")
    assert "1 layer with" in told(capsys, "small", "--weights", "int8", "--activations", "int8", "--layers", "0")
    (kept / "widths.csv").write_text("layer,weights,activations\n0,int4,int8\n")
    assert "weights int4, activations int8" in told(capsys, "--table", "widths.csv")


def test_markdown_and_json(kept, capsys):
    assert "| bops:product |" in told(capsys, "--weights", "nf4", "--format", "markdown")
    figures = json.loads(told(capsys, "--weights", "int8", "--activations", "int8", "--format", "json"))["figures"]
    assert figures["bops:product"]["after"] * 16 == figures["bops:product"]["before"]


def test_the_changed_run_is_kept(kept, capsys):
    told(capsys, "--weights", "int4", "--save", "four")
    assert bitwatt.load("four").layers["0"].weights.bits == 4
    assert bitwatt.load("small").layers["0"].weights is None


def test_a_sweep_and_its_plot(kept, capsys):
    text = told(capsys, "--sweep", "fp32,int8,int4", "--plot", "plot.svg")
    assert text.splitlines()[2].split() == ["recorded", "fp32", "int8", "int4"]
    assert (kept / "plot.svg").read_text().startswith("<svg")
    alone = json.loads(told(capsys, "--sweep", "int4", "--activations", "none", "--format", "json"))
    assert alone["int4"]["changed"] == {"0": "weights int4", "2": "weights int4"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "nothing to change"),
        (("--table", "empty.csv"), "no line below the header"),
        (("--weights", "int4:channel:g4"), "tells what shares a scale twice"),
        (("--weights", "int77"), "no number format is called 'int77'"),
        (("--weights", "int4", "--layers", "fc"), "no layer matches 'fc'"),
        (("--weights", "int4", "--format", "html"), "--format is one of text, markdown, json"),
        (("--weights", "int4", "--plot", "a.svg"), "--plot draws a sweep"),
        (("--sweep", "int4", "--save", "x"), "--sweep and --save do not go together"),
        (("--sweep", "int4", "--plot", "no/such/place.svg"), "could not be written"),
        (("nobody", "--weights", "int4"), "no run in .bitwatt has the id or name 'nobody'"),
    ],
)
def test_mistakes_are_one_line(kept, capsys, arguments, says):
    (kept / "empty.csv").write_text("layer,weights,activations\n")
    text = told(capsys, *arguments, status=2)
    assert text.startswith("bitwatt: ")
    assert says in text
    assert text.count("\n") == 1
