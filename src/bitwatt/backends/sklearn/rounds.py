"""Rounds of boosting: what a booster's `update` and its evaluations tell of the training that they belong to.

Inside a training they are noted with its call: how many rounds were new, and which sets were evaluated. A loop of the
program's own, and the folds of a library's `cv`, are trainings without a name: their boosters are read once, when the
loop is over.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bitwatt.backends.sklearn import datasets, facts
from bitwatt.backends.sklearn.frames import TOP, Frame, framed
from bitwatt.backends.sklearn.standins import is_at_work, put_back, standing_in, stood_for
from bitwatt.context import Context, Token, current, phase_path
from bitwatt.ledger import Row
from bitwatt.passing import handed_on
from bitwatt.records import Op

if TYPE_CHECKING:
    from bitwatt.backends.sklearn.watch import EstimatorWatch

#: Loops that are kept unread at once; a booster is held until then.
_LOOPS = 16
#: Booster -> rounds that it had before the training under way, or the last one, and the rows of its data.
_begun: weakref.WeakKeyDictionary[Any, tuple[int, int]] = weakref.WeakKeyDictionary()
#: What a call tells: entries for `probes`, and a function of the user's own that it called.
Told = tuple[list[tuple[Any, ...]], Any]


class Loop:
    """Updates of one booster outside of any training."""

    def __init__(self, booster: Any, function: Any, context: Context, above: Frame | None) -> None:
        self.booster, self.function, self.context = booster, function, context
        scope = type(booster).__name__ if above is None else above.scope
        self.frame = framed(booster, "train", above.phase if above is not None else "fit", scope, silent=True)
        self.data: Any = None  # that it was last trained on

    def settle(self, watch: EstimatorWatch) -> None:
        seen = [what for what in self.frame.probes if what[0] == "round"]
        size = {"rows": seen[-1][1], "columns": seen[-1][2]} if seen else {}
        if not seen:  # a model that was trained before, evaluated
            self.frame.method = "eval_set"
        if self.data is not None:
            about, columns = datasets.told(self.data)
            size |= about
            self.frame.probes.update(dict.fromkeys(columns, 1))
        plan = watch.plan(type(self.booster), self.frame.method, self.function)
        watch.record(self.frame, plan, (), size, self.booster, self.context)


def settle(watch: EstimatorWatch, token: Token | None = None) -> None:
    """Read the boosters whose loops are over: all of them, or those of one session."""
    loops = watch.loops
    for key in [key for key, loop in loops.items() if token is None or loop.context.token is token]:
        loops.pop(key).settle(watch)


def begun(booster: Any) -> int:
    """Rounds that a booster's last training went on from; 0 where it began anew, or nobody saw it."""
    return _begun.get(booster, (0, 0))[0]


def rows_of(booster: Any) -> int:
    """Rows that a booster was last trained on; 0 where nobody saw it."""
    return _begun.get(booster, (0, 0))[1]


def _rounds(booster: Any) -> int:
    count = getattr(booster, "num_boosted_rounds", None) or booster.current_iteration
    return int(count())


def xgboost_update(booster: Any, dtrain: Any, iteration: int = 0, fobj: Any = None) -> Told:
    if fobj is not None:  # it goes on to `boost`, where the round is counted
        return [], fobj
    return [("round", int(dtrain.num_row()), int(dtrain.num_col()))], None


def xgboost_boost(booster: Any, dtrain: Any, *_: Any, **__: Any) -> Told:
    return [("round", int(dtrain.num_row()), int(dtrain.num_col())), ("given gradients",)], None


def xgboost_eval(booster: Any, evals: Any, iteration: int = 0, feval: Any = None, output_margin: bool = True) -> Told:
    return [("evaluated", int(data.num_row())) for data, _ in evals], feval


def lightgbm_update(booster: Any, train_set: Any = None, fobj: Any = None) -> Told:
    data = train_set if train_set is not None else booster.train_set
    held = [("held out", int(one.num_data())) for one in booster.valid_sets]
    own = [("given gradients",)] if fobj is not None else []
    whole = data if data.reference is None else data.reference  # a fold has the bins of all the data
    sizes = int(data.num_data()), int(data.num_feature()), int(whole.num_data())
    return [("round", *sizes), *held, *own], fobj


def lightgbm_valid(booster: Any, feval: Any = None) -> Told:
    return [("evaluated", int(one.num_data())) for one in booster.valid_sets], feval


def lightgbm_train(booster: Any, feval: Any = None) -> Told:
    return [("evaluated", int(booster.train_set.num_data()))], feval


def lightgbm_eval(booster: Any, data: Any, name: str = "", feval: Any = None) -> Told:
    return [("evaluated", int(data.num_data()))], feval


def catboost_train(model: Any, pool: Any, tests: Any, params: Any, clear: Any = False, start: Any = None) -> Told:
    """Rows, columns, those of categories, rows of evaluation sets, rounds, and trees that there were before. Rounds
    after the best are cut off the model that is kept."""
    held = tests if isinstance(tests, (list, tuple)) else [tests] if tests is not None else []
    old = int(start.tree_count_) if start is not None else 0
    history = [len(values) for one in model.get_evals_result().values() for values in one.values()]
    rounds = max(history, default=0) if int(params.get("metric_period", 1) or 1) == 1 else 0
    sizes = pool.num_row(), pool.num_col(), len(pool.get_cat_feature_indices()), sum(one.num_row() for one in held)
    own = [params[name] for name in ("loss_function", "eval_metric") if not isinstance(params.get(name, ""), str)]
    told = ("trained", *sizes, max(rounds, int(model.tree_count_) - old), old)
    return [told], [one for one in own if one is not None] or None


#: Methods of the libraries' models, and what their calls tell.
TOLD: dict[str, dict[str, Callable[..., Told]]] = {
    "xgboost": {"update": xgboost_update, "boost": xgboost_boost, "eval_set": xgboost_eval},
    "lightgbm": {
        "update": lightgbm_update, "eval_valid": lightgbm_valid, "eval_train": lightgbm_train, "eval": lightgbm_eval,
    },
    "catboost": {"_train": catboost_train},
}  # fmt: skip


#: Methods that give a model other trees, or ask others of it, without training it.
_CHANGES = {
    "xgboost": ("load_model", "set_param", "__setstate__"),
    "lightgbm": ("rollback_one_iter", "model_from_string", "shuffle_models", "__setstate__"),
    "catboost": ("load_model", "shrink", "drop_unused_features", "__setstate__"),
}


def install(watch: EstimatorWatch, library: str, kind: type) -> list[Callable[[], None]]:
    undo: list[Callable[[], None]] = []
    for name, tell in TOLD.get(library, {}).items():
        owner = next((parent for parent in kind.__mro__ if name in parent.__dict__), None)
        if owner is None or is_at_work(owner.__dict__[name]):
            continue
        original = stood_for(owner.__dict__[name]) or owner.__dict__[name]
        ours = standing_in(original, _watched(watch, library, name, original, tell), owner, name, watch)
        setattr(owner, name, ours)
        undo.append(functools.partial(put_back, owner, name, ours, original))
    for name in _CHANGES[library]:
        owner = next((parent for parent in kind.__mro__ if name in parent.__dict__), None)
        held = owner.__dict__[name] if owner is not None else None
        if isinstance(held, types.FunctionType) and not is_at_work(held):
            original = stood_for(held) or held
            ours = standing_in(original, _changing(original), owner, name, watch)
            setattr(owner, name, ours)
            undo.append(functools.partial(put_back, owner, name, ours, original))
    return undo


def _changing(original: Any) -> Any:
    def method(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        finally:
            facts.all_outdated()  # estimators hold the model that has changed

    return method


def _watched(watch: EstimatorWatch, library: str, name: str, original: Any, tell: Callable[..., Told]) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        context = current() if watch.on else None
        if context is None:
            return original(self, *args, **kwargs)
        above = TOP.get()
        loop = None if above is not None and above.silent else _loop(watch, self, original, context, above)
        frame: Any = above if loop is None else loop.frame
        reset = TOP.set(frame)  # what it calls of its own is part of the round
        try:
            result = original(self, *args, **kwargs)
        finally:
            TOP.reset(reset)
        try:
            told, own = tell(self, *args, **kwargs)
        except Exception as error:  # the training comes first
            handed_on(error)
            watch.notes.setdefault(f"{name} could not be counted: {type(error).__name__}: {error}", None)
            return result
        facts.outdated(self)
        if told and told[0][0] == "round" and not any(what[0] == "round" for what in frame.probes):
            _begun[self] = max(_rounds(self) - 1, 0), told[0][1]
        if loop is not None and told and told[0][0] == "round":
            loop.data = datasets.among(args, kwargs) or getattr(self, "train_set", None)
        for what in told:
            frame.probes[what] = frame.probes.get(what, 0) + 1
        if own is not None:
            _own_code(watch, frame, context, library, name, own)
        return result

    return method


def _loop(watch: EstimatorWatch, booster: Any, function: Any, context: Context, above: Frame | None) -> Loop:
    loops, key = watch.loops, (id(booster), context)
    if key not in loops:
        if len(loops) >= _LOOPS:
            loops.pop(next(iter(loops))).settle(watch)
        loops[key] = Loop(booster, function, context, above)
    return loops[key]


def _own_code(watch: EstimatorWatch, frame: Frame, context: Context, library: str, name: str, own: Any) -> None:
    """An objective or metric of the user's own is arithmetic that only its author can give a rule for."""
    for one in own if isinstance(own, (list, tuple)) else (own,):
        inner = getattr(one, "func", one)  # the libraries wrap what their estimators are given
        called = getattr(inner, "__name__", type(inner).__name__)
        op = Op(f"{library}.{'metric' if name.startswith('eval') else 'objective'}.{called}")
        phase = phase_path(frame.phase, context.phases, context.phases)
        watch.add(context, [Row(phase, frame.scope, op, 1)], {}, ())
