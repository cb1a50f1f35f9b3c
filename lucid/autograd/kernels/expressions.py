"""Expressions of CUDA C, as they stand in kernels: read into terms, put together simplified, and written again.

Read are numbers, names, ``+ - * / %``, comparisons, ``&& || !``, ``?:``, calls of functions and casts. Terms keep the
order of operations, so that what is written again gives the same bits.
"""

from __future__ import annotations

import math
import operator
import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lucid.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

__all__ = [
    "ONE", "ZERO", "Term", "Written", "assignments", "made", "names_in", "number", "parse", "put", "replaced",
    "unknown_names", "write",
]  # fmt: skip


class Term(NamedTuple):
    """A number or a name, without parts; or an operator, ``"(type)"`` or a function's name, with operands.

    The operators of one operand are ``"neg"`` and ``"!"``, that of three is ``"?"``.
    """

    head: str
    parts: tuple[Term, ...] = ()

    def __str__(self) -> str:
        return write(self)


class Written(Term):
    """A term in the user's words, not to be simplified.

    It may be of integers, whose sign is another where they are unsigned.
    """

    __slots__ = ()


_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+[uUlL]*|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFuUlL]*)(?![\w.])"
    r"|(?:std::|::)?(?P<name>[A-Za-z_]\w*)(?!\w|::)"
    r"|(?P<sign>&&|\|\||[=!<>]=|[-+*/%!](?!=)|<(?!<)|>(?!>)|[?:(),])"
    r"|(?P<end>$))"
)
_LEVELS = (("||",), ("&&",), ("==", "!="), ("<", ">", "<=", ">="), ("+", "-"), ("*", "/", "%"))
_LEVEL = {sign: level for level, signs in enumerate(_LEVELS, 1) for sign in signs}
_UNARY, _LEAF = len(_LEVELS) + 1, len(_LEVELS) + 2

FLOATING = frozenset(("float", "double", "half", "float16", "float32", "float64", "bfloat16"))
INTEGERS = frozenset(("bool", "char", "short", "int", "long", "unsigned", "signed", "size_t")).union(
    f"{sign}int{bits}{end}" for sign in ("", "u") for bits in (8, 16, 32, 64) for end in ("", "_t")
)
_WORDS = frozenset(
    ("true", "false", "sizeof", "static_cast", "const", "auto", "decltype", "typename", "std", "nullptr", "complex")
)
# A term is compared with others as a whole, at a price of its length for each of its parts.
_MOST = 2_000
# M_PI, CUDART_INF_F and the like: a constant that the preprocessor knows
_CONSTANT = re.compile("[A-Z][A-Z0-9_]+")
_NUMBER = re.compile(r"0|[1-9]\d{0,8}|(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?[fF]?")
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
}  # fmt: skip
_FOLDED: Mapping[str, Callable[[float, float], float]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


# ---- reading ----


class _Reader:
    """One text, read from left to right by the precedence of its operators."""

    def __init__(self, text: str, types: Collection[str]) -> None:
        self.text = text
        self.types = types
        self.at = self.next = self.count = 0
        self.word = ""
        self.kind: str | None = None
        self.advance()

    def refuse(self) -> KernelError:
        rest = " ".join(self.text[self.at :].split())[:40]
        return KernelError(f"{repr(rest) if rest else 'the end'} is not understood in {self.text.strip()!r}")

    def advance(self) -> str:
        """Return the token, and read the next one."""
        self.count += 1
        if self.count > _MOST:
            raise KernelError(
                f"{self.text.strip()[:40]!r}... is too long to be read: more than {_MOST:,} words and signs"
            )
        before, self.at = self.word, self.next
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            raise self.refuse()
        self.kind = match.lastgroup
        self.word, self.next = match[match.lastgroup or 0], match.end()
        return before

    def take(self, sign: str) -> None:
        if self.word != sign:
            raise self.refuse()
        self.advance()

    def whole(self) -> Term:
        term = self.choice()
        if self.kind != "end":
            raise self.refuse()
        return term

    def choice(self) -> Term:
        condition = self.binary(1)
        if self.word != "?":
            return condition
        self.advance()
        first = self.choice()
        self.take(":")
        return Term("?", (condition, first, self.choice()))

    def binary(self, level: int) -> Term:
        term = self.unary()
        while self.kind == "sign" and _LEVEL.get(self.word, 0) >= level:
            sign = self.advance()
            term = Term(sign, (term, self.binary(_LEVEL[sign] + 1)))
        return term

    def unary(self) -> Term:
        if self.word in {"-", "+", "!"}:
            sign, operand = self.advance(), self.unary()
            return operand if sign == "+" else Term("neg" if sign == "-" else sign, (operand,))
        if self.word == "(":
            self.advance()
            if kind := self.type():
                self.take(")")
                return Term(f"({kind})", (self.unary(),))
            term = self.choice()
            self.take(")")
            return term
        return self.leaf()

    def type(self) -> str:
        """Return the type that begins here, of one word or several; nothing if none does."""
        words: list[str] = []
        while self.kind == "name" and (self.word in self.types or self.word in INTEGERS | FLOATING):
            words.append(self.advance())
        return " ".join(words)

    def leaf(self) -> Term:
        if self.kind == "number":
            return Term(self.advance())
        if self.kind != "name":
            raise self.refuse()
        if self.word == "static_cast":
            self.advance()
            self.take("<")
            kind = self.type()
            self.take(">")
            if not kind:
                raise self.refuse()
            return Term(f"({kind})", self.arguments(1))
        if kind := self.type():
            return Term(f"({kind})", self.arguments(1))
        name = self.advance()
        return Term(name, self.arguments()) if self.word == "(" else Term(name)

    def arguments(self, count: int = 0) -> tuple[Term, ...]:
        """Return the arguments of a call; `count` of them, unless that is 0."""
        self.take("(")
        terms = [self.choice()] if self.word != ")" else []
        while self.word == ",":
            self.advance()
            terms.append(self.choice())
        if not terms or (count and len(terms) != count):
            raise self.refuse()
        self.take(")")
        return tuple(terms)


def parse(text: str, types: Collection[str] = ()) -> Term:
    """Return the term of an expression.

    Parameters
    ----------
    text : str
        The expression.
    types : collection of str
        Names of types beside those of C, such as the letters of a kernel of CuPy's.

    Raises
    ------
    KernelError
        If it is none, or more than is read: it says what is not understood.
    """
    reader = _Reader(text, types)
    try:
        return reader.whole()
    except RecursionError:
        raise KernelError(f"{text.strip()[:40]!r}... is nested too deep to be read") from None


def assignments(text: str, targets: Collection[str], types: Collection[str] = ()) -> dict[str, Term]:
    """Return the terms that ``y = x * x; z = 2 * x`` assigns, by the name of each target.

    ``T t = exp(x)`` declares a variable, which may be assigned to again, ``t = t + 1`` or ``t *= x``: where its name
    stands, its value does, in its type.

    Raises
    ------
    KernelError
        If the text is anything else, assigns to another name, or not once to each target.
    """
    terms: dict[str, Term] = {}
    kinds: dict[str, str] = {}
    values: dict[Term, Term] = {}
    for statement in filter(str.strip, text.split(";")):
        assigned = _STATEMENT.fullmatch(statement)
        kind, name, sign, value = assigned.groups() if assigned else ("", "", "", "")
        declared = _declared(kind, types) if kind else None
        known = declared is not None if kind else name in kinds or (name in targets and not sign)
        if not known or (kind and (sign or name in targets)):
            raise KernelError(f"{statement.strip()!r} is no assignment to {' or '.join(targets)}")
        if name in terms or (kind and name in kinds):
            raise KernelError(f"{name} is {'declared' if kind else 'assigned to'} twice")
        term = parse(value, types)
        if sign:
            term = Term(sign, (Term(name), term))
        term = replaced(term, values)
        if sum(1 for _ in walk(term)) > _MOST:
            raise KernelError(f"what {name} stands for is too long to be read: more than {_MOST:,} names and signs")
        if name in targets:
            terms[name] = term
            continue
        kind = kinds.setdefault(name, declared or "")
        values[Term(name)] = Term(f"({kind})", (term,)) if kind else term
    if missing := [name for name in targets if name not in terms]:
        raise KernelError(f"nothing is assigned to {', '.join(missing)} in {text.strip()!r}")
    return terms


_STATEMENT = re.compile(r"\s*((?:[A-Za-z]\w*\s+)+)?(\w+)\s*([-+*/%]?)=(?!=)(.*)", re.DOTALL)


def _declared(kind: str, types: Collection[str]) -> str | None:
    """Return the type of a variable that is declared so, nothing for ``auto``; None if it is none that is read."""
    words = [word for word in kind.split() if word != "const"]
    if words == ["auto"]:
        return ""
    return " ".join(words) if words and all(word in {*types, *INTEGERS, *FLOATING} for word in words) else None


def walk(term: Term) -> Iterator[Term]:
    """Return a term and all terms inside of it."""
    waiting = [term]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += each.parts


def names_in(term: Term) -> set[str]:
    """Return the names in a term that are neither numbers nor functions."""
    return {each.head for each in walk(term) if not each.parts and each.head[0] not in ".0123456789"} - _WORDS


def words_in(text: str) -> set[str]:
    """Return the names in any text of C that neither stand before a bracket or ``::`` nor behind a dot."""
    words = re.findall(r"(?<![\w.])(?!\d)\w+\b(?!\s*(?:\(|::))", text)
    return {word for word in words if word not in _WORDS | INTEGERS | FLOATING}


def unknown_names(text: str, known: Collection[str]) -> list[str]:
    """Return the names in any text of C that are neither known, nor types, nor constants of the preprocessor."""
    return sorted(word for word in words_in(text) if word not in known and not _CONSTANT.fullmatch(word))


# ---- writing ----


def write(term: Term, level: int = 0) -> str:
    """Return the text of a term, in brackets if it stands between operators of a `level` above its own."""
    head, parts = term
    if not parts:
        return head
    if head == "?":
        own, text = 0, f"{write(parts[0], 1)} ? {write(parts[1], 1)} : {write(parts[2])}"
    elif head in _LEVEL and len(parts) == 2:
        own = _LEVEL[head]
        text = f"{write(parts[0], own)} {head} {write(parts[1], own + 1)}"
    elif head in {"neg", "!"} or head[0] == "(":
        inner = write(parts[0], _UNARY)
        own, text = _UNARY, ("-" if head == "neg" else head) + (f"({inner})" if inner[0] == "-" else inner)
    else:
        own, text = _LEAF, f"{head}({', '.join(map(write, parts))})"
    return f"({text})" if own < level else text


# ---- putting together ----


def number(value: float, *, single: bool = False) -> Term:
    """Return the term of a number, `single` of a float; of a whole one that no integer of C holds of a double."""
    if value < 0:
        return Term("neg", (number(-value, single=single),))
    if not math.isfinite(value):
        return Term("/", (number(0.0 if math.isnan(value) else 1.0, single=single), number(0.0, single=single)))
    if single and value < 3e38:
        return Term(f"{np.float32(value)!s}f")
    return Term(repr(float(value) if value >= 2**63 else value))


ZERO, ONE = Term("0"), Term("1")


def _value(term: Term) -> int | float | None:
    """Return the value of a number with no suffix but f, the same in C and Python; None for any other term."""
    if term.head == "neg":
        value = _value(term.parts[0])
        return None if value is None else -value
    if term.parts or not _NUMBER.fullmatch(term.head):
        return None
    if term.head[-1] in "fF":
        return float(np.float32(term.head[:-1]))
    return int(term.head) if term.head.isdigit() else float(term.head)


def made(head: str, *parts: Term) -> Term:
    """Return a term of these parts, in its simplest form: of floating-point numbers, as gradients are."""
    values = [_value(part) for part in parts]
    known = len(parts) == 2 and None not in values
    first, second = values[0], values[-1]
    if head in _COMPARE and known:
        return ONE if _COMPARE[head](first, second) else ZERO  # pyright: ignore[reportArgumentType]
    simplify = _SIMPLER.get(head)
    simpler = None if simplify is None else simplify(parts, first, second)
    if simpler is None and known and head in _FOLDED:
        folded = _FOLDED[head](first, second)  # pyright: ignore[reportArgumentType]
        kinds = [type(value) if str(part)[-1] not in "fF" else None for part, value in zip(parts, values, strict=True)]
        return number(folded, single=None in kinds and float not in kinds)
    return Term(head, parts) if simpler is None else simpler


def _sum(parts: tuple[Term, ...], first: float | None, second: float | None) -> Term | None:
    a, b = parts
    if first == 0:
        return b
    if second == 0:
        return a
    if a == b:
        return made("*", a, Term("2"))
    positive = _opposite(b)
    return None if positive is None else made("-", a, positive)


def _difference(parts: tuple[Term, ...], first: float | None, second: float | None) -> Term | None:
    a, b = parts
    if second == 0:
        return a
    return made("neg", b) if first == 0 else None


def _opposite(term: Term) -> Term | None:
    """Return a term that begins with a minus without it; None for any other term."""
    if isinstance(term, Written):
        return None
    if term.head == "neg":
        return term.parts[0]
    if term.head in {"*", "/"}:
        first = _opposite(term.parts[0])
        return None if first is None else made(term.head, first, term.parts[1])
    return None


def _product(parts: tuple[Term, ...], first: float | None, second: float | None) -> Term | None:
    a, b = parts
    if first == 0 or second == 0:
        return ZERO
    if first == 1:
        return b
    if second == 1:
        return a
    return made("neg", a) if second == -1 else None


def _quotient(parts: tuple[Term, ...], first: float | None, second: float | None) -> Term | None:
    return ZERO if first == 0 and second != 0 else parts[0] if second == 1 else None


def _negative(parts: tuple[Term, ...], first: float | None, _: float | None) -> Term | None:
    (a,) = parts
    return ZERO if first == 0 else _opposite(a)


def _chosen(parts: tuple[Term, ...], first: float | None, _: float | None) -> Term | None:
    condition, a, b = parts
    return a if a == b or (first is not None and first != 0) else b if condition == ZERO else None


def _both(parts: tuple[Term, ...], first: float | None, second: float | None) -> Term | None:
    if first == 0 or second == 0:
        return ZERO
    return parts[1] if first is not None else parts[0] if second is not None else None


def _power(parts: tuple[Term, ...], _: float | None, second: float | None) -> Term | None:
    return parts[0] if second == 1 else None


_SIMPLER: Mapping[str, Callable[[tuple[Term, ...], float | None, float | None], Term | None]] = {
    "+": _sum, "-": _difference, "*": _product, "/": _quotient, "neg": _negative, "?": _chosen, "&&": _both,
    "pow": _power, "powf": _power,
}  # fmt: skip


def put(term: Term, values: Mapping[Term, Term]) -> Term:
    """Return a term with other terms instead of some, in its simplest form."""
    if term in values:
        return values[term]
    return made(term.head, *[put(part, values) for part in term.parts]) if term.parts else term


def replaced(term: Term, values: Mapping[Term, Term]) -> Term:
    """Return a term with other terms instead of some; all else stays as it is."""
    if term in values:
        return values[term]
    return Term(term.head, tuple([replaced(part, values) for part in term.parts])) if values and term.parts else term
