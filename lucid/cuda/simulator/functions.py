"""The stand-in's functions: those of NumPy, under CuPy's names with CuPy's parameters, on simulated arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from lucid.cuda.simulator.arrays import call, known, ndarray, wait
from lucid.cuda.simulator.indexing import add_indexing

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FUNCTIONS", "METHODS", "UFUNCS", "Function", "Ufunc", "functions"]

BFLOAT16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)

# Parameters as CuPy names them, in its order; those before the slash are passed on by place.
FUNCTIONS = """
all(a, /, axis, out, keepdims)
allclose(a, b, /, rtol, atol, equal_nan)
amax(a, /, axis, out, keepdims)
amin(a, /, axis, out, keepdims)
any(a, /, axis, out, keepdims)
argmax(a, /, axis, dtype, out, keepdims)
argmin(a, /, axis, dtype, out, keepdims)
argpartition(a, kth, /, axis)
argsort(a, /, axis, kind)
argwhere(a, /)
array_equal(a1, a2, /, equal_nan)
array_split(ary, indices_or_sections, /, axis)
atleast_1d(*arys)
atleast_2d(*arys)
bincount(x, /, weights, minlength)
broadcast_arrays(*args)
broadcast_to(array, shape, /)
clip(a, a_min, a_max, /, out)
concatenate(tup, /, axis, out, dtype, casting)
copyto(dst, src, /, casting, where)
count_nonzero(a, /, axis)
cumprod(a, /, axis, dtype, out)
cumsum(a, /, axis, dtype, out)
diag(v, /, k)
diagonal(a, /, offset, axis1, axis2)
diff(a, /, n, axis, prepend, append)
dot(a, b, /, out)
einsum(*operands)
expand_dims(a, /, axis)
fill_diagonal(a, val, /, wrap)
flatnonzero(a, /)
flip(a, /, axis)
imag(val, /)
isclose(a, b, /, rtol, atol, equal_nan)
matmul(*args, dtype, out)
max(a, /, axis, out, keepdims)
mean(a, /, axis, dtype, out, keepdims)
meshgrid(*xi)
min(a, /, axis, out, keepdims)
moveaxis(a, source, destination, /)
nan_to_num(x, /, copy, nan, posinf, neginf)
nonzero(a, /)
outer(a, b, /, out)
pad(array, pad_width, /, mode, **kwargs)
partition(a, kth, /, axis)
prod(a, /, axis, dtype, out, keepdims)
ptp(a, /, axis, out, keepdims)
ravel(a, /, order)
real(val, /)
repeat(a, repeats, /, axis)
reshape(a, newshape, /, order, copy)
roll(a, shift, /, axis)
searchsorted(a, v, /, side, sorter)
sort(a, /, axis, kind)
split(ary, indices_or_sections, /, axis)
squeeze(a, /, axis)
stack(tup, /, axis, out, dtype, casting)
std(a, /, axis, dtype, out, ddof, keepdims)
sum(a, /, axis, dtype, out, keepdims)
swapaxes(a, axis1, axis2, /)
take(a, indices, /, axis, out)
take_along_axis(a, indices, axis, /)
tensordot(a, b, /, axes)
tile(A, reps, /)
trace(a, /, offset, axis1, axis2, dtype, out)
transpose(a, /, axes)
tril(m, /, k)
triu(m, /, k)
unique(ar, /, return_index, return_inverse, return_counts, axis, equal_nan)
var(a, /, axis, dtype, out, ddof, keepdims)
where(condition, x, y, /)
"""

# The same for methods, without the array itself.
METHODS = """
all(axis, out, keepdims)
any(axis, out, keepdims)
argmax(axis, out, dtype, keepdims)
argmin(axis, out, dtype, keepdims)
argpartition(kth, /, axis)
argsort(axis, kind)
clip(min, max, /, out)
cumprod(axis, dtype, out)
cumsum(axis, dtype, out)
diagonal(offset, axis1, axis2)
dot(b, /, out)
max(axis, out, keepdims)
mean(axis, dtype, out, keepdims)
min(axis, out, keepdims)
nonzero()
prod(axis, dtype, out, keepdims)
ptp(axis, out, keepdims)
ravel(order)
repeat(repeats, /, axis)
searchsorted(v, /, side, sorter)
squeeze(axis)
std(axis, dtype, out, ddof, keepdims)
sum(axis, dtype, out, keepdims)
swapaxes(axis1, axis2, /)
take(indices, /, axis, out)
trace(offset, axis1, axis2, dtype, out)
var(axis, dtype, out, ddof, keepdims)
"""

UFUNCS = """
abs absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and bitwise_not bitwise_or bitwise_xor
cbrt ceil conj conjugate copysign cos cosh deg2rad degrees divide divmod equal exp exp2 expm1 fabs float_power floor
floor_divide fmax fmin fmod frexp gcd greater greater_equal heaviside hypot invert isfinite isinf isnan lcm ldexp
left_shift less less_equal log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor
maximum minimum mod modf multiply negative nextafter not_equal positive power rad2deg radians reciprocal remainder
right_shift rint sign signbit sin sinh sqrt square subtract tan tanh true_divide trunc
"""

# Functions whose result has a size that depends on values, or that look at values before they begin.
WAITING = {"argwhere", "bincount", "flatnonzero", "nonzero", "unique"}
# Functions that make views, for which it does not matter which device is current.
VIEWS = {
    "broadcast_to", "diagonal", "expand_dims", "imag", "moveaxis", "ravel", "real", "reshape", "squeeze", "swapaxes",
    "transpose",
}  # fmt: skip
# Reductions that CuPy takes in float32 for the half types.
WIDE = {"mean", "prod", "std", "sum", "var"}


class Function:
    """One of CuPy's functions.

    Parameters
    ----------
    spec : str
        Its name and parameters.
    function : callable
        NumPy's.
    """

    def __init__(self, spec: str, function: Callable[..., Any]) -> None:
        self.__name__, _, inside = spec.rstrip(")").partition("(")
        parts = [part.strip() for part in inside.split(",")]
        self.by_place = parts.index("/") if "/" in parts else 0
        self.names = [part for part in parts if part and part != "/"]
        self.many = inside.startswith("*")
        self.open = "**kwargs" in inside
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call NumPy's function; a parameter that CuPy's does not have is a TypeError."""
        if not self.many:
            if len(args) > len(self.names):
                raise TypeError(f"{self.__name__}() takes at most {len(self.names)} arguments, got {len(args)}")
            kwargs |= dict(zip(self.names[self.by_place :], args[self.by_place :], strict=False))
            args = args[: self.by_place]
        if not self.open:
            for name in kwargs:
                if name not in self.names:
                    raise TypeError(f"{self.__name__}() got an unexpected keyword argument {name!r}")
        if self.__name__ in WAITING or (self.__name__ == "where" and len(args) == 1):
            wait()
        if self.__name__ in VIEWS and args and type(args[0]) is ndarray:
            with args[0].device:
                return call(self.function, args, kwargs)
        return call(self.function, args, kwargs)

    def __repr__(self) -> str:
        return f"<function {self.__name__} of the stand-in for CuPy>"


class Ufunc:
    """One of CuPy's elementwise functions, and what it has beside the call."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self.__name__ = ufunc.__name__
        self.ufunc = ufunc
        self.nin, self.nout = ufunc.nin, ufunc.nout

    def __call__(self, *args: Any, out: Any = None, casting: str = "same_kind", dtype: Any = None) -> Any:
        """Apply to each element; Python's numbers take the arrays' dtype."""
        if len(args) > self.nin:
            out, args = args[self.nin], args[: self.nin]
        if len(args) < self.nin:
            raise TypeError(f"{self.__name__}() takes {self.nin} arrays, got {len(args)}")
        kwargs: dict[str, Any] = {}
        if out is not None:
            kwargs["out"] = out
        if casting != "same_kind":
            kwargs["casting"] = casting
        if dtype is not None:
            kwargs["dtype"] = dtype
        if any(type(arg) is ndarray and arg.dtype == BFLOAT16 for arg in args):
            # CuPy takes Python's numbers in the array's dtype, NumPy does for its own dtypes only
            args = tuple([BFLOAT16.type(arg) if type(arg) in {int, float} else arg for arg in args])
        return call(self.ufunc, args, kwargs)

    def at(self, a: ndarray, indices: Any, *values: Any) -> None:
        """Apply in place where `indices` point, once for each mention."""
        if self.__name__ not in {"add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"}:
            raise NotImplementedError(f"`{self.__name__}.at` is not supported yet")
        if a.dtype.char not in "iIlLqQefdFD":
            raise TypeError(f"{self.__name__}.at: {a.dtype} is not supported")
        call(self.ufunc.at, (a, wrapped(indices, a), *values), {})

    def reduce(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Reduce along one axis."""
        return call(self.ufunc.reduce, (array,), {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims})

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Give all the partial results along one axis."""
        return call(self.ufunc.accumulate, (array,), {"axis": axis, "dtype": dtype, "out": out})

    def outer(self, a: Any, b: Any) -> Any:
        """Apply to all pairs."""
        return call(self.ufunc.outer, (a, b), {})

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__} of the stand-in for CuPy>"


def wrapped(indices: Any, a: ndarray) -> Any:
    """Return the indices of a scatter with those out of range wrapped around, as CuPy's kernels do."""
    several = type(indices) is tuple  # pyright: ignore[reportUnknownVariableType]
    parts: list[Any] = [*indices] if several else [indices]
    for axis, part in enumerate(parts):
        if type(part) is ndarray and part.dtype.kind in "iu" and a.shape[axis]:
            parts[axis] = part % a.shape[axis]
    return tuple(parts) if several else parts[0]


def as_array(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose Python numbers are arrays, as CuPy's are."""

    def counted(*args: Any, **kwargs: Any) -> Any:
        return np.asarray(function(*args, **kwargs))

    return counted


def in_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reduction of NumPy's that sums half types in float32 and rounds once."""

    def reduction(a: Any, *args: Any, dtype: Any = None, out: Any = None, **kwargs: Any) -> Any:
        target = a.dtype if dtype is None else np.dtype(dtype)
        if target.itemsize != 2 or target.kind not in "fV":
            return function(a, *args, dtype=dtype, out=out, **kwargs)
        found = function(a.astype(np.float32), *args, dtype=np.float32, **kwargs).astype(target)
        if out is not None:
            out[...] = found
        return found

    return reduction


def product(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a product of NumPy's with what CuPy does to half types."""

    def multiply(a: Any, b: Any, **kwargs: Any) -> Any:
        form = np.result_type(a, b)
        if form.itemsize != 2 or form.kind not in "fV":
            return function(a, b, **kwargs)
        if form == BFLOAT16 and max(a.ndim, b.ndim) > 2:
            raise TypeError("matmul of bfloat16 arrays of three or more dimensions fails in CuPy 14")
        out = kwargs.pop("out", None)
        found = function(a.astype(np.float32), b.astype(np.float32), **kwargs).astype(form)
        if out is not None:
            out[...] = found
        return found

    return multiply


def wrapping_take(a: Any, indices: Any, **kwargs: Any) -> Any:
    """Take with indices that wrap around."""
    return np.take(a, indices, mode="wrap", **kwargs)


def wrapping_take_along_axis(a: Any, indices: Any, axis: Any) -> Any:
    """Take along an axis with indices that wrap around."""
    size = a.size if axis is None else a.shape[axis]
    return np.take_along_axis(a, indices % size if size else indices, axis)


def place_of_extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return argmax or argmin with the dtype that CuPy takes and NumPy does not."""

    def place(a: Any, *, dtype: Any = None, **kwargs: Any) -> Any:
        return function(a, **kwargs) if dtype is None else function(a, **kwargs).astype(dtype)

    return place


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """Return the dtype that NumPy promotes to; no number of an array is looked at."""
    return np.result_type(*[part.dtype if isinstance(part, ndarray) else part for part in arrays_and_dtypes])


def put_along_axis(arr: ndarray, indices: ndarray, values: Any, axis: int | None) -> None:
    """Write along an axis where `indices` point, wrapping around."""
    size = arr.size if axis is None else arr.shape[axis]
    call(np.put_along_axis, (arr, indices % size if size else indices, values, axis), {})


SPECIAL: dict[str, Callable[..., Any]] = {
    "array_equal": as_array(np.array_equal),
    "allclose": as_array(np.allclose),
    "argmax": place_of_extreme(np.argmax),
    "argmin": place_of_extreme(np.argmin),
    "count_nonzero": as_array(np.count_nonzero),
    "dot": product(np.dot),
    "matmul": product(np.matmul),
    "take": wrapping_take,
    "take_along_axis": wrapping_take_along_axis,
    **{name: in_float32(getattr(np, name)) for name in WIDE},
}


def functions() -> dict[str, Callable[..., Any]]:
    """Return CuPy's functions by name, and give the array class its methods and operators."""
    made: dict[str, Any] = {}
    for spec in FUNCTIONS.strip().splitlines():
        name = spec.partition("(")[0]
        made[name] = Function(spec, SPECIAL.get(name) or getattr(np, name))
    for name in UFUNCS.split():
        made[name] = Ufunc(getattr(np, name))
    made["put_along_axis"] = put_along_axis
    made["result_type"] = result_type
    known.update(made)
    for spec in METHODS.strip().splitlines():
        add_method(spec, made)
    for name, operator in OPERATORS.items():
        add_operator(name, made[operator])
    add_others(made)
    add_indexing()
    return made


def add_method(spec: str, made: dict[str, Any]) -> None:
    """Give the array class a method that is a function of the array."""
    name, _, inside = spec.partition("(")
    names = inside.rstrip(")")
    own = Function(f"{name}(self, {names if '/' in names else '/, ' + names})", made[name].function)

    def method(self: ndarray, *args: Any, **kwargs: Any) -> Any:
        return own(self, *args, **kwargs)

    method.__name__ = name
    setattr(ndarray, name, method)


OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "left_shift", "rshift": "right_shift", "divmod": "divmod", "matmul": "matmul", "lt": "less",
    "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip
COMPARISONS = {"lt", "le", "gt", "ge", "eq", "ne"}


def gives_way(other: Any) -> bool:
    """Whether the operator of the other operand is to be asked."""
    if isinstance(other, ndarray | np.generic | int | float | complex):
        return False
    try:
        return other.__array_ufunc__ is None
    except AttributeError:
        return getattr(other, "__array_priority__", 0) > ndarray.__array_priority__


def add_operator(name: str, function: Callable[..., Any]) -> None:
    """Give the array class a binary operator: plain, reflected and in place."""

    def plain(self: ndarray, other: Any) -> Any:
        return NotImplemented if gives_way(other) else function(self, other)

    def reflected(self: ndarray, other: Any) -> Any:
        return NotImplemented if gives_way(other) else function(other, self)

    def in_place(self: ndarray, other: Any) -> Any:
        return NotImplemented if gives_way(other) else function(self, other, out=self)

    setattr(ndarray, f"__{name}__", plain)
    if name not in COMPARISONS:
        setattr(ndarray, f"__r{name}__", reflected)
        if name not in {"divmod", "matmul"}:
            setattr(ndarray, f"__i{name}__", in_place)


def of_itself(function: Callable[..., Any]) -> Callable[[ndarray], Any]:
    """Return a method that applies a function to the array: an instance with a call is no method by itself."""

    def method(self: ndarray) -> Any:
        return function(self)

    return method


def add_others(made: dict[str, Any]) -> None:
    """Give the array class the methods that fit no table."""

    def reshape(self: ndarray, *shape: Any, order: str = "C", copy: bool | None = None) -> ndarray:
        sizes = shape[0] if len(shape) == 1 else shape
        with self.device:
            return call(np.reshape, (self, sizes), {"order": order, "copy": copy})

    def transpose(self: ndarray, *axes: Any) -> ndarray:
        order = axes[0] if len(axes) == 1 else axes or None
        with self.device:
            return call(np.transpose, (self, order), {})

    def sort(self: ndarray, axis: int = -1, kind: str | None = None) -> None:
        self[...] = made["sort"](self, axis, kind)

    def conj(self: ndarray) -> ndarray:
        return made["conjugate"](self) if self.dtype.kind == "c" else self

    def rounded(self: ndarray, decimals: int = 0, out: ndarray | None = None) -> ndarray:
        return call(np.round, (self, decimals), {"out": out})

    own: dict[str, Callable[..., Any]] = {
        "reshape": reshape,
        "transpose": transpose,
        "sort": sort,
        "conj": conj,
        "round": rounded,
    }
    own["conjugate"] = own["conj"]
    for name, ufunc in {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}.items():
        own[f"__{name}__"] = of_itself(made[ufunc])
    for name, method in own.items():
        setattr(ndarray, name, method)
