"""`bitwatt run -- command` is the command: its exit code, its signals, its output; and its processes are metered."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import bitwatt
from bitwatt.cli.command import is_command

BITWATT = [sys.executable, "-m", "bitwatt", "run"]
#: 0.6 s of CPU time and a little more, which it prints.
BURN = (
    f"{sys.executable} -c 'import time\nend = time.process_time() + 0.6\n"
    "while time.process_time() < end: pass\nprint(time.process_time())'"
)


def spent_by_children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def run(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    """With Ctrl-C as on a terminal: a shell's background job ignores it, and so would what it starts."""
    given = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **options}
    return subprocess.run([*BITWATT, *words], capture_output=True, text=True, timeout=300, check=False, **given)


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_the_exit_code_is_the_commands(status):
    done = run("--", "sh", "-c", f"echo out; echo err >&2; exit {status}")
    assert (done.returncode, done.stdout) == (status, "out\n")
    assert done.stderr.startswith("err\n")
    assert "Energy: " in done.stderr
    assert bitwatt.load().status == ("ok" if status == 0 else f"exited: {status}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGSEGV])
def test_a_command_that_a_signal_ends_ends_us_by_the_same(number):
    done = run("--quiet", "--", "sh", "-c", f"kill -{int(number)} $$; sleep 5")
    assert done.returncode == -number
    assert bitwatt.load().status == f"exited: {number.name}"


def test_signals_are_passed_on():
    script = "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    process = subprocess.Popen([*BITWATT, "--quiet", "--", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    assert process.wait(timeout=120) == 9
    assert process.stdout.read() == "caught\n"


def test_a_stop_for_longer_changes_nothing():
    """Ctrl-Z and fg: Python's waiting for signals with a time limit made one up, and the command was left alone."""
    script = "echo ready; read line; exit 9"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([*BITWATT, "--quiet", "--", "sh", "-c", script], **pipes)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    process.send_signal(signal.SIGCONT)
    assert process.communicate("go\n", timeout=120)[1] == ""
    assert process.returncode == 9


def test_the_command_has_the_signals_that_we_were_given():
    code = "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []) == set())"
    assert run("--quiet", "--", sys.executable, "-c", code).stdout == "True\n"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_the_command_ignores_no_signal_that_python_ignores():
    ignored = int(run("--quiet", "--", "grep", "SigIgn", "/proc/self/status").stdout.split()[1], 16)
    assert [number for number in (signal.SIGPIPE, signal.SIGXFSZ) if ignored >> (number - 1) & 1] == []


def test_the_processes_of_the_command_are_metered_and_nothing_is_counted():
    before = spent_by_children()
    done = run("--", "sh", "-c", f"{BURN}; {BURN}")
    assert done.returncode == 0
    kept = bitwatt.load()
    assert 0.95 * sum(map(float, done.stdout.split())) < kept.meter.usage["cpu_seconds"] < spent_by_children() - before
    assert list(kept.ledger) == []
    assert any("nothing in them was counted" in note for note in kept.notes)


def test_processes_that_outlive_the_command_are_told_of_and_not_waited_for(tmp_path):
    mark = tmp_path / "pid"
    done = run("--quiet", "--", "sh", "-c", f"sleep 3600 >/dev/null 2>&1 & echo $! > {mark}; exit 3")
    assert done.returncode == 3
    try:
        assert any("1 of its processes outlived it" in note for note in bitwatt.load().notes)
    finally:
        os.kill(int(mark.read_text()), signal.SIGKILL)


def test_a_model_of_the_users_is_labelled_and_only_shown_where_asked_for():
    done = run("--tdp-w", "100", "--", "sh", "-c", BURN)
    assert "unknown: nothing was measured; modelled, " in done.stderr
    assert "J/TFLOP" not in done.stderr
    shown = subprocess.run(
        [sys.executable, "-m", "bitwatt", "report", "--show-modelled"], capture_output=True, text=True, check=True
    )
    assert " J modelled" in shown.stdout
    assert "100 W (TDP)" in shown.stdout
    metered = bitwatt.load().meter
    (part,) = [part for part in metered.energy if part.how == "modelled"]
    # 100 W over all cores, by the CPU seconds of the command: 0.6 and more, as the kernel counts them in ticks
    assert metered.usage["cpu_seconds"] > 0.55
    assert part.energy_j == pytest.approx(100 * metered.usage["cpu_seconds"] / (os.cpu_count() or 1), rel=0.2)


def test_what_python_runs_is_run_by_python(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("#!/bin/sh\nprint('python')")
    script.chmod(0o755)
    (tmp_path / "tool").write_text("#!/bin/sh\necho shell\n")
    (tmp_path / "tool").chmod(0o755)
    os.chdir(tmp_path)
    assert [is_command(words) for words in (["program.py"], ["./program.py"], ["-m", "x"], ["./tool"], ["sh"])] == [
        False, False, False, True, True,
    ]  # fmt: skip
    assert run("--quiet", "--", "program.py").stdout == "python\n"
    assert run("--quiet", "--", "./tool").stdout == "shell\n"


def test_a_command_that_is_not_there_is_a_mistake():
    done = run("--", "no-such-command-anywhere")
    assert done.returncode == 2
    assert "no-such-command-anywhere" in done.stderr


def test_the_meter_can_be_left_off():
    Path("program.py").write_text("print(1)")
    assert run("--no-meter", "program.py").returncode == 0
    assert bitwatt.load().meter is None
