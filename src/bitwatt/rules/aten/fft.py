"""Fourier transforms."""

import math
from collections.abc import Sequence
from typing import Any

from bitwatt.formulas.fft import fft
from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._tables import Specs, moved, named


def _lengths(spec: TensorSpec, dim: Sequence[int]) -> tuple[int, ...]:
    return tuple(spec.shape[d] for d in dim)


@rule("aten._fft_c2c", family="fft")
def complex_to_complex(self: TensorSpec, dim: Sequence[int], normalization: int = 0, **_: Any) -> Work:
    """5·N·log2 n real operations (3 add, 2 mul) over N elements, n the product of the lengths; scaling 2 mul each."""
    return fft(self, self.numel, _lengths(self, dim), scaled=bool(normalization))


@rule("aten._fft_r2c", family="fft")
def real_to_complex(self: TensorSpec, dim: Sequence[int], normalization: int = 0, **_: Any) -> Work:
    """2.5·N·log2 n over N real elements: half of a complex transform, the spectrum being symmetric."""
    return fft(self, self.numel, _lengths(self, dim), real=True, scaled=bool(normalization))


@rule("aten._fft_c2r", family="fft")
def complex_to_real(out: Specs, dim: Sequence[int], normalization: int = 0, **_: Any) -> Work:
    """2.5·N·log2 n over N real results: half of a complex transform, the spectrum being symmetric."""
    return fft(out[0], out[0].numel, _lengths(out[0], dim), real=True, scaled=bool(normalization))


@rule("aten.stft", family="fft")
def stft(self: TensorSpec, out: Specs, n_fft: int, window: Any = None, **_: Any) -> Work:
    """Frames of n, weighed (1 mul per element) and transformed: 2.5·n·log2 n each for a real signal."""
    frames = out[0].numel // math.prod(out[0].shape[-2:-1]) if out[0].is_complex else out[0].numel // 2
    elements = frames * n_fft
    weighed = pointwise(self, elements, mul=int(isinstance(window, TensorSpec)))
    return weighed + fft(self, elements, (n_fft,), real=not self.is_complex)


_DIMS = {"": (-1,), "2": (-2, -1), "n": None}


def _composite(suffix: str) -> None:
    def function(self: TensorSpec, out: Specs, dim: Any = None, norm: str | None = None, **_: Any) -> Work:
        whole = max(self, out[0], key=lambda spec: spec.numel)  # the real side of a real transform is the longer one
        axes = (dim,) if isinstance(dim, int) else dim or _DIMS[suffix] or range(len(whole.shape))
        real = not (self.is_complex and out[0].is_complex)
        return fft(whole, whole.numel, _lengths(whole, tuple(axes)), real=real, scaled=norm is not None)

    named(
        " ".join(f"fft_{kind}fft{suffix}" for kind in ("", "i", "r", "ir", "h", "ih")),
        "5·N·log2 n real operations (3 add, 2 mul) over N elements; half where one side is real.",
        function,
        "fft",
    )


for _suffix in _DIMS:
    _composite(_suffix)


@rule("aten.istft", family="fft")
def istft(self: TensorSpec, n_fft: int, **_: Any) -> Work:
    """Frames of n transformed back (2.5·n·log2 n each), weighed and added up: 2 mul, 2 add per element."""
    elements = self.shape[-1] * math.prod(self.shape[:-2]) * n_fft
    return fft(self, elements, (n_fft,), real=True, scaled=True) + Work.of(
        self.precision, mul=2 * elements, add=2 * elements
    )


moved("fft_fftshift fft_ifftshift", "Every element moved.")
