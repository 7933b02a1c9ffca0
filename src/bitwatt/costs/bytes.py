"""Memory traffic: what moved, and what would move if quantised operands stayed as they are kept."""

from collections.abc import Iterable

from bitwatt.pricing import Charge, Entry, cost_model


def _moved(entry: Entry) -> int:
    assert entry.work is not None
    return (entry.work.bytes_read or 0) + (entry.work.bytes_written or 0)


@cost_model("bytes", unit="B", source="sizes of the arguments and results", outside=(), adds_up=True)
def BYTES(entry: Entry) -> Iterable[Charge]:
    """Every input of a call read once and every output written once, in the containers they came in; no cache."""
    yield Charge("moved", "", _moved(entry))


@cost_model(
    "bytes:effective",
    unit="B",
    source="as bytes, with quantised operands at their effective bits",
    outside=(),
    adds_up=True,
)
def EFFECTIVE_BYTES(entry: Entry) -> Iterable[Charge]:
    """As bytes, but the weights of a quantised layer count what they are kept in, scales and zero points included, and
    work that only goes to and from the format moves nothing: what a kernel that reads the packed weights would move."""
    yield Charge("moved", "", _moved(entry) if entry.bytes_effective is None else entry.bytes_effective)
