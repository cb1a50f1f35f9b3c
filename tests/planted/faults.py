"""What faults a function can have: small changes of its syntax tree, each of one place.

These are planted: a comparison, an arithmetic or a logical operator becomes its neighbour (``<`` to ``<=``, ``+`` to
``-``, ``and`` to ``or``); a part of ``and`` or ``or``, a sign, a ``not``, a keyword argument, a statement that only
calls, ``del`` or ``continue`` is left away; a number is one more, a truth value another; two arguments that follow
each other, or the sides of ``x if a else b``, change places; a condition is turned round or never holds; what is
returned is None. These are not, as nothing can change by them: two operands of a commutative function in each other's
place (`COMMUTATIVE`), ``strict=`` of ``zip``, which only says what holds already, what only a type checker runs, and
whatever is no code of a function's body: annotations, decorators, docstrings, a module's or a class's own statements
(``__all__``, ``__slots__``). Messages of exceptions and f-strings are other tests' matter.
"""

from __future__ import annotations

import ast
import copy
from typing import NamedTuple

OPPOSITES = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Div, ast.Mod: ast.Add,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip

# Functions of two operands whose order no answer tells: as they are, and as attributes of these modules and tables.
COMMUTATIVE = {
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "eq", "equal", "gcd", "hypot", "lcm", "logical_and",
    "logical_or", "logical_xor", "maximum", "may_share_memory", "minimum", "mul", "multiply", "ne", "not_equal",
    "promote_types", "result_type",
}  # fmt: skip
OWNERS = {"GRAPH", "xp", "np", "cupy", "lnp", "math", "m", "arithmetic", "comparison", "logic"}


class Fault(NamedTuple):
    """One changed place: its line, what stood there, and what stands there now."""

    line: int
    old: str
    new: str
    tree: ast.Module

    def __str__(self) -> str:
        return f"{self.old!r} -> {self.new!r}"


def negated(node):
    """Return a condition that holds where another does not."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    return ast.UnaryOp(ast.Not(), node)


def swapped(values, first):
    """Return values of which two neighbours stand in each other's place."""
    return [*values[:first], values[first + 1], values[first], *values[first + 2 :]]


def is_commutative(call):
    """Return whether nothing tells in which order a call has its two operands."""
    match call.func:
        case ast.Name(name):
            known = name in COMMUTATIVE | {"min", "max"}
        case ast.Attribute(ast.Name(owner), name):
            known = owner in OWNERS and name in COMMUTATIVE
        case _:
            known = False
    return known and len(call.args) == 2


def says_nothing(node, part):
    """Return whether a part only says what holds already: that the iterables of a zip end together."""
    match node, part:
        case ast.Call(func=ast.Name("zip")), ast.keyword("strict"):
            return True
    return False


def changes(node):
    """Yield what an expression or a statement can be turned into."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in OPPOSITES:
            yield ast.Compare(node.left, [OPPOSITES[type(op)]()], node.comparators)
        case ast.BinOp(op=op) if type(op) in OPPOSITES:
            yield ast.BinOp(node.left, OPPOSITES[type(op)](), node.right)
        case ast.AugAssign(op=op) if type(op) in OPPOSITES:
            yield ast.AugAssign(node.target, OPPOSITES[type(op)](), node.value)
        case ast.BoolOp(op=op):
            yield ast.BoolOp(OPPOSITES[type(op)](), node.values)
            yield from (
                part
                for part in (node.values[:-1], node.values[1:])
                for part in [part[0] if len(part) == 1 else ast.BoolOp(op, part)]
            )
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.IfExp():
            yield ast.IfExp(node.test, node.orelse, node.body)
        case ast.If(test=test):
            yield ast.If(negated(test), node.body, node.orelse)
            if node.orelse or isinstance(node.body[-1], ast.Raise):
                yield ast.If(ast.Constant(value=False), node.body, node.orelse)
        case ast.Call(args=args, keywords=keywords):
            for place in range(len(args) - 1):
                if not any(isinstance(each, ast.Starred) for each in args) and not is_commutative(node):
                    yield ast.Call(node.func, swapped(args, place), keywords)
            for place, keyword in enumerate(keywords):
                if not says_nothing(node, keyword):
                    yield ast.Call(node.func, args, [*keywords[:place], *keywords[place + 1 :]])
        case ast.Expr(value=ast.Call()) | ast.Delete() | ast.Continue():
            yield ast.Pass()
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case _:
            return


class Places(ast.NodeVisitor):
    """Collects each place of the functions of a module at which something can be changed, by its way from the root."""

    def __init__(self):
        self.found, self.way, self.depth = [], [], 0

    def generic_visit(self, node):
        """Note a place in a function, and go on inside."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            self.depth += 1
            self.inside(node)
            self.depth -= 1
            return
        match node:
            case ast.Raise() | ast.Assert() | ast.If(test=ast.Name("TYPE_CHECKING")):
                return
        if self.depth:
            self.found += [(tuple(self.way), node, number) for number in range(len([*changes(node)]))]
        if not isinstance(node, ast.JoinedStr):
            self.inside(node)

    def inside(self, node):
        """Look at what a node consists of, but for annotations, decorators and defaults, which are no code of it."""
        for name, value in ast.iter_fields(node):
            if name in {"annotation", "returns", "decorator_list", "args"} and not isinstance(node, ast.Call):
                continue
            for place, each in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(each, ast.AST) and not says_nothing(node, each):
                    self.way.append((name, place if isinstance(value, list) else None))
                    self.visit(each)
                    self.way.pop()


def places(source):
    """Return where faults can be planted in a module, as (way, node, number)."""
    visitor = Places()
    visitor.visit(ast.parse(source))
    return visitor.found


def planted(source, place):
    """Return a fault of a module."""
    way, node, number = place
    tree = ast.parse(source)
    owner = tree
    for name, at in way[:-1]:
        owner = getattr(owner, name) if at is None else getattr(owner, name)[at]
    name, at = way[-1]
    new = ast.copy_location(copy.deepcopy([*changes(node)][number]), node)
    if at is None:
        setattr(owner, name, new)
    else:
        getattr(owner, name)[at] = new
    ast.fix_missing_locations(tree)
    return Fault(node.lineno, shown(node), shown(new), tree)


def shown(node):
    """Return the first line of what a node says."""
    return ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).splitlines()[0][:100]
