"""Times, memory, energy and counts, from fresh processes."""
