"""Writes docs/reference/api.md: what `import bitwatt` and its public modules offer, by signatures and docstrings.

Run `python docs/tables/api.py` after one of them changes. Syntax trees are read and nothing is imported, so that
callbacks of frameworks that are not installed stand there too.
"""

from __future__ import annotations

import ast
import re
import textwrap
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "docs" / "reference" / "api.md"
WIDTH = 100

#: What `bitwatt.__all__` offers, by subject. A name that is missing here stops the script.
WINDOW = {
    "Measure": [
        "measure", "Session", "phase", "count", "metric", "tag", "parameter", "describe", "meter_requests", "Meter",
        "load_ipython_extension",
    ],
    "Count without running": ["estimate"],
    "Price": ["totals", "Totals", "FLOPS", "MACS", "BOPS", "cost_models"],
    "Show": ["report"],
    "Compare": ["compare", "what_if", "sweep"],
    "Keep and find": ["load", "save", "runs", "join"],
    "Add": ["rule", "free", "matmul", "cost_model", "CostModel"],
    "Data": ["Run", "Op", "Work", "TensorSpec", "About"],
    "Errors and version": ["BitwattError", "__version__"],
}  # fmt: skip

#: Public modules beside it, with the names that a user meets.
MODULES = {
    "deploy": ["compare", "read", "Findings"],
    "comparing": ["Comparison"],
    "whatif": ["WhatIf", "Sweep", "Figure"],
    "serving": ["RequestMeter"],
    "sinks": ["send"],
    "dashboard": ["application"],
    "profiles": ["read", "Profile"],
    "callbacks.lightning": ["Bitwatt"],
    "callbacks.transformers": ["BitwattCallback"],
    "callbacks.keras": ["BitwattCallback"],
    "callbacks.sklearn": ["Bitwatt"],
    "ray": ["measured", "Callback"],
    "submitit": ["measured"],
    "config": ["settings", "Settings"],
    "precision": ["precision", "quantised", "Widths", "resolve"],
    "testing": ["check_rule", "check_cost_model", "check_work", "check_sensor", "FakeClock", "FakeGPU", "FakeNVML",
                "FakePowercap", "FakeSensor", "fake_powercap"],
    "records": ["Product", "Quantised", "Layer", "Machine", "Rank", "Replay"],
    "readings": ["Metered", "Energy", "PhaseEnergy", "Device", "Reading"],
    "errors": ["MissingRuleError", "UnknownNameError", "RunFileError", "EstimateError", "SettingsError"],
}  # fmt: skip

#: Methods that are not for callers: private ones, and hooks that a framework or bitwatt's own sensor calls.
OTHERS = ("_", "on_", "nvml", "setup", "teardown")

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign


@cache
def tree(module: str) -> ast.Module:
    stem = ROOT / "src" / module.replace(".", "/")
    file = stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def find(module: str, name: str) -> Definition:
    """Where the name is defined, through the imports that hand it on."""
    handed = handed_by(module, name)
    for node in reversed(tree(module).body):  # the last of several: overloads come before
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name:
            return node
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return node
    if handed is None:
        raise SystemExit(f"{module}.{name} is not found; correct docs/tables/api.py")
    return find(*handed)


def handed_by(module: str, name: str) -> tuple[str, str] | None:
    """The module of bitwatt's that this one has the name from, and what it is called there."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bitwatt"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return str(node.module), alias.name
    return None


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef, *, name: str = "", method: bool = False) -> str:
    """On one line where it fits, else an argument a line."""
    given = arguments(node.args)[1 if method else 0 :]
    given = given[1:] if method and given[:1] == ["/"] else given
    returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    head = f"{'async ' if isinstance(node, ast.AsyncFunctionDef) else ''}{name or node.name}"
    line = f"{head}({', '.join(given)}){returned}"
    if len(line) <= WIDTH:
        return line
    return f"{head}(\n" + "".join(f"    {part},\n" for part in given) + f"){returned}"


def arguments(args: ast.arguments) -> list[str]:
    """Each as Python writes it; those that begin with a line are not for callers."""
    plain = [*args.posonlyargs, *args.args]
    defaults = [*[None] * (len(plain) - len(args.defaults)), *args.defaults]
    found = [argument(one, default) for one, default in zip(plain, defaults, strict=True)]
    if args.posonlyargs:
        found.insert(len(args.posonlyargs), "/")
    named = [
        argument(one, default)
        for one, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        if not one.arg.startswith("_")
    ]
    if args.vararg:
        found.append(f"*{argument(args.vararg, None)}")
    elif named:
        found.append("*")
    return [*found, *named, *([f"**{argument(args.kwarg, None)}"] if args.kwarg else [])]


def argument(one: ast.arg, default: ast.expr | None) -> str:
    text = f"{one.arg}: {ast.unparse(one.annotation)}" if one.annotation else one.arg
    return f"{text} = {ast.unparse(default)}" if default is not None else text


def documentation(node: Definition) -> str:
    if isinstance(node, ast.Assign):
        return ""
    return ast.get_docstring(node) or ""


def decorators(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> set[str]:
    return {ast.unparse(one).partition("(")[0].rpartition(".")[2] for one in node.decorator_list}


def members(node: ast.ClassDef) -> tuple[list[str], list[tuple[str, str]]]:
    """Lines of what a class holds, and (signature, docstring) of its public methods."""
    fields, methods = [], []
    fielded = "dataclass" in decorators(node) or any("NamedTuple" in ast.unparse(base) for base in node.bases)
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            if fielded and not part.target.id.startswith("_") and "ClassVar" not in ast.unparse(part.annotation):
                fields.append(f"{part.target.id}: {ast.unparse(part.annotation)}{default_of(part.value)}")
        elif isinstance(part, ast.FunctionDef) and part.name == "__init__":
            fields += [text for text in map(attribute, ast.walk(part)) if text]
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and not part.name.startswith(OTHERS):
            marks, said = decorators(part), ast.get_docstring(part) or ""
            if marks & {"property", "cached_property"}:
                methods.append((f"{part.name}: {ast.unparse(part.returns) if part.returns else 'Any'}", said))
            elif "overload" not in marks and "setter" not in marks:
                methods.append((signature(part, method="staticmethod" not in marks), said))
    return fields, methods


def default_of(value: ast.expr | None) -> str:
    """A field's default; one that a factory makes is shown as made."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
        given = {one.arg: ast.unparse(one.value) for one in value.keywords}
        return f" = {given['default_factory']}()" if "default_factory" in given else f" = {given['default']}"
    return f" = {ast.unparse(value)}" if value else ""


def attribute(node: ast.AST) -> str:
    """A public attribute that a constructor makes and annotates."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
        name = node.target.attr
        return "" if name.startswith("_") else f"{name}: {ast.unparse(node.annotation)}"
    return ""


def made(node: ast.ClassDef, full: str, module: str) -> str:
    """How one is made, by its own constructor or by the one of a base; empty for one that is made of its fields."""
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            return signature(part, name=full, method=True).removesuffix(" -> None")
    for base in map(ast.unparse, node.bases):
        if handed_by(module, base):
            found = find(module, base)
            return made(found, full, module) if isinstance(found, ast.ClassDef) else ""
    return ""


def inherited(node: ast.ClassDef, module: str) -> str:
    """What a base of bitwatt's says, for a class that says nothing itself."""
    bases = [find(module, base) for base in map(ast.unparse, node.bases) if handed_by(module, base)]
    return next(filter(None, map(documentation, bases)), "")


def entry(module: str, name: str, shown: str) -> str:
    node, full = find(module, name), f"{shown}.{name}"
    if isinstance(node, ast.Assign) and "_Hooks" in ast.unparse(node.value):  # a class made of hooks and a framework's
        node = find(module, "_Hooks")
    lines = [f"### {full}", ""]
    if isinstance(node, ast.ClassDef):
        fields, methods = members(node)
        bases = ", ".join(base for base in map(ast.unparse, node.bases) if not base.startswith("_"))
        block = made(node, full, module) or f"class {full}" + (f"({bases})" if bases else "")
        if fields or methods:
            held = "\n".join([*fields, *([""] if fields and methods else []), *(text for text, _ in methods)])
            block += "\n" + textwrap.indent(held, "    ")
        said = [documentation(node) or inherited(node, module)]
        explained = [(re.split(r"[(:]", text)[0], doc) for text, doc in methods if doc]
        said.append("\n".join(f"- `{who}`: {' '.join(doc.split())}" for who, doc in explained))
    elif isinstance(node, ast.Assign):
        block, said = f"{full} = {ast.unparse(node.value)}".replace("'", '"'), []
    elif "cost_model" in decorators(node):
        marker = next(one for one in node.decorator_list if isinstance(one, ast.Call))
        block, said = f"{full}  # the cost model {ast.unparse(marker.args[0])}", [documentation(node)]
    else:
        block, said = signature(node, name=full), [documentation(node)]
    lines += ["```py", block, "```", ""]
    for text in said:
        lines += [re.sub(r"\bdocs/([\w/-]+\.md)", r"[docs/\1](../\1)", text), ""] if text else []
    return "\n".join(lines)


def where() -> dict[str, str]:
    """Name -> the module that `bitwatt` loads it from."""
    found: dict[str, str] = ast.literal_eval(find("bitwatt", "_WHERE").value)  # type: ignore[union-attr,arg-type]
    return {**found, "__version__": "bitwatt"}


def page() -> str:
    homes = where()
    listed = [name for names in WINDOW.values() for name in names]
    if sorted(listed) != sorted(homes):
        raise SystemExit(f"correct WINDOW in docs/tables/api.py: {sorted(set(listed) ^ set(homes))}")
    parts = [
        "# Python API\n",
        "Written by `docs/tables/api.py` from signatures and docstrings. What is not here may change without notice.\n",
        "Importing bitwatt imports no framework: names are loaded when they are first used.\n",
    ]
    for subject, names in WINDOW.items():
        parts.append(f"## {subject}\n")
        parts += [entry(homes[name], name, "bitwatt") for name in names]
    for module, names in MODULES.items():
        about = (ast.get_docstring(tree(f"bitwatt.{module}")) or "").partition("\n\n")[0]
        parts.append(f"## bitwatt.{module}\n\n{about}\n")
        parts += [entry(f"bitwatt.{module}", name, f"bitwatt.{module}") for name in names]
    return "\n".join(parts).rstrip() + "\n"


def main() -> None:
    TARGET.write_text(page(), encoding="utf-8")
    print(TARGET)


if __name__ == "__main__":
    main()
