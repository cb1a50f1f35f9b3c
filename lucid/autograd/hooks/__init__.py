"""Hooks of every kind: their tables and lists, their handles, and their calls.

Those of modules and optimizers are in a `HookTable` by handle id, as tools know it from PyTorch (`table`); those of
tensors and nodes are in a list, which their handle is given (`handle`). All of them fire by `fire` (`firing`), and what
may take the place of a gradient is told in `gradients`.
"""
