"""A Hugging Face model card: `co2_eq_emissions`, in grams, in its front matter, and a block of our own in its text.

Both are replaced where they are there already, so it can be written again and again. Grams that are not known are not
written, and those of somebody else are left alone then.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

from bitwatt.errors import BitwattError
from bitwatt.harmless import on_terminal
from bitwatt.impact.money import ACCELERATORS
from bitwatt.readings import MODELLED
from bitwatt.records import Run
from bitwatt.reports.energy import joules
from bitwatt.reports.footprint import grams
from bitwatt.reports.model import View
from bitwatt.sinks import Opening, absent, needed
from bitwatt.sinks.values import writer
from bitwatt.units import format_count, format_duration

BEGIN, END = "<!-- bitwatt: begin -->", "<!-- bitwatt: end -->"


class ModelCard:
    """`path` of the card (README.md), `training_type` such as pre-training or fine-tuning."""

    name = "model-card"

    def __init__(self, path: str = "", training_type: str = "") -> None:
        self.path, self._named = Path(path or "README.md").absolute(), bool(path)
        if self.path.is_dir():
            self.path /= "README.md"
        self._training_type = training_type
        self._opening: Opening | None = None

    def why_absent(self) -> str | None:
        return absent("huggingface_hub", "cards")

    def warm(self) -> None:
        needed("huggingface_hub.repocard", "cards")

    def open(self, run: Opening) -> None:
        self._opening = run

    def close(self, run: Run) -> str:
        cards = needed("huggingface_hub", "cards")
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        if text and not text.lstrip("\ufeff").startswith("---") and not self._named:
            raise BitwattError(f"{self.path} has no front matter, so it may be no model card: name it, model-card=PATH")
        view = View(run, "flops", self._opening.settings if self._opening else None)
        try:
            card = cards.ModelCard(text, ignore_metadata_errors=False)
        except Exception as error:  # YAML's own, by many names
            why = " ".join(str(error).split())
            raise BitwattError(f"the front matter of {self.path} cannot be read: {why}") from error
        if (emitted := emissions(view, self._training_type)) is not None:
            card.data.co2_eq_emissions = emitted
        card.text = _with_block(card.text, block(view))
        _write(self.path, str(card).rstrip("\n") + "\n")
        return str(self.path)


def emissions(view: View, training_type: str = "") -> dict[str, Any] | None:
    """The Hub's fields; None where the grams are not known."""
    energy = view.energy
    if energy is None or energy.carbon.total_g is None:
        return None
    doubt = ", energy modelled" if energy.carbon.how == MODELLED else f", energy {energy.carbon.how}"
    place = energy.settings.region or energy.settings.country
    found = {
        "emissions": float(f"{energy.carbon.total_g:.6g}"),
        "source": f"{writer()}{doubt}",
        "training_type": training_type,
        "geographical_location": place,
        "hardware_used": _hardware(view.run),
    }
    return {name: value for name, value in found.items() if value not in (None, "")}


def _hardware(run: Run) -> str:
    devices = [part.device for part in (run.meter.energy if run.meter else ())]
    names = [device.name or device.id for device in devices if device.kind in ACCELERATORS]
    counts = [f"{names.count(name)} x {name}" for name in dict.fromkeys(names)]
    return ", ".join(counts) or run.machine.facts.get("cpu", "")


def block(view: View) -> str:
    """Our part of the card's text."""
    run, energy = view.run, view.energy
    rows = [("measured", f"{_text(run.name)}, {run.started[:10]}"), ("time", format_duration(run.seconds))]
    for name, unit in (("flops", "FLOP"), ("bops", "BOP"), ("macs", "MAC")):
        amount = view.total.amounts.get(name) if view.entries else None
        rows.append((f"{unit}s", "unknown" if amount is None else format_count(amount, unit)))
    if view.entries:
        rows.append(("coverage", str(view.coverage)))
    if energy is not None and energy.used.energy_j is not None:
        rows.append(("energy", f"{joules(energy.used.energy_j)}, {energy.used.label}"))
    else:
        rows.append(("energy", "unknown"))
    carbon = energy.carbon if energy is not None else None
    if carbon is not None and carbon.total_g is not None:
        rows.append(("CO2e", f"{grams(carbon.total_g)} at {carbon.intensity_g_per_kwh or 0.0:.4g} g/kWh"))
    else:
        rows.append(("CO2e", "unknown"))
    rows.append(("hardware", _text(_hardware(run)) or "unknown"))
    known = {name: told.get("last") for name, told in run.about.metrics.items()}
    rows += [(_text(name), f"{last:.6g}") for name, last in known.items() if last is not None]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    return f"{BEGIN}\n## What it took\n\n| | |\n|---|---|\n{table}\n\nBy {writer()}, run {run.id}.\n{END}"


def _with_block(text: str, ours: str) -> str:
    found = re.search(f"{re.escape(BEGIN)}.*?{re.escape(END)}", text, re.DOTALL)
    if found:
        return text[: found.start()] + ours + text[found.end() :]
    return f"{text.rstrip()}\n\n{ours}\n" if text.strip() else f"\n{ours}\n"


def _text(words: str) -> str:
    """Names as text, whatever they look like: no HTML, no Markdown, one line."""
    flat = on_terminal(words)[:300].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]()#+!|~$-])", r"\\\1", flat)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        if path.exists():
            os.chmod(name, path.stat().st_mode & 0o7777)
        else:
            os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


SINK = ModelCard
