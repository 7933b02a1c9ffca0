"""One line in a training framework: a callback that measures around its fit. One file for each framework.

They need the framework, and are imported by their full name: `from bitwatt.callbacks.lightning import Bitwatt`.
"""
