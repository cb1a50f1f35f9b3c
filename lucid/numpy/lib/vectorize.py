"""`vectorize`: a function of numbers, called with recorded elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.numpy.border import any_recorded, array_on_device, called, plain
from lucid.tensor.numpy_calls.operands import NumpyCallError


# the module where a function was made is an attribute of each instance of it
class vectorize(np.vectorize):  # pyright: ignore[reportIncompatibleVariableOverride]
    """A function of arrays that calls one of numbers for each element: ``numpy.vectorize``, recorded.

    Parameters
    ----------
    pyfunc : callable
        What is called: of recorded arguments with their elements, each of which requires grad.
    otypes : str or list of dtypes, optional
        The dtypes of the results; else those that the calls give.
    doc, excluded, cache, signature : optional
        NumPy's; `excluded` and `signature` are refused where an argument requires grad.

    Raises
    ------
    NumpyCallError
        If an argument requires grad, and is `excluded`, named, or taken apart by a `signature`.

    Examples
    --------
    >>> import lucid
    >>> import lucid.numpy as np
    >>> x = lucid.tensor([0.5, 2.0], requires_grad=True)
    >>> np.sum(np.vectorize(lambda v: v**2 if v < 1 else 2 * v)(x)).backward()
    >>> x.grad
    tensor([1., 2.])
    """

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Return the results of all elements, as one array or a tuple of some."""
        if not any_recorded(args) and not any_recorded(kwargs.values()):
            return self._plain(args, kwargs)
        if kwargs or self.excluded or self.signature is not None:
            raise NumpyCallError(
                "numpy.vectorize: with what requires grad arguments are given by place, without excluded and "
                "signature: use numpy.stack([f(each) for each in x])"
            )
        grid = called("broadcast_arrays", np.broadcast_arrays, args, {})
        shape = grid[0].shape
        function: Any = self.pyfunc
        results = [function(*[array[place] for array in grid]) for place in np.ndindex(shape)]
        if not results:
            return self._plain(args, {})
        columns = list(zip(*results, strict=True)) if isinstance(results[0], tuple) else [results]
        dtypes: Any = self.otypes or (None,) * len(columns)
        made = [
            called("array", np.array, (list(column),), {"dtype": dtype}).reshape(shape)
            for column, dtype in zip(columns, dtypes, strict=True)
        ]
        return tuple(made) if isinstance(results[0], tuple) else made[0]

    def _plain(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        """Return NumPy's own result of plain values."""
        args, kwargs = plain(args), {key: plain(value) for key, value in kwargs.items()}
        if array_on_device((*args, *kwargs.values())) is not None:
            raise NumpyCallError(
                "numpy.vectorize: a function of Python's is not called for elements on a device, where none requires "
                "grad: use cupy.vectorize(f), or x.get()"
            )
        return super().__call__(*args, **kwargs)
