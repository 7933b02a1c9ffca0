"""What the guides show is what the command prints today: the same parts, columns, items and sentences."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import deploy_guide
import studies

from bitwatt.cli import deploy
from bitwatt.deploy.telling.findings import found
from bitwatt.deploy.telling.tables import MARKS, tables

FINDINGS = found(studies.study(), studies.calls(studies.MICROSECONDS))
TODAY = deploy_guide.parts(FINDINGS.text(100))


def shown(name: str) -> tuple[str, str]:
    found = deploy_guide.BLOCK.search((deploy_guide.GUIDES / name).read_text(encoding="utf-8"))
    assert found is not None
    return found[1], found[2]


def names(lines: list[str]) -> list[str]:
    """Of a list: what stands before two blanks, where a line does not begin with them; without its mark."""
    marks = "".join(MARKS.values()) + " "
    return [re.split(r" {2,}", line)[0].lstrip(marks) for line in lines[1:] if line and not line.startswith(" ")]


def words(lines: list[str]) -> list[str]:
    """The first words of each sentence, whatever numbers and names it has."""
    told = [line for line in lines if line and not line.startswith(" ")]
    return [re.sub(r"[\d.,]+|sklearn-\S+|onnx-\S+", "#", line)[:30] for line in told]


@pytest.mark.parametrize("name", deploy_guide.PAGES)
def test_the_command_is_one(name: str) -> None:
    command, _ = shown(name)
    parser = argparse.ArgumentParser()
    deploy.configure(parser)
    options = parser.parse_args(shlex.split(command)[2:])
    assert options.model.endswith(".joblib")
    assert options.data


def test_a_sample_has_the_parts_of_a_report_and_their_items() -> None:
    _, output = shown("deployment.md")
    there = deploy_guide.parts(output)
    titles = [title for title in there if not title.startswith("batch")]
    assert titles == [title for title in TODAY if not title.startswith("batch")]
    for title in ("Selection", "Production checklist"):
        assert set(names(TODAY[title])) <= set(names(there[title]))
    assert set(words(TODAY["note: "])) <= set(words(there["note: "]))


@pytest.mark.parametrize("name", deploy_guide.PAGES)
def test_a_sample_is_as_wide_as_a_report_and_has_its_columns(name: str) -> None:
    _, output = shown(name)
    assert max(map(len, output.splitlines())) <= 100
    labels = {column.title for table in tables(FINDINGS) for column in table.columns}
    seen = 0
    for title, lines in deploy_guide.parts(output).items():
        if title.startswith("batch"):
            seen += 1
            assert set(re.split(r" {2,}", lines[0].strip())[1:]) <= labels
            assert set(lines[1]) == {"─"}
    assert seen
    about, headline = words(deploy_guide.parts(output)[""])[:2]
    assert " · " in about
    assert headline.startswith("Take #")


def test_what_a_sample_leaves_out_is_left_out_again() -> None:
    output = (
        "a.joblib\nTake x\n\nbatch 1  in\n───\nx  1\n\nSelection\ns\n\nQuantisation\nq\n\nProduction checklist\np\n"
    )
    assert deploy_guide.shortened(output, "all of it\n") == output
    short = deploy_guide.shortened(output, "a\n\nbatch 1  in\n\n...\n\nQuantisation\nold\n\n...\n")
    assert short == "a.joblib\nTake x\n\nbatch 1  in\n───\nx  1\n\n...\n\nQuantisation\nq\n\n...\n"
