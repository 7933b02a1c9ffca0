"""Where runs go beside the store: one file for each system; plug-ins by entry point.

A file here is a sink if it has a name `SINK`: a class whose keyword arguments are the sink's options. Third-party
packages are imported when something is sent, never before.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from bitwatt.config import Settings, settings_here
from bitwatt.errors import BitwattError, UnknownNameError
from bitwatt.plugins import Plugins
from bitwatt.records import Run

if TYPE_CHECKING:
    from bitwatt.sinks.delivery import Receipt

#: Seconds that the end of a run waits for its sinks, all together, unless one of them is given more.
PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Opening:
    """What is known of a run when it begins."""

    id: str
    name: str
    started: str
    command: str = ""
    settings: Settings = field(default_factory=Settings)


class Sink(Protocol):
    """One system that runs are sent to. Making one touches nothing.

    `open`, `live` and `close` are called on a thread of the sink's own: they may wait, and may raise. What raised is
    tried again, but for a BitwattError, which says that trying again will not help.

    A class may also have
    - `live(run)`: the run so far, every few seconds;
    - `look(ended=...)`: called on the program's own thread when the session opens and closes, to see what the program
      itself has open there; it must not wait;
    - `warm()`: import what `close` needs, before the interpreter ends;
    - `every_rank`: True where each process of a job speaks for itself; else the first alone does;
    - `patience`: seconds that the end of a run may wait for it.
    """

    name: str

    def why_absent(self) -> str | None:
        """None where its package is installed; else a sentence with what to do about it."""

    def open(self, run: Opening) -> None: ...

    def close(self, run: Run) -> str:
        """Send the finished run. Returns where it can be found. After an exception it may be called again."""


SINKS: Plugins[Sink] = Plugins("bitwatt.sinks", "SINK")


def make(to: Any) -> list[Sink]:
    """Sinks by what the user wrote: "mlflow", "csv=emissions.csv", "mlflow=http://localhost:5000,experiment=mine", or
    objects. A name nobody knows, an option that is none and a package that is not installed are errors now, not after
    hours of computing."""
    found: list[Sink] = []
    for one in [to] if isinstance(to, str) or hasattr(to, "close") else to:
        sink: Any = _parsed(one) if isinstance(one, str) else one
        if not callable(getattr(sink, "open", None)) or not callable(getattr(sink, "close", None)):
            raise BitwattError(f"{one!r} is no sink: it is a name, such as {', '.join(SINKS)}, or has open and close")
        if absent := sink.why_absent():
            raise BitwattError(f"--to {sink.name}: {absent}")
        found.append(sink)
    return found


def _parsed(text: str) -> Sink:
    """NAME[=OPTIONS]: options are `key=value`, with commas between them; the first may be the main one's value."""
    name, _, rest = text.partition("=")
    if name.strip() not in SINKS:
        raise UnknownNameError(f"no sink is called {name.strip()!r}; there are {', '.join(SINKS)}")
    made = SINKS[name.strip()]
    known = [*inspect.signature(made).parameters, "patience"]
    options: dict[str, str] = {}
    for i, word in enumerate(rest.split(",") if rest.strip() else ()):
        key, sign, value = word.partition("=")
        if sign and key.strip() in known:
            options[key.strip()] = value.strip()
        elif i == 0:
            options[known[0]] = word.strip()
        else:
            raise BitwattError(f"--to {text}: {name} has no option {key.strip()!r}; it has {', '.join(known)}")
    patience = options.pop("patience", None)
    try:
        sink = made(**options)
        if patience is not None:
            sink.patience = float(patience)  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise BitwattError(f"--to {text}: {error}") from None
    return sink


def send(run: Run, to: Any, settings: Settings | None = None) -> list[Receipt]:
    """A finished run, now; what became of it at each sink. Settings are those of the current folder unless given."""
    from bitwatt.sinks.delivery import Delivery

    known = settings or settings_here() or Settings()
    return Delivery(make(to), Opening(run.id, run.name, run.started, run.command, known)).finish(run)


def needed(module: str, extra: str) -> Any:
    """A third-party module, imported now."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise BitwattError(f"{module} cannot be imported ({error}): {_install(extra)}") from error


def absent(module: str, extra: str) -> str | None:
    """For `why_absent`, without importing it."""
    try:
        there = importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        there = False
    return None if there else f"{module} is not installed: {_install(extra)}"


def _install(extra: str) -> str:
    return f"pip install 'bitwatt[{extra}]'"
