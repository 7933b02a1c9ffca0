"""ATen, the operators that PyTorch dispatches, one file per family."""
