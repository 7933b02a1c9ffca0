"""Which layer made which autograd node: breakpoints of the sequence number at every change of scope."""

from __future__ import annotations

from array import array
from bisect import bisect_right

#: Oldest breakpoints are dropped beyond this: about a hundred steps of a thousand layers.
LIMIT = 400_000

#: A stretch of a trail that was learned: numbers counted from its beginning, the scopes from each on, and after how
#: many it begins anew (0: it does not).
Stretch = tuple[tuple[int, ...], tuple[str, ...], int]
NOTHING: Stretch = ((), (), 0)


class Trail:
    """Nodes with numbers from seqs[i] up to seqs[i+1] were made in scopes[i], or as that stretch tells. Numbers grow
    within a thread."""

    __slots__ = ("scopes", "seqs")

    def __init__(self) -> None:
        self.seqs = array("q")
        self.scopes: list[str | Stretch] = []

    def mark(self, seq: int, scope: str | Stretch) -> None:
        seqs = self.seqs
        if seqs and seqs[-1] >= seq:
            self.scopes[-1] = scope
        elif not self.scopes or self.scopes[-1] != scope or type(scope) is tuple:
            self.scopes.append(scope)  # first: an interrupt in between leaves one too many, and none too few
            seqs.append(seq)
            if len(seqs) > LIMIT:
                del seqs[: LIMIT // 2], self.scopes[: LIMIT // 2]

    def find(self, seq: int) -> str | None:
        """The scope of node `seq`, None where it is older than the trail."""
        at = bisect_right(self.seqs, seq) - 1
        if at < 0:
            return None
        scope = self.scopes[at]
        return scope if type(scope) is str else _inside(scope, seq - self.seqs[at])  # type: ignore[arg-type]

    def stretch(self, begin: int, end: int) -> Stretch:
        """The trail from one number up to another, to be marked again when the same code runs unseen."""
        first = max(bisect_right(self.seqs, begin) - 1, 0)
        found = [
            (max(seq - begin, 0), scope) for seq, scope in zip(self.seqs[first:], self.scopes[first:], strict=False)
        ]
        plain = [(seq, scope) for seq, scope in found if type(scope) is str and seq < end - begin]
        return tuple([seq for seq, _ in plain]), tuple([scope for _, scope in plain]), 0


def _inside(stretch: Stretch, offset: int) -> str:
    if stretch[2]:
        offset %= stretch[2]
    at = bisect_right(stretch[0], offset) - 1
    return stretch[1][at] if at >= 0 else ""


def chained(parts: list[tuple[int, Stretch]]) -> Stretch:
    """One stretch of several in a row, each with the count of nodes it made; and then again."""
    seqs: list[int] = []
    scopes: list[str] = []
    begin = 0
    for nodes, (offsets, names, _) in parts:
        seqs += [begin + offset for offset in offsets]
        scopes += names
        begin += nodes
    return tuple(seqs), tuple(scopes), begin
