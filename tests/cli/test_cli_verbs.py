"""The verbs that look at what is kept: one clear line for a mistake, nothing imported that is not needed."""

import json
import subprocess
import sys

import pytest

from bitwatt import store
from bitwatt.backends import FRAMEWORKS
from bitwatt.cli import main
from bitwatt.dtypes import Precision
from bitwatt.fingerprint import summary
from bitwatt.ledger import Row
from bitwatt.records import Layer, Op, Quantised
from factories import make_run, mm_op, transformer_run


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A folder with two runs."""
    monkeypatch.chdir(tmp_path)
    run = transformer_run(layers=2)
    run.ledger.add("forward", "x", Op("toy.unknown"), 5)
    store.save(run, summary=summary(run))
    store.save(make_run(id="older", name="old", started="2025-01-01T00:00:00.000+00:00", status="interrupted"))
    return tmp_path


def told(capsys, *arguments: str, status: int = 0) -> str:
    assert main(list(arguments)) == status
    captured = capsys.readouterr()
    return captured.err if status else captured.out


def test_report_shows_the_newest_run_or_the_one_named(kept, capsys):
    assert "tiny-transformer" in told(capsys, "report")
    assert "old" in told(capsys, "report", "old")
    assert json.loads(told(capsys, "report", "--format", "json"))["run"]["name"] == "tiny-transformer"
    assert told(capsys, "report", "-o", "page.html", "--format", "html") == ""
    assert (kept / "page.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    "more",
    [["--lifetime", "old"], ["--beside", "x.json"], ["--by", "op"], ["--cost-model", "bops"], ["--against", "old"]],
)
def test_what_a_report_of_ranks_has_not_is_an_error(kept, capsys, more):
    said = told(capsys, "report", "--ranks", *more, status=2)
    assert said == f"bitwatt: {more[0]}: a report of --ranks has no such part; ask for it of one rank's run\n"


@pytest.mark.parametrize("seconds", ["0", "x", "nan", "inf"])
def test_doctor_wants_a_number_of_seconds(capsys, seconds):
    with pytest.raises(SystemExit):
        main(["doctor", "--idle", seconds])
    assert f"{seconds!r} is no number of seconds from 1 to 86400" in capsys.readouterr().err


def test_ls_lists_newest_first_and_reports_damage(kept, capsys):
    (kept / ".bitwatt" / "bad.run").write_text("rubbish")
    assert main(["ls"]) == 0
    captured = capsys.readouterr()
    titles, first, second = captured.out.splitlines()
    assert titles.split() == ["id", "name", "time", "flops", "bops", "missing", "status"]
    assert "tiny-transformer" in first
    assert "GFLOP" in first
    assert first.split()[-1] == "5"
    assert second.split() == ["older", "old", "1.5", "s", "interrupted"]
    assert captured.err == "bitwatt: .bitwatt/bad.run is not a bitwatt run file\n"


def test_explain_tells_rule_place_and_what_it_gave(kept, capsys):
    text = told(capsys, "explain", "toy.mm")
    assert "toy.mm: counted" in text
    assert "m·n·k multiply-accumulates" in text
    assert "family   matmul" in text
    assert "factories.py:" in text
    assert "distinct shapes" in text
    assert "float32[512,768], float32[768,5000]" in text


def test_explain_tells_free_missing_and_models(kept, capsys):
    assert "free\n  a view moves nothing" in told(capsys, "explain", "toy.view")
    assert "missing, no rule covers it" in told(capsys, "explain", "toy.unknown")
    assert "a cost model, in FLOP" in told(capsys, "explain", "flops")


def test_explain_tells_a_layers_precision_and_who_said_so(kept, capsys):
    weights = Quantised(Precision("nf4", "float", 4), 4.5, "a.library.Linear4bit: quant_type=nf4")
    activations = Quantised(Precision("int8", "int", 8), 8, "a.library.Linear4bit: dynamic", stored=False)
    layers = {
        "blocks.0.up": Layer("Linear4bit", "uint8", 64 * 256, ((256, 64),), 9216, weights, activations, 0.5),
        "secret": Layer("SecretLinear", "uint8", 10, unknown="SecretLinear does not tell its width"),
    }
    rows = [Row("inference", "blocks.0.up", mm_op(8, 64, 256, "bfloat16"), 3)]
    store.save(make_run(rows, id="quantised", layers=layers))
    text = told(capsys, "explain", "blocks.0.up", "--run", "quantised")
    assert "nf4, 4 bits a value, 4.5 with scales and zero points" in text
    assert "told by      a.library.Linear4bit: quant_type=nf4" in text
    assert "int8, 8 bits a value; rounded on the way, not kept so" in text
    assert "50.0 % of the weights" in text
    assert "3x toy.mm: 8 x 64 by 64 x 256; int8 by nf4, ran in bfloat16" in text
    text = told(capsys, "explain", "secret", "--run", "quantised")
    assert "the dtype only; SecretLinear does not tell its width" in text
    assert "blocks.0.up" in told(capsys, "explain", "blocks.0", "--run", "quantised", status=2)


def test_explain_offers_near_names(kept, capsys):
    message = told(capsys, "explain", "toy.nm", status=2)
    assert "toy.mm" in message
    assert message.count("\n") == 1


def test_models_come_with_formula_and_source(capsys):
    text = told(capsys, "models")
    assert "flops (FLOP)" in text
    assert "Source: " in text


def test_doctor_tells_what_it_finds_and_does_not_fail(kept, capsys):
    text = told(capsys, "doctor")
    for word in ("cpu", "torch", "rapl", "nvml", "process       reads process, host", "writable, 2 runs kept"):
        assert word in text


def test_doctor_names_every_framework_that_is_watched(kept, capsys):
    sklearn = pytest.importorskip("sklearn")
    text = told(capsys, "doctor")
    assert f"scikit-learn  {sklearn.__version__}: watched" in text
    for name in {"scikit-learn" if framework == "sklearn" else framework for framework in FRAMEWORKS}:
        assert f"\n  {name:<14}" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "nobody"), ("report", "--format", "pdf"), ("report", "--by", "colour"),
        ("report", "--cost-model", "calories"), ("run",), ("run", "-m"), ("run", "gone.py"),
        ("run", "--cost-model", "calories", "gone.py"), ("run", "--format", "pdf", "gone.py"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_clear_line_and_exit_2(kept, capsys, arguments):
    message = told(capsys, *arguments, status=2)
    assert message.startswith("bitwatt: ")
    assert message.count("\n") == 1


def test_help_and_version_are_quick_and_import_no_rules():
    script = (
        "import sys; from bitwatt.cli import main\n"
        "try: main([sys.argv[1]])\n"
        "except SystemExit: pass\n"
        "heavy = {'bitwatt.session', 'bitwatt.pricing', 'bitwatt.store', 'torch', 'json'} & set(sys.modules)\n"
        "assert not heavy or sys.argv[1] == '--version' and heavy == {'json'}, heavy"
    )
    for option in ("--help", "--version"):
        subprocess.run([sys.executable, "-c", script, option], check=True, stdout=subprocess.DEVNULL)


def test_a_reader_that_leaves_early_gets_no_traceback(kept):
    command = f"{sys.executable} -m bitwatt models | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert done.stderr == ""
