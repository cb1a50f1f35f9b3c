"""PyTorch's pickles without pickle: the opcodes that `torch.save` writes, under Python 2 too, and the names it uses.

Each opcode builds plain values, which are taken from the budget of the file. A name in the text is never imported or
looked up: it stands for one of those in `lucid.serialization.calls`, or the file is refused.
"""

from __future__ import annotations

import itertools
import pickletools
import struct
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, cast

from lucid.serialization.bounded import DICT, LEVELS, LIST, NODE, NUMBER, SLOT, TUPLE, weight
from lucid.serialization.calls import Name, Storage, called, expect, is_a, named
from lucid.serialization.refusals import NotLoaded
from lucid.tensor.layout import Size

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.serialization.bounded import Bounded


SMALL = 8  # entries of a container that is sooner looked through again than noted
BATCH = 2000  # entries that pickle puts into a container at once
GAP = 256  # places of the memo that may be left out


class Mark:
    """The beginning of an opcode's arguments."""


MARK = Mark()
# opcodes of a number or a text: how it, or its length, is packed
NUMBERS = {"J": "<i", "K": "<B", "M": "<H", "G": ">d"}
TEXTS = {"X": "<I", "\x8c": "<B", "\x8d": "<Q", "U": "<B", "T": "<I"}
BYTES = {"B": "<I", "C": "<B", "\x8e": "<Q", "\x96": "<Q"}
LONGS = {"\x8a": "<B", "\x8b": "<I"}
MEMOS = {"q": "<B", "r": "<I", "h": "<B", "j": "<I"}
PACKED = {code: struct.Struct(how) for code, how in (NUMBERS | TEXTS | BYTES | LONGS | MEMOS).items()}
VALUES = {"N": None, "\x88": True, "\x89": False, ")": ()}


def unpickle(file: Bounded, stored: Callable[[Any], Storage]) -> Any:
    """Return the value of the pickle at a file's present position, and leave the file behind it.

    Parameters
    ----------
    file : Bounded
    stored : callable
        Gives the storage that a persistent id means.

    Raises
    ------
    NotLoaded
        If it holds something else than tensors and plain values.
    TooMuch
        If these are more than its length allows.
    Exception
        If it is none that `torch.save` writes.
    """
    value = _Unpickler(file, stored).value()
    _look_through(value, 0, {})
    return value


class _Unpickler:
    """The stack and the memo of one pickle; each method is an opcode, by `OPCODES`."""

    def __init__(self, file: Bounded, stored: Callable[[Any], Storage]) -> None:
        self.file = file
        self.budget = file.budget
        self.stored = stored
        self.stack: list[Any] = []
        self.memo: list[Any] = []

    def value(self) -> Any:
        """Return the value at the end."""
        read, push = self.file.read, self.stack.append
        while True:
            code = read(1).decode("latin1")
            if code in NUMBERS:
                number = self.packed(code)
                self.budget.take(NUMBER if code != "K" else 0)
                push(number)
            elif code in MEMOS:
                self.remember(code)
            elif code in TEXTS:
                self.text(code)
            elif code in VALUES:
                push(VALUES[code])
            elif code == "(":
                push(MARK)
            elif code == ".":
                if len(self.stack) > 1:
                    raise NotLoaded("holds values that nothing takes up")
                return self.stack.pop()
            elif code in OPCODES:
                OPCODES[code](self)
            else:
                self.unknown(code)

    def unknown(self, code: str) -> None:
        """Refuse an opcode that is not known."""
        known = cast("dict[str, Any]", getattr(pickletools, "code2op"))  # noqa: B009  the stubs do not know it
        if code not in known:
            raise ValueError(f"{code!r} is no opcode")
        raise NotLoaded(f"holds an object that takes the opcode {known[code].name}")

    def packed(self, code: str) -> Any:
        """Return the number that follows an opcode."""
        how = PACKED[code]
        return how.unpack(self.file.read(how.size))[0]

    def mark(self) -> int:
        """Return the place of the last mark."""
        place = len(self.stack) - 1
        while self.stack[place] is not MARK:
            place -= 1
            expect(place >= 0, "a mark")
        return place

    def remember(self, code: str) -> None:
        """Put the last value into the memo, or push a value of the memo."""
        place, memo = self.packed(code), self.memo
        if code in {"h", "j"}:
            value = memo[place]
            expect(value is not MARK, "a memo that was set")
            self.stack.append(value)
        else:
            self.put(place)

    def put(self, place: int) -> None:
        """Put the last value at a place of the memo; places are counted, from 0 or, by Python 2, from 1 on."""
        expect(place <= len(self.memo) + GAP, "a memo whose places are counted")
        while len(self.memo) <= place:
            self.budget.take(SLOT)
            self.memo.append(MARK)
        self.memo[place] = self.stack[-1]

    def text(self, code: str) -> None:
        """Push a text; those of Python 2, too, are UTF-8."""
        data = self.file.read(self.packed(code))
        value = str(data, "utf-8", "surrogatepass" if code not in {"U", "T"} else "strict")
        self.budget.take(weight(value))
        self.stack.append(value)

    def bytes(self, code: str) -> None:
        """Push bytes, or a bytearray."""
        data = self.file.read(self.packed(code))
        self.budget.take(weight(data))
        self.stack.append(data if code != "\x96" else bytearray(data))

    def long(self, code: str) -> None:
        """Push an integer of any length."""
        number = int.from_bytes(self.file.read(self.packed(code)), "little", signed=True)
        self.budget.take(weight(number))
        self.stack.append(number)

    def new(self, make: Callable[[], Any], size: int) -> None:
        """Push a container."""
        self.budget.take(size + SLOT)
        self.stack.append(make())

    def tuple(self, count: int | None) -> None:
        """Push a tuple of the last values, or of those behind the mark."""
        place = self.mark() if count is None else len(self.stack) - count
        expect(place >= 0, f"{count} values")
        begin = place + 1 if count is None else place
        self.budget.take(TUPLE + SLOT * (len(self.stack) - begin))
        self.stack.append(tuple(self.taken(place, begin)))

    def taken(self, place: int, begin: int) -> list[Any]:
        """Return the values on the stack from `begin` on, and take away those from `place` on."""
        items = self.stack[begin:]
        del self.stack[place:]
        return items

    def batch(self, place: int, begin: int) -> list[Any]:
        """Return the values for a container: pickle writes them in short batches, and longer ones count as copied."""
        count = len(self.stack) - begin
        self.budget.take(3 * SLOT * count if count > BATCH else 0)
        return self.taken(place, begin)

    def container(self, place: int, *kinds: type[Any]) -> Any:
        """Return the container just before a place on the stack."""
        expect(place > 0 and is_a(self.stack[place - 1], *kinds), "a container to put something into")
        return self.stack[place - 1]

    def append(self, place: int, begin: int) -> None:
        """Append the values from `begin` on to a list, and take away those from `place` on."""
        target = self.container(place, list)
        self.budget.take(SLOT * (len(self.stack) - begin))
        target.extend(self.batch(place, begin))

    def add(self, place: int) -> None:
        """Add the values behind a mark to a set."""
        target = self.container(place, set)
        for item in self.batch(place, place + 1):
            self.budget.key(item, len(target))
            target.add(item)

    def set_items(self, place: int, begin: int) -> None:
        """Set entries of a dict: keys and values in turn, from `begin` on."""
        target = self.container(place, dict, OrderedDict)
        items = self.batch(place, begin)
        expect(len(items) % 2 == 0, "keys and values")
        extra = NODE if is_a(target, OrderedDict) else 0
        for at in range(0, len(items), 2):
            self.budget.key(items[at], len(target))
            self.budget.take(extra)
            target[items[at]] = items[at + 1]

    def name(self) -> None:
        """Push the meaning of a name."""
        self.stack.append(named(self.budget, self.file.line().decode(), self.file.line().decode()))

    def name_on_stack(self) -> None:
        """Push the meaning of a name that is on the stack as two words."""
        attribute, module = self.stack.pop(), self.stack.pop()
        expect(isinstance(module, str) and isinstance(attribute, str), "two words")
        self.stack.append(named(self.budget, module, attribute))

    def call(self) -> None:
        """Push the result of a call."""
        arguments, function = self.stack.pop(), self.stack.pop()
        self.stack.append(called(self.budget, function, arguments))

    def build(self) -> None:
        """Give an OrderedDict the one attribute that it may have."""
        state: Any = self.stack.pop()
        expect(is_a(self.stack[-1], OrderedDict) and is_a(state, dict, OrderedDict), "the attributes of an OrderedDict")
        if is_a(state.get("_metadata"), dict, OrderedDict):
            self.budget.take(DICT)
            vars(self.stack[-1])["_metadata"] = state["_metadata"]


OPCODES: dict[str, Callable[[_Unpickler], Any]] = {
    "\x80": lambda pickle: pickle.file.read(1),  # the protocol
    "\x95": lambda pickle: pickle.file.read(8),  # a frame
    "\x94": lambda pickle: pickle.put(len(pickle.memo)),
    **{code: lambda pickle, code=code: pickle.bytes(code) for code in BYTES},
    **{code: lambda pickle, code=code: pickle.long(code) for code in LONGS},
    "}": lambda pickle: pickle.new(dict, DICT),
    "]": lambda pickle: pickle.new(list, LIST),
    "\x8f": lambda pickle: pickle.new(set, 4 * LIST),
    "t": lambda pickle: pickle.tuple(None),
    **{code: lambda pickle, count=count: pickle.tuple(count) for count, code in enumerate("\x85\x86\x87", 1)},
    "a": lambda pickle: pickle.append(place := len(pickle.stack) - 1, place),
    "e": lambda pickle: pickle.append(place := pickle.mark(), place + 1),
    "\x90": lambda pickle: pickle.add(pickle.mark()),
    "s": lambda pickle: pickle.set_items(place := len(pickle.stack) - 2, place),
    "u": lambda pickle: pickle.set_items(place := pickle.mark(), place + 1),
    "c": _Unpickler.name,
    "\x93": _Unpickler.name_on_stack,
    "Q": lambda pickle: pickle.stack.append(pickle.stored(pickle.stack.pop())),
    "R": _Unpickler.call,
    "b": _Unpickler.build,
}


def _look_through(value: Any, level: int, known: dict[int, int]) -> int:
    """Return how many levels of containers a value has; raise if they are too many, or one is no plain value."""
    if level > LEVELS:
        raise NotLoaded(f"holds containers nested deeper than {LEVELS} levels, or inside of themselves")
    if isinstance(value, Name | Storage | Mark):
        raise NotLoaded("holds a storage, or the name of a class")
    if not isinstance(value, tuple | list | dict) or isinstance(value, Size):
        return 0
    container = cast("dict[Any, Any] | list[Any]", value)
    height = known.get(id(container))
    if height is None:
        items: Any = container.values() if isinstance(container, dict) else container
        if isinstance(container, OrderedDict):
            items = itertools.chain(items, vars(container).values())
        height = 1 + max((_look_through(each, level + 1, known) for each in items), default=0)
        if height > 1 or len(container) > SMALL:  # what is small and flat takes less time than memory
            known[id(container)] = height
    if level + height > LEVELS:
        _look_through(None, LEVELS + 1, known)
    return height
