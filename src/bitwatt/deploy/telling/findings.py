"""What a study found: the one object that tables, files and pages are made of. All of it follows from the study and the
raw times; of one that was kept without the times, from the rows and comparisons made of them then."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bitwatt.deploy.documents import as_json, of_json
from bitwatt.deploy.records import Call, Checked, Study
from bitwatt.deploy.telling import duels as paired
from bitwatt.deploy.telling import raw, summary, tradeoffs
from bitwatt.deploy.telling.checklist import checklist
from bitwatt.deploy.telling.duels import Alarms, Duel
from bitwatt.deploy.telling.quantised import Worth, worths
from bitwatt.deploy.telling.ranking import Ranker
from bitwatt.deploy.telling.rules import Rules
from bitwatt.deploy.telling.selection import Choice, Chooser, usual
from bitwatt.deploy.telling.tradeoffs import Row, baseline
from bitwatt.errors import BitwattError

STUDY, PAGE = "study.json", "hardware_tradeoffs.html"


class Findings:
    """Made by `found`, `read` or `of_document`."""

    def __init__(
        self,
        study: Study,
        calls: Sequence[Call],
        rows: Sequence[Row],
        duels: Sequence[Duel],
        control: Alarms | None,
        rules: Rules,
    ) -> None:
        self.study, self.calls, self.rules = study, calls, rules
        self.rows, self.duels, self.control = tuple(rows), tuple(duels), control

    @cached_property
    def processes(self) -> int:
        """That were timed: fewer than planned where it was interrupted."""
        return len({call.process for call in self.calls}) or self.study.plan.processes

    @cached_property
    def ranker(self) -> Ranker:
        return Ranker(self.study, self.rows, self.duels, self.rules)

    @cached_property
    def worths(self) -> list[Worth]:
        return worths(self.study, self.ranker)

    @cached_property
    def selection(self) -> list[Choice]:
        return Chooser(self.study, self.ranker).matrix()

    @cached_property
    def recommended(self) -> Choice:
        return self.recommended_by_setting[usual(self.study)]

    @cached_property
    def recommended_by_setting(self) -> Mapping[tuple[int, int], Choice]:
        return {one: Chooser(self.study, self.ranker, one).recommended() for one in summary.settings(self.study)}

    @cached_property
    def checklist(self) -> list[Checked]:
        return checklist(self)

    def table(self) -> list[Row]:
        """The rows of hardware_tradeoffs.csv."""
        return list(self.rows)

    def summary(self) -> dict[str, Any]:
        """What hardware_tradeoffs_summary.json holds."""
        return summary.document(self)

    def text(self, width: int | None = None, color: bool = False) -> str:
        from bitwatt.deploy.telling.terminal import text

        return text(self, width, color)

    def markdown(self) -> str:
        from bitwatt.deploy.telling.terminal import markdown

        return markdown(self)

    def page(self) -> str:
        from bitwatt.deploy.telling.page import page_of

        return page_of(self)

    def save(self, folder: Path | str) -> list[Path]:
        """Everything that is written: the study and the raw times first, which cannot be made again; then what follows
        from them."""
        there = Path(folder)
        written = []

        def put(name: str, text: str) -> None:
            (there / name).write_text(text, encoding="utf-8")
            written.append(there / name)

        try:
            there.mkdir(parents=True, exist_ok=True)
            put(STUDY, json.dumps(as_json(self.study), indent=1, allow_nan=False) + "\n")
            if self.calls:
                raw.write(self.calls, there / raw.NAME)
                written.append(there / raw.NAME)
            put(tradeoffs.NAME, tradeoffs.csv_of(self.rows))
            put(summary.NAME, json.dumps(self.summary(), indent=2, allow_nan=False) + "\n")
            put(PAGE, self.page())
        except OSError as error:
            raise BitwattError(f"{error.filename or there} could not be written: {error.strerror or error}") from error
        return written

    def document(self) -> dict[str, Any]:
        """For a store: all but the raw times."""
        parts = {"study": self.study, "rows": self.rows, "duels": self.duels, "control": self.control}
        return {name: as_json(part) for name, part in {**parts, "rules": self.rules}.items()}

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from bitwatt.deploy.telling.page import fragment

        return fragment(self)


def found(study: Study, calls: Sequence[Call], rules: Rules | None = None) -> Findings:
    rules, baselines = rules or Rules(), [baseline(study, kind) for kind in ("native", "onnx")]
    fought = paired.duels(calls, baselines, rules.margin) if calls else []
    return Findings(study, calls, tradeoffs.rows(study, calls, fought), fought, paired.control(calls), rules)


def read(folder: Path | str, rules: Rules | None = None) -> Findings:
    """What a folder of results says, told anew: nothing is run."""
    there = Path(folder)
    study, calls = read_study(there), raw.read(there / raw.NAME)
    if study.calls and len(calls) != study.calls:
        told = f"{raw.NAME} is not whole: it holds {len(calls):,} calls, and {study.calls:,} were timed"
        study = replace(study, notes=(*study.notes, told))
    return found(study, calls, rules)


def read_study(folder: Path | str) -> Study:
    path = Path(folder) / STUDY
    try:
        return of_json(Study, json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        told = (
            f"{path} cannot be read: {error.strerror or error}; results are made by: bitwatt deploy MODEL --data ROWS"
        )
        raise BitwattError(told) from error
    except ValueError as error:
        raise BitwattError(f"{path} is no JSON: {error}") from error


def of_document(document: Mapping[str, Any]) -> Findings:
    """The findings that `Findings.document` wrote."""
    try:
        study, rules = of_json(Study, document["study"]), of_json(Rules, document["rules"])
        fought = [of_json(Duel, one) for one in document["duels"]]
        control = None if document["control"] is None else of_json(Alarms, document["control"])
        rows = [dict.fromkeys(tradeoffs.COLUMNS) | dict(row) for row in document["rows"]]
    except (KeyError, TypeError, ValueError) as error:
        raise BitwattError(f"this is no deployment study that bitwatt can read: {error}") from error
    return Findings(study, (), rows, fought, control, rules)
