"""Random numbers of tests: the same in each run, and others by ``python -m tests.seeds tests/ops --seeds 50``."""
