"""The dtypes of lucid, and the rules of their promotion.

lucid decides the dtype of every result itself, because NumPy and CuPy decide differently from PyTorch (their Python
scalars are weak, but ``int64 * float32`` is ``float64``) and from each other on ``bfloat16``. The rules are PyTorch's:

- categories are ordered bool < integer < floating < complex;
- within one kind of operand the types join (`promote_types`);
- a tensor with dimensions beats a 0-dim tensor, which beats a Python scalar, unless the weaker operand is of a higher
  category, and then the weaker one supplies the category (`result_type`).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import ml_dtypes
import numpy as np

from lucid.arguments import unfit
from lucid.errors import DtypeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lucid.base.arrays import Array

__all__ = [
    "ALIASES", "DTYPES", "as_dtype", "bfloat16", "bool_", "can_cast", "complex64", "complex128", "dtype", "dtype_of",
    "float16", "float32", "float64", "get_default_dtype", "int8", "int16", "int32", "int64", "promote_types",
    "result_type", "scalar_dtype", "set_default_dtype", "uint8",
]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class dtype:
    """The element type of a tensor: one of the constants of this module, compared with ``is`` or ``==``.

    Copying and unpickling give the constant back.

    Parameters
    ----------
    name : str
        ``"float32"``, also what `str` shows after ``lucid.``.
    numpy : numpy.dtype
        The same element type for NumPy and CuPy. That of ``bfloat16`` comes from ml_dtypes and has kind ``'V'``, so
        never ask NumPy's ``kind`` whether a type is floating: ask `is_floating_point`.
    is_floating_point, is_complex, is_signed : bool
        Whether it holds real numbers with a fraction, complex numbers, numbers below zero.
    itemsize : int
        Bytes per element.
    category : int
        0 for bool, 1 for integers, 2 for floating, 3 for complex types: the rank by which operands of different kinds
        combine.

    Examples
    --------
    >>> from lucid.base.dtype import float32
    >>> float32, float32.itemsize, float32.is_floating_point
    (lucid.float32, 4, True)
    >>> float32.to_complex()
    lucid.complex64
    """

    name: str
    numpy: np.dtype[Any]
    is_floating_point: bool
    is_complex: bool
    is_signed: bool
    itemsize: int
    category: int

    def to_real(self) -> dtype:
        """Real type of the parts of a complex type; a real type is its own.

        Examples
        --------
        >>> from lucid.base.dtype import complex128, int32
        >>> complex128.to_real(), int32.to_real()
        (lucid.float64, lucid.int32)
        """
        return _REAL.get(self, self)

    def to_complex(self) -> dtype:
        """Complex dtype with parts of this floating dtype; complex64 for the half dtypes, without one of their own.

        Raises
        ------
        DtypeError
            If this is an integer type or bool.

        Examples
        --------
        >>> from lucid.base.dtype import bfloat16, float64
        >>> float64.to_complex(), bfloat16.to_complex()
        (lucid.complex128, lucid.complex64)
        """
        if not (self.is_floating_point or self.is_complex):
            raise DtypeError(
                f"to_complex: expected a floating or complex dtype, got {self}; convert to a floating dtype first"
            )
        return complex128 if self.to_real() is float64 else complex64

    def __repr__(self) -> str:
        return f"lucid.{self.name}"

    def __reduce__(self) -> str:
        # a string means the global of that name where the class is public: copies and unpickled dtypes are the constant
        return self.name


_asked_for = property(lambda known: known.numpy, doc="NumPy's dtype, as NumPy and CuPy ask for it.")
setattr(dtype, "dtype", _asked_for)  # noqa: B010 - inside of the class the name would hide the class's own
_BOOL, _INTEGER, _FLOATING, _COMPLEX = range(4)


def _make(scalar: type, category: int, *, is_signed: bool = True) -> dtype:
    numpy = np.dtype(scalar)
    return dtype(numpy.name, numpy, category == _FLOATING, category == _COMPLEX, is_signed, numpy.itemsize, category)


float16 = _make(np.float16, _FLOATING)
bfloat16 = _make(ml_dtypes.bfloat16, _FLOATING)
float32 = _make(np.float32, _FLOATING)
float64 = _make(np.float64, _FLOATING)
int8 = _make(np.int8, _INTEGER)
int16 = _make(np.int16, _INTEGER)
int32 = _make(np.int32, _INTEGER)
int64 = _make(np.int64, _INTEGER)
uint8 = _make(np.uint8, _INTEGER, is_signed=False)
bool_ = _make(np.bool_, _BOOL, is_signed=False)
complex64 = _make(np.complex64, _COMPLEX)
complex128 = _make(np.complex128, _COMPLEX)

_ALL = bool_, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64, complex128
DTYPES: Mapping[str, dtype] = MappingProxyType({d.name: d for d in _ALL})
"""Every dtype by its name, from the lowest category to the highest."""

ALIASES: Mapping[str, dtype] = MappingProxyType(
    {
        "half": float16, "float": float32, "double": float64, "short": int16, "int": int32, "long": int64,
        "cfloat": complex64, "cdouble": complex128,
    }
)  # fmt: skip
"""PyTorch's second names. ``lucid.float`` and ``lucid.int`` are these, unlike Python's ``float`` and ``int``."""

_REAL = {complex64: float32, complex128: float64}
_BY_NUMPY: dict[np.dtype[Any], dtype] = {d.numpy: d for d in _ALL}
_BY_SCALAR_TYPE: dict[type, dtype] = {bool: bool_, int: int64, float: float64, complex: complex128}
_BY_SCALAR_TYPE.update({d.numpy.type: d for d in _ALL})
_SUPPORTED = ", ".join(DTYPES)

_default = float32


def get_default_dtype() -> dtype:
    """Floating type of tensors made from Python floats; float32 until `set_default_dtype` is called."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Make ``d`` the dtype of tensors made from Python floats, in the whole process.

    Python complex numbers follow: they become complex128 under float64, complex64 under any other type.

    Parameters
    ----------
    d : dtype
        float16, bfloat16, float32 or float64; anything that `as_dtype` understands.

    Raises
    ------
    DtypeError
        If ``d`` is not a floating type. The default then stays what it was.

    Examples
    --------
    >>> from lucid.base.dtype import float32, float64, get_default_dtype, set_default_dtype
    >>> set_default_dtype(float64)
    >>> get_default_dtype()
    lucid.float64
    >>> set_default_dtype(float32)
    """
    global _default
    chosen = as_dtype(d)
    if not chosen.is_floating_point:
        raise DtypeError(
            f"set_default_dtype: expected a floating dtype (float16, bfloat16, float32, float64), got {chosen}"
        )
    _default = chosen


def as_dtype(spec: Any) -> dtype:
    """Lucid dtype that ``spec`` names.

    Parameters
    ----------
    spec : dtype, str, type or numpy.dtype
        A dtype of lucid; its name or PyTorch's second name (``"float32"``, ``"half"``); a NumPy dtype or scalar type;
        or Python's ``bool``, ``int``, ``float``, ``complex``, which mean what they mean in PyTorch and NumPy: bool,
        int64, float64, complex128. (A Python *value* is another matter: 1.0 has the default dtype.)

    Returns
    -------
    dtype

    Raises
    ------
    DtypeError
        If ``spec`` names no dtype of lucid; the message lists those that exist.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.base.dtype import as_dtype
    >>> as_dtype("bfloat16"), as_dtype(np.int32), as_dtype(float)
    (lucid.bfloat16, lucid.int32, lucid.float64)
    """
    if type(spec) is dtype:
        return spec
    match: dtype | None = None
    if isinstance(spec, str):
        name = spec.removeprefix("lucid.")
        match = DTYPES.get(name) or ALIASES.get(name)
    elif isinstance(spec, np.dtype):
        match = _BY_NUMPY.get(cast("np.dtype[Any]", spec))
    elif isinstance(spec, type):
        match = _BY_SCALAR_TYPE.get(spec)
    if match is None:
        raise unfit(cast("object", spec), f"a dtype of lucid ({_SUPPORTED})", "dtype", DtypeError)
    return match


def dtype_of(array: Array) -> dtype:
    """Lucid dtype of the elements of a NumPy or CuPy array.

    Parameters
    ----------
    array : Array
        Anything whose ``dtype`` is a NumPy dtype.

    Returns
    -------
    dtype

    Raises
    ------
    DtypeError
        If the elements have a type that lucid does not hold, such as uint16, strings, objects or swapped bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.base.dtype import dtype_of
    >>> dtype_of(np.zeros(3, np.int8))
    lucid.int8
    """
    try:
        return _BY_NUMPY[array.dtype]
    except KeyError:
        raise DtypeError(
            f"lucid holds no elements of NumPy's dtype {array.dtype!r}; "
            f"convert the array with astype to one of {_SUPPORTED}"
        ) from None


def _join(a: dtype, b: dtype) -> dtype:
    """Smallest dtype that both promote to, by the formula behind the table."""
    if a is b:
        return a
    low, high = sorted((a, b), key=lambda d: (d.category, d.itemsize))
    if low.category < high.category:
        # float64 needs complex128; every other lower type gives way to the higher category, whatever its size.
        return complex128 if high.is_complex and low is float64 else high
    if {low, high} == {float16, bfloat16}:
        return float32
    if {low, high} == {uint8, int8}:
        return int16
    return high


_PROMOTION = {a: {b: _join(a, b) for b in _ALL} for a in _ALL}


def promote_types(a: object, b: object) -> dtype:
    """Smallest dtype that both promote to, by PyTorch's table.

    A lower category (bool < integer < floating < complex) gives way whatever its size: int64 and float16 make float16.
    float16 and bfloat16 make float32, uint8 and int8 make int16, float64 and complex64 make complex128.

    Parameters
    ----------
    a, b : dtype
        Anything that `as_dtype` understands.

    Returns
    -------
    dtype

    Raises
    ------
    DtypeError
        If either names no dtype.

    Examples
    --------
    >>> from lucid.base.dtype import promote_types
    >>> promote_types("int64", "float16"), promote_types("uint8", "int8")
    (lucid.float16, lucid.int16)
    """
    return _PROMOTION[as_dtype(a)][as_dtype(b)]


def _yield_to(strong: dtype | None, weak: dtype | None) -> dtype | None:
    """Dtype of strong operands met by weaker ones: the strong type, in the category of the weak if that is higher."""
    if strong is None or weak is None:
        return weak if strong is None else strong
    if weak.category <= strong.category:
        return strong
    if strong.is_floating_point:
        # Only the category is taken over: float32 met by a weak complex128 is complex64.
        return strong.to_complex()
    return _PROMOTION[strong][weak]


def result_type(*operands: Any) -> dtype:
    """Dtype of an elementwise operation on these operands, by PyTorch's rules.

    Arrays with dimensions decide; 0-dim arrays count only if their category is higher, and Python scalars only if
    theirs is higher still. A Python float counts as the default dtype, an int as int64, a complex number as the complex
    type of the default dtype.

    Parameters
    ----------
    *operands : Array, Tensor, numpy.generic or bool, int, float, complex
        At least one. NumPy's scalars are 0-dim arrays, as in PyTorch's tensors made of them.

    Returns
    -------
    dtype

    Raises
    ------
    DtypeError
        If there is no operand, one is neither array nor number, or an array holds a type that lucid does not hold.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.base.dtype import result_type
    >>> half = np.zeros(2, np.float16)
    >>> result_type(half, 2.0), result_type(half, np.float64(2)), result_type(half, np.zeros(2, np.float64))
    (lucid.float16, lucid.float16, lucid.float64)
    >>> result_type(np.zeros(2, np.int8), 300), result_type(np.zeros(2, np.int8), 0.5)
    (lucid.int8, lucid.float32)
    """
    arrays: dtype | None = None
    zero_dim: dtype | None = None
    scalars: dtype | None = None
    for operand in operands:
        own = getattr(operand, "dtype", None)
        if own is None:
            scalar = scalar_dtype(operand)
            scalars = scalar if scalars is None else _PROMOTION[scalars][scalar]
            continue
        if type(own) is not dtype:
            own = dtype_of(operand)
        if operand.ndim:
            arrays = own if arrays is None else _PROMOTION[arrays][own]
        else:
            zero_dim = own if zero_dim is None else _PROMOTION[zero_dim][own]
    result = _yield_to(arrays, _yield_to(zero_dim, scalars))
    if result is None:
        raise DtypeError("result_type: expected at least one operand, got none")
    return result


def scalar_dtype(value: object) -> dtype:
    """Dtype that a Python number takes as a tensor: bool, int64, the default dtype, or the complex type of the default.

    Parameters
    ----------
    value : bool, int, float or complex

    Returns
    -------
    dtype

    Raises
    ------
    DtypeError
        If ``value`` is not a Python number.

    Examples
    --------
    >>> from lucid.base.dtype import scalar_dtype
    >>> scalar_dtype(True), scalar_dtype(2), scalar_dtype(2.0), scalar_dtype(2j)
    (lucid.bool, lucid.int64, lucid.float32, lucid.complex64)
    """
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    if isinstance(value, float):
        return _default
    if isinstance(value, complex):
        return _default.to_complex()
    raise unfit(value, "an array or a Python number (bool, int, float, complex)", kind=DtypeError)


def can_cast(from_: object, to: object) -> bool:
    """Whether a value of one dtype may be stored in the other without leaving its category downwards.

    An in-place operation may store its result only where this holds. Sizes do not matter (float64 to float16 is fine);
    what is forbidden is complex to real, floating to integer or bool, and integer to bool.

    Parameters
    ----------
    from_, to : dtype
        Anything that `as_dtype` understands.

    Returns
    -------
    bool

    Raises
    ------
    DtypeError
        If either names no dtype.

    Examples
    --------
    >>> from lucid.base.dtype import can_cast
    >>> can_cast("float64", "float16"), can_cast("float32", "int64"), can_cast("int64", "bool")
    (True, False, False)
    """
    return as_dtype(from_).category <= as_dtype(to).category
