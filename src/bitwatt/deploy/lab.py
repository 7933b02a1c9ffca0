"""From a model and rows to findings, in one call: what the command line and `bitwatt.deploy.compare` both do."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bitwatt.deploy.records import Case, Plan
from bitwatt.deploy.telling.findings import Findings, found
from bitwatt.deploy.telling.rules import Rules
from bitwatt.errors import BitwattError, UnknownNameError

Progress = Callable[[float, float, str], None]
#: Packages of the extra that nothing can be done without.
NEEDED = ("numpy", "scipy", "joblib", "threadpoolctl", "sklearn", "onnx", "onnxruntime", "skl2onnx")
HOW_TO_GET = "the deployment lab needs ONNX Runtime and its converters: pip install 'bitwatt[deploy]'"


def compare(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    train: Any = None,
    trust: bool = False,
    target: str | None = None,
    method: str | None = None,
    metric: Any = None,
    device: str = "",
    name: str = "",
    scenarios: Sequence[str] = (),
    batches: Sequence[int] = (1, 32, 256),
    threads: Sequence[int] = (1,),
    quick: bool = False,
    thorough: bool = False,
    loaded: bool = True,
    slo: str = "",
    rates: Sequence[float] = (),
    callers: Sequence[int] = (),
    max_loss: float = 0.01,
    min_gain: float = 0.20,
    folder: Path | str | None = None,
    progress: Progress | None = None,
) -> Findings:
    """Ways to deploy a trained model, measured side by side.

    `model` is a fitted estimator, a torch module, or a file that holds one (then `trust` must say that it may be
    opened). `X` and `y` are the rows it is tried on and what is right for them, or a file with both. Converted models
    are left in `folder`, where one is told. The result has `.table()`, `.summary()`, `.save(folder)` and draws itself
    in a notebook.
    """
    from bitwatt.deploy import affordable, plans
    from bitwatt.deploy.given import loading

    if quick and thorough:
        raise BitwattError("quick and thorough: choose one")
    plan = plans.plan(
        quick=quick, thorough=thorough, batches=numbers(batches, "batch"), threads=numbers(threads, "threads"),
        scenarios=known(scenarios), loaded=loaded, slo=slo, rates=tuple(rates), callers=tuple(callers),
    )  # fmt: skip
    rules = Rules(max_loss=share(max_loss, "max_loss"), min_gain=share(min_gain, "min_gain"))
    check_load(plan)
    case = loading.case(model, X, y, trust=trust, target=target, train=train, method=method, metric=metric,
                        device=device, name=name)  # fmt: skip
    case = replace(case, notes=(*case.notes, *affordable.checked(case, plan)))
    return studied(case, plan, rules, folder, progress)


def studied(
    case: Case, plan: Plan, rules: Rules, folder: Path | str | None = None, progress: Progress | None = None
) -> Findings:
    from bitwatt.deploy import study

    try:
        found_out, calls = study.measure(case, None, plan, folder, progress)
    except study.InterruptedStudy as stop:
        raise Interrupted(found(stop.study, stop.calls, rules), stop.during) from stop.stop
    finally:
        if folder is not None:  # the rows lie there while it is measured
            shutil.rmtree(Path(folder) / "work", ignore_errors=True)
    return found(found_out, calls, rules)


class Interrupted(KeyboardInterrupt):
    """Ended by its user: what was measured until then is in `findings`."""

    def __init__(self, findings: Findings, during: str) -> None:
        super().__init__(f"interrupted during {during}")
        self.findings, self.during = findings, during


def known(scenarios: Sequence[str]) -> tuple[str, ...]:
    """A name that nobody knows is told of before anything is measured."""
    from bitwatt.deploy.runtimes import RUNTIMES

    if unknown := [name for name in scenarios if name not in RUNTIMES]:
        raise UnknownNameError(f"there is no scenario {unknown[0]!r}; there are {', '.join(RUNTIMES)}")
    return tuple(dict.fromkeys(scenarios))


def numbers(given: Sequence[int], what: str) -> tuple[int, ...]:
    if not given or not all(isinstance(one, int) and not isinstance(one, bool) and one >= 1 for one in given):
        raise BitwattError(f"{what}: whole numbers from 1 on, such as 1,32, not {','.join(map(str, given)) or 'none'}")
    return tuple(sorted(set(given)))


def share(value: float, what: str) -> float:
    if not 0 <= value <= 1:
        raise BitwattError(f"{what}: a share between 0 and 1, such as 0.01 or 1%, not {value!r}")
    return value


def check_load(plan: Plan) -> None:
    """What would be refused after minutes of measuring is refused now."""
    from bitwatt.deploy.load.settings import checked

    checked(seconds=plan.load_seconds, rates=plan.rates, callers=plan.callers, slo=plan.slo)
