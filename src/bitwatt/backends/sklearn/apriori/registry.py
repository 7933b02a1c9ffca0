"""Which function speaks for which method of which class, by the class's public name without `sklearn.`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bitwatt.backends.sklearn.names import public_name

if TYPE_CHECKING:
    from bitwatt.backends.sklearn.apriori.call import Call

#: From a call to what the fitted estimator would tell. Names that begin with `_` are for the walk alone.
Handler = Callable[["Call"], dict[str, Any]]

FITS = ("fit", "partial_fit", "fit_transform", "fit_predict")
SAYS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "score_samples", "apply")
_handlers: dict[tuple[str, str], Handler] = {}
_inner: dict[tuple[str, str], tuple[str, ...]] = {}
_reasons: dict[tuple[str, str], str] = {}


class UnassumedError(Exception):
    """No sensible assumption can be made; the reason is for the user."""


def assumes(*classes: str, methods: tuple[str, ...] = ("fit",)) -> Callable[[Handler], Handler]:
    """Register a function for methods of classes and of those below them; a name that ends with a dot is a module."""

    def register(handler: Handler) -> Handler:
        for name in classes:
            for method in methods:
                _handlers[name, method] = handler
        return handler

    return register


def told_by_shapes(classes: str, *methods: str) -> None:
    """Shapes, hyper-parameters and what is known since the fit are all that the rules of these methods take."""
    for name in classes.split():
        for method in methods:
            _handlers[name, method] = lambda call: {}


def calls(classes: str, method: str, *inner: str) -> None:
    """A method that calls others of the same estimator, which are ops of their own."""
    for name in classes.split():
        _inner[name, method] = inner


def nobody_knows(classes: str, reason: str, *methods: str) -> None:
    """Methods whose amount of work depends on values, in a way that no assumption would tell."""
    for name in classes.split():
        for method in methods:
            _reasons[name, method] = reason


def names_of(kind: type) -> list[str]:
    """The class and its parents, then their modules."""
    known = [parent for parent in kind.__mro__ if parent is not object]
    found = [public_name(parent).removeprefix("sklearn.") for parent in known]
    return list(dict.fromkeys([*found, *(name.rpartition(".")[0] + "." for name in found)]))


def handler_of(kind: type, method: str) -> Handler | None:
    return next((_handlers[name, method] for name in names_of(kind) if (name, method) in _handlers), None)


def inner_of(kind: type, method: str) -> tuple[str, ...]:
    """What the class that defines the method says of it, or one below that class."""
    for parent in kind.__mro__:
        name = public_name(parent).removeprefix("sklearn.")
        if (name, method) in _inner:
            return _inner[name, method]
        if method in parent.__dict__:
            break
    return ()


def reason_of(kind: type, method: str) -> str:
    return next((_reasons[name, method] for name in names_of(kind) if (name, method) in _reasons), "")
