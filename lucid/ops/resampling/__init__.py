"""Images, sequences and volumes at other places: another size, windows as columns, a grid of places.

This holds for all of it, unless a docstring says otherwise:

- `input` has the shape (batch, channels, *sizes) and a floating-point dtype, or a DtypeError is raised; the result has
  that dtype. Half types are computed in float32, and rounded once.
- What does not fit raises a ShapeError, a setting that cannot be a SettingError, with what was expected and what was
  got.
- An element whose weight is zero is not looked at: infinities and NaN stay where they are interpolated from.
- `align_corners` says whether the centres of the elements at the corners are the corners, or their outer edges are.
- The result is a new tensor. Every derivative has its own.
"""
