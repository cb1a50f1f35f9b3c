"""Models as they are written for PyTorch, against `lucid`: state dicts go both ways."""
