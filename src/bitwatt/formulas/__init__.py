"""Sizes -> Work, with the derivation in a line and the reference. Nothing here knows a framework."""
