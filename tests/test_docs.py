"""What README and docs/ say is run: blocks of Python, commands, examples, links and generated tables."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from bitwatt.cli import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md"))]
DEMO = ("bitwatt", "run", "examples/train_mnist_like.py")
#: A run that pages name, so it is there before any of their commands.
SHORT = ("bitwatt", "run", "--name", "short", "--by", "phase", *DEMO[2:], "--epochs", "1", "--images", "320")
FENCE = re.compile(
    r"(?:^<!-- (?P<mark>[^>]*) -->\n)?^(?P<indent> *)```(?P<language>\w+)\n(?P<body>.*?)^ *```$", re.M | re.S
)

Run = Callable[..., subprocess.CompletedProcess[str]]


@dataclass(frozen=True)
class Block:
    """A fenced block. The line before may hold a mark: `<!-- skip: why -->` or `<!-- exit: 2 -->`."""

    line: int
    language: str
    body: str
    mark: str


def blocks(page: Path, language: str) -> list[Block]:
    text, found = page.read_text(encoding="utf-8"), []
    for match in FENCE.finditer(text):
        indent = len(match["indent"])
        body = "".join(line[indent:] or "\n" for line in match["body"].splitlines(keepends=True))
        found.append(Block(text[: match.start("body")].count("\n"), match["language"], body, match["mark"] or ""))
    return [block for block in found if block.language == language and not block.mark.startswith("skip:")]


def commands(page: Path) -> list[tuple[tuple[str, ...], int, str]]:
    """(command, its expected exit code, what the page shows under it)."""
    found = []
    for block in blocks(page, "console"):
        status = int(block.mark.removeprefix("exit:")) if block.mark.startswith("exit:") else 0
        for part in re.split(r"^\$ ", block.body, flags=re.M)[1:]:
            command, _, shown = part.partition("\n")
            words = tuple(shlex.split(command, comments=True))
            if words[:1] == ("bitwatt",):
                found.append((words, status, shown))
    return found


def names(pages: list[Path]) -> list[str]:
    return [str(page.relative_to(ROOT)) for page in pages]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a command once, in a folder with the examples in which the demo has been run."""
    folder = tmp_path_factory.mktemp("docs")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    known: dict[tuple[str, ...], subprocess.CompletedProcess[str]] = {}

    def once(*words: str) -> subprocess.CompletedProcess[str]:
        if words not in known:
            here = words[0] == "bitwatt" and words[1] != "run"
            known[words] = _here(folder, words) if here else _apart(folder, words)
        return known[words]

    for command in (SHORT, DEMO):  # the demo's is the newest
        assert once(*command).returncode == 0, once(*command).stderr
    return once


def _apart(folder: Path, words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    program = ["-m", *words] if words[0] == "bitwatt" else list(words[1:])
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, *program],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=400,
        check=False,
    )


def _here(folder: Path, words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """In this process, which is quicker: for the verbs that run nothing of others."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, chdir(folder), redirect_stdout(out), redirect_stderr(err):
        patch.setenv("COLUMNS", "100")
        try:
            status = main(list(words[1:]))
        except SystemExit as leaving:
            status = int(leaving.code or 0)
    texts = []
    for stream in (out, err):
        stream.seek(0)
        texts.append(stream.read())
    return subprocess.CompletedProcess(words, status, *texts)


#: Each page in a process of its own, so that ops and rules it registers stay there; torch is imported once for all.
RUNNER = """
import json, os, sys, traceback
import torch

results = {}
for page, sources in json.load(open(sys.argv[1])).items():
    sys.stdout.flush()
    child = os.fork()
    if not child:
        log = os.open(f"{sys.argv[1]}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1), os.dup2(log, 2)
        status, names = 0, {"__name__": "__main__"}
        try:
            for source in sources:
                exec(compile(source, page, "exec"), names)
        except BaseException:
            traceback.print_exc()
            status = 1
        sys.stdout.flush()
        os._exit(status)
    failed = os.waitpid(child, 0)[1]
    results[page] = open(f"{sys.argv[1]}.log").read() if failed else ""
print(json.dumps(results))
"""

WITH_PYTHON = names([page for page in PAGES if blocks(page, "python")])


@pytest.fixture(scope="module")
def failures(run: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Page -> what it printed where one of its blocks failed, else nothing."""
    folder = tmp_path_factory.mktemp("pages")
    sources = {  # empty lines before a block, so that a traceback shows the line of the page
        page: ["\n" * block.line + block.body for block in blocks(ROOT / page, "python")] for page in WITH_PYTHON
    }
    (folder / "runner.py").write_text(RUNNER, encoding="utf-8")
    (folder / "sources.json").write_text(json.dumps(sources), encoding="utf-8")
    done = run("python", str(folder / "runner.py"), str(folder / "sources.json"))
    assert done.returncode == 0, done.stderr
    results: dict[str, str] = json.loads(done.stdout)
    return results


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_every_python_block_of_a_page_runs(page: str, failures: dict[str, str]) -> None:
    assert failures[page] == ""


@pytest.mark.parametrize("page", names([page for page in PAGES if commands(page)]))
def test_every_command_of_a_page_runs(page: str, run: Run) -> None:
    for words, status, shown in commands(ROOT / page):
        done = run(*words)
        assert done.returncode == status, f"{shlex.join(words)}: {done.stderr}"
        if "--help" in words and sys.version_info < (3, 13):  # argparse has changed its layout since
            assert done.stdout == shown, f"{page} shows another help for {shlex.join(words)}"


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_output_of_the_demo_is_the_real_one(page: str, run: Run) -> None:
    """Counts are compared by phase. Times, the id and bytes (other kernels move other ones) may differ."""
    (shown,) = [shown for words, _, shown in commands(ROOT / page) if words == DEMO]
    assert phases(shown) == phases(run(*DEMO).stderr), "run docs/tables/demo.py"
    assert set(phases(shown)) >= {"preprocess", "forward", "loss", "backward", "optimizer", "inference", "total"}


def phases(text: str) -> dict[str, list[str]]:
    """Phase -> FLOPs, BOPs and MACs, from a report's first table."""
    table = text.partition("\nPhases ")[2].partition("\n\n")[0]
    rows = [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()[2:]]
    return {row[0]: row[1:4] for row in rows if len(row) > 4}


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (DEMO, "epoch 2: "),
        (
            ("bitwatt", "run", "--strict", "--no-keep", "--by", "phase", "examples/compare_precisions.py"),
            "bops:product",
        ),
        (("python", "examples/estimate_llama.py", "--layers", "2", "--tokens", "64"), "0 missing"),
    ],
)
def test_examples_run(command: tuple[str, ...], says: str, run: Run) -> None:
    done = run(*command)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout


def test_every_example_is_run() -> None:
    tested = {"train_mnist_like.py", "compare_precisions.py", "estimate_llama.py"}
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == tested


@pytest.mark.parametrize("page", names(PAGES))
def test_links_lead_somewhere(page: str) -> None:
    here = ROOT / page
    text = re.sub(r"```.*?```|`[^`\n]*`", "", here.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue  # another site: no test of ours reaches the network
        path, _, anchor = target.partition("#")
        file = (here.parent / path).resolve() if path else here
        assert file.is_file(), f"{page}: {target}"
        assert not anchor or anchor in anchors(file), f"{page}: {target}"


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\s-]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_every_page_is_in_the_navigation() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r": (\S+\.md)$", settings.partition("\nnav:")[2], flags=re.M))
    assert listed == {page.name for page in DOCS.glob("*.md")} - {"cost-models-table.md", "hardware-table.md"}


@pytest.mark.parametrize("table", ["rules", "models", "estimators", "hardware", "onnx_rules"])
def test_generated_tables_are_up_to_date(table: str, run: Run, tmp_path: Path) -> None:
    script, written = DOCS / "tables" / f"{table}.py", tmp_path / "written.md"
    target = _target(script)
    if table == "rules":
        import torch

        listed = target.read_text(encoding="utf-8").partition("torch ")[2].split()[0]
        if not torch.__version__.startswith(listed):
            pytest.skip(f"the table is of torch {listed}")
    if table == "estimators":
        sklearn = pytest.importorskip("sklearn")
        listed = target.read_text(encoding="utf-8").partition("scikit-learn ")[2].split(",")[0]
        if sklearn.__version__ != listed:
            pytest.skip(f"the table is of scikit-learn {listed}")
    if table == "onnx_rules":
        onnx = pytest.importorskip("onnx")
        listed = target.read_text(encoding="utf-8").partition("of onnx ")[2].split(",")[0]
        if onnx.__version__ != listed:
            pytest.skip(f"the table is of onnx {listed}")
    # In a process of its own: other tests register ops and rules.
    call = tmp_path / "call.py"
    call.write_text(
        "import pathlib, runpy\n"
        f"names = runpy.run_path({str(script)!r})\n"
        f"names['main'].__globals__['TARGET'] = pathlib.Path({str(written)!r})\n"
        "names['main']()\n",
        encoding="utf-8",
    )
    done = run("python", str(call))
    assert done.returncode == 0, done.stderr
    assert written.read_text(encoding="utf-8") == target.read_text(encoding="utf-8"), f"run {script.relative_to(ROOT)}"


def _target(script: Path) -> Path:
    spec = importlib.util.spec_from_file_location(f"table_{script.stem}", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    target: Path = module.TARGET
    return target
