"""Parts of calls that neighbours made wait."""

from __future__ import annotations

from dataclasses import replace

import pytest
import studies

from bitwatt.deploy.records import Breakdown, Stage
from bitwatt.deploy.telling.findings import found

STAGES = (Stage("Gemm", "linear", 0.004), Stage("rest", "postprocess", 0.006))


@pytest.mark.parametrize(("call_ms", "told"), [(0.012, True), (0.030, False)])
def test_a_share_is_told_only_where_the_parts_account_for_the_call(call_ms: float, told: bool) -> None:
    """4 of 12 µs are a third of a call. Of a call of 30 µs, 20 µs are nobody's: the product may be most of the rest."""
    native, onnx, eight = studies.usual()
    rows = native, replace(onnx, breakdown={1: Breakdown(1, STAGES, 0.5, call_ms)}), eight
    times = {"sklearn-fp64": 200.0, "onnx-fp32": 20.0, "onnx-int8": 30.0}
    worth = found(studies.study(*rows), studies.calls(times)).worths[0]
    assert any("the linear operators are only 33 % of a call" in why for why in worth.why) is told
    assert any("little can be gained" in why for why in worth.why) is told
