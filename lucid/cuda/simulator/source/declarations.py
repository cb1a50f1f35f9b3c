"""Variables of a source of CUDA C++: those of the device, and their addresses in its library."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from contextlib import suppress
from functools import cache
from struct import Struct, unpack_from
from typing import TYPE_CHECKING, NamedTuple

from lucid.cuda.cache import keep, read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


# Of a variable: offset in its library, size, name.
Symbol = tuple[int, int, bytes]

# Before what g++ reads as a variable of the device: a section of its own, which device.h defines.
_MARK = "LUCID_VARIABLE"
# Patterns that match to the end of a text what is never closed in it, so that none is sought there once more.
_NO_CODE = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", re.DOTALL)
_DEFINITION = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)(?P<of>\([^)\n]*\))?(?P<body>(?:.*\\\n)*.*)", re.MULTILINE
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:.*\\\n)*.*", re.MULTILINE)
_SCOPES = re.compile(r"[{}]|\bstatic\b")
_BODY = re.compile(r"(?:\)|\b(?:const|noexcept|else|do|try|mutable))\s*$")
# To where a declaration of a variable has its name behind it: what is a function has parentheses before, unless these
# are of an alignment, or of a pointer to a function. The bounds keep the time in proportion to the text.
_TO_THE_NAME = re.compile(
    r"(?:(?:__align__|alignas)\s*\([^()]{0,99}\)|[^(){};]){1,999}?"
    r"(?:[;{]|(?<![<>!=])=(?!=)|\(\s*\*[^()]{0,99}\)\s*\([^()]{0,999}\)\s*[;={])"
)
_OF_A_MACRO = re.compile(r"\s*\w+[\w\s*<>:,\[\]#]*\w+[\s\]]*\Z")
_NONE = re.compile(r"\b(?:operator|typedef|using|__(?:shared|constant)__|DYN_SHARED|LUCID_SHARED)\b")
_CONSTANT = re.compile(r"\bconst(?:expr)?\b")
_LINE = re.compile(r"(.*?) *\|([0-9a-f]+)\|[^|]*\|[^|]*\|([0-9a-f]+)\|[^|]*\|(\S+)$", re.MULTILINE)
_PLAIN = frozenset({".data", ".bss"})
# Of ELF's file format: a section's name, kind, offset, size and the section that it refers to; a symbol's name and
# section.
_SECTION = Struct("II16xQQI20x")
_SYMBOL = Struct("I2xH16x")
_SYMBOLS = 2
# In the names, as they stand there, of what `symbols` tells of.
_OURS = re.compile(rb"lucid_source|_GLOBAL__N_|lucid_shared_")
_SOURCE = "lucid_source::"
_NAMELESS = "(anonymous namespace)::"
_SHARED = re.compile(r".*\blucid_shared_(\w+)")


def marked(text: str) -> str:
    """Return a source with a mark before each variable of the device.

    Without it g++ would take one that no kernel writes for a constant, and no copy would reach it. A variable is one
    wherever its declaration begins: behind another, in one line with its namespace, by a macro, and of a function.
    """
    if "__device__" not in text and "static" not in text:
        return text
    code = _NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    definitions = [match for match in _DEFINITION.finditer(code) if "__device__" in match["body"]]
    names = {"__device__", *(match["name"] for match in definitions if not match["of"])}
    defined = {match.start("name") for match in definitions}
    inside = {match.span("body"): bool(match["of"]) for match in definitions}
    places: list[tuple[int, int]] = []
    for word in re.finditer(rf"\b(?:{'|'.join(names)})\b", code):
        within = next((span for span in inside if span[0] <= word.start() < span[1]), None)
        declares = _declares(code, word, within[1]) if within and inside[within] else _declares(code, word)
        # what a macro without parameters stands for is looked at where the macro is
        if declares and not (within and not inside[within]) and word.start() not in defined:
            places.append((word.start(), word.end() if word[0] == "__device__" else word.start()))
    places += [(begin, begin) for begin in _of_functions(code)]
    for begin, end in sorted(places, reverse=True):
        text = f"{text[:begin]}{_MARK}{'' if end > begin else ' '}{text[end:]}"
    return text


def _declares(code: str, word: re.Match[str], end_of_macro: int | None = None) -> bool:
    """Whether a word begins the declaration of a variable that is not constant."""
    begin = max(code.rfind(mark, max(0, word.start() - 200), word.start()) for mark in ";{}\n") + 1
    before = code[begin : word.start()]
    match = _TO_THE_NAME.match(code, word.end(), len(code) if end_of_macro is None else end_of_macro)
    if match:
        declared = match[0]
    elif end_of_macro is not None and _OF_A_MACRO.match(rest := code[word.end() : end_of_macro]):
        declared = rest  # its semicolon stands where the macro does
    else:
        return False
    if before.rstrip().endswith(("]", ")")) and declared.endswith("{"):  # a function without a name
        return False
    words = before + declared
    return not _NONE.search(words) and not _CONSTANT.search(words.rpartition("*")[2]) and "constexpr" not in words


def _of_functions(code: str) -> list[int]:
    """Return the positions of static variables of functions, variables of the device too."""
    if "static" not in code:
        return []
    code = _DIRECTIVE.sub(lambda positions: re.sub(r"[^\n]", " ", positions[0]), code)
    positions: list[int] = []
    bodies: list[bool] = []
    for word in _SCOPES.finditer(code):
        if word[0] == "{":
            bodies.append(bool(_BODY.search(code, max(0, word.start() - 200), word.start())))
        elif word[0] == "}":
            bodies = bodies[:-1]
        elif bodies and bodies[-1] and "__device__" not in code[word.start() : word.start() + 40]:
            if _declares(code, word):
                positions.append(word.start())
    return positions


class Symbols(NamedTuple):
    """The variables of a library, by their offsets: those of a block, and all others, those of the device."""

    shared: list[Symbol]
    others: list[Symbol]


def _variables(library: Path) -> list[tuple[str, str, str, str]]:
    """Return name, offset, size and section, as nm prints them, of each variable in a library."""
    command = [shutil.which("nm") or "nm", "--demangle", "--format=sysv", str(library)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    return [line for line in _LINE.findall(told) if line[3].startswith((".data", ".bss", "lucid_"))]


def _has_variables(library: bytes) -> bool:
    """Whether a library has one of a source: few have, and nm takes a third of the time of building a small one."""
    begin: int
    count: int
    of_names: int
    (begin,), (count, of_names) = unpack_from("Q", library, 0x28), unpack_from("HH", library, 0x3C)
    sections: list[tuple[int, ...]] = [_SECTION.unpack_from(library, begin + _SECTION.size * k) for k in range(count)]
    names = [_name(library, sections[of_names][2] + section[0]) for section in sections]
    if any(name.startswith(b"lucid_") for name in names):
        return True
    plain = {k for k, name in enumerate(names) if name.decode() in _PLAIN}
    for _, kind, offset, length, linked in sections:
        if kind == _SYMBOLS:
            table: Iterator[tuple[int, int]] = _SYMBOL.iter_unpack(library[offset : offset + length])
            for name, section in table:
                if section in plain and _OURS.search(_name(library, sections[linked][2] + name)):
                    return True
    return False


def _name(library: bytes, offset: int) -> bytes:
    return library[offset : library.index(0, offset)]


@cache
def symbols(library: Path) -> Symbols:
    """Return the addresses, sizes and names of the variables in a library.

    Those that stand in no section of ours, since nothing marks them, are the device's too: CuPy tells NVRTC that all is
    of which nothing is said.
    """
    file = f"{library.stem}.variables"  # asking for them takes as long as loading a library
    kept = read(file)
    if kept is None:
        kept = json.dumps(_variables(library) if _has_variables(library.read_bytes()) else []).encode()
        with suppress(OSError):
            keep(file, kept)
    made = Symbols([], [])
    for name, offset, size, section in json.loads(kept):
        if name.startswith("guard variable"):  # whether the constructor of a variable has run: read by g++'s own code
            made.others.append((int(offset, 16), int(size, 16), b"guard"))
            continue
        plain = name.removeprefix(_SOURCE).removeprefix(_NAMELESS)
        shared = _SHARED.fullmatch(plain)
        if shared or section.startswith("lucid_") or (plain != name and section in _PLAIN):
            symbol = int(offset, 16), int(size, 16), (shared[1] if shared else plain).encode()
            (made.shared if shared else made.others).append(symbol)
    return Symbols(sorted(made.shared), sorted(made.others))
