"""Many sizes of one op become one row, and every number stays what it was."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace

import jsonschema
import pytest

from bitwatt import store
from bitwatt.cli.explain import _seen
from bitwatt.costs.bops import BOPS
from bitwatt.dtypes import Precision, dtype
from bitwatt.fingerprint import fingerprint, summary
from bitwatt.folded import Folded, Sum, Tally
from bitwatt.folding import LIMIT, Folder, note
from bitwatt.ledger import Ledger, Row
from bitwatt.pricing import Charge, CostModel, Entry, cost_models, entries_of, totals
from bitwatt.records import Layer, Op, Product, Quantised
from bitwatt.reports.json import render as render_json
from bitwatt.reports.model import View
from bitwatt.reports.text import render
from factories import add_op, make_run, mm_op, spec
from test_store import SCHEMA

KEYS = ("phase", "scope", "op", "kind", "precision", "part")
INT4 = Quantised(Precision("int4", "int", 4), 4.5, "told")
QUANTISED = Layer("Linear4bit", "uint8", 128, ((16, 8),), 72, INT4, density=0.5, trains=True)


def attention(length: int) -> Op:
    return Op("toy.causal_attention", (("q", spec(4, length, 8)),), (spec(4, length, 8),))


def rows() -> list[Row]:
    """Text of lengths 1 to 39 through a plain and a quantised layer, attention, and ops of every status."""
    found = []
    for n in range(1, 40):
        for scope in ("plain", "quantised"):
            found += [
                Row("forward", scope, mm_op(n, 8, 16), 1 + n % 3),
                Row("backward", scope, mm_op(n, 16, 8), 1 + n % 3),
                Row("backward", scope, mm_op(8, n, 16), 2),
                Row("forward", scope, add_op(n, 16), n),
            ]
        found += [
            Row("forward", "", attention(n), 2),
            Row("forward", "", mm_op(n, n, n, "bfloat16"), 1),
            Row("forward", "", Op("toy.unheard_of", (("a", spec(n)),)), n),
            Row("forward", "", Op("toy.broken", (("a", spec(n)),)), n),
            Row("forward", "", Op("toy.view", (("a", spec(n)),)), n),
            Row("preprocess", "", Op("toy.tokenize", (("characters", n),)), n),
        ]
    return found


LAYERS = {"quantised": QUANTISED, "plain": Layer("Linear", "float32", 128, ((16, 8),), 512)}


def both(limit: int = 10):
    run = make_run(rows(), layers=LAYERS)
    return run, replace(run, ledger=Folder(LAYERS).ledger(run.ledger, limit))


def test_every_model_gives_what_it_gave():
    run, folded = both()
    assert len(run.ledger) > 400
    assert len(folded.ledger) == 12
    for model in cost_models():
        before, after = totals(run, model), totals(folded, model)
        assert after.by(*KEYS) == before.by(*KEYS), model
        assert (after.total, after.missing, after.coverage) == (before.total, before.missing, before.coverage), model


def test_the_fingerprint_and_the_summary_are_the_same():
    run, folded = both()
    assert fingerprint(folded) == fingerprint(run)
    assert summary(folded) == summary(run)


def test_it_makes_no_difference_when_and_in_how_many_parts_calls_are_folded():
    run, folded = both()
    all_rows = list(run.ledger)
    bit_by_bit = Ledger()
    for start in range(0, len(all_rows), 37):
        bit_by_bit += Folder(LAYERS).ledger(Ledger(all_rows[start : start + 37]), 1)
        bit_by_bit = Folder(LAYERS).ledger(bit_by_bit, 1)
    again = replace(run, ledger=bit_by_bit)
    for model in cost_models():
        assert totals(again, model).by(*KEYS) == totals(folded, model).by(*KEYS), model
    assert fingerprint(again) == fingerprint(run)
    assert len(bit_by_bit) <= len(folded.ledger) + 2  # an op of a few sizes alone stays as it is


def test_ledgers_of_folded_rows_add_scale_and_nest():
    run, folded = both()
    twice = folded.ledger + folded.ledger
    assert len(twice) == len(folded.ledger)
    assert totals(replace(folded, ledger=twice)).total == 2 * totals(run).total
    assert totals(replace(folded, ledger=folded.ledger * 3)).coverage.counted == 3 * totals(run).coverage.counted
    assert {row.phase for row in folded.ledger.within("epoch")} == {
        "epoch/forward", "epoch/backward", "epoch/preprocess"
    }  # fmt: skip


def test_short_ledgers_and_ops_of_few_sizes_stay_as_they_are():
    ledger = Ledger(rows())
    assert Folder(LAYERS).ledger(ledger) is ledger
    assert len(ledger) < LIMIT
    few = Ledger([*(Row("forward", "", mm_op(n, 2, 3), 1) for n in range(1, 8)), Row("forward", "", add_op(2), 1)])
    assert Folder({}).ledger(few, 1) == few


def test_products_keep_the_sizes_that_they_share():
    tally = Tally()
    of = dtype("float32").precision
    for rows_in, times in ((5, 2), (7, 1), (11, 4)):
        op = mm_op(rows_in, 8, 16)
        tally.add(Folded(1, 1, op, op, (1, 1), products=(Sum(Product(1, rows_in, 16, 8, of, of)),)), times)
    (linear,) = tally.folded().products
    assert (linear.product.m, linear.product.n, linear.product.k, linear.varied) == (2 * 5 + 7 + 4 * 11, 16, 8, "m")


def test_a_model_that_reads_sizes_and_is_new_misses_folded_rows_rather_than_guess():
    def charges(entry: Entry):
        yield Charge("mac", "float32", entry.op.out[0].numel)

    late = CostModel("late", "x", "", "", charges)
    _, folded = both()
    assert totals(folded, late).total == 0
    assert totals(folded, late).coverage.counted == 0
    calls = sum(row.calls for row in rows() if row.op.name == "toy.mm")
    assert totals(folded, late).missing["toy.mm"] == calls
    assert BOPS.adds_up


def test_a_run_of_folded_rows_is_kept_and_follows_the_schema(tmp_path):
    _, folded = both()
    path = store.save(folded, tmp_path)
    back = store.load(path)
    assert back.ledger == folded.ledger
    assert [row.op.folded for row in back.ledger] == [row.op.folded for row in folded.ledger]
    body = json.loads(zlib.decompress(path.read_bytes().partition(b"\n")[2]))
    rows_of_it = {**SCHEMA, "$ref": "#/$defs/body/properties/folded"}
    jsonschema.Draft202012Validator(rows_of_it).validate(body["folded"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(rows_of_it).validate([[*body["folded"][0][:4], {"calls": 1}]])
    assert path.stat().st_size < store.save(replace(make_run(rows()), id="long"), tmp_path).stat().st_size


def test_reports_and_explanations_speak_of_sizes():
    run, folded = both()
    remark = note(folded.ledger)
    assert note(run.ledger) is None
    assert "calls of up to" in remark
    text = render(View(replace(folded, notes=(remark,))), by="op")
    assert "folded into 12 rows" in " ".join(text.split())
    assert render_json(View(folded)).replace(folded.id, "") == render_json(View(run)).replace(run.id, "")
    entries = [entry for entry in entries_of(folded.ledger, LAYERS) if entry.op.name == "toy.add"]
    told = "\n".join(_seen(folded, entries))
    assert "up to 39 distinct shapes" in told
    assert "up to 39 sizes: (float32[1,16]) to (float32[39,16])" in told


def test_ternary_widths_are_rounded_once_for_all():
    ternary = Quantised(Precision("ternary", "int", 1.58), 1.58, "told")
    layers = {"fc": replace(QUANTISED, weights=ternary, activations=ternary)}
    run = make_run([Row("forward", "fc", mm_op(n, 8, 16), 1) for n in range(1, 40)], layers=layers)
    folded = replace(run, ledger=Folder(layers).ledger(run.ledger, 1))
    for model in cost_models():
        assert totals(folded, model).total == pytest.approx(totals(run, model).total, abs=39), model
