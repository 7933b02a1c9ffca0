"""Marks that the profiler leaves in a trace."""

from bitwatt.registry import free

free(
    "profiler._record_function_enter",
    "profiler._record_function_enter_new",
    "profiler._record_function_exit",
    reason="a mark for the profiler",
)
