"""torchvision's operators: deformable convolution, pooling of regions, suppression of overlapping boxes."""

import math
from typing import Any

from bitwatt.formulas.linalg import bias_add
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._products import Specs, named
from bitwatt.rules.aten.conv import convolved, convolved_backward

#: One bilinear sample: four weights of two factors (4 mul, 4 add), four values weighed and added up (4 mul, 3 add).
SAMPLE = {"mul": 8, "add": 7}


def _sampled(spec: TensorSpec, samples: int) -> Work:
    return Work.of(spec.precision, mul=SAMPLE["mul"] * samples, add=SAMPLE["add"] * samples)


@rule("torchvision.deform_conv2d", family="conv")
def deform_conv2d(
    input: TensorSpec, weight: TensorSpec, out: Specs, mask: TensorSpec | None = None, use_mask: bool = True, **_: Any
) -> Work:
    """A convolution on samples taken between pixels (Dai et al. 2017, 1703.06211): 8 mul, 7 add for each tap, 1 mul for
    its mask, then the multiply-accumulates of a convolution and the bias."""
    taps = _taps(input, weight, out[0])
    work = convolved(input, weight, weight, out[0], transposed=False) + _sampled(input, taps)
    return work + Work.of(input.precision, mul=taps * use_mask)


@rule("torchvision._deform_conv2d_backward", family="conv")
def deform_conv2d_backward(
    grad: TensorSpec, input: TensorSpec, weight: TensorSpec, use_mask: bool = True, **_: Any
) -> Work:
    """The convolution's gradients, and the sampling's: once for the pixels, once for each coordinate."""
    taps = _taps(input, weight, grad)
    work = convolved_backward(grad, input, weight, False, (True, True, True)) + _sampled(input, 3 * taps)
    return work + Work.of(input.precision, mul=2 * taps * use_mask)


def _taps(input: TensorSpec, weight: TensorSpec, out: TensorSpec) -> int:
    """Every place of the output reads each input channel at every tap."""
    places = out.shape[0] * math.prod(out.shape[2:])
    return places * input.shape[1] * math.prod(weight.shape[2:])


@rule("torchvision.roi_align", "torchvision.ps_roi_align", family="pool")
def roi_align(out: Specs, sampling_ratio: int = -1, **_: Any) -> Work:
    """The mean of sampling_ratio² bilinear samples in each bin (He et al. 2017, section 3); the ratio that adapts to
    the size of a region is taken as 2."""
    n, ratio = out[0].numel, sampling_ratio if sampling_ratio > 0 else 2
    work = _sampled(out[0], n * ratio * ratio) + Work.of(out[0].precision, add=n * ratio * ratio, div=n)
    return Work(work.ops, estimated=sampling_ratio <= 0)


@rule(*named("_roi_align_backward _ps_roi_align_backward", "torchvision"), family="pool")
def roi_align_backward(grad: TensorSpec, sampling_ratio: int = -1, **_: Any) -> Work:
    """Each gradient spread over four pixels for every sample: 8 mul, 7 add."""
    ratio = sampling_ratio if sampling_ratio > 0 else 2
    work = _sampled(grad, grad.numel * ratio * ratio)
    return Work(work.ops, estimated=sampling_ratio <= 0)


@rule("torchvision.roi_pool", "torchvision.ps_roi_pool", family="pool")
def roi_pool(input: TensorSpec, out: Specs, **_: Any) -> Work:
    """A maximum over each bin, whose size is data: every pixel of a map once for each region."""
    regions = out[0].shape[0]
    work = Work.of(input.precision, compare=regions * math.prod(input.shape[1:]))
    return Work(work.ops, estimated=True)


@rule(*named("_roi_pool_backward _ps_roi_pool_backward", "torchvision"), family="pool")
def roi_pool_backward(grad: TensorSpec, **_: Any) -> Work:
    """Each gradient added at the place of its maximum."""
    return bias_add(grad.numel, grad.precision)


@rule("torchvision.nms", family="other")
def nms(dets: TensorSpec, **_: Any) -> Work:
    """Every pair of boxes: the overlap's sides (2 add, 4 compare) and area (1 mul), the union (2 add), their ratio
    (1 div) against the threshold. Pairs behind a suppressed box are left out by the kernel, which is data."""
    boxes = dets.shape[0]
    pairs = boxes * (boxes - 1) // 2
    work = Work.of(dets.precision, add=4 * pairs + 2 * boxes, mul=pairs + boxes, div=pairs, compare=5 * pairs)
    return Work(work.ops, estimated=True)
