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


#: A pass of radix p: operations on each point, and those of its twiddle factors (six for p - 1 of p points).
_PASSES = {2: 2.0, 3: 16 / 3, 4: 4.0, 5: 48 / 5, 7: 18.0, 11: 32.0}


def pocket_fft(n: int) -> float:
    """A complex transform of n points as numpy and scipy execute it (pocketfft): passes of radix 4, then of the other
    factors; the first needs no twiddle factors."""
    factors, left = [], n
    for radix in (4, 2, 3, 5, 7, 11):
        while left % radix == 0 and left > 1:
            factors.append(radix)
            left //= radix
    if left > 1:
        factors.append(left)
    each = sum(_PASSES.get(radix, 2.0 * radix) for radix in factors)
    twiddles = sum(6 * (radix - 1) / radix for radix in factors[1:])
    return n * (each + twiddles)
