"""How good the predictions of a scenario are on the given rows, and how they differ from the baselines'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bitwatt.deploy.given import estimators
from bitwatt.deploy.judging import asking, doubts
from bitwatt.deploy.judging.asking import Answers
from bitwatt.deploy.records import Case, Quality, Scenario
from bitwatt.errors import BitwattError
from bitwatt.harmless import on_terminal

#: Draws for an interval that has no formula.
DRAWS = 1000
#: One more digit than float32 keeps of a score between 0 and 1.
ROUNDING = 1e-5


def judged(case: Case, scenarios: Sequence[Scenario], answers: Mapping[str, Answers] | None = None) -> list[Scenario]:
    """With their quality; one that failed on the rows says so. They are asked here unless their answers are known."""
    answers = asking.asked(case, scenarios) if answers is None else answers
    outputs = {name: one.outputs for name, one in answers.items() if one.outputs is not None}
    found = []
    for scenario in scenarios:
        if scenario.name in outputs:
            scenario = replace(scenario, quality=judge(case, scenario, outputs, baselines(scenarios)))
        elif scenario.name in answers:
            why = f"built, but fails on the rows given: {answers[scenario.name].failure}"
            scenario = replace(scenario, failure=on_terminal(why), artefact=None)
        found.append(scenario)
    return found


def baselines(scenarios: Sequence[Scenario]) -> dict[str, str]:
    """Their names, by what they are baselines of."""
    return {one.baseline: one.name for one in scenarios if one.baseline and one.artefact is not None}


def judge(case: Case, scenario: Scenario, outputs: Mapping[str, Any], baseline: Mapping[str, str]) -> Quality:
    """Of one scenario, by its outputs and those of the native baseline."""
    mine = outputs[scenario.name]
    against = baseline.get("native", "")
    reference = outputs.get(against)
    said: tuple[str, ...] = ()
    try:
        metric, value, interval = score(case, mine)
    except BitwattError as error:  # results that are no numbers cost this scenario its value, and no other
        metric, value, interval, said = _named(case, labels(case, mine)), None, None, (str(error),)
    found = Quality(
        metric, value, interval, rows=len(mine), against=against if reference is not None else "", warnings=said
    )
    if case.classes is not None:
        found = replace(found, **_by_class(case, mine))
    if reference is None:
        return found
    found = replace(found, **differences(case, mine, reference))
    onnx = outputs.get(baseline.get("onnx", ""))
    if onnx is not None and scenario.name != baseline["onnx"]:
        other = differences(case, mine, onnx)
        found = replace(found, flips_onnx=other["flips"], max_difference_onnx=other["max_difference"])
    return replace(
        found, warnings=(*said, *doubts.raised(case, scenario, found, reference, mine)),
        doubtful=doubts.doubtful(scenario, found, reference, mine),
    )  # fmt: skip


def labels(case: Case, outputs: Any) -> Any | None:
    """What is predicted, where that is a class: by the highest score, as scikit-learn does."""
    import numpy as np

    if case.classes is None:
        return None
    if outputs.dtype.kind != "f" or case.method == "predict":
        return outputs
    known = np.asarray(case.classes)
    if outputs.ndim == 1:
        return known[(outputs > 0).astype(int)]
    return known[np.argmax(outputs, axis=1)]


def differ(mine: Any, other: Any) -> Any:
    """Where labels are not the same, also between texts and numbers of other widths."""
    import numpy as np

    if mine.dtype.kind in "OU" or other.dtype.kind in "OU":
        return np.asarray([str(one) for one in mine.ravel()]) != np.asarray([str(one) for one in other.ravel()])
    return mine != other


def score(case: Case, outputs: Any) -> tuple[str, float | None, tuple[float, float] | None]:
    """The metric's name, its value and its 95 % interval over rows."""
    import numpy as np

    y = case.target
    found = labels(case, outputs)
    if y is None or (case.metric is None and found is not None and estimators.clusters(case.model)):
        return _named(case, found), None, None
    if case.metric is None and found is not None:
        right = int((~differ(np.asarray(y), found)).sum())
        return "accuracy", right / len(y), wilson(right, len(y))
    asked = metric(case)
    name = _named(case, found)
    try:
        value = float(asked(y, outputs, found))
        if np.isnan(value):
            raise ValueError("on these rows it is not a number")
    except ValueError as error:
        raise BitwattError(f"the metric {name} cannot be computed: {error}") from error
    return name, value, bootstrap(lambda at: asked(y[at], outputs[at], None if found is None else found[at]), len(y))


def _named(case: Case, found: Any) -> str:
    if case.metric is None:
        return "r2" if found is None else "accuracy"
    return case.metric if isinstance(case.metric, str) else getattr(case.metric, "__name__", "metric")


def metric(case: Case) -> Any:
    """A function of targets, outputs and labels: higher is better, as scikit-learn's scorers have it."""
    asked = case.metric
    if callable(asked):
        return lambda y, outputs, found: asked(y, outputs if found is None else found)
    import inspect

    import numpy as np
    from sklearn.metrics import get_scorer, r2_score

    if asked is None:
        return lambda y, outputs, found: r2_score(y, outputs)
    try:
        scorer = get_scorer(asked)
    except ValueError as error:
        raise BitwattError(f"scikit-learn knows no metric {asked!r}") from error
    if getattr(scorer, "_response_method", "predict") == "predict":
        return lambda y, outputs, found: (
            scorer._sign * scorer._score_func(y, outputs if found is None else found, **scorer._kwargs)
        )
    takes, more = inspect.signature(scorer._score_func).parameters, dict(scorer._kwargs)
    if case.classes is not None and "labels" in takes:  # rows may lack a class that there are scores of
        more.setdefault("labels", np.asarray(case.classes))
    if case.classes is not None and len(case.classes) == 2 and "pos_label" in takes:
        more.setdefault("pos_label", case.classes[1])

    def scored(y: Any, outputs: Any, found: Any) -> Any:
        if found is not None and case.method == "predict":
            raise ValueError("it is of scores, and predict gives labels; --method names what gives scores")
        given = outputs[:, 1] if outputs.ndim == 2 and outputs.shape[1] == 2 else outputs
        return scorer._sign * scorer._score_func(y, given, **more)

    return scored


def _by_class(case: Case, outputs: Any) -> dict[str, Any]:
    """Share of each class that is found, and the mean of these."""
    import numpy as np

    if case.target is None or estimators.clusters(case.model):
        return {}
    found = labels(case, outputs)
    wrong = differ(np.asarray(case.target), found)
    each = {
        str(one): float(1 - wrong[case.target == one].mean())
        for one in case.classes or ()
        if (case.target == one).any()
    }
    return {"per_class": each, "balanced": sum(each.values()) / len(each) if each else None}


def differences(case: Case, mine: Any, other: Any) -> dict[str, Any]:
    """Labels that differ, the largest difference of scores, and whether the errors are others (McNemar, exact)."""
    import numpy as np

    found: dict[str, Any] = {"flips": None, "max_difference": None, "mcnemar_p": None}
    ours, theirs = labels(case, mine), labels(case, other)
    if ours is not None and theirs is not None:
        found["flips"] = int(differ(ours, theirs).sum())
        if case.target is not None and not estimators.clusters(case.model):
            y = np.asarray(case.target)
            found["mcnemar_p"] = mcnemar(~differ(y, ours), ~differ(y, theirs))
    if mine.dtype.kind == "f" and mine.shape == other.shape:
        with np.errstate(invalid="ignore"):
            apart = np.abs(mine.astype(np.float64) - other.astype(np.float64))
        found["max_difference"] = float(np.nanmax(apart, initial=0.0))
    return found


def mcnemar(ours: Any, theirs: Any) -> float:
    """Exact: of the rows that only one of the two gets right, how likely so uneven a split is by chance."""
    from scipy.stats import binomtest

    only_ours, only_theirs = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    total = only_ours + only_theirs
    return 1.0 if not total else float(binomtest(only_ours, total).pvalue)


def wilson(right: int, rows: int) -> tuple[float, float]:
    from scipy.stats import binomtest

    found = binomtest(right, rows).proportion_ci(0.95, method="wilson")
    return float(found.low), float(found.high)


def bootstrap(value: Any, rows: int) -> tuple[float, float] | None:
    """Percentiles of the metric over rows drawn again; None where most draws have no value."""
    import numpy as np

    draw = np.random.default_rng(0)
    found = []
    for _ in range(DRAWS if rows <= 20_000 else DRAWS // 10):
        try:
            found.append(float(value(draw.integers(0, rows, rows))))
        except ValueError:  # a draw without one of the classes
            continue
    if len(found) < DRAWS // 20:
        return None
    low, high = np.nanpercentile(found, (2.5, 97.5))
    return float(low), float(high)
