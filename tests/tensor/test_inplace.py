"""In-place ops: what they change, what the graph knows of it, and when they refuse."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, DeviceError, DtypeError, InplaceError, ShapeError
from lucid.hooks import FunctionHook
from tests.device import DEVICE, two_devices
from tests.pieces import drawn


def numeric_gradient(function, array, upstream, step=1e-6):
    """Return the central difference of ``sum(upstream * function(array))`` by each element of `array`."""
    slopes = np.empty_like(array)
    for place in np.ndindex(array.shape):
        shifted = []
        for sign in (1, -1):
            moved = array.copy()
            moved[place] += sign * step
            shifted.append(float((upstream * function(lucid.tensor(moved)).cpu().numpy()).sum()))
        slopes[place] = (shifted[0] - shifted[1]) / (2 * step)
    return slopes


OTHER = np.random.default_rng(7).uniform(0.5, 1.5, (3, 2))


def places():
    """Return two rows, out of order."""
    return lucid.tensor([2, 0])


# Every in-place method that has a derivative, on a (3, 2) tensor of numbers between 0.2 and 0.8.
METHODS = {
    "add_": lambda t: t.add_(lucid.tensor(OTHER), alpha=3),
    "sub_": lambda t: t.sub_(2.5),
    "mul_": lambda t: t.mul_(lucid.tensor(OTHER)),
    "div_": lambda t: t.div_(lucid.tensor(OTHER)),
    "pow_": lambda t: t.pow_(3),
    "square_": lambda t: t.square_(),
    "neg_": lambda t: t.neg_(),
    "exp_": lambda t: t.exp_(),
    "expm1_": lambda t: t.expm1_(),
    "log_": lambda t: t.log_(),
    "log1p_": lambda t: t.log1p_(),
    "sqrt_": lambda t: t.sqrt_(),
    "rsqrt_": lambda t: t.rsqrt_(),
    "reciprocal_": lambda t: t.reciprocal_(),
    "sin_": lambda t: t.sin_(),
    "tan_": lambda t: t.tan_(),
    "asin_": lambda t: t.asin_(),
    "cosh_": lambda t: t.cosh_(),
    "atanh_": lambda t: t.atanh_(),
    "erf_": lambda t: t.erf_(),
    "sigmoid_": lambda t: t.sigmoid_(),
    "tanh_": lambda t: t.tanh_(),
    "relu_": lambda t: t.relu_(),
    "abs_": lambda t: t.abs_(),
    "floor_": lambda t: t.floor_(),
    "ceil_": lambda t: t.ceil_(),
    "round_": lambda t: t.round_(),
    "trunc_": lambda t: t.trunc_(),
    "clamp_": lambda t: t.clamp_(0.45, 0.55),
    "clamp_min_": lambda t: t.clamp_min_(0.45),
    "clamp_max_": lambda t: t.clamp_max_(0.55),
    "lerp_": lambda t: t.lerp_(lucid.tensor(OTHER), 0.3),
    "addcmul_": lambda t: t.addcmul_(lucid.tensor(OTHER), lucid.tensor(OTHER), value=2),
    "addcdiv_": lambda t: t.addcdiv_(lucid.tensor(OTHER), lucid.tensor(OTHER), value=2),
    "cumsum_": lambda t: t.cumsum_(0),
    "tril_": lambda t: t.tril_(),
    "masked_fill_": lambda t: t.masked_fill_(lucid.tensor(OTHER > 1), 4.0),
    "index_fill_": lambda t: t.index_fill_(0, places(), 2.0),
    "index_add_": lambda t: t.index_add_(0, places(), lucid.tensor(OTHER[:2])),
    "index_copy_": lambda t: t.index_copy_(0, places(), lucid.tensor(OTHER[:2])),
    "index_put_": lambda t: t.index_put_((places(),), lucid.tensor(OTHER[:2])),
    "scatter_": lambda t: t.scatter_(0, places().view(2, 1), 5.0),
    "scatter_add_": lambda t: t.scatter_add_(0, places().view(2, 1), lucid.tensor(OTHER)),
    "fill_diagonal_": lambda t: t.fill_diagonal_(3.0),
    "copy_": lambda t: t.copy_(lucid.tensor(OTHER[0])),
    "fill_": lambda t: t.fill_(2.0),
    "zero_": lambda t: t.zero_(),
    "uniform_": lambda t: t.uniform_(generator=lucid.Generator(DEVICE, 3)),
    "twice": lambda t: t.mul_(2).exp_(),
    "item": lambda t: assign(t, 1, 5.0),
    "slice": lambda t: assign(t, (slice(None), 0), lucid.tensor(OTHER[:, 1])),
    "mask": lambda t: assign(t, lucid.tensor(OTHER > 1), 0.5),
    "list": lambda t: assign(t, [2, 0], lucid.tensor(OTHER[:2])),
}


FILLS = ("cauchy_", "exponential_", "log_normal_", "normal_", "uniform_")


def assign(target, index, value):
    """Return `target` after ``target[index] = value``."""
    target[index] = value
    return target


@pytest.mark.parametrize("name", METHODS)
def test_derivatives(name, rng):
    """The gradient through each in-place op is the slope of what it writes, and the result is the target itself."""
    array = rng.uniform(0.2, 0.8, (3, 2))
    upstream = rng.standard_normal((3, 2))
    change = METHODS[name]
    x = lucid.tensor(array, requires_grad=True)
    y = x.clone()
    assert change(y) is y
    assert y._version >= 1
    y.backward(lucid.tensor(upstream))
    expected = numeric_gradient(lambda t: change(t), array, upstream)
    np.testing.assert_allclose(x.grad.cpu().numpy(), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["mul_", "div_", "addcmul_", "lerp_"])
def test_the_other_operand_sees_the_old_values(name, rng):
    """The gradient of the second operand is that of the values before the change, which are kept apart."""
    array = rng.uniform(0.5, 1, (3, 2))
    upstream = rng.standard_normal((3, 2))
    acts = {
        "mul_": lambda t, o: t.mul_(o),
        "div_": lambda t, o: t.div_(o),
        "addcmul_": lambda t, o: t.addcmul_(o, o),
        "lerp_": lambda t, o: t.lerp_(o, 0.25),
    }
    other = lucid.tensor(OTHER, requires_grad=True)
    y = lucid.tensor(array)
    assert acts[name](y, other) is y
    assert y.requires_grad
    y.backward(lucid.tensor(upstream))
    expected = numeric_gradient(lambda o: acts[name](lucid.tensor(array), o), OTHER, upstream)
    np.testing.assert_allclose(other.grad.cpu().numpy(), expected, rtol=1e-6, atol=1e-8)


LEAVES = {
    **METHODS,
    "__iadd__": lambda t: t.__iadd__(1),
    "of a part": lambda t: t[0].mul_(2),
    "of a view": lambda t: t.view(2, 3).fill_(1),
    "unsqueeze_": lambda t: t.unsqueeze_(0),
    "t_": lambda t: t.t_(),
    **{name: lambda t, name=name: getattr(t, name)() for name in FILLS},
    "bernoulli_": lambda t: t.bernoulli_(0.5),
    "geometric_": lambda t: t.geometric_(0.5),
    "random_": lambda t: t.random_(1, 4),
}


@pytest.mark.parametrize("name", LEAVES)
def test_a_leaf_that_requires_grad_refuses(name, rng):
    """A leaf, and a view of it, may not be changed while gradients are recorded; nothing happens before the check."""
    act = LEAVES[name]
    x = lucid.tensor(rng.uniform(0.2, 0.8, (3, 2)), requires_grad=True)
    before, state = x.tolist(), lucid.get_rng_state().tolist()
    with pytest.raises(InplaceError, match=r"leaf Variable that requires grad.*no_grad"):
        act(x)
    assert x.tolist() == before
    assert (x._version, x.shape) == (0, (3, 2))
    assert lucid.get_rng_state().tolist() == state


@pytest.mark.parametrize("name", LEAVES)
def test_what_looks_on_changes_nothing(name, rng):
    """With a hook on functions an in-place method gives the tensor itself too, and writes the same numbers."""
    array = rng.uniform(0.2, 0.8, (3, 2))
    results = []
    for looks in (False, True):
        lucid.manual_seed(3)
        x = lucid.tensor(array)
        with FunctionHook() if looks else contextlib.nullcontext():
            made = LEAVES[name](x)
        results.append((made is x, x.tolist(), x._version))
    assert results[0] == results[1]


def test_a_leaf_changed_without_recording_stays_one(rng):
    """Under no_grad a leaf stays a leaf with its hooks, whatever is written into it."""
    x, w = drawn(rng, 3), drawn(rng, 3)
    seen = []
    x.register_hook(lambda grad: seen.append(grad.tolist()))
    with lucid.no_grad():
        x -= 0.5 * w
        x[0] = w[1]
        x.copy_(x + w)
    assert (x.is_leaf, x.requires_grad, x.grad_fn) == (True, True, None)
    upstream = rng.standard_normal(3)
    (x * 1.0).backward(lucid.tensor(upstream))
    assert seen == [upstream.tolist()]
    assert w.grad is None


def test_a_saved_tensor_that_changed_is_noticed(rng):
    """Backward refuses to use a value that was changed after an op had saved it, and names node and versions."""
    x = drawn(rng, 3)
    y = x * 2
    z = y * y
    y.add_(1)
    with pytest.raises(InplaceError, match=r"MulBackward0.*version 1; expected version 0"):
        z.sum().backward()


def test_a_value_that_nothing_saved_may_change(rng):
    """Adding saves nothing, so its operands may change after it."""
    x = drawn(rng, 3)
    y = x * 2
    z = y + 1
    y.zero_()
    z.backward(lucid.tensor([1.0, 2.0, 3.0], dtype=lucid.float64))
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize(
    ("act", "kind", "match"),
    [
        (lambda t: t.add_(lucid.zeros(4, 2, 3)), ShapeError, r"\(2, 3\).*\(4, 2, 3\)"),
        (lambda t: t.mul_(lucid.zeros(4)), ShapeError, "broadcast"),
        (lambda t: t.add_(1j), DtypeError, "complex64 can't be cast .*float32"),
        (lambda t: t.long().add_(1.5), DtypeError, "float32 can't be cast .*int64"),
        (lambda t: t.bool().add_(1), DtypeError, "int64 can't be cast .*bool"),
        (lambda t: t.copy_(lucid.zeros(3, 3)), ShapeError, r"\(3, 3\)|broadcast"),
        (lambda t: t.fill_(lucid.zeros(3)), ShapeError, "no dimension"),
        (lambda t: t.byte().fill_(300), DtypeError, "uint8"),
        (lambda t: t.add_("a"), TypeError, "str"),
        (lambda t: t.expand(2, 2, 3).add_(1), InplaceError, "clone"),
        (lambda t: t.fill_diagonal_(lucid.zeros(2)), ShapeError, "no dimension"),
        (lambda t: t[:1].expand(3, 3).fill_diagonal_(1), InplaceError, "clone"),
        (lambda t: t[:, :1].expand(2, 2).fill_diagonal_(1), InplaceError, "clone"),
        (lambda t: t[0].fill_diagonal_(1), ShapeError, "matrix"),
        (lambda t: t.uniform_(2, 1), ValueError, "low <= high"),
        (lambda t: t.long().normal_(), DtypeError, "floating-point"),
        (lambda t: t.bernoulli_(1.5), ValueError, "probability"),
        (lambda t: t.byte().random_(0, 300), ValueError, "uint8"),
        (lambda t: assign(t, 5, 1.0), IndexError, "out of bounds"),
        (lambda t: assign(t, 0, lucid.zeros(2)), ShapeError, "2"),
    ],
)  # fmt: skip
def test_a_failed_change_changes_nothing(act, kind, match, rng):
    """Each mistake is an error that names expected and got, and values, version and random numbers stay."""
    x = lucid.tensor(rng.standard_normal((2, 3)).astype(np.float32))
    before, state = x.tolist(), lucid.get_rng_state().tolist()
    with pytest.raises(kind, match=match):
        act(x)
    assert x.tolist() == before
    assert x._version == 0
    assert lucid.get_rng_state().tolist() == state


def test_the_result_takes_the_target_s_dtype(rng):
    """A wider operand computes in its dtype and the target keeps its own; gradients keep theirs too."""
    x = lucid.tensor([1.0, 2.0], dtype=lucid.float16, requires_grad=True)
    w = lucid.tensor(rng.standard_normal(2).astype(np.float32), requires_grad=True)
    y = x * 1
    y += w
    assert y.dtype is lucid.float16
    y.backward(lucid.tensor([0.5, 0.25], dtype=lucid.float16))
    assert (x.grad.dtype, w.grad.dtype) == (lucid.float16, lucid.float32)
    assert w.grad.tolist() == [0.5, 0.25]
    whole = lucid.tensor([1, 2])
    whole *= lucid.tensor([2, 3], dtype=lucid.int8)
    assert (whole.dtype, whole.tolist()) == (lucid.int64, [2, 6])


def test_augmented_operators_keep_identity(rng):
    """``x += y`` and its siblings change x itself; every alias sees it."""
    values = rng.uniform(1, 2, 3)
    x = lucid.tensor(values)
    same = alias = x
    view = x[:]
    alias += 1
    alias -= 0.5
    alias *= 2
    alias /= 4
    alias **= 2
    alias //= 0.1
    alias %= 3
    expected = (((values + 0.5) / 2) ** 2) // 0.1 % 3
    assert alias is same
    np.testing.assert_allclose(view.cpu().numpy(), expected)
    bits = lucid.tensor([5, 6])
    kept = bits
    bits &= 6
    bits |= 1
    bits ^= 2
    bits <<= 2
    bits >>= 1
    assert bits is kept
    assert bits.tolist() == [((5 & 6 | 1) ^ 2) * 2, ((6 & 6 | 1) ^ 2) * 2]
    matrix = lucid.tensor(values[:2])
    square = lucid.eye(2, dtype=lucid.float64) * 2
    kept = matrix
    matrix @= square
    assert matrix is kept
    np.testing.assert_allclose(matrix.cpu().numpy(), values[:2] * 2)


class TestHooks:
    def test_a_hook_stays_with_the_value_that_it_was_registered_on(self, rng):
        """A hook from before the change sees the old value's gradient, one from after it the new."""
        x = drawn(rng, 3)
        upstream = rng.standard_normal(3)
        seen = {}
        y = x * 2
        old = y.register_hook(lambda grad: seen.__setitem__("old", grad.tolist()))
        y.mul_(3)
        new = y.register_hook(lambda grad: seen.__setitem__("new", grad.tolist()))
        y.backward(lucid.tensor(upstream), retain_graph=True)
        assert seen == {"old": (3 * upstream).tolist(), "new": upstream.tolist()}
        seen.clear()
        old.remove()
        new.remove()
        y.backward(lucid.tensor(upstream))
        assert seen == {}

    def test_retain_grad_follows(self, rng):
        """A retained gradient is that of the newest value, also after a change by way of a view."""
        x = drawn(rng, 3)
        upstream = rng.standard_normal(3)
        y = x * 2
        y.retain_grad()
        y.mul_(3)
        y[0] = 0.0
        assert y.retains_grad
        y.backward(lucid.tensor(upstream))
        assert y.grad.tolist() == upstream.tolist()


class TestRandom:
    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
    def test_distributions(self, dtype):
        """Means, deviations and bounds are those asked for; equal seeds give equal numbers."""
        generator = lucid.Generator(DEVICE, 11)
        x = lucid.zeros(20000, dtype=dtype)
        spread = 5 / np.sqrt(20000)
        values = x.normal_(2, 0.5, generator=generator).double()
        assert abs(float(values.mean()) - 2) < 0.5 * spread + 0.01
        assert abs(float(values.std()) - 0.5) < 0.5 * spread + 0.01
        values = x.uniform_(-1, 3, generator=generator).double()
        assert -1 <= float(values.min()) <= float(values.max()) < 3
        assert abs(float(values.mean()) - 1) < 1.2 * spread + 0.01
        values = x.exponential_(2.0, generator=generator).double()
        assert abs(float(values.mean()) - 0.5) < 0.5 * spread + 0.01
        values = x.bernoulli_(0.25, generator=generator).double()
        assert set(values.tolist()) == {0.0, 1.0}
        assert abs(float(values.mean()) - 0.25) < 0.5 * spread
        again = [lucid.zeros(5).normal_(generator=lucid.Generator(DEVICE, 3)).tolist() for _ in range(2)]
        assert again[0] == again[1]

    def test_chances_of_each_element(self):
        """bernoulli_ takes a probability for each element."""
        x = lucid.zeros(2, 50).bernoulli_(lucid.tensor([[0.0], [1.0]]))
        assert x.tolist() == [[0.0] * 50, [1.0] * 50]

    def test_whole_numbers(self):
        """random_ draws whole numbers between its bounds, by default all that the dtype holds exactly."""
        generator = lucid.Generator(DEVICE, 5)
        assert set(lucid.zeros(200, dtype=lucid.int8).random_(-2, 3, generator=generator).tolist()) == set(range(-2, 3))
        assert set(lucid.zeros(200, dtype=lucid.uint8).random_(3, generator=generator).tolist()) == {0, 1, 2}
        values = lucid.zeros(500).random_(generator=generator)
        assert 0 <= float(values.min()) <= float(values.max()) <= 2**24
        assert values.tolist() == values.round().tolist()
        assert set(lucid.zeros(50, dtype=lucid.bool).random_(generator=generator).tolist()) == {False, True}

    def test_what_is_drawn_does_not_depend_on_the_old_values(self, rng):
        """The old values get a gradient of zero."""
        x = drawn(rng, 3)
        y = (x * 2).normal_()
        y.backward(lucid.tensor(rng.standard_normal(3)))
        assert x.grad.tolist() == [0.0] * 3


def test_inference_tensors(rng):
    """What inference mode made may be changed there and nowhere else."""
    with lucid.inference_mode():
        x = lucid.ones(2) * 1.0
        x.add_(1)
    assert x.tolist() == [2.0, 2.0]
    for act in (lambda: x.add_(1), lambda: x[0].fill_(1), lambda: assign(x, 0, 3.0)):
        with pytest.raises(RuntimeError, match="inference"):
            act()
    assert x.tolist() == [2.0, 2.0]


def test_overlapping_memory(rng):
    """Copying between overlapping views gives what a copy through a buffer gives."""
    array = rng.standard_normal(6)
    x = lucid.tensor(array)
    x[1:].copy_(x[:-1])
    np.testing.assert_array_equal(x.cpu().numpy(), np.concatenate([array[:1], array[:-1]]))
    x = lucid.tensor(array)
    x[1:].add_(x[:-1])
    np.testing.assert_array_equal(x.cpu().numpy(), np.concatenate([array[:1], array[1:] + array[:-1]]))


OPERANDS = {
    "a tensor": lambda x: lucid.full_like(x, 0.5),
    "itself": lambda x: x,
    "a row": lambda x: lucid.full((x.shape[-1],), 0.5).to(x.dtype),
    "a column": lambda x: lucid.full((x.shape[0], 1), 0.5).to(x.dtype),
    "an element of its own": lambda x: x[0, 0],
    "itself, transposed": lambda x: x.t(),
    "itself, backwards": lambda x: x.flip(0),
    "a shared row": lambda x: x[1],
    "another dtype": lambda x: lucid.ones(4, 4, dtype=lucid.int32),
    "a float": lambda x: 0.5,
    "an int": lambda x: 3,
    "a bool": lambda x: True,
}


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64, lucid.float16, lucid.bfloat16], ids=str)
@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "fmod", "remainder", "floor_divide"])
def test_every_operand_gives_what_the_other_form_does(name, operand, dtype, rng):
    """Without a graph the result lies in the same memory, bit for bit that of a new tensor, one version later."""
    if (name, operand) == ("sub", "a bool"):
        pytest.skip("is refused")
    for target in (lambda x: x[:, :4].clone(), lambda x: x[:, :4].t(), lambda x: x[:, 1:5]):
        x = target(lucid.tensor(rng.uniform(0.5, 2.0, (4, 6))).to(dtype))
        other = OPERANDS[operand](x)
        expected = getattr(lucid, name)(x, other)
        address, version, array = x.data_ptr(), x._version, x.array
        assert getattr(x, f"{name}_")(other) is x
        assert x.array is array
        assert (x.data_ptr(), x._version, x.dtype) == (address, version + 1, dtype)
        assert x.tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "fmod", "remainder", "floor_divide"])
def test_operands_that_overlap_the_target(name, rng):
    """All of the old values are read before one is written, whichever way the rows are shifted."""
    for mine, others in ((slice(1, None), slice(-1)), (slice(-1), slice(1, None))):
        rows = lucid.tensor(rng.uniform(0.5, 2.0, (5, 4)))
        x, other = rows[mine], rows[others]
        expected = getattr(lucid, name)(x, other).tolist()
        assert getattr(x, f"{name}_")(other).tolist() == expected


@pytest.mark.parametrize("name", ["neg", "exp", "sqrt", "relu", "floor", "sigmoid", "reciprocal"])
def test_functions_of_one_operand_in_place(name, rng):
    """They write where they read, whatever the strides."""
    for target in (lambda x: x, lambda x: x.t(), lambda x: x[::2, 1:]):
        x = target(lucid.tensor(rng.uniform(0.5, 2.0, (4, 5)).astype(np.float32)))
        expected, version = getattr(lucid, name)(x).tolist(), x._version
        assert getattr(x, f"{name}_")() is x
        assert x.tolist() == expected
        assert x._version == version + 1


def test_settings_count_in_place_too(rng):
    """An `alpha` is not lost on the way."""
    array = rng.standard_normal(4)
    x, y = lucid.tensor(array), lucid.tensor(rng.standard_normal(4))
    expected = lucid.add(x, y, alpha=2).tolist()
    assert x.add_(y, alpha=2).tolist() == expected
    x = lucid.tensor(array)
    assert x.sub_(x, alpha=3).tolist() == lucid.sub(lucid.tensor(array), lucid.tensor(array), alpha=3).tolist()


def test_saved_values_are_kept_before_a_change_without_a_graph():
    """`allow_mutation_on_saved_tensors` sees it, and backward gets what was saved."""
    w = lucid.ones(3, requires_grad=True)
    with lucid.autograd.graph.allow_mutation_on_saved_tensors():
        y = w * 3
        total = (y * y).sum()
        with lucid.no_grad():
            y.mul_(0.0)
        total.backward()
    assert w.grad.tolist() == [18.0] * 3


@pytest.mark.parametrize("value", [300, -1, 2**70, 0.5])
@pytest.mark.parametrize("dtype", [lucid.uint8, lucid.int64], ids=str)
def test_numbers_beside_integers(dtype, value):
    """They wrap around, or are refused, as in the form that returns a new tensor."""

    def outcome(act):
        try:
            return act().tolist()
        except (TypeError, OverflowError, RuntimeError) as error:
            return type(error)

    def changed():
        return lucid.ones(2, dtype=dtype).add_(value)

    def made():
        return (lucid.ones(2, dtype=dtype) + value).to(dtype) if value != 0.5 else lucid.ones(2, dtype=dtype).add_(0.25)

    assert outcome(changed) == outcome(made)


@pytest.mark.gpu
@two_devices
def test_an_operand_of_another_device_is_refused():
    """As it is where the result is a new tensor."""
    x = lucid.ones(3, device="cuda:0")
    with pytest.raises(DeviceError, match="device"):
        x.add_(lucid.ones(3, device="cuda:1"))
    assert x.tolist() == [1.0] * 3


@pytest.mark.gpu
def test_a_change_without_a_graph_is_one_launch(rng):
    """It writes into the tensor itself, and makes no array."""
    from lucid.cuda.simulator import counters

    if not lucid.base.gpu.is_simulated():
        pytest.skip("about simulated devices: they count")
    x, y = (lucid.tensor(rng.standard_normal((8, 8)), device="cuda") for _ in range(2))
    for act in (lambda: x.add_(y), lambda: x.mul_(2.0), lambda: x.t().sub_(y), lambda: x.exp_(), lambda: x.add_(x)):
        act()
        counters.reset()
        act()
        assert (counters.launches, counters.allocations) == (1, 0)


def test_a_shared_base_changes_through_a_view(rng):
    """What another tensor shows of the memory is seen to change, and the version is that of both."""
    base = lucid.tensor(rng.standard_normal((4, 4)))
    view = base[1:]
    before = base.tolist()
    view.add_(1.0)
    assert base._version == view._version == 1
    assert base.tolist() == [before[0], *[[value + 1 for value in row] for row in before[1:]]]
    wide = lucid.ones(1, 3).expand(2, 3)
    with pytest.raises(InplaceError, match="expand"):
        wide.add_(1.0)
    with pytest.raises(ShapeError, match="broadcast"):
        base[0].add_(lucid.ones(2, 4))


@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_"])
def test_operands_by_name_are_on_the_graph(name, rng):
    """The operand that is given by its name gets its gradient, also where the changed tensor required none."""
    values, upstream = rng.uniform(1, 2, 3), lucid.tensor(rng.standard_normal(3))
    gradients = []
    for call in (lambda x, other: getattr(x, name)(other=other), lambda x, other: getattr(x, name)(other)):
        other, x = lucid.tensor(values, requires_grad=True), lucid.tensor(values + 1)
        call(x, other)
        assert x.requires_grad
        gradients.append(lucid.autograd.grad(x, other, upstream)[0].tolist())
    assert gradients[0] == gradients[1]


def test_fill_as_a_function():
    """It gives a new tensor; the gradient of the number is the sum, that of the operand zero."""
    x, value = lucid.ones(2, 3, requires_grad=True), lucid.tensor(2.0, requires_grad=True)
    out = lucid.fill(x, value)
    assert out.tolist() == [[2.0] * 3] * 2
    assert x.tolist() == [[1.0] * 3] * 2
    upstream = lucid.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, 1.0]])
    out.backward(upstream)
    assert value.grad.item() == upstream.sum().item()
    assert x.grad.tolist() == [[0.0] * 3] * 2
    for shape in ((2,), (1,), (1, 1), (0,)):
        for fill in (lucid.fill, lambda x, value: x.detach().fill_(value)):
            with pytest.raises(ShapeError, match="expected a number or a tensor of no dimension"):
                fill(x, lucid.ones(shape))


def test_detach_as_a_function():
    """It is the method: the same memory, in no graph."""
    x = lucid.ones(2, requires_grad=True)
    y = lucid.detach(x * 1)
    assert not y.requires_grad
    with pytest.raises(ArgumentError, match="expected a Tensor"):
        lucid.detach([1.0])


def test_is_nonzero():
    """Of one element only, as `bool`."""
    assert lucid.is_nonzero(lucid.tensor([[2.0]]))
    assert not lucid.tensor(0).is_nonzero()
    for none in (lucid.ones(2), lucid.ones(0)):
        with pytest.raises(ShapeError, match="ambiguous"):
            lucid.is_nonzero(none)
