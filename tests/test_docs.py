"""What README and docs/ say is run: blocks of Python and commands. Links lead somewhere, and generated pages are as new
as what they are made of. Examples are run by tests/guides."""

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
from typing import Any

import pytest

from bitwatt.cli import VERBS, main
from bitwatt.config import NAMES, key_of
from bitwatt.sensors import SENSORS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [*(ROOT / name for name in ("README.md", "CHANGELOG.md", "benchmarks/README.md")), *sorted(DOCS.rglob("*.md"))]
DEMO = ("bitwatt", "run", "examples/train_mnist_like.py")
#: A run that pages name, so it is there before any of their commands.
SHORT = ("bitwatt", "run", "--name", "short", "--by", "phase", *DEMO[2:], "--epochs", "1", "--images", "320")
FENCE = re.compile(
    r"(?:^<!-- (?P<mark>[^>]*) -->\n)?^(?P<indent> *)```(?P<language>\w+)\n(?P<body>.*?)^ *```$", re.M | re.S
)

Run = Callable[..., subprocess.CompletedProcess[str]]


@dataclass(frozen=True)
class Block:
    """A fenced block. The line before may hold a mark: `<!-- skip: why -->`, `<!-- exit: 2 -->`, or, above a file that
    commands below it read, `<!-- file: its name -->`."""

    line: int
    language: str
    body: str
    mark: str


def fenced(page: Path) -> list[Block]:
    text, found = page.read_text(encoding="utf-8"), []
    for match in FENCE.finditer(text):
        indent = len(match["indent"])
        body = "".join(line[indent:] or "\n" for line in match["body"].splitlines(keepends=True))
        found.append(Block(text[: match.start("body")].count("\n"), match["language"], body, match["mark"] or ""))
    return found


def blocks(page: Path, language: str) -> list[Block]:
    return [block for block in fenced(page) if block.language == language and not block.mark.startswith("skip:")]


def commands(page: Path) -> list[tuple[tuple[str, ...], int, str]]:
    """(command, its expected exit code, what the page shows under it)."""
    found = []
    for block in blocks(page, "console"):
        status = int(block.mark.removeprefix("exit:")) if block.mark.startswith("exit:") else 0
        for part in re.split(r"^\$ ", block.body, flags=re.M)[1:]:
            command, _, shown = part.partition("\n")
            words = tuple(shlex.split(command, comments=True))
            if words[0] in ("bitwatt", "pytest"):
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

    for block in (block for page in PAGES for block in fenced(page) if block.mark.startswith("file: ")):
        (folder / block.mark.removeprefix("file: ")).write_text(block.body, encoding="utf-8")
    for command in (SHORT, DEMO):  # the demo's is the newest
        assert once(*command).returncode == 0, once(*command).stderr
    return once


def _apart(folder: Path, words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    program = list(words[1:]) if words[0] == "python" else ["-m", *words]
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, *program],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=1500,
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
def test_every_command_of_a_page_runs(page: str, run: Run, failures: dict[str, str]) -> None:
    """After the blocks of Python, which keep runs that some commands are about."""
    assert failures.get(page, "") == ""
    for words, status, shown in commands(ROOT / page):
        done = run(*words)
        assert done.returncode == status, f"{shlex.join(words)}: {done.stderr}"
        if "--help" in words and sys.version_info < (3, 13):  # argparse has changed its layout since
            assert done.stdout == shown, f"{page} shows another help for {shlex.join(words)}"


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/quickstart.md"])
def test_the_output_that_is_shown_is_the_real_one(page: str, run: Run) -> None:
    """Counts are compared by phase. Times, the id and bytes (other kernels move other ones) may differ."""
    compared = {words: phases(shown) for words, _, shown in commands(ROOT / page) if words[1] == "run" and shown}
    for words, shown in compared.items():
        assert shown == phases(run(*words).stderr), f"{shlex.join(words)}: run docs/tables/demo.py"
        assert "total" in shown
    expected = {DEMO: {"preprocess", "forward", "loss", "backward", "optimizer", "inference", "total"}}
    if page == "docs/quickstart.md":
        expected = {
            ("bitwatt", "run", "--by", "phase", "first_torch.py"): {"forward", "loss", "backward", "optimizer"},
            ("bitwatt", "run", "--by", "phase", "first_sklearn.py"): {"fit", "score"},
        }
        ((words, shown),) = [(words, shown) for words, _, shown in commands(ROOT / page) if words[1] == "what-if"]
        assert without_bytes(shown) == without_bytes(run(*words).stdout)
    assert set(compared) == set(expected)
    assert all(set(compared[words]) >= found for words, found in expected.items())


def without_bytes(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith(("bytes", "intensity"))]


def phases(text: str) -> dict[str, list[str]]:
    """Phase -> FLOPs, BOPs and MACs, from a report's first table."""
    table = text.partition("\nPhases ")[2].partition("\n\n")[0]
    rows = [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()[2:]]
    return {row[0]: row[1:4] for row in rows if len(row) > 4}


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


def test_pages_that_code_names_exist() -> None:
    """In docstrings, comments, messages and help: docs/..., from the root of the repository."""
    told = [ROOT / name for name in ("Makefile", "pyproject.toml", "mkdocs.yml", ".ci/run")]
    for folder in ("src", "tests", "benchmarks", "examples", "docs"):
        told += [path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".md", ".toml", ".ipynb"}]
    gone = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in told
        for name in re.findall(r"(?<![\w./-])docs/[\w/-]+\.\w+", path.read_text(encoding="utf-8"))
        if not (ROOT / name).exists()
    }
    assert gone == set()


@pytest.mark.parametrize("page", names(PAGES))
def test_no_block_escapes_being_run(page: str) -> None:
    """Programs are `python`, commands `console`. What is left out says why. `py` is for signatures, on one page."""
    known = {"python", "console", "text", "toml", "yaml", "json"}
    found = fenced(ROOT / page)
    for block in found:
        assert block.language in known or (block.language, page) == ("py", "docs/reference/api.md"), block
        assert not block.mark.startswith("skip") or len(block.mark.split()) > 2, f"{page}:{block.line} says no reason"
    assert 2 * len(found) == len(re.findall(r"^ *```", (ROOT / page).read_text(encoding="utf-8"), flags=re.M)), page


def test_every_page_is_in_the_navigation() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r": (\S+\.md)$", settings.partition("\nnav:")[2], flags=re.M))
    included = set(re.findall(r"^  (\S+-table\.md)$", settings, flags=re.M))  # in other pages
    assert listed | included == {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert not listed & included


@pytest.mark.parametrize(
    "table", ["rules", "models", "estimators", "hardware", "onnx_rules", "api", "mislead", "what_if"]
)
def test_generated_tables_are_up_to_date(table: str, run: Run, tmp_path: Path) -> None:
    script, written = DOCS / "tables" / f"{table}.py", tmp_path / "written"
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


def test_the_reference_is_complete() -> None:
    """Every verb with its help, every setting, every field of a run file, every sensor."""
    told = {page: (DOCS / "reference" / f"{page}.md").read_text(encoding="utf-8") for page in REFERENCE}
    assert [verb for verb in VERBS if f"$ bitwatt {verb} --help\n" not in told["command-line"]] == []
    keys = [key_of(name) for name in NAMES if name != "peaks"]  # `peaks."device"`
    assert [key for key in keys if f"`{key}`" not in told["configuration"]] == []
    schema = json.loads((DOCS / "reference" / "run-file.schema.json").read_text(encoding="utf-8"))["$defs"]
    fields = [*schema["header"]["properties"], *schema["body"]["properties"]]
    assert [field for field in fields if f"`{field}`" not in told["run-file"]] == []
    assert [name for name in SENSORS if f"| `{name}` |" not in told["sensors"]] == []


REFERENCE = ("command-line", "configuration", "run-file", "sensors")


def test_the_architecture_is_the_one_that_was_built() -> None:
    """Every room stands in the tables, and the order of imports is the one that the contract keeps."""
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    home = ROOT / "src" / "bitwatt"
    rooms = {path.name for path in home.glob("*.py") if not path.name.startswith("__")}
    rooms |= {f"{path.parent.name}/" for path in home.glob("*/__init__.py")}
    assert {room for room in rooms if f"`{room}`" not in page} == set()
    order = page.partition("those before it:\n\n")[2].partition(".\n")[0]
    said = [{room.strip() for room in rooms.split(",")} for rooms in " ".join(order.split()).split(" → ")]
    assert said == _module(ROOT / "tests" / "contracts" / "test_architecture.py").ORDER[:-1]


def test_the_page_on_flops_says_what_was_measured() -> None:
    mislead = _module(DOCS / "tables" / "mislead.py")
    steps = mislead.steps(json.loads(mislead.DATA.read_text(encoding="utf-8")))
    page = " ".join((DOCS / "concepts" / "flops.md").read_text(encoding="utf-8").split())
    for precision, words in (("bfloat16", "of the joules of the one in float32"), ("tf32", "of the joules")):
        shares = sorted(network[precision]["joules"] for network in steps.values())
        assert f"took {100 * shares[0]:.0f} % to {100 * shares[-1]:.0f} % {words}" in page
    assert f"but {100 * steps['gpt2']['bfloat16']['seconds'] - 100:.0f} % *more time*" in page
    assert {round(network["bfloat16"]["BOPs"], 2) for network in steps.values()} == {0.5}


def test_the_energy_page_shows_what_was_measured() -> None:
    energy = _module(DOCS / "tables" / "energy.py")
    rows = json.loads(energy.DATA.read_text(encoding="utf-8"))
    assert energy.PICTURE.read_text(encoding="utf-8") == energy.picture(rows)
    assert energy.table(rows) in energy.PAGE.read_text(encoding="utf-8")


def _target(script: Path) -> Path:
    target: Path = _module(script).TARGET
    return target


def _module(script: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"table_{script.stem}", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
