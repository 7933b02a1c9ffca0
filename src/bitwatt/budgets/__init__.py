"""Limits for CI: a budget read from TOML, a run held against it, and the outcome for people and for machines."""
