"""Records remember their hash, and nothing else changes by that."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields, replace

from bitwatt.records import Op, TensorSpec


def test_a_hash_is_remembered_and_belongs_to_one_content():
    asked = []

    class Told(str):
        def __hash__(self):
            asked.append(1)
            return str.__hash__(self)

    op = Op("sum", (("x", TensorSpec((3, 4))), ("how", Told("all"))), (TensorSpec((3,)),))
    same = Op("sum", (("x", TensorSpec((3, 4))), ("how", "all")), (TensorSpec((3,)),))
    assert op == same
    assert [hash(op), hash(op)] == [hash(same)] * 2
    assert asked == [1]
    assert len({op, same, replace(op, name="mean"), replace(op, out=(TensorSpec((4,)),))}) == 3
    assert hash(TensorSpec((3, 4))) != hash(TensorSpec((3, 4), "float64"))


def test_copies_take_no_hash_along():
    """That of text is another one in each process."""
    op = Op("sum", (("x", TensorSpec((3, 4))),))
    hash(op)
    for other in (pickle.loads(pickle.dumps(op)), copy.deepcopy(op), replace(op)):
        assert not hasattr(other, "_hash")
        assert not hasattr(dict(other.args)["x"], "_hash") or dict(other.args)["x"] is dict(op.args)["x"]
        assert (other, hash(other)) == (op, hash(op))
    assert [field.name for field in fields(op)] == ["name", "args", "out", "overload", "folded"]
