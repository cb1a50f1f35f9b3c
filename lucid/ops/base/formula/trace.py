"""Formulas as their operations, by a call with symbols.

A formula is a function of the namespace that derivative rules are written against, and of arrays and settings:
``lambda m, x, *, alpha: m.where(x > 0, x, alpha * m.exp(x))``. A rule is one, too. Called with a `Tracer` and symbols
instead, it tells its operations, each once: `lucid.ops.base.formula.functor` writes them in CUDA C++,
`lucid.ops.base.formula.chain` in ufuncs.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping


class Operation(NamedTuple):
    """An elementwise primitive in both languages.

    Attributes
    ----------
    cuda : str
        An expression of CUDA C++ in ``{0}``, ``{1}`` and so on, of the type A that a functor computes in.
    numpy : str
        The ufunc; "" where formulas with a chain have no use for it.
    mask : bool
        Whether it gives bools.
    """

    cuda: str
    numpy: str = ""
    mask: bool = False


def _calls(names: str, **others: str) -> dict[str, Operation]:
    """Return the operations with lucid's names in C; `others` has NumPy's names that differ."""
    return {name: Operation(f"{name}({{0}})", others.get(name, name)) for name in names.split()}


OPERATIONS: dict[str, Operation] = {
    "add": Operation("{0} + {1}", "add"),
    "sub": Operation("{0} - {1}", "subtract"),
    "mul": Operation("{0} * {1}", "multiply"),
    "div": Operation("{0} / {1}", "divide"),
    "neg": Operation("-{0}", "negative"),
    "square": Operation("{0} * {0}", "square"),
    "reciprocal": Operation("1 / {0}", "reciprocal"),
    "rsqrt": Operation("1 / sqrt({0})"),
    "abs": Operation("fabs({0})", "absolute"),
    "sgn": Operation("A(({0} > 0) - ({0} < 0))", "sgn"),
    "sign_or_nan": Operation("{0} != {0} ? {0} : A(({0} > 0) - ({0} < 0))", "sign"),
    # as a number of float32 has it
    "float32": Operation("A(float({0}))"),
    **_calls("exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan sinh cosh tanh floor ceil trunc rint"),
    **_calls(
        "asin acos atan asinh acosh atanh",
        asin="arcsin", acos="arccos", atan="arctan", asinh="arcsinh", acosh="arccosh", atanh="arctanh",
    ),
    "erf": Operation("erf({0})"),
    "erfc": Operation("erfc({0})"),
    "lgamma": Operation("lgamma({0})"),
    "frac": Operation("{0} - trunc({0})"),
    "pow": Operation("pow({0}, {1})"),
    "atan2": Operation("atan2({0}, {1})"),
    "hypot": Operation("hypot({0}, {1})"),
    "copysign": Operation("copysign({0}, {1})"),
    "nextafter": Operation("nextafter({0}, {1})"),
    # the first of equal ones; NaN if either is
    "maximum": Operation("larger({0}, {1})", "maximum"),
    "minimum": Operation("smaller({0}, {1})", "minimum"),
    # the other one of NaN
    "fmax": Operation("{0} >= {1} || {1} != {1} ? {0} : {1}"),
    "fmin": Operation("{0} <= {1} || {1} != {1} ? {0} : {1}"),
    "clamp": Operation("smaller(larger({0}, {1}), {2})", "clip"),
    # of numbers up to 0, and of numbers from 0 to 1, for which NumPy's own take four times as long
    "expm1_below": Operation("expm1({0})", "expm1_below"),
    "log1p_within": Operation("log1p({0})", "log1p_within"),
    "where": Operation("{0} ? {1} : {2}", "where"),
    "eq": Operation("{0} == {1}", "equal", mask=True),
    "ne": Operation("{0} != {1}", "not_equal", mask=True),
    "lt": Operation("{0} < {1}", "less", mask=True),
    "le": Operation("{0} <= {1}", "less_equal", mask=True),
    "gt": Operation("{0} > {1}", "greater", mask=True),
    "ge": Operation("{0} >= {1}", "greater_equal", mask=True),
    "logical_and": Operation("{0} && {1}", "logical_and", mask=True),
    "logical_or": Operation("{0} || {1}", "logical_or", mask=True),
    "logical_xor": Operation("{0} != {1}", "logical_xor", mask=True),
    "logical_not": Operation("!{0}", "logical_not", mask=True),
    # an infinity minus itself is NaN, which no integer is
    "isnan": Operation("{0} != {0}", "isnan", mask=True),
    "isinf": Operation("{0} == {0} && {0} - {0} != 0", "isinf", mask=True),
    "isfinite": Operation("{0} - {0} == 0", "isfinite", mask=True),
    "bitwise_and": Operation("{0} & {1}"),
    "bitwise_or": Operation("{0} | {1}"),
    "bitwise_xor": Operation("{0} ^ {1}"),
}  # fmt: skip
"""By the names of primitives, which rules call them by."""

FORMULAS: dict[str, Callable[..., Any]] = {}
"""Formulas of primitives by their names: what others that call them are made of."""


def _operator(name: str, *, reflected: bool = False) -> Callable[[Symbol, Node], Symbol]:
    """Return one of Python's operators between a symbol and another, or a number."""

    def made(self: Symbol, other: Node) -> Symbol:
        return self.m.made(name, *((other, self) if reflected else (self, other)))

    return made


class Symbol:
    """A number that is not known yet: an argument of a formula, or the result of an operation.

    Attributes
    ----------
    m : Tracer
        The namespace of the formula.
    name : str
        Of the argument, or of the operation.
    operands : tuple of Symbol, int or float
        Of the operation; () for an argument.
    number : bool
        Whether it is one number for all elements: a setting, or made of such alone.
    rare : bool
        Of ``where``: whether hardly an element is chosen.
    """

    # rules ask their operands whether they are complex
    dtype = np.dtype(np.float32)

    __slots__ = ("m", "name", "number", "operands", "rare")

    def __init__(
        self, m: Tracer, name: str, operands: tuple[Node, ...] = (), *, number: bool = False, rare: bool = False
    ) -> None:
        self.m = m
        self.name = name
        self.operands = operands
        self.number = number
        self.rare = rare

    @property
    def mask(self) -> bool:
        """Whether it is a bool."""
        return bool(self.operands) and OPERATIONS[self.name].mask

    __add__, __radd__ = _operator("add"), _operator("add", reflected=True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", reflected=True)
    __mul__, __rmul__ = _operator("mul"), _operator("mul", reflected=True)
    __truediv__, __rtruediv__ = _operator("div"), _operator("div", reflected=True)
    __pow__, __rpow__ = _operator("pow"), _operator("pow", reflected=True)
    __lt__, __le__, __gt__, __ge__ = _operator("lt"), _operator("le"), _operator("gt"), _operator("ge")
    __and__, __or__ = _operator("logical_and"), _operator("logical_or")

    def __neg__(self) -> Symbol:
        return self.m.made("neg", self)

    def __abs__(self) -> Symbol:
        return self.m.made("abs", self)

    def __eq__(self, other: object) -> bool:
        # containers find a symbol by its identity first
        raise TypeError("a formula cannot compare numbers that are not known yet by == or !=: call m.eq(a, b)")

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError("a formula cannot ask for a number that is not known yet: choose by m.where(condition, a, b)")


Node: TypeAlias = "Symbol | int | float"


class Tracer:
    """The namespace of a formula: operations and formulas by the names of primitives, each called with symbols.

    The same of the same is the same symbol.

    Parameters
    ----------
    truths : dict, optional
        Of conditions on settings alone, by their `text`, whether they hold: choices by these are made. Otherwise they
        stay operations.
    """

    def __init__(self, truths: Mapping[str, bool] | None = None) -> None:
        self._truths = truths
        self._known: dict[tuple[Any, ...], Symbol] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in OPERATIONS:
            return partial(self.made, name)
        if name in FORMULAS:
            return partial(FORMULAS[name], self)
        raise AttributeError(
            f"no formula is known of {name!r}: write it in OPERATIONS of lucid/ops/base/formula/trace.py, or as a "
            "formula of its op",
            name=name,
            obj=self,
        )

    def made(self, name: str, *operands: Node, rare: bool = False) -> Symbol:
        """Return the symbol of an operation on operands."""
        if name in ("logical_and", "logical_or", "logical_xor", "logical_not"):
            operands = tuple([x if isinstance(x, Symbol) and x.mask else self.made("ne", x, 0) for x in operands])
        # as text, since 0, -0.0 and False are one key
        key = (name, rare, *[x if isinstance(x, Symbol) else repr(x) for x in operands])
        symbol = self._known.get(key)
        if symbol is None:
            number = all(not isinstance(x, Symbol) or x.number for x in operands)
            symbol = self._known[key] = Symbol(self, name, operands, number=number, rare=rare)
        return symbol

    def in_order(self, operations: Iterable[Symbol]) -> list[Symbol]:
        """Return operations in the order of their making, that of the formula's text."""
        chosen = set(operations)
        return [each for each in self._known.values() if each in chosen]

    def where(self, condition: Node, a: Node, b: Node, *, rare: bool = False) -> Any:
        """Return the choice between two numbers; `rare` says that the condition hardly ever holds."""
        if not isinstance(condition, Symbol):
            return a if condition else b
        if condition.number:
            condition = condition if condition.mask else self.made("ne", condition, 0)
            if self._truths is not None:
                return a if self._truths[text(condition)] else b
        return self.made("where", condition, a, b, rare=rare)

    # ---- what rules call, and what does nothing to an element, or to a real number ----

    def sum_to(self, x: Node, *, shape: Any) -> Node:
        """Return the element: the sum over broadcast dimensions follows."""
        return x

    def real(self, x: Node) -> Node:
        """Return the number: it is real."""
        return x

    def zeros_like(self, x: Node) -> Node:
        """Return zero."""
        return 0


_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip


def text(node: Node) -> str:
    """Return the expression in Python of a number: one of settings, or a setting, or known."""
    if not isinstance(node, Symbol):
        return repr(node)
    if not node.operands:
        return node.name
    if node.name not in ("neg", *_SIGNS):
        raise NotImplementedError(
            f"{node.name} of settings alone: a chain adds, multiplies, divides and compares these"
        )
    one, *two = map(text, node.operands)
    return f"({one} {_SIGNS[node.name]} {two[0]})" if two else f"(-{one})"


class Traced(NamedTuple):
    """A traced formula: its arguments and its results, one unless it returns a tuple."""

    arrays: tuple[str, ...]
    settings: tuple[str, ...]
    results: tuple[Node, ...]

    def operations(self) -> Iterator[Symbol]:
        """Yield each operation once, behind its operands."""
        return behind_operands(self.results)

    def conditions(self) -> list[Symbol]:
        """Return the conditions on settings alone, each once."""
        choices = [each.operands[0] for each in self.operations() if each.name == "where"]
        return [each for each in dict.fromkeys(choices) if isinstance(each, Symbol) and each.number]


def behind_operands(results: Iterable[Node], leaves: Container[Symbol] = ()) -> Iterator[Symbol]:
    """Yield each operation of results once, behind its operands, but for leaves and their operands."""
    seen: set[Symbol] = set()

    def walk(node: Node) -> Iterator[Symbol]:
        if isinstance(node, Symbol) and node.operands and node not in seen and node not in leaves:
            seen.add(node)
            for operand in node.operands:
                yield from walk(operand)
            yield node

    for result in results:
        yield from walk(result)


def settings_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the parameters of a function that are given by keyword alone."""
    code = function.__code__
    return code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]


def trace(function: Callable[..., Any], truths: Mapping[str, bool] | None = None, /, **known: Any) -> Traced:
    """Return the operations of a formula, or of a rule, on its parameters behind `m` but for those that are known.

    Those that are given by keyword alone are settings; the shapes that a rule sums to are left out. Of several results
    those that are None are left out. `truths` is as for `Tracer`.
    """
    named = function.__code__.co_varnames[1 : function.__code__.co_argcount]
    known |= {name: None for name in named if name.endswith("_shape")}
    arrays = tuple([name for name in named if name not in known])
    settings = tuple([name for name in settings_of(function) if name not in known])
    m = Tracer(truths)
    symbols = {name: Symbol(m, name) for name in arrays} | {name: Symbol(m, name, number=True) for name in settings}
    results = function(m, **symbols, **known)
    several = cast("tuple[Node | None, ...]", results if isinstance(results, tuple) else (results,))
    return Traced(arrays, settings, tuple([each for each in several if each is not None]))
