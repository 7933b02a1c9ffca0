"""Whether a scenario predicts what the model predicts: quality, traps, unusual rows, drift."""
