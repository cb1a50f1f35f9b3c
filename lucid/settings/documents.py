"""The `Parameters` section that `help` shows, made of a signature and of the table of settings.

What is written in a source is short: an entry in the docstring of a class, or of one of its bases, says what is
particular there; the rest comes from the table. A class makes its section when its `__doc__` is first read. That of a
function can be no descriptor: it is made when the function is imported, in some microseconds.
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from typing import TYPE_CHECKING, Any, TypeAlias

from lucid.arguments import PACKAGE
from lucid.settings.functions import FUNCTION_KINDS, FUNCTIONS
from lucid.settings.kinds import KINDS
from lucid.settings.layers import LAYERS
from lucid.settings.makers import MAKER_KINDS
from lucid.settings.operands import OPERAND_KINDS
from lucid.settings.tools import TOOL_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from lucid.settings.ranges import Range, Setting

WIDTH = 112
NONE: Mapping[str, Setting] = {}
EMPTY: Any = inspect.Parameter.empty
# what functions say goes before what they share with layers
OF_FUNCTIONS: dict[str, dict[str, str]] = {}
for _table in (KINDS, TOOL_KINDS, MAKER_KINDS, OPERAND_KINDS, FUNCTION_KINDS):
    for _kind, _meanings in _table.items():
        OF_FUNCTIONS[_kind] = {**OF_FUNCTIONS.get(_kind, {}), **_meanings}
_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
# what stands in brackets is one part
_UNION = re.compile(r" \| (?![^\[]*\])")
_WORDS = {
    "Dims": "int or sequence of int",
    "Sizes": "int or sequence of int",
    "Number": "number",
    "Params": "iterable of Tensor, of (str, Tensor), or of dict",
    "Dtype": "dtype",
    "Device": "device",
    "Any": "object",
    "Callable": "callable",
    "Mapping": "dict",
}


# A parameter: its name, annotation, default and stars.
Field: TypeAlias = tuple[str, str, Any, str]


class Documentation:
    """The `__doc__` of a class of lucid, with the section of its parameters: a descriptor in the class."""

    def __init__(self, kind: type[Any], text: str, general: Mapping[str, Setting]) -> None:
        self.kind = kind
        self.text = text
        self.general = general

    def __get__(self, instance: object, owner: type[Any] | None = None) -> str:
        return self.whole

    @functools.cached_property
    def whole(self) -> str:
        """The text as it is read."""
        names = [key for base in self.kind.__mro__ for key in kinds_of(base.__name__)]
        own = {name: entry for base in reversed(self.kind.__mro__) for name, entry in _entries(base).items()}
        lines = _section(_fields(self.kind), own, functools.partial(self._meaning, names))
        before, after = _around(inspect.cleandoc(self.text))
        return "\n".join([before, *lines, *(["", after] if after else [])])

    def _meaning(self, kinds: list[str], name: str) -> str:
        particular = next((text for kind in kinds if (text := KINDS.get(kind, {}).get(name))), "")
        if particular or name not in self.general:
            return particular
        setting = self.general[name]
        allowed = getattr(self.kind, "_ranges", {}).get(name, setting.range)
        return f"{setting.meaning} {_sentence(allowed)}" if allowed else setting.meaning


def document(names: Iterable[str], namespace: Mapping[str, Any], general: Mapping[str, Setting] = NONE) -> None:
    """Add the section of parameters to the public classes and functions of a module of lucid.

    What a setting of a class means where nothing particular is said, `general` says.
    """
    for value in {id(value): value for name in names if (value := namespace.get(name)) is not None}.values():
        if (getattr(value, "__module__", None) or "").partition(".")[0] != PACKAGE:
            continue
        if isinstance(value, type):
            text = vars(value).get("__doc__")
            # else it is documented already, or Python runs without docstrings
            if isinstance(text, str):
                value.__doc__ = Documentation(value, text, general)  # pyright: ignore[reportAttributeAccessIssue] - a descriptor
        elif hasattr(value, "__code__"):
            explain(value)


def explain(function: Any) -> None:
    """Add the section of parameters to a function and the functions that it wraps, unless it has one."""
    wrappers: list[Any] = []
    while hasattr(function, "__wrapped__"):
        wrappers.append(function)
        function = function.__wrapped__
    text = function.__doc__
    if text and function not in _explained:
        _explained.add(function)
        function.__doc__ = _of_function(function, text)
    for wrapper in wrappers:
        wrapper.__doc__ = function.__doc__


# Their sections are not made anew from what they say themselves.
_explained: set[Any] = set()


def _of_function(function: Any, text: str) -> str:
    """Return the docstring of a function with the section; its lines keep their places."""
    keys = *kinds_of(function.__name__), *_keys_of(function.__code__.co_filename)
    kinds = [*[OF_FUNCTIONS[key] for key in keys if key in OF_FUNCTIONS], FUNCTIONS, _OF_LAYERS]

    def meaning(name: str) -> str | None:
        for kind in kinds:
            if name in kind:
                return kind[name]
        return None

    fields = _fields_of(function)
    if "\n---" in text or "\n    ---" in text:
        text = inspect.cleandoc(text)
        lines = _section(fields, dict(_read(text)) if "\nParameters\n---" in text else {}, meaning)
        before, after = _around(text)
        return "\n".join([before, *lines, *(["", after] if after else [])])
    lines = _section(fields, {}, meaning)
    # where the closing quotes stand
    last = text[text.rfind("\n") :]
    margin = last if last.isspace() else "\n"
    before, prompt, after = text.partition(f"{margin}>>> ")
    examples = f"\n{margin}Examples{margin}--------{prompt}{after}" if prompt else ""
    section = f"\n{margin.join(lines)}" if lines else ""
    return f"{before.rstrip()}{section}{examples}"


_OF_LAYERS = {name: setting.meaning for name, setting in LAYERS.items() if setting.meaning}


@functools.cache
def _keys_of(path: str) -> tuple[str, str]:
    """Return the keys in the table for the functions of a file: its name and that of its folder."""
    _, folder, file = path.replace("\\", "/").rsplit("/", 2)
    return file.removesuffix(".py").replace("_", ""), folder


def kinds_of(name: str) -> tuple[str, ...]:
    """Return the keys in the table for a class or function of this name: its own, and that of its kind."""
    key = name.lower().replace("_", "")
    key = key.removesuffix("loss") or key
    return (key, key[:-2]) if key[-2:] in {"1d", "2d", "3d"} else (key,)


# ---- signatures ----


def _fields(kind: Any) -> list[Field]:
    """Return the parameters of a class; none of an exception, as it has no signature."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    try:
        parameters = inspect.signature(kind).parameters.values()
    except ValueError:
        return []
    return [(each.name, str(each.annotation), each.default, stars.get(each.kind, "")) for each in parameters]


def _fields_of(function: Any) -> list[Field]:
    """Return the parameters of a function itself, as `inspect.signature` would in many times as long."""
    code, annotations = function.__code__, function.__annotations__
    count, names, flags = code.co_argcount, code.co_varnames, code.co_flags
    ends = count + code.co_kwonlyargcount
    defaults = function.__defaults__ or ()
    default_of = dict(zip(names[count - len(defaults) : count], defaults, strict=True))
    if function.__kwdefaults__:
        default_of.update(function.__kwdefaults__)
    fields = [(name, annotations.get(name, "Any"), default_of.get(name, EMPTY), "") for name in names[:ends]]
    if flags & inspect.CO_VARARGS:
        fields.insert(count, (names[ends], annotations.get(names[ends], "Any"), EMPTY, "*"))
        ends += 1
    if flags & inspect.CO_VARKEYWORDS:
        fields.append((names[ends], annotations.get(names[ends], "Any"), EMPTY, "**"))
    return fields


# ---- texts ----


def _section(
    fields: Iterable[Field], own: Mapping[str, tuple[str, str]], meaning: Callable[[str], str | None]
) -> list[str]:
    """Return the lines of a section, in the order of the signature; none if it explains nothing."""
    lines: list[str] = []
    for name, annotation, default, stars in fields:
        kind, said = own.get(name) or ("", "") if own else ("", "")
        said = said or meaning(name)
        if not said:
            continue
        words = kind or _words(annotation)
        lines.append(f"{stars}{name} : {words if default is EMPTY else _type(words, default)}")
        lines += [f"    {said}"] if len(said) <= WIDTH and "\n" not in said else _long(said)
    return ["", "Parameters", "----------", *lines] if lines else []


@functools.cache
def _long(text: str) -> list[str]:
    return textwrap.indent(text if "\n" in text else textwrap.fill(text, WIDTH), "    ").split("\n")


def _sentence(allowed: Range) -> str:
    """Return a range as a sentence."""
    several = ", one for each dimension or for all" if allowed.per_axis else ""
    return f"{allowed.text[0].upper()}{allowed.text[1:]}{several}."


def _entries(kind: type[Any]) -> dict[str, tuple[str, str]]:
    """Return the entries of a class's own docstring by parameter: type, as written there, and text."""
    held = vars(kind).get("__doc__")
    text = inspect.cleandoc(held.text if isinstance(held, Documentation) else held or "")
    return dict(_read(text)) if "\nParameters\n---" in text else {}


def _read(text: str) -> Iterator[tuple[str, tuple[str, str]]]:
    parts = _HEADING.split(text)
    section = parts[parts.index("Parameters") + 1]
    for entry in re.split(r"\n(?=\S)", section.rstrip()):
        header, _, body = entry.partition("\n")
        names, _, kind = header.partition(" : ")
        yield from ((name.strip(" *"), (kind, textwrap.dedent(body).rstrip())) for name in names.split(","))


def _around(text: str) -> tuple[str, str]:
    """Return the text before and behind the section of parameters; examples without a heading get one."""
    parts = _HEADING.split(text)
    if len(parts) == 1:
        before, prompt, after = text.partition(">>> ")
        return before.rstrip(), f"Examples\n--------\n{prompt}{after}".rstrip() if prompt else ""
    sections = [(title, body) for title, body in zip(parts[1::2], parts[2::2], strict=True) if title != "Parameters"]
    after = "\n\n".join(f"{title}\n{'-' * len(title)}\n{body.rstrip()}" for title, body in sections)
    return parts[0].rstrip(), after


def _type(words: str, default: Any) -> str:
    """Return the type of a parameter with a default as a docstring has it."""
    if default is None or type(default) is object:  # which stands for an argument that was not given
        return f"{words.replace(' or None', '').removesuffix(', optional')}, optional"
    if ", default" in words:
        return words
    return f"{words}, default {getattr(default, '__name__', None) or repr(default)}"


@functools.cache
def _words(annotation: str) -> str:
    """Return an annotation in words: "int or sequence of int"."""
    return " or ".join(dict.fromkeys(map(_word, _UNION.split(annotation))))


def _word(part: str) -> str:
    name, _, inner = part.partition("[")
    inner = inner.removesuffix("]")
    if name == "Literal":
        return f"{{{inner}}}"
    if inner and name in {"Sequence", "Iterable", "list", "tuple"}:
        # of a tuple the first entry stands for all
        entries = _words(inner.partition(", ")[0] if name == "tuple" else inner)
        return f"{name.lower()} of {f'({entries})' if ' or ' in entries else entries}"
    return _WORDS.get(name, part)
