"""How a watch begins where something is in its way: a thread that imports, a part of torch that is not as known."""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

import bitwatt
from bitwatt.backends.torch import compiling, watch
from bitwatt.imports import when_imported

SLOW = """
import time
began = True
time.sleep(0.5)
complete = True
"""


def test_a_module_that_another_thread_is_importing_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_to_import.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    thread = threading.Thread(target=importlib.import_module, args=("slow_to_import",))
    thread.start()
    while not hasattr(sys.modules.get("slow_to_import"), "began"):
        pass
    found: list[bool] = []
    when_imported("slow_to_import", lambda: found.append(hasattr(sys.modules["slow_to_import"], "complete")))()
    thread.join()
    del sys.modules["slow_to_import"]
    assert found == [True]


@pytest.mark.parametrize("where", [(compiling, "install"), (watch.TorchWatch, "arrive")])
def test_a_watch_that_cannot_begin_leaves_nothing_behind(
    where: tuple[object, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    call, start = nn.Module.__call__, threading.Thread.start

    def fails(*_: object) -> None:
        raise AttributeError("torch is not what it was")

    ran: list[torch.Tensor] = []
    for _ in range(2):
        monkeypatch.setattr(*where, fails)
        with pytest.warns(UserWarning, match="cannot be watched"):
            session = bitwatt.measure(keep=False, meter=False).__enter__()
        assert nn.Module.__call__ is call
        thread = threading.Thread(target=lambda: ran.append(nn.Linear(2, 2)(torch.ones(1, 2))))
        thread.start()
        thread.join()
        session.close()
        assert session.run is not None
        assert any("torch is not what it was" in note for note in session.run.notes)
    monkeypatch.undo()
    assert len(ran) == 2
    assert threading.Thread.start is start
    assert not _get_current_dispatch_mode_stack()
    with bitwatt.measure(keep=False, meter=False) as session:
        nn.Linear(2, 2)(torch.ones(1, 2))
    assert bitwatt.totals(session.run, "macs").total == 4
