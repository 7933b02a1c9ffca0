"""The machine is described without importing or starting anything."""

import os
import subprocess
import sys
from importlib.metadata import version

from bitwatt import machine, state


def test_the_host_and_the_versions_are_told():
    facts = machine.describe().facts
    assert {"os", "kernel", "cpu", "cores", "memory", "python", "bitwatt"} <= set(facts)
    assert facts["bitwatt"] == version("bitwatt")
    assert all(isinstance(text, str) and text for text in facts.values())


def test_machines_are_told_apart_and_their_sockets_are_counted():
    facts = machine.describe().facts
    assert facts["machine id"] == state.machine()
    if "sockets" in facts:  # where the kernel tells
        sockets, _, cores, _ = facts["sockets"].split()
        assert 1 <= int(sockets) * int(cores) <= (os.cpu_count() or 1)


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


def test_switches_of_float32_are_told_without_importing_or_starting_anything():
    script = """
import sys
from bitwatt import machine, state
assert machine.float32() == {} and "torch" not in sys.modules
import torch
assert machine.float32() == {"float32 on cuda": "matmul fp32, conv tf32, rnn tf32"}, machine.float32()
assert not torch.cuda.is_initialized()
assert not {"float32 on cuda", "float32 on cpu"} & set(machine.describe(machine.float32()).facts)
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = False
assert machine.float32()["float32 on cuda"] == "matmul tf32, conv fp32, rnn fp32", machine.float32()
torch.set_float32_matmul_precision("medium")
assert machine.float32()["float32 on cpu"] == "matmul bf16, conv fp32, rnn fp32"
torch.backends.cuda.matmul.fp32_precision = "ieee"  # from here on the older names raise
assert machine.float32()["float32 on cuda"] == "matmul fp32, conv fp32, rnn fp32", machine.float32()
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_switches_that_changed_are_told_as_they_were_and_are(monkeypatch):
    told = iter([{"float32 on cuda": "matmul tf32, conv tf32, rnn fp32"}] * 2)
    monkeypatch.setattr(machine, "float32", lambda: next(told))
    monkeypatch.setattr(machine, "_has_tf32", lambda: "yes")
    facts = machine.describe({"float32 on cuda": "matmul fp32, conv tf32, rnn fp32"}).facts
    assert facts["float32 on cuda"] == "matmul fp32, conv tf32, rnn fp32; then matmul tf32, conv tf32, rnn fp32"
    assert machine.tf32_families(facts) == {"conv"}  # of the others nobody knows which were before
    facts = machine.describe({}).facts  # torch was imported since
    assert machine.tf32_families(facts) == {"matmul", "attention", "conv"}
    assert machine.tf32_families({}) == frozenset()


def test_a_run_holds_the_switches_of_its_beginning_and_its_end():
    script = """
import torch, bitwatt
with bitwatt.measure(keep=False, meter=False) as session:
    torch.set_float32_matmul_precision("medium")
assert session.run.machine.facts["float32 on cpu"] == "all fp32; then matmul bf16, conv fp32, rnn fp32"
"""
    subprocess.run([sys.executable, "-c", script], check=True)
