"""Declarations in CUDA C++ source: kernels' parameters, the structs that they are passed, and constants.

All of it is read where it stands, when it is first asked for, so that nothing is typed in Python once more. Read are
numbers, pointers, arrays and structs of these; templates of structs, with explicit specialisations; aliases; and
constants of whole numbers. Anything else is an error; ``tests/cuda/source/test_signature.py`` compares with compilers.
"""

from __future__ import annotations

import ast
import math
import re
import struct
from collections import defaultdict
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import ml_dtypes
import numpy as np

from lucid.cuda.source.sources import files, joined, named
from lucid.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Number(NamedTuple):
    """A type of CUDA C++ that is a number."""

    code: str  # of the struct module
    dtype: np.dtype[Any]


NUMBERS = {
    "float": Number("f", np.dtype(np.float32)),
    "double": Number("d", np.dtype(np.float64)),
    "__half": Number("e", np.dtype(np.float16)),
    "__nv_bfloat16": Number("H", np.dtype(ml_dtypes.bfloat16)),
    "signed char": Number("b", np.dtype(np.int8)),
    "unsigned char": Number("B", np.dtype(np.uint8)),
    "short": Number("h", np.dtype(np.int16)),
    "int": Number("i", np.dtype(np.int32)),
    "long long": Number("q", np.dtype(np.int64)),
    "bool": Number("?", np.dtype(np.bool_)),
    "unsigned short": Number("H", np.dtype(np.uint16)),
    "unsigned int": Number("I", np.dtype(np.uint32)),
    "unsigned long long": Number("Q", np.dtype(np.uint64)),
}
_SYNONYMS = {
    "half": "__half",
    "nv_bfloat16": "__nv_bfloat16",
    "char": "signed char",
    "unsigned": "unsigned int",
    "long": "long long",
    "unsigned long": "unsigned long long",
    "size_t": "unsigned long long",
    "ptrdiff_t": "long long",
    **{f"int{bits}_t": name for bits, name in ((8, "signed char"), (16, "short"), (32, "int"), (64, "long long"))},
    **{f"uint{bits}_t": f"unsigned {n}" for bits, n in ((8, "char"), (16, "short"), (32, "int"), (64, "long long"))},
}

# Patterns, which `re` compiles when one is first used: they were a twentieth of the time of `import lucid`. They match
# to the end of a text what is never closed in it, so that none is sought there once more. They begin with a word, by
# which they are found fast; where it begins, their template ends.
_COMMENT = r"(?s)//[^\n]*|/\*.*?(?:\*/|\Z)"
_TEMPLATE = r"template\s*<((?:(?!template\b)[^<>]|(?:template\s*)?<[^<>]*>)*)>\s*(?:(?:extern\s+\"C\"|static)\s+)?"
_BOUNDS = r"(?:__launch_bounds__\s*\([^()]*\)\s*)?"
_KERNEL = rf"__global__\s+(?:static\s+)?{_BOUNDS}void\s+{_BOUNDS}(?P<name>\w+)\s*\((?P<parameters>[^)]*)(?P<closed>\)?)"
_STRUCT = r"struct(?<!\wstruct)\s+(?P<name>\w+)\s*(?:<(?P<special>[^;{}]*)>\s*)?\{"
_USING = r"using(?<!\wusing)\s+(?P<name>\w+)\s*=\s*(?P<meaning>[^;]+);"
_TYPEDEF = r"typedef\s+(?P<meaning>[^;{}]+?)\s*\b(?P<name>\w+)\s*;"
_CONSTANTS = r"constexpr\s+\w[\w ]*?(?P<constants>\w+\s*=[^;{}]*);"
_FUNCTION = r"constexpr\s+\w[\w ]*?(?P<name>\w+)\((?P<of>[^()]*)\)\s*\{\s*return\s+(?P<value>[^;]+);\s*\}"
_ENUM = r"enum(?<!\wenum)\s+\w*\s*\{(?P<names>[^{}=]*)\}"

_QUALIFIERS = r"\b(const|volatile|__restrict__|__restrict|restrict|__grid_constant__|typename)\b"
_WORD = r"\b[A-Za-z_]\w*"
_LIST = r"[<>()\[\],]"
_EXTENT = r"\[([^\][]*)\]"
_BRACE = re.compile(r"[{}]")
_INNER = r"\{[^{}]*\}"
_ARGUMENTS = r"(?:<(?P<arguments>[^<>]*(?:<[^<>]*>[^<>]*)*)>)?"
_TYPE = rf"(?P<name>\w+){_ARGUMENTS}(?:::(?P<member>\w+))?"
_TERM = rf"\bsizeof\s*\((?P<type>[^()]*)\)|\b(?P<name>[A-Za-z_]\w*){_ARGUMENTS}(?:\((?P<of>[^()]*)\))?"
_CAST = r"\((?:int|unsigned|long long|size_t)\)"
# Statements in a struct that are no members, and those that may be and are not read.
_NO_MEMBER = r"(?:static|typedef|using|template|friend)\b|(?:struct|union|enum)\s*\w*$"
_UNREAD = r"\bvirtual\b|\balignas\b|\b__align__\b|\(\s*\*|(?<!:):(?!:)|^(?:struct|union|enum|class)\s+\w+\s+\w"

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: int.__add__, ast.Sub: int.__sub__, ast.Mult: int.__mul__, ast.Div: int.__floordiv__, ast.Mod: int.__mod__,
}  # fmt: skip


class Declared(NamedTuple):
    """A parameter of a kernel, or a member of a struct: stars of pointers, extents of arrays."""

    type: str
    stars: int
    name: str
    extents: list[str]


class Layout(NamedTuple):
    """The layout of a type in memory: codes of the struct module, size in bytes, and alignment."""

    codes: str
    size: int
    alignment: int


# Of a name the definitions: parameters of the template or function, and the type or the expression of these.
_Definitions = dict[str, set[tuple[tuple[str, ...], str]]]


def declared(text: str) -> list[Declared]:
    """Return the names declared by a declaration such as ``const float* x`` or ``long long size_d[8], count``."""
    variables: list[Declared] = []
    for each in _split(re.sub(_QUALIFIERS, " ", text)):
        *words, name = each.partition("[")[0].replace("*", " * ").split() or [""]
        stars = 0
        while words and words[-1] == "*":
            words.pop()
            stars += 1
        kind = _plain(" ".join(words)) or (variables[0].type if variables else "")
        variables.append(Declared(kind, stars, name, re.findall(_EXTENT, each)))
    return variables


def is_const(declaration: str) -> bool:
    """Return whether a parameter, or the memory that it points to, is read-only."""
    return re.search(r"\bconst\b", declaration.partition("*")[0]) is not None


def _plain(kind: str) -> str:
    """Return the one name of a type that has several."""
    kind = re.sub(r"^(unsigned |)(short|long long|long) int$", r"\1\2", kind)
    return _SYNONYMS.get(kind, kind)


def _split(text: str | None) -> list[str]:
    """Return the parts of a list, at commas that stand in no brackets."""
    parts: list[str] = []
    depth = start = 0
    for match in re.finditer(_LIST, text or ""):
        if match[0] != ",":
            depth += 1 if match[0] in "<([" else -1
        elif text and not depth:
            parts.append(text[start : match.start()].strip())
            start = match.end()
    return [*parts, text[start:].strip()] if text and text.strip() else []


def _put(text: str, names: Iterable[str], values: Iterable[str]) -> str:
    """Return a text with values instead of names."""
    known = dict(zip(names, values, strict=True))
    return re.sub(_WORD, lambda word: known.get(word[0], word[0]), text) if known else text


def _names(parameters: str | None) -> tuple[str, ...]:
    """Return the names of parameters of a template, or of a function."""
    return tuple([(each.partition("=")[0].split() or [""])[-1] for each in _split(parameters)])


def _templates(text: str) -> dict[int, str]:
    """Return the parameters of templates, by the positions in a text of the templates' own declarations."""
    return {each.end(): each[1] for each in re.finditer(_TEMPLATE, text)}


def _definitions(text: str) -> _Definitions:
    """Return the constants of a text, and the types that it gives other names."""
    definitions: _Definitions = defaultdict(set)
    templates = _templates(text)
    for each in (*re.finditer(_TYPEDEF, text), *re.finditer(_USING, text)):
        definitions[each["name"]].add((_names(templates.get(each.start())), each["meaning"]))
    for each in re.finditer(_CONSTANTS, text):
        for name, _, value in (one.partition("=") for one in _split(each["constants"])):
            definitions[name.strip()].add((_names(templates.get(each.start())), f"({value.strip()})"))
    for each in re.finditer(_FUNCTION, text):
        definitions[each["name"]].add((_names(each["of"]), f"({each['value']})"))
    for each in re.finditer(_ENUM, text):
        for number, name in enumerate(_split(each["names"])):
            definitions[name].add(((), str(number)))
    return definitions


def _together(fields: Iterable[Layout]) -> Layout:
    """Return the layout of consecutive fields, without padding at the end."""
    codes, end, alignment = "", 0, 1
    for each in fields:
        gap = -end % each.alignment
        # the struct module aligns numbers by itself
        codes += (f"{gap}x" if gap and not re.fullmatch(r"\d*[^sx\d]", each.codes) else "") + each.codes
        end += gap + each.size
        alignment = max(alignment, each.alignment)
    return Layout(codes, end, alignment)


class Source:
    """The declarations of a text; a `KernelError` names the missing or unsupported one.

    Parameters
    ----------
    text : str
        CUDA C++, with the headers whose types it uses.
    name : str
        What errors call it.
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.whole = text
        self._text = re.sub(_COMMENT, " ", text)
        self._templates = _templates(self._text)
        self._layouts: dict[str, Layout] = {}
        # by the text of a parameter: the name of its type, and the layout
        self._fields: dict[str, tuple[str, Layout]] = {}

    @cached_property
    def kernels(self) -> dict[str, tuple[str | None, list[str]]]:
        """By the name of each kernel the parameters of its template, if it is one, and declarations of its own."""
        kernels: dict[str, tuple[str | None, list[str]]] = {}
        for each in re.finditer(_KERNEL, self._text):
            if each["closed"]:
                parameters = _split(each["parameters"])
                kernels[each["name"]] = self._templates.get(each.start()), [p for p in parameters if p != "void"]
        return kernels

    @cached_property
    def _structs(self) -> list[re.Match[str]]:
        return list(re.finditer(_STRUCT, self._text))

    @cached_property
    def _known(self) -> _Definitions:
        return _definitions(self._text)

    # ---- kernels ----

    def parameters(self, kernel: str, arguments: Sequence[str] = ()) -> list[str]:
        """Return the declarations of a kernel's parameters, with the arguments of its template filled in."""
        if kernel not in self.kernels:
            raise KernelError(f"{self.name} has no kernel {kernel!r}; it has {', '.join(self.kernels) or 'none'}")
        template, parameters = self.kernels[kernel]
        names = _names(template)
        if len(names) != len(arguments):
            raise KernelError(f"{kernel} is a template <{template or ''}>, got '{kernel}<{', '.join(arguments)}>'")
        return [_put(each, names, arguments) for each in parameters]

    def signature(self, kernel: str, arguments: Sequence[str] = (), packed: Sequence[str] = ()) -> str:
        """Return the codes of a kernel's parameters, as of the struct module with native alignment.

        Parameters
        ----------
        kernel : str
            Its name, without a namespace.
        arguments : sequence of str
            Of its template.
        packed : sequence of str
            Structs that are one value, of bytes; the members of others are values of their own.
        """
        fields: list[Layout] = []
        for text in self.parameters(kernel, arguments):
            if text not in self._fields:
                (parameter,) = declared(text)
                if parameter.extents:
                    # C++ passes the address of an array
                    parameter = parameter._replace(stars=1, extents=[])
                self._fields[text] = parameter.type.partition("<")[0], self.field(parameter)
            kind, field = self._fields[text]
            fields.append(field._replace(codes=f"{field.size}s") if kind in packed else field)
        return _together(fields).codes

    # ---- types ----

    def layout(self, kind: str) -> Layout:
        """Return the layout of a number or a struct."""
        if kind not in self._layouts:
            plain = self.resolved(kind)
            if plain in NUMBERS:
                size = struct.calcsize(NUMBERS[plain].code)
                self._layouts[kind] = Layout(NUMBERS[plain].code, size, size)
            else:
                codes, end, alignment = _together(map(self.field, self.members(plain)))
                gap = -end % alignment if end else 1
                self._layouts[kind] = Layout(codes + (f"{gap}x" if gap else ""), end + gap, alignment)
        return self._layouts[kind]

    def field(self, declared: Declared) -> Layout:
        """Return the layout of a parameter or member."""
        codes, size, alignment = Layout("P", 8, 8) if declared.stars else self.layout(declared.type)
        if not declared.extents:
            return Layout(codes, size, alignment)
        count = math.prod(map(self.value, declared.extents))
        return Layout(f"{count}{codes}" if len(codes) == 1 else codes * count, size * count, alignment)

    def members(self, kind: str) -> list[Declared]:
        """Return the members of a struct, such as ``"Layout<3>"``."""
        body, depth = self._body(self.resolved(kind)), 1
        own = {name: meaning for name, ((_, meaning), *_) in _definitions(body).items()}
        body = _put(body, own, own.values())
        while depth:
            body, depth = re.subn(_INNER, ";", body)
        members: list[Declared] = []
        for statement in map(str.strip, body.split(";")):
            if re.search(_UNREAD, statement):
                raise KernelError(f"{self.name}: {statement[:80]!r} in {kind} is more than is read of a struct")
            if statement and "(" not in re.sub(_EXTENT, "", statement) and not re.match(_NO_MEMBER, statement):
                members += declared(statement)
        return members

    def resolved(self, kind: str) -> str:
        """Return the name of a type with aliases resolved, and with the arguments of its template."""
        kind = _plain(" ".join(re.sub(_QUALIFIERS, " ", kind).split()))
        match = re.fullmatch(_TYPE, kind)
        if kind in NUMBERS or match is None:
            return kind
        name, arguments = match["name"], [self.resolved(each) for each in _split(match["arguments"])]
        known = [each for each in self._known.get(name, ()) if len(each[0]) == len(arguments)]
        if match["member"]:
            whole = f"{name}<{', '.join(arguments)}>" if arguments else name
            known, arguments = list(_definitions(self._body(whole)).get(match["member"], ())), []
        if len(known) == 1:
            return self.resolved(_put(known[0][1], known[0][0], arguments))
        return f"{name}<{', '.join(arguments)}>" if arguments else kind

    def _body(self, kind: str) -> str:
        """Return the text in the braces of a struct, with its arguments substituted for the parameters."""
        match = re.fullmatch(_TYPE, kind)
        choices = [each for each in self._structs if match and not match["member"] and each["name"] == match["name"]]
        arguments = _split(match["arguments"]) if match else []
        special = [each for each in choices if each["special"] and _split(each["special"]) == arguments]
        partial = any(each["special"] and self._templates.get(each.start()) for each in choices)
        for each in special or [each for each in choices if each["special"] is None and not partial]:
            names = _names(self._templates.get(each.start()))
            depth = 1
            for brace in _BRACE.finditer(self._text, each.end()):
                depth += 1 if brace[0] == "{" else -1
                if not depth and (special or len(names) == len(arguments)):
                    return _put(self._text[each.end() : brace.start()], names, [] if special else arguments)
        raise KernelError(
            f"{self.name} has no number and no struct {kind!r}, without bases and partial specialisations"
        )

    # ---- constants ----

    def value(self, expression: str) -> int:
        """Return the value of a constant expression: ``"MAX_DIMS"``, ``"items_of_thread<float>"``, ``"pitch(64)"``."""
        plain = re.sub(_TERM, self._term, re.sub(_CAST, "", expression))
        try:
            return _computed(ast.parse(plain.strip(), mode="eval").body)
        except (SyntaxError, TypeError) as error:
            raise KernelError(f"{self.name}: {expression!r} is not arithmetic of whole numbers") from error

    def _term(self, match: re.Match[str]) -> str:
        if match["type"]:
            return str(self.layout(match["type"]).size)
        arguments = _split(match["arguments"]) or [str(self.value(each)) for each in _split(match["of"])]
        known = [each for each in self._known.get(match["name"], ()) if len(each[0]) == len(arguments)]
        if len(known) != 1:
            raise KernelError(f"{self.name} defines {len(known) or 'no'} constants {match[0]!r}, and one is needed")
        return str(self.value(_put(known[0][1], known[0][0], arguments)))


def _computed(node: ast.expr) -> int:
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_computed(node.left), _computed(node.right))
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    raise TypeError


# ---- what stands in kernels/ ----


@cache
def source(file: str) -> Source:
    """Return the declarations of a file in ``kernels/`` and of the headers that it includes."""
    text = joined(file)
    path = files().get(file)
    return Source(text, named(path) if path else file)


@cache
def constant(file: str, expression: str) -> int:
    """Return a constant of a file in ``kernels/``: ``constant("indexing.cuh", "MAX_DIMS")``."""
    return source(file).value(expression)


@cache
def packer(file: str, kind: str) -> struct.Struct:
    """Return the packer of the members of a struct of a file in ``kernels/``: ``packer("indexing.cuh", "Walk")``."""
    return struct.Struct(f"@{source(file).layout(kind).codes}")
