"""NumPy's ufuncs as lucid's ops, and their methods."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.base.dtype import as_dtype, dtype_of
from lucid.base.gpu import is_gpu_array
from lucid.errors import DtypeError, ShapeError

# imports, of tests/namespaces/ops.txt by `python -m tests.namespaces.exports`
from lucid.ops.activation import sigmoid
from lucid.ops.base.operands import float_operand
from lucid.ops.base.promotion import cast_to, no_matrix
from lucid.ops.elementwise import (
    arithmetic,
    comparison,
    division,
    exponential,
    logic,
    nonfinite,
    power,
    rounding,
    selection,
    trigonometry,
)
from lucid.ops.elementwise import complex as parts
from lucid.ops.linalg import products
from lucid.ops.reduction import sums
from lucid.ops.shape import reshape
from lucid.tensor import operators
from lucid.tensor.numpy_calls.definition import applied
from lucid.tensor.numpy_calls.methods import PARAMETERS, added_at, folded
from lucid.tensor.numpy_calls.operands import (
    NO_VALUE,
    WEAK,
    NumpyCallError,
    any_recorded,
    beside,
    dtype_named,
    is_sequence,
    is_tensor,
    is_usual,
    numpy_dtype,
    operand,
    placed,
    pytorch_dtype,
    strong_operands,
    tensor_of,
    tensors_in,
    to_one_dtype,
)
from lucid.tensor.numpy_calls.special import SPECIAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.dtype import dtype
    from lucid.tensor import Tensor
    from lucid.tensor.numpy_calls.operands import Operand


def scaled(x: Operand, exponent: Operand) -> Any:
    """Return ``numpy.ldexp``; ``lucid.ldexp`` for exponents with fractions, as NumPy refuses them."""
    like = next(tensors_in((x, exponent)))
    n = operand(exponent, like, strong=True)
    if n.array.dtype.kind in "fcV":
        return power.ldexp(operand(x, like), exponent)
    return power.scale(float_operand(operand(x, like, strong=True)), n)


def sign(x: Tensor) -> Any:
    """Return ``numpy.sign``: NaN for NaN; of a complex number that is infinite the direction of its infinite part."""
    if not is_complex(x):
        return parts.sign_or_nan(x) if x.is_floating_point() else parts.sgn(x)
    z = x.detach()
    far, re, im = nonfinite.isinf(parts.abs(z)), parts.real(z), parts.imag(z)
    along, both = nonfinite.isinf(re), logic.logical_and(nonfinite.isinf(re), nonfinite.isinf(im))
    turn = parts.complex(
        selection.where(both, np.nan, selection.where(along, parts.sgn(re), 0.0)),
        selection.where(both, np.nan, selection.where(along, 0.0, parts.sgn(im))),
    )
    return selection.where(far, turn, parts.sgn(selection.where(far, 1.0, x)))


def powers(x: Operand, exponent: Operand) -> Any:
    """Return ``numpy.power``: of complex numbers other than their operator, with its squares, roots and reciprocals.

    A device has its own power of arrays, less exact than products.
    """
    if type(exponent) in {int, float} and is_tensor(x) and is_complex(x):
        if exponent == -1 or not is_gpu_array(x.array):
            exponent = cast_to(operand(exponent, x, strong=True), dtype_of(x.array))
    return power.pow(x, exponent)


def float_powers(x: Operand, exponent: Operand) -> Any:
    """Return ``numpy.float_power``: no root, as -inf to the power of 0.5 is infinite."""
    like = next(tensors_in((x, exponent)))
    return power.float_power(x, operand(exponent, like, strong=True))


def next_after(x: Operand, other: Operand) -> Any:
    """Return ``numpy.nextafter``: of half precision by NumPy, with the slope 1."""
    like = next(tensors_in((x, other)))
    both = [tensor_of(each, like) if type(each) in WEAK else operand(each, like) for each in (x, other)]
    if any(each.array.dtype.char != "e" for each in both):
        return arithmetic.nextafter(cast("Tensor", x), other)
    a = both[0]
    beyond = beside(np.nextafter(*[each.numpy(force=True) for each in both]), a)
    step = arithmetic.sub(beyond, a.detach())
    moves = logic.logical_and(nonfinite.isfinite(step), comparison.ne(step, 0))
    return selection.where(moves, arithmetic.add(a, step), beyond)


def is_complex(x: object) -> bool:
    """Return whether a tensor, or a number, is complex."""
    return x.array.dtype.kind == "c" if is_tensor(x) else isinstance(x, complex)


def chosen(op: Callable[[Any, Any], Any], ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """Return one of two, elementwise; of complex numbers in NumPy's order, by asking NumPy."""

    def choose(a: Operand, b: Operand) -> Any:
        if not (is_complex(a) or is_complex(b)):
            return op(a, b)
        wanted = numpy_dtype([a, b])
        operands = [cast_to(x, wanted) for x in strong_operands((a, b))]
        first, second = (x.numpy(force=True) for x in operands)
        extreme = ufunc(first, second)
        is_first = (extreme == first) | (np.isnan(extreme) & np.isnan(first))
        # not beside the first operand, which may be an array that stays on the host
        return selection.where(placed(is_first, next(tensors_in((a, b)))), *operands)

    return choose


def to_decimals(x: Tensor, decimals: int = 0) -> Any:
    """Return ``numpy.rint``, or to some decimals; of complex numbers of both parts."""
    if is_complex(x):
        return parts.complex(to_decimals(parts.real(x), decimals), to_decimals(parts.imag(x), decimals))
    return rounding.round(x, decimals=decimals)


def check_aligned(name: str, first: int, second: int) -> None:
    """Refuse axes of two sizes: a size of 1 does not broadcast in a product."""
    if first != second:
        raise ShapeError(f"numpy.{name}: shapes not aligned: an axis of size {first} meets one of size {second}")


def vector_products(a: Tensor, b: Tensor) -> Any:
    """Return ``numpy.vecdot``: sums over the last axis, of the conjugate of the first operand, in the dtype of both."""
    check_aligned("vecdot", a.array.shape[-1], b.array.shape[-1])
    line = arithmetic.mul(parts.conj(a), b)
    return cast_to(sums.sum(line, -1), as_dtype(line.array.dtype))


def matrix_vector(a: Tensor, b: Tensor) -> Any:
    """Return ``numpy.matvec``."""
    return reshape.squeeze(products.matmul(a, reshape.unsqueeze(b, -1)), -1)


def vector_matrix(a: Tensor, b: Tensor) -> Any:
    """Return ``numpy.vecmat``, with the conjugate of the vectors."""
    return reshape.squeeze(products.matmul(reshape.unsqueeze(parts.conj(a), -2), b), -2)


UFUNCS: dict[str, Callable[..., Any]] = {
    "divmod": operators.quotient_and_rest,
    "float_power": float_powers,
    "fmax": chosen(comparison.fmax, np.fmax),
    "fmin": chosen(comparison.fmin, np.fmin),
    "ldexp": scaled,
    "matvec": matrix_vector,
    "maximum": chosen(comparison.maximum, np.maximum),
    "minimum": chosen(comparison.minimum, np.minimum),
    "nextafter": next_after,
    "power": powers,
    "rint": to_decimals,
    "sign": sign,
    "vecdot": vector_products,
    "vecmat": vector_matrix,
    # ufuncs, of tests/namespaces/ops.txt by `python -m tests.namespaces.exports`
    "absolute": parts.abs,
    "add": arithmetic.add,
    "arccos": trigonometry.acos,
    "arccosh": trigonometry.acosh,
    "arcsin": trigonometry.asin,
    "arcsinh": trigonometry.asinh,
    "arctan": trigonometry.atan,
    "arctan2": trigonometry.atan2,
    "arctanh": trigonometry.atanh,
    "bitwise_and": logic.bitwise_and,
    "bitwise_or": logic.bitwise_or,
    "bitwise_xor": logic.bitwise_xor,
    "cbrt": power.cbrt,
    "ceil": rounding.ceil,
    "conjugate": parts.conj,
    "copysign": arithmetic.copysign,
    "cos": trigonometry.cos,
    "cosh": trigonometry.cosh,
    "deg2rad": trigonometry.deg2rad,
    "degrees": trigonometry.rad2deg,
    "divide": division.div,
    "equal": comparison.eq,
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "fabs": parts.abs,
    "floor": rounding.floor,
    "floor_divide": division.floor_divide,
    "fmod": division.fmod,
    "frexp": power.frexp,
    "gcd": division.gcd,
    "greater": comparison.gt,
    "greater_equal": comparison.ge,
    "heaviside": comparison.steps,
    "hypot": trigonometry.hypot,
    "invert": logic.bitwise_not,
    "isfinite": nonfinite.isfinite,
    "isinf": nonfinite.isinf,
    "isnan": nonfinite.isnan,
    "lcm": division.lcm,
    "left_shift": logic.bitwise_left_shift,
    "less": comparison.lt,
    "less_equal": comparison.le,
    "log": exponential.log,
    "log10": exponential.log10,
    "log1p": exponential.log1p,
    "log2": exponential.log2,
    "logaddexp": exponential.logaddexp,
    "logaddexp2": exponential.logaddexp2,
    "logical_and": logic.logical_and,
    "logical_not": logic.logical_not,
    "logical_or": logic.logical_or,
    "logical_xor": logic.logical_xor,
    "matmul": products.matmul,
    "modf": rounding.modf,
    "multiply": arithmetic.mul,
    "negative": arithmetic.neg,
    "not_equal": comparison.ne,
    "positive": arithmetic.positive,
    "rad2deg": trigonometry.rad2deg,
    "radians": trigonometry.deg2rad,
    "reciprocal": division.reciprocal,
    "remainder": division.remainder,
    "right_shift": logic.bitwise_right_shift,
    "signbit": nonfinite.signbit,
    "sin": trigonometry.sin,
    "sinh": trigonometry.sinh,
    "sqrt": power.sqrt,
    "square": power.square,
    "subtract": arithmetic.sub,
    "tan": trigonometry.tan,
    "tanh": sigmoid.tanh,
    "trunc": rounding.trunc,
}
"""By the name of a ufunc, the op that it is in lucid; NumPy's other names are those of the same objects."""

PRODUCTS = {"matmul": (1, 1), "matvec": (2, 1), "vecdot": (1, 1), "vecmat": (1, 2)}
"""Those that need both operands in one dtype, and how many dimensions each has at least."""


REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "fmax": "nanmax", "fmin": "nanmin",
    "logical_and": "all", "logical_or": "any",
}  # fmt: skip
ACCUMULATIONS = {name: f"{name}.accumulate" for name in ("add", "multiply", "maximum", "minimum")}
"""The functions that a ufunc's methods are: what they sum or accumulate over is their first axis."""


NOTHING = object()
"""The default of options that have none."""


def title_of(ufunc: np.ufunc) -> str:
    """Return the title of a ufunc in errors: other packages have some too, and none says so."""
    name = ufunc.__name__
    if getattr(np, name, None) is ufunc:
        return f"numpy.{name}"
    return f"scipy.special.{name}" if is_special(ufunc) else f"the ufunc {name}"


def is_special(ufunc: np.ufunc) -> bool:
    """Return whether a ufunc is one of `scipy.special`; False if that has not been imported."""
    return getattr(sys.modules.get("scipy.special._ufuncs"), ufunc.__name__, None) is ufunc


def op_of(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """Return the op that a ufunc of NumPy's or SciPy's is, if there is one."""
    name = ufunc.__name__
    if getattr(np, name, None) is ufunc:
        return UFUNCS.get(name)
    return SPECIAL.get(name) if is_special(ufunc) else None


def ufunc_result(
    ufunc: np.ufunc,
    method: str,
    inputs: tuple[Any, ...],
    options: dict[str, Any],
    common: Callable[[list[Any]], dtype] = pytorch_dtype,
) -> Any:
    """Return the result of a ufunc, or of a method of it, on tensors, by the op of the same meaning.

    Raises
    ------
    NumpyCallError
        If lucid has no such op, or it is asked for with a method or option that the op has not.
    """
    no_matrix(*inputs)
    name, title = ufunc.__name__, title_of(ufunc)
    usual = {"out": None, "dtype": None, "where": True, "initial": NO_VALUE, "casting": "same_kind", "keepdims": False}
    options = {key: value for key, value in options.items() if not is_usual(key, value, usual.get(key, NOTHING))}
    op = op_of(ufunc)
    if op is None:
        raise NumpyCallError(f"{title} has no op in lucid: use tensor.detach().numpy(), or lucid.autograd.Function")
    if method == "reduce" and name in REDUCTIONS:
        function = REDUCTIONS[name]
        return applied(function, getattr(np, function), inputs, {"axis": 0, **options}, common)
    if method == "accumulate" and name in ACCUMULATIONS:
        return applied(ACCUMULATIONS[name], ufunc.accumulate, inputs, options, common)
    if method == "outer" and not options:
        first, second = outer_operands(*inputs)
        return op(first, second)
    if method in PARAMETERS and ufunc.nin == 2 and ufunc.nout == 1 and name not in PRODUCTS:
        if not {"out", "where"} & options.keys() and not any_recorded(options.values()):

            def reduce(x: Tensor, axis: int) -> Any:
                return ufunc_result(ufunc, "reduce", (x,), {"axis": axis}, common)

            return folded(op, ufunc, method, inputs, options, reduce)
    if method == "at" and name in {"add", "subtract"} and is_tensor(inputs[0]):
        return added_at(ufunc, inputs[0], inputs[1], operand(inputs[2], inputs[0], strong=True))
    if method != "__call__":
        raise NumpyCallError(f"{title}.{method} cannot be recorded: use lucid's function, or tensor.detach().numpy()")
    casting = "safe" if options.get("casting") == "safe" and options.pop("casting") else "same_kind"
    if wanted := options.pop("dtype", None):
        inputs = in_loop_of(ufunc, inputs, dtype_named(wanted), casting)
    if options:
        raise NumpyCallError(
            f"{title}: {', '.join(options)} cannot be used with a Tensor{what_to_do(ufunc, inputs, options)}, or use "
            "tensor.detach().numpy()"
        )
    if name in PRODUCTS:
        operands = strong_operands(inputs)
        for k, (x, least) in enumerate(zip(operands, PRODUCTS[name], strict=True)):
            if x.array.ndim < least:
                raise ShapeError(
                    f"{title}: operand {k} does not have enough dimensions: expected {least}, got {x.array.ndim}"
                )
        to_one_dtype([(operands, k) for k in range(len(operands))], common)
        inputs = tuple(operands)
    elif any(map(is_sequence, inputs)):
        like = next(tensors_in(inputs))
        inputs = tuple([operand(x, like) if is_sequence(x) else x for x in inputs])
    return op(*inputs)


def in_loop_of(ufunc: np.ufunc, inputs: tuple[Any, ...], wanted: dtype, casting: str) -> tuple[Any, ...]:
    """Return operands in the dtypes that NumPy's ufunc computes a result of the dtype `wanted` in."""
    operands = strong_operands(inputs)
    own: list[Any] = [
        type(value) if type(value) in WEAK and type(value) is not bool else x.array.dtype
        for value, x in zip(inputs, operands, strict=True)
    ]
    signature = (*[None] * ufunc.nin, *[wanted.numpy] * ufunc.nout)
    try:
        loop = ufunc.resolve_dtypes(
            (*own, *[None] * ufunc.nout), signature=cast("Any", signature), casting=cast("Any", casting)
        )
    except TypeError as error:
        raise DtypeError(f"{title_of(ufunc)}: {error}: use astype() on the operands") from None
    return tuple([cast_to(x, as_dtype(dtype)) for x, dtype in zip(operands, loop, strict=False)])


OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**", "matmul": "@"}


def what_to_do(ufunc: np.ufunc, inputs: tuple[Any, ...], options: dict[str, Any]) -> str:
    """Return the reason for refusing an option of a ufunc, and code that records the same."""
    out = options.get("out")
    if "where" in options:
        return ", which records all elements: choose from the result, np.where(mask, result, otherwise)"
    sign = OPERATORS.get(ufunc.__name__)
    if sign and isinstance(out, tuple) and out[0] is inputs[0]:  # what NumPy makes of a += x
        return f": a {sign}= x would write it into a plain array, which records nothing: a = a {sign} x"
    if "out" in options:
        return ": NumPy does not record what it writes into an array: assign the result"
    if options.keys() & {"axis", "axes", "keepdims"}:
        return ", of which the last axes are taken: move them there, np.moveaxis(x, axis, -1)"
    return ": leave it out, and use astype() on the operands for another dtype"


def outer_operands(a: Operand, b: Operand) -> tuple[Any, Any]:
    """Return two operands, the first with as many axes more as the second has, so that all pairs meet."""
    first, second = strong_operands((a, b))
    return reshape.reshape(first, (*first.array.shape, *(1,) * second.array.ndim)), second
