"""Common rules of functions that make a tensor: of data, of given values, of random numbers.

A docstring in this folder says what is particular to its function; unless it says otherwise, this holds for all:

- The result is a new tensor at the beginning of the graph. With `requires_grad` what is done with it is recorded;
  a dtype that is neither floating-point nor complex raises a DtypeError then.
- `size` is written ``f(2, 3)`` or ``f((2, 3))``. A size below zero raises a ShapeError.
- `dtype` is the default dtype if it is None, `device` the default device. A number that does not fit the dtype raises a
  DtypeError, a device that is not there a DeviceError.
- With `pin_memory` the memory is page-locked, from where a CUDA device copies without waiting; for the CPU only.
- ``f_like(input)`` has the shape of `input`, and its dtype and device where these are None.
- Random numbers are drawn from `generator`, or from the device's own if it is None; one of another kind of device
  raises a DeviceError. The same state gives the same numbers on every device. They are of a real floating-point dtype,
  or a DtypeError is raised. How they came about is not recorded.
"""
