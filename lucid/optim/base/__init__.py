"""The base of optimizers: settings, state, the elementwise step, and its recording in captures."""
