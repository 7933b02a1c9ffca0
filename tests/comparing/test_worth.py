"""Worth it? Gains against joules, fronts, audits and rankings, by rules the user can set."""

from __future__ import annotations

from dataclasses import replace

import pytest
from compared_runs import metered, network, quality, repeated
from hypothesis import given
from hypothesis import strategies as st

from bitwatt.comparing import compare
from bitwatt.comparing.pareto import Axis, front
from bitwatt.comparing.worth import worth
from bitwatt.config import Settings, settings
from bitwatt.errors import BitwattError, SettingsError, UnknownNameError
from bitwatt.observed import Observed

PLAIN = Settings()


def pair(before: tuple[float, float], after: tuple[float, float], **options):
    """(accuracy, joules) of two runs, compared."""
    runs = [network(id=str(i), meter=metered(j), about=quality(accuracy=q)) for i, (q, j) in enumerate((before, after))]
    return compare(*runs, **{"metric": "accuracy", "settings": PLAIN, **options})


def test_a_fifth_more_energy_for_a_thousandth_is_flagged():
    comparison = pair((0.930, 100.0), (0.93093, 120.0))
    (one,) = comparison.worth
    assert one.gain == pytest.approx(0.00093)
    assert one.extras[0].per == pytest.approx(0.00093 / 20)
    (flag,) = one.flags
    assert flag.startswith("costs 20 % more energy (one run each: no spread known) for 0.1 % better accuracy")
    assert "not worth it by the rule that 10 % more must bring 1 %" in flag
    assert flag in comparison.render(width=400)


@pytest.mark.parametrize(
    ("rule", "flagged"),
    [({"worth_cost": 0.25}, False), ({"worth_gain": 0.0005}, False), ({"worth_cost": 0.2}, True), ({}, True)],
)
def test_the_rule_is_the_users(rule, flagged):
    comparison = pair((0.930, 100.0), (0.93093, 120.0), settings=Settings(**rule))
    assert bool(comparison.worth[0].flags) == flagged


def test_the_rule_is_read_from_a_file(tmp_path):
    (tmp_path / "bitwatt.toml").write_text(
        '[worth]\nby = "bops"\ncost = "20 %"\ngain = 0.005\nmetric = "loss"\nlower_is_better = true\nkeeps = 0.9\n'
        '[budget]\nflops = "1 GFLOP"\n'
    )
    found = settings(tmp_path)
    assert (found.worth_by, found.worth_cost, found.worth_gain, found.worth_metric) == ("bops", 0.2, 0.005, "loss")
    assert found.worth_lower_is_better
    assert (found.worth_keeps, found.worth_at_most) == (0.9, 0.5)
    (tmp_path / "bitwatt.toml").write_text("[worth]\ncosts = 1")
    with pytest.raises(SettingsError, match=r"did you mean 'worth.cost'"):
        settings(tmp_path)


@pytest.mark.parametrize(
    ("before", "after", "says", "per"),
    [
        ((0.90, 100.0), (0.95, 80.0), "better, and no more energy", None),
        ((0.90, 100.0), (0.95, 110.0), "better, for more energy", 0.005),
        ((0.95, 100.0), (0.90, 80.0), "worse, for less energy", 0.0025),
        ((0.95, 100.0), (0.90, 110.0), "worse, and no less energy", None),
        ((0.9, 100.0), (0.9, 110.0), "as good, for more energy", None),
    ],
)
def test_verdicts(before, after, says, per):
    (one,) = pair(before, after).worth
    assert one.verdict == says
    assert one.extras[0].per == (None if per is None else pytest.approx(per))


def test_less_may_be_better_and_nothing_may_be_the_reference():
    runs = [network(about=quality(loss=2.0), meter=metered(10.0)), network(about=quality(loss=1.0), meter=metered(9.0))]
    (one,) = compare(*runs, metric="loss", lower_is_better=True, settings=PLAIN).worth
    assert (one.gain, one.relative) == (1.0, 0.5)
    (one,) = compare(*runs, metric="loss", settings=PLAIN).worth
    assert one.gain == -1.0
    (one,) = pair((0.0, 10.0), (0.1, 20.0)).worth
    assert (one.relative, one.flags) == (None, ())


def test_money_and_bops_are_told_too():
    comparison = pair((0.9, 3.6e6), (0.91, 7.2e6), settings=Settings(price_per_kwh=0.3, currency="EUR"))
    extras = {extra.name: extra for extra in comparison.worth[0].extras}
    assert extras["cost"].more == pytest.approx(0.3)  # one kWh more
    assert extras["cost"].per == pytest.approx(0.01 / 0.3)
    assert extras["cost"].unit == "EUR"
    assert extras["bops"].more == 0
    assert "0.0333 / EUR" in comparison.render()


def test_many_times_the_cost_is_told_as_a_factor():
    said = pair((0.9, 10.0), (0.95, 130.0)).render()
    assert "energy +120 J (13×)" in said
    assert "e+03 %" not in said
    assert "energy +2 J (+20 %)" in pair((0.9, 10.0), (0.95, 12.0)).render()


def test_where_energy_is_not_known_bit_operations_are_the_cost():
    runs = network(about=quality(accuracy=0.9)), network(id="b", width=32, about=quality(accuracy=0.9005))
    (one,) = compare(*runs, metric="accuracy", settings=PLAIN).worth
    assert one.verdict == "better, for more BOPs"
    assert "more BOPs for 0.0556 % better accuracy" in one.flags[0]


def test_joules_that_cannot_be_told_apart_are_no_reason():
    before = repeated(network(about=quality(accuracy=0.9)), [1.0] * 5, [80, 100, 120, 90, 110])
    after = repeated(network(id="b", about=quality(accuracy=0.9001)), [1.0] * 5, [95, 140, 115, 90, 125])
    comparison = compare(before, after, metric="accuracy", settings=PLAIN)
    assert comparison.measures["energy"].ratios[1].value == pytest.approx(1.15)
    assert comparison.worth[0].flags == ()
    assert comparison.worth[0].verdict == "better; energy cannot be told apart"


def test_a_side_without_the_metric_is_left_out_and_told():
    comparison = compare(
        network(about=quality(accuracy=0.9)), network(id="b", name="other"), metric="accuracy", settings=PLAIN
    )
    assert worth(comparison.sides, comparison.quality, PLAIN) == []
    assert "other has no metric 'accuracy'" in comparison.render()


def test_the_greatest_value_of_a_metric_can_be_meant():
    about = replace(quality(), metrics={"accuracy": {"last": 0.8, "min": 0.1, "max": 0.9, "count": 5}})
    runs = network(about=about), network(about=quality(accuracy=0.85))
    assert compare(*runs, metric="accuracy", settings=PLAIN).quality.values == (0.8, 0.85)
    assert compare(*runs, metric="accuracy:max", settings=PLAIN).quality.values == (0.9, 0.85)
    with pytest.raises(UnknownNameError, match="last, min and max"):
        compare(*runs, metric="accuracy:mean", settings=PLAIN).render()


def test_a_metric_of_the_settings_that_no_run_has_is_another_projects():
    comparison = compare(network(), network(), settings=Settings(worth_metric="accuracy"))
    assert comparison.quality is None
    assert comparison.render()


def test_not_a_number_is_no_metric():
    comparison = compare(
        network(about=quality(loss=float("nan"))), network(about=quality(loss=1.0)), metric="loss", settings=PLAIN
    )
    assert comparison.quality.values == (None, 1.0)
    assert comparison.json()["worth"] == []


COSTS = (Axis("energy"), Axis("accuracy", lower=False))


def test_a_front_over_two_axes():
    found = front(COSTS, {
        "small": {"energy": 1, "accuracy": 0.8}, "big": {"energy": 3, "accuracy": 0.9},
        "bad": {"energy": 3, "accuracy": 0.85}, "twin": {"energy": 1, "accuracy": 0.8}, "odd": {"energy": 2},
    })  # fmt: skip
    assert {point.name for point in found.best} == {"small", "twin", "big"}  # equal points beat each other not
    assert next(point for point in found.points if point.name == "bad").beaten_by == ("big",)
    assert found.left_out == {"odd": "accuracy not known"}
    with pytest.raises(BitwattError, match="two or three different axes"):
        front(COSTS[:1], {})
    with pytest.raises(BitwattError, match="two or three different axes"):
        front((COSTS[0], COSTS[0]), {})


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)), max_size=25))
def test_a_front_over_three_axes_is_what_its_definition_says(points):
    axes = (Axis("a"), Axis("b"), Axis("c", lower=False))
    values = {str(i): dict(zip("abc", map(float, point), strict=True)) for i, point in enumerate(points)}

    def beats(p, q):
        return p[0] <= q[0] and p[1] <= q[1] and p[2] >= q[2] and p != q

    expected = {str(i) for i, q in enumerate(points) if not any(beats(p, q) for p in points)}
    assert {point.name for point in front(axes, values).best} == expected


def test_a_front_of_runs_by_quantities_and_metrics():
    runs = [
        network(id=str(i), name=f"r{i}", width=w, meter=metered(j), about=quality(accuracy=a, loss=1 - a))
        for i, (w, j, a) in enumerate([(8, 50.0, 0.8), (16, 90.0, 0.9), (32, 95.0, 0.85)])
    ]
    comparison = compare(*runs, settings=PLAIN)
    found = comparison.pareto("energy", "accuracy", "bops")
    assert [point.name for point in found.best] == ["A r0", "B r1"]
    assert comparison.pareto("time", "loss:lower").axes[1].lower
    assert not comparison.pareto("flops", "loss").axes[1].lower
    text = comparison.render()
    assert "Pareto front" in text
    assert "Pareto front" in comparison.render(by="phase")  # it was asked for
    assert comparison.json()["pareto"]["points"][0]["on_front"]
    with pytest.raises(UnknownNameError, match="did you mean 'energy'"):
        comparison.pareto("enrgy", "accuracy")


def test_modelled_joules_have_no_place_beside_measured_ones():
    runs = [
        network(id=str(i), name=f"r{i}", meter=metered(j, how), about=quality(accuracy=a))
        for i, (j, how, a) in enumerate([(50.0, "measured", 0.8), (1.0, "modelled", 0.9), (60.0, "measured", 0.9)])
    ]
    found = compare(*runs, settings=PLAIN).pareto("energy", "accuracy")
    assert [point.name for point in found.best] == ["A r0", "C r2"]
    assert found.left_out == {"B r1": "energy not known"}
    assert any("energy of B is modelled" in note for note in found.notes)
    both = compare(*(replace(run, meter=metered(5.0, "modelled")) for run in runs), settings=PLAIN)
    assert "energy is modelled, not measured" in both.pareto("energy", "accuracy").notes
    assert len(both.front.points) == 3


def audited(teacher: tuple[float, float], student: tuple[float, float], **rule):
    comparison = pair(teacher, student, settings=Settings(**rule))
    return comparison.audit()


@pytest.mark.parametrize(
    ("student", "rule", "verdict"),
    [
        ((0.855, 50.0), {}, "passed"),  # 95 % of 0.9, half of 100 J: both just so
        ((0.854, 50.0), {}, "failed"),
        ((0.855, 50.1), {}, "failed"),
        ((0.854, 50.1), {"worth_keeps": 0.9, "worth_at_most": 0.6}, "passed"),
    ],
)
def test_a_distilled_model_keeps_the_quality_at_half_the_energy(student, rule, verdict):
    found = audited((0.9, 100.0), student, **rule)
    assert found.verdict == verdict
    assert any("one run each" in reason for reason in found.reasons)


def test_an_audit_with_repetitions_wants_the_whole_interval_below():
    teacher = repeated(network(about=quality(accuracy=0.9)), [1] * 5, [98, 99, 100, 101, 102])
    for joules, verdict in (
        ([40, 41, 42, 43, 44], "passed"), ([60, 61, 62, 63, 64], "failed"), ([30, 45, 50, 55, 70], "undecided"),
    ):  # fmt: skip
        student = repeated(network(id="b", about=quality(accuracy=0.89)), [1] * 5, joules)
        assert compare(teacher, student, metric="accuracy", settings=PLAIN).audit().verdict == verdict


def test_an_audit_is_by_sample_where_both_say_how_many():
    def run(samples, joules, accuracy):
        observed = Observed(processed={"": {"samples": samples}})
        return network(observed=observed, meter=metered(joules), about=quality(accuracy=accuracy))

    found = compare(run(1000, 100.0, 0.9), run(100, 20.0, 0.9), metric="accuracy", settings=PLAIN).audit()
    assert found.energy.value == pytest.approx(2.0)  # 0.1 J and 0.2 J a sample
    assert found.verdict == "failed"


def test_an_audit_by_a_model_decides_nothing_and_without_a_metric_is_none():
    runs = [
        network(meter=metered(j, "modelled"), about=quality(accuracy=a, loss=1 - a))
        for j, a in ((100.0, 0.9), (10.0, 0.9))
    ]
    assert compare(*runs, metric="accuracy", settings=PLAIN).audit().verdict == "undecided"
    shown = compare(*runs, metric="accuracy", settings=Settings(show_modelled=True)).audit()
    assert shown.verdict == "passed"
    assert any(reason.startswith("modelled energy") for reason in shown.reasons)
    with pytest.raises(BitwattError, match="needs the metric"):
        compare(*runs, settings=PLAIN).audit()
    lower = compare(*runs, metric="loss", lower_is_better=True, settings=Settings(show_modelled=True)).audit()
    assert lower.kept == pytest.approx(1.0)


def test_where_rankings_differ_it_is_said():
    wide = network(width=20, dtype="bfloat16", meter=metered(90.0))  # more FLOPs, fewer BOPs
    narrow = network(id="b", meter=metered(80.0))
    comparison = compare(wide, narrow, settings=PLAIN)
    assert comparison.disagreement == (
        "rankings differ: by FLOPs B < A; by BOPs A < B; by energy B < A (no spread known)"
    )
    assert comparison.disagreement in comparison.render()
    assert compare(narrow, network(width=8, meter=metered(10.0)), settings=PLAIN).disagreement == ""


def test_joules_that_overlap_are_a_tie_that_contradicts_nobody():
    small = repeated(network(width=8), [1] * 5, [99, 100, 101, 102, 98])
    large = repeated(network(id="b", width=16), [1] * 5, [98.5, 99.5, 100.5, 101, 97])
    comparison = compare(small, large, settings=PLAIN)
    assert [ranking.by for ranking in comparison.rankings] == ["FLOPs", "BOPs", "energy"]
    assert comparison.rankings[2].order == (("A", "B"),)
    assert comparison.disagreement == ""
