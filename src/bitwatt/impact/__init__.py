"""What a run cost, from what was metered, what was counted and what the user has set: pure functions, one question for
each file. A number that is not known is None, and says why."""
