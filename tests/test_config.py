"""Settings: found upward, checked, each with where it came from."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from bitwatt.cli.settings import add_settings_options, settings_of
from bitwatt.config import NAMES, PROVIDERS, Settings, about, key_of, settings
from bitwatt.errors import SettingsError
from bitwatt.metering.configured import configured
from bitwatt.sensors.modelled import Modelled


def written(folder: Path, text: str, name: str = "bitwatt.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_without_a_file_nothing_is_set_and_nothing_is_applied(tmp_path: Path) -> None:
    found = settings(tmp_path)
    assert found == Settings()
    assert (found.pue, found.country, found.tdp_w, found.intensity_g_per_kwh) == (None, None, None, None)
    assert {found.source(name) for name in NAMES} == {"not set"}
    assert found.told() == {}


def test_the_nearest_file_upward_is_read_and_named(tmp_path: Path) -> None:
    written(tmp_path, "pue = 1.5\ncountry = 'FRA'")
    inner = written(tmp_path / "a", "pue = 1.2\n[grid]\nprovider = 'uk'\ntimeout_s = 2")
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    found = settings(deep)
    assert (found.pue, found.country, found.grid_provider, found.grid_timeout_s) == (1.2, None, "uk", 2.0)
    assert found.source("pue") == "bitwatt.toml"
    assert found.source("country") == "not set"
    assert settings(inner).told()["grid.provider"] == "uk (bitwatt.toml)"


def test_pyproject_counts_where_it_speaks_of_bitwatt(tmp_path: Path) -> None:
    written(tmp_path, "[tool.bitwatt]\npue = 1.3\n[tool.bitwatt.embodied]\nkg = 150", "pyproject.toml")
    inner = written(tmp_path / "a", "[project]\nname = 'x'", "pyproject.toml")
    found = settings(inner)
    assert (found.pue, found.embodied_kg, found.source("pue")) == (1.3, 150.0, "pyproject.toml")
    assert settings(written(tmp_path, "pue = 1.1")).pue == 1.1  # beside it, bitwatt.toml comes first


@pytest.mark.parametrize("text", ["[tool]\nbitwatt = {pue = 1.3}", "[tool.'bitwatt']\npue = 1.3"])
def test_pyproject_counts_however_it_is_written(tmp_path: Path, text: str) -> None:
    assert settings(written(tmp_path, text, "pyproject.toml")).pue == 1.3


def test_a_broken_pyproject_of_others_is_not_ours_to_tell(tmp_path: Path) -> None:
    assert settings(written(tmp_path, "[project\nname = ", "pyproject.toml")).pue is None
    assert settings(written(tmp_path, "[project\ndependencies = ['bitwatt']", "pyproject.toml")).pue is None
    assert settings(written(tmp_path, "tool = 'bitwatt'", "pyproject.toml")).pue is None
    with pytest.raises(SettingsError, match=r"pyproject\.toml is no valid TOML"):
        settings(written(tmp_path, "[project\n[tool.bitwatt]", "pyproject.toml"))


def test_flags_come_before_keywords_before_files(tmp_path: Path) -> None:
    written(tmp_path, "pue = 1.5\ncurrency = 'EUR'\nprice_per_kwh = 0.3")
    found = settings(tmp_path, flags={"pue": "1.1", "country": None}, pue=1.2, price_per_kwh=0.2)
    assert (found.pue, found.price_per_kwh, found.currency, found.country) == (1.1, 0.2, "EUR", None)
    assert [found.source(name) for name in ("pue", "price_per_kwh", "currency")] == [
        "--pue", "price_per_kwh=", "bitwatt.toml",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("peu = 1.2", "'peu'; did you mean 'pue'"),
        ("[grid]\nprovidr = 'uk'", "'grid.providr'; did you mean 'grid.provider'"),
        ("[grid]\nprovider = 'electricitymap'", "did you mean 'electricitymaps'"),
        ("pue = 0.9", "pue is 0.9, but it must be between 1 and 10"),
        ("pue = true", "not a number"),
        ("pue = nan", "not a number"),
        ("tdp_w = '270 J'", "it is in J, wanted is W"),
        ("tdp_w = 0", "more than 0"),
        ("intensity_g_per_kwh = 0.056", "looks like kilograms; write 56"),
        ("intensity_g_per_kwh = 56000", "between 0 and 3000"),
        ("price_per_kwh = -1", "0 or more"),
        ("show_modelled = 'yes'", "neither true nor false"),
        ("country = 3", "not text"),
        ("float32 = 'bf16'", "one of fp32, tf32"),
        ("[peaks]\nbf16 = 1", "one table for each device"),
        ("[peaks.'NVIDIA H200']\nbf61 = 1", "did you mean 'bf16'"),
        ("[peaks.'NVIDIA H200']\nbf16 = '4.8 TB/s'", "wanted is FLOP/s"),
        ("[peaks.'NVIDIA H200']\nbandwidth = '4.8 TFLOP/s'", "wanted is B/s"),
        (f"pue = 1{'0' * 400}", "too large"),
        ("grid = 'uk'", "there is no setting 'grid'"),
    ],
)
def test_a_wrong_key_or_value_is_an_error_that_names_file_and_key(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SettingsError) as error:
        settings(written(tmp_path, text))
    assert says in str(error.value)
    assert "bitwatt.toml" in str(error.value)


def test_wrong_flags_and_keywords_are_named_as_they_were_given(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="--tdp-w is 'hot', but"):
        settings(tmp_path, flags={"tdp_w": "hot"})
    with pytest.raises(SettingsError, match="contry=: there is no setting 'contry'; did you mean 'country'"):
        settings(tmp_path, contry="FRA")


def test_quantities_may_be_written_with_units(tmp_path: Path) -> None:
    text = """
        tdp_w = "0.27 kW"
        transfer_j_per_byte = "20 nJ/B"
        [peaks."NVIDIA H200"]
        bf16 = "800 TFLOP/s"
        int8 = 1.6e15
        bandwidth = "4.1 TB/s"
    """
    found = settings(written(tmp_path, text))
    assert found.tdp_w == 270
    assert found.transfer_j_per_byte == pytest.approx(20e-9)
    assert found.peaks == {"NVIDIA H200": {"bf16": 8e14, "int8": 1.6e15, "bandwidth": 4.1e12}}


def test_a_program_that_changes_its_folder_keeps_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(written(tmp_path / "here", "pue = 1.1"))
    parser = argparse.ArgumentParser()
    add_settings_options(parser)
    args = parser.parse_args(["--currency", "EUR"])
    assert settings_of(args).pue == 1.1
    monkeypatch.chdir(written(tmp_path / "there", "pue = 1.9"))
    assert (settings_of(args).pue, settings_of(args).currency) == (1.1, "EUR")


def test_every_setting_says_what_it_is_for() -> None:
    assert all(about(name) and key_of(name) for name in NAMES)


def test_the_providers_are_the_files_of_the_grid() -> None:
    import bitwatt.grid

    files = {file.stem for file in Path(bitwatt.grid.__file__).parent.glob("*.py")}
    assert set(PROVIDERS) == files - {"__init__", "record", "http", "held", "kept", "static", "codecarbon"}


def test_the_flags_of_the_command_line_are_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parser = argparse.ArgumentParser()
    add_settings_options(parser)
    found = settings_of(parser.parse_args(["--pue", "1.25", "--show-modelled", "--intensity-g-per-kwh", "56"]))
    assert (found.pue, found.show_modelled, found.intensity_g_per_kwh) == (1.25, True, 56.0)
    assert found.source("show_modelled") == "--show-modelled"
    assert settings_of(parser.parse_args([])) == Settings()


def test_what_sensors_need_is_given_to_them(tmp_path: Path) -> None:
    text = """
tdp_w = 270
[modelled]
cores = 64
curve = [[1, "0.2 kW"], [0, 20], [0.5, 90.0]]
[dcgm]
url = "http://localhost:9400/metrics"
"""
    found = settings(written(tmp_path, text))
    points = ((0.0, 20.0), (0.5, 90.0), (1.0, 200.0))
    assert (found.modelled_cores, found.modelled_curve) == (64, points)
    given = configured(found)
    assert given.options == {
        "modelled": {"tdp_w": 270.0, "cores": 64, "curve": points},
        "dcgm": {"url": "http://localhost:9400/metrics"},
    }
    assert given.told["modelled.curve"] == "0 20, 0.5 90, 1 200 (bitwatt.toml)"
    assert configured(Settings()).options == {}
    assert "64 cores" in Modelled(**given.options["modelled"]).source


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("modelled.cores = 0", "whole number"),
        ("modelled.cores = 2.5", "whole number"),
        ("modelled.curve = [[0, 20]]", "two points"),
        ("modelled.curve = [[0, 20], [50, 200]]", "between 0 and 1"),
        ("modelled.curve = [[0, 20], [1, -5]]", "0 or more"),
        ("modelled.curve = [[0, 20], [0, 30]]", "two watts"),
        ("modelled.curve = [1, 2]", "no point"),
        ("dcgm.url = 'localhost:9400'", "no http address"),
        ("modelled.tdp = 5", "there is no setting"),
    ],
)
def test_what_sensors_cannot_use_is_refused_with_its_place(tmp_path: Path, line: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        settings(written(tmp_path, line))
