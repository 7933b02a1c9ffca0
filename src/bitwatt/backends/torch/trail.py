"""Which layer made which autograd node: breakpoints of the sequence number at every change of scope."""

from __future__ import annotations

from bisect import bisect_right

#: Oldest breakpoints are dropped beyond this: about a hundred steps of a thousand layers.
LIMIT = 400_000


class Trail:
    """Nodes with numbers from seqs[i] up to seqs[i+1] were made in scopes[i]. Numbers grow within a thread."""

    __slots__ = ("scopes", "seqs")

    def __init__(self) -> None:
        self.seqs: list[int] = []
        self.scopes: list[str] = []

    def mark(self, seq: int, scope: str) -> None:
        seqs = self.seqs
        if seqs and seqs[-1] >= seq:
            self.scopes[-1] = scope
        elif not self.scopes or self.scopes[-1] != scope:
            seqs.append(seq)
            self.scopes.append(scope)
            if len(seqs) > LIMIT:
                del seqs[: LIMIT // 2], self.scopes[: LIMIT // 2]

    def find(self, seq: int) -> str | None:
        """The scope of node `seq`, None where it is older than the trail."""
        at = bisect_right(self.seqs, seq) - 1
        return self.scopes[at] if at >= 0 else None
