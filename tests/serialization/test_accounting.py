"""What a load takes from the budget of its file is about the memory of what it makes, or more, whatever that is."""

import gc
import io
import json
import pickle
import sys
from collections import Counter, OrderedDict

import numpy as np
import pytest

import lucid
from lucid.serialization import bounded
from lucid.serialization.bounded import Budget
from lucid.serialization.text import Json
from tests.pieces.memory import traced
from tests.serialization.test_pytorch import archive

pytestmark = pytest.mark.cpu("what a file takes is counted before a device has it")

COUNT = 300
# Numbers count a quarter, so that lists of them are loaded: with their entries they take so much of what they hold.
SHARE = 0.38

VALUES = {
    "None": lambda i: None,
    "int": lambda i: 10**12 + i,
    "long int": lambda i: 3**200 + i,
    "str": lambda i: f"x{i}",
    "long str": lambda i: "y" * 200 + str(i),
    "float": lambda i: 0.5 + i,
    "list": lambda i: [],
    "list of three": lambda i: [None] * 3,
    "dict": lambda i: {},
    "dict of one": lambda i: {"a": 1},
    "dict of nine": lambda i: {f"k{j}": j for j in range(9)},
}
OTHERS = {
    "infinity": lambda i: float("inf"),
    "complex": lambda i: complex(i, 1),
    "dtype": lambda i: lucid.float32,
    "device": lambda i: lucid.device("cuda", i),
    "Size": lambda i: lucid.Size((7, 8, 10**9)),
    "long Size": lambda i: lucid.Size(range(1000, 1300)),
    "tuple": lambda i: (1, 2, 3),
    "OrderedDict": lambda i: OrderedDict(a=1),
    "Counter": lambda i: Counter("ab"),
    "NumPy's scalar": lambda i: np.float32(i),
    "tensor": lambda i: lucid.ones(1, device="cpu"),
    "array": lambda i: np.ones(1),
    "numbers as keys": lambda i: dict.fromkeys(range(5)),
}
PICKLED = {
    **VALUES,
    "tuple": lambda i: (i, 2, 3),
    "long tuple": lambda i: (i,) * 20,
    "bytes": lambda i: b"z" * (100 + i),
    "set": lambda i: {i, i + 1},
    "complex": lambda i: complex(i, 1),
    "bool": lambda i: True,
    "OrderedDict": lambda i: OrderedDict(a=i),
}


# What one value more takes: of a save, a load, a JSON text, and pickles of protocol 2 and 4.
TAKEN = {
    "None": (22, 92, 8, 9, 9),
    "int": (39, 146, 16, 24, 24),
    "long int": (182, 644, 76, 118, 118),
    "str": (77, 174, 61, 83, 76),
    "long str": (475, 1368, 260, 481, 474),
    "float": (95, 98, 16, 25, 25),
    "list": (126, 682, 64, 86, 82),
    "list of three": (190, 898, 88, 115, 111),
    "dict": (94, 690, 72, 94, 90),
    "dict of one": (296, 1072, 250, 219, 215),
    "dict of nine": (1130, 3846, 867, 1017, 950),
    "infinity": (106, 688, None, None, None),
    "complex": (111, 980, None, 136, 128),
    "dtype": (102, 712, None, None, None),
    "device": (104, 788, None, None, None),
    "Size": (158, 930, None, None, None),
    "long Size": (6692, 30630, None, None, None),
    "tuple": (208, 862, None, 92, 88),
    "OrderedDict": (481, 1238, None, 390, 386),
    "Counter": (671, 1636, None, None, None),
    "NumPy's scalar": (163, 3810, None, None, None),
    "tensor": (1993, 4391, None, None, None),
    "array": (1975, 3751, None, None, None),
    "numbers as keys": (387, 2040, None, None, None),
    "long tuple": (None, None, None, 263, 259),
    "bytes": (None, None, None, None, 552),
    "set": (None, None, None, 530, 376),
    "bool": (None, None, None, 9, 9),
}


@pytest.fixture
def taken(monkeypatch):
    """Return the bytes that have been taken from budgets, as a list of one number."""
    total, take = [0], Budget.take

    def counted(budget, count):
        total[0] += count
        take(budget, count)

    monkeypatch.setattr(Budget, "take", counted)
    return total


def held_by(make):
    """Return what a function returns, and the bytes of memory that this holds."""
    make()  # what Python and lucid keep from a first call is no part of it
    gc.collect()
    with traced() as memory:
        made = make()
        gc.collect()
    return made, memory.held


def size_of(value, measure=sys.getsizeof):
    """Return the bytes of a value as Python 3.11 says them: an empty text has 49, and since Python 3.13 41."""
    return measure(value) + (49 - measure("") if type(value) is str else 0)


def each_takes(run, taken):
    """Return the bytes that one value more takes."""
    totals = []
    for count in (COUNT, COUNT + 100):
        taken[0] = 0
        run(count)
        totals.append(taken[0])
    return round((totals[1] - totals[0]) / 100)


@pytest.mark.parametrize("name", TAKEN)
def test_what_one_value_more_takes(taken, monkeypatch, name):
    """Each part of a value is counted: by a save, a load, a text that is read by and by, and pickles."""
    monkeypatch.setattr(bounded, "ROOM", 10**12)  # a text is parsed at once then, whatever its length
    monkeypatch.setattr(bounded.sys, "getsizeof", size_of)

    def values(count):
        return [each(100 + i % 100) for i in range(count)]  # of as many letters each

    def saved(count):
        file = io.BytesIO()
        lucid.save(values(count), file)
        return file

    ways = [lambda count: lucid.save(values(count), io.BytesIO())]
    each = (VALUES | OTHERS | PICKLED)[name]
    files = {count: saved(count) for count in (COUNT, COUNT + 100)} if TAKEN[name][1] is not None else {}

    def load(count):
        files[count].seek(0)
        lucid.load(files[count])

    ways += [
        load,
        lambda count: Json(json.dumps(values(count)), Budget(10**9)).value(),
        *[lambda count, p=protocol: lucid.load(archive(pickle.dumps(values(count), p))) for protocol in (2, 4)],
    ]
    got = [None if known is None else each_takes(way, taken) for way, known in zip(ways, TAKEN[name], strict=True)]
    assert tuple(got) == TAKEN[name]


def test_of_lucids_files(taken):
    """A load takes as much as its values hold, and a save, which refuses what no load would take, nearly so."""
    for name, value in (VALUES | OTHERS).items():
        file = io.BytesIO()
        taken[0] = 0
        lucid.save([value(i) for i in range(COUNT)], file)
        saved = taken[0]

        def load(file=file):
            file.seek(0)
            taken[0] = 0
            return lucid.load(file)

        made, held = held_by(load)
        assert len(made) == COUNT
        assert taken[0] >= SHARE * held, name
        assert saved >= SHARE * held, name


def test_of_json(taken):
    """Values that are read one by one, in a text too long to be parsed at once, take what they hold."""
    for name, value in VALUES.items():
        text = json.dumps([value(i) for i in range(COUNT)])

        def read(text=text):
            taken[0] = 0
            return Json(text, Budget(10**9)).value()

        made, held = held_by(read)
        assert made == json.loads(text)
        assert taken[0] >= SHARE * held, name


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_of_pickles(taken, protocol):
    """So do the values of a pickle of each protocol."""
    for name, value in PICKLED.items():
        if name == "bytes" and protocol < 3:
            continue  # a call of codecs.encode
        values = [value(i) for i in range(COUNT)]
        content = archive(pickle.dumps(values, protocol))

        def load(content=content):
            content.seek(0)
            taken[0] = 0
            return lucid.load(content)

        made, held = held_by(load)
        assert made == values, name
        assert taken[0] >= SHARE * held, name
