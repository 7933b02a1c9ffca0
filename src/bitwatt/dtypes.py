"""The number formats: how many bits a value carries, and how many bytes its container takes."""

from dataclasses import dataclass
from fractions import Fraction

from bitwatt.errors import UnknownNameError


@dataclass(frozen=True, slots=True)
class Precision:
    """The bits and kind of a value. For complex numbers: of one component, since work is counted on components."""

    name: str
    kind: str  # float, int, complex, bool, bits
    bits: float  # whole but for ternary values, which carry log2 3

    def __hash__(self) -> int:  # sums of work are kept by precision: it is asked for often, and names differ
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class DType:
    """A container: the precision of the values in it and the bytes one element takes (a fraction for packed ones)."""

    precision: Precision
    itemsize: Fraction


def _table() -> dict[str, DType]:
    table: dict[str, DType] = {}

    def add(kind: str, bits: float, itemsize: Fraction | int, *names: str) -> None:
        for name in names:
            table[name] = DType(Precision(name, kind, bits), Fraction(itemsize))

    add("float", 64, 8, "float64")
    add("float", 32, 4, "float32")
    add("float", 16, 2, "float16", "bfloat16")
    add("float", 8, 1, "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
    add("float", 4, 1, "float4_e2m1fn_x2")  # two values in each byte-sized element
    add("complex", 64, 16, "complex128")
    add("complex", 32, 8, "complex64")
    add("complex", 16, 4, "complex32")
    for width, size in ((8, 1), (16, 2), (32, 4), (64, 8)):
        add("int", width, size, f"int{width}", f"uint{width}")
    for width in range(1, 8):  # torch keeps each sub-byte integer in a byte of its own
        add("int", width, 1, f"int{width}", f"uint{width}")
    add("bool", 1, 1, "bool")
    add("int", 8, 1, "qint8", "quint8")
    add("int", 32, 4, "qint32")
    add("int", 4, Fraction(1, 2), "quint4x2")
    add("int", 2, Fraction(1, 4), "quint2x4")
    add("float", 4, 1, "float4_e2m1")
    packed = (("float4_e2m1", 2), ("int4", 2), ("uint4", 2), ("int2", 4), ("uint2", 4))
    for name, per_byte in packed:  # ONNX keeps several in a byte, and counts them one by one
        table[f"{name}x{per_byte}"] = DType(table[name].precision, Fraction(1, per_byte))
    add("bits", 64, 8, "object")  # a reference to something that is no number
    add("bits", 8, 1, "bits8")
    add("bits", 16, 2, "bits16")
    add("bits", 1, 1, "bits1x8")
    add("bits", 2, 1, "bits2x4")
    add("bits", 4, 1, "bits4x2")
    return table


DTYPES = _table()


def dtype(name: str) -> DType:
    """The format called `name`. One nobody has described is an error, never a guess: its ops are then missing."""
    known = DTYPES.get(name)
    if known is None:
        raise UnknownNameError(f"the number format {name!r} is not known; its width belongs into bitwatt/dtypes.py")
    return known
