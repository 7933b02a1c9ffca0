"""The house plan, kept by the syntax trees: imports go one way, the import is light, files stay small."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from statistics import median

import bitwatt

HOME = Path(bitwatt.__file__).parent

#: Rooms from the ground up. A room may import those below it and itself.
ORDER = [
    {"errors", "units", "dtypes", "imports", "context", "state", "harmless", "passing", "plugins", "uncollected"},
    {"records", "readings", "served", "observed", "about"},
    {"folded"},
    {"registry", "ledger", "sensors", "config", "inherited"},
    {"formulas", "precision"},
    {"rules", "pricing", "hardware"},
    {"costs", "testing", "grid"},
    {"fingerprint", "impact"},
    {"folding"},
    {"ranks"},
    {"backends", "machine", "store", "metering", "observing", "telling", "revision", "companions", "profiles"},
    {"endings", "journal"},
    {"replaying", "closing"},
    {"session"},
    {"jobs", "ray", "spawned", "submitit", "serving"},
    {"charts"},
    {"estimation", "reports", "integers"},
    {"whatif", "sinks"},
    {"comparing"},
    {"deploy"},
    {"budgets", "dashboard"},
    {"notebook", "pytest_plugin", "callbacks"},
    {"cli"},
    {"__main__", "__init__"},
]
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}
#: Loaded by name, on first use or for the type checker alone, against the order and on purpose.
LAZY = {
    ("records", "ledger"), ("records", "folded"), ("records", "fingerprint"), ("records", "reports"),
    ("registry", "rules"), ("journal", "session"), ("session", "sinks"),
    ("pricing", "store"),  # totals("name")
}  # fmt: skip


def room_of(file: Path) -> str:
    return file.relative_to(HOME).parts[0].removesuffix(".py")


def imported_rooms(file: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("bitwatt"):
            parts = node.module.split(".")
            names = {alias.name for alias in node.names} - {"__version__"}  # which is no room
            rooms |= {parts[1]} if len(parts) > 1 else names
        elif isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("bitwatt.")}
    return rooms


FILES = sorted(HOME.rglob("*.py"))


def test_every_room_has_its_place_in_the_order() -> None:
    assert {room_of(file) for file in FILES} <= set(LEVEL)


def test_imports_go_one_way() -> None:
    wrong = [
        f"{file.relative_to(HOME)} imports {room}"
        for file in FILES
        for room in imported_rooms(file)
        if LEVEL[room] > LEVEL[room_of(file)] and (room_of(file), room) not in LAZY
    ]
    assert wrong == []


def test_backends_know_no_formula() -> None:
    for file in (HOME / "backends").rglob("*.py"):
        assert not imported_rooms(file) & {"rules", "formulas", "pricing", "costs"}, file


def test_only_backends_import_frameworks() -> None:
    frameworks = {"torch", "transformers", "tokenizers", "numpy", "IPython"}
    for file in FILES:
        if room_of(file) in ("backends", "notebook", "callbacks", "deploy"):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & frameworks, file


def test_files_are_small_and_say_what_they_are() -> None:
    lengths = {file: len(file.read_text().splitlines()) for file in FILES}
    assert {str(file): n for file, n in lengths.items() if n > 400} == {}
    assert median(lengths.values()) < 150
    undocumented = [str(file) for file in FILES if not ast.get_docstring(ast.parse(file.read_text()))]
    assert undocumented == []


def test_importing_bitwatt_is_quick_and_imports_no_framework() -> None:
    code = (
        "import sys, time; began = time.process_time(); import bitwatt; ours = time.process_time(); "
        "found = any(name in sys.modules for name in ('torch', 'numpy', 'transformers')); "
        "other = time.process_time(); import asyncio; print(ours - began, time.process_time() - other, found)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(5)]
    ours, other, found = zip(*(run.stdout.split() for run in runs), strict=True)
    assert set(found) == {"False"}
    assert min(map(float, ours)) < min(map(float, other))  # a third of it: some 15 ms where asyncio takes 40


def test_every_public_name_exists_and_is_listed() -> None:
    for name in bitwatt.__all__:
        assert getattr(bitwatt, name) is not None
    assert set(dir(bitwatt)) == set(bitwatt.__all__)
