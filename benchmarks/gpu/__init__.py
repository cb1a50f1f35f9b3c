"""All that is asked of a machine with a GPU that is held for minutes: `python -m benchmarks.gpu --out FOLDER`."""
