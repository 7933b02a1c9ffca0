"""Budgets: what a limit means, that counts gate hard, and that noise does not."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from bitwatt.budgets import telling
from bitwatt.budgets.checking import EXCEEDED, KEPT, UNDECIDED, UNGATED, check
from bitwatt.budgets.limits import limit_of, shown
from bitwatt.budgets.reading import Budget, budget_of, read
from bitwatt.comparing import compare
from bitwatt.comparing.quantities import Where
from bitwatt.config import Settings, settings
from bitwatt.errors import SettingsError
from bitwatt.observed import Observed
from bitwatt.readings import Device, Energy, Metered
from bitwatt.records import Machine, Op, Run
from factories import transformer_run


def run(**fields) -> Run:
    return transformer_run(layers=2, width=64, batch=8, **fields)


def joules(amount: float, how: str = "measured") -> Metered:
    return Metered(1.0, (Energy(Device("gpu:0", "gpu"), amount, how, "a sensor", 1.0),))


def outcome(key: str, limit, runs, baseline=(), where: dict | None = None, **options):
    (found,) = check(Budget((limit_of(key, limit, Where(**(where or {}))),), **options), runs, baseline)
    return found


@pytest.mark.parametrize(
    ("key", "written", "quantity", "amount"),
    [
        ("flops", "4.1 GFLOP", "flops", 4_100_000_000),
        ("flops", "4.1 GMAC", "macs", 4_100_000_000),  # in MAC: held against MACs
        ("flops", 12_345, "flops", 12_345),
        ("flops", 4.1e9, "flops", 4_100_000_000),
        ("macs", "3 MMAC", "macs", 3_000_000),
        ("bops", "0.1 kBOP", "bops", 100),
        ("bytes", "1.5 KiB", "bytes", 1536),
        ("parameters", "25.6 M", "parameters", 25_600_000),
        ("energy", "1 Wh", "energy", 3600),
        ("joules", "2 kJ", "energy", 2000),
        ("seconds", "1 min 30 s", "seconds", 90),
        ("peak_memory", "2 GB", "peak_memory", 2_000_000_000),
        ("bops:product", "1 TBOP", "bops:product", 10**12),
        ("missing", 0, "missing", 0),
    ],
)
def test_amounts_with_units(key, written, quantity, amount):
    limit = limit_of(key, written)
    assert (limit.quantity, limit.amount, limit.is_relative) == (quantity, amount, False)


@pytest.mark.parametrize(
    ("written", "before", "at_most"),
    [("+2 %", 100, 102), ("-10 %", 100, 90), ("1.02×", 50, 51), ("1.5x", 50, 75), ("+3 MFLOP", 100, 3_000_100),
     ("+0 %", 7, 7), ("−50 %", 8, 4), ("+1 %", 10**18 + 100, Fraction(101, 100) * (10**18 + 100))],
)  # fmt: skip
def test_limits_against_a_baseline_are_exact(written, before, at_most):
    limit = limit_of("flops", written)
    assert limit.is_relative
    assert limit.at_most(before) == at_most


@pytest.mark.parametrize(
    ("key", "written", "says"),
    [
        ("flops", "4.1 GB", "it is in B, wanted is FLOP"),
        ("macs", "4 GFLOP", "it is in FLOP, wanted is MAC"),
        ("flops", "2 %", r'against a baseline it is "\+2 %"'),
        ("flops", True, "write an amount"),
        ("flops", ["4 GFLOP"], "write an amount"),
        ("flops", "many", "is not a quantity"),
        ("flops", "", "empty"),
        ("parameters", "3 GFLOP", "wanted is a plain number"),
        ("flosp", 1, "did you mean 'flops'"),
    ],
)
def test_what_is_no_limit_is_told(key, written, says):
    with pytest.raises(SettingsError, match=says):
        limit_of(key, written)


def test_time_has_no_layers_and_parameters_no_phases():
    with pytest.raises(SettingsError, match="not of layers"):
        limit_of("energy", "5 J", Where(layer="fc"))
    with pytest.raises(SettingsError, match="not known of phases"):
        limit_of("parameters", 5, Where(phase="forward"))


BUDGET = """
pue = 1.2

[budget]
baseline = "main"
repetitions = 7
flops = "4.1 GMAC"
"bops:product" = "1 TBOP"
missing = 0

[budget.phase.forward]
flops = "+2 %"

[budget.layer."transformer.h.*.mlp"]
macs = 10
"""


def test_a_budget_stands_beside_the_settings(tmp_path, monkeypatch):
    (tmp_path / "bitwatt.toml").write_text(BUDGET)
    assert settings(tmp_path).pue == 1.2
    budget = read(tmp_path / "bitwatt.toml")
    assert (budget.baseline, budget.repetitions) == ("main", 7)
    assert [limit.name for limit in budget.limits] == [
        "macs", "bops:product", "missing", "flops, phase forward", "macs, layer transformer.h.*.mlp",
    ]  # fmt: skip
    inside = tmp_path / "deep" / "er"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    assert read() == budget  # found upward


def test_pyproject_holds_one_too(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname="x"\n[tool.bitwatt.budget]\nflops = 5\n')
    assert read(tmp_path / "pyproject.toml").limits[0].amount == 5
    assert settings(tmp_path).pue is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[budget]\nflosp = 1", r"bitwatt.toml: there is no limit 'flosp'; did you mean 'flops'\?"),
        ("[budget]\nbaselin = 'x'", r"did you mean 'baseline'\?"),
        ("[budget]\nflops = '1 GB'", "bitwatt.toml: flops = '1 GB': it is in B"),
        ("[budget.phase.forward]\nflopz = 1", r"phase.forward: there is no limit 'flopz'; did you mean 'flops'\?"),
        ("[budget.layer]\nfc = 3", "one table for each layer"),
        ("[budget.layer.fc]\nenergy = '3 J'", "layer.fc: energy of layer 'fc'"),
        ("[budget]\nrepetitions = 1\nflops = 1", "from 3 on, not 1"),
        ("[budget]\nbaseline = 3\nflops = 1", "not 3"),
        ("[budget]", "holds no limit"),
        ("pue = 1", r"holds no budget: write a table \[budget\]"),
        ("budget = 3", "budget is no table"),
        ("[budget", "no valid TOML"),
    ],
)
def test_a_bad_budget_is_told_with_its_place(tmp_path, text, says):
    (tmp_path / "bitwatt.toml").write_text(text)
    with pytest.raises(SettingsError, match=says):
        read(tmp_path / "bitwatt.toml")


@pytest.mark.parametrize("page", ["ci.md", "compare.md"])
def test_what_the_pages_show_is_valid(tmp_path, page):
    text = (Path(__file__).parents[2] / "docs" / "guides" / page).read_text(encoding="utf-8")
    shown, *_ = re.findall(r"```toml\n(.*?)```", text, flags=re.S)  # others are run by tests/test_docs.py
    (tmp_path / "bitwatt.toml").write_text(shown, encoding="utf-8")
    settings(tmp_path)
    assert page != "ci.md" or len(read(tmp_path / "bitwatt.toml").limits) == 9


def test_no_budget_at_all(tmp_path):
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        read(tmp_path / "none.toml")
    with pytest.raises(SettingsError, match="there is no budget"):
        read(start=tmp_path)


def test_counts_gate_to_the_last_operation():
    total = compare(run(), run(), settings=Settings()).totals["flops"].amounts[0]
    assert outcome("flops", total, [run()]).status == KEPT
    over = outcome("flops", total - 1, [run()])
    assert over.status == EXCEEDED
    assert telling.why(over) == "by 1 FLOP"
    assert outcome("flops", "+0 %", [run()], [run()]).status == KEPT
    wider = transformer_run(layers=2, width=65, batch=8)
    assert outcome("flops", "+0 %", [wider], [run()]).status == EXCEEDED
    assert outcome("flops", "-1 %", [run()], [run()]).status == EXCEEDED


def test_phases_and_layers_by_pattern():
    # forward of one mlp.up: 2 · 8 · 64 · 256 in 3 steps
    one = 2 * 8 * 64 * 256 * 3
    where = {"layer": "transformer.h.0.mlp.up", "phase": "forward"}
    assert outcome("flops", one, [run()], where=where).status == KEPT
    assert outcome("flops", one - 1, [run()], where=where).amount == one
    both = {"layer": "transformer.h.*.mlp.up", "phase": "forward"}
    assert outcome("flops", 0, [run()], where=both).amount == 2 * one
    inside = {"layer": "transformer.h.0.mlp", "phase": "forward"}  # a layer stands for what is in it
    assert outcome("flops", 0, [run()], where=inside).amount == one + 2 * 8 * 64 * 64 * 3
    named = outcome("flops", 0, [run()], where={"phase": "inference"})  # a step of evaluate/inference
    assert named.amount == outcome("flops", 0, [run()], where={"phase": "evaluate/*"}).amount > 0
    assert outcome("parameters", 64 * 256, [run()], where={"layer": "transformer.h.0.mlp.up"}).status == KEPT


def test_a_place_that_no_run_has_is_a_mistake_not_a_pass():
    with pytest.raises(SettingsError, match=r"the run has no layer 'lm_haed'; did you mean 'lm_head'\?"):
        outcome("flops", 5, [run()], where={"layer": "lm_haed"})
    with pytest.raises(SettingsError, match=r"no phase 'forwrd'; did you mean 'forward'\?"):
        outcome("flops", 5, [run()], where={"phase": "forwrd"})
    with pytest.raises(SettingsError, match="flops: a limit against a baseline needs one"):
        outcome("flops", "+2 %", [run()])


def test_missing_rules_can_be_limited_and_make_counts_lower_bounds():
    gap = run()
    gap.ledger.add("forward", "lm_head", Op("toy.unknown"), 3)
    assert outcome("missing", 0, [run()]).status == KEPT
    assert outcome("missing", 0, [gap]).status == EXCEEDED
    assert outcome("missing", 3, [gap]).status == KEPT
    assert outcome("flops", "1 TFLOP", [gap]).why == "at least: 3 calls have no rule"


def test_a_count_that_is_not_known_is_not_kept():
    bare = replace(run(), layers={})
    found = outcome("parameters", 10**9, [bare])
    assert (found.status, found.why) == (EXCEEDED, "not known: no layer of a model was seen")


def test_one_run_does_not_gate_time_or_energy():
    found = outcome("seconds", "1 ms", [run()])
    assert (found.status, found.why) == (UNGATED, "not gated: one run, 5 repetitions are needed")
    assert outcome("energy", "1 J", [run()]).why == "not gated: it was not metered"
    four = [run(seconds=5.0)] * 4
    assert outcome("seconds", "1 s", four).why == "not gated: 4 runs, 5 repetitions are needed"
    assert outcome("seconds", "1 s", four, repetitions=4).status == EXCEEDED


def many(values, **fields) -> list[Run]:
    return [run(seconds=one, meter=joules(one), **fields) for one in values]


@pytest.mark.parametrize(
    ("limit", "status"), [("12 s", KEPT), ("9 s", EXCEEDED), ("10 s", UNDECIDED), ("10.05 s", UNDECIDED)]
)
def test_with_repetitions_the_interval_decides(limit, status):
    found = outcome("seconds", limit, many([9.9, 10.1, 10.0, 10.2, 9.8]))
    assert found.status == status
    assert found.spread[0] <= 10.0 <= found.spread[1]


@pytest.mark.parametrize(("limit", "status"), [("+30 %", KEPT), ("+5 %", EXCEEDED), ("+20 %", UNDECIDED)])
def test_against_a_baseline_too(limit, status):
    before, after = many([10.0, 10.1, 9.9, 10.05, 9.95]), many([12.0, 12.1, 11.9, 12.05, 11.95])
    for key in ("energy", "seconds"):
        found = outcome(key, limit, after, before)
        assert (found.status, found.n) == (status, 5)
    assert outcome("seconds", limit, after, before[:1]).why.startswith("not gated: one run of the baseline")
    assert outcome("seconds", "+1 s", after, before).status == EXCEEDED
    assert outcome("seconds", "+3 s", after, before).status == KEPT


def test_noise_from_elsewhere_or_from_a_model_gates_nothing():
    elsewhere = many([1.0] * 5, machine=Machine({"cpu": "Another", "cores": "8"}))
    found = outcome("seconds", "+5 %", many([2.0] * 5), elsewhere)
    assert found.why == "not gated: the baseline is of another machine (cpu Another, here A Processor)"
    modelled = [replace(one, meter=joules(5.0, "modelled")) for one in many([1.0] * 5)]
    assert outcome("energy", "1 J", modelled).why == "not gated: modelled, not measured"
    assert outcome("flops", "+0 %", [run()], elsewhere).status == KEPT  # counts are the same everywhere


def test_memory_gates_by_its_largest_run():
    runs = [run(observed=Observed(device_peak=n)) for n in (100, 300, 200)]
    assert outcome("peak_memory", 300, runs).status == KEPT
    found = outcome("peak_memory", 299, runs)
    assert (found.status, found.amount, found.why) == (EXCEEDED, 300, "the largest of 3 runs")
    assert outcome("peak_memory", 299, [run()]).status == UNGATED


def test_memory_of_several_processes_is_a_lower_bound_and_no_baseline():
    def held(n: float) -> Run:
        return run(meter=Metered(10.0, usage={"memory_bytes_peak": n, "children_cpu_seconds": 3.0}))

    kept = outcome("peak_memory", 400, [held(300)])
    assert (kept.status, kept.why) == (KEPT, "at least: children of the process were looked at now and then")
    assert outcome("peak_memory", 400, [held(900)]).status == EXCEEDED  # what was seen was used
    found = outcome("peak_memory", "+10 %", [held(900)], [held(300)])
    assert found.status == UNGATED
    assert found.why.startswith("not gated: the baseline's is at least that")


EVIL = "<b>&\x00\ufffe|]]>`\n"


def outcomes(name: str = "ci"):
    budget = budget_of({"flops": "1 kFLOP", "missing": 0, "seconds": "1 s", "bytes": "+5 %"})
    runs = [run(name=name)]
    return check(budget, runs, [run()]), runs


def test_junit_tells_failures_and_what_was_not_gated():
    found, runs = outcomes(EVIL)
    suite = ElementTree.fromstring(telling.junit(found, runs).encode()).find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "1", "1")
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert "at most 1 kFLOP: exceeded" in cases["flops"].find("failure").get("message")
    assert cases["seconds"].find("skipped") is not None
    assert list(cases["missing"]) == []


def test_benchmark_json_is_what_the_action_reads():
    found, runs = outcomes(EVIL)
    entries = json.loads(json.dumps(telling.benchmark(found, runs)))
    assert {frozenset(entry) - {"range", "extra"} for entry in entries} == {frozenset(["name", "unit", "value"])}
    values = {entry["name"].rpartition(": ")[2]: entry["value"] for entry in entries}
    assert values["missing"] == 0
    assert isinstance(values["flops"], int)


def test_a_summary_has_the_limits_and_the_differences():
    found, runs = outcomes(EVIL)
    text = telling.markdown(found, compare(run(), runs[0], settings=Settings()))
    assert text.startswith("## bitwatt: over budget: 2 kept, 1 exceeded, 1 not gated")
    assert "| flops | " in text
    assert "✗ exceeded: by " in text
    assert "<b>" not in text
    assert "### " in text
    assert "| Totals | A | B | B / A |" in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_text_fits_and_tells_reasons(width):
    found, runs = outcomes()
    text = telling.text(found, runs, width)
    assert all(len(line) <= width for line in text.splitlines())
    assert "flops exceeded: by " in text
    assert "seconds not gated: one run, 5 repetitions are needed" in " ".join(text.split())


def test_amounts_are_shown_as_people_write_them():
    assert shown(Fraction(4_100_000_000), "FLOP") == "4.1 GFLOP"
    assert shown(None, "J") == "—"
    assert shown(90.0, "s") == "1 min 30 s"
