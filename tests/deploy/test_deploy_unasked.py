"""A study that was interrupted before the scenarios were asked what they predict."""

from __future__ import annotations

from dataclasses import replace

import studies

from bitwatt.deploy.records import Scenario
from bitwatt.deploy.telling.findings import found
from bitwatt.deploy.telling.selection import Choice


def recommended(*scenarios: Scenario) -> Choice:
    return found(studies.study(*scenarios), studies.calls(studies.MICROSECONDS, control="sklearn-fp64")).recommended


def test_a_conversion_that_was_never_asked_is_not_recommended_however_quick() -> None:
    given = [replace(one, quality=None) for one in studies.usual()]
    told = recommended(*given)
    assert told.scenario == "sklearn-fp64"
    assert "quicker, but not asked what they predict: onnx-fp32" in told.why


def test_without_labels_the_predictions_are_known_and_suffice() -> None:
    given = [replace(one, quality=studies.quality(None, 0, None)) for one in studies.usual()]
    assert recommended(*given).scenario != "sklearn-fp64"
