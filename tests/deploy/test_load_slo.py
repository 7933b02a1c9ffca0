"""What users write as an SLO, and what they get wrong."""

from __future__ import annotations

import math

import pytest

from bitwatt.deploy.load import parse_slo
from bitwatt.deploy.load.settings import checked
from bitwatt.errors import BitwattError


@pytest.mark.parametrize(
    ("text", "percent", "limit_ms"),
    [
        ("p99<20ms", 99, 20),
        ("p95 < 5 ms", 95, 5),
        ("P50<=250us", 50, 0.25),
        ("p99.9≤1s", 99.9, 1000),
        ("max<1s", 100, 1000),
        ("mean<0.5ms", None, 0.5),
        ("avg<2ms", None, 2),
        ("median<3ms", 50, 3),
        ("p99<1 min", 99, 60000),
    ],
)
def test_an_slo_is_read(text: str, percent: float | None, limit_ms: float) -> None:
    (found,) = parse_slo(text)
    assert found.percent == percent
    assert found.limit_ms == pytest.approx(limit_ms)


def test_the_limit_itself_holds_only_where_it_is_said() -> None:
    assert not parse_slo("p99<20ms")[0].holds(20.0)
    assert parse_slo("p99<=20ms")[0].holds(20.0)
    assert parse_slo("p99<20ms")[0].holds(19.99)


@pytest.mark.parametrize("value", [None, math.inf, math.nan])
def test_what_has_no_latency_holds_nothing(value: float | None) -> None:
    assert not parse_slo("max<1h")[0].holds(value)


def test_several_conditions_stand_with_commas() -> None:
    assert [one.name for one in parse_slo("p99<20ms, max<1s")] == ["p99", "max"]


def test_nothing_asked_is_nothing() -> None:
    assert parse_slo("") == parse_slo("  ") == ()


@pytest.mark.parametrize(
    "text",
    [
        "p99", "p99>20ms", "p99<", "<20ms", "p99<20", "p99<20MB", "p99<-5ms", "p99<0ms", "p0<5ms", "p101<5ms",
        "p99<20ms max<1s", "p99<<20ms", "latency<5ms", "p99=20ms", "p99<20ms,", "99<20ms", "p99<nan",
        "p99<1e999 s x", "p９9<1ms",
    ],
)  # fmt: skip
def test_what_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BitwattError) as raised:
        parse_slo(text)
    assert text.strip() in str(raised.value) or "p99" in str(raised.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rates": (0,)}, {"rates": (-5,)}, {"rates": (math.nan,)}, {"rates": (math.inf,)}, {"rates": ("many",)},
        {"callers": (0,)}, {"callers": (1.5,)}, {"callers": (10**6,)}, {"callers": (True,)}, {"seconds": 0},
        {"seconds": 1e9}, {"seconds": None}, {"rows": 0}, {"slo": "fast"}, {"slo": 5},
    ],
)  # fmt: skip
def test_senseless_settings_are_refused_before_anything_starts(wrong: dict[str, object]) -> None:
    with pytest.raises(BitwattError):
        checked(**{"seconds": 1, "rates": (), "callers": (), "slo": "", **wrong})


def test_a_limit_that_is_no_time_is_told_as_one() -> None:
    with pytest.raises(BitwattError, match=r"the limit of 'p99<foo' is 'foo', which is no time: write it"):
        parse_slo("p99<foo")
