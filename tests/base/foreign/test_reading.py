"""Foreign arrays at every door: the elements come in, on the same memory where that can be, or a refusal says why."""

from __future__ import annotations

import io

import ml_dtypes
import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.base import gpu
from lucid.errors import ArgumentError, DtypeError, LucidError, SettingError
from lucid.ops.base.promotion import OperandTypeError
from lucid.serialization.tree import UnsupportedObjectError
from lucid.utils.data import DataLoader, default_collate, default_convert
from tests.device import DEVICE

VALUES = np.array([[1, 2], [3, 4]], np.float32)


class Unit(np.ndarray):
    """A class of somebody's own."""


class Lender:
    """Lends an array by some of its interfaces."""

    def __init__(self, array, *names):
        self.array = array
        self.names = names

    def __getattr__(self, name):
        if name in self.names:
            return getattr(self.array, name)
        raise AttributeError(name)


class ByArray:
    """Lends an array by ``__array__``, whatever its class."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


class Masked:
    """Describes memory with a mask."""

    @property
    def __array_interface__(self):
        return {**VALUES.__array_interface__, "mask": VALUES}


def read_only(array):
    """Return a copy that cannot be written to."""
    array = array.copy()
    array.flags.writeable = False
    return array


def masked():
    """Return an array with a mask."""
    return np.ma.array(VALUES.copy(), mask=[[True, False], [False, False]])


# by the kind of a foreign array: how it is made, and what a tensor has of it; None where it is refused
TAKEN = {
    "array": (lambda: VALUES.copy(), VALUES),
    "read only": (lambda: read_only(VALUES), VALUES),
    "backwards": (lambda: VALUES.copy()[::-1], VALUES[::-1]),
    "strided": (lambda: np.repeat(VALUES, 2, 1)[:, ::2], VALUES),
    "bfloat16": (lambda: VALUES.astype(ml_dtypes.bfloat16), VALUES),
    "matrix": (lambda: VALUES.copy().view(np.matrix), VALUES),
    "own class": (lambda: VALUES.copy().view(Unit), VALUES),
}
LENT = {
    "by __array__": (lambda: ByArray(VALUES.copy()), VALUES),
    "by __array__, own class": (lambda: ByArray(VALUES.copy().view(Unit)), VALUES),
    "by __array_interface__": (lambda: Lender(VALUES.copy(), "__array_interface__"), VALUES),
    "by DLPack": (lambda: Lender(VALUES.copy(), "__dlpack__", "__dlpack_device__"), VALUES),
    "memoryview": (lambda: memoryview(VALUES.copy()), VALUES),
}
NO_NUMBERS = {
    "structured": lambda: np.zeros((2, 2), [("a", "f4")]),
    "records": lambda: np.zeros((2, 2), [("a", "f4")]).view(np.recarray),
    "objects": lambda: VALUES.astype(object),
    "strings": lambda: VALUES.astype(str),
    "dates": lambda: np.zeros((2, 2), "M8[s]"),
}
WITH_MASK = {
    "masked": masked,
    "mask without effect": lambda: np.ma.array(VALUES.copy()),
    "the masked element": lambda: np.ma.masked,
}
MASK_LENT = {
    "masked by __array__": lambda: ByArray(masked()),
    "masked by its interface": Masked,
    "masked in a list": lambda: [masked(), masked()],
    "masked element in a list": lambda: [[1.0, np.ma.masked], [3.0, 4.0]],
}


def zeros():
    """Return a tensor to put elements into."""
    return lucid.zeros(2, 2, device="cpu")


def assigned(array):
    """Return a tensor whose elements were set by an index."""
    x = lucid.zeros(2, 2, device=DEVICE)
    x[...] = array
    return x


def saved(array):
    """Return what is loaded of an array that was saved."""
    file = io.BytesIO()
    lucid.save(array, file)
    file.seek(0)
    return lucid.load(file)


# what takes everything that lends its memory
READERS = {
    "tensor": lambda a: lucid.tensor(a, device=DEVICE),
    "tensor of a dtype": lambda a: lucid.tensor(a, dtype=lucid.float64, device=DEVICE),
    "as_tensor": lambda a: lucid.as_tensor(a, device=DEVICE),
    "asarray": lambda a: lucid.asarray(a, device=DEVICE),
    "asarray, copied": lambda a: lucid.asarray(a, device=DEVICE, copy=True),
    "new_tensor": lambda a: lucid.zeros(1, device=DEVICE, dtype=lucid.float32).new_tensor(a),
    "setitem": assigned,
}
# what takes arrays of NumPy's, and of classes that inherit from it
OPERANDS = {
    "from_numpy": lucid.from_numpy,
    "from_dlpack": lucid.from_dlpack,
    "Tensor": lucid.FloatTensor,
    "add": lambda a: zeros() + a,
    "add in place": lambda a: zeros().add_(a),
    "maximum": lambda a: lucid.maximum(zeros(), a),
    "copy_": lambda a: zeros().copy_(a),
    "stack": lambda a: lucid.stack([zeros(), a])[1],
    "collate": lambda a: default_collate([a, a])[1],
    "convert": default_convert,
    "loader": lambda a: next(iter(DataLoader([a, a], 2)))[0],
    "save": saved,
}
# what takes tensors only
TENSORS_ONLY = {
    "gradient": lambda a: setattr(lucid.zeros(2, 2, requires_grad=True), "grad", a),
    "backward": lambda a: lucid.zeros(2, 2, requires_grad=True).sum().backward(a),
    "state dict": lambda a: nn.Linear(2, 2, bias=False).load_state_dict({"weight": a}),
    "dataset": lucid.utils.data.TensorDataset,
}


@pytest.mark.parametrize("kind", [*TAKEN, *LENT])
@pytest.mark.parametrize("entry", READERS)
def test_read(entry, kind):
    """What lends its memory has its elements in a tensor, and nothing of its class."""
    make, values = {**TAKEN, **LENT}[kind]
    made = READERS[entry](make())
    assert type(made) is lucid.Tensor
    assert made.device.type == DEVICE
    assert type(made.array) is (np.ndarray if DEVICE == "cpu" else gpu.array_type())
    assert made.tolist() == values.tolist()


@pytest.mark.parametrize("kind", [*WITH_MASK, *MASK_LENT])
@pytest.mark.parametrize("entry", READERS)
def test_mask(entry, kind):
    """A mask is refused wherever it hides, by an error that says what to do."""
    with pytest.raises(DtypeError, match=r"expected an array without a mask, got .*filled\(value\)"):
        READERS[entry]({**WITH_MASK, **MASK_LENT}[kind]())


@pytest.mark.cpu("arrays of NumPy's")
class TestEntries:
    """Doors on the CPU, with each kind of array."""

    @pytest.mark.parametrize("kind", TAKEN)
    @pytest.mark.parametrize("entry", OPERANDS)
    def test_operand(self, entry, kind):
        """Arrays of NumPy's and of classes that inherit from it are the same everywhere."""
        make, values = TAKEN[kind]
        made = OPERANDS[entry](make())
        assert type(made) is (np.ndarray if entry == "save" else lucid.Tensor)
        assert made.tolist() == values.tolist() if entry != "save" else np.array_equal(made, values)

    @pytest.mark.parametrize("kind", WITH_MASK)
    @pytest.mark.parametrize("entry", OPERANDS)
    def test_mask_of_an_operand(self, entry, kind):
        """So it is by ops, and by what reads data, which leaves it as it is where that is no tensor's."""
        array = WITH_MASK[kind]()
        if entry == "convert":
            assert OPERANDS[entry](array) is array
            return
        with pytest.raises(LucidError, match=r"mask|Masked") as raised:
            OPERANDS[entry](array)
        assert isinstance(raised.value, DtypeError | ArgumentError | UnsupportedObjectError | OperandTypeError)

    @pytest.mark.parametrize("kind", [*TAKEN, *WITH_MASK, *NO_NUMBERS])
    @pytest.mark.parametrize("entry", TENSORS_ONLY)
    def test_tensors_only(self, entry, kind):
        """What takes tensors only says so."""
        array = {**{k: v[0] for k, v in TAKEN.items()}, **WITH_MASK, **NO_NUMBERS}[kind]()
        with pytest.raises(LucidError, match=r"expected a|is not a"):
            TENSORS_ONLY[entry](array)

    @pytest.mark.parametrize("kind", NO_NUMBERS)
    @pytest.mark.parametrize("entry", [*READERS, *(entry for entry in OPERANDS if entry != "convert")])
    def test_no_numbers(self, entry, kind):
        """Fields, objects, text and dates are refused, by their dtype."""
        with pytest.raises(LucidError, match=r"NumPy's dtype|array of |has no DLPack"):
            {**READERS, **OPERANDS}[entry](NO_NUMBERS[kind]())

    @pytest.mark.parametrize("kind", ["masked", "the masked element"])
    def test_numbers_and_indices(self, kind):
        """A setting and an index have no mask either."""
        array = {"masked": np.ma.array(1.0, mask=True)}.get(kind, np.ma.masked)
        calls = [
            lambda: zeros().fill_(array),
            lambda: lucid.full((2,), array),
            lambda: lucid.clamp(zeros(), min=array),
            lambda: lucid.arange(array),
            lambda: zeros()[np.ma.array([0], mask=[True])],
            lambda: lucid.unsqueeze(zeros(), np.ma.array(1, mask=True)),
        ]
        for call in calls:
            with pytest.raises(DtypeError, match="without a mask"):
                call()

    def test_a_failed_assignment_changes_nothing(self):
        """The tensor is as it was."""
        x = zeros()
        with pytest.raises(DtypeError):
            x[...] = masked()
        assert x.tolist() == [[0, 0], [0, 0]]
        assert x._version == 0


@pytest.mark.cpu("arrays of NumPy's")
class TestMemory:
    """Whose memory it is."""

    @pytest.mark.parametrize("kind", ["array", "own class", "matrix", "backwards", "bfloat16"])
    def test_shared(self, kind):
        """as_tensor is on the memory of an array, of any class."""
        array = TAKEN[kind][0]()
        lucid.as_tensor(array).fill_(7)
        assert (np.asarray(array, np.float32) == 7).all()

    def test_asarray_copies_as_asked(self):
        """With copy what lends its memory is copied, without it never, which is refused only where it has to be."""
        memory = VALUES.copy()
        for lent in (memory, memoryview(memory), ByArray(memory), Lender(memory, "__array_interface__")):
            lucid.asarray(lent, copy=True, device="cpu").fill_(7)
            assert (memory == VALUES).all()
            lucid.asarray(lent, copy=False, device="cpu").fill_(5)
            assert (memory == 5).all()
            memory[...] = VALUES
            with pytest.raises(SettingError, match="without a copy, and copy is False"):
                lucid.asarray(lent, copy=False, dtype=lucid.float64, device="cpu")
        with pytest.raises(SettingError, match="without a copy"):
            lucid.asarray([1.0], copy=False)

    def test_read_only(self):
        """Memory that is read only stays so."""
        with pytest.raises(LucidError, match="read-only"):
            lucid.as_tensor(read_only(VALUES)).add_(1)


class LentCuda:
    """Lends CUDA memory, with changes to its description."""

    def __init__(self, array, **changes):
        self.array = array
        self.changes = changes

    @property
    def __cuda_array_interface__(self):
        return {**self.array.__cuda_array_interface__, **self.changes}


@pytest.mark.gpu
class TestCudaArrayInterface:
    """What is read of CUDA memory that others lend."""

    @pytest.fixture
    def lender(self):
        """Return an array of CuPy's that holds two numbers."""
        return lucid.tensor([1.0, 2.0], device="cuda").array

    def test_shared(self, lender):
        """It is used where it lies."""
        lucid.as_tensor(LentCuda(lender)).add_(1)
        assert lender.tolist() == [2, 3]

    def test_read_only(self, lender):
        """Memory that is read only is copied, or refused if nothing may be."""
        lent = LentCuda(lender, data=(lender.data.ptr, True))
        for made in (lucid.as_tensor(lent), lucid.tensor(lent), lucid.asarray(lent), lucid.asarray(lent, copy=True)):
            assert made.add_(5).tolist() == [6, 7]
        x = lucid.zeros(2, device="cuda")
        x[...] = lent
        x.add_(1)
        assert lender.tolist() == [1, 2]
        with pytest.raises(SettingError, match="read only, and a tensor's is not"):
            lucid.asarray(lent, copy=False)

    def test_bfloat16(self):
        """It goes out under the name that CuPy has for it, and comes back; two bytes without a name are refused."""
        x = lucid.tensor([1.0, 2.0], dtype=lucid.bfloat16, device="cuda")
        assert x.__cuda_array_interface__["typestr"] == "bfloat16"
        back = lucid.as_tensor(LentCuda(x))
        assert back.dtype is lucid.bfloat16
        assert back.data_ptr() == x.data_ptr()
        with pytest.raises(DtypeError, match=r"'<V2' names no dtype of lucid.*from_dlpack"):
            lucid.as_tensor(LentCuda(x, typestr="<V2"))

    def test_what_is_refused(self, lender):
        """Bytes in another order, a mask, and a shape that wraps around."""
        with pytest.raises(DtypeError, match="'>f4' names no dtype"):
            lucid.as_tensor(LentCuda(lender, typestr=">f4"))
        with pytest.raises(DtypeError, match="without a mask"):
            lucid.as_tensor(LentCuda(lender, mask=lender))
        with pytest.raises(LucidError, match="larger than any memory"):
            lucid.as_tensor(LentCuda(lender, shape=(1 << 40, 1 << 40), strides=(0, 0)))
