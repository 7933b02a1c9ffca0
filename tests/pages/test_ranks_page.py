"""The page of a job: every rank, who waited for whom, nothing that a name could break."""

from __future__ import annotations

from dataclasses import replace

import pytest

import bitwatt
from bitwatt import store
from bitwatt.reports.ranks import render
from factories import metered
from showcase import HOSTILE, job_runs


def joined(folder, runs) -> str:
    for run in runs:
        store.save(run, folder)
    return render(bitwatt.join(store=folder), "html")


def test_ranks_stand_beside_each_other_and_the_late_one_is_named(tmp_path):
    pytest.importorskip("vl_convert")
    text = joined(tmp_path, job_runs())
    assert "4 of 4 ranks on 2 nodes" in text
    assert "rank 3 " in text.partition("<nav")[0]
    assert "data 4 (DDP)" in text
    assert 'aria-label="rank 3, made others wait: 1' in text
    assert text.count('<th scope="row" role="rowheader">') >= 4
    assert 'id="energy"' not in text


def test_a_device_that_two_ranks_read_is_there_once(tmp_path):
    runs = [replace(run, meter=metered()) for run in job_runs(ranks=2)]
    text = joined(tmp_path, runs)
    energy = text.partition('<section id="energy"')[2].partition("</section>")[0]
    assert energy.count("gpu:GPU-1") == 1
    assert "3 kJ" in energy


def test_names_are_text(tmp_path):
    runs = [
        replace(run, name=HOSTILE[0], command=HOSTILE[1], status=HOSTILE[3], rank=replace(run.rank, node=HOSTILE[0]))
        for run in job_runs()
    ]
    text = joined(tmp_path, runs)
    assert text.count("<script") == 1
    assert "<img" not in text
