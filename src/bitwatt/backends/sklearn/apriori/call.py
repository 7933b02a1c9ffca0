"""A call that is only thought of: its shapes, what is assumed of it, and the walk that strings such calls together."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bitwatt.backends.sklearn import facts
from bitwatt.backends.sklearn.apriori.registry import FITS, UnassumedError, handler_of, inner_of, reason_of
from bitwatt.backends.sklearn.names import LIBRARIES, PHASES, library_of, op_name, own_name, public_name
from bitwatt.ledger import Ledger
from bitwatt.records import Layer, Op, TensorSpec

#: Classes up to this many are told as a tuple, as facts of fitted estimators are.
_SHORT = 64


def bits_of(X: TensorSpec) -> int:
    return 32 if X.dtype == "float32" else 64


class Call:
    """A method of an estimator on data of known shape."""

    def __init__(
        self, walk: Walk, estimator: Any, method: str, X: TensorSpec, y: TensorSpec | None, scope: str, times: int
    ) -> None:
        self.walk, self.estimator, self.method, self.scope, self.times = walk, estimator, method, scope, times
        self.X, self.y = X, y
        self.probes: Counter[tuple[Any, ...]] = Counter()
        is_new = method in FITS and method != "partial_fit"
        self.known: dict[str, Any] = {} if is_new else dict(walk.fitted.get(id(estimator), {}))
        self.is_assumed = False
        self.extra: dict[str, Any] = {}
        self.also: Mapping[str, Any] = {}

    @property
    def rows(self) -> int:
        return self.X.shape[0]

    @property
    def columns(self) -> int:
        return self.X.shape[1] if len(self.X.shape) > 1 else 1

    @property
    def stored(self) -> int:
        """Elements kept of a sparse X, -1 where it is dense; as readers say it."""
        return -1 if self.X.nnz is None else self.X.nnz

    @property
    def elements(self) -> int:
        return self.X.numel if self.X.nnz is None else self.X.nnz

    @property
    def bits(self) -> int:
        return bits_of(self.X)

    @property
    def classes(self) -> int:
        known = self.known.get("classes_")
        if known is not None:
            return len(known) if isinstance(known, tuple) else known.shape[0]
        return self.walk.classes_for(self)

    @property
    def outputs(self) -> int:
        return self.y.shape[1] if self.y is not None and len(self.y.shape) > 1 else 1

    @property
    def one_for_each_class(self) -> int:
        """Raw predictions of a classifier: one for two classes; else the columns of the target."""
        if is_classifier(self.estimator):
            return self.classes if self.classes > 2 else 1
        return self.outputs

    def get(self, name: str, default: Any = None) -> Any:
        """A hyper-parameter."""
        value = self.estimator.get_params(deep=False).get(name)
        return default if value is None else value

    def model(self, name: str, default: Callable[[], Any]) -> Any:
        """An estimator among the hyper-parameters; ensembles have a length, so they are not asked whether they are."""
        given = self.estimator.get_params(deep=False).get(name)
        return default() if given is None else given

    def assume(self, name: str, value: Any, why: str = "") -> Any:
        """What nobody can know before: the user's word, else `value`; stated in the notes either way."""
        self.is_assumed = True
        return self.walk.assumption(self, name, value, why)

    def probe(self, name: str, *sizes: Any, times: float = 1) -> None:
        if round(times) > 0:
            self.probes[(name, *sizes)] += round(times)

    def checked(self, *specs: TensorSpec | None, times: int = 1) -> None:
        """Finiteness checks of arrays, as probes tell them."""
        for spec in specs:
            if spec is not None and spec.dtype.startswith("float"):
                self.probe("finite", bits_of(spec), spec.numel if spec.nnz is None else spec.nnz, times=times)

    def ask(
        self,
        estimator: Any,
        method: str,
        X: TensorSpec,
        y: TensorSpec | None = None,
        *,
        times: int = 1,
        name: str = "",
        classes: int | None = None,
        also: Mapping[str, Any] | None = None,
    ) -> TensorSpec | None:
        """A call of another estimator inside this one, maybe on fewer classes; `also` is what it is told beside."""
        place = self.scope if estimator is self.estimator else f"{self.scope}.{name or type(estimator).__name__}"
        before, self.walk.classes = self.walk.classes, classes or self.walk.classes
        try:
            return self.walk.call(estimator, method, X, y, scope=place, times=self.times * times, also=also)
        finally:
            self.walk.classes = before

    def again(self, method: str, X: TensorSpec | None = None, *, times: int = 1) -> TensorSpec | None:
        """A call of another method of the same estimator, also in the middle of its fit."""
        self.walk.fitted.setdefault(id(self.estimator), dict(self.known))
        return self.ask(self.estimator, method, self.X if X is None else X, self.y, times=times)


def is_classifier(estimator: Any) -> bool:
    return _kind(estimator) == "classifier" or type(estimator).__name__ == "CatBoostClassifier"


def is_regressor(estimator: Any) -> bool:
    return _kind(estimator) == "regressor" or type(estimator).__name__ == "CatBoostRegressor"


def _kind(estimator: Any) -> str | None:
    try:
        return str(estimator.__sklearn_tags__().estimator_type)
    except AttributeError:
        return getattr(estimator, "_estimator_type", None)


@dataclass
class Walk:
    """Goes through the calls that a call would make, and notes them down as a session would have."""

    classes: int | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    layers: dict[str, Layer] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    fitted: dict[int, dict[str, Any]] = field(default_factory=dict)
    asked: dict[str, None] = field(default_factory=dict)
    held: list[Any] = field(default_factory=list)  # so that no identity is given twice
    askers: dict[str, dict[str, None]] = field(default_factory=dict)
    is_quiet: bool = False
    _phase: str = ""

    def call(
        self,
        estimator: Any,
        method: str,
        X: TensorSpec,
        y: TensorSpec | None = None,
        *,
        scope: str = "",
        times: int = 1,
        also: Mapping[str, Any] | None = None,
    ) -> TensorSpec | None:
        outermost = not self._phase
        self._phase = self._phase or PHASES.get(method, "fit")
        self.held.append(estimator)
        try:
            return self._call(estimator, method, X, y, scope or type(estimator).__name__, times, also or {})
        finally:
            if outermost:
                self._phase = ""

    def _call(
        self,
        estimator: Any,
        method: str,
        X: TensorSpec,
        y: TensorSpec | None,
        scope: str,
        times: int,
        also: Mapping[str, Any],
    ) -> TensorSpec | None:
        if method not in FITS and type(estimator).__name__ == "FrozenEstimator":
            return self._call(estimator.estimator, method, X, y, scope, times, also)  # it hands out the other's methods
        if method not in FITS and id(estimator) not in self.fitted:
            self._learn(estimator, X, y, scope)
        kind, one = type(estimator), Call(self, estimator, method, X, y, scope, times)
        one.also = also
        reason, own = "", {}
        own.update(_shapes(one))
        try:
            for inner in inner_of(kind, method):
                one.extra["_out"] = one.again(inner)
                one.known.update(self.fitted.get(id(estimator), {}))
            own.update(_told(one))
        except UnassumedError as error:
            reason = str(error)
        except Exception as error:  # an odd setting costs this call, not the estimate
            reason = f"{type(error).__name__}: {error}"
        if method in FITS:
            if reason:
                own["_unknown"] = f"its fit is not known: {reason}"
            self.fitted[id(estimator)] = {**self.fitted.get(id(estimator), {}), **own}
            one.known.update(own)
        out = one.extra.get("_out") or _out(one, {**one.known, **own})
        if not self.is_quiet:
            self._note(one, {**one.known, **own}, out, reason)
        return out

    def _learn(self, estimator: Any, X: TensorSpec, y: TensorSpec | None, scope: str) -> None:
        """What a fit would have told, where only a prediction was asked for."""
        before, self.is_quiet = self.is_quiet, True
        try:
            self._call(estimator, "fit", X, y, scope, 1, {})
        finally:
            self.is_quiet = before

    def _note(self, one: Call, known: dict[str, Any], out: TensorSpec | None, reason: str) -> None:
        if one.probes:
            seen = sorted(((*what, times) for what, times in one.probes.items()), key=repr)
            known["probes"] = tuple(seen)
        told = dict(facts.hyper_parameters(one.estimator))
        told |= {name: value for name, value in {**known, **one.also}.items() if not name.startswith("_")}
        function = _function(type(one.estimator), one.method)
        data, *others = _arguments(function) or ("X", "y")
        told[data] = one.X
        if one.y is not None and "y" in others and one.method in (*FITS, "score"):
            told["y"] = one.y
        overload = "assumed" if one.is_assumed else ""
        if reason:
            told, overload = {"unassumed": reason, data: one.X}, "unassumed"
            self.notes.setdefault(f"{type(one.estimator).__name__}.{one.method}: not estimated, {reason}", None)
        kind = type(one.estimator)
        named = op_name if library_of(kind) in LIBRARIES or not hasattr(function, "__qualname__") else own_name
        name = named(kind, one.method, function)
        op = Op(name, tuple(told.items()), (out,) if out is not None else (), overload)
        self.ledger.add(self._phase, one.scope, op, one.times)
        self.layers.setdefault(one.scope, Layer(type(one.estimator).__name__))

    def classes_for(self, one: Call) -> int:
        if self.classes is None:
            return int(self.assumption(one, "classes", 2, "y's labels were not given"))
        return self.classes

    def assumption(self, one: Call, name: str, value: Any, why: str) -> Any:
        kind, plain = type(one.estimator).__name__, name.rstrip("_")
        step = one.scope.rpartition(".")[2]
        self.asked.setdefault(plain, None)
        above = any(one.scope.startswith(f"{scope}.") for scope in self.askers.get(plain, ()))
        self.askers.setdefault(plain, {})[one.scope] = None
        # a plain name is for the outermost estimator that asks for it, not for the helpers inside
        for key in (f"{step}.{plain}", f"{kind}.{plain}", *(() if above else (plain, name))):
            if key in self.given:
                self.asked.setdefault(key, None)
                self.notes.setdefault(f"{kind}.{one.method}: {name} given as {_text(self.given[key])}", None)
                return self.given[key]
        reason = f" ({why})" if why else ""
        self.notes.setdefault(f"{kind}.{one.method}: {name} assumed {_text(value)}{reason}", None)
        return value


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _told(one: Call) -> dict[str, Any]:
    kind: type = type(one.estimator)
    method = one.method
    if "_unknown" in one.known:
        raise UnassumedError(one.known["_unknown"])
    if inspect.getattr_static(kind, method, None) is None and not hasattr(kind, "__getattr__"):
        raise UnassumedError("it has no such method")
    handler = handler_of(kind, method)
    if handler is not None:
        return handler(one)
    if inner_of(kind, method):
        return {}
    if public_name(kind).partition(".")[0] not in LIBRARIES:
        raise UnassumedError("it is a class of your own, and what it computes is not known")
    raise UnassumedError(reason_of(kind, method) or "nothing is known that would tell how much it computes")


def _shapes(one: Call) -> dict[str, Any]:
    """What every fitted estimator tells."""
    if one.method not in FITS:
        return {}
    told: dict[str, Any] = {"n_features_in_": one.columns} if len(one.X.shape) > 1 else {}
    if is_classifier(one.estimator):
        count = one.classes
        told["classes_"] = tuple(range(count)) if count <= _SHORT else TensorSpec((count,), "int64")
    return told


def _out(one: Call, known: dict[str, Any]) -> TensorSpec | None:
    n, method = one.rows, one.method
    floats = one.X.dtype if one.X.dtype == "float32" else "float64"
    if method in ("transform", "fit_transform", "inverse_transform"):
        width = known.get("_width", one.columns) if method != "inverse_transform" else known.get("n_features_in_", 1)
        return TensorSpec((n, int(width)), known.get("_dtype", floats), _kept(one, known))
    if method in ("predict_proba", "predict_log_proba"):
        return TensorSpec((n, one.classes), floats)
    outputs = known.get("_outputs", one.outputs)
    if method == "decision_function":
        many = one.one_for_each_class
        return TensorSpec((n, many) if many > 1 else (n,), floats)
    if method in ("predict", "fit_predict"):
        shape = (n, outputs) if outputs > 1 else (n,)
        return TensorSpec(shape, floats if is_regressor(one.estimator) else "int64")
    return TensorSpec((n,), floats) if method == "score_samples" else None


def _kept(one: Call, known: dict[str, Any]) -> int | None:
    """Elements of a sparse result: as many for each row as the fit said, or as X has."""
    if "_kept" in known:
        return None if known["_kept"] is None else int(known["_kept"] * one.rows)
    return one.X.nnz


def _function(kind: type, method: str) -> Any:
    found = inspect.getattr_static(kind, method, None)
    return getattr(found, "fn", found)  # what available_if hands out


def _arguments(function: Any) -> tuple[str, ...]:
    """Names of the arguments: data are not called X everywhere."""
    code = getattr(inspect.unwrap(function), "__code__", None) if function is not None else None
    return code.co_varnames[1 : code.co_argcount] if code is not None else ()
