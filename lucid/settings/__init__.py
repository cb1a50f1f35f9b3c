"""Settings: the range and the meaning of each, written once for checks, error texts and `help`.

- `lucid.settings.ranges`: what a setting may be, as one of a closed vocabulary of ranges
- `lucid.settings.layers`: the settings of layers, by name
- `lucid.settings.optimizers`: the settings of optimizers, by name, with their checks and those of schedules
- `lucid.settings.kinds`: what they mean in some kinds of layers, and in the functions that these call
- `lucid.settings.functions`, `lucid.settings.makers`, `lucid.settings.operands`: what parameters of functions mean
- `lucid.settings.checks`: the checks of constructors
- `lucid.settings.documents`: the `Parameters` sections of docstrings
"""
