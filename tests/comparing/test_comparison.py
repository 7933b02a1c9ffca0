"""Runs side by side: counts to the last operation, times and joules never without their spread."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from compared_runs import metered, network, quality, repeated
from hypothesis import given
from hypothesis import strategies as st

import bitwatt
from bitwatt.about import About
from bitwatt.comparing import compare
from bitwatt.comparing.changes import shortened
from bitwatt.comparing.matching import _aligned, matched
from bitwatt.comparing.spread import interval, ratio
from bitwatt.config import Settings
from bitwatt.errors import BitwattError, UnknownNameError
from bitwatt.ledger import Row
from bitwatt.observed import Observed, Span
from bitwatt.records import Layer, Machine, Op, Replay
from factories import add_op, make_run, mm_op, transformer_run

PLAIN = Settings()


def test_equal_runs_are_said_to_be_equal_to_the_last_operation():
    comparison = compare(network(), network(id="again", seconds=1.6), settings=PLAIN)
    assert comparison.is_equal
    assert "equal to the last operation, in every phase, layer and op" in comparison.render()
    assert all(change.is_equal for axis in ("phase", "scope", "op", "precision") for change in comparison.changes(axis))


def test_one_operation_in_a_thousand_million_million_is_seen():
    huge = [Row("forward", "x", mm_op(10**5, 10**5, 10**5), 1)]  # 2e15 FLOP: more than a float tells apart
    one, other = make_run(huge), make_run([*huge, Row("forward", "y", add_op(1), 1)])
    comparison = compare(one, other, settings=PLAIN)
    assert comparison.totals["flops"].difference(1) == 1
    assert not comparison.is_equal
    assert comparison.json()["totals"]["flops"]["amounts"] == {"A": 2 * 10**15, "B": 2 * 10**15 + 1}
    assert "+1\n" in comparison.render()
    largest = [Row("forward", "x", mm_op(10**7, 10**6, 10**6), 1)]  # 2e19: here a ratio of floats is 1
    comparison = compare(make_run(largest), make_run([*largest, Row("loss", "y", add_op(1), 1)]), settings=PLAIN)
    assert "B against A: FLOPs +5e-18 %" in comparison.render()


def test_the_same_work_elsewhere_is_not_equal():
    moved = [replace(row, phase="loss") if row.phase == "backward" else row for row in network().ledger]
    comparison = compare(network(), replace(network(), ledger=type(network().ledger)(moved)), settings=PLAIN)
    assert comparison.totals["flops"].is_equal
    assert not comparison.is_equal
    by_phase = {change.name: change for change in comparison.changes("phase")}
    assert by_phase["loss"].amounts == (None, 2 * 8 * 4 * 16)
    assert by_phase["backward"].amounts == (2 * 8 * 4 * 16, None)
    assert "new" in comparison.render()
    assert "gone" in comparison.render()


def test_only_bits_differ_then_layers_are_compared_in_bits():
    comparison = compare(network(), network(dtype="bfloat16"), settings=PLAIN)
    assert comparison.totals["flops"].is_equal
    assert comparison.model == "bops"
    assert ("precision", ("float32", "bfloat16")) in [(one.kind, one.values) for one in comparison.differences]
    assert compare(network(), network(), cost_model="macs", settings=PLAIN).model == "macs"


def test_counts_that_are_not_exact_are_not_called_so():
    doubtful = replace(network(), replay=Replay("auto", 3, 10, interval=5.0))
    comparison = compare(network(), doubtful, settings=PLAIN)
    assert "equal as counted" in comparison.render()
    assert any("sampled" in told for told in comparison.doubts)
    gap = network()
    gap.ledger.add("forward", "fc1", Op("toy.unknown"), 3)
    comparison = compare(network(), gap, settings=PLAIN)
    assert "B: sums are lower bounds, 3 calls have no rule" in comparison.doubts
    assert ("run", "missing rules") in [(one.kind, one.name) for one in comparison.differences]


def test_layers_are_matched_by_name_then_by_shape_and_order():
    comparison = compare(network(), network(prefix="model.body."), settings=PLAIN)
    names = {change.name: change for change in comparison.changes("scope")}
    assert set(names) == {"fc1 → model.body.fc1", "act → model.body.act", "fc2 → model.body.fc2"}
    assert all(change.is_equal for change in names.values())
    assert comparison.is_equal
    assert "3 layers matched by shape and order, such as fc1 → model.body.fc1" in comparison.render()


def layer(*shape: int, kind: str = "Linear") -> Layer:
    return Layer(kind, shapes=(shape,) if shape else ())


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        # a layer put in between takes nobody's place
        ({"a": layer(4, 4), "b": layer(4, 8), "c": layer(8, 8)},
         {"x": layer(4, 4), "new": layer(2, 2), "y": layer(4, 8), "z": layer(8, 8)},
         {"a": "x", "b": "y", "c": "z"}),
        # equal shapes go by order
        ({"e.0": layer(4, 4), "e.1": layer(4, 4)}, {"d.0": layer(4, 4), "d.1": layer(4, 4)},
         {"e.0": "d.0", "e.1": "d.1"}),
        # another class of the same shape is the same layer, if no other is
        ({"q": layer(4, 4)}, {"p": layer(4, 4, kind="QuantLinear")}, {"q": "p"}),
        # its own name comes first, whatever its shape
        ({"a": layer(4, 4), "b": layer(8, 8)}, {"a": layer(8, 8), "c": layer(4, 4)}, {"a": "a"}),
        # without weights it follows the place it stands in
        ({"enc.0.fc": layer(4, 4), "enc.0.relu": layer(), "relu": layer()},
         {"m.0.fc": layer(4, 4), "m.0.relu": layer(), "tanh": layer()},
         {"enc.0.fc": "m.0.fc", "enc.0.relu": "m.0.relu"}),
        # so does one that was resized as well
        ({"enc.a": layer(4, 4), "enc.b": layer(4, 8)}, {"m.a": layer(4, 4), "m.b": layer(4, 9)},
         {"enc.a": "m.a", "enc.b": "m.b"}),
        # nothing in common
        ({"a": layer(1, 2)}, {"b": layer(3, 4)}, {}),
        # a wrapper's prefix comes off
        ({"module.fc": layer(4, 4), "module.relu": layer()}, {"fc": layer(4, 4), "relu": layer()},
         {"module.fc": "fc", "module.relu": "relu"}),
    ],
)  # fmt: skip
def test_matching(before, after, found):
    assert matched(before, after, before, after) == found


@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_layers_are_aligned_along_a_longest_common_subsequence(here, there):
    def longest(i, j):
        if i == len(here) or j == len(there):
            return 0
        return 1 + longest(i + 1, j + 1) if here[i] == there[j] else max(longest(i + 1, j), longest(i, j + 1))

    pairs = sorted(_aligned(list(here), list(there)))
    assert all(here[i] == there[j] for i, j in pairs)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(pairs))
    assert len(pairs) == longest(0, 0)


def test_very_many_layers_that_are_hardly_alike_still_find_each_other():
    before = {f"a.{i}": layer(i % 7, 3) for i in range(3000)}
    after = {f"b.{i}": layer(-(i % 7) % 7, 3) for i in range(3000)}
    found = matched(before, after, before, after)
    assert len(found) == len(set(found.values())) == 3000
    # 3000 = 7 · 428 + 4: of the last four, shapes 0 1 2 3 and 0 6 5 4, one is alike; three follow their renamed place
    assert sum(before[old].shapes == after[new].shapes for old, new in found.items()) == 2997


def test_many_layers_that_changed_are_folded_and_none_is_lost():
    comparison = compare(transformer_run(layers=24), transformer_run(layers=24, width=800), settings=PLAIN)
    changes = comparison.changes("scope")
    short = shortened(changes, 10)
    assert len(short) <= 11
    assert sum(c.difference(1) for c in short) == comparison.totals["flops"].difference(1)
    assert any("*" in change.name for change in short)


def test_one_run_each_has_no_spread_and_says_so():
    comparison = compare(network(seconds=2.0), network(seconds=2.2), settings=PLAIN)
    time = comparison.measures["seconds"]
    assert time.ratios[1].value == pytest.approx(1.1)
    assert time.ratios[1].low is None
    assert "time 1.1×: one run each: no spread known" in comparison.render()


def test_repetitions_give_a_ratio_of_medians_with_an_interval_and_n():
    before = repeated(network(), [1.0, 1.1, 0.9, 1.05, 0.95])
    after = repeated(network(id="b"), [2.0, 2.2, 1.8, 2.1, 1.9, 2.05])
    found = compare(before, after, settings=PLAIN).measures["seconds"].ratios[1]
    assert found.value == pytest.approx(2.025 / 1.0)
    assert 1.7 < found.low < 2.025 < found.high < 2.4
    assert found.n == (5, 6)
    assert found.excludes_one
    assert found == compare(before, after, settings=PLAIN).measures["seconds"].ratios[1]  # the same each time
    assert "(95 %, n 5 and 6)" in compare(before, after, settings=PLAIN).render()


def test_three_sides_carry_their_intervals_in_brackets():
    sides = [repeated(network(id=str(i)), [1.0 * (i + 1), 1.1 * (i + 1), 0.9 * (i + 1)]) for i in range(3)]
    text = compare(*sides, settings=PLAIN).render()
    assert "2× [1.64, 2.44]" in text
    assert "runs on each side: 3, 3, 3. In brackets: 95 % intervals" in text
    assert "one run each" in compare(*(side[0] for side in sides), settings=PLAIN).render()


def test_two_runs_are_too_few_for_an_interval():
    found = ratio([1.0, 1.1], [2.0, 2.2])
    assert found.low is None
    assert interval([1.0, 1.1]) is None
    assert ratio([], [1.0]) is None
    assert ratio([0.0], [1.0]) is None


def test_the_interval_of_five_holds_the_truth_as_often_as_it_promises():
    dice, held = random.Random(3), 0
    for _ in range(60):
        before, after = ([dice.lognormvariate(0, 0.2) for _ in range(5)] for _ in range(2))
        found = ratio(before, after)
        held += found.low <= 1 <= found.high
    assert held >= 54  # of 57 expected; fewer come once in thirty times, and the dice are seeded


def test_within_one_run_entries_of_a_phase_tell_and_are_named_as_that():
    def spans(each: float) -> Observed:
        many = tuple(Span("epoch", i * each, each * (1 + 0.01 * (i % 3))) for i in range(12))
        return Observed(phases={"epoch": (12, 12 * each)}, spans=many)

    comparison = compare(network(observed=spans(1.0)), network(observed=spans(1.5)), settings=PLAIN)
    (told,) = comparison.within
    assert told.startswith("within the runs, one entry of phase epoch: B / A 1.5×")
    assert "12 and 12 entries" in told
    assert "run to run" in told


def test_modelled_energy_is_marked_and_never_over_measured():
    measured, modelled = network(meter=metered(100.0)), network(id="b", meter=metered(200.0, "modelled"))
    mixed = compare(measured, modelled, settings=PLAIN)
    assert mixed.measures["energy"].ratios[1] is None
    assert "modelled 200 J" in mixed.render()
    assert "energy of B is modelled and that of others measured: no ratio is taken" in mixed.render()
    both = compare(modelled, replace(modelled, meter=metered(300.0, "modelled")), settings=PLAIN)
    assert both.measures["energy"].ratios[1].value == pytest.approx(1.5)
    assert "energy (modelled) 1.5×" in both.render()


def test_unknown_energy_and_other_devices_are_told():
    comparison = compare(network(meter=metered(100.0)), network(meter=metered(None)), settings=PLAIN)
    assert "energy of B is not known: gpu:0: vanished" in comparison.render()
    comparison = compare(network(meter=metered(100.0)), network(meter=metered(50.0, kind="cpu")), settings=PLAIN)
    assert "energy covers different things: A gpu; B cpu" in comparison.render()
    assert "energy" not in compare(network(), network(), settings=PLAIN).measures


def test_energy_and_time_by_phase():
    comparison = compare(network(meter=metered(100.0)), network(meter=metered(150.0)), settings=PLAIN)
    (forward,) = comparison.by_phase("energy")
    assert (forward.name, forward.medians, forward.ratios[1].value) == ("forward", (50.0, 75.0), 1.5)
    assert [one.name for one in comparison.by_phase("seconds")] == ["forward", "backward"]


def test_what_else_differs():
    one = network(about=About(parameters={"lr": 0.1, "same": 1}, git={"commit": "abc", "dirty": "no"}))
    other = network(
        command="other.py", machine=Machine({"cpu": "Another", "torch": "2.14"}),
        about=About(parameters={"lr": 0.2, "same": 1}, git={"commit": "abc", "dirty": "yes"}, batch_size=8),
    )  # fmt: skip
    found = {(d.kind, d.name): d.values for d in compare(one, other, settings=PLAIN).differences}
    assert found["run", "command"] == ("train.py --epochs 3", "other.py")
    assert found["setting", "parameter lr"] == ("0.1", "0.2")
    assert ("setting", "parameter same") not in found
    assert found["hardware", "cpu"] == ("A Processor", "Another")
    assert found["version", "torch"] == ("2.13.0", "2.14")
    assert found["run", "commit"] == ("abc", "abc with changes")
    assert found["run", "batch size"] == ("—", "8")
    assert compare(one, one, settings=PLAIN).differences == []


def test_repetitions_that_are_none_are_told():
    comparison = compare([network(), network(width=8)], network(), settings=PLAIN)
    assert any("no repetitions of each other" in told for told in comparison.doubts)


def test_names_are_loaded_from_the_store_and_mistakes_told():
    bitwatt.save(network())
    bitwatt.save(network(id="b", name="wider", width=32))
    comparison = bitwatt.compare("network", "wider")
    assert comparison.totals["parameters"].amounts == (320, 640)
    assert bitwatt.compare(network(width=8), "wider", [network()]).totals["parameters"].amounts == (160, 640, 320)
    with pytest.raises(BitwattError, match="two runs or more"):
        bitwatt.compare("network")
    with pytest.raises(UnknownNameError, match="no run"):
        bitwatt.compare("network", "other")
    with pytest.raises(UnknownNameError, match="cannot be compared by 'layer'"):
        comparison.changes("layer")
    with pytest.raises(UnknownNameError, match="has no metric 'f1'; it has accuracy"):
        compare(network(about=quality(accuracy=1)), network(), metric="f1", settings=PLAIN).render()


def test_runs_without_times_or_layers_compare_too():
    bare = make_run([Row("", "", mm_op(2, 2, 2), 1)], seconds=0.0)
    comparison = compare(bare, bare, settings=PLAIN)
    assert "seconds" not in comparison.measures
    assert comparison.changes("phase")[0].name == "other"
    assert comparison.render()
    empty = compare(make_run(), make_run(), settings=PLAIN)
    assert empty.is_equal
    assert empty.render()


def test_what_no_rule_prices_is_unknown_and_not_equal() -> None:
    from bitwatt.comparing.quantities import value
    from bitwatt.ledger import Row
    from bitwatt.records import Op
    from factories import make_run

    run = make_run([Row("forward", "", Op("nobody.knows"), 3)])
    found = value(run, "flops")
    assert found.amount is None
    assert "nothing was counted" in found.because
