"""Quantities are written the way people read them, and read back exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitwatt.units import format_count, format_duration, format_percent, format_ratio, parse


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "FLOP", "0 FLOP"),
        (7, "FLOP", "7 FLOP"),
        (999, "", "999"),
        (1000, "B", "1 kB"),
        (1_234_567_890_123, "FLOP", "1.23 TFLOP"),
        (4_500_000_000, "MAC", "4.5 GMAC"),
        (4_501_234_567, "MAC", "4.50 GMAC"),
        (210.0, "W", "210 W"),
        (3400.0, "J", "3.4 kJ"),
        (0.0012, "s", "1.2 ms"),
        (999_999, "FLOP", "1.00 MFLOP"),
        (9_996, "FLOP", "10.0 kFLOP"),
        (-1530, "FLOP", "-1.53 kFLOP"),
        (10**33, "FLOP", "1.00e+33 FLOP"),
        (10**400, "FLOP", "1.00e+400 FLOP"),
        (float("inf"), "W", "inf W"),
    ],
)
def test_a_count_has_three_digits_and_a_prefix(value, unit, text):
    assert format_count(value, unit) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (0.0012, "1.2 ms"), (2.5e-06, "2.5 µs"), (59, "59 s"), (60, "1 min"), (184, "3 min 4 s"),
     (7384, "2 h 3 min"), (3600, "1 h"), (90_061, "1 d 1 h"), (-75, "-1 min 15 s")],
)  # fmt: skip
def test_a_duration_has_at_most_two_parts(seconds, text):
    assert format_duration(seconds) == text


def test_shares_and_ratios():
    assert [format_percent(r) for r in (0, 0.0001, 0.5, 1)] == ["0 %", "< 0.1 %", "50.0 %", "100.0 %"]
    assert format_ratio(2.5) == "2.5×"


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("1.5 GFLOP", 1_500_000_000, "FLOP"),
        ("4.5GMACs", 4_500_000_000, "MAC"),
        ("3.2 GB", 3_200_000_000, "B"),
        ("4 GiB", 4 * 2**30, "B"),
        ("16 kB", 16_000, "B"),
        ("1,234,567", 1_234_567, ""),
        ("19.5 TFLOP/s", 19_500_000_000_000, "FLOP/s"),
        ("3 min 4 s", 184, "s"),
        ("-2 min 3 s", -123, "s"),
        ("1.2 ms", 0.0012, "s"),
        ("50 %", 0.5, ""),
        ("2.5×", 2.5, ""),
        ("1 kWh", 1000, "Wh"),
        ("1e-3 J", 0.001, "J"),
        ("−5", -5, ""),
    ],
)
def test_what_people_write_is_understood(text, value, unit):
    assert parse(text) == (value, unit)
    assert type(parse(text)[0]) is type(value)


@pytest.mark.parametrize("text", ["", "GB", "3 foo", "3 GB 4 GB", "1.2.3 W", "three W"])
def test_what_is_no_quantity_is_refused_with_a_hint(text):
    with pytest.raises(ValueError, match=r"quantity|unit"):
        parse(text)


@given(st.integers(-999, 999), st.integers(0, 10))
def test_a_count_that_fits_three_digits_survives_the_round_trip(digits, thousands):
    value = digits * 1000**thousands
    assert parse(format_count(value, "FLOP")) == (value, "FLOP")


@given(st.integers(-(10**32), 10**32))
def test_a_count_is_never_off_by_more_than_half_a_percent(value):
    shown, _ = parse(format_count(value, "B"))
    assert abs(shown - value) <= 0.005 * abs(value) + 1e-9


@pytest.mark.parametrize("text", ["0,2 MFLOP", "1,5 s", "12,34 GB", "1,2345", "1,234,5"])
def test_a_comma_stands_between_thousands_alone(text: str) -> None:
    with pytest.raises(ValueError, match=r"quantit|unit"):
        parse(text)


def test_thousands_may_have_commas() -> None:
    assert parse("1,234,567 FLOP") == (1234567, "FLOP")
    assert parse("12,345.5 s") == (12345.5, "s")
