"""`ndarray`: a Tensor that behaves as NumPy's array."""

from __future__ import annotations

import math
from types import GenericAlias
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.autograd.modes.state import is_grad_enabled
from lucid.autograd.recording.mutation import allows_mutation
from lucid.base import gpu
from lucid.base.dtype import as_dtype
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.numpy import attributes
from lucid.numpy.border import REDUCTIONS, called, is_operand, plain, ufunc_called
from lucid.numpy.keys import has_ellipsis, is_plain_index, is_scalar, on_host, places, plain_key, written_once
from lucid.numpy.promotion import as_matching, is_array, op_and_dtypes
from lucid.numpy.results import arrays, is_to_fill, made, settled, to_fill
from lucid.ops.index import indexing
from lucid.ops.index.steps import stepped
from lucid.ops.shape.reshape import clone, ravel
from lucid.tensor import cupy_calls, inplace, operators
from lucid.tensor.numpy_calls.operands import NO_VALUE, WEAK, is_recorded, listed, written_as
from lucid.tensor.numpy_calls.protocols import seen_name
from lucid.tensor.numpy_calls.ufuncs import UFUNCS
from lucid.tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift", "divmod": "divmod",
}  # fmt: skip
"""Operators of two operands and the ufunc that each is; all but the last in place too."""

OPERATIONS = {getattr(np, name): UFUNCS[name] for name in OPERATORS.values() if name != "divmod"}
"""By the ufunc of an operator, the op that it is."""

SIGNS = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}

METHODS = (
    "all any argmax argmin argpartition argsort choose cumprod cumsum diagonal dot max mean min nonzero prod "
    "ravel repeat round searchsorted squeeze std sum swapaxes take trace var"
)
"""The methods that are the function of their name, of this array."""


class _Kind(type):
    """The class of `ndarray`: NumPy's and CuPy's own arrays are instances of it too, as results may be such arrays."""

    def __instancecheck__(cls, value: object) -> bool:
        return type.__instancecheck__(cls, value) or isinstance(value, np.ndarray) or gpu.is_gpu_array(value)


def function_of(name: str) -> Callable[..., Any]:
    """Return a method that is NumPy's function of a name."""
    function = getattr(np, name)

    def method(self: ndarray, *args: object, **kwargs: object) -> Any:
        return called(name, function, (self, *args), kwargs)

    op = REDUCTIONS.get(name)

    def reduced(self: ndarray, *args: object, **kwargs: object) -> Any:
        array = self.array
        if op is not None and len(args) + len(kwargs) <= 1 and array.dtype.kind == "f" and (ndim := array.ndim):
            axis: Any = args[0] if args else kwargs.get("axis", NO_VALUE) if kwargs else None
            if axis is None or (type(axis) is int and -ndim <= axis < ndim):
                return made(op(self, axis), self)
        return called(name, function, (self, *args), kwargs)

    made_method = method if op is None else reduced
    made_method.__name__, made_method.__doc__ = name, f"Return ``numpy.{name}`` of this array."
    return made_method


def operator_of(symbol: str, name: str) -> Callable[[Any, Any], Any]:
    """Return an operator that is a ufunc."""
    ufunc = getattr(np, name)
    op = getattr(Tensor, f"__{symbol}__") if ufunc.nout == 1 else None

    def operator(self: ndarray, other: object) -> Any:
        if op is not None and (operand := as_matching(self, other)) is not None:
            return made(op(self, operand), self, operand)
        if not is_operand(other):
            return operators.beside_sparse(name, self, other)
        return ufunc_called(ufunc, "__call__", (self, other), {})

    return operator


def reflected_operator_of(name: str) -> Callable[[Any, Any], Any]:
    """Return the operator of ``other op self``."""
    ufunc = getattr(np, name)
    op = UFUNCS[name] if ufunc.nout == 1 else None

    def operator(self: ndarray, other: object) -> Any:
        if op is not None and (operand := as_matching(self, other)) is not None:
            return made(op(operand, self), self, operand)
        if not is_operand(other):
            return operators.beside_sparse(name, other, self)
        return ufunc_called(ufunc, "__call__", (other, self), {})

    return operator


def in_place_operator_of(symbol: str, name: str) -> Callable[[Any, Any], Any]:
    """Return the operator that changes this array in place; its dtype stays. Of a scalar it makes a new one."""
    change = getattr(Tensor, f"__i{symbol}__")
    unchanged = operator_of(symbol, name)

    def operator(self: ndarray, other: Any) -> Any:
        if is_scalar(self):
            return unchanged(self, other)
        if isinstance(other, bool) and self.array.dtype.kind != "b":
            other = int(other)
        if type(other) not in WEAK:
            other = other if is_array(other) else listed(other, self)
            own, theirs = self.array.dtype, other.array.dtype if isinstance(other, TensorBase) else other.dtype
            if not np.can_cast(theirs, own, "same_kind"):
                raise DtypeError(
                    f"{symbol}: a result of {theirs} cannot be written into an array of {own}: use astype()"
                )
            if np.result_type(own, theirs) != own:
                # computed in the wider dtype, and rounded when it is written
                result = unchanged(self, other)
                if np.shape(plain(result)) != self.array.shape:
                    raise ShapeError(f"{symbol}: a result of shape {result.shape} does not fit into {self.array.shape}")
                self[...] = result
                return self
            if theirs != own:
                other = called("astype", np.astype, (other, own), {})
        return change(self, other)

    return operator


def sign_of(name: str) -> Callable[[Any], Any]:
    """Return an operator of one operand."""
    ufunc = getattr(np, name)
    op, dtypes = op_and_dtypes(ufunc)

    def operator(self: ndarray) -> Any:
        return made(op(self), self) if self.array.dtype in dtypes else ufunc_called(ufunc, "__call__", (self,), {})

    return operator


class ndarray(Tensor, metaclass=_Kind):
    """An array with recorded operations: a Tensor with the methods, operators and attributes of NumPy's array.

    It comes out of the functions of `lucid.numpy` where an operand requires grad; ``asarray(tensor)`` makes one of a
    Tensor. Results that do not require grad are arrays of NumPy's, or CuPy's. An array that is made like this one,
    ``zeros_like(x)`` or ``zeros(n, like=x)``, is an `ndarray` too: it requires grad once what does is written into it.
    `backward`, `grad`, hooks and all else that NumPy does not name are the Tensor's.

    Examples
    --------
    >>> import lucid
    >>> import lucid.numpy as np
    >>> x = np.asarray(lucid.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True))
    >>> x.std(axis=0), int(x.argmax()), x.size
    (array([1., 1.], dtype=float32, grad_fn=<StdBackward0>), 3, 4)
    """

    __slots__ = ()
    __class_getitem__: Any = classmethod(cast("Any", GenericAlias))

    def __new__(cls, shape: Any, dtype: Any = float, **options: object) -> Any:
        """Return an array of NumPy's without values, as ``numpy.ndarray`` does; it can be filled as ``empty`` can."""
        of_numpy: Any = np.ndarray
        array = of_numpy(shape, dtype, **options)
        return to_fill(array) if allows_mutation() and not options else array

    # ---- attributes ----

    @property
    def dtype(self) -> np.dtype[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The dtype, one of NumPy's."""
        return self.array.dtype

    @property
    def shape(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The sizes of its dimensions."""
        return self.array.shape

    @shape.setter
    def shape(self, sizes: object) -> None:
        raise AttributeError(f"the shape of a recorded array is not assigned to: x = x.reshape({sizes})")

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The number of elements."""
        return self.array.size

    @property
    def strides(self) -> tuple[int, ...]:
        """The distance in bytes to the next element of each dimension."""
        return self.array.strides

    @property
    def T(self) -> Any:
        """A view with all dimensions in reverse order."""
        return self.transpose()

    @property
    def mT(self) -> Any:
        """A view with the last two dimensions exchanged."""
        return self.swapaxes(-1, -2)

    real = attributes.part_of("real", "The real part.")  # pyright: ignore[reportIncompatibleMethodOverride]
    imag = attributes.part_of("imag", "The imaginary part; zeros of real numbers.")  # pyright: ignore[reportIncompatibleMethodOverride]
    flags = property(attributes.flags_of)
    tobytes = attributes.bytes_of
    __contains__ = attributes.contains

    @property
    def flat(self) -> Any:
        """All elements in a row; writing to it changes this array."""
        line: Any = indexing.getitem(ravel(self), ...)
        line.__class__ = _Flat
        line.owner = self
        return line

    @flat.setter
    def flat(self, values: object) -> None:
        self[...] = called("resize", np.resize, (values, self.array.shape), {})

    # ---- shapes ----

    def reshape(self, *shape: object, **settings: object) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the same elements under another shape, of one sequence or of several sizes."""
        return called("reshape", np.reshape, (self, shape[0] if len(shape) == 1 else shape), settings)

    def transpose(self, *axes: object) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return a view with dimensions in another order, without `axes` in reverse order."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return called("transpose", np.transpose, (self, order), {})

    def flatten(self, order: str = "C") -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return a copy of all elements in a row."""
        return called("ravel", np.ravel, (self,), {"order": order}).copy()

    # ---- copies ----

    def __deepcopy__(self, memo: object) -> Any:
        """Return a copy, recorded by the graph."""
        return self.copy()

    def astype(
        self, dtype: object, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        """Return the array in another dtype; a complex one as real numbers without its imaginary part."""
        del subok
        if not np.can_cast(self.array.dtype, dtype, casting):  # pyright: ignore[reportArgumentType]
            raise DtypeError(
                f"astype: cannot cast from {self.array.dtype} to {np.dtype(cast('Any', dtype))} by the rule {casting!r}"
            )
        return called("array", np.array, (self,), {"dtype": dtype, "order": order, "copy": copy or None})

    def copy(self, order: str = "C") -> Any:
        """Return a copy, recorded by the graph."""
        return called("copy", np.copy, (self,), {"order": order})

    __copy__ = copy

    def view(self, *args: object, **options: object) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return a view of the same dtype; of another dtype, the bytes of a recorded array are not looked at."""
        if args or options:
            raise SettingError("view: the bytes of a recorded array cannot be another dtype: use astype(), or detach()")
        return self[...]

    # ---- parts ----

    def __getitem__(self, key: object) -> Any:
        """Return a part, by NumPy's rules: slices give views, arrays copies, with their axes first beside integers.

        A single element is a copy, too, ``x[0], x[1] = x[1], x[0]``; ``x[0, ...]`` is a view.
        """
        key = plain_key(key)
        if is_plain_index(key, self.array.shape):
            part = indexing.getitem(self, key)
        elif (view := stepped(self, key)) is not None:
            part = view
        else:
            part = indexing.getitem(ravel(self), places(key, self.array.shape))
        if not part.array.ndim and not has_ellipsis(key):
            part = clone(part)
        elif part.origin is not None and (is_to_fill(self) or not is_grad_enabled()):
            # what is written into the view is written into the array, and counted
            part.__class__ = ndarray
            return part
        return to_fill(part) if part.array.ndim and is_to_fill(self) else settled(part, ())

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write into a part, by NumPy's rules."""
        key = plain_key(key)
        into: Any = self
        if is_plain_index(key, self.array.shape):
            pass
        elif (view := stepped(self, key)) is not None:
            into, key = view, ...
        else:
            # a view of one dimension more, as there is no place in an array of none
            into = self if self.array.ndim else indexing.getitem(self, None)
            key = cast("Any", np.unravel_index(places(key, self.array.shape), into.array.shape))
        if not isinstance(value, TensorBase) and type(value) not in WEAK:
            value = called("asarray", np.asarray, (value,), {})
            if not isinstance(value, TensorBase):
                value = value.astype(self.array.dtype, copy=False)
        if isinstance(value, TensorBase):
            value = written_as(value, as_dtype(self.array.dtype))
        if is_recorded(value):
            key, value = written_once(key, value, into.array.shape)
        indexing.setitem(into, key, value)

    def __iter__(self) -> Iterator[Any]:
        """Return the parts along the first dimension."""
        if not self.array.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(len(self.array)))

    def fill(self, value: object) -> None:
        """Write a number into all elements."""
        self[...] = value

    def sort(self, *args: object, **settings: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Sort in place along an axis, the last one if it is left out."""
        self[...] = called("sort", np.sort, (self, *args), settings)

    def partition(self, *args: object, **settings: object) -> None:
        """Bring the elements in place as ``numpy.partition`` does."""
        self[...] = called("partition", np.partition, (self, *args), settings)

    def compress(self, condition: object, *args: object, **settings: object) -> Any:
        """Return the parts with a true condition."""
        return called("compress", np.compress, (condition, self, *args), settings)

    def clip(self, min: object = None, max: object = None, out: object = None, **settings: object) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return ``numpy.clip`` of this array; a bound that is None is none."""
        return called("clip", np.clip, (self, min, max, out), settings)

    def conj(self, *args: object, **settings: object) -> Any:
        """Return the conjugate; real numbers as they are."""
        is_real = self.array.dtype.kind == "f" and not args and not settings
        return self if is_real else ufunc_called(np.conjugate, "__call__", (self, *args), settings)

    conjugate = conj

    def put(self, indices: object, values: Any, mode: str = "raise") -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Write values to places of the flattened array."""
        called("put", np.put, (self, indices, values, mode), {})

    def item(self, *place: object) -> Any:
        """Return one element as a number, without gradient."""
        return on_host(self.detach().array).item(*place)

    # ---- NumPy ----

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: object, **options: object) -> Any:
        """Return the result of a ufunc: see `lucid.numpy.border`."""
        if method == "__call__" and not options and (op := OPERATIONS.get(ufunc)) is not None and inputs[1] is self:
            # an operator of which the left side is an array
            if (operand := as_matching(self, inputs[0])) is not None:
                return made(op(operand, self), self, operand)
        return ufunc_called(ufunc, method, inputs, options)

    def __cupy_override_elementwise_kernel__(self, kernel: Any, *inputs: object, **options: object) -> Any:
        """Return the result of a ufunc or kernel of CuPy's: see `lucid.tensor.cupy_calls`."""
        ufunc = cupy_calls.ufunc_of(kernel)
        if ufunc is not None and len(inputs) == kernel.nin:
            return ufunc_called(ufunc, "__call__", inputs, options)
        return settled(cupy_calls.kernel_call(self, kernel, *inputs, **options), inputs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return the result of a function of NumPy's: see `lucid.numpy.border`."""
        del types
        return called(seen_name(func, args, kwargs), func, args, kwargs)

    __array__ = attributes.array_of  # pyright: ignore[reportAssignmentType]
    __float__ = attributes.number_of("float", operators.as_float)
    __complex__ = attributes.number_of("complex", operators.as_complex)
    __floor__ = attributes.integer_of(math.floor)
    __ceil__ = attributes.integer_of(math.ceil)
    __trunc__ = attributes.integer_of(math.trunc)

    def __divmod__(self, other: object) -> Any: ...
    def __rdivmod__(self, other: object) -> Any: ...

    def __repr__(self) -> str:
        """Return NumPy's words for the elements, and the node that made it."""
        words = repr(on_host(self.detach().array))
        end = f", grad_fn=<{self.grad_fn.name()}>" if self.grad_fn is not None else ", requires_grad=True"
        return f"{words[:-1]}{end if self.requires_grad else ''})"

    def __format__(self, spec: str) -> str:
        """Return a single element in a format."""
        return format(on_host(self.detach().array)[()], spec) if not self.array.ndim else super().__format__(spec)

    __str__ = attributes.words_of
    __round__ = attributes.rounded


class _Flat(ndarray):
    """The elements of an array, `owner`, in a row: writing to it changes that, and its parts are copies."""

    __slots__ = ()
    owner: ndarray

    def __getitem__(self, key: object) -> Any:
        if not self.owner.array.flags.c_contiguous:  # of which this is a copy
            return self.owner[np.unravel_index(places(key, (self.array.size,)), self.owner.array.shape)]
        part = super().__getitem__(key)
        return called("copy", np.copy, (part,), {}) if part.ndim else part

    def __setitem__(self, key: object, value: object) -> None:
        taken = places(key, (self.array.size,))
        if np.ndim(plain(value)):  # repeated, or cut off
            value = called("resize", np.resize, (value, taken.shape), {})
        if not self.owner.array.flags.c_contiguous:
            self.owner[np.unravel_index(taken, self.owner.array.shape)] = value
        super().__setitem__(key, value)


def _give_methods() -> None:
    for name in METHODS.split():
        setattr(ndarray, name, function_of(name))
    for symbol, name in OPERATORS.items():
        setattr(ndarray, f"__{symbol}__", operator_of(symbol, name))
        setattr(ndarray, f"__r{symbol}__", reflected_operator_of(name))
        if symbol != "divmod":
            setattr(ndarray, f"__i{symbol}__", in_place_operator_of(symbol, name))
    for symbol, name in attributes.COMPARISONS.items():
        setattr(ndarray, f"__{symbol}__", attributes.comparison_of(symbol, name))
    for symbol, name in SIGNS.items():
        setattr(ndarray, f"__{symbol}__", sign_of(name))
    ndarray.__hash__ = object.__hash__
    arrays.kind = ndarray


_give_methods()
del inplace
