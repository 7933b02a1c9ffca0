"""Fast Fourier transforms."""

import math

from bitwatt.records import TensorSpec, Work


def fft(spec: TensorSpec, elements: int, lengths: tuple[int, ...], *, real: bool = False, scaled: bool = False) -> Work:
    """Radix-2 over each dimension in turn: elements·log2(Π lengths) times 3 add and 2 mul, half of that where one side
    is real (Cooley & Tukey 1965; Van Loan, Computational Frameworks for the FFT 1.4). Scaling: 2 mul per element.

    A butterfly is one complex multiplication and two additions, 4 mul and 6 add for two elements.
    """
    steps = elements * math.log2(max(math.prod(lengths), 1)) * (0.5 if real else 1)
    scaling = elements * (1 if real else 2) if scaled else 0
    return Work.of(spec.precision, add=round(3 * steps), mul=round(2 * steps) + scaling)
