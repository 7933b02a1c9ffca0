"""Programs of examples/: their numbers are held against closed forms, and guides show what they really print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import bitwatt

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guides"
#: Times, dates and ids, which differ from run to run; and the spaces that make room for them.
VARIES = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC|\d{8}-\d{6}-\w+|[\d.]+ (?:µs|ms|s|min)\b|in \d+ of \d+ places|\s+"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__", "paper"))
    return tmp_path


def run(folder: Path, command: str, status: int = 0) -> str:
    """What a command of a guide prints, on both streams."""
    words = command.split()
    words[:1] = [sys.executable, "-m", "bitwatt"] if words[0] == "bitwatt" else [sys.executable]
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=1500, check=False
    )
    assert done.returncode == status, f"{command}: {done.stderr}"
    return done.stdout + done.stderr


def shown(guide: str, command: str) -> list[str]:
    """The lines that a guide shows under a command."""
    text = (GUIDES / f"{guide}.md").read_text(encoding="utf-8")
    found = re.search(rf"^\$ {re.escape(command)}\n(.*?)^(?:\$|```)", text, re.M | re.S)
    assert found, f"{guide}.md does not show {command}"
    return [line for line in found[1].splitlines() if line.strip()]


def agrees(guide: str, command: str, printed: str, *, told: str = "") -> None:
    """Every line that the guide shows is printed, in its order; `told`: the command as the guide writes it."""
    real = [VARIES.sub("", line) for line in printed.splitlines()]
    for line in shown(guide, told or command):
        plain = VARIES.sub("", line)
        assert plain in real, f"{guide}.md shows\n{line}\nwhich is not printed:\n{printed}"
        real = real[real.index(plain) + 1 :]


def macs(run: bitwatt.Run, phase: str) -> int:
    return bitwatt.totals(run, "macs").by("phase")[phase]


def phases(lines: list[str]) -> dict[str, list[str]]:
    """Phase -> FLOPs, BOPs and MACs; bytes, times and what bounds them are the machine's."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines]
    return {row[0]: row[1:4] for row in rows if len(row) > 6}


def test_training_script(folder: Path) -> None:
    wide = "bitwatt run --by phase --name wide examples/training_script.py --width 64"
    narrow = "bitwatt run --quiet --name narrow examples/training_script.py --width 16"
    printed = run(folder, wide)
    assert phases(shown("training-script", wide)) == phases(printed.splitlines())
    for line in shown("training-script", wide)[:2]:
        assert line in printed
    agrees("training-script", narrow, run(folder, narrow))
    compare = "bitwatt compare narrow wide --metric accuracy"
    agrees("training-script", compare, run(folder, compare))
    kept = bitwatt.load("wide", folder / ".bitwatt")
    per_point = 2 * 64 + 64 * 64 + 64 * 3
    assert macs(kept, "forward") == 10 * 2_048 * per_point
    assert macs(kept, "evaluate/inference") == 1_024 * per_point
    assert macs(kept, "backward") == 10 * 2_048 * (2 * per_point - 2 * 64)  # no gradient of the points


def test_trainer(folder: Path) -> None:
    pytest.importorskip("accelerate")
    command = "python examples/trainer.py"
    agrees("trainer", command, run(folder, command))
    kept = bitwatt.load("distilbert", folder / ".bitwatt")
    layer = 32 * (4 * 64 * 64 + 2 * 64 * 256) + 2 * 32 * 32 * 64  # projections, feed-forward, scores and their use
    assert macs(kept, "train/forward") == 2 * 256 * (2 * layer + 64 * 64 + 64 * 2)
    assert macs(kept, "validation/inference") == 2 * 64 * (2 * layer + 64 * 64 + 64 * 2)


def test_lightning(folder: Path) -> None:
    pytest.importorskip("lightning")
    command = "python examples/lightning_fit.py"
    agrees("lightning", command, run(folder, command))
    kept = bitwatt.load("autoencoder", folder / ".bitwatt")
    per_sample = 2 * (64 * 128 + 128 * 4)
    assert macs(kept, "train/forward") == 3 * 1_024 * per_sample
    assert macs(kept, "train/backward") == 3 * 1_024 * (2 * per_sample - 64 * 128)
    assert kept.about.parameters["width"] == 128


def test_scikit_learn_pipeline(folder: Path) -> None:
    pytest.importorskip("sklearn")
    command = "python examples/sklearn_search.py"
    printed = run(folder, command)
    agrees("scikit-learn-pipeline", command, printed)
    kept = bitwatt.load("digits", folder / ".bitwatt")
    work = bitwatt.totals(kept)
    # Twelve fits of two thirds of the rows and one of all cost about nine of all; those with 16 components cost less.
    once = sum(n for scope, n in work.by("scope").items() if "fold" not in scope)
    assert 4 * once < work.total < 10 * once
    one, ten = (float(re.search(rf"{rows} rows: +([\d.]+) .FLOP", printed)[1]) for rows in ("1,347", "13,470"))
    assert 9 < 1000 * ten / one < 11


def test_quantised_llm(folder: Path) -> None:
    for library in ("torchao", "optimum.quanto", "bitsandbytes"):
        pytest.importorskip(library)
    command = "python examples/quantised_llm.py"
    printed = run(folder, command)
    with_vnni = torch.cpu._is_vnni_supported() and not torch.cpu._is_amx_tile_supported()  # as torchao asks
    told = printed if with_vnni else printed.replace("4.48 G     466 M", "4.62 G     470 M")
    agrees("quantised-llm", command, told)
    table = {line[:28].strip(): line[28:].split() for line in printed.splitlines() if line[28:29] == " "}
    # One row: q and o, k and v (half as wide), three of the feed-forward.
    products = 64 * 4 * (2 * 256 * 256 + 2 * 256 * 128 + 3 * 256 * 704)
    saved = float(table["bfloat16"][3]) - float(table["int8 both (torchao)"][3])
    assert saved * 1e9 == pytest.approx(products * (16 * 16 - 8 * 8), rel=0.01)
    assert table["int4 weights (quanto)"][0] == "4.5"


def test_ci_gate(folder: Path) -> None:
    for command in shown_commands("ci-gate")[:2]:
        assert "examples/ci_gate.py" in command
        assert run(folder, command) == ""
    check = "bitwatt check ci --baseline main --budget examples/ci_gate.toml"
    told = f'{check}; echo "exit code $?"'
    agrees("ci-gate", check, run(folder, check, status=1) + "exit code 1\n", told=told)
    run(folder, shown_commands("ci-gate")[0].replace(" main ", " same "))
    assert "within budget" in run(folder, check.replace(" ci ", " same "))
    before, after = (bitwatt.load(name, folder / ".bitwatt") for name in ("main", "ci"))
    grown = 2 * 8 * 32 * 2 * 64 * (288 - 256)  # two blocks, a layer up and one down
    assert macs(after, "forward") - macs(before, "forward") == grown


def shown_commands(guide: str) -> list[str]:
    return re.findall(r"^\$ (.+)$", (GUIDES / f"{guide}.md").read_text(encoding="utf-8"), re.M)


def test_cluster_job(folder: Path) -> None:
    command = "bitwatt run --quiet torchrun --nproc-per-node 2 examples/cluster_job.py"
    agrees("cluster-job", command, run(folder, command))
    report_agrees(run(folder, "bitwatt report --ranks"))
    ranks = [bitwatt.load(header.id, folder / ".bitwatt") for header in bitwatt.runs(folder / ".bitwatt")]
    per_row = 64 * 256 + 256
    assert [macs(rank, "forward") for rank in ranks] == [20 * 256 * per_row] * 2


def report_agrees(printed: str) -> None:
    """By its table of phases: who held up whom is the machine's."""
    real = [VARIES.sub("", line) for line in printed.splitlines()]
    rows = [line for line in shown("cluster-job", "bitwatt report --ranks") if "equal" in line]
    assert len(rows) == 6
    for line in rows:
        assert VARIES.sub("", line) in real, f"{line}\nis not in\n{printed}"


@pytest.mark.slow
def test_cluster_job_of_submitit(folder: Path) -> None:
    pytest.importorskip("submitit")
    assert "has ended" in run(folder, "python examples/cluster_job.py --submitit")
    report_agrees(run(folder, "bitwatt report --ranks"))


def test_first_decision(folder: Path) -> None:
    pytest.importorskip("sklearn")
    (folder / "mine.py").write_text((folder / "examples" / "first_decision.py").read_text())
    agrees("first-decision", "python mine.py", run(folder, "python mine.py"))
    sweep = "bitwatt what-if mine --sweep fp32,fp16,int8,int4"
    agrees("first-decision", sweep, run(folder, sweep))
    kept = bitwatt.load("mine", folder / ".bitwatt")
    products = 64 * 9 * 32 + 64 * 9 * 32 * 64 + 1024 * 256 + 256 * 10
    assert macs(kept, "inference") == products


def test_deployment_choice(folder: Path) -> None:
    pytest.importorskip("sklearn")
    command = "python examples/deployment_choice.py"
    agrees("deployment-choice", command, run(folder, command))


@pytest.mark.slow
@pytest.mark.parametrize("guide", ["first-decision", "deployment-choice"])
def test_what_the_lab_says_of_them(guide: str, folder: Path) -> None:
    """Times are the machine's; that converting pays, and what is lost by it, is not."""
    pytest.importorskip("onnxruntime")
    import csv

    if guide == "first-decision":
        (folder / "mine.py").write_text((folder / "examples" / "first_decision.py").read_text())
        run(folder, "python mine.py")
        model, native = "mine:model", "torch-eager"
    else:
        run(folder, "python examples/deployment_choice.py")
        model, native = "digits.joblib", "sklearn-fp64"
    files = "--data test.npz --train train.npz --trust --quick --no-load --batch 1 --scenarios"
    printed = run(folder, f"bitwatt deploy {model} {files} {native},onnx-fp32")
    assert "Take onnx-fp32" in printed
    with (folder / "artifacts" / "hardware_tradeoffs.csv").open() as file:
        rows = {row["scenario"]: row for row in csv.DictReader(file)}
    assert rows["onnx-fp32"]["flips"] == "0"
    assert rows["onnx-fp32"]["accuracy"] == rows[native]["accuracy"]
    table = (GUIDES / f"{guide}.md").read_text(encoding="utf-8")
    accuracy = re.search(rf"^{native} .* (0\.\d+) +0 ", table, re.M)
    assert accuracy, f"{guide}.md shows no accuracy of {native}"
    assert float(rows[native]["accuracy"]) == pytest.approx(float(accuracy[1]), abs=5e-5)


def test_precisions_and_estimate(folder: Path) -> None:
    rows = {
        line.split()[0]: line.split()[1:] for line in run(folder, "python examples/compare_precisions.py").splitlines()
    }
    products = 2 * 1_024 * 4_096 * 4_096
    assert rows["flops"] == [f"{products / 1e9:.1f}", "G"] * 4
    assert rows["bops:product"][::2] == ["17.6", "4.40", "1.10", "1.10"]  # 32 x 32, 16 x 16 and 8 x 8 bits a product
    printed = run(folder, "python examples/estimate_llama.py --layers 2 --tokens 64")
    assert "2.24 G parameters, 64 tokens: " in printed
    assert "0 missing" in printed
    share = float(re.search(r"matrix products are ([\d.]+) of that", printed)[1])
    assert 0.88 < share < 0.89  # 262 of 2,235 million parameters are looked up, not multiplied; scores come on top


def test_every_example_is_run() -> None:
    names = {path.name for path in (ROOT / "examples").iterdir() if path.suffix in (".py", ".ipynb")}
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    demo = (ROOT / "tests" / "test_docs.py").read_text(encoding="utf-8")
    assert {name for name in names if name not in tests + demo} == set()


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_every_example_is_shown_or_named_in_the_docs(name: str) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert any(f"examples/{name}" in page.read_text(encoding="utf-8") for page in pages)
