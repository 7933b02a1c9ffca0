"""A study as a run of the store: found by `bitwatt ls`, compared by its metrics, shown by the dashboard. The findings
are within the run's file, so that they go wherever it goes and are removed with it; the raw times are not."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from bitwatt.about import NAME, About, parameters_of, tags_of, text
from bitwatt.closing import new_id
from bitwatt.deploy.telling.findings import Findings, of_document
from bitwatt.deploy.telling.ranking import number, setting_of
from bitwatt.deploy.telling.selection import usual
from bitwatt.errors import BitwattError
from bitwatt.fingerprint import summary
from bitwatt.ledger import Ledger
from bitwatt.records import Machine, Run
from bitwatt.store import Store, Where, save

KIND = "deployment"
_METRICS = (
    "accuracy", "latency_ms_per_sample", "throughput_samples_per_sec", "memory_mb", "cold_start_ms", "artefact_bytes",
    "energy_uj_measured", "flips",
)  # fmt: skip


def run_of(findings: Findings, *, name: str = "", command: str = "", folder: Path | None = None) -> Run:
    """Its metrics are those of every scenario in the setting that choices are made in, and, without the name of a
    scenario before them, those of the recommended one."""
    study, chosen = findings.study, findings.recommended.scenario
    batch, threads = usual(study)
    parameters = {
        "model": study.case.get("class"), "scenarios": ", ".join(one.name for one in study.scenarios),
        "batches": ", ".join(map(str, study.plan.batches)), "threads": ", ".join(map(str, study.plan.threads)),
        "processes": study.plan.processes, "blocks": study.plan.blocks, "recommended": chosen or "none",
        "artifacts": str(folder or ""),
    }  # fmt: skip
    about = About(
        tags=tags_of({KIND: "", "recommended": chosen or "none"}),
        parameters=parameters_of({key: value for key, value in parameters.items() if value}),
        dataset=text(study.case.get("data_path") or ""),
        batch_size=batch,
        metrics=_metrics(findings, (batch, threads)),
        parent_kind=KIND,
    )
    notes = [f"a deployment study: {findings.recommended.scenario or 'nothing'} is recommended"]
    notes += ["bitwatt serve shows it under Deployments" + (f"; bitwatt deploy --from {folder}" if folder else "")]
    return Run(
        id=new_id(datetime.now(UTC)), name=name or str(study.case.get("name") or KIND), started=study.started,
        seconds=study.seconds, ledger=Ledger([]), machine=Machine({**study.machine, **study.versions}),
        command=command, notes=(*notes, *study.notes), about=about, deployment=findings.document(),
    )  # fmt: skip


def _metrics(findings: Findings, setting: tuple[int, int]) -> dict[str, dict[str, float | None]]:
    found: dict[str, dict[str, float | None]] = {}
    rows = [row for row in findings.rows if row["failure"] is None and setting_of(row) == setting]
    chosen = [row for row in rows if row["scenario"] == findings.recommended.scenario]
    for prefix, row in [("", row) for row in chosen] + [(f"{row['scenario']}/", row) for row in rows]:
        for column in _METRICS:
            if (value := number(row, column)) is not None:
                found[f"{prefix}{column}"[:NAME]] = {"last": value, "min": value, "max": value, "count": 1.0}
    return found


def keep(findings: Findings, store: Store = None, **more: object) -> tuple[Run, Where]:
    run = run_of(findings, **more)  # type: ignore[arg-type]
    return run, save(run, store, summary=summary(run))


def findings_of(run: Run) -> Findings:
    """Of a run that a study was kept as."""
    if run.deployment is None:
        raise BitwattError(f"run {run.id} is no deployment study")
    return of_document(run.deployment)
