"""Every format tells the same: coverage first, what is missing by name, numbers with units, exact ones in JSON."""

import json
import re
from html.parser import HTMLParser

import pytest

import bitwatt
from bitwatt.dtypes import Precision
from bitwatt.errors import BitwattError
from bitwatt.ledger import Row
from bitwatt.pricing import totals
from bitwatt.records import Layer, Machine, Op, Quantised
from bitwatt.reports import FORMATS, report
from bitwatt.reports.html import fragment
from bitwatt.reports.text import fitting
from bitwatt.units import format_count
from factories import make_run, mm_op, transformer_run

PEOPLE = ("text", "markdown", "html")


def incomplete_run(**fields):
    run = transformer_run(layers=2, **fields)
    run.ledger.add("forward", "x", Op("toy.unknown"), 5)
    return run


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_run_has_a_report(format):
    assert "0" in report(make_run(), format=format)


@pytest.mark.parametrize("format", PEOPLE)
def test_the_coverage_comes_first_and_gaps_are_named(format):
    text = report(incomplete_run(), format=format)
    assert "5 missing" in text
    assert text.index("missing") < text.index("FLOP")
    assert "toy.unknown" in text
    assert "≥" in text  # with something missing, a sum is a lower bound


def test_the_first_line_of_text_is_the_coverage():
    assert report(transformer_run()).splitlines()[0] == "621 ops counted, 3 free, 0 missing"


@pytest.mark.parametrize("format", PEOPLE)
def test_a_failed_run_and_its_notes_are_told(format):
    text = report(incomplete_run(status="failed: ValueError: boom", notes=("look here",)), format=format)
    assert "failed: ValueError: boom" in text
    assert "look here" in text


@pytest.mark.parametrize("format", PEOPLE)
def test_the_model_asked_for_stands_there_with_formula_and_source(format):
    text = report(transformer_run(), format=format, cost_model="bops:product")
    assert "bops:product" in text
    assert "MAC · b_w · b_a" in text
    assert "qonnx" in text


def test_by_keeps_one_table():
    cases = (("phase", "optimizer", "lm_head"), ("scope", "lm_head", "toy.mm"), ("op", "toy.mm", "lm_head"))
    for by, kept, gone in cases:
        text = report(transformer_run(), by=by)
        assert kept in text
        assert gone not in text


@pytest.mark.parametrize("width", [40, 60, 80, 100])
@pytest.mark.parametrize("by", [None, "phase", "scope", "op"])
def test_text_fits_its_width(width, by):
    run = incomplete_run(command="train.py " + "--flag value " * 20)
    run.ledger.add("evaluate/" + "deep/" * 20 + "inference", "a." * 60 + "b", mm_op(9, 9, 9), 1)
    assert max(map(len, report(run, width=width, by=by).splitlines())) <= width


def test_text_has_no_escapes_unless_asked():
    assert "\x1b" not in report(transformer_run())
    assert re.sub(r"\x1b\[\d+m", "", report(transformer_run(), color=True)) == report(transformer_run())


def test_text_can_do_without_unicode():
    text = report(transformer_run())
    plain = fitting(text, "latin-1")
    assert plain.isascii()
    assert [len(line) for line in plain.splitlines()] == [len(line) for line in text.splitlines()]
    assert fitting(text, "utf-8") == text


def test_text_steps_stand_where_flops_cannot():
    line = next(line for line in report(transformer_run(), by="phase").splitlines() if line.startswith("preprocess"))
    assert line.split()[1] == "—"
    assert "37.0 k" in line


def test_json_has_exact_numbers_and_null_for_the_unknown():
    run = incomplete_run()
    document = json.loads(report(run, format="json", cost_model="bops:product"))
    phases = {line["phase"]: line for line in document["phases"]}
    for model in ("flops", "bops", "macs", "bops:product"):
        priced = totals(run, model)
        assert document["totals"][model] == priced.total
        assert {name: line[model] for name, line in phases.items() if line[model] is not None} == priced.by("phase")
        assert sum(line[model] or 0 for line in document["scopes"]) == priced.total
        assert sum(line[model] or 0 for line in document["ops"]) == priced.total
    assert phases["preprocess"]["flops"] is None
    assert document["missing"] == [{"op": "toy.unknown", "calls": 5, "reason": "no rule"}]
    assert document["coverage"]["missing"] == 5
    assert document["fingerprint"]["digest"]
    assert document["machine"]["torch"] == "2.13.0"
    scope = next(line for line in document["scopes"] if line["scope"] == "lm_head")
    assert (scope["class"], scope["weight_dtype"], scope["parameters"]) == ("Linear", "float32", 768 * 5000)


def test_markdown_tables_are_rectangular():
    text = report(transformer_run(), format="markdown")
    for block in text.split("\n\n"):
        if block.startswith("|"):
            assert len({row.count("|") for row in block.splitlines()}) == 1


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        self.links += [value or "" for name, value in attributes if name in ("src", "href", "xlink:href", "data")]
        if tag not in ("meta", "link", "br", "img", "wbr", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_brings_everything_itself():
    page, text = _Page(), report(incomplete_run(), format="html")
    page.feed(text)
    assert page.open == []
    assert all(link.startswith("#") for link in page.links)
    assert not page.seen & {"link", "iframe", "img"}
    assert text.count("<script") == 1
    assert not re.search(r"url\(|@import|https?://", text)
    assert "prefers-color-scheme: dark" in text


def test_what_a_program_names_itself_is_text_in_the_page():
    evil = '<script>alert("x")</script>'
    run = make_run([Row(evil, evil, Op(evil), 1)], name=evil, command=evil, status=evil, notes=(evil,),
                   machine=Machine({evil: evil}))  # fmt: skip
    assert report(run, format="html").count("<script") == 1  # the page's own
    assert "<script" not in fragment(run)
    assert "<script" not in re.sub(r"`[^`]*`", "", report(run, format="markdown")).replace("\\<", "")


def test_a_fragment_keeps_its_style_to_itself():
    text = fragment(transformer_run())
    style = re.search(r"<style>(.*?)</style>", text, re.S)[1]
    selectors = re.findall(r"(?:^|[{}])\s*([^@{}]+?)\s*\{", re.sub(r"@media[^{]*\{", "", style))
    assert all(part.strip().startswith(".bitwatt") for rule in selectors for part in rule.split(","))
    assert "<html" not in text


def quantised_run():
    """Two 4-bit layers, one of which keeps its secret, and a float one."""
    weights = Quantised(Precision("nf4", "float", 4), 4.5, "a.library.Linear4bit: quant_type=nf4")
    layers = {
        "up": Layer("Linear4bit", "uint8", 64 * 256, ((256, 64),), 9216, weights),
        "down": Layer("SecretLinear", "uint8", 8192, unknown="SecretLinear does not tell its width"),
        "head": Layer("Linear", "bfloat16", 64 * 100, ((100, 64),), 12800),
    }
    rows = [
        Row("inference", "up", mm_op(8, 64, 256, "bfloat16"), 1),
        Row("inference", "down", mm_op(8, 256, 64, "bfloat16"), 1),
        Row("inference", "head", mm_op(8, 64, 100, "bfloat16"), 1),
    ]
    return make_run(rows, layers=layers)


def test_a_report_of_quantised_layers_shows_both_precisions_and_what_is_not_known():
    text = report(quantised_run())
    assert text.splitlines()[0] == "3 ops counted, 0 free, 0 missing; 1 layer by dtype only"
    assert "by dtype only: SecretLinear does not tell its width" in text
    weights = text[text.index("\nWeights ") :].splitlines()
    assert weights[3].split()[:8] == ["nf4", "1", "16.4", "k", "4", "4.5", "bfloat16", "bfloat16"]
    both = text[text.index("\nEffective and executed") :].splitlines()
    macs = [8 * 64 * 256, 8 * 256 * 64, 8 * 64 * 100]
    assert both[3].split()[1:3] == [format_count(2 * 16 * sum(macs)).split()[0], "M"]
    document = json.loads(report(quantised_run(), format="json"))
    assert document["coverage"]["dtype_only"] == 1
    assert document["effective_and_executed"]["bops:product"]["inference"] == 16 * 4 * macs[0] + 256 * sum(macs[1:])
    assert document["effective_and_executed"]["bops:executed"]["inference"] == 2 * 16 * sum(macs)
    moved = document["effective_and_executed"]
    saved = 64 * 256 * 2 - 64 * 256 * 4.5 / 8
    assert moved["bytes"]["inference"] - moved["bytes:effective"]["inference"] == saved
    assert {group["format"]: group["nbytes"] for group in document["weights"]} == {
        "nf4": 9216, "uint8": 0, "bfloat16": 12800,
    }  # fmt: skip
    for format in ("markdown", "html"):
        page = report(quantised_run(), format=format)
        assert "SecretLinear does not tell its width" in page
        assert "Effective and executed" in page


def test_a_report_of_plain_layers_leaves_the_tables_out_unless_asked():
    run = transformer_run(2, 64)
    assert "Effective and executed" not in report(run)
    assert "Effective and executed" in report(run, by="weights")


def test_a_kept_run_is_reported_and_priced_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept = bitwatt.save(make_run(name="mine"))
    assert bitwatt.report("mine") == bitwatt.report(kept) == bitwatt.report(bitwatt.load("mine"))
    assert bitwatt.totals("mine").total == bitwatt.totals(bitwatt.load("mine")).total
    for ask in (bitwatt.report, bitwatt.totals):
        with pytest.raises(BitwattError, match="has the id or name 'yours'"):
            ask("yours")
        with pytest.raises(BitwattError, match="this is a int; wanted is a run, or the name, id or path"):
            ask(3)


def test_columns_of_forward_and_backward_are_for_runs_that_have_them():
    fitted = make_run([Row("fit", "Ridge", mm_op(8, 8, 8), 1)])
    for format in ("text", "html"):
        assert "Backward" not in bitwatt.report(fitted, format=format).partition("fingerprint")[0]
    assert "Backward" in bitwatt.report(make_run([Row("forward", "head", mm_op(8, 8, 8), 1)]))


def test_the_time_that_an_estimate_took_is_not_the_models():
    run = make_run(command="estimate(m.onnx)", seconds=123.0)
    for format in ("text", "markdown", "html"):
        assert "2 min" not in bitwatt.report(run, format=format)
    assert "2 min" in bitwatt.report(make_run(seconds=123.0))
