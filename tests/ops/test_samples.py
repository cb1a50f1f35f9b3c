"""What holds for every op, over the table of `tests.samples`: a new op gets all of it for one row."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import lucid
from lucid.autograd.base import wrap
from lucid.base.arrays import namespace
from lucid.errors import LucidError
from lucid.public import written_in
from tests.device import DEVICE, without_default_device
from tests.gradients import (
    check_gradient,
    check_second_derivative,
    drawing,
    flat,
    gradient_of,
    is_floating,
    numbers,
    outputs_and_gradients,
    random_like,
    tensors_of,
)
from tests.pieces.children import python
from tests.samples import all_samples, check_each

SAMPLES = all_samples()

# The largest error allowed, relative to the largest element, of a result against the one computed in float64 from the
# same rounded inputs. A few units in the last place (2**-11, 2**-8, 2**-24, 2**-53 are half of one): sums run over a
# few dozen elements, and half types round once or twice beside their accumulation in float32.
VALUE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 4e-6, "float64": 1e-12}
# Gradients pass two or three more roundings: of the upstream gradient's products, of saved outputs, and of sums.
GRADIENT = {dtype: 4 * error for dtype, error in VALUE.items()}


def rows(keep=lambda sample: True):
    """Parametrise a test over the rows that `keep` accepts."""
    return pytest.mark.parametrize("sample", [pytest.param(s, id=s.name) for s in SAMPLES if keep(s)])


def of_real_numbers(sample):
    """Tell whether a row has floating-point inputs, which are tried in its dtypes."""
    return any(is_floating(a) and a.dtype.kind != "c" for a in sample.inputs(np.random.default_rng(0)))


def value_of(sample, arrays):
    """Return the outputs of a row's op, as arrays."""
    return [numbers(out) for out in flat(sample.op(*tensors_of(arrays, sample.constants)))]


def reference_of(sample, arrays):
    """Return the outputs of a row's reference, as arrays; infinities and NaN come without warnings."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        result = sample.reference(*arrays)
    return [np.asarray(part) for part in (result if isinstance(result, tuple | list) else [result])]


def check_close(got, expected, error, what, moved=lambda: 0.0):
    """Fail unless two arrays have one shape and differ by no more than `error`, relative to the largest element.

    Or by no more than what `moved()` says, where terms cancel in all elements and none of them is large.
    """
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    if not is_floating(expected):
        np.testing.assert_array_equal(got, expected, err_msg=what)
        return
    kind = np.complex128 if expected.dtype.kind == "c" else np.float64
    got, expected = got.astype(kind), expected.astype(kind)
    allowed = error * np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    if not np.allclose(got, expected, rtol=0, atol=allowed, equal_nan=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=allowed + moved(), equal_nan=True, err_msg=what)


def test_every_case_that_fails_is_named(rng):
    """One that fails keeps no other from being tried, and each has random numbers of its own."""
    drawn = {}

    def check(how, dtype, rng):
        drawn[how, dtype] = rng.standard_normal()
        if how == "raises":
            pytest.fail(dtype)
        assert how == "passes"

    cases = [("fails", "int8"), ("passes", "int8"), ("raises", "bool"), ("passes", "bool")]
    with pytest.raises(BaseExceptionGroup, match="fail: fails int8, raises bool") as raised:
        check_each(check, cases, rng)
    assert [error.__notes__ for error in raised.value.exceptions] == [
        ["in the case fails int8"],
        ["in the case raises bool"],
    ]
    assert len(set(drawn.values())) == len(drawn) == len(cases)
    check_each(check, [("passes", "int8")], rng)


@rows(lambda s: s.reference is not None)
def test_value(sample, rng):
    """In float64 an op gives what an independent formula in NumPy gives."""
    arrays = sample.inputs(rng)
    expected = reference_of(sample, arrays)
    got = value_of(sample, arrays)
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        check_close(one, other, sample.tolerance.get("float64", VALUE["float64"]), "value")


@rows(lambda s: s.differentiable)
def test_gradient(sample, rng):
    """Backward gives the slope that finite differences give, for random upstream gradients."""
    check_gradient(sample.op, sample.inputs(rng), rng, sample.constants)


def halved(x):
    """Return x * x with half of its gradient."""
    return x * x.detach()


def test_the_check_sees_a_wrong_gradient(rng):
    """A gradient, or second derivative, that misses a term fails the comparison with finite differences."""
    array = rng.standard_normal((3, 4))
    with pytest.raises(AssertionError, match="finite differences"):
        check_gradient(halved, [array], rng)
    check_gradient(lambda x: x * x, [array], rng)
    with pytest.raises(AssertionError, match="finite differences"):
        check_second_derivative(lambda x: x * halved(x.detach()), [array], rng)


@rows(lambda s: s.differentiable and s.twice)
def test_second_derivative(sample, rng):
    """The gradient recorded under create_graph has the slope that finite differences of the gradient give."""
    check_second_derivative(sample.op, sample.inputs(rng), rng, sample.constants)


@rows(lambda s: s.differentiable)
def test_both_forms_of_a_rule_agree(sample, rng):
    """A rule gives the same gradients on arrays and, under create_graph, on tensors."""
    arrays = sample.inputs(rng)
    tensors = tensors_of(arrays, sample.constants)
    upstream = [lucid.tensor(random_like(rng, numbers(o))) for o in flat(sample.op(*tensors)) if o.requires_grad]
    gradient = gradient_of(sample.op, len(arrays), sample.constants)
    recorded = gradient(*tensors, *upstream)
    with lucid.no_grad():
        plain = gradient(*tensors, *upstream)
    for got, expected in zip(recorded, plain, strict=True):
        check_close(numbers(got), numbers(expected), 1e-12, "gradient")


@rows(of_real_numbers)
def test_dtype(sample, rng):
    """In each dtype the result is near the one in float64, and gradients have their input's shape and dtype."""
    check_each(functools.partial(check_dtype, sample), [(dtype,) for dtype in sample.dtypes], rng)


def check_dtype(sample, dtype, rng):
    rounded = [numbers(t) for t in tensors_of(sample.inputs(rng), dtype=dtype, requires_grad=False)]
    exact = [a.astype(np.float64) if is_floating(a) and a.dtype.kind != "c" else a for a in rounded]
    tensors = tensors_of(exact, sample.constants, dtype=dtype, requires_grad=sample.differentiable)
    doubles = tensors_of(exact, sample.constants, requires_grad=sample.differentiable)
    draw = drawing(rng)
    moved = functools.cache(lambda: moves(sample, exact, dtype, draw, rng))
    (values, grads), (double_values, double_grads) = [results(sample, inputs, draw) for inputs in (tensors, doubles)]
    for place, (got, expected) in enumerate(zip(values, double_values, strict=True)):
        if expected.dtype == lucid.float64:
            assert str(got.dtype) == f"lucid.{dtype}"
        else:
            assert got.dtype == expected.dtype or dtype != "float64"
        error = sample.tolerance.get(dtype, VALUE[dtype])
        check_close(numbers(got), numbers(expected), error, "value", lambda at=place: errors_by(moved, dtype, 0, at))
        assert got.device == tensors[0].device
    wanted = [tensor for tensor in tensors if tensor.requires_grad]
    for place, (tensor, got, expected) in enumerate(zip(wanted, grads, double_grads, strict=False)):
        if got is not None:
            assert (got.dtype, got.shape, got.device) == (tensor.dtype, tensor.shape, tensor.device)
            error = sample.tolerance.get(dtype, VALUE[dtype]) * GRADIENT[dtype] / VALUE[dtype]
            check_close(
                numbers(got), numbers(expected), error, "gradient", lambda at=place: errors_by(moved, dtype, 1, at)
            )


def errors_by(moved, dtype, part, place):
    """Return the error allowed to a value (`part` 0) or gradient (1) which moves like that with the inputs."""
    return 4 * (1, GRADIENT[dtype] / VALUE[dtype])[part] * moved()[part][place]


def results(sample, tensors, draw):
    """Return what a row's op gives, and its gradients where it has some."""
    if sample.differentiable:
        return outputs_and_gradients(sample.op, tensors, draw)
    return flat(sample.op(*tensors)), []


def moves(sample, arrays, dtype, draw, rng):
    """Return how far each value and gradient in float64 moves as what goes in does, about as much as a dtype rounds it.

    A sum of terms that cancel loses as much by its own rounding.
    """

    def numbers_at(inputs, draw):
        tensors = tensors_of(inputs, sample.constants, requires_grad=sample.differentiable)
        return [
            [None if t is None else numbers(t).astype(np.complex128) for t in part]
            for part in results(sample, tensors, draw)
        ]

    here = numbers_at(arrays, draw)
    far = [[0.0] * len(part) for part in here]
    for own in rng.spawn(4):
        shares = [1 + VALUE[dtype] / 8 * own.choice([-1, 1], a.shape) if is_floating(a) else 1 for a in arrays]
        near = numbers_at(
            [a * share if is_floating(a) else a for a, share in zip(arrays, shares, strict=True)],
            lambda place, array, own=own: (
                draw(place, array) * (1 + VALUE[dtype] / 8 * own.choice([-1, 1], array.shape))
            ),
        )
        for part, place in ((part, place) for part in range(2) for place in range(len(here[part]))):
            if here[part][place] is not None:
                by = np.abs(near[part][place] - here[part][place]).max(initial=0.0)
                far[part][place] = max(far[part][place], by)
    return far


SHRINKINGS = {
    "one row": lambda a: a[:1],
    "one column": lambda a: a[..., :1],
    "fewer dimensions": lambda a: a[0],
    "no dimension": lambda a: a[(0,) * a.ndim],
}


@rows(lambda s: s.broadcasts)
def test_broadcasting(sample, rng):
    """An operand of size 1 acts as if repeated, and its gradient is the sum over the repetitions."""
    check_each(functools.partial(check_broadcasting, sample), [(how,) for how in SHRINKINGS], rng)


def check_broadcasting(sample, how, rng):
    arrays = [np.asarray(a) for a in sample.inputs(rng)]
    shape = np.broadcast_shapes(*[a.shape for a in arrays])
    for place, array in enumerate(arrays):
        if not array.ndim or (len(arrays) > 1 and all(a.shape != shape for k, a in enumerate(arrays) if k != place)):
            continue
        small = np.asarray(SHRINKINGS[how](array)).copy()
        args = [small if k == place else a for k, a in enumerate(arrays)]
        full = [np.broadcast_to(small, array.shape).copy() if k == place else a for k, a in enumerate(arrays)]
        if not sample.differentiable:
            for got, expected in zip(value_of(sample, args), value_of(sample, full), strict=True):
                check_close(got, expected, 1e-12, "value")
            continue
        draw, tensors = drawing(rng), tensors_of(args, sample.constants)
        values, grads = outputs_and_gradients(sample.op, tensors, draw)
        full_values, full_grads = outputs_and_gradients(sample.op, tensors_of(full, sample.constants), draw)
        for got, expected in zip(values, full_values, strict=True):
            check_close(numbers(got), numbers(expected), 1e-12, "value")
        for tensor, got, expected in zip([t for t in tensors if t.requires_grad], grads, full_grads, strict=True):
            assert got.shape == tensor.shape
            total = numbers(expected)
            extra = total.ndim - len(tensor.shape)
            total = total.sum(axis=tuple(range(extra)))
            axes = tuple(k for k, size in enumerate(tensor.shape) if size == 1)
            check_close(numbers(got), total.sum(axis=axes, keepdims=True), 1e-11, "gradient")


@rows(lambda s: len(s.dtypes) > 1)
def test_no_dimension(sample, rng):
    """Of operands without dimensions a row gives in each dtype about what it gives in float64, or is refused in all."""
    given = [np.asarray(a) for a in sample.inputs(rng)]
    arrays = [a[(0,) * a.ndim] if a.size else a for a in given]

    def outcome(dtype):
        try:
            return [numbers(t) for t in flat(sample.op(*tensors_of(arrays, dtype=dtype, requires_grad=False)))]
        except LucidError:
            return None

    expected = outcome("float64")
    for dtype in sample.dtypes:
        got = outcome(dtype)
        assert (got is None) == (expected is None)
        for one, other in zip(got or (), expected or (), strict=True):
            assert one.shape == other.shape


# As in PyTorch.
GIVE_NOTHING_BACK = ("local_response_norm:",)


@rows()
def test_no_operand_comes_back(sample, rng):
    """A result is a tensor of its own, whose hooks are not an operand's: of many elements, of one, of none."""
    many = [np.asarray(a) for a in sample.inputs(rng)]
    one = [a[(0,) * a.ndim] if a.size else a for a in many]
    none = sample.empty(rng) if sample.empty and not sample.name.startswith(GIVE_NOTHING_BACK) else many
    for arrays in (many, one, none):
        tensors = tensors_of(arrays, requires_grad=False)
        try:
            outputs = flat(sample.op(*tensors))
        except LucidError:
            assert arrays is one
            continue
        assert not {id(out) for out in outputs} & {id(tensor) for tensor in tensors}


def test_operands_say_where_a_result_is_made(rng):
    """No op with operands asks for the default device, where it would be wrong for tensors of another one."""
    for sample in SAMPLES:
        arrays = [np.asarray(a) for a in sample.inputs(rng)]
        if arrays and not sample.name.startswith("embedding_bag"):  # whose rows make offsets
            tensors = tensors_of(arrays, sample.constants, requires_grad=sample.differentiable)
            with without_default_device():
                outputs = [out for out in flat(sample.op(*tensors)) if out.requires_grad]
                if outputs:
                    upstream = [lucid.ones_like(out) for out in outputs]
                    lucid.autograd.grad(outputs, [t for t in tensors if t.requires_grad], upstream, allow_unused=True)


@rows(lambda s: s.empty is not None)
def test_empty(sample, rng):
    """Inputs of size zero give what the reference gives, and gradients of the inputs' shapes."""
    arrays = sample.empty(rng)
    assert any(a.size == 0 for a in arrays), "the row's empty inputs are not empty"
    got = value_of(sample, arrays)
    if sample.reference is not None:
        for one, other in zip(got, reference_of(sample, arrays), strict=True):
            check_close(one, other, VALUE["float64"], "value")
    if sample.differentiable:
        tensors = tensors_of(arrays, sample.constants)
        _, grads = outputs_and_gradients(sample.op, tensors, lambda _, array: random_like(rng, array))
        for tensor, grad in zip([t for t in tensors if t.requires_grad], grads, strict=True):
            assert grad is None or (grad.shape, grad.dtype) == (tensor.shape, tensor.dtype)


def stepped(xp, array):
    """Return the same elements with gaps in between, in every dimension."""
    wide = xp.zeros([2 * n for n in array.shape], array.dtype)
    view = wide[(slice(None, None, 2),) * array.ndim]
    view[...] = array
    return view


def moved_on(xp, array):
    """Return the same elements, which begin one element behind where memory of its own would begin."""
    line = xp.zeros(array.size + 1, array.dtype)
    line[1:] = array.ravel()
    return line[1:].reshape(array.shape)


STRIDES = {
    "columns first": lambda xp, a: xp.asfortranarray(a),
    "steps": stepped,
    "backwards": lambda xp, a: xp.flip(xp.ascontiguousarray(xp.flip(a))),
    "one on": moved_on,
}


def lying(how, array):
    """Return a tensor on the device that is tried, whose elements lie in one of these ways."""
    plain = lucid.tensor(array, device=DEVICE).array
    return wrap(STRIDES[how](namespace(plain), plain) if how and array.ndim else plain)


@rows()
def test_strides(sample, rng):
    """Values and gradients depend on the elements, of upstream gradients too, not on how they lie in memory."""
    arrays = [np.asarray(a) for a in sample.inputs(rng)]
    upstream = {}

    def outcome(how):
        tensors = [lying(how, array) for array in arrays]
        if sample.differentiable:
            for place, array in enumerate(arrays):
                tensors[place].requires_grad_(is_floating(array) and place not in sample.constants)

        def draw(place, array):
            return lying(how, upstream.setdefault(place, random_like(rng, array)))

        return results(sample, tensors, draw)

    plain_values, plain_grads = outcome("")

    def check(how, _):
        values, grads = outcome(how)
        for got, expected in zip(values, plain_values, strict=True):
            check_close(numbers(got), numbers(expected), 1e-12, "value")
        for got, expected in zip(grads, plain_grads, strict=True):
            assert (got is None) == (expected is None)
            if got is not None:
                check_close(numbers(got), numbers(expected), 1e-12, "gradient")

    check_each(check, [(how,) for how in STRIDES], rng)


@rows()
def test_inputs_are_not_changed(sample, rng):
    """Neither forward nor backward nor double backward writes into an input or an upstream gradient."""
    arrays = [np.asarray(a) for a in sample.inputs(rng)]
    tensors = tensors_of(arrays, sample.constants, requires_grad=sample.differentiable)
    outputs = flat(sample.op(*tensors))
    if sample.differentiable:
        roots = [out for out in outputs if out.requires_grad]
        upstream = [lucid.tensor(random_like(rng, numbers(out))).requires_grad_() for out in roots]
        kept = [numbers(u).copy() for u in upstream]
        wanted = [tensor for tensor in tensors if tensor.requires_grad]
        grads = lucid.autograd.grad(roots, wanted, upstream, create_graph=sample.twice, allow_unused=True)
        again = [grad for grad in grads if grad is not None and grad.requires_grad]
        if again:
            seeds = [lucid.tensor(random_like(rng, numbers(grad))) for grad in again]
            lucid.autograd.grad(again, [*wanted, *upstream], seeds, allow_unused=True)
        for tensor, array in zip(upstream, kept, strict=True):
            np.testing.assert_array_equal(numbers(tensor), array)
    for tensor, array in zip(tensors, arrays, strict=True):
        np.testing.assert_array_equal(numbers(tensor), array)
        assert tensor._version == 0


@rows()
def test_modes_without_a_graph(sample, rng):
    """Under no_grad and in inference mode the values are the same and require no grad; else as the row says.

    Each result of inference mode is an inference tensor; a view of a tensor that was made outside need not be.
    """
    arrays = sample.inputs(rng)
    tensors = tensors_of(arrays, sample.constants)
    recorded = flat(sample.op(*tensors))
    assert any(out.requires_grad for out in recorded) == sample.differentiable
    with lucid.no_grad():
        plain = flat(sample.op(*tensors))
    with lucid.inference_mode():
        of_outside = flat(sample.op(*tensors))
        of_inside = flat(sample.op(*tensors_of(arrays, sample.constants)))
    assert all(out.is_inference() for out in of_inside)
    assert all(out.is_inference() or out._base is not None for out in of_outside)
    expected = list(map(numbers, recorded))
    for got in (plain, of_outside, of_inside):
        assert not any(out.requires_grad for out in got)
        for one, other in zip(got, expected, strict=True):
            check_close(numbers(one), other, 1e-15, "value")


@pytest.mark.gpu
@rows(of_real_numbers)
def test_cuda(sample, rng):
    """Both devices give the same values and gradients, on their own device, within the dtype's tolerance."""
    check_each(functools.partial(check_devices, sample), [(dtype,) for dtype in sample.dtypes], rng)


def check_devices(sample, dtype, rng):
    arrays, draw, by_device = sample.inputs(rng), drawing(rng), {}
    for device in ("cpu", "cuda"):
        tensors = tensors_of(arrays, sample.constants, dtype=dtype, device=device, requires_grad=sample.differentiable)
        values, grads = results(sample, tensors, draw)
        assert all(out.device.type == device for out in [*values, *grads] if out is not None)
        by_device[device] = [[None if t is None else numbers(t) for t in part] for part in (values, grads)]
    scale = sample.tolerance.get(dtype, VALUE[dtype]) / VALUE[dtype]
    moved = functools.cache(lambda: moves(sample, arrays, dtype, draw, rng))
    for part, (what, error, here, there) in enumerate(
        zip(("value", "gradient"), (VALUE[dtype], GRADIENT[dtype]), by_device["cpu"], by_device["cuda"], strict=True)
    ):
        for place, (expected, got) in enumerate(zip(here, there, strict=True)):
            assert (got is None) == (expected is None)
            if got is not None:
                assert got.dtype == expected.dtype
                check_close(
                    got, expected, 2 * error * scale, what, lambda at=(part, place): 2 * errors_by(moved, dtype, *at)
                )


# Primitives that no row can reach on the CPU, each with the reason.
UNREACHED = {
    "add_into": "sums gradients on a CUDA device",
    "copy": "changes its operand in place, as Tensor.copy_, tested with the in-place ops",
    "drawn_dropout": "draws on a CUDA device, tested in tests/kernels/random/test_random.py",
    "gelu_and_slope": "of more elements than a block, tested in tests/ops/activation/test_gelu.py",
    "transfer": "copies between devices",
    "lstm_gates": "of LSTM layers: tests/nn/layers/recurrent, tests/kernels/activation/test_lstm_gates.py",
    "lstm_gates_grad": "as lstm_gates",
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), "of whole sequences: tests/ops/recurrence"),
    "poisson": "draws, tested in tests/ops/creation/test_random.py",
    **dict.fromkeys(("cbrt", "modf", "sign_or_nan", "steps"), "NumPy's ufuncs call it: tests/tensor/numpy_calls"),
}

# Runs in a process of its own, in which every primitive counts its uses from its declaration on.
COUNT_PRIMITIVES = """
import importlib.util, sys
import numpy as np
spec = importlib.util.find_spec("lucid")
package = importlib.util.module_from_spec(spec)
sys.modules["lucid"] = package
from lucid.autograd.recording.namespace import CPU, PRIMITIVES
from lucid.autograd.recording.primitive import Primitive
assert not PRIMITIVES
used = set()
declare = Primitive.__init__
def declare_counted(self, *args, **kwargs):
    declare(self, *args, **kwargs)
    cpu, name = self.cpu, self.name
    def counted(*arrays, **settings):
        used.add(name)
        return cpu(*arrays, **settings)
    self.cpu = counted
    setattr(CPU, name, counted)
Primitive.__init__ = declare_counted
spec.loader.exec_module(package)
from tests.gradients import flat, gradient_of, numbers, outputs_and_gradients, random_like, tensors_of
from tests.pieces.children import python
from tests.samples import all_samples
rng = np.random.default_rng(0)
for sample in all_samples():
    arrays = sample.inputs(rng)
    tensors = tensors_of(arrays, sample.constants)
    outputs = flat(sample.op(*tensors))
    if sample.differentiable:
        draw = lambda place, array: random_like(rng, array)
        outputs_and_gradients(sample.op, tensors, draw)
        upstream = [package.tensor(random_like(rng, numbers(o))).requires_grad_() for o in outputs if o.requires_grad]
        if sample.twice:
            outputs_and_gradients(gradient_of(sample.op, len(arrays), sample.constants), [*tensors, *upstream], draw)
print(*sorted(set(PRIMITIVES) - used), sep="\\n")
"""


def test_every_primitive_is_exercised():
    """Each declared primitive runs in the forward, backward or double backward of some row of the table."""
    run = python("-c", COUNT_PRIMITIVES)
    assert run.returncode == 0, run.stderr
    assert set(run.stdout.split()) == set(UNREACHED)


def public_ops():
    """Return the public functions of `lucid.ops`, under all their names: ``{function: names}``."""
    found = {}
    for space in (lucid, lucid.nn.functional, lucid.linalg):
        for name in space.__all__:
            value = inspect.unwrap(getattr(space, name))
            if inspect.isfunction(value) and written_in(value).startswith("lucid.ops."):
                found.setdefault(value, set()).add(name)
    return found


PUBLIC = public_ops()


# The pages that say what holds for all ops of a kind, and the parameters that they explain.
PAGES = {
    "lucid.ops.base.declaration": {"input", "other"},
    "lucid.ops.reduction.sums": {"input", "dim", "keepdim", "dtype"},
    "lucid.ops.creation": {"input", "size", "dtype", "device", "requires_grad", "pin_memory", "generator"},
    "lucid.ops.index": {"input", "dim", "index", "mask", "source"},
    "lucid.ops.linalg": {"input", "other"},
    "lucid.ops.decomposition": {"A", "input", "B", "upper", "left", "check_errors", "dim", "keepdim", "dtype"},
    "lucid.ops.shape": {"input", "dim"},
    "lucid.ops.reduction.sorting": {"input", "dim", "descending", "stable", "sorted"},
    "lucid.ops.activation.softmax": {"input", "dim", "dtype"},
    "lucid.ops.loss": {"input", "target", "weight", "reduction", "ignore_index"},
    "lucid.ops.layers.multi_head_attention": {
        *inspect.signature(lucid.nn.functional.multi_head_attention_forward).parameters
    },
    "lucid.ops.layers": {"input"},
    "lucid.ops.layers.convolution": {
        *("input", "weight", "bias", "stride", "padding", "dilation", "groups", "output_padding"),
    },
    "lucid.ops.resampling.folding": {"input", "kernel_size", "dilation", "padding", "stride"},
    "lucid.ops.resampling.grid": {"input", "align_corners"},
    "lucid.ops.resampling": {"input", "align_corners"},
    "lucid.ops.pooling.unpooling": {"input", "indices", "output_size", "kernel_size", "stride", "padding"},
    "lucid.ops.pooling.lp_pooling": {"input", "norm_type", "kernel_size", "stride", "ceil_mode"},
    "lucid.ops.pooling.fractional": {
        *("input", "kernel_size", "output_size", "output_ratio", "return_indices", "_random_samples"),
    },
    "lucid.ops.fft.short_time": {
        *("input", "n_fft", "hop_length", "win_length", "window", "center", "normalized", "onesided"),
        "return_complex",
    },
    "lucid.ops.pooling.pooling": {"input", "kernel_size", "stride", "padding", "dilation", "ceil_mode"},
    "lucid.ops.layers.normalisation": {"input", "weight", "bias", "eps", "normalized_shape"},
}


def page_of(op):
    """Return the page that the module of an op names, or is; None if there is none."""
    text = sys.modules[written_in(op)].__doc__
    return next((page for page in PAGES if f"`{page}`" in text or written_in(op) == page), None)


@functools.cache
def typed_in(path):
    """Return the docstrings of the functions of a file, as they are typed there."""
    nodes = ast.walk(ast.parse(Path(path).read_text(encoding="utf-8")))
    return {node.name: ast.get_docstring(node) or "" for node in nodes if isinstance(node, ast.FunctionDef)}


def typed(op):
    """Return the docstring of an op without the section of parameters, which is added to what is read."""
    return typed_in(op.__code__.co_filename).get(op.__name__) or inspect.getdoc(op) or ""


def test_every_op_is_documented():
    """A public op says what comes out and shows it, and what each parameter is, unless the page of its kind says so."""
    texts = {op: typed(op) for op in PUBLIC}
    assert not [op.__name__ for op, text in texts.items() if ">>> " not in text], "they have no example"
    without = {written_in(op) for op in PUBLIC if page_of(op) is None}
    assert not without, "they name no page of PAGES, which says what holds for all ops of the kind"
    missing = {
        f"{op.__name__}.{name}"
        for op, text in texts.items()
        for name in set(inspect.signature(op).parameters) - PAGES[page_of(op)]
        if f"`{name}`" not in text
    }
    assert not missing, "they are not explained"


def test_a_docstring_does_not_repeat_its_page():
    """What holds for every op of a kind is said once: what is typed has no sections, and fits an editor's window."""
    texts = {op.__name__: typed(op) for op in PUBLIC}
    assert not [name for name, text in texts.items() if "\n---" in text or "cannot be broadcast" in text]
    assert not [name for name, text in texts.items() if len(text.splitlines()) > 12]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_explains_its_parameters(page):
    """What docstrings leave to the page stands there."""
    text = sys.modules[page].__doc__
    assert all(f"`{name}`" in text or name in {"input", "other"} for name in PAGES[page])


def test_a_page_is_found_by_help():
    """`help` of where a function is public names the page that says what holds for its kind."""
    spaces = {space: set(space.__all__) for space in (lucid, lucid.nn.functional, lucid.linalg)}
    assert not [
        op.__name__
        for op, names in PUBLIC.items()
        if not any(f"`{page_of(op)}`" in space.__doc__ for space, public in spaces.items() if names & public)
    ]


# Public functions that are no ops on tensors, by module or by name, each with the reason.
WITHOUT_ROW = {
    "lucid.ops.creation.data": "makes tensors from data",
    "lucid.ops.creation.filling": "makes tensors from numbers",
    "lucid.ops.creation.ranges": "makes tensors from numbers",
    "lucid.ops.creation.random": "draws tensors",
    "lucid.ops.creation.windows": "makes tensors from numbers",
    "lucid.ops.creation.generators": "sets the state of generators",
    "gumbel_softmax": "draws: see tests/ops/activation/test_gumbel.py",
    "binomial": "draws: see tests/ops/creation/test_random.py",
    "poisson": "draws: see tests/ops/creation/test_random.py",
    "positive": "gives its input: see tests/ops/index/test_unravel_index.py",
    "unravel_index": "gives places: see tests/ops/index/test_unravel_index.py",
    "allclose": "gives a bool",
    "equal": "gives a bool",
    "resolve_conj": "gives its input: see tests/tensor/test_layout.py",
    "resolve_neg": "gives its input: see tests/tensor/test_layout.py",
}


def test_every_op_has_a_row():
    """Each public op stands in the table, so that everything above holds for it."""
    rows = {sample.name.split(":")[0].split(".")[-1] for sample in SAMPLES}
    excused = set(WITHOUT_ROW)
    missing = sorted(op.__name__ for op, names in PUBLIC.items() if not (names | {written_in(op)}) & (rows | excused))
    assert not missing, f"add a row of {missing} to tests/sample_rows, or to WITHOUT_ROW here why there is none"
