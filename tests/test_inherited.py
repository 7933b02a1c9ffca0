"""What was set where a run was made holds for it elsewhere, unless the reader says otherwise."""

import json

import bitwatt
from bitwatt.config import Settings, settings
from bitwatt.inherited import inherited

PARIS = settings("/", pue=1.2, country="FRA", price_per_kwh=0.31245678, currency="EUR", embodied_kg=150.0).told()


def test_what_the_reader_leaves_open_comes_from_the_run():
    found = inherited(Settings(), PARIS)
    assert (found.pue, found.country, found.price_per_kwh, found.currency) == (1.2, "FRA", 0.31245678, "EUR")
    assert found.source("pue") == "pue=, where it ran"
    assert found.told()["country"] == "FRA (country=, where it ran)"


def test_what_the_reader_says_comes_first_and_one_question_has_one_answer():
    mine = settings("/", country="DEU", price_per_device_hour=2.0)
    found = inherited(mine, settings("/", intensity_g_per_kwh=56.0, price_per_kwh=0.2, currency="EUR", pue=1.1).told())
    assert (found.country, found.intensity_g_per_kwh) == ("DEU", None)
    assert (found.price_per_device_hour, found.price_per_kwh, found.currency) == (2.0, None, None)
    assert found.pue == 1.1


def test_how_much_to_show_and_whom_to_ask_are_the_readers():
    kept = settings("/", show_modelled=True, grid_provider="uk", worth_gain=0.5, measured_peaks=True).told()
    assert inherited(Settings(), kept) == Settings()


def test_values_that_no_longer_hold_and_foreign_texts_are_left():
    assert inherited(Settings(), {"pue": "0.3 (bitwatt.toml)", "colour": "red", "country": "nonsense"}) == Settings()


def test_a_run_keeps_its_place_when_it_is_reported_from_another_folder(tmp_path, monkeypatch):
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    (there / "bitwatt.toml").write_text('pue = 1.5\ncountry = "FRA"\nprice_per_device_hour = 7200\ncurrency = "EUR"\n')
    monkeypatch.chdir(there)
    with bitwatt.measure("away", store=tmp_path / "runs"):
        sum(range(1000))
    monkeypatch.chdir(here)
    run = bitwatt.load("away", tmp_path / "runs")
    found = json.loads(bitwatt.report(run, format="json"))["energy"]
    assert found["settings"]["pue"] == "1.5 (bitwatt.toml, where it ran)"
    assert found["carbon"]["pue"] == 1.5
    assert abs(found["cost"]["total"] - 2 * run.meter.seconds) < 1e-6
    (here / "bitwatt.toml").write_text("pue = 1.1\n")
    assert json.loads(bitwatt.report(run, format="json"))["energy"]["carbon"]["pue"] == 1.1
