"""Carbon intensity: each provider against a local server that speaks its documented shapes, well and badly."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import Any
from urllib.error import URLError

import pytest

import bitwatt
from bitwatt.config import PROVIDERS, Settings, settings
from bitwatt.fingerprint import summary
from bitwatt.grid import Intensity, ask, at_close, held
from bitwatt.grid import http as http_client
from bitwatt.grid.record import lasting
from bitwatt.metering import Meter
from bitwatt.sensors.counters import Clock
from bitwatt.store import load
from bitwatt.testing import FakeSensor
from grid.grid_server import Answer, Request, serving

BEGIN = datetime(2026, 3, 1, 10, 20, tzinfo=UTC)
END = BEGIN + timedelta(minutes=100)
HOUR = BEGIN.replace(minute=0)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """No file of the user, no token of the user, no host that asked to wait, no proxy."""
    monkeypatch.chdir(tmp_path)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("ELECTRICITYMAPS_TOKEN", "WATTTIME_USER", "WATTTIME_PASSWORD"):
        monkeypatch.setenv(name, f"secret-{name.lower()}")
    monkeypatch.setattr(http_client, "_quiet", {})
    monkeypatch.setattr(held, "_answers", {})
    monkeypatch.setattr(held, "_refusals", {})
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


ZONES = {"electricitymaps": "DE", "watttime": "CAISO_NORTH", "uk": "", "carbon_aware_sdk": "eastus"}


def switched_on(name: str, url: str, **more: Any) -> Settings:
    return settings(grid_provider=name, grid_zone=ZONES[name] or None, grid_url=url, **{"grid_timeout_s": 60.0, **more})


def hours(*values: Any, start: datetime = HOUR, **more: Any) -> list[dict[str, Any]]:
    return [
        {"zone": "DE", "carbonIntensity": value, "datetime": (start + timedelta(hours=i)).isoformat(),
         "updatedAt": "2026-03-01T13:00:00.000Z", "emissionFactorType": "lifecycle", "isEstimated": i == 1,
         "estimationMethod": None, "temporalGranularity": "hourly", **more}
        for i, value in enumerate(values)
    ]  # fmt: skip


def points(*values: Any, units: str = "lbs_co2_per_mwh", start: datetime = HOUR) -> dict[str, Any]:
    data = [{"point_time": (start + timedelta(hours=i)).isoformat(), "value": v} for i, v in enumerate(values)]
    meta = {"data_point_period_seconds": 3600, "region": "CAISO_NORTH", "warnings": [], "signal_type": "co2_moer",
            "model": {"date": "2023-03-01"}, "units": units}  # fmt: skip
    return {"data": data, "meta": meta}


def halves(*values: tuple[Any, Any], start: datetime = HOUR) -> list[dict[str, Any]]:
    def told(time: datetime) -> str:
        return time.strftime("%Y-%m-%dT%H:%MZ")

    step = timedelta(minutes=30)
    return [
        {"from": told(start + i * step), "to": told(start + (i + 1) * step),
         "intensity": {"forecast": forecast, "actual": actual, "index": "low"}}
        for i, (forecast, actual) in enumerate(values)
    ]  # fmt: skip


def ratings(*values: Any) -> list[dict[str, Any]]:
    start = BEGIN.replace(minute=0)
    return [
        {
            "location": "PJM_ROANOKE",
            "time": (start + timedelta(hours=i)).isoformat(),
            "rating": v,
            "duration": "01:00:00",
        }
        for i, v in enumerate(values)
    ]


def good(name: str) -> Any:
    """A provider that works, with 100, 200, 300 g/kWh in the three hours from 10 o'clock."""
    pound = 453.59237 / 1000
    bodies = {
        "/carbon-intensity/past-range": {"zone": "DE", "data": hours(100, 200, 300)},
        "/login": {"token": "half-an-hour"},
        "/v3/historical": points(100 / pound, 200 / pound, 300 / pound),
        "/emissions/bylocation": ratings(100, 200, 300),
    }

    def answer(request: Request) -> Answer:
        if request.path.startswith("/intensity/"):
            return Answer({"data": halves((99, 100), (99, 100), (201, 200), (201, 200), (300, None), (300, None))})
        return Answer(bodies[request.path]) if request.path in bodies else Answer({"error": "no such path"}, 404)

    assert name in PROVIDERS
    return answer


@pytest.mark.parametrize("name", PROVIDERS)
def test_the_same_question_is_asked_once(name: str) -> None:
    with serving(good(name)) as server:
        told = switched_on(name, server.url)
        first, asked = ask(told, BEGIN, END), len(server.requests)
        assert first.intensities
        assert ask(told, BEGIN, END) == first
        assert len(server.requests) == asked
        ask(told, BEGIN, END + timedelta(minutes=1))
        assert len(server.requests) > asked
    assert ask(told, BEGIN, END) == first  # nobody is there any more


def test_an_answer_that_may_change_or_lacks_a_part_is_asked_for_again() -> None:
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    with serving(Answer({"data": halves((99, None), (99, None), start=now)})) as server:
        told = switched_on("uk", server.url)
        for asked in (1, 2):
            assert ask(told, now, now + timedelta(minutes=50)).intensities[0].note == "forecast"
            assert len(server.requests) == asked
        assert ask(told, BEGIN, now + timedelta(minutes=50)).intensities
        before = len(server.requests)
        ask(told, BEGIN, now + timedelta(minutes=50))
        assert len(server.requests) > before


def test_what_was_kept_and_is_damaged_is_asked_for_again(tmp_path: Any) -> None:
    with serving(good("uk")) as server:
        told = switched_on("uk", server.url)
        first = ask(told, BEGIN, END)
        (file,) = (tmp_path / "state" / "bitwatt" / "grid").iterdir()
        for damage in ("{", '[{"value": 1}]', "[1]"):
            file.write_text(damage)
            assert ask(told, BEGIN, END) == first


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_gives_the_hours_of_a_run_with_all_that_makes_them_comparable(name: str) -> None:
    with serving(good(name)) as server:
        grid = ask(switched_on(name, server.url), BEGIN, END)
    assert grid.because == ""
    by_hour = {one.valid_from.hour: one for one in grid.intensities if one.valid_from}
    assert {hour: one.value_g_per_kwh for hour, one in by_hour.items()} == pytest.approx({10: 100, 11: 200})
    first = grid.intensities[0]
    assert first.valid_from is not None
    assert first.valid_from <= BEGIN
    last = grid.intensities[-1].valid_to
    assert last is not None
    assert last >= END
    kind, scope = {"electricitymaps": ("average", "lifecycle"), "watttime": ("marginal", "direct"),
                   "uk": ("average", "direct"), "carbon_aware_sdk": ("unstated", "unstated")}[name]  # fmt: skip
    assert (first.kind, first.scope) == (kind, scope)
    assert all(Intensity.from_dict(one.to_dict()) == one for one in grid.intensities)


def test_electricity_maps_is_asked_with_its_token_and_says_what_is_estimated() -> None:
    with serving(good("electricitymaps")) as server:
        grid = ask(switched_on("electricitymaps", server.url), BEGIN, END)
    (request,) = server.requests
    assert request.headers["auth-token"] == "secret-electricitymaps_token"
    assert request.query == {"zone": "DE", "start": "2026-03-01T10:00:00Z", "end": "2026-03-01T12:00:00Z"}
    assert [one.note for one in grid.intensities] == ["", "estimated by the provider"]
    assert grid.intensities[0].issued_at == datetime(2026, 3, 1, 13, tzinfo=UTC)


def test_electricity_maps_recent_runs_need_no_paid_plan() -> None:
    now = datetime.now(UTC)
    begin, hour = now - timedelta(minutes=90), now.replace(minute=0, second=0, microsecond=0)

    def answer(request: Request) -> Answer:
        if request.path == "/carbon-intensity/history":  # the hour under way is not in it yet
            rows = hours(100, 110, 120, start=hour - timedelta(hours=3))
            return Answer({"zone": "DE", "history": rows, "temporalGranularity": "hourly"})
        return Answer(hours(130, start=hour)[0]) if request.path == "/carbon-intensity/latest" else Answer(status=403)

    with serving(answer) as server:
        grid = ask(switched_on("electricitymaps", server.url), begin, now)
    assert [request.path for request in server.requests] == ["/carbon-intensity/history", "/carbon-intensity/latest"]
    assert grid.intensities[-1].value_g_per_kwh == 130


def test_long_runs_are_asked_for_in_pieces() -> None:
    def answer(request: Request) -> Answer:
        start = datetime.fromisoformat(request.query["start"])
        span = datetime.fromisoformat(request.query["end"]) - start
        assert span <= timedelta(days=10)
        return Answer({"data": hours(*[100] * (span // timedelta(hours=1)), start=start)})

    with serving(answer) as server:
        begin = datetime(2026, 1, 1, tzinfo=UTC)
        grid = ask(switched_on("electricitymaps", server.url), begin, begin + timedelta(days=25))
    assert len(server.requests) == 3
    assert len(grid.intensities) == 25 * 24


def test_watttime_logs_in_and_turns_pounds_per_mwh_into_grams_per_kwh() -> None:
    def answer(request: Request) -> Answer:
        return Answer({"token": "abc"}) if request.path == "/login" else Answer(points(870.0, 860.0))

    with serving(answer) as server:
        grid = ask(switched_on("watttime", server.url), BEGIN, END)
    login, historical = server.requests
    told = base64.b64decode(login.headers["authorization"].removeprefix("Basic ")).decode()
    assert told == "secret-watttime_user:secret-watttime_password"
    assert historical.headers["authorization"] == "Bearer abc"
    assert historical.query["signal_type"] == "co2_moer"
    # 870 lb/MWh x 453.59237 g/lb / 1000 kWh/MWh
    assert grid.intensities[0].value_g_per_kwh == pytest.approx(394.6253619)
    assert grid.intensities[0].provider == "watttime co2_moer"


def test_watttime_fills_the_last_minutes_from_the_forecast() -> None:
    now = datetime.now(UTC).replace(second=0, microsecond=0)

    def answer(request: Request) -> Answer:
        if request.path == "/login":
            return Answer({"token": "abc"})
        rows = points(800.0, start=now - timedelta(hours=1, minutes=30))
        if request.path == "/v3/forecast":
            rows = points(700.0, 600.0, start=now - timedelta(minutes=30))
            rows["meta"]["generated_at"] = now.isoformat()
        return Answer(rows)

    with serving(answer) as server:
        grid = ask(switched_on("watttime", server.url), now - timedelta(hours=1), now)
    assert [one.note for one in grid.intensities] == ["", "forecast"]
    assert grid.intensities[1].issued_at == now


@pytest.mark.parametrize("units", ["percentile", "", "kg_co2_per_mwh"])
def test_watttime_values_in_another_unit_are_not_taken_for_pounds(units: str) -> None:
    def answer(request: Request) -> Answer:
        return Answer({"token": "abc"}) if request.path == "/login" else Answer(points(50, 60, units=units))

    with serving(answer) as server:
        grid = ask(switched_on("watttime", server.url), BEGIN, END)
    assert grid.intensities == ()
    assert "wanted are lbs_co2_per_mwh" in grid.because


def test_the_average_signal_of_watttime_is_called_average() -> None:
    def answer(request: Request) -> Answer:
        return Answer({"token": "abc"}) if request.path == "/login" else Answer(points(500, 500))

    with serving(answer) as server:
        grid = ask(switched_on("watttime", server.url, grid_signal="co2_aoer"), BEGIN, END)
    assert grid.intensities[0].kind == "average"
    assert server.requests[1].query["signal_type"] == "co2_aoer"


@pytest.mark.parametrize(
    ("zone", "path"),
    [(None, "/intensity/"), ("13", "/regionid/13"), ("SW1", "/postcode/SW1"), ("a/../b", "/postcode/a%2F..%2Fb")],
)
def test_britain_and_its_regions(zone: str | None, path: str) -> None:
    rows = halves((150, 140), (160, None), (170, None), (180, None), (190, None))
    region = {"regionid": 13, "shortname": "London", "data": rows}
    with serving(Answer({"data": rows if zone is None else region})) as server:
        grid = ask(replace(switched_on("uk", server.url), grid_zone=zone), BEGIN, END)
    assert path in server.requests[0].path
    assert grid.intensities[0].zone == ("London" if zone else "Great Britain")
    # measured where it is, forecast where not yet
    assert [(one.value_g_per_kwh, one.note) for one in grid.intensities][:2] == [(140, ""), (160, "forecast")]


def test_a_carbon_aware_sdk_says_nothing_of_marginal_or_average_so_the_user_does() -> None:
    with serving(Answer(ratings(439.07741416, 438.62382179))) as server:
        grid = ask(switched_on("carbon_aware_sdk", server.url, grid_kind="marginal"), BEGIN, END)
    assert server.requests[0].query["location"] == "eastus"
    assert grid.intensities[0].kind == "marginal"
    assert grid.intensities[0].zone == "PJM_ROANOKE"


def test_a_carbon_aware_sdk_without_an_address_is_not_guessed() -> None:
    grid = ask(settings(grid_provider="carbon_aware_sdk", grid_zone="eastus"), BEGIN, END)
    assert "grid.url is not set" in grid.because


FAULTS = {
    "401": (Answer({"message": "Unauthorized"}, 401), "refuses the token"),
    "403": (Answer(b"Access denied", 403), "refuses the token"),
    "429": (Answer({"error": "slow down"}, 429, {"Retry-After": "17"}), "asks to wait 17 s"),
    "429 with a date": (Answer(None, 429, {"Retry-After": "Thu, 01 Jan 2015 00:00:00 GMT"}), "asks to wait 0 s"),
    "500": (Answer({"error": {"code": "500"}}, 500), "HTTP 500"),
    "redirect": (Answer(None, 302, {"Location": "http://127.0.0.1:9/"}), "HTTP 302"),
    "no JSON": (Answer(b"<html>maintenance</html>"), "no JSON"),
    "an empty answer": (Answer(b""), "unknown|no |nothing"),
    "null": (Answer(b"null"), "no "),
    "a list of nulls": (Answer({"data": [None], "history": [None], "token": "x"}), "."),
    "another shape": (Answer({"data": {"data": 3}, "token": None}), "no "),
    "slow": (Answer({}, delay=60), "in time|within"),
    "for ever": (Answer({}, drip=True), "in time|within"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", PROVIDERS)
def test_a_fault_makes_the_intensity_unknown_soon_and_with_its_reason(name: str, fault: str) -> None:
    answer, says = FAULTS[fault]
    with serving(answer) as server:
        limit = {"grid_timeout_s": 0.4} if fault in ("slow", "for ever") else {}
        grid = ask(switched_on(name, server.url, **limit), BEGIN, END)  # before the answer is there
    assert grid.intensities == ()
    assert grid.because.startswith(f"{name}: ")
    assert re.search(says, grid.because), grid.because
    assert "secret" not in grid.because


@pytest.mark.parametrize("name", PROVIDERS)
def test_nulls_are_left_out_and_no_value_at_all_is_unknown(name: str) -> None:
    answers = {
        "/carbon-intensity/past-range": {"data": hours(None, None)},
        "/login": {"token": "t"},
        "/v3/historical": points(None, None),
        "/emissions/bylocation": ratings(None, None),
    }
    with serving(lambda r: Answer(answers.get(r.path, {"data": halves((None, None), (None, None))}))) as server:
        grid = ask(switched_on(name, server.url), BEGIN, END)
    assert grid.intensities == ()
    assert "no value for that time" in grid.because


def test_absurd_values_are_no_values() -> None:
    with serving(Answer({"data": hours(-5, 5e6, True, "100")})) as server:
        grid = ask(switched_on("electricitymaps", server.url), BEGIN, END)
    assert grid.intensities == ()


def test_nobody_listens() -> None:
    grid = ask(switched_on("uk", "http://127.0.0.1:9"), BEGIN, END)
    assert "cannot be reached" in grid.because


@pytest.mark.parametrize("why", [TimeoutError("timed out"), URLError(TimeoutError("timed out"))])
def test_a_wait_in_vain_is_told_as_such_wherever_it_came_to_its_end(why: Exception, monkeypatch: Any) -> None:
    def late(*_: Any, **__: Any) -> None:
        raise why

    monkeypatch.setattr("urllib.request.OpenerDirector.open", late)
    assert "did not answer in time" in ask(switched_on("uk", "http://127.0.0.1:9"), BEGIN, END).because


def test_only_http_is_asked() -> None:
    grid = ask(switched_on("uk", "file:///etc"), BEGIN, END)
    assert "no http address" in grid.because


def test_a_host_that_asks_to_wait_is_left_alone_until_then() -> None:
    with serving(Answer(None, 429, {"Retry-After": "3600"})) as server:
        first, second = (ask(switched_on("uk", server.url), BEGIN, END) for _ in range(2))
        assert len(server.requests) == 1
    assert "asks to wait 3600 s" in first.because
    assert "asked to wait" in second.because


def test_without_a_token_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ELECTRICITYMAPS_TOKEN")
    with serving(Answer({})) as server:
        grid = ask(switched_on("electricitymaps", server.url, grid_token_env="MY_TOKEN"), BEGIN, END)
    assert server.requests == []
    assert "MY_TOKEN holds no token" in grid.because


def test_no_service_is_asked_unless_it_is_switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "get", lambda *_: pytest.fail("asked"))
    assert ask(Settings(), BEGIN, END).intensities == ()
    assert ask(Settings(), BEGIN, END).because == "no country, intensity or grid provider is set"
    assert ask(settings(intensity_g_per_kwh=56), BEGIN, END).intensities[0].value_g_per_kwh == 56


def test_the_users_number_stands_in_for_a_provider_that_fails_and_that_is_said() -> None:
    with serving(Answer({}, 500)) as server:
        grid = ask(switched_on("uk", server.url, intensity_g_per_kwh=200), BEGIN, END)
    assert grid.intensities[0].provider == "the user's number, intensity_g_per_kwh="
    assert "HTTP 500" in grid.because


def test_values_last_until_the_next_or_for_one_step() -> None:
    at = [BEGIN + timedelta(minutes=5 * i) for i in (0, 1, 2, 6)]
    spans = lasting([(time, float(i)) for i, time in enumerate(at)], None)
    assert [(end - begin) // timedelta(minutes=1) for begin, end, _ in spans] == [5, 5, 5, 5]


needs_codecarbon = pytest.mark.skipif(find_spec("codecarbon") is None, reason="codecarbon is not installed")


@needs_codecarbon
@pytest.mark.parametrize(
    ("where", "value", "scope"),
    [
        ({"country": "USA"}, 369.473, "lifecycle"),
        ({"country": "fra"}, 56.039, "lifecycle"),
        # 394.769 lb/MWh x 0.45359237: that file is in pounds per MWh, the others are not
        ({"country": "USA", "region": "california"}, 179.0642, "direct"),
        ({"country": "USA", "region": "CA"}, 179.0642, "direct"),
        ({"region": "SE3"}, None, "unstated"),
        ({"country": "CHN", "region": "Beijing"}, 555.4, "direct"),
        ({"region": "gcp:asia-east1"}, 451, "unstated"),
    ],
)
def test_codecarbons_tables_each_in_its_own_unit(where: dict[str, str], value: float | None, scope: str) -> None:
    (one,) = ask(settings(**where), BEGIN, END).intensities
    assert value is None or one.value_g_per_kwh == pytest.approx(value, rel=1e-4)
    assert 0 < one.value_g_per_kwh < 1000
    assert (one.kind, one.scope) == ("average", scope)
    assert one.provider.startswith("codecarbon ")


@needs_codecarbon
@pytest.mark.parametrize(
    ("where", "says"),
    [
        ({"country": "France"}, "ISO codes of three letters"),
        ({"country": "USA", "region": "ontario"}, "no US state"),
        ({"country": "CAN", "region": "quebec"}, "set intensity_g_per_kwh"),
        ({"region": "aws:us-east-1"}, "knows gcp's only"),
        ({"region": "california"}, "set country = 'USA'"),
        ({"country": "FRA", "region": "SE1"}, "which is not in FRA"),
    ],
)
def test_a_place_that_its_tables_lack_is_unknown_not_a_world_average(where: dict[str, str], says: str) -> None:
    grid = ask(settings(**where), BEGIN, END)
    assert grid.intensities == ()
    assert says in grid.because


@needs_codecarbon
def test_codecarbon_itself_is_not_imported() -> None:
    code = (
        "import sys; from datetime import datetime, UTC; from bitwatt.config import settings; "
        "from bitwatt.grid import ask; now = datetime.now(UTC); "
        "print(len(ask(settings(country='FRA'), now, now).intensities), 'codecarbon' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]


def test_without_codecarbon_a_country_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    from bitwatt.grid import codecarbon

    monkeypatch.setattr(codecarbon, "find_spec", lambda _: None)
    assert "pip install codecarbon" in ask(settings(country="FRA"), BEGIN, END).because


# -- answers that a run holds


def test_a_run_holds_what_the_grid_said_when_it_closed(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    values = halves((250, None), (250, None), (250, None), (250, None), start=now - timedelta(minutes=30))
    with serving(Answer({"data": values})) as server:
        told = switched_on("uk", server.url)
        meter = Meter([FakeSensor(Clock(), {"cpu:0": 1e6})], shared=False)
        for _ in range(3):
            with bitwatt.measure("green", store=tmp_path / "runs", meter=meter, settings=told) as session:
                time.sleep(0.05)
        assert len(server.requests) == 1  # runs that follow each other share an answer
    run = load(session.path)
    assert run.meter is not None
    assert (run.meter.grid["provider"], run.meter.grid["url"]) == ("uk", told.grid_url)
    assert run.meter.grid["intensities"][0]["value_g_per_kwh"] == 250
    assert run.meter.grid["intensities"][0]["note"] == "forecast"
    # The service is gone, and nothing is kept beside: the file says all.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another machine"))
    document = json.loads(bitwatt.report(run, format="json", settings=told))["energy"]
    energy_j = run.meter.measured_j or 0.0
    assert document["carbon"]["total_g"] == pytest.approx(energy_j / 3.6e6 * 250)
    [kept, *_] = bitwatt.runs(tmp_path / "runs")
    assert kept.summary["grams"] == pytest.approx(document["carbon"]["total_g"])  # so that listings show it
    assert "grams" not in summary(replace(run, meter=replace(run.meter, grid={})), told)  # nor is anybody asked
    elsewhere = replace(told, grid_zone="SW1")
    assert "cannot be reached" in ask(elsewhere, now, now, run.meter.grid).because  # another question


def test_what_a_run_holds_of_a_part_of_its_time_is_asked_for_again_and_else_used() -> None:
    with serving(good("uk")) as server:
        told = switched_on("uk", server.url)
        held = at_close(told, BEGIN, BEGIN + timedelta(minutes=5))
        assert held["intensities"]
        before = len(server.requests)
        assert ask(told, BEGIN, END, held).intensities
        assert len(server.requests) > before
    later = END + timedelta(minutes=1)  # a question that is not kept
    found = ask(told, BEGIN, later, held)
    assert [one.to_dict() for one in found.intensities] == held["intensities"]


def test_a_service_that_does_not_answer_costs_one_wait_and_no_run() -> None:
    with serving(Answer({}, status=503)) as server:
        told = switched_on("electricitymaps", server.url)
        for _ in range(3):
            assert at_close(told, BEGIN, END) == {}
        assert len(server.requests) == 1
    assert at_close(Settings(), BEGIN, END) == {}


def test_an_outage_is_waited_for_once_and_a_quick_refusal_is_told_again() -> None:
    with serving(Answer({}, delay=60)) as server:
        told = switched_on("uk", server.url, grid_timeout_s=0.4)
        assert at_close(told, BEGIN, END) == {}
        for day in range(10):
            grid = ask(told, BEGIN - timedelta(days=day), END - timedelta(days=day))
            assert re.search("in time|within", grid.because), grid.because
            assert grid.because.endswith(", a moment ago")
        assert len(server.requests) <= 1  # none where the wait was over before it got there
    with serving(Answer({}, status=404)) as server:
        told = switched_on("uk", server.url)
        assert "404" in ask(told, BEGIN, END).because
        assert "moment" not in ask(told, BEGIN, END).because  # of another time it may know more


@pytest.mark.parametrize(("joules", "asked"), [(None, 0), (1e6, 1)])
def test_the_grid_is_asked_only_of_energy_that_is_known(joules: float | None, asked: int) -> None:
    sensors = [] if joules is None else [FakeSensor(Clock(), {"cpu:0": joules})]
    with serving(Answer({}, status=503)) as server:
        told = switched_on("uk", server.url)
        with bitwatt.measure("dark", keep=False, meter=Meter(sensors, shared=False), settings=told) as session:
            time.sleep(0.02)
        assert len(server.requests) == asked
        bitwatt.report(session.run, settings=told)
        assert len(server.requests) == 2 * asked


def test_rubbish_in_a_run_is_no_answer() -> None:
    told = switched_on("uk", "http://127.0.0.1:9")
    question = held.question(told)
    for rubbish in ({}, {**question, "intensities": [1]}, {**question, "intensities": [{"valid_from": "then"}]}):
        assert not ask(told, BEGIN, END, rubbish).intensities
