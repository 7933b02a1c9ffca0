"""Element-wise work: so many operations for each element, complex numbers taken apart into their real components."""

from collections.abc import Mapping

from bitwatt.records import ARITHMETIC, NECESSARY, TensorSpec, Work

#: One operation on complex numbers as operations on their components. With z = a + bi:
#: z·w is 4 mul, 2 add; z/w = z·w̄/|w|² is 6 mul, 3 add, 2 div; √z = √((|z|+a)/2) + i·b/(2·that);
#: e^z = e^a·(cos b + i·sin b); log z = ½·log|z|² + i·atan2(b, a); z^w = e^(w·log z);
#: sin z = sin a·cosh b + i·cos a·sinh b; tan z = (sin 2a + i·sinh 2b)/(cos 2a + cosh 2b), tanh alike;
#: σ(z) = 1/(1 + e^-z), the reciprocal being 2 mul, 1 add, 2 div. Abramowitz & Stegun 3.7, 4.2 and 4.3.
COMPLEX: Mapping[str, Mapping[str, int]] = {
    "add": {"add": 2},
    "mul": {"mul": 4, "add": 2},
    "div": {"mul": 6, "add": 3, "div": 2},
    "sqrt": {"mul": 4, "add": 2, "sqrt": 2, "div": 1},
    "exp": {"exp": 1, "sin": 2, "mul": 2},
    "log": {"mul": 3, "add": 1, "log": 1, "tan": 1},
    "pow": {"mul": 9, "add": 3, "log": 1, "tan": 1, "exp": 1, "sin": 2},
    "sin": {"sin": 2, "tanh": 2, "mul": 2},
    "tan": {"mul": 2, "sin": 2, "tanh": 2, "add": 1, "div": 2},
    "tanh": {"mul": 2, "sin": 2, "tanh": 2, "add": 1, "div": 2},
    "sigmoid": {"exp": 1, "sin": 2, "mul": 4, "add": 2, "div": 2},
    "compare": {"compare": 2},
    "logic": {"logic": 2},
    "cast": {"cast": 2},
    "random": {"random": 2},
}


def stored(spec: TensorSpec) -> int:
    """The elements that are there to compute on: all of them, or those a sparse layout stores."""
    return spec.numel if spec.nnz is None else spec.nnz


def pointwise(spec: TensorSpec, elements: int, **kinds: int) -> Work:
    """`elements` times so many operations of each kind, in the precision of `spec`.

    A complex operation becomes operations on components (table COMPLEX); arithmetic on bools is bit logic.
    """
    counts: dict[str, int] = {}
    for kind, n in kinds.items():
        for real, times in _real(spec, kind).items():
            counts[real] = counts.get(real, 0) + n * times * elements
    return Work.of(spec.precision, NECESSARY, **counts)


def _real(spec: TensorSpec, kind: str) -> Mapping[str, int]:
    if spec.is_complex:
        return COMPLEX.get(kind, {kind: 1})
    if spec.precision.kind == "bool" and kind in ARITHMETIC:
        return {"logic": 1}
    return {kind: 1}


def magnitude(spec: TensorSpec, elements: int) -> Work:
    """|x| is one bit of logic for a real number and √(a² + b²) for a complex one: 2 mul, 1 add, 1 sqrt."""
    if spec.is_complex:
        return Work.of(spec.precision, mul=2 * elements, add=elements, sqrt=elements)
    return Work.of(spec.precision, logic=elements)
