"""Scenarios that nothing measured tells apart from the native model."""

from __future__ import annotations

import pytest
import studies

from bitwatt.deploy.telling.findings import found

TIMES = {"sklearn-fp64": 20.0, "sklearn-fp32": 20.1}


@pytest.mark.parametrize(("memory", "taken"), [(79.9, "sklearn-fp64"), (60.0, "sklearn-fp32")])
def test_the_native_model_is_kept_unless_another_takes_clearly_less_memory(memory: float, taken: str) -> None:
    """Of 80 MB, 79.9 are the same; 60 are not."""
    rows = studies.scenario("sklearn-fp64", baseline="native"), studies.scenario("sklearn-fp32", memory=memory)
    told = found(studies.study(*rows), studies.calls(TIMES, control="sklearn-fp64"))
    choices = {one.need: one for one in told.selection}
    for need in ("low latency", "accuracy-critical"):
        assert choices[need].scenario == taken
        assert choices[need].tied == tuple(name for name in TIMES if name != taken), "the tie is told"
    assert told.recommended.scenario == "sklearn-fp64"
