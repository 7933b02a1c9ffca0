"""PyTorch, watched through its dispatcher."""
