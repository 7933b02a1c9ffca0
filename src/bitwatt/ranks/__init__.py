"""Many processes, one job: who is which rank, when each waited for which, and all their runs as one."""
