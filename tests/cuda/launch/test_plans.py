"""Launch plans: what a launcher did once is done again for arrays of the same form, and only for those."""

from __future__ import annotations

import ctypes
import gc
import itertools
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import lucid
from lucid.autograd.recording.namespace import CUDA, PRIMITIVES
from lucid.autograd.recording.plan import kernel_or_reference
from lucid.base import gpu
from lucid.cuda.launch import kernels, plans
from lucid.cuda.launch.plans import empty, launches_only, planned
from lucid.cuda.libraries import blas
from lucid.errors import ShapeError
from lucid.ops.base.core import ADD
from tests.kernels.near import device
from tests.pieces import in_threads

pytestmark = pytest.mark.gpu


def asked(function):
    """Return a launcher that is planned, and the list of the arguments that it was asked with."""
    calls = []

    def launcher(*arguments, **settings):
        calls.append((arguments, settings))
        return function(*arguments, **settings)

    return planned(launcher), calls


def sum_of(x, y, *, times=1):
    """Return ``x + times * y``, in as many launches."""
    for _ in range(times):
        out = empty(x.shape, x.dtype)
        ADD(x, y, out=out)
        x = out
    return x


def drawn(rng, *shape):
    """Return float32 numbers."""
    return rng.standard_normal(shape).astype(np.float32)


def test_the_second_call_asks_nobody(rng):
    """Arrays of the same form with other values, elsewhere in memory, get their own results in arrays of their own."""
    run, calls = asked(sum_of)
    kept = []
    for _ in range(4):
        x, y = drawn(rng, 3, 5), drawn(rng, 3, 5)
        kept.append((run(device(x), device(y), times=3), x + y + y + y))
    for out, expected in kept:
        np.testing.assert_array_equal(out.get(), expected)
    assert len(calls) == 1
    assert len({out.data.ptr for out, _ in kept}) == 4


@pytest.mark.parametrize(
    "other",
    [
        lambda x: (x.astype(np.float64), x.astype(np.float64)),
        lambda x: (x[:2], x[:2]),
        lambda x: (x.T.copy(), x.T.copy()),
        lambda x: (x.T, x.T.copy()),
        lambda x: (x[::-1], x.copy()),
        lambda x: (x.reshape(-1)[1:13].reshape(3, 4), x.reshape(-1)[:12].reshape(3, 4).copy()),
    ],
    ids=["dtype", "shape", "transposed shape", "strides", "backwards", "alignment"],
)
def test_another_form_is_asked_anew(other, rng):
    """A plan is of dtypes, shapes, strides and alignment: others get another, and both stay right."""
    run, calls = asked(sum_of)
    x = device(drawn(rng, 4, 6))
    run(x, x.copy())
    a, b = other(x)
    for _ in range(2):
        np.testing.assert_array_equal(run(a, b).get(), a.get() + b.get())
        np.testing.assert_array_equal(run(x, x.copy()).get(), 2 * x.get())
    assert len(calls) == 2


def test_strides_alone_make_another_form(rng):
    """Of a square matrix the transposed one has its shape and its alignment."""
    run, calls = asked(sum_of)
    x = device(drawn(rng, 4, 4))
    run(x, x.copy())
    np.testing.assert_array_equal(run(x.T, x.copy()).get(), x.get().T + x.get())
    assert len(calls) == 2


def test_alignment_alone_makes_another_form(rng):
    """Of the same shape and strides, an array that begins between two packs is not read by packs."""
    run, calls = asked(sum_of)
    base, other = device(drawn(rng, 17)), device(drawn(rng, 16))
    for first in (0, 1, 0, 1, 2, 4):
        x = base[first : first + 12]
        np.testing.assert_array_equal(run(x, other[:12]).get(), x.get() + other[:12].get())
    assert len(calls) == 3


def test_addresses_within_an_array(rng):
    """A launch may begin anywhere in an operand, also before its first element, where its strides are negative."""
    run, calls = asked(lambda x: sum_of(x[2:], x[:-2]))
    for _ in range(2):
        x = drawn(rng, 10)
        np.testing.assert_array_equal(run(device(x)).get(), x[2:] + x[:-2])
    assert len(calls) == 1
    run, calls = asked(lambda x: sum_of(x[::-1], x[::-1]))
    for _ in range(2):
        x = drawn(rng, 8)
        np.testing.assert_array_equal(run(device(x)[::-1]).get(), 2 * x)
    assert len(calls) == 1


def watched(launch):
    """Return a driver that launches by ``launch(real, *arguments)``."""
    real = kernels.driver()
    names = ("device", "stream", "recovers", "failure")
    return SimpleNamespace(launch=lambda *arguments: launch(real, *arguments), **{n: getattr(real, n) for n in names})


def size_at(extra):
    """Return how long the parameters are, as the driver is told."""
    return ctypes.c_size_t.from_address((ctypes.c_void_p * 5).from_address(extra)[3]).value


def test_all_that_the_driver_reads_lives_as_long_as_the_plan(rng, monkeypatch):
    """What tells it of the size of the parameters is read at each launch, and is no freed memory."""
    seen = []

    def launch(real, *arguments):
        seen.append(size_at(arguments[-1]))
        return real.launch(*arguments)

    run, _ = asked(sum_of)
    x = device(drawn(rng, 8))
    run(x, x.copy())
    junk = [ctypes.c_size_t(1) for _ in range(100)]
    monkeypatch.setattr(kernels, "_driver", watched(launch))
    run(x, x.copy())
    ADD(x, x.copy(), out=x.copy())
    assert seen[0] == seen[1] > 8
    assert len(junk) == 100


def test_parameters_are_those_of_the_launch_that_packed_them(rng, monkeypatch):
    """Another thread that launches meanwhile waits until the driver has read them."""
    for run in (asked(sum_of)[0], ADD):
        x, y = drawn(rng, 8), drawn(rng, 8)
        a, b = device(x), device(y)
        run(a, a.copy())
        threads = []

        def launch(real, *arguments, run=run, b=b, threads=threads):
            if not threads:
                threads.append(threading.Thread(target=lambda: run(b, b.copy())))
                threads[0].start()
                threads[0].join(0.3)
            return real.launch(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(kernels, "_driver", watched(launch))
            out = run(a, a.copy())
            threads[0].join()
        np.testing.assert_array_equal(out.get(), 2 * x)


def test_nothing_is_compiled_under_a_lock(monkeypatch, rng):
    """What is called while a kernel is found, such as a handler of the log, may launch the same kernel."""
    monkeypatch.setattr(kernels, "_driver", None)
    launcher = ADD.kernel[ADD.instances[np.dtype(np.float32)][0]]
    x, y, out = (device(drawn(rng, 8)) for _ in range(3))
    find, asked_for, inside = launcher._find, [], []

    def found(name):
        asked_for.append(name)
        if len(asked_for) == 1:
            inside.append(ADD(x, y))
        return find(name)

    monkeypatch.setattr(launcher, "_find", found)
    launcher._handles.clear()
    ADD(x, y, out=out)
    np.testing.assert_array_equal(out.get(), x.get() + y.get())
    np.testing.assert_array_equal(inside[0].get(), x.get() + y.get())


def test_products_of_parts(rng):
    """A call of cuBLAS may begin anywhere in its operands, too."""
    run, calls = asked(lambda x, y, out: blas.matmul(x[1:], y[2:], out[3:]))
    for _ in range(3):
        x, y, out = drawn(rng, 40, 33), drawn(rng, 35, 37), device(drawn(rng, 42, 37))
        np.testing.assert_allclose(run(device(x), device(y), out).get(), x[1:] @ y[2:], rtol=1e-4, atol=1e-4)
    assert len(calls) == 3
    run, calls = asked(lambda x, y: blas.matmul(x[1:], y[2:]))
    for _ in range(3):
        x, y = drawn(rng, 40, 33), drawn(rng, 35, 37)
        np.testing.assert_allclose(run(device(x), device(y)).get(), x[1:] @ y[2:], rtol=1e-4, atol=1e-4)
    assert len(calls) == 1


def test_products_without_an_inner_size():
    """They are no launches of lucid's: what is scaled is scaled each time."""
    a, b = lucid.ones(2, 0, device="cuda"), lucid.ones(0, 3, device="cuda")
    for value in (7.0, 9.0, 5.0):
        x = lucid.full((2, 3), value, device="cuda")
        assert lucid.addmm(x, a, b, beta=0.5).tolist() == [[value / 2] * 3] * 2


def test_what_no_kernel_converts_is_copied_each_time(monkeypatch):
    """A bias that CuPy copies is not in the plan."""
    monkeypatch.setattr(blas, "converted", lambda *_: NotImplemented)
    a, b = lucid.ones(5, 11, device="cuda"), lucid.ones(11, 3, device="cuda")
    for value in (1.0, 2.0, 3.0):
        assert lucid.addmm(lucid.full((5, 3), value, device="cuda"), a, b).tolist() == [[11 + value] * 3] * 5


def test_settings_are_part_of_the_form(rng):
    """Each combination of settings has a plan; what cannot be hashed has none, and is asked each time."""
    run, calls = asked(lambda x, times: sum_of(x, x, times=times if isinstance(times, int) else times[0]))
    x = device(drawn(rng, 6))
    for times in (1, 2, 1, 2):
        np.testing.assert_allclose(run(x, times).get(), x.get() * (1 + times), rtol=1e-6)
    assert len(calls) == 2
    for _ in range(2):
        np.testing.assert_allclose(run(x, times=[2]).get(), x.get() * 3, rtol=1e-6)
    assert len(calls) == 4


def test_one_array_twice_is_another_form_than_two(rng):
    """A plan that was made where both operands are one array does not serve two of them, nor the other way round."""
    for order in ((0, 1), (1, 0)):
        run, calls = asked(sum_of)
        x, y = device(drawn(rng, 8)), device(drawn(rng, 8))
        cases = [(x, x), (x, y)]
        for index in order * 2:
            a, b = cases[index]
            np.testing.assert_array_equal(run(a, b).get(), a.get() + b.get())
        assert len(calls) == 2


def test_overlapping_operands_make_no_plan(rng):
    """Addresses that lie in both of two operands say nothing of other operands: such a call is made as it is."""
    run, calls = asked(sum_of)
    base = device(drawn(rng, 9))
    a, b = base[:8], base[1:9]
    np.testing.assert_array_equal(run(a, b).get(), a.get() + b.get())
    x, y = device(drawn(rng, 9))[:8], device(drawn(rng, 9))[1:9]
    np.testing.assert_array_equal(run(x, y).get(), x.get() + y.get())
    np.testing.assert_array_equal(run(y, x).get(), x.get() + y.get())
    assert len(calls) >= 2


def test_what_an_address_hides_in_makes_no_plan(rng):
    """Memory that no array explains, as of a copy of CuPy's, is asked for each time: it is another one then."""
    run, calls = asked(lambda x: sum_of(x.copy(), x.copy()))
    for number in range(1, 4):
        x = drawn(rng, 8)
        np.testing.assert_array_equal(run(device(x)).get(), x + x)
        assert len(calls) == number
    recording = plans.Recording([device(drawn(rng, 8))])
    address = recording.arrays[0].data.ptr
    for value in (address, address + 4, address.to_bytes(8, "little"), bytes(8) + (address + 28).to_bytes(8, "little")):
        with pytest.raises(plans.NotPlannedError):
            recording.check(value)
    for value in (0, 7, address - 4, address + 32, bytes(24), 1.5, True):
        recording.check(value)


def test_what_is_no_launch_makes_no_plan(rng):
    """A launcher that says so is asked each time."""

    def launcher(x):
        plans.not_planned()
        out = empty(x.shape, x.dtype)
        out[...] = x
        return out

    run, calls = asked(launcher)
    for _ in range(3):
        x = drawn(rng, 5)
        np.testing.assert_array_equal(run(device(x)).get(), x)
    assert len(calls) == 3
    plans.not_planned()  # where nothing is noted it says nothing


def test_the_reference_makes_no_plan(rng):
    """An op without a kernel is CuPy's, which no plan notes: what it does to known arrays would be left out."""
    assert PRIMITIVES["angle"].kernel is None

    def launcher(x):
        PRIMITIVES["angle"].gpu(x)
        return ADD(x, x)

    run, calls = asked(launcher)
    for _ in range(3):
        x = drawn(rng, 5)
        np.testing.assert_array_equal(run(device(x)).get(), x + x)
    assert len(calls) == 3


def test_results_of_every_kind(rng):
    """Several results, none, an operand itself; what was made and is not handed out; nothing at all for no kernel."""

    def launcher(x, y, *, kind):
        room = empty(x.shape, x.dtype)
        ADD(x, y, out=room)
        out = sum_of(room, y)
        return {"several": (out, None, x), "operand": y, "missing": NotImplemented, "view": out[::2]}[kind]

    run, calls = asked(launcher)
    for _ in range(3):
        x, y = device(drawn(rng, 6)), device(drawn(rng, 6))
        out, nothing, same = run(x, y, kind="several")
        np.testing.assert_array_equal(out.get(), x.get() + y.get() + y.get())
        assert nothing is None
        assert same is x
        assert run(x, y, kind="operand") is y
        assert run(x, y, kind="missing") is NotImplemented
        np.testing.assert_array_equal(run(x, y, kind="view").get(), (x.get() + y.get() + y.get())[::2])
    kinds = [settings["kind"] for _, settings in calls]
    assert [kinds.count(kind) for kind in ("several", "operand", "missing", "view")] == [1, 1, 3, 3]


@pytest.mark.parametrize("pick", [lambda x, out: x, lambda x, out: (out,), lambda x, out: (x, out), lambda x, out: out])
def test_results_of_one_launch(pick, rng):
    """Where one launch makes one array, what comes out is still what the launcher returned."""

    def launcher(x):
        out = empty(x.shape, x.dtype)
        ADD(x, x, out=out)
        return pick(x, out)

    run, calls = asked(launcher)
    for _ in range(3):
        x = device(drawn(rng, 6))
        got, expected = run(x), pick(x, x + x)
        assert isinstance(got, tuple) is isinstance(expected, tuple)
        for array, other in zip(*[r if isinstance(r, tuple) else (r,) for r in (got, expected)], strict=True):
            np.testing.assert_array_equal(array.get(), other.get())
    assert len(calls) == 1


def test_arrays_without_elements(rng):
    """They have no address to tell them apart, and nothing is launched."""
    run, calls = asked(sum_of)
    for _ in range(2):
        assert run(device(drawn(rng, 0, 3)), device(drawn(rng, 0, 3))).shape == (0, 3)
        x = drawn(rng, 1, 3)
        np.testing.assert_array_equal(run(device(x), device(x)).get(), x + x)
    assert len(calls) == 2


def test_an_error_leaves_no_note(rng):
    """What raises has made no plan, and the next launches are noted nowhere."""

    def launcher(x, fail):
        out = sum_of(x, x)
        if fail:
            raise ShapeError("no")
        return out

    x = device(drawn(rng, 4))
    for _ in range(2):
        run, calls = asked(launcher)
        with pytest.raises(ShapeError):
            run(x, True)
        assert not plans.recordings
    for _ in range(2):
        np.testing.assert_array_equal(run(x, False).get(), 2 * x.get())
    assert len(calls) == 2


def test_a_planned_launcher_within_another(rng):
    """Its launches belong to the outer plan, whether or not it has one of its own."""
    inner, inner_calls = asked(sum_of)
    outer, outer_calls = asked(lambda x, y: inner(inner(x, y), y))
    x, y = device(drawn(rng, 7)), device(drawn(rng, 7))
    for known in (False, True):
        if known:
            inner(x, y)
        for _ in range(3):
            a, b = device(drawn(rng, 7)), device(drawn(rng, 7))
            np.testing.assert_array_equal(outer(a, b).get(), a.get() + b.get() + b.get())
    assert len(outer_calls) == 1
    assert len(inner_calls) == 3


def test_each_thread_notes_its_own(rng):
    """What another thread launches while a plan is made is none of it."""
    x = device(drawn(rng, 8))
    inside, done = threading.Event(), threading.Event()

    def launcher(a):
        out = sum_of(a, a)
        if not done.is_set():
            inside.set()
            assert done.wait(30)
        return out

    run, _ = asked(launcher)
    other, calls = asked(sum_of)
    found = []
    thread = threading.Thread(target=lambda: found.append(run(x)))
    thread.start()
    assert inside.wait(30)
    for _ in range(3):
        found.append(other(x, x))
        ADD(x, x)
    done.set()
    thread.join()
    again = run(device(x.get() + 1))
    np.testing.assert_array_equal(again.get(), 2 * (x.get() + 1))
    for out in found:
        np.testing.assert_array_equal(out.get(), 2 * x.get())
    assert len(calls) == 1


def test_many_threads_run_one_plan(rng):
    """The parameters of a plan are one buffer: no launch gets those of another thread."""
    run, _ = asked(sum_of)
    arrays = [drawn(rng, 64) for _ in range(6)]
    run(device(arrays[0]), device(arrays[1]))
    wrong = []

    def work(x):
        a, b = device(x), device(x * 3)
        for _ in range(50):
            out = run(a, b, times=2)
            if not np.array_equal(out.get(), x + x * 3 + x * 3):
                wrong.append(x)

    in_threads(*[partial(work, x) for x in arrays])
    assert not wrong


@pytest.mark.usefixtures("two_devices")
def test_each_device_runs_its_own_kernel(rng, monkeypatch):
    """A kernel is loaded for each device, also where a plan or a bound launch was made on another."""
    monkeypatch.setenv("LUCID_CUDA_SIMULATOR", "2")
    launcher = ADD.kernel[ADD.instances[np.dtype(np.float32)][0]]
    run, _ = asked(sum_of)
    for act in (run, ADD.straight(), lambda x, y: ADD.change(x, y)):
        launcher._handles.clear()
        for index in (0, 0, 1):
            with gpu.use_device(index):
                x = device(drawn(rng, 8))
                act(x, x.copy())
        assert set(launcher._handles) == {0, 1}


@pytest.mark.usefixtures("two_devices")
def test_a_plan_serves_every_device(rng):
    """It holds no handle of a device: the kernel is found on the current one."""
    run, calls = asked(sum_of)
    for index in (0, 1, 0, 1):
        with gpu.use_device(index):
            x = drawn(rng, 8)
            out = run(device(x), device(x))
            assert gpu.device_index(out) == index
            np.testing.assert_array_equal(out.get(), x + x)
    assert len(calls) == 1


def test_what_is_recorded_follows_what_requires_grad(rng):
    """Calls of one form save and give what their own operands need, whichever required grad in the call before."""
    values = drawn(rng, 4, 3), drawn(rng, 5, 3), drawn(rng, 5), drawn(rng, 4, 5)
    x, w, _, up = values
    expected = up @ w, up.T @ x, up.sum(0)
    patterns = list(itertools.product((False, True), repeat=3))[1:]
    for pattern in patterns * 3:
        tensors = [
            lucid.tensor(value, device="cuda", requires_grad=needed)
            for value, needed in zip(values[:3], pattern, strict=True)
        ]
        lucid.nn.functional.linear(*tensors).backward(lucid.tensor(up, device="cuda"))
        for tensor, needed, wanted in zip(tensors, pattern, expected, strict=True):
            assert (tensor.grad is not None) == needed
            if needed:
                np.testing.assert_allclose(tensor.grad.cpu().numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_elementwise_steps_are_noted(rng):
    """The raw forms that rules call are part of a plan, though by themselves they keep their launches by form."""
    run, calls = asked(lambda x, y: CUDA.add(CUDA.mul(CUDA.neg(x), y), x))
    for _ in range(3):
        x, y = drawn(rng, 6), drawn(rng, 6)
        np.testing.assert_array_equal(run(device(x), device(y)).get(), -x * y + x)
    assert len(calls) == 1


def test_a_plan_keeps_no_array(rng):
    """Neither operands nor results nor what was made between live longer for it."""
    run, _ = asked(lambda x: sum_of(sum_of(x, x), x))
    x = device(drawn(rng, 8))
    pool = gpu.cupy().get_default_memory_pool()
    run(x)
    gc.collect()
    before = pool.used_bytes()
    out = run(x)
    assert pool.used_bytes() > before
    del out
    assert pool.used_bytes() == before


def test_plans_are_bounded(rng, monkeypatch):
    """A launcher of very many forms begins anew."""
    monkeypatch.setattr(plans, "REMEMBERED", 4)
    run, calls = asked(sum_of)
    for _ in range(2):
        for size in range(1, 7):
            x = drawn(rng, size)
            np.testing.assert_array_equal(run(device(x), device(x)).get(), x + x)
    assert len(calls) > 6


@pytest.mark.parametrize("tf32", [False, True])
def test_a_switch_is_part_of_the_form(tf32, monkeypatch, rng):
    """Products are planned by `allow_tf32`, too: setting it takes effect on shapes that are known."""
    cublas, seen = blas.cublas_library(), []
    multiply = cublas.gemmStridedBatchedEx
    monkeypatch.setattr(
        cublas, "gemmStridedBatchedEx", lambda *arguments: (seen.append(arguments[-2]), multiply(*arguments))[1]
    )
    x, bias = lucid.tensor(drawn(rng, 33, 31), device="cuda"), lucid.ones(33, 33, device="cuda")
    for allowed in (tf32, not tf32, tf32):
        monkeypatch.setattr(lucid.backends.cuda.matmul, "allow_tf32", allowed)
        x @ x.T
        lucid.addmm(bias, x, x.T)
    wanted = {False: blas.COMPUTE_32F, True: blas.COMPUTE_32F_FAST_TF32}
    assert seen == [wanted[allowed] for allowed in (tf32, not tf32, tf32) for _ in range(2)]


def test_operands_that_overlap_elsewhere_are_asked_for(rng):
    """A plan of operands that share memory is for those that share it in the same way."""
    run, calls = asked(lambda x, y: sum_of(x[1:], y[:-1]))

    def pair(first, second):
        base = device(drawn(rng, 40))
        return base[first : first + 8], base[second : second + 8]

    for places in ((0, 4), (0, 4), (4, 8), (0, 8), (0, 4), (8, 4), (0, 12)):
        x, y = pair(*places)
        np.testing.assert_array_equal(run(x, y).get(), x.get()[1:] + y.get()[:-1])
    # those that lie as far apart as the first two need nobody
    assert len(calls) < 7


def test_what_comes_out_in_another_shape_is_made_in_it(rng):
    """A result that is all of an array that was made, reshaped, is in a plan; a part of one, or one twice, is not."""
    for pick, known in (
        (lambda out: out.reshape(2, 3), True),
        (lambda out: (out.reshape(2, 3), None), True),
        (lambda out: out[:3], False),
        (lambda out: out[::-1], False),
        (lambda out: (out, out.reshape(2, 3)), False),
    ):
        run, calls = asked(lambda x, pick=pick: pick(sum_of(x, x)))
        for _ in range(3):
            x = drawn(rng, 6)
            got, expected = run(device(x)), pick(2 * x)
            for one, other in zip(*[r if isinstance(r, tuple) else (r,) for r in (got, expected)], strict=True):
                assert (one is None) == (other is None)
                if one is not None:
                    np.testing.assert_array_equal(one.get(), other)
        assert (len(calls) == 1) == known


def test_a_kernel_of_which_nothing_is_known_makes_no_plan(rng):
    """What a rule calls may be in a plan only if it is declared to do nothing but launches."""
    seen = []

    def kernel(x):
        seen.append(x)
        return ADD(x, x)

    for declared in (False, True):
        run, calls = asked(kernel_or_reference(launches_only(kernel) if declared else kernel, None))
        for _ in range(3):
            x = drawn(rng, 5)
            np.testing.assert_array_equal(run(device(x)).get(), 2 * x)
        assert len(calls) == (1 if declared else 3)


def test_numbers_are_part_of_the_form(rng):
    """Numbers that are equal and not the same, both zeros or 1 and 1.0, are of different forms."""
    x, mask = lucid.tensor(drawn(rng, 5), device="cuda"), lucid.ones(5, dtype=lucid.bool, device="cuda")
    for value in (0.0, -0.0, 0, 1, 1.0, True, float("nan"), float("inf"), -0.0, 0.0):
        out = x.masked_fill(mask, value).numpy(force=True)
        np.testing.assert_array_equal(out, np.full(5, value, np.float32))
        np.testing.assert_array_equal(np.signbit(out), np.signbit(np.full(5, value, np.float32)))
