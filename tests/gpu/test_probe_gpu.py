"""On a CUDA device: the probe times every format the device has, and stays below the catalogue's peaks."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bitwatt.hardware.catalogue import find
from bitwatt.hardware.probe import measured, probe, save

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


def test_the_device_is_probed_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    found = probe(seconds=2.0)
    assert found[0].threads == torch.get_num_threads()  # the processor first
    found = found[1:]
    assert [one.device for one in found] == [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    one = found[0]
    assert {"fp32", "fp16", "bf16", "bandwidth"} <= set(one.rates), one.skipped
    save(found)
    assert measured(one.device)["bf16"] == one.rates["bf16"].value
    known = find(one.device)
    if known is None:
        pytest.skip(f"{one.device} is not in the catalogue")
    assert known.bandwidth is not None
    for name, peak in {**known.peaks, "bandwidth": known.bandwidth}.items():
        if name in one.rates:  # fp64 products run on tensor cores, beyond the vector peak
            top = known.peaks.get(f"{name}_tensor", peak).value
            assert 0.2 * peak.value < one.rates[name].value < 1.05 * top, name
    assert one.rates["bf16"].value > one.rates["fp32"].value
