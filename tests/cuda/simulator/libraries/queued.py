"""Libraries of the simulated device by themselves: built with a queue that writes down what is queued."""

from __future__ import annotations

import ctypes
from pathlib import Path

import ml_dtypes
import numpy as np

from lucid.cuda.simulator import builder

HERE = Path(__file__).parent
FOLDER = Path(builder.__file__).parent
SOURCES = FOLDER / "libraries"
LETTERS = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}
VERSION = 11604
PLAIN, TRANSPOSED, ADJOINT = 0, 1, 2
NOT_INITIALIZED, INVALID_VALUE, EXECUTION_FAILED, NOT_SUPPORTED = 1, 7, 13, 15


def address(x):
    """Return what a function of C takes for an argument: arrays and places in memory by their address."""
    if isinstance(x, np.ndarray):
        return ctypes.c_void_p(x.ctypes.data)
    return ctypes.c_int(int(x)) if isinstance(x, int | np.integer) else x


class Library:
    """A library and the queue that it was built with.

    `ranges` are those of the last call: (begin, size, whether they are stored to).
    """

    def __init__(self, *sources):
        files = [*(str(SOURCES / name) for name in sources), str(HERE / "queued.cpp")]
        text = "".join(Path(file).read_text() for file in [*sorted(map(str, FOLDER.rglob("*.h"))), *files])
        # Symbolic: in this process, another library may have a queue already.
        options = ["-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-Bsymbolic", "-I", str(FOLDER)]
        options += [f"-DLUCID_VERSION={VERSION}"]
        path = builder.build("queued", text, [*options, *files], what=" and ".join(sources))
        self.c = ctypes.CDLL(str(path))
        self.c.queued_name.restype = ctypes.c_char_p
        self.c.queued_stream.restype = ctypes.c_void_p

    def __call__(self, function, *arguments, late=False, code=0, refuse=False):
        """Call a function, and return what it answers; work is put off if `late`, and fails with a `code`."""
        self.c.queued_begin(ctypes.c_bool(late), code, ctypes.c_bool(refuse))
        return self.c[function](*map(address, arguments))

    def run(self):
        """Run what was put off."""
        self.c.queued_run()

    name = property(lambda self: self.c.queued_name().decode())
    stream = property(lambda self: self.c.queued_stream())
    calls = property(lambda self: self.c.queued_calls())
    waits = property(lambda self: self.c.queued_waits())

    @property
    def ranges(self):
        """What the calls since the last one have said that they touch."""
        found, out = [], (ctypes.c_size_t * 3)()
        for i in range(self.c.queued_ranges()):
            self.c.queued_range(i, out)
            found.append((out[0], out[1], bool(out[2])))
        return found

    def touched(self, stores):
        """Return all bytes that are read, or that are stored to, as a set of addresses."""
        return {byte for begin, size, kind in self.ranges if kind == stores for byte in range(begin, begin + size)}


class Memory:
    """A part of memory with gaps: the elements at `places` of one dimension, as `values`, between others that stay.

    Parameters
    ----------
    values : numpy.ndarray
        What the elements are at first.
    strides : sequence of int
        In elements, one for each dimension of `values`.
    offset : int
        Elements before the first, for negative strides.
    """

    def __init__(self, values, strides, offset=0):
        last = sum(max(0, (n - 1) * step) for n, step in zip(values.shape, strides, strict=True))
        self.buffer = np.full(offset + last + 3, 99, values.dtype)
        if values.dtype.kind in "fcV":
            self.buffer[...] = np.array(np.nan).astype(values.dtype)
        self.first = self.buffer[offset:]
        self.values = np.lib.stride_tricks.as_strided(
            self.first, values.shape, [step * values.itemsize for step in strides]
        )
        self.values[...] = values
        self.gaps = np.ones(self.buffer.shape, bool)
        places = np.lib.stride_tricks.as_strided(self.gaps[offset:], values.shape, strides)
        places[...] = False
        self.before = self.buffer.copy()

    @property
    def at(self):
        """Address of the first element, by its indices."""
        return ctypes.c_void_p(self.values.ctypes.data)

    def bytes(self, which=None):
        """Return the addresses of all elements, or of those where `which` is true, as a set."""
        size, begin = self.values.itemsize, self.values.ctypes.data
        which = np.ones(self.values.shape, bool) if which is None else which
        steps = np.asarray(self.values.strides)
        return {begin + int((place * steps).sum()) + k for place in np.argwhere(which) for k in range(size)}

    def untouched(self):
        """Whether the elements in the gaps have the bits that they had."""
        return self.buffer[self.gaps].tobytes() == self.before[self.gaps].tobytes()


def matrices(values, line=None, step=None):
    """Put a matrix, or a stack of matrices, into memory as cuBLAS has it: by columns, a `line` apart.

    Parameters
    ----------
    values : numpy.ndarray
        Of shape (rows, columns) or (count, rows, columns).
    line, step : int, optional
        Elements from one column, or matrix, to the next; by default without gaps.
    """
    rows, columns = values.shape[-2:]
    line = rows if line is None else line
    return Memory(values, ([line * columns if step is None else step] if values.ndim == 3 else []) + [1, line])


def vector(values, step=1):
    """Put a vector into memory: a `step` apart, from behind if that is negative, as BLAS has it."""
    memory = Memory(values, [step], max(0, -step) * max(0, len(values) - 1))
    memory.start = ctypes.c_void_p(memory.buffer.ctypes.data)
    return memory


def same(found, wanted, scale, sums=None):
    """Hold values against a reference in complex128, within the rounding of the result and those of its sums.

    Parameters
    ----------
    found : numpy.ndarray
    wanted : numpy.ndarray
    scale : numpy.ndarray
        The same sums of the sizes of all terms.
    sums : numpy.dtype, optional
        What the sums are made in, if that is not the dtype of `found`.
    """
    assert found.shape == wanted.shape
    own = ml_dtypes.finfo(found.dtype).eps
    room = own * np.abs(wanted) + 8 * np.finfo(sums or found.dtype).eps * scale
    far = ~(np.abs(found.astype(np.complex128) - wanted) <= room)
    assert not far.any(), (found[far], wanted[far], room[far])


def exact(library, reads, stores):
    """Hold what the last call has said that it touches against the bytes of its operands: all of them, nothing else."""
    assert library.touched(stores=False) == set().union(*reads)
    assert library.touched(stores=True) == set().union(*stores)


def drawn(random, shape, dtype):
    """Draw numbers of any dtype."""
    values = random.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def op(x, operation):
    """Return op(x) of BLAS, in complex128."""
    x = x.astype(np.complex128)
    return (x, x.swapaxes(-1, -2), x.swapaxes(-1, -2).conj())[operation]


def stored(shape, operation):
    """Return the shape of a matrix of which op() has a shape."""
    return shape[::-1] if operation else shape


def number(value, dtype):
    """Return a factor in memory."""
    return np.array([value], dtype)


def pointers(places):
    """Return addresses in memory."""
    return np.array([place.at.value for place in places], np.uint64)


def handle_of(library, name, ending=""):
    """Yield a handle of a library, whose functions have names that begin and end so, on a stream of its own."""
    made = ctypes.c_void_p()
    assert library(f"{name}Create{ending}", ctypes.byref(made)) == 0
    assert library(f"{name}SetStream{ending}", made, ctypes.c_void_p(1234)) == 0
    yield made
    assert library(f"{name}Destroy{ending}", made) == 0
