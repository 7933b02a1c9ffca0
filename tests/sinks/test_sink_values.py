"""What sinks say of a run: named numbers with units; what is not known is not there."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import bitwatt
from bitwatt.about import About
from bitwatt.config import settings
from bitwatt.errors import BitwattError
from bitwatt.observed import Observed
from bitwatt.readings import Device, Energy, Metered
from bitwatt.sinks import SINKS, make
from bitwatt.sinks.series import Sent
from bitwatt.sinks.values import ABOUT, Value, facts, plain, values
from factories import make_run, metered, transformer_run

DOCS = Path(__file__).parents[2] / "docs" / "guides" / "sinks.md"
SET = settings("/", intensity_g_per_kwh=100.0, price_per_kwh=0.25, currency="EUR", pue=1.5)


def by_flat(found: list[Value]) -> dict[str, Any]:
    return {value.flat: value for value in found}


def modelled(joules: float | None = 120.0) -> Metered:
    return Metered(12.0, (Energy(Device("cpu", "cpu"), joules, "modelled", "modelled: 10 W (TDP)", 12.0, 10.0),))


def test_work_energy_carbon_and_money_have_names_with_units() -> None:
    run = transformer_run(meter=metered())
    found = by_flat(values(run, SET))
    assert found["flops"].amount == bitwatt.totals(run).total
    assert found["bops"].amount == bitwatt.totals(run, "bops").total
    assert found["phase_flops/forward"].amount == bitwatt.totals(run).by("phase")["forward"]
    assert (found["energy_j"].amount, found["energy_j"].unit, found["energy_j"].about["how"]) == (
        3600.0,
        "J",
        "measured",
    )
    assert found["device_energy_j/gpu:GPU-1"].amount == 3000.0
    assert found["device_power_w/gpu:GPU-1"].amount == 580.0  # the last of the series: 100 + 40 x 12
    assert found["phase_energy_j/forward"].about["how"] == "apportioned"
    assert found["co2e_g"].amount == pytest.approx(3600 / 3.6e6 * 1.5 * 100)
    assert found["cost"].amount == pytest.approx(3600 / 3.6e6 * 1.5 * 0.25)
    assert found["cost"].about == {"currency": "EUR"}


def test_what_is_not_known_is_absent_and_never_zero() -> None:
    found = by_flat(values(make_run(meter=metered()), settings("/")))
    assert (
        not {"flops", "bops", "macs", "bytes_moved", "ops_missing", "co2e_g", "cost", "mfu", "j_per_tflop"}
        & found.keys()
    )
    assert "device_energy_j/cpu:1" not in found  # its counter was lost
    assert "energy_j" not in by_flat(values(make_run()))
    assert "energy_modelled_j" not in by_flat(values(make_run(meter=modelled(None))))


def test_modelled_energy_has_a_name_of_its_own_or_a_mark() -> None:
    run = transformer_run(meter=modelled())
    plainly, asked = by_flat(values(run, settings("/"))), by_flat(values(run, settings("/", show_modelled=True)))
    assert "energy_j" not in plainly
    assert plainly["energy_modelled_j"].amount == 120.0
    assert plainly["device_energy_j/cpu"].about["how"] == "modelled"
    assert (asked["energy_j"].amount, asked["energy_j"].about["how"]) == (120.0, "modelled")
    assert "energy_modelled_j" not in asked


def test_only_so_many_phases_are_told() -> None:
    run = make_run(phase_seconds={f"step {i}": float(i) for i in range(1000)})
    told = [value for value in values(run) if value.name == "phase_duration_s"]
    assert len(told) == 50
    assert told[0].about["phase"] == "step 999"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("accuracy", "accuracy"),
        ("val/top-1 (%)", "val/top-1 ___"),
        ("../../etc/passwd", "etc/passwd"),
        ("a//b/", "a/b"),
        ("<script>alert(1)</script>", "_script_alert_1__/script_"),
        ("\x1b[31m", "__31m"),
        ("…", "_"),
        ("..", "unnamed"),
        ("", "unnamed"),
        ("x" * 999, "x" * 200),
    ],
)
def test_names_are_anybodys_and_made_harmless(name: str, told: str) -> None:
    assert plain(name) == told


def test_exact_counts_are_told_as_text_too() -> None:
    run = transformer_run(layers=48, width=8192, steps=10**9)
    exact = bitwatt.totals(run).total
    assert exact > 2**63
    assert facts(run)["flops"] == str(exact)


def test_processed_things_and_requests_are_told() -> None:
    from bitwatt.served import Requests

    run = make_run(observed=Observed({"train": {"samples": 20}, "": {"tokens": 5}}), requests=Requests(count=3))
    found = by_flat(values(run))
    assert [found[f"processed/{what}"].amount for what in ("samples", "tokens", "requests")] == [20, 5, 3]


def test_every_name_is_explained_in_the_code_and_in_the_docs() -> None:
    run = transformer_run(meter=metered(), observed=Observed({"": {"samples": 1}}, device_peak=5))
    told = {value.name for value in [*values(run, SET), *values(transformer_run(meter=modelled()), SET)]}
    assert told <= set(ABOUT)
    text = DOCS.read_text()
    assert [name for name in ABOUT if f"| `{name}` |" not in text] == []


def test_points_are_sent_once_also_when_the_series_is_thinned() -> None:
    sent = Sent()
    first = make_run(about=About(series={"loss": ((0, 0.1, 3.0), (1, 0.2, 2.0))}))
    assert sent.new(first) == [("loss", 0, 0.1, 3.0), ("loss", 1, 0.2, 2.0)]
    assert sent.new(first) == sent.new(first)  # nobody said that they arrived
    sent.arrived(sent.new(first))
    later = make_run(
        about=About(series={"loss": ((0, 0.1, 3.0), (2, 0.3, 1.0)), "f1": ((None, 0.1, 0.5), (None, 0.2, 0.6))})
    )
    assert sent.new(later) == [("loss", 2, 0.3, 1.0), ("f1", 0, 0.1, 0.5), ("f1", 1, 0.2, 0.6)]


def test_every_sink_is_found_by_name_and_keeps_the_protocol() -> None:
    assert list(SINKS) == ["csv", "mlflow", "model-card", "otel", "prometheus", "tensorboard", "wandb"]
    for name in SINKS:
        kind = SINKS[name]
        assert kind.__doc__
        for option in inspect.signature(kind).parameters.values():
            assert isinstance(option.default, str), f"{name}: {option.name} must have a default, and be written as text"
        sink = kind()
        assert sink.name == name
        absent = sink.why_absent()
        assert absent is None or "pip install 'bitwatt[" in absent


def test_options_are_written_after_the_name(tmp_path: Path) -> None:
    (one,) = make("mlflow=http://user:secret@localhost:5000?a=b,experiment=mine,patience=60")
    assert (one._uri, one._experiment, one.patience) == ("http://user:secret@localhost:5000?a=b", "mine", 60.0)
    (two,) = make(["csv=path=all.csv"])
    assert two.path == tmp_path / "all.csv"
    for text, problem in {
        "nosuch": "no sink is called 'nosuch'; there are csv",
        "csv=a.csv,colour=red": "csv has no option 'colour'; it has path, patience",
        "prometheus=bogus=1": "'bogus=1' is no port; options are port, host",
        "prometheus=99999": "is no port",
        "csv=a.csv,patience=long": "could not convert",
    }.items():
        with pytest.raises(BitwattError, match=problem):
            make(text)
    with pytest.raises(BitwattError, match="is no sink"):
        make([object()])


def test_a_package_that_is_not_installed_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    with pytest.raises(BitwattError, match=r"mlflow is not installed: pip install 'bitwatt\[mlflow\]'"):
        bitwatt.measure(to="mlflow")


def test_settings_name_sinks(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.bitwatt]\nto = ["csv=a.csv", "otel"]\n')
    found = settings()
    assert found.to == ("csv=a.csv", "otel")
    assert "to" not in found.told()  # addresses may hold passwords
    (tmp_path / "pyproject.toml").write_text("[tool.bitwatt]\nto = 5\n")
    with pytest.raises(BitwattError, match="it is a list of names"):
        settings()
