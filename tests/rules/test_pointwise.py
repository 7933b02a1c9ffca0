"""Element-wise arithmetic: real, complex, integer, bool, broadcast, cast, copied, compared."""

from __future__ import annotations

import pytest
import torch

from bitwatt.dtypes import DTYPES
from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import TensorSpec
from rules.capture import Number, cos, cosh, exp, kinds, kinds_of, sin, sinh, sqrt, tallied, works_of


def test_adding_is_one_operation_and_scaling_first_is_two() -> None:
    a, b = torch.ones(6, 5), torch.ones(5)
    assert kinds_of("aten.add", lambda: a + b) == {"add": 30}  # broadcast: the result has 6·5 elements
    assert kinds_of("aten.add", lambda: torch.add(a, b, alpha=0.3)) == {"add": 30, "mul": 30}
    assert kinds_of("aten.sub", lambda: torch.sub(a, b, alpha=-1)) == {"add": 30}


@pytest.mark.parametrize(
    ("exponent", "expected"),
    [
        (2, {"mul": 1}),
        (3.0, {"mul": 2}),
        (0.5, {"sqrt": 1}),
        (-0.5, {"sqrt": 1, "div": 1}),
        (-1, {"div": 1}),
        (1.7, {"pow": 1}),
    ],
)
def test_a_power_is_the_products_and_roots_that_make_it(exponent: float, expected: dict[str, int]) -> None:
    assert kinds_of("aten.pow", lambda: torch.ones(7) ** exponent) == {kind: 7 * n for kind, n in expected.items()}


def test_a_power_of_tensors_is_a_power() -> None:
    assert kinds_of("aten.pow", lambda: torch.ones(7) ** torch.full((7,), 2.0)) == {"pow": 7}


def test_a_sign_flip_and_a_rounding_are_no_flops() -> None:
    x = torch.randn(9)
    assert kinds_of("aten.neg", lambda: -x) == {"logic": 9}
    assert kinds_of("aten.abs", lambda: x.abs()) == {"logic": 9}
    assert kinds_of("aten.floor", lambda: x.floor()) == {"cast": 9}


def test_the_result_decides_the_precision_of_arithmetic_and_the_input_that_of_a_comparison() -> None:
    half, single = torch.ones(4, dtype=torch.bfloat16), torch.ones(4)
    ((_, precision, _, _),) = works_of(lambda: half * single)["aten.mul"].ops
    assert precision.name == "float32"
    ((kind, precision, _, n),) = works_of(lambda: half > 0)["aten.gt"].ops
    assert (kind, precision.name, n) == ("compare", "bfloat16", 4)


def test_arithmetic_on_bools_is_logic() -> None:
    flags = torch.ones(5, dtype=torch.bool)
    assert kinds_of("aten.mul", lambda: flags * flags) == {"logic": 5}


def test_dividing_integers_truly_is_division_in_floating_point() -> None:
    ((kind, precision, _, n),) = works_of(lambda: torch.ones(3, dtype=torch.int64) / 2)["aten.div"].ops
    assert (kind, precision.name, n) == ("div", "float32", 3)


def test_clamping_is_a_compare_for_each_bound() -> None:
    x = torch.ones(8)
    assert kinds_of("aten.clamp", lambda: x.clamp(0, 1)) == {"compare": 16}
    assert kinds_of("aten.clamp", lambda: x.clamp(min=0)) == {"compare": 8}


def test_interpolating_is_a_difference_a_product_and_a_sum() -> None:
    def written(a, b):
        return a + 0.25 * (b - a)

    value, counts = tallied(written, Number(1.0), Number(3.0))
    start, end = torch.full((6,), 1.0), torch.full((6,), 3.0)
    assert torch.lerp(start, end, 0.25)[0].item() == value
    assert kinds_of("aten.lerp", lambda: torch.lerp(start, end, 0.25)) == {kind: 6 * n for kind, n in counts.items()}


def _complex_product(a, b, c, d):
    return a * c - b * d, a * d + b * c


def _complex_quotient(a, b, c, d):
    size = c * c + d * d
    return (a * c + b * d) / size, (b * c - a * d) / size


def _complex_exp(a, b, c, d):
    size = exp(a)
    return size * cos(b), size * sin(b)


def _complex_sin(a, b, c, d):
    return sin(a) * cosh(b), cos(a) * sinh(b)


@pytest.mark.parametrize(
    ("name", "written", "function"),
    [
        ("aten.mul", _complex_product, lambda x, y: x * y),
        ("aten.div", _complex_quotient, lambda x, y: x / y),
        ("aten.exp", _complex_exp, lambda x, y: x.exp()),
        ("aten.sin", _complex_sin, lambda x, y: x.sin()),
    ],
)
def test_a_complex_operation_is_the_real_ones_it_is_made_of(name: str, written, function) -> None:
    x, y = torch.full((5,), 0.5 + 0.7j), torch.full((5,), 1.5 - 0.2j)
    (real, imaginary), counts = tallied(written, Number(0.5), Number(0.7), Number(1.5), Number(-0.2))
    assert complex(real, imaginary) == pytest.approx(function(x, y)[0].item(), rel=1e-5)
    assert kinds_of(name, lambda: function(x, y)) == {kind: 5 * n for kind, n in counts.items()}


def test_the_size_of_a_complex_number_is_a_root_of_two_squares() -> None:
    value, counts = tallied(lambda a, b: sqrt(a * a + b * b), Number(3.0), Number(4.0))
    z = torch.full((5,), 3 + 4j)
    assert z.abs()[0].item() == pytest.approx(value)
    assert kinds_of("aten.abs", z.abs) == {kind: 5 * n for kind, n in counts.items()}


def test_a_complex_component_keeps_its_own_bits() -> None:
    ((_, precision, _, _),) = pointwise(TensorSpec((2,), "complex64"), 2, add=1).ops
    assert precision == DTYPES["complex64"].precision
    assert precision.bits == 32


def test_a_cast_counts_elements_and_both_formats_bytes() -> None:
    work = works_of(lambda: torch.ones(10).to(torch.bfloat16))["aten._to_copy"]
    assert kinds(work) == {"cast": 10}
    assert (work.bytes_read, work.bytes_written) == (40, 20)


def test_copying_over_a_tensor_reads_the_source_only_and_casts_where_formats_differ() -> None:
    target, source = torch.zeros(10), torch.ones(10, dtype=torch.float64)
    work = works_of(lambda: target.copy_(source))["aten.copy_"]
    assert kinds(work) == {"cast": 10}
    assert (work.bytes_read, work.bytes_written) == (80, 40)
    assert kinds_of("aten.copy_", lambda: target.copy_(torch.ones(10))) == {}


@pytest.mark.parametrize("function", [lambda x: x.clone(), lambda x: torch.cat([x, x]), lambda x: x.repeat(3)])
def test_moving_data_is_no_arithmetic_but_is_bytes(function) -> None:
    x = torch.ones(10)
    (work,) = works_of(lambda: function(x)).values()
    assert work.ops == ()
    assert work.bytes_read > 0
    assert work.bytes_written == function(x).numel() * 4


def test_a_view_moves_nothing() -> None:
    x = torch.ones(4, 6)
    works = works_of(lambda: x.t().unsqueeze(0).expand(3, 6, 4)[1].detach())
    assert len(works) >= 4
    assert all(work.ops == () and work.bytes_read == work.bytes_written == 0 for work in works.values())


def test_filling_writes_and_setting_memory_aside_does_not() -> None:
    works = works_of(lambda: (torch.zeros(10), torch.empty(10), torch.empty(10).fill_(3)))
    assert [works[name].bytes_written for name in ("aten.zeros", "aten.empty", "aten.fill_")] == [40, 0, 40]
    assert works["aten.fill_"].bytes_read == 0


def test_a_special_function_is_one_operation() -> None:
    x = torch.full((4,), 0.5)
    assert kinds_of("aten.digamma", x.digamma) == {"special": 4}
    assert kinds_of("aten.special_i1", lambda: torch.special.i1(x)) == {"special": 4}


def test_a_sparse_tensor_counts_the_elements_it_stores() -> None:
    sparse = torch.eye(50).to_sparse()
    assert kinds_of("aten.mul", lambda: sparse * 2.0) == {"mul": 50}
