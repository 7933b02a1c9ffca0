"""The process tree and its host, on real processes: CPU seconds with those of dead children, memory, bytes, stalls."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bitwatt.readings import Reading
from bitwatt.sensors.process import Process
from bitwatt.sensors.tree import Elsewhere, Linux, Sample, System, Tree, family
from bitwatt.sensors.waiting import Wanted
from bitwatt.testing import FakeClock

#: Burns so much CPU time, says how much that was, and does something else.
BURN = "import time\nwhile time.process_time() < {}: pass\nprint(time.process_time(), flush=True)\n{}"


def value(readings: list[Reading], quantity: str, device: str = "process") -> float:
    found = next(reading for reading in readings if (reading.device, reading.quantity) == (device, quantity))
    assert found.value is not None
    return found.value


class Script:
    """Processes as told, to get at what real ones do too seldom."""

    def __init__(self) -> None:
        self.now: dict[int, Sample] = {}

    def put(self, pid: int, parent: int, cpu_s: float, inherited_s: float = 0.0, io: int = 0, start: float = 0) -> None:
        self.now[pid] = Sample(parent, start, cpu_s, inherited_s, 0, (io, 0, 0, 0))

    def sample(self, pid: int, io: bool = True) -> Sample | None:
        return self.now.get(pid)

    def children(self, pids: object) -> set[int]:
        return {pid for pid, sample in self.now.items() if sample.parent in set(pids)}  # type: ignore[call-overload]


def systems() -> list[System]:
    found: list[System] = [Linux()] if Path("/proc/self/stat").exists() else []
    try:
        return [*found, Elsewhere()]
    except ImportError:
        return found


@pytest.mark.parametrize("system", systems(), ids=lambda system: type(system).__name__)
def test_cpu_seconds_are_those_of_the_process_and_of_its_children_dead_or_alive(system: System) -> None:
    sensor = Process(system=system)
    sensor.open()
    before, own = value(sensor.read(), "cpu_seconds"), time.process_time()
    dead = subprocess.run([sys.executable, "-c", BURN.format(0.3, "")], check=True, stdout=subprocess.PIPE)
    alive = subprocess.Popen([sys.executable, "-c", BURN.format(0.6, "input()")], stdin=-1, stdout=-1)
    assert alive.stdout is not None
    burnt = [float(line) for line in (dead.stdout, alive.stdout.readline())]
    sensor._tree._due = 0.0  # type: ignore[union-attr]
    spent = value(sensor.read(), "cpu_seconds") - before
    alive.communicate(b"\n")
    later = value(sensor.read(), "cpu_seconds") - before
    own = time.process_time() - own
    assert sum(burnt) - 0.05 < spent < sum(burnt) + own + 0.3  # what they burn while they end is not told
    assert spent <= later < spent + burnt[1]  # the death of the second gives its time to the parent, not once more


@pytest.mark.parametrize("system", systems(), ids=lambda system: type(system).__name__)
def test_a_family_is_a_process_and_all_below(system: System) -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(flush=True); input()'])"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    found = family(os.getpid(), found=system)
    child.communicate(b"\n")
    assert {os.getpid(), child.pid} < found
    assert child.pid not in family(os.getpid(), found=system)


def test_a_child_that_is_waited_for_is_counted_once() -> None:
    script, clock = Script(), FakeClock()
    script.put(1, 0, 10.0)
    tree = Tree(1, script, clock)
    script.put(2, 1, 3.0, io=100)
    clock.advance(60)
    assert tree.use().cpu_s == 3.0
    del script.now[2]
    script.put(1, 0, 10.5, inherited_s=4.0, io=130)  # the child had one second more, and 30 bytes
    use = tree.use()
    assert use.cpu_s == 4.5
    assert use.io[0] == 130


def test_a_child_that_nobody_waited_for_keeps_what_was_seen_of_it() -> None:
    script, clock = Script(), FakeClock()
    script.put(1, 0, 10.0)
    tree = Tree(1, script, clock)
    script.put(2, 1, 100.0, io=1000)
    clock.advance(60)
    tree.use()
    del script.now[2]
    script.put(1, 0, 12.0, inherited_s=0.5, io=7)  # of another, which came and went unseen
    use = tree.use()
    assert use.cpu_s == 102.5
    assert use.io[0] == 1007


def test_children_from_before_count_from_now_also_when_they_die() -> None:
    script, clock = Script(), FakeClock()
    script.put(1, 0, 10.0)
    script.put(2, 1, 50.0)
    tree = Tree(1, script, clock)
    del script.now[2]
    script.put(1, 0, 10.0, inherited_s=52.0)
    assert tree.use().cpu_s == 2.0


def test_a_grandchild_dies_with_its_parent_and_the_living_inherits() -> None:
    script, clock = Script(), FakeClock()
    script.put(1, 0, 0.0)
    script.put(2, 1, 1.0)
    script.put(3, 2, 5.0)
    tree = Tree(1, script, clock)
    del script.now[2], script.now[3]
    script.put(1, 0, 0.0, inherited_s=7.0)  # 1 + 5, and one since
    assert tree.use().cpu_s == 1.0


def test_an_orphan_stays_in_the_tree() -> None:
    script, clock = Script(), FakeClock()
    script.put(10, 0, 0.0)
    script.put(11, 10, 1.0)
    tree = Tree(10, script, clock)
    script.put(11, 1, 3.0)  # its parent is now the first process of the system
    assert tree.use().cpu_s == 2.0


def test_a_number_that_is_used_again_is_another_process() -> None:
    script, clock = Script(), FakeClock()
    script.put(1, 0, 0.0)
    script.put(2, 1, 9.0, start=1)
    tree = Tree(1, script, clock)
    script.put(2, 1, 4.0, start=2)
    assert tree.use().cpu_s == 4.0


def test_bytes_are_looked_at_seldom_and_none_is_lost_or_counted_twice() -> None:
    script, clock = Script(), FakeClock()
    script.put(1, 0, 0.0, io=1000)
    script.put(2, 1, 0.0, io=50)
    tree = Tree(1, script, clock)
    asked: list[bool] = []
    sample = script.sample

    def seen(pid: int, io: bool = True) -> Sample | None:
        asked.append(io)
        found = sample(pid)
        return found if io or found is None else replace(found, io=())

    script.sample = seen  # type: ignore[method-assign]
    script.put(1, 0, 1.0, io=1010)
    clock.advance(1)
    use = tree.use()
    assert (use.cpu_s, use.io[0], any(asked)) == (1.0, 0, False)
    script.put(3, 1, 0.5, io=7)  # born between
    clock.advance(1)
    assert tree.use(thoroughly=True).io[0] == 17
    del script.now[2]
    script.put(1, 0, 1.0, inherited_s=0.0, io=1090)  # the dead one's 50 bytes, 10 more of its own, and 20
    clock.advance(1)
    asked.clear()
    assert tree.use().io[0] == 17 + 30
    assert any(asked)  # since one has died


def threads(root: Path, pid: int, **wanted: tuple[float, float]) -> None:
    for name, (ran, waited) in wanted.items():
        place = root / (f"{pid}/task/{name[1:]}" if name[0] == "t" else name[1:])
        place.mkdir(parents=True, exist_ok=True)
        (place / "schedstat").write_text(f"{ran * 1e9:.0f} {waited * 1e9:.0f} 12\n")


def test_waiting_for_a_processor_is_told_from_sleeping(tmp_path: Path) -> None:
    wanted = Wanted(5, tmp_path)
    threads(tmp_path, 5, t5=(10.0, 3.0), t6=(0.0, 0.0), p9=(1.0, 0.0))
    assert wanted.look(0.0, 0.0, {5, 9}) == 0.0
    threads(tmp_path, 5, t5=(10.1, 3.1), t6=(0.2, 0.5), p9=(1.0, 0.0))
    assert wanted.look(1.0, 1.0, {5, 9}) == pytest.approx(0.7)  # the thread that wanted most
    threads(tmp_path, 5, t5=(10.1, 3.1), t6=(0.2, 0.5), p9=(1.1, 0.8))
    assert wanted.look(2.0, 2.0, {5, 9}) == pytest.approx(0.7 + 0.9)  # a child
    threads(tmp_path, 5, t7=(0.1, 0.1))
    assert wanted.look(3.0, 3.0, {5, 9}) == pytest.approx(1.6 + 0.2)  # born since
    threads(tmp_path, 5, t5=(20.0, 3.1))
    assert wanted.look(4.0, 3.0, {5, 9}) == pytest.approx(1.8)  # nobody waited: CPU time says it all
    assert Wanted(5, tmp_path / "nothing").look(0.0, None, {5}) is None


def test_time_of_a_child_killed_in_the_middle_is_kept() -> None:
    sensor = Process()
    sensor.open()
    sensor.read()
    child = subprocess.Popen([sys.executable, "-c", BURN.format(0.3, "input()")], stdin=-1, stdout=-1)
    assert child.stdout is not None
    child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert value(sensor.read(), "cpu_seconds") > 0.27


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="this system does not tell bytes of processes")
def test_bytes_written_by_calls_are_told(tmp_path: Path) -> None:
    sensor = Process()
    sensor.open()
    before = value(sensor.read(), "io_written_bytes")
    (tmp_path / "file").write_bytes(b"x" * 1_000_000)
    assert 1_000_000 <= value(sensor.read(), "io_written_bytes") - before < 1_100_000


def test_another_process_may_be_watched() -> None:
    told = "import time\nprint(time.process_time(), flush=True)\ninput()\n"
    child = subprocess.Popen([sys.executable, "-c", told + BURN.format("1", "input()")], stdin=-1, stdout=-1)
    assert child.stdout is not None
    assert child.stdin is not None
    before = float(child.stdout.readline())
    sensor = Process(child.pid)
    sensor.open()
    child.stdin.write(b"\n")
    child.stdin.flush()
    burnt = float(child.stdout.readline()) - before
    spent = value(sensor.read(), "cpu_seconds")
    child.communicate(b"\n")
    assert burnt - 0.05 < spent < burnt + 0.05  # what came before it was opened is not its own
    assert value(sensor.read(), "cpu_seconds") >= spent  # it has gone, what it used has not


def test_memory_is_read_and_what_is_not_shared_at_the_ends_alone() -> None:
    sensor = Process()
    sensor.open()
    held = bytearray(os.urandom(1000)) * 64_000  # 64 MB
    resident = value(sensor.read(), "memory_bytes")
    assert resident > len(held)
    assert "unique_memory_bytes" not in {reading.quantity for reading in sensor.read()}
    ends = sensor.ends()
    assert len(held) < value(ends, "unique_memory_bytes") <= resident
    assert value(sensor.read(), "own_peak_bytes") > len(held)


def fake_proc(root: Path, *, stat: str, stalled_us: int, network: tuple[int, int]) -> Path:
    (root / "pressure").mkdir(parents=True, exist_ok=True)
    (root / "net").mkdir(exist_ok=True)
    (root / "stat").write_text(f"cpu  {stat} 0 0\ncpu0 1 2 3\n")
    for name in ("cpu", "memory", "io"):
        text = f"some avg10=0.00 avg60=0.00 avg300=0.00 total={stalled_us}\nfull avg10=0.00 total=0\n"
        (root / "pressure" / name).write_text(text)
    row = "{}: {} 0 0 0 0 0 0 0 {} 0 0 0 0 0 0 0\n"
    head = "Inter-| Receive\n face |bytes\n"
    (root / "net/dev").write_text(head + row.format("    lo", 999, 999) + row.format("  eth0", *network))
    return root


def test_the_host_tells_load_steal_stalls_and_bytes_on_the_network(tmp_path: Path) -> None:
    script, tick = Script(), os.sysconf("SC_CLK_TCK")
    script.put(1, 0, 0.0)
    # user nice system idle iowait irq softirq steal, in ticks
    fake_proc(tmp_path, stat="100 0 100 800 0 0 0 0", stalled_us=5_000_000, network=(1000, 2000))
    sensor = Process(1, proc=tmp_path, system=script)
    sensor.open()
    fake_proc(tmp_path, stat=f"130 0 120 830 10 0 0 {tick}", stalled_us=7_500_000, network=(1500, 2700))
    readings = sensor.read()
    told = {reading.quantity: reading.value for reading in readings if reading.device == "host"}
    assert told["steal_seconds"] == pytest.approx(1.0)
    assert told["cpu_stall_seconds"] == told["io_stall_seconds"] == 2.5
    assert (told["network_received_bytes"], told["network_sent_bytes"]) == (500, 700)
    passed = 30 + 20 + 30 + 10 + tick
    assert told["utilisation"] == pytest.approx(1 - 40 / passed)
    assert "load" in told


def test_a_system_without_these_files_tells_less_and_does_not_fail(tmp_path: Path) -> None:
    script = Script()
    script.put(1, 0, 0.0)
    sensor = Process(1, proc=tmp_path, system=script)
    sensor.open()
    script.put(1, 0, 2.0)
    assert value(sensor.read(), "cpu_seconds") == 2.0


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_a_reading_is_cheap() -> None:
    sensor = Process()
    sensor.open()

    def cost(call: Callable[[], object]) -> float:
        began = time.thread_time()
        for _ in range(20):
            call()
        return (time.thread_time() - began) / 20

    pairs = [(cost(sensor.read), cost(Path("/proc/self/stat").read_text)) for _ in range(10)]
    reading, file = (min(costs) for costs in zip(*pairs, strict=True))
    assert reading < 40 * file  # that of some files, however slow the machine: 40 are a millisecond


def test_a_look_leaves_the_host_for_later(tmp_path: Path) -> None:
    script, clock = Script(), FakeClock()
    script.put(1, 0, 0.0)
    fake_proc(tmp_path, stat="100 0 100 800 0 0 0 0", stalled_us=0, network=(0, 0))
    sensor = Process(1, proc=tmp_path, system=script, clock=clock)
    sensor.open()
    clock.advance(1)
    assert {reading.device for reading in sensor.look()} == {"process"}
    assert {reading.device for reading in sensor.read()} == {"process", "host"}
    clock.advance(6)
    assert {reading.device for reading in sensor.look()} == {"process", "host"}


def test_nothing_to_read_with_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bitwatt.sensors.process.system", lambda: None)
    assert "pip install psutil" in (Process().why_absent() or "")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_the_most_that_was_held_between_two_looks_is_known_of_the_process_and_of_a_child() -> None:
    code = """
import subprocess, sys
from bitwatt.metering import Meter
from bitwatt.sensors.process import Process

meter = Meter([Process()], thread=False)
def most(work):
    window = meter.window()
    work()
    window.end()
    found = window.metered({})
    print(int(found.usage["memory_bytes_peak"] // 10**6), found.has_children)

most(lambda: bytearray(150_000_000))  # gone before anybody looks
held = "held = bytearray(400_000_000)\\nwhile __import__('time').process_time() < 0.3: pass"
most(lambda: subprocess.run([sys.executable, "-c", held], check=True))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    (own, alone), (child, with_children) = (line.split() for line in done.stdout.splitlines())
    assert int(own) >= 150
    assert alone == "False"
    assert int(child) >= 400
    assert with_children == "True"
