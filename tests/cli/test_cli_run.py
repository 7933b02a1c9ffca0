"""`bitwatt run` is `python`: the same output, exit code, signals and surroundings; the report comes after."""

import os
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bitwatt import store

PYTHON = [sys.executable]
BITWATT = [sys.executable, "-m", "bitwatt", "run"]

SCRIPTS = {
    "surroundings": """
        import sys, helper
        print(__name__, __file__, __spec__, __doc__, sys.argv, sys.path[0], sorted(globals()))
        print(sys.modules["__main__"].__dict__ is globals(), helper.value)
    """,
    "exit_none": "import sys; sys.exit()",
    "exit_7": "import sys; sys.exit(7)",
    "exit_text": "import sys; sys.exit('giving up')",
    "exit_object": "raise SystemExit(('a', 1))",
    "error": """
        def f(): raise ValueError("boom")
        try:
            1 / 0
        except ZeroDivisionError:
            f()
    """,
    "syntax": "x = = 1",
    "interrupt": "raise KeyboardInterrupt",
    "interrupt_late_code": """
        import bitwatt.session as session
        finish = session.Session.close
        session.Session.close = lambda *a: (exec("pass"), finish(*a))[1]  # clears Python's mark of the interrupt
        raise KeyboardInterrupt
    """,
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "left_at_once": "import os; print('left', flush=True); os._exit(5)",
    "stdin": "import sys; print(sys.stdin.read().upper(), input if False else '')",
    "handlers": """
        import atexit, logging, threading
        atexit.register(print, "exit handler")
        threading.Thread(target=lambda: (threading.main_thread().join(), print("thread ended"))).start()
        print("main ended")
    """,
    "pool": """
        from concurrent.futures import ThreadPoolExecutor
        print(ThreadPoolExecutor(2).submit(lambda: 5).result())
    """,
    "fork": """
        import os, sys
        if os.fork() == 0:
            sys.exit(3)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
    """,
    "spawn": """
        import multiprocessing as mp, pickle
        class Thing: x = 1
        def work(n): return n * n
        if __name__ == "__main__":
            print(pickle.loads(pickle.dumps(Thing())).x)
            for method in ("fork", "spawn"):
                with mp.get_context(method).Pool(1) as pool:
                    print(pool.map(work, [2, 3]))
    """,
    "own_hook": """
        import sys
        sys.excepthook = lambda kind, error, trace: print("hooked", kind.__name__, trace.tb_frame.f_code.co_name)
        raise RuntimeError("seen")
    """,
    "stderr_gone": "import sys; sys.stderr.close()",
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "helper.py").write_text("value = 42\n")
    for name, source in SCRIPTS.items():
        lines = source.strip("\n").splitlines()
        indent = len(lines[0]) - len(lines[0].lstrip())
        (tmp_path / "code" / f"{name}.py").write_text("\n".join(line[indent:] for line in lines) + "\n")
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(
        "import sys\nprint(__name__, __spec__.name, __package__, sys.argv, sys.path[0])\nif 'fail' in sys.argv: 1 / 0\n"
    )
    return tmp_path


def start(command: list[str], folder: Path, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False, **{"input": "hello"} | options
    )


def test_every_way_a_program_can_end_is_as_in_python(folder):
    for name in SCRIPTS:
        program = [f"code/{name}.py", "--name", "mine", "--", "-m"]
        plain, watched = start(PYTHON + program, folder), start([*BITWATT, "--name", name, *program], folder)
        assert watched.stdout == plain.stdout, name
        assert watched.returncode == plain.returncode, (name, watched.stderr)
        assert watched.stderr.startswith(plain.stderr), (name, plain.stderr, watched.stderr)
        if name not in ("syntax", "stderr_gone"):
            assert "bitwatt report" in watched.stderr.splitlines()[-1], (name, watched.stderr)
    kept = {run.name: run.status for run in store.runs(folder / ".bitwatt")}
    assert set(kept) == set(SCRIPTS) - {"syntax"}
    assert kept["error"] == "failed: ValueError: boom"
    assert kept["interrupt"] == "interrupted"
    assert kept["killed"] == "exited: SIGTERM"
    assert kept["left_at_once"] == "exited: 5"
    assert kept["exit_none"] == kept["surroundings"] == "ok"
    assert len(store.runs(folder / ".bitwatt")) == len(kept)  # children reported nothing


@pytest.mark.parametrize("arguments", [["pack", "a", "--by"], ["pack", "fail"], ["pack.__main__"], ["nowhere"]])
def test_a_module_runs_as_with_python_m(folder, arguments):
    plain, watched = start([*PYTHON, "-m", *arguments], folder), start([*BITWATT, "-m", *arguments], folder)
    assert watched.stdout == plain.stdout
    assert watched.returncode == plain.returncode
    assert watched.stderr.startswith(plain.stderr)


@pytest.mark.parametrize("program", [["pack", "a", "--by"], ["pack.zip", "fail"], ["code"], ["-", "x"]])
def test_folders_archives_and_standard_input_run_as_with_python(folder, program):
    with zipfile.ZipFile(folder / "pack.zip", "w") as archive:
        archive.write(folder / "pack" / "__main__.py", "__main__.py")
    source = {"input": "import sys; print(__name__, sys.argv, repr(sys.path[0])); print(sorted(globals()))"}
    options = source if program[0] == "-" else {}
    plain, watched = start([*PYTHON, *program], folder, **options), start([*BITWATT, *program], folder, **options)
    assert watched.stdout == plain.stdout
    assert watched.returncode == plain.returncode
    assert watched.stderr.replace("python3.11", "python").startswith(plain.stderr.replace("python3.11", "python"))


def test_the_report_goes_to_stderr_and_can_be_left_out(folder):
    program = "code/exit_none.py"
    assert "0 missing" in start([*BITWATT, program], folder).stderr
    assert start([*BITWATT, "--quiet", program], folder).stderr == ""
    assert '"bitwatt.report"' in start([*BITWATT, "--format=json", program], folder).stderr
    before = len(store.runs(folder / ".bitwatt"))
    assert "kept in" not in start([*BITWATT, "--no-keep", program], folder).stderr
    assert len(store.runs(folder / ".bitwatt")) == before
    assert "bitwatt report --store 'my runs'" in start([*BITWATT, "--store", "my runs", program], folder).stderr
    assert store.load(None, folder / "my runs").command == program


def test_strict_says_so_in_the_exit_code(folder):
    torch = pytest.importorskip("torch")
    assert torch
    (folder / "odd.py").write_text(
        "import torch, atexit\natexit.register(print, 'handled')\n"
        "@torch.library.custom_op('mylib::double', mutates_args=())\n"
        "def double(x: torch.Tensor) -> torch.Tensor:\n    return torch.from_numpy(x.numpy() * 2)\n"
        "print(double(torch.ones(3)).sum().item())\n"
    )
    done = start([*BITWATT, "--strict", "odd.py"], folder)
    assert done.stdout == "6.0\nhandled\n"
    assert "mylib.double" in done.stderr.splitlines()[-1]
    assert done.returncode == 2
    assert start([*BITWATT, "odd.py"], folder).returncode == 0


def test_an_encoding_without_unicode_is_no_problem(folder):
    done = start([*BITWATT, "code/exit_none.py"], folder, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stderr.isascii()


def test_ctrl_c_keeps_what_was_measured_and_ends_by_the_signal(folder):
    (folder / "wait.py").write_text("import time\nprint('ready', flush=True)\ntime.sleep(600)\n")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # a shell's background job ignores Ctrl-C, and so would what it starts
    process = subprocess.Popen(
        [*BITWATT, "wait.py"], cwd=folder, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **pipes
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGINT
    assert stderr.startswith("Traceback (most recent call last):\n  File")
    assert "bitwatt/cli" not in stderr
    assert store.load(None, folder / ".bitwatt").status == "interrupted"


def test_a_closed_pipe_ends_as_in_python(folder):
    (folder / "chatty.py").write_text("while True: print('x' * 1000)\n")
    command = "({} chatty.py; echo rc $? >&2) | head -n 1 > /dev/null"
    plain, watched = (
        start(["sh", "-c", command.format(" ".join(interpreter))], folder) for interpreter in (PYTHON, BITWATT)
    )
    assert watched.stderr.splitlines()[-1] == plain.stderr.splitlines()[-1]
    assert "BrokenPipeError" in watched.stderr


def test_work_of_children_that_send_no_counts_is_told(folder):
    script = "import subprocess, sys, bitwatt\nsubprocess.run([sys.executable, '-c', {!r}], check=True)\n"
    burn = "import time\nwhile time.process_time() < 0.4: pass"
    (folder / "parent.py").write_text(script.format(burn))
    done = start([*BITWATT, "parent.py"], folder)
    said = " ".join(done.stderr.split())
    assert re.search(r"child processes used [\d.]+ m?s of CPU time, in which nothing was counted", said)
    (folder / "parent.py").write_text(script.format("pass").replace("bitwatt", "bitwatt, time\ntime.sleep(3)"))
    quiet = start([*BITWATT, "parent.py"], folder)
    assert "child processes used" not in quiet.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["python", "empty.py"], "leave out `python`: bitwatt run script.py"),
        (["--", "nosuchcmd"], "there is no command called 'nosuchcmd'"),
        (["--pue", "abc", "empty.py"], "--pue is 'abc', but it is not a number, such as 1.4"),
        (["--bogus", "empty.py"], "usage: bitwatt run [options]"),
    ],
)
def test_a_slip_is_told_with_what_to_write_instead(folder, words, said):
    (folder / "empty.py").write_text("")
    done = start([*BITWATT, *words], folder)
    assert done.returncode == 2
    assert said in done.stderr
