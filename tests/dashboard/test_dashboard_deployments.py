"""Deployment studies on the dashboard: a list, one with its trade-offs, and what programs get."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("numpy")
pytest.importorskip("scipy")

sys.path.append(str(Path(__file__).parents[1] / "deploy"))

import studies
from served import keep, serving

from bitwatt.deploy.telling.findings import found
from bitwatt.deploy.telling.kept import run_of
from factories import make_run


@pytest.fixture(scope="module")
def findings():
    return studies.usual_findings()


@pytest.fixture(scope="module")
def served(tmp_path_factory, findings):
    folder = tmp_path_factory.mktemp("deployments")
    keep(make_run([], id="plain", name="plain"), folder)
    study = keep(run_of(findings), folder)
    evil = found(
        studies.study(studies.scenario(studies.EVIL, baseline="native"), case={"name": studies.EVIL}),
        studies.calls({studies.EVIL: 10.0}),
    )
    hostile = keep(run_of(evil, name=studies.EVIL), folder)
    with serving(folder) as found_there:
        yield found_there, study, hostile


def test_studies_are_listed_and_other_runs_are_not(served):
    page = served[0].ask("/deployments").text
    assert len(re.findall(r'href="/deployments/[^"]+"', page)) == 2
    assert "onnx-int8" in page
    assert ">plain<" not in page
    assert "aria-current=page>Deployments" in page


def test_a_study_is_drawn_with_its_sections(served, findings):
    answer = served[0].ask(f"/deployments/{served[1].id}")
    assert answer.status == 200
    for id in ("scenarios", "selection", "quantisation", "checklist", "load"):
        assert f'<section id="{id}"' in answer.text
    assert "Take onnx-int8" in answer.text
    assert not re.search(r"<script(?![^>]* src=)|<style| style=|<[^>]+ on\w+=", answer.text)


def test_its_run_leads_there(served):
    assert f'href="/deployments/{served[1].id}"' in served[0].ask(f"/runs/{served[1].id}").text


def test_programs_get_the_summary(served, findings):
    answer = served[0].ask(f"/api/deployments/{served[1].id}")
    assert json.loads(answer.text) == json.loads(json.dumps(findings.summary()))


@pytest.mark.parametrize(("path", "status"), [
    ("/deployments/nothing", 404), ("/api/deployments/nothing", 404), ("/deployments/plain", 400),
])  # fmt: skip
def test_what_is_no_study_is_told(served, path, status):
    assert served[0].ask(path).status == status


def test_hostile_names_are_text(served):
    for path in ("/deployments", f"/deployments/{quote(served[2].id)}"):
        page = served[0].ask(path).text
        assert "<img" not in page
        assert "&lt;img" in page


def test_an_empty_store_says_how_to_make_one(tmp_path):
    with serving(tmp_path) as there:
        assert "bitwatt deploy model.joblib" in there.ask("/deployments").text
