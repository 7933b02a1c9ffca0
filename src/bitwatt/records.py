"""The data that flows through bitwatt: what was called, what work that is, and the run that holds it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from bitwatt.about import About
from bitwatt.dtypes import Precision, dtype

if TYPE_CHECKING:
    from bitwatt.fingerprint import Fingerprint
    from bitwatt.folded import Folded
    from bitwatt.ledger import Ledger
    from bitwatt.observed import Observed
    from bitwatt.readings import Metered
    from bitwatt.served import Requests

#: Arithmetic. `mac` is never written directly: it comes from a Product, which keeps its sizes.
ARITHMETIC = frozenset(
    ["add", "mul", "div", "sqrt", "exp", "log", "pow", "sin", "tan", "tanh", "sigmoid", "erf", "special", "fft"]
)
#: Work that is no arithmetic: comparing (also min, max, sign, select), bit logic, format changes, drawing a random
#: number, moving one element by index, one step through text, adding up over a network.
OTHER_KINDS = frozenset(["compare", "logic", "cast", "random", "index", "text", "comm"])
ELEMENTARY = ARITHMETIC | OTHER_KINDS

#: Parts of element-wise work that are told apart: what falls on a mask, what a kernel computes a second time to save
#: memory, and what goes to and from a quantised format (scales, zero points, unpacking, rounding).
NECESSARY, MASKED, RECOMPUTED, QUANTISATION = "", "masked", "recomputed", "quantisation"


class _Hashed:
    """A record that is asked for its hash again and again: it is worked out once."""

    __slots__ = ("_hash",)
    _hash: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            found = hash(attrgetter(*self.__slots__)(self))
            object.__setattr__(self, "_hash", found)
            return found


@dataclass(frozen=True, slots=True)
class TensorSpec(_Hashed):
    """The shape and container of one tensor argument; `nnz` for sparse layouts, `parts` for nested (ragged) ones;
    `columnwise` where columns lie together in memory, as numpy leaves those that were picked from a matrix."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    nnz: int | None = None
    parts: tuple[tuple[int, ...], ...] | None = None
    columnwise: bool = False

    __hash__ = _Hashed.__hash__

    @property
    def numel(self) -> int:
        if self.parts is not None:
            return sum(math.prod(part) for part in self.parts)
        return math.prod(self.shape)

    @property
    def precision(self) -> Precision:
        return dtype(self.dtype).precision

    @property
    def nbytes(self) -> int:
        stored = self.numel if self.nnz is None else self.nnz
        each = dtype(self.dtype).itemsize
        return -(-stored * each.numerator // each.denominator)  # rounded up

    @property
    def is_complex(self) -> bool:
        return self.precision.kind == "complex"

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Op(_Hashed):
    """One distinct call: its name, arguments and facts by name, and what came out. Or many: `folded` is then what is
    left of them, and there are no arguments."""

    name: str
    args: tuple[tuple[str, Any], ...] = ()
    out: tuple[TensorSpec, ...] = ()
    overload: str = ""
    folded: Folded | None = field(default=None, repr=False)

    __hash__ = _Hashed.__hash__

    @property
    def inputs(self) -> Iterator[TensorSpec]:
        """Every tensor among the arguments, those inside lists too."""
        return _tensors(value for _, value in self.args)

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.inputs)) if self.folded is None else str(self.folded)
        return f"{self.name}({inside})"


def _tensors(values: Iterable[Any]) -> Iterator[TensorSpec]:
    for value in values:
        if isinstance(value, TensorSpec):
            yield value
        elif isinstance(value, tuple):
            yield from _tensors(value)


@dataclass(frozen=True, slots=True)
class Product:
    """`batch` matrix products of m x k by k x n. Every multiply-accumulate belongs to one, convolutions included.

    `a` and `b` are what the values of the operands carry (effective precision), `ran` is what the multiplier worked in
    (executed precision) where that is not the wider of them: bfloat16 for a 4-bit weight that is expanded first.
    `masked` and `sparse` are the multiply-accumulates among them (before complex ones count as four) that a mask and
    the zeros of a sparse operand let a kernel leave out.
    """

    batch: int
    m: int
    n: int
    k: int
    a: Precision
    b: Precision
    masked: int = 0
    sparse: int = 0
    recomputed: bool = False
    ran: Precision | None = None

    @property
    def executed(self) -> Precision:
        return self.ran or max(self.a, self.b, key=lambda precision: precision.bits)

    @property
    def components(self) -> int:
        return 4 if "complex" in (self.a.kind, self.b.kind) else 1

    @property
    def macs(self) -> int:
        return self.batch * self.m * self.n * self.k * self.components

    @property
    def visible(self) -> int:
        """Multiply-accumulates that do not fall on a mask."""
        return self.macs - self.masked * self.components

    @property
    def necessary(self) -> int:
        """Multiply-accumulates that fall neither on a mask nor on zeros."""
        return self.visible - self.sparse * self.components


@dataclass(frozen=True, slots=True)
class Work:
    """Elementary operations by kind, precision and part, matrix products with their sizes, and bytes moved.

    Bytes left at None mean: every input read once and every output written once. `estimated` marks an amount that
    depends on data nobody saw.
    """

    ops: tuple[tuple[str, Precision, str, int], ...] = ()
    products: tuple[tuple[Product, int], ...] = ()
    bytes_read: int | None = None
    bytes_written: int | None = None
    estimated: bool = False

    @classmethod
    def of(cls, precision: Precision, part: str = NECESSARY, **counts: int) -> Work:
        """`Work.of(p, add=3, exp=1)`: so many operations of each kind, in one precision."""
        if unknown := counts.keys() - ELEMENTARY:
            raise ValueError(f"not a kind of work: {', '.join(sorted(unknown))}")
        return cls(ops=tuple([(kind, precision, part, int(n)) for kind, n in counts.items() if n]))

    @property
    def macs(self) -> int:
        return sum(product.macs * n for product, n in self.products if not product.recomputed)

    def __add__(self, other: Work) -> Work:
        return Work(
            ops=_merged(self.ops + other.ops) if self.ops and other.ops else self.ops or other.ops,
            products=self.products + other.products,
            bytes_read=_plus(self.bytes_read, other.bytes_read),
            bytes_written=_plus(self.bytes_written, other.bytes_written),
            estimated=self.estimated or other.estimated,
        )

    def __mul__(self, times: int) -> Work:
        return Work(
            ops=tuple((kind, precision, part, n * times) for kind, precision, part, n in self.ops),
            products=tuple((product, n * times) for product, n in self.products),
            bytes_read=None if self.bytes_read is None else self.bytes_read * times,
            bytes_written=None if self.bytes_written is None else self.bytes_written * times,
            estimated=self.estimated,
        )

    __rmul__ = __mul__


def _merged(
    ops: tuple[tuple[str, Precision, str, int], ...],
) -> tuple[tuple[str, Precision, str, int], ...]:
    sums: dict[tuple[str, Precision, str], int] = {}
    for kind, precision, part, n in ops:
        key = (kind, precision, part)
        sums[key] = sums.get(key, 0) + n
    return tuple([(*key, n) for key, n in sums.items()])


def _plus(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else a + b


@dataclass(frozen=True, slots=True)
class Quantised:
    """How a layer's weights, or the values that go into it, are written where their dtype does not say it.

    `precision` is of one value, `effective_bits` includes its share of scales and zero points. `stored` says that they
    are kept so in memory; else they are rounded on the way (quantisation-aware training, casts to float8).
    """

    precision: Precision
    effective_bits: float
    source: str = ""  # the class and attributes that told
    stored: bool = True
    kept_bits: float | None = None  # in memory, scales included, where values take more room than they carry
    assumed: bool = False  # by what_if: nothing in the recorded ops goes to or from the format

    @property
    def memory_bits(self) -> float:
        return self.effective_bits if self.kept_bits is None else self.kept_bits

    @property
    def bits(self) -> float:
        return self.precision.bits


@dataclass(frozen=True, slots=True)
class Layer:
    """What is known of one place in a model: its class, its weights, and how they are written.

    `shapes` are those of its weights as the mathematics sees them, packed or not. `density` is the share of them that
    is not zero. `unknown` says why the width of a layer that looks quantised could not be found; then the dtype stands.
    """

    kind: str
    weight_dtype: str | None = None
    parameters: int = 0
    shapes: tuple[tuple[int, ...], ...] = ()
    weight_bytes: int = 0
    weights: Quantised | None = None
    activations: Quantised | None = None
    density: float = 1.0
    trains: bool = False  # a gradient of its weights is computed
    unknown: str = ""

    @property
    def is_plain(self) -> bool:
        """Nothing but the dtypes of its ops need be known to price them."""
        return self.weights is None and self.activations is None and self.density == 1.0


@dataclass(frozen=True, slots=True)
class Machine:
    """Where a run happened: hardware and versions, as plain text by name."""

    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Axis:
    """One way a job spreads its work: data, tensor, pipeline or expert; over which ranks; and what said so."""

    kind: str
    ranks: str  # as `spread` writes them
    source: str


@dataclass(frozen=True, slots=True)
class Rank:
    """Which process of a job a run is, how the job spreads its work, and when this process waited for the others."""

    rank: int
    world: int
    job: str  # the same for all ranks of one run of the job, and for no others
    local_rank: int = 0
    node: str = ""  # the host's name
    machine: str = ""  # the same for everything that runs on one machine since it was started
    process: str = ""  # its number there and when it began
    axes: tuple[Axis, ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)  # process group -> its ranks
    comm_seconds: Mapping[str, float] = field(default_factory=dict)  # process group -> time inside its calls
    overlap: float | None = None  # of the time that gradients took to add up, the share beside backward
    clock: str = "host"  # or the device whose clock timed the waits
    arrivals: str = ""  # steps, packed by ranks.arrivals
    contents: Mapping[Op, int] = field(default_factory=dict)  # what an op read when first called, as a number


def spread(ranks: Iterable[int]) -> str:
    """Ranks in few letters: `0:8:2` where they are evenly spaced, else one by one."""
    known = list(ranks)
    if len(known) < 2:
        return ",".join(map(str, known))
    evenly = range(known[0], known[-1] + 1, max(1, known[1] - known[0]))
    return f"{evenly.start}:{evenly.stop}:{evenly.step}" if list(evenly) == known else ",".join(map(str, known))


def members(text: str) -> Sequence[int]:
    """The ranks that `spread` wrote."""
    if ":" in text:
        return range(*map(int, text.split(":")))
    return [int(word) for word in text.split(",") if word]


@dataclass(frozen=True, slots=True)
class Replay:
    """How much of a run was counted, how much credited because it was known, and what speaks for that.

    Steps are training steps, or calls of a model where nothing is trained. `looks` are steps that were known and
    counted all the same, `deviation` is the largest difference in FLOPs that one of them found. `assumed` are stretches
    of code that ran unseen before something that nobody expected, `pauses` those that took longer than when they were
    known, by `paused` seconds. `unchecked` are replayed calls with nothing to compare. `interval` is the half-width of
    the 95 % interval of the FLOPs where steps that vary were sampled.
    """

    exactness: str
    counted: int = 0
    replayed: int = 0
    looks: int = 0
    deviated: int = 0
    assumed: int = 0
    pauses: int = 0
    agreed: Mapping[str, int] = field(default_factory=dict)
    disagreed: Mapping[str, int] = field(default_factory=dict)
    deviation: float = 0.0
    interval: float | None = None
    unchecked: int = 0
    paused: float = 0.0

    @property
    def agrees(self) -> bool:
        """Marks, checksums and looks all agree."""
        return not (self.deviated or self.assumed or any(self.disagreed.values()) or self.interval)

    @property
    def unwatched(self) -> int:
        """Stretches of code between events that ran unseen, with no checksum but their graph nodes. On CUDA the
        allocator's totals speak for them."""
        vouched = self.agreed.get("code between them, by allocations", 0)
        return max(self.agreed.get("code between them", 0) - vouched, 0)

    @property
    def exact(self) -> bool:
        return self.agrees and not self.unwatched and not self.unchecked


@dataclass(frozen=True, eq=False)
class Run:
    """One finished measurement: what was called, where and when, on which machine. It holds no prices."""

    id: str
    name: str
    started: str  # ISO 8601, UTC
    seconds: float
    ledger: Ledger
    machine: Machine
    phase_seconds: Mapping[str, float] = field(default_factory=dict)
    layers: Mapping[str, Layer] = field(default_factory=dict)
    command: str = ""
    status: str = "ok"  # ok, failed: <exception>, interrupted, under way
    notes: tuple[str, ...] = ()
    rank: Rank | None = None  # where the run is one process of a job of several
    device_seconds: Mapping[str, float] = field(default_factory=dict)  # by phase, as a GPU's own clock tells
    replay: Replay | None = None  # where steps that were known may have been credited instead of counted
    meter: Metered | None = None  # what it used of the machine, where that was read
    requests: Requests | None = None  # what it served
    observed: Observed | None = None  # what it processed, when its phases ran, what other meters said
    about: About = field(default_factory=About)  # tags, parameters, metrics, code, parent
    deployment: Mapping[str, Any] | None = None  # what the deployment lab found, as its document says it

    @property
    def fingerprint(self) -> Fingerprint:
        """FLOPs and BOPs per phase with a digest of the matrix work: equal programs have equal ones on every device."""
        from bitwatt.fingerprint import fingerprint

        return fingerprint(self)

    def _repr_html_(self) -> str:
        from bitwatt.reports.html import fragment

        return fragment(self)
