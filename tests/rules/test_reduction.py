"""Sums, variances, norms, distances, pooling windows and resampled pictures, against loops that count."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch.nn import functional as F

from rules.capture import Number, kinds, kinds_of, sqrt, tallied, works_of


def test_a_sum_adds_every_element_that_goes_in() -> None:
    x = torch.ones(4, 25)
    assert kinds_of("aten.sum", lambda: x.sum(1)) == {"add": 100}
    assert kinds_of("aten.mean", lambda: x.mean(1)) == {"add": 100, "div": 4}


def test_counting_bools_is_integer_addition() -> None:
    ((kind, precision, _, n),) = works_of(lambda: torch.ones(8, dtype=torch.bool).sum())["aten.sum"].ops
    assert (kind, precision.name, n) == ("add", "int64", 8)


def test_a_variance_takes_two_passes() -> None:
    def written(values):
        mean = sum(values, Number(0)) / len(values)
        squares = Number(0)
        for value in values:
            d = value - mean
            squares = squares + d * d
        return squares / (len(values) - 1)

    row = [0.5, 1.5, -2.0, 4.0, 0.25]
    value, counts = tallied(written, [Number(v) for v in row])
    x = torch.tensor(row).repeat(3, 1)
    assert x.var(1)[0].item() == pytest.approx(value)
    assert kinds_of("aten.var", lambda: x.var(1)) == {kind: 3 * n for kind, n in counts.items()}
    assert kinds_of("aten.std", lambda: x.std(1)) == {kind: 3 * n for kind, n in counts.items()} | {"sqrt": 3}


def test_extremes_compare_and_truth_is_logic() -> None:
    x = torch.randn(4, 25)
    assert kinds_of("aten.amax", lambda: x.amax(1)) == {"compare": 100}
    assert kinds_of("aten.argmax", lambda: x.argmax(1)) == {"compare": 100}
    assert kinds_of("aten.max", lambda: x.max(1)) == {"compare": 100}
    assert kinds_of("aten.any", lambda: (x > 0).any()) == {"logic": 100}


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        (2, {"mul": 100, "add": 100, "sqrt": 4}),
        (1, {"add": 100, "logic": 100}),
        (float("inf"), {"compare": 100, "logic": 100}),
        (2.5, {"pow": 104, "add": 100, "logic": 100}),
    ],
)
def test_a_norm_costs_what_its_power_costs(p: float, expected: dict[str, int]) -> None:
    x = torch.randn(4, 25)
    assert kinds_of("aten.linalg_vector_norm", lambda: torch.linalg.vector_norm(x, p, dim=1)) == expected


def test_the_norm_of_complex_numbers_squares_both_components() -> None:
    z = torch.full((10,), 3 + 4j)
    assert kinds_of("aten.linalg_vector_norm", lambda: torch.linalg.vector_norm(z)) == {"mul": 20, "add": 20, "sqrt": 1}


def test_distances_written_out() -> None:
    def written(a, b):
        out = []
        for x, y in itertools.product(a, b):
            total = Number(0)
            for p, q in zip(x, y, strict=True):
                d = p - q
                total = total + d * d
            out.append(sqrt(total))
        return out

    a, b = torch.rand(5, 3, dtype=torch.float64), torch.rand(4, 3, dtype=torch.float64)
    values, counts = tallied(written, *([[Number(v) for v in row] for row in t.tolist()] for t in (a, b)))
    assert values == pytest.approx(torch.cdist(a, b).flatten().tolist())
    assert kinds_of("aten._cdist_forward", lambda: torch.cdist(a, b)) == counts


def test_many_distances_are_one_matrix_product_and_say_so() -> None:
    a, b = torch.rand(40, 20), torch.rand(30, 20)
    work = works_of(lambda: torch.cdist(a, b))["aten._euclidean_dist"]
    assert work.macs == 40 * 30 * 20
    assert kinds(work)["sqrt"] == 40 * 30


def test_running_sums_add_at_every_place() -> None:
    assert kinds_of("aten.cumsum", lambda: torch.ones(4, 25).cumsum(1)) == {"add": 100}


def test_an_average_pool_adds_its_window_and_divides_once() -> None:
    x = torch.ones(2, 3, 12, 12)
    # 2·3·4·4 results, each 3·3 additions and a division
    assert kinds_of("aten.avg_pool2d", lambda: F.avg_pool2d(x, 3)) == {"add": 96 * 9, "div": 96}


def test_a_max_pool_compares_its_window_and_sends_each_gradient_to_one_place() -> None:
    x = torch.randn(2, 3, 12, 12, requires_grad=True)
    works = works_of(lambda: F.max_pool2d(x, 2).sum().backward())
    assert kinds(works["aten.max_pool2d_with_indices"]) == {"compare": 2 * 3 * 6 * 6 * 4}
    assert kinds(works["aten.max_pool2d_with_indices_backward"]) == {"add": 216, "index": 216}


@pytest.mark.parametrize(("size", "outputs"), [(12, 4), (13, 5), (7, 7), (5, 8)])
def test_adaptive_windows_are_those_that_torch_averages(size: int, outputs: int) -> None:
    # a gradient of the window's own size at each output adds exactly 1 to every element covered: their sum is the count
    x = torch.zeros(1, 2, size, size, requires_grad=True)
    pooled = F.adaptive_avg_pool2d(x, outputs)
    edges = [(i * size // outputs, -(-(i + 1) * size // outputs)) for i in range(outputs)]
    area = torch.tensor([[float((b - a) * (d - c)) for c, d in edges] for a, b in edges])
    pooled.backward(area.expand(1, 2, outputs, outputs))
    covered = round(x.grad.sum().item())
    counts = kinds_of("aten._adaptive_avg_pool2d", lambda: F.adaptive_avg_pool2d(x, outputs))
    assert counts == {"add": covered, "div": 2 * outputs * outputs}


def test_bilinear_resizing_written_out() -> None:
    def blend(a, b, w):
        return a * (1.0 - w) + b * w

    def written(rows, size):
        n = len(rows)
        places = [max(0.0, (i + 0.5) * n / size - 0.5) for i in range(size)]
        return [
            blend(blend(rows[y][x], rows[y][x1], u), blend(rows[y1][x], rows[y1][x1], u), v)
            for y, y1, v in ((int(p), min(int(p) + 1, n - 1), p - int(p)) for p in places)
            for x, x1, u in ((int(p), min(int(p) + 1, n - 1), p - int(p)) for p in places)
        ]

    picture = torch.rand(4, 4, dtype=torch.float64)
    values, counts = tallied(written, [[Number(v) for v in row] for row in picture.tolist()], 8)

    def resize():
        return F.interpolate(picture[None, None], size=(8, 8), mode="bilinear")

    assert values == pytest.approx(resize().flatten().tolist())
    assert kinds_of("aten.upsample_bilinear2d", resize) == counts


def test_nearest_neighbours_are_fetched_not_computed() -> None:
    x = torch.ones(1, 2, 4, 4)
    assert kinds_of("aten.upsample_nearest2d", lambda: F.interpolate(x, scale_factor=2)) == {"index": 128}


def test_trilinear_blends_seven_times() -> None:
    x = torch.ones(1, 1, 2, 2, 2)
    counts = kinds_of("aten.upsample_trilinear3d", lambda: F.interpolate(x, scale_factor=2, mode="trilinear"))
    assert counts == {"mul": 64 * 14, "add": 64 * 7}


def test_folding_adds_every_window_back() -> None:
    columns = torch.ones(1, 9, 16)
    assert kinds_of("aten.col2im", lambda: F.fold(columns, (6, 6), 3)) == {"add": math.prod(columns.shape)}
