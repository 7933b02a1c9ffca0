"""Weights & Biases: configuration, history, summary, and the report as a file.

A run that the program has open is joined: our numbers come in its summary under `bitwatt/`, and its steps stay as they
are. If it has ended by then it is resumed under its id; where the program has none, one is made beside it, which the
program does not notice. Without a login or network, set mode=offline (or WANDB_MODE), and `wandb sync` later.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from bitwatt.records import Run
from bitwatt.sinks import Opening, absent, needed
from bitwatt.sinks.series import Sent
from bitwatt.sinks.values import facts, parameters, plain, values


class WeightsAndBiases:
    """`project`, `entity`, `mode` (online, offline) and `folder` as in wandb.init; `report=no` for no file."""

    name = "wandb"

    def __init__(
        self, project: str = "", entity: str = "", mode: str = "", folder: str = "", report: str = "yes"
    ) -> None:
        self._options = {"project": project, "entity": entity, "mode": mode, "dir": folder}
        self._report = report.lower() not in ("no", "false", "0")
        self._theirs: Any = None  # the program's own run
        self._run: Any = None  # one of ours
        self._sent = Sent()
        self._opening: Opening | None = None

    def why_absent(self) -> str | None:
        return absent("wandb", "wandb")

    def look(self, *, ended: bool = False) -> None:
        run = getattr(sys.modules.get("wandb"), "run", None)
        if run is not None:
            self._theirs = run

    def warm(self) -> None:
        needed("wandb", "wandb")

    def open(self, run: Opening) -> None:
        self._opening = run

    def live(self, run: Run) -> None:
        """Only into a run that the program has open: it may still be on the way to it."""
        self.look()
        if self._is_open():
            found = values(run, self._opening.settings if self._opening else None, live=True)
            self._theirs.log({f"bitwatt/{one.flat}": one.amount for one in found}, commit=False)

    def close(self, run: Run) -> str:
        joined = self._theirs is not None
        if self._is_open():
            mine = self._theirs
        else:
            mine = self._run = self._run or self._made()
        points = [] if joined else self._sent.new(run)  # into its own run, the program logs them itself
        steps = sorted({step for _, step, _, _ in points})
        if points:
            mine.define_metric("step")
            mine.define_metric("*", step_metric="step")
        for step in steps:
            mine.log({"step": step} | {plain(name): amount for name, at, _, amount in points if at == step})
        self._sent.arrived(points)
        found = values(run, self._opening.settings if self._opening else None)
        how = {f"{one.flat}_how": one.about["how"] for one in found if "how" in one.about and "device" not in one.about}
        told = {one.flat: one.amount for one in found} | how | {"notes": list(run.notes[:10])}
        mine.summary.update({f"bitwatt/{name}" if joined else name: told[name] for name in told})
        known = {**parameters(run), **{f"bitwatt.{plain(name)}": text for name, text in facts(run).items()}}
        have = mine.config.keys()
        mine.config.update({name: value for name, value in known.items() if name not in have})
        if self._report:
            self._save(mine, run)
        where = str(mine.url or mine.dir)
        if mine is not self._theirs:
            mine.finish(exit_code=0 if run.status == "ok" else 1)
        return where

    def _is_open(self) -> bool:
        return self._theirs is not None and getattr(sys.modules.get("wandb"), "run", None) is self._theirs

    def _made(self) -> Any:
        wandb = needed("wandb", "wandb")
        options: dict[str, Any] = {name: value for name, value in self._options.items() if value}
        if self._theirs is not None:  # it has ended: go on where it was
            before = self._theirs
            options |= {"id": before.id, "resume": "allow", "project": before.project, "entity": before.entity or None}
            options["mode"] = "offline" if before.offline else "online"
        elif self._opening is not None:
            options |= {"name": self._opening.name[:128], "notes": self._opening.command[:1000]}
        quiet = wandb.Settings(silent=True, console="off", x_disable_stats=True)
        # not as the run of the process, which the program may want to begin itself
        return wandb.init(reinit="create_new", settings=quiet, **options)

    def _save(self, mine: Any, run: Run) -> None:
        from bitwatt.reports import report

        page = report(run, format="html", settings=self._opening.settings if self._opening else None)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "bitwatt-report.html"
            file.write_text(page, encoding="utf-8")
            mine.save(str(file), base_path=folder, policy="now")
            if not mine.offline:  # it is read when the run is finished
                return
            target = Path(mine.dir) / file.name
            if target.is_symlink() or not target.exists():
                target.unlink(missing_ok=True)
                target.write_text(page, encoding="utf-8")


SINK = WeightsAndBiases
