"""How the rows given differ from those the model was trained on, and how their classes are spread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bitwatt.deploy.amounts import amount, percent
from bitwatt.deploy.given import estimators
from bitwatt.deploy.given import rows as rows_of
from bitwatt.deploy.records import Case, Checked

#: A distance of distributions (Kolmogorov-Smirnov, 0 to 1) that matters, and how sure it must be over all features.
DISTANCE, LEVEL = 0.1, 0.01
#: Of an even share: a class below it is so rare that accuracy hardly shows it.
RARE = 0.2
#: Names of so many are told.
_NAMED = 5


def checks(case: Case) -> list[Checked]:
    return [drift(case), balance(case)]


def drift(case: Case) -> Checked:
    name = "input drift"
    if case.train is None:
        return Checked(name, None, "no training rows were given")
    pairs = list(_features(case.train, case.inputs))
    if not pairs:
        return Checked(name, None, "the rows have no columns to compare")
    found = []
    for feature, before, now in pairs:
        distance, p = _apart(before, now)
        if distance > DISTANCE and p < LEVEL / len(pairs):
            found.append((distance, feature))
    if not found:
        return Checked(name, True, f"none of {len(pairs)} features differs from the training rows")
    worst = ", ".join(f"{feature} ({distance:.2f})" for distance, feature in sorted(found, reverse=True)[:5])
    return Checked(
        name, False, f"{len(found)} of {len(pairs)} features differ from the training rows, by distance: {worst}"
    )


def _features(train: Any, inputs: Any) -> Iterator[tuple[str, Any, Any]]:
    """By name, with their values in both."""
    import numpy as np

    if isinstance(inputs, tuple):
        for at, (before, now) in enumerate(zip(train, inputs, strict=True)):
            yield from ((f"{at}.{name}", old, new) for name, old, new in _features(before, now))
    elif rows_of.is_frame(inputs) and rows_of.is_frame(train):
        for name in inputs.columns:
            yield str(name), train[name].to_numpy(), inputs[name].to_numpy()
    elif rows_of.is_texts(inputs):
        yield "length of texts", np.array([len(text) for text in train]), np.array([len(text) for text in inputs])
    elif not rows_of.is_sparse(inputs):
        before, now = (np.asarray(rows_of.on_host(part)) for part in (train, inputs))
        if now.ndim == 2:
            yield from ((str(at), before[:, at], now[:, at]) for at in range(now.shape[1]))
        else:  # images, sequences: all values of a kind together
            yield "mean of a row", _means(before), _means(now)


def _means(values: Any) -> Any:
    return values.reshape(len(values), -1).mean(axis=1)


def _apart(before: Any, now: Any) -> tuple[float, float]:
    """Distance of the distributions, and how likely it is by chance."""
    import numpy as np
    from scipy.stats import chi2_contingency, ks_2samp

    if before.dtype.kind in "fiub" and now.dtype.kind in "fiub":
        before, now = before[~np.isnan(before.astype(float))], now[~np.isnan(now.astype(float))]
        if not len(before) or not len(now):
            return (0.0, 1.0) if len(before) == len(now) else (1.0, 0.0)
        found = ks_2samp(before.astype(float), now.astype(float), method="asymp")
        return float(found.statistic), float(found.pvalue)
    kinds = sorted({str(one) for one in (*before, *now)})
    counts = np.array([[np.sum(side.astype(str) == kind) for kind in kinds] for side in (before, now)])
    shares = counts / counts.sum(axis=1, keepdims=True)
    distance = float(np.abs(shares[0] - shares[1]).sum() / 2)
    return distance, 1.0 if len(kinds) < 2 else float(chi2_contingency(counts).pvalue)


def balance(case: Case) -> Checked:
    import numpy as np

    name = "class balance"
    if estimators.clusters(case.model):
        return Checked(name, None, "the model finds clusters, which are no classes")
    if case.classes is None or case.target is None:
        return Checked(name, None, "there are no classes" if case.classes is None else "no targets were given")
    shares = {str(label): float(np.mean(case.target == label)) for label in case.classes}
    least, most = min(shares, key=lambda one: shares[one]), max(shares, key=lambda one: shares[one])
    count = amount(len(shares), "class", "classes")
    told = f"{count}, from {percent(shares[least])} ({least}) to {percent(shares[most])} ({most}) of the rows"
    rare = [label for label, share in shares.items() if share < RARE / len(shares)]
    if rare:
        some = ", ".join(rare[:_NAMED]) + (f" and {len(rare) - _NAMED} more" if len(rare) > _NAMED else "")
        return Checked(name, False, f"{told}: accuracy hardly shows {some}; balanced accuracy does")
    return Checked(name, True, told)
