"""Common rules of ops that read or write elements by index.

A docstring in this folder says what is particular to its op; this holds for all of them, unless it says otherwise:

- `index` is a tensor of integers, on the device of `input`; another dtype raises a DtypeError, a shape that does not
  fit a ShapeError. `dim` is the dimension that it counts in, below zero from the last.
- An index lies from 0 to below the size, or an IndexOutOfRangeError names it, the dimension and the size; nothing is
  changed then. On CUDA the values are not looked at but in debug mode (`lucid.cuda.set_debug`), as the call would wait
  for the device: what an index outside selects is zero, and what it would write is left out.
- `mask` is a tensor of bools, or a DtypeError is raised; it and `input` broadcast against each other. Where the size of
  the result depends on it, the call waits for the device.
- The result is a copy of the dtype of `input`. `source` or what else is written has that dtype too, or a DtypeError
  says so.
- Where an index is named more than once, everything is added, in a fixed order on the CPU; of what is written one
  stays. For CUDA see `lucid.use_deterministic_algorithms`.
- The gradient of an element goes where the element came from; of what is overwritten it is zero.
"""
