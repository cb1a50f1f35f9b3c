"""lucid and PyTorch measured against each other: `python -m benchmarks`, and `python -m benchmarks.gpu` on a GPU."""
