"""The machine is described without importing or starting anything."""

import subprocess
import sys
from importlib.metadata import version

from bitwatt import machine


def test_the_host_and_the_versions_are_told():
    facts = machine.describe().facts
    assert {"os", "kernel", "cpu", "cores", "memory", "python", "bitwatt"} <= set(facts)
    assert facts["bitwatt"] == version("bitwatt")
    assert all(isinstance(text, str) and text for text in facts.values())


def test_a_library_is_told_only_once_the_program_has_imported_it():
    script = """
import sys
from bitwatt.machine import describe
assert "numpy" not in describe().facts and "torch" not in sys.modules
import numpy
assert describe().facts["numpy"] == numpy.__version__, describe()
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_what_cannot_be_told_is_left_out(monkeypatch):
    def fail():
        raise OSError("no such thing here")

    monkeypatch.setitem(machine._FACTS, "cpu", fail)
    monkeypatch.setitem(machine._FACTS, "gpu", lambda: None)
    assert not {"cpu", "gpu"} & set(machine.describe().facts)
