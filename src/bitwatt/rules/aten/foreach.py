"""Lists of tensors: each as the op of the same name on one tensor."""

from collections.abc import Callable
from typing import Any

from bitwatt.formulas.pointwise import pointwise, stored
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._tables import Specs, as_twin, named, size_of

SAME = (
    "abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min clone copy cos cosh div erf erfc exp expm1 floor "
    "frac lerp lgamma log log10 log1p log2 max maximum minimum mul neg pow reciprocal round rsqrt sigmoid sign sin "
    "sinh sqrt sub tan tanh trunc zero"
)
TWINS = {name: name for name in SAME.split()} | {"norm": "linalg_vector_norm", "powsum": "linalg__powsum"}

NAMES = {"scalars": "value"}  # what addcmul and addcdiv call the factor; other twins do not look at it


def _one_by_one(twin: str) -> Callable[..., Work]:
    def function(out: Specs = (), **args: Any) -> Work:
        lists = [value for value in args.values() if isinstance(value, tuple)]
        total = Work(bytes_read=0, bytes_written=0)
        for i in range(len(lists[0])):
            one = {
                NAMES.get(name, name): value[i] if isinstance(value, tuple) else value for name, value in args.items()
            }
            result = out[i] if i < len(out) else one["self"]  # in place: what came out is what went in
            total += as_twin(f"aten.{twin}", one, (result,))
        return total

    return function


for _name, _twin in TWINS.items():
    named(f"_foreach_{_name}", f"Each tensor of the list as aten.{_twin}.", _one_by_one(_twin), "pointwise")


@rule("aten._amp_foreach_non_finite_check_and_unscale", family="optimizer")
def unscale(self: tuple[TensorSpec, ...], **_: Any) -> Work:
    """Each gradient tested and divided by the loss scale: 1 compare, 1 mul per element."""
    work = sum((pointwise(spec, stored(spec), compare=1, mul=1) for spec in self), Work())
    return work + Work(bytes_read=size_of(self), bytes_written=size_of(self))


@rule("aten._amp_update_scale", family="optimizer")
def update_scale(self: TensorSpec, **_: Any) -> Work:
    """The loss scale grown or shrunk: 2 compare, 1 mul."""
    return pointwise(self, 1, compare=2, mul=1)
