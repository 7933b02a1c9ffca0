"""The same layer in four number formats, priced by cost models for bit-operations.

    python examples/compare_precisions.py

A FLOP count cannot tell these four apart: the products are the same. Bit-operations can. The layer is estimated on
fake tensors, so that float8 needs no GPU.
"""

import torch

import bitwatt
from bitwatt.units import format_count

ROWS, INNER, COLUMNS = 1024, 4096, 4096
MODELS = ("flops", "bops", "bops:aligned", "bops:product", "bops:hawks2021")


def plain(dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(ROWS, INNER, dtype=dtype) @ torch.empty(INNER, COLUMNS, dtype=dtype)


def float8() -> torch.Tensor:
    a = torch.empty(ROWS, INNER, dtype=torch.float8_e4m3fn)
    b = torch.empty(COLUMNS, INNER, dtype=torch.float8_e4m3fn).t()
    one = torch.ones(())
    return torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def int8() -> torch.Tensor:
    return torch._int_mm(torch.empty(ROWS, INNER, dtype=torch.int8), torch.empty(INNER, COLUMNS, dtype=torch.int8))


def main() -> None:
    runs = {
        "float32": bitwatt.estimate(plain, torch.float32),
        "bfloat16": bitwatt.estimate(plain, torch.bfloat16),
        "float8": bitwatt.estimate(float8),
        "int8": bitwatt.estimate(int8),
    }
    print(f"{ROWS:,} x {INNER:,} by {INNER:,} x {COLUMNS:,}")
    print(f"{'':<16}" + "".join(f"{name:>12}" for name in runs))
    for model in MODELS:
        amounts = [bitwatt.totals(run, model, strict=True).total for run in runs.values()]
        print(f"{model:<16}" + "".join(f"{format_count(amount):>12}" for amount in amounts))


if __name__ == "__main__":
    main()
