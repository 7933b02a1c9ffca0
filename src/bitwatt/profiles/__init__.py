"""Traces of other tools, read in to be shown beside a run: one file for each format."""

from __future__ import annotations

import csv
import zlib
from pathlib import Path

from bitwatt.errors import BitwattError
from bitwatt.profiles import ncu, torch_trace
from bitwatt.profiles.profile import Profile

__all__ = ["Profile", "read"]


def read(path: Path | str) -> Profile:
    """A torch.profiler trace (.json, also .gz) or a CSV of Nsight Compute, told apart by what is in it."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise BitwattError(f"{path} cannot be read: {error.strerror or error}") from error
    try:
        if torch_trace.is_one(data):
            return torch_trace.profile(data)
        if ncu.is_one(data):
            return ncu.profile(data)
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, OSError, csv.Error, zlib.error) as error:
        raise BitwattError(f"{path} is damaged: {type(error).__name__}: {error}") from error
    raise BitwattError(f"{path} is neither a trace of torch.profiler (JSON) nor a CSV of ncu")
