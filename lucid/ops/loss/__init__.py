"""Losses of numbers, classes and probabilities.

This holds for all of them, unless a docstring says otherwise:

- `input` is the prediction, of a real floating-point dtype, or a DtypeError is raised; `target` is the truth. They have
  one shape, and are computed in their promoted dtype. Where a loss broadcasts shapes that differ, it warns.
- `reduction` says what is done with the losses of the elements: ``"none"`` returns them, ``"mean"`` and ``"sum"`` a
  tensor of no dimension. Anything else raises a ReductionError.
- `weight` is the factor of each loss, and broadcasts against them.
- A target of classes holds integers, and the shape of the input without its dimension of classes: an input of shape
  (C,), (N, C) or (N, C, d1, ...) takes one of (), (N,) or (N, d1, ...). `weight` is then a factor for each class, of
  shape (C,) and the dtype of the input, and the mean is the sum of the losses divided by the sum of the weights of
  their targets. Targets of `ignore_index` count for nothing; where none counts, the mean is NaN. A target that is no
  class raises an IndexOutOfRangeError, on a GPU, which would have to wait, in debug mode only.
- Half types are computed in float32. What does not fit raises a ShapeError or a DtypeError.
"""
