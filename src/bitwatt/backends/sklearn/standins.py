"""What stands in the place of functions while a session is open, and is the function to everybody but a caller.

Who pickles it, which cloudpickle does by value wherever the name leads elsewhere, gets the function of that name in the
process that unpickles it. Warnings point past it, and it is taken away only where nobody else has put something.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class _Counting(functools.partial[Any]):
    """Counts, where bitwatt is."""

    function: Any
    place: tuple[Any, str]
    watch: Any

    def __reduce__(self) -> Any:
        owner, path = self.place
        return operator.attrgetter(path), (owner,)


def standing_in(function: Any, counting: Callable[..., Any], owner: Any, name: str, watch: Any = None) -> Any:
    """A function that calls another one which counts `function`, known to its users as `owner.name`; for one watch only
    if that is given."""
    call = _Counting(out_of_sight(counting))
    functools.update_wrapper(call, function)
    call.function, call.place, call.watch = function, (owner, name), watch

    def method(*args: Any, **kwargs: Any) -> Any:  # it may be pickled with all that it knows, which is `call`
        return call(*args, **kwargs)

    functools.update_wrapper(method, function)
    method.__wrapped__ = call  # type: ignore[attr-defined]
    return out_of_sight(method)


def stood_for(method: Any) -> Any:
    """The function that is counted, where this stands in for one."""
    call = getattr(method, "__wrapped__", None)
    return call.function if isinstance(call, _Counting) else None


def is_at_work(method: Any) -> bool:
    """Whether it stands in for a function, and its watch goes on."""
    call = getattr(method, "__wrapped__", None)
    return isinstance(call, _Counting) and call.watch is not None and call.watch.on


def out_of_sight(function: F) -> F:
    """`warnings.warn(..., stacklevel=2)` in what it calls tells of the caller that it tells of without us: Python
    leaves out frames of files with these words in their names."""
    if isinstance(function, FunctionType):
        function.__code__ = _renamed(function.__code__)
    return function


@functools.cache
def _renamed(code: CodeType) -> CodeType:
    return code.replace(co_filename=f"{code.co_filename} (no place to warn of, like importlib._bootstrap)")


def put_back(owner: Any, name: str, ours: Any, original: Any) -> None:
    """The program may have put something else there meanwhile, or taken ours away."""
    if vars(owner).get(name) is ours:
        setattr(owner, name, original)
