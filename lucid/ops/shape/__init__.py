"""Common rules of ops that give the elements of a tensor another shape, order or number.

A docstring in this folder says what is particular to its op; this holds for all of them:

- `input` is a tensor of any dtype, shape and strides; the result has its dtype and lies on its device.
- A view shares the memory of `input`: a change of one in place is a change of the other, and gradients know of it. What
  is no view is a copy, whose elements lie in order. The docstring says which of them comes out.
- `dim` counts from the left, below zero from the last; a tensor of no dimension is taken for one of one dimension. One
  that is not there raises an IndexOutOfRangeError, one that is named twice a ShapeError.
- Several sizes or dimensions are written ``f(x, 2, 3)`` or ``f(x, (2, 3))``. What does not fit raises a ShapeError that
  shows the shapes.
- The gradient of an element goes where the element came from, that of a repeated one is the sum.
"""
