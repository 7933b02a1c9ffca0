"""What README and docs/ say is run: blocks of Python, commands, examples, links and generated tables."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: rules.md and accuracy.md are written by scripts and hold no block to run.
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md"))]
DEMO = ("bitwatt", "run", "examples/train_mnist_like.py")
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
    """Runs a command once in a folder with the examples, in which the demo has been run."""
    folder = tmp_path_factory.mktemp("docs")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    known: dict[tuple[str, ...], subprocess.CompletedProcess[str]] = {}
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}

    def once(*words: str) -> subprocess.CompletedProcess[str]:
        if words not in known:
            program = ["-m", *words] if words[0] == "bitwatt" else list(words[1:])
            known[words] = subprocess.run(
                [sys.executable, *program],
                cwd=folder,
                env=environment,
                capture_output=True,
                encoding="utf-8",
                timeout=120,
                check=False,
            )
        return known[words]

    assert once(*DEMO).returncode == 0, once(*DEMO).stderr
    # Pages name runs of others, whatever the order of the tests.
    short = ("--quiet", "--name", "short", DEMO[2], "--epochs", "1", "--images", "320", "--workers", "0")
    assert once("bitwatt", "run", *short).returncode == 0
    return once


@pytest.mark.parametrize("page", names([page for page in PAGES if blocks(page, "python")]))
def test_every_python_block_of_a_page_runs(page: str, run: Run, tmp_path: Path) -> None:
    # One namespace for the page, in a process of its own: rules and ops that it registers stay there.
    program = ["import sys", "names = {'__name__': '__main__'}"]
    for block in blocks(ROOT / page, "python"):
        source = "\n" * block.line + block.body  # so that a traceback shows the line of the page
        program.append(f"exec(compile({source!r}, {page!r}, 'exec'), names)")
    script = tmp_path / "page.py"
    script.write_text("\n".join(program), encoding="utf-8")
    done = run("python", str(script))
    assert done.returncode == 0, done.stderr


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
    done = run(*DEMO)
    assert phases(shown) == phases(done.stderr), "run docs/tables/demo.py"
    assert set(phases(shown)) >= {"preprocess", "forward", "loss", "backward", "optimizer", "inference", "total"}
    assert done.stdout in shown


def phases(text: str) -> dict[str, list[str]]:
    """Phase -> FLOPs, BOPs and MACs, from a report's first table."""
    table = text.partition("\nPhases ")[2].partition("\n\n")[0]
    rows = [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()[2:]]
    return {row[0]: row[1:4] for row in rows if len(row) > 4}


@pytest.mark.parametrize(
    ("example", "says"),
    [
        (("examples/train_mnist_like.py", "--epochs", "1", "--images", "64", "--workers", "0"), "test digits"),
        (("examples/compare_precisions.py",), "bops:product"),
        (("examples/estimate_llama.py", "--layers", "2", "--tokens", "64"), "0 missing"),
    ],
)
def test_examples_run_without_bitwatt_around_them(example: tuple[str, ...], says: str, run: Run) -> None:
    done = run("python", *example)
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
    assert listed == {page.name for page in DOCS.glob("*.md")} - {"cost-models-table.md"}


@pytest.mark.parametrize("table", ["rules", "models"])
def test_generated_tables_are_up_to_date(table: str, run: Run, tmp_path: Path) -> None:
    script, written = DOCS / "tables" / f"{table}.py", tmp_path / "written.md"
    target = _target(script)
    if table == "rules":
        import torch

        listed = target.read_text(encoding="utf-8").partition("torch ")[2].split()[0]
        if not torch.__version__.startswith(listed):
            pytest.skip(f"the table is of torch {listed}")
    # In a process of its own: other tests register ops and rules.
    call = tmp_path / "call.py"
    call.write_text(
        "import pathlib, runpy, sys\n"
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
