"""What several processes cost: rows of `python -m benchmarks --rows distributed`, and the job that they start."""
