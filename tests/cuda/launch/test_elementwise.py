"""What an elementwise kernel does in straight lines is what it does for any operands, and the rest is left to that."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.autograd.recording.namespace import PRIMITIVES
from lucid.autograd.recording.primitive import Primitive
from lucid.autograd.recording.short_path import cuda_arrays
from lucid.base import gpu
from lucid.cuda.launch import kernels, plans
from lucid.cuda.launch.elementwise import Elementwise, overlap
from lucid.errors import ShapeError
from tests.kernels.near import device
from tests.pieces import function_of
from tests.pieces.children import python

pytestmark = pytest.mark.gpu

ADD, NEGATIVE, LESS, WHERE = (PRIMITIVES[name].kernel for name in ("add", "neg", "lt", "where"))


def forms(rng, dtype):
    """Return pairs of operands: of one shape, that broadcast, strided, of one element, empty, and with a number."""
    x, y = (device((rng.standard_normal((4, 6)) * 9).astype(dtype)) for _ in range(2))
    yield from ((x, y), (x, y[0]), (x[:, :1], y), (x.T, y.T), (x[::-1], y[:, ::-1]), (x[1:], y[1:]), (x[0, 0], y))
    yield from ((x[:0], y[:0]), (x, 3), (3, x), (x, x))
    if np.dtype(dtype).kind == "f":
        yield from ((x, 0.5), (0.5, x))


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64", "bool"])
def test_three_operands_in_straight_lines(dtype, rng):
    """Values, shape and dtype are those of the call for any operands; where that has no kernel, its answer stands."""
    straight = WHERE.straight()
    for x, y in forms(rng, dtype):
        if not hasattr(x, "dtype") or not hasattr(y, "dtype") or x.shape != y.shape:
            continue
        above, other = x > 0, y.astype("int8")
        for operands in ((above, x, y), (above, y, 2), (above, 2, y), (above, x, other), (above.T, x.T, y.T)):
            expected = WHERE(*operands)
            for _ in range(2):
                out = straight(*operands)
                if expected is NotImplemented:
                    assert out is NotImplemented
                    continue
                assert (out.shape, out.dtype, out.flags.c_contiguous) == (expected.shape, expected.dtype, True)
                np.testing.assert_array_equal(out.get(), expected.get())
    with pytest.raises(ValueError, match="broadcast"):
        straight(device(np.ones(3, bool)), device(np.ones(4)), device(np.ones(4)))


def test_three_operands_without_a_kernel(rng):
    """Complex numbers and operands of two dtypes are chosen from all the same."""
    values = rng.standard_normal(3) + 1j * rng.standard_normal(3)
    x = lucid.tensor(values, device="cuda")
    assert lucid.where(x.real > 0, x, 0.0).tolist() == np.where(values.real > 0, values, 0).tolist()
    assert lucid.where(x.real > 0, x, x.real).tolist() == np.where(values.real > 0, values, values.real).tolist()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "uint8"])
@pytest.mark.parametrize("kernel", [ADD, LESS], ids=["add", "less"])
def test_two_operands_in_straight_lines(kernel, dtype, rng):
    """Values, shape and dtype are those of the call for any operands; a second call takes the form that is known."""
    straight = kernel.straight()
    for a, b in forms(rng, dtype):
        expected = kernel(a, b)
        for _ in range(2):
            out = straight(a, b)
            assert (out.shape, out.dtype, out.flags.c_contiguous) == (expected.shape, expected.dtype, True)
            np.testing.assert_array_equal(out.get(), expected.get())


def test_the_second_operand_is_part_of_the_form(rng):
    """Its strides and its alignment are, too."""
    straight = ADD.straight()
    x = device(rng.standard_normal((4, 4)).astype(np.float32))
    straight(x, x.copy())
    np.testing.assert_array_equal(straight(x, x.T).get(), x.get() + x.get().T)
    nine, eight = (device(rng.standard_normal(size).astype(np.float32)) for size in (9, 8))
    straight(eight, eight.copy())
    for a, b in ((nine[1:], eight), (eight, nine[1:])):
        np.testing.assert_array_equal(straight(a, b).get(), a.get() + b.get())


def test_what_is_added_in_place(rng):
    """Each operand may begin anywhere: of one form, only where both are aligned are elements taken in packs."""
    numbers = [rng.standard_normal(12).astype(np.float32) for _ in range(2)]
    for first in (0, 1, 4):
        for second in (0, 1, 4):
            x, y = (device(values) for values in numbers)
            a, b = x[first : first + 8], y[second : second + 8]
            ADD.change(a, b)
            expected = numbers[0].copy()
            expected[first : first + 8] += numbers[1][second : second + 8]
            np.testing.assert_array_equal(x.get(), expected)


def test_forms_are_bounded(rng, monkeypatch):
    """Of very many forms a function remembers no more than a number, and begins anew."""
    monkeypatch.setattr(plans, "REMEMBERED", 4)
    ADD.in_place.clear()
    ADD.launches.clear()
    for size in range(1, 20):
        x = device(rng.standard_normal(size).astype(np.float32))
        before = x.get()
        np.testing.assert_array_equal(ADD(x, x).get(), before + before)
        ADD.change(x, x)
        np.testing.assert_array_equal(x.get(), before + before)
        assert len(ADD.in_place) <= 4
        assert len(ADD.launches) <= 4


def test_one_operand_in_straight_lines(rng):
    """The same of one."""
    straight = NEGATIVE.straight()
    for dtype in ("float16", "float32", "float64", "int32"):
        for a, _ in forms(rng, dtype):
            if hasattr(a, "get"):
                np.testing.assert_array_equal(straight(a).get(), -a.get())


def test_the_rest_is_left(rng, monkeypatch):
    """Other dtypes, numbers that do not fit, arrays of the host and kernels of other operands raise TypeError."""
    straight = ADD.straight()
    x = device(rng.standard_normal(3).astype(np.float32))
    whole = device(np.arange(3))
    for a, b in ((x, whole), (whole, 0.5), (0.5, whole), (x, x.get()), (x.get(), x), (1, 2), (x, "3"), (x, None)):
        with pytest.raises(TypeError):
            straight(a, b)
    with pytest.raises(ValueError, match="broadcast"):
        straight(x, device(np.zeros(4, np.float32)))
    monkeypatch.setattr(kernels, "KERNELS", [])  # what is declared here is not to be compiled with what lucid declares
    wide = x.astype(np.float64)
    with pytest.raises(TypeError):
        Elementwise("elementwise", "Add", "TT", dtypes=("float",)).straight()(wide, wide)
    for operands in ("TS", "TM", "TTTT"):
        assert Elementwise("elementwise", "Add", operands).straight() is None


@pytest.mark.usefixtures("two_devices")
def test_other_kernels_leave_other_devices_too(rng):
    """What is no elementwise kernel of one or two operands is called for arrays of the current device alone."""
    function = cuda_arrays(lambda x: x).function
    with gpu.use_device(1):
        y = device(rng.standard_normal(3).astype(np.float32))
        assert function(y) is y
    with pytest.raises(TypeError):
        function(y)


@pytest.mark.usefixtures("two_devices")
def test_the_device_is_the_callers_again():
    """A rule that makes another device current leaves the one before to whoever called backward."""

    def backward(ctx, grad):
        lucid.cuda.set_device(1)
        return grad

    Elsewhere = function_of(lambda ctx, x: x.clone(), backward, name="Elsewhere")

    x = lucid.ones(2, device="cuda:0", requires_grad=True)
    with lucid.cuda.device(0):
        Elsewhere.apply(x).sum().backward()
        assert lucid.cuda.current_device() == 0


def test_arrays_that_cupy_made_before_lucid_looked():
    """The first op of a process may be one in place, on an array of the user's own."""
    code = (
        "import cupy, lucid; x = lucid.as_tensor(cupy.arange(3, dtype='f4')); x.add_(1).exp_().log_(); "
        "print([round(v) for v in x.tolist()])"
    )
    child = python("-c", code)
    assert (child.returncode, child.stdout) == (0, "[1, 2, 3]\n"), child.stderr


def test_nodes_are_those_of_the_general_path(rng):
    """What the short path records keeps what the general one does, by the plan for CUDA arrays."""
    x = lucid.tensor(rng.uniform(0.2, 0.8, 3).astype(np.float32), device="cuda", requires_grad=True)
    seen = 0
    for op in PRIMITIVES.values():
        if op.general is op or not op.rules:
            continue
        short, general = (call(*[x] * len(op.inputs)).grad_fn for call in (op.call, op))
        assert short.kept[0] is general.kept[0], op.name
        seen += 1
    assert seen > 40


@pytest.mark.parametrize("dtype", [lucid.float16, lucid.bfloat16, lucid.float32, lucid.float64], ids=str)
def test_every_dtype_takes_the_short_path(dtype, monkeypatch):
    """It does not reach the general one."""
    x = lucid.ones(3, dtype=dtype, device="cuda", requires_grad=True)
    monkeypatch.setattr(Primitive, "__call__", None)
    assert ((x + x) * 2.0).exp().dtype is dtype


@pytest.mark.usefixtures("two_devices")
def test_the_device_of_the_operands(rng):
    """Operands of another device than the current one are left, and so are those of two; ops take the first kind."""
    straight, negative = ADD.straight(), NEGATIVE.straight()
    with gpu.use_device(1):
        y = device(rng.standard_normal(3).astype(np.float32))
    x = device(y.get())
    for act in (lambda: straight(y, y), lambda: straight(x, y), lambda: negative(y), lambda: straight(y, 1.0)):
        with pytest.raises(TypeError):
            act()
    a = lucid.tensor(y.get(), device="cuda:1", requires_grad=True)
    with lucid.cuda.device(0):
        out = -(a + a) * 2.0
        out.sum().backward()
    assert str(out.device) == "cuda:1"
    assert a.grad.tolist() == [-4.0] * 3
    with pytest.raises(RuntimeError, match="device"):
        a + lucid.tensor(y.get(), device="cuda:0")


def test_a_full_device_is_told():
    """Where there is no room for the output the error is lucid's, as of any other op, and the next call goes on."""
    pool = gpu.cupy().get_default_memory_pool()
    x = lucid.ones(1 << 20, device="cuda")
    limit = pool.get_limit()
    pool.free_all_blocks()
    pool.set_limit(size=pool.total_bytes() + (1 << 20))
    try:
        for act in (lambda: x + x, lambda: x * 2.0, lambda: x.exp()):
            with pytest.raises(lucid.cuda.OutOfMemoryError, match="no room"):
                act()
    finally:
        pool.set_limit(size=limit)
    assert (x + x).sum().item() == 1 << 21


def test_shapes_that_do_not_fit_are_told():
    """The error names the op and the shapes, on the short path as elsewhere."""
    x = lucid.ones(3, device="cuda")
    with pytest.raises(ShapeError, match=r"add: shapes \(3,\) and \(4,\) cannot be broadcast"):
        x + lucid.ones(4, device="cuda")


def test_the_stream_of_a_node():
    """A node that was recorded on another stream than the default one keeps it; its backward runs there."""
    x = lucid.ones(3, device="cuda", requires_grad=True)
    side = lucid.cuda.Stream()
    side.wait_stream(lucid.cuda.current_stream())
    with lucid.cuda.stream(side):
        out, other = x * 2.0, x.exp()
        address = gpu.current_stream().ptr
    assert out.grad_fn.extra.stream.ptr == other.grad_fn.extra.stream.ptr == address
    assert (x * 2.0).grad_fn.extra is None


def test_overlap():
    """Told by addresses: of two views, and of two arrays over the same memory."""
    base = device(np.zeros(8, np.float32))
    view = gpu.cupy().ndarray(
        4, np.float32, gpu.cupy().cuda.MemoryPointer(gpu.cupy().cuda.UnownedMemory(base.data.ptr, 32, base), 8)
    )
    for a, b, expected in (
        (base[:4], base[3:], True),
        (base[:4], base[4:], False),
        (base[::-1][:4], base[:4], False),
        (base[::-1][:4], base[4:], True),
        (view, base[:3], True),
        (view, base[6:], False),
        (base[:0], base, False),
        (base, base[:0], False),
    ):
        assert overlap(a, b) is expected
