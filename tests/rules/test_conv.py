"""Convolutions against loops that count every multiply-accumulate of the definition, zero padding included."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from priced import macs, products, work
from torch.nn import functional as F

from bitwatt.records import TensorSpec

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


@st.composite
def convolutions(draw: st.DrawFn) -> dict:
    dims, groups = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    small = st.integers(1, 3)
    return {
        "dims": dims,
        "groups": groups,
        "batch": draw(small),
        "channels": (groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 2))),
        "kernel": tuple(draw(small) for _ in range(dims)),
        "size": tuple(draw(st.integers(1, 5)) for _ in range(dims)),
        "stride": draw(small),
        "padding": draw(st.integers(0, 2)),
        "dilation": draw(st.integers(1, 2)),
    }


def _places(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _forward(conv: dict) -> int:
    """y[n, o, p] += x[n, i, p·stride + t·dilation - padding]·w[o, i, t], counted index by index."""
    c_in, c_out = conv["channels"]
    per_group_in, per_group_out = c_in // conv["groups"], c_out // conv["groups"]
    axes = zip(conv["size"], conv["kernel"], strict=True)
    out = [_places(n, k, conv["stride"], conv["padding"], conv["dilation"]) for n, k in axes]
    count = 0
    for _n, o, _p in itertools.product(range(conv["batch"]), range(c_out), itertools.product(*map(range, out))):
        group = o // per_group_out
        inputs = range(group * per_group_in, (group + 1) * per_group_in)
        count += sum(1 for _ in itertools.product(inputs, *map(range, conv["kernel"])))
    return count


def _transposed(conv: dict) -> int:
    """y[n, o, p·stride + t·dilation - padding] += x[n, i, p]·w[i, o, t], counted index by index."""
    c_in, c_out = conv["channels"]
    per_group_in, per_group_out = c_in // conv["groups"], c_out // conv["groups"]
    count = 0
    for _n, i, _p in itertools.product(range(conv["batch"]), range(c_in), itertools.product(*map(range, conv["size"]))):
        group = i // per_group_in
        outputs = range(group * per_group_out, (group + 1) * per_group_out)
        count += sum(1 for _ in itertools.product(outputs, *map(range, conv["kernel"])))
    return count


def _run(conv: dict, functions: dict, weight_channels: tuple[int, int], input_wants: bool = True) -> dict[str, int]:
    x = torch.ones(conv["batch"], conv["channels"][0], *conv["size"], requires_grad=input_wants)
    w = torch.ones(*weight_channels, *conv["kernel"], requires_grad=True)
    options = {name: conv[name] for name in ("stride", "padding", "dilation", "groups")}

    def step() -> None:
        y = functions[conv["dims"]](x, w, None, **options)
        y.backward(torch.ones_like(y))

    return macs(step)


@settings(max_examples=60, deadline=None)
@given(convolutions())
def test_a_convolution_and_both_its_gradients_are_the_loops_count(conv: dict) -> None:
    reach = [conv["dilation"] * (k - 1) + 1 for k in conv["kernel"]]
    assume(all(n + 2 * conv["padding"] >= r for n, r in zip(conv["size"], reach, strict=True)))
    c_in, c_out = conv["channels"]
    expected = _forward(conv)
    # each index tuple is one multiply-accumulate of y, one of dx and one of dw
    assert _run(conv, CONV, (c_out, c_in // conv["groups"])) == {"forward": expected, "backward": 2 * expected}


@settings(max_examples=60, deadline=None)
@given(convolutions())
def test_a_transposed_convolution_and_both_its_gradients_are_the_loops_count(conv: dict) -> None:
    sizes = zip(conv["size"], conv["kernel"], strict=True)
    spans = [(n - 1) * conv["stride"] + conv["dilation"] * (k - 1) + 1 - 2 * conv["padding"] for n, k in sizes]
    assume(all(span > 0 for span in spans))
    c_in, c_out = conv["channels"]
    expected = _transposed(conv)
    assert _run(conv, TRANSPOSED, (c_in, c_out // conv["groups"])) == {"forward": expected, "backward": 2 * expected}


def test_an_input_that_needs_no_gradient_costs_none() -> None:
    conv = {"dims": 2, "groups": 1, "batch": 2, "channels": (3, 4), "kernel": (3, 3), "size": (8, 8)}
    conv |= {"stride": 1, "padding": 1, "dilation": 1}
    # 2·8·8 places, 4 channels, 3·3·3 taps
    assert _run(conv, CONV, (4, 3), input_wants=False) == {"forward": 13824, "backward": 13824}


def test_a_depthwise_convolution_has_a_product_for_each_channel() -> None:
    x, w = torch.ones(2, 8, 10, 10), torch.ones(8, 1, 3, 3)
    # 8 groups; 2·10·10 places, 1 channel, 9 taps
    assert products(lambda: F.conv2d(x, w, padding=1, groups=8)) == {"forward": {(8, 1, 200, 9): 1}}


def test_one_sample_without_a_batch_is_a_batch_of_one() -> None:
    x, w = TensorSpec((3, 9, 9)), TensorSpec((5, 3, 3, 3))
    done = work("aten.conv2d", input=x, weight=w, bias=TensorSpec((5,)), out=(TensorSpec((5, 7, 7)),))
    assert done.macs == 7 * 7 * 5 * 27
    assert [(kind, n) for kind, _, _, n in done.ops] == [("add", 5 * 49)]


@pytest.mark.parametrize("name", ["cudnn_convolution", "miopen_convolution", "_mps_convolution", "mkldnn_convolution"])
def test_every_library_computes_the_same_convolution(name: str) -> None:
    x, w, y = TensorSpec((2, 4, 8, 8)), TensorSpec((6, 2, 3, 3)), TensorSpec((2, 6, 6, 6))
    assert work(f"aten.{name}", self=x, weight=w, groups=2, out=(y,)).macs == 2 * 36 * 6 * 2 * 9


def test_a_convolution_of_nothing_is_nothing() -> None:
    assert macs(lambda: F.conv2d(torch.ones(0, 3, 8, 8), torch.ones(4, 3, 3, 3)))["forward"] == 0


def test_a_bias_adds_to_every_output_and_its_gradient_adds_every_output_up() -> None:
    x, w, b = torch.ones(2, 3, 8, 8), torch.ones(4, 3, 3, 3), torch.ones(4, requires_grad=True)
    spec, grad = TensorSpec(tuple(x.shape)), TensorSpec((2, 4, 6, 6))
    done = work(
        "aten.convolution_backward", grad_output=grad, input=spec, weight=TensorSpec(tuple(w.shape)),
        transposed=False, output_mask=(False, False, b.requires_grad),
    )  # fmt: skip
    assert done.macs == 0
    assert [(kind, n) for kind, _, _, n in done.ops] == [("add", math.prod(grad.shape))]


def test_time_by_batch_by_channel_convolution() -> None:
    x, w, b = torch.ones(10, 2, 3), torch.ones(3, 3, 5), torch.ones(5)
    # 10 places (padded by 1), 2 samples, 5 out, 3·3 taps
    assert macs(lambda: torch.conv_tbc(x, w, b, 1)) == {"forward": 10 * 2 * 5 * 9}


def test_a_deformable_convolution_samples_each_tap_and_then_convolves() -> None:
    x, w, y = TensorSpec((1, 4, 8, 8)), TensorSpec((6, 4, 3, 3)), TensorSpec((1, 6, 6, 6))
    done = work("torchvision.deform_conv2d", input=x, weight=w, use_mask=False, out=(y,))
    taps = 36 * 4 * 9
    assert done.macs == 36 * 6 * 36
    assert {kind: n for kind, _, _, n in done.ops} == {"mul": 8 * taps, "add": 7 * taps + 216}
