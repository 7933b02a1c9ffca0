"""estimate(): the same counting on fake tensors, so nothing is computed and no memory is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bitwatt.records import Run


def estimate(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Run:
    """Count what `fn(*args, **kwargs)` would run. Tensors, modules and optimizers among the arguments are replaced by
    fakes; build large models inside `fn`, where they take no memory either. The run is returned, not kept."""
    from bitwatt.backends.torch.fake import run_on_fakes
    from bitwatt.session import measure

    name = getattr(fn, "__name__", type(fn).__name__)
    measured = measure(name, keep=False, command=f"estimate({name})", fakes=True)
    with run_on_fakes(fn, args, kwargs) as call, measured as session:
        call()
    run: Run = session.run
    return run
