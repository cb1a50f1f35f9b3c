"""Steps of optimizers on a CUDA device: one kernel for all parameters does what the CPU's formulas do."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import lucid
from lucid import optim
from tests import optimizers

pytestmark = pytest.mark.gpu

SETTINGS = {row: (name, {"lr": 0.03, **settings}) for row, (name, settings) in optimizers.SETTINGS.items()}
SETTINGS |= {
    f"{row}, counted there": (name, {**settings, **optimizers.COUNTED_THERE[name]})
    for row, (name, settings) in SETTINGS.items()
    if row in optimizers.COUNTED_ROWS
}
every_setting = pytest.mark.parametrize("setting", SETTINGS)
# rounding of one element in three steps: kernels may fuse a product and a sum
TOLERANCE = {"float64": 1e-14, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2, "complex64": 2e-6}
every_dtype = pytest.mark.parametrize("dtype", TOLERANCE)
SIZES = ((1,), (31,), (33,), (0,), (), (5, 5), (1023,), (1025,), (3000,))


def numpy_of(tensor):
    values = tensor.detach().cpu().numpy()
    return values.astype(np.float64) if values.dtype == ml_dtypes.bfloat16 else values


def drawn(rng, shape, dtype):
    values = rng.standard_normal(shape)
    return values + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else values


class Pair:
    """The same parameters on the CPU and on the device, each with its optimizer."""

    def __init__(self, setting, values, dtype, place=lambda tensor: tensor.cuda()):
        name, options = SETTINGS[setting]
        self.dtype = getattr(lucid, dtype)
        self.cpu = [lucid.tensor(value, dtype=self.dtype).requires_grad_() for value in values]
        self.cuda = [place(param.detach()).requires_grad_() for param in self.cpu]
        self.optimizers = [getattr(optim, name)(params, **options) for params in (self.cpu, self.cuda)]

    def step(self, grads):
        """Take a step; a gradient that is None is left out."""
        for params, device in ((self.cpu, "cpu"), (self.cuda, "cuda")):
            for param, grad in zip(params, grads, strict=True):
                param.grad = None if grad is None else lucid.tensor(grad, dtype=self.dtype, device=device)
        for optimizer in self.optimizers:
            optimizer.step()

    def check(self, tolerance):
        for cpu, cuda in zip(self.cpu, self.cuda, strict=True):
            assert cuda.is_cuda
            np.testing.assert_allclose(numpy_of(cuda), numpy_of(cpu), rtol=tolerance, atol=tolerance)
            states = [optimizer.state[param] for optimizer, param in zip(self.optimizers, (cpu, cuda), strict=True)]
            assert states[0].keys() == states[1].keys()
            for name, value in states[0].items():
                np.testing.assert_allclose(numpy_of(states[1][name]), numpy_of(value), rtol=tolerance, atol=tolerance)


@every_setting
@every_dtype
def test_three_steps_agree_with_the_cpu(rng, setting, dtype):
    """Parameters and state of every size are after three steps what they are on the CPU, to rounding."""
    pair = Pair(setting, [drawn(rng, shape, dtype) for shape in SIZES], dtype)
    for _ in range(3):
        pair.step([drawn(rng, shape, dtype) for shape in SIZES])
    pair.check(TOLERANCE[dtype])


@every_setting
def test_more_parameters_than_one_table_holds(rng, setting):
    """Hundreds of parameters, more than a launch's parameters have room for, all make their step."""
    pair = Pair(setting, [rng.standard_normal(3) for _ in range(301)], "float32")
    for _ in range(2):
        pair.step([rng.standard_normal(3) for _ in range(301)])
    pair.check(2e-6)


@pytest.mark.parametrize("size", [2048 - 1, 2048, 2048 + 1, 3 * 2048 + 5])
def test_chunks_meet_without_gap_or_overlap(rng, size):
    """A parameter that several blocks share is changed once at every element, whatever follows it in the table."""
    pair = Pair("sgd, dampening and decay", [rng.standard_normal(n) for n in (size, 7, size)], "float32")
    pair.step([rng.standard_normal(n) for n in (size, 7, size)])
    pair.check(2e-6)


@every_setting
@pytest.mark.parametrize("offset", [1, 2, 3])
def test_memory_that_begins_between_vectors(rng, setting, offset):
    """Parameters that are not aligned to 16 bytes take the same step, and nothing beside them changes."""
    backing = []

    def place(tensor):
        backing.append(lucid.full((tensor.numel() + offset + 4,), 7.0, device="cuda"))
        inner = backing[-1][offset : offset + tensor.numel()]
        return inner.copy_(tensor.cuda()).detach()

    pair = Pair(setting, [rng.standard_normal(n) for n in (1, 37, 130)], "float32", place)
    for _ in range(2):
        pair.step([rng.standard_normal(n) for n in (1, 37, 130)])
    pair.check(2e-6)
    for memory in backing:
        values = memory.cpu().numpy()
        assert (values[:offset] == 7).all()
        assert (values[-4:] == 7).all()


@every_setting
@pytest.mark.parametrize("layout", ["transposed", "every other", "backwards"])
def test_strided_parameters(rng, setting, layout):
    """A parameter of any strides makes the same step in its own memory."""
    place = {
        "transposed": lambda tensor: tensor.T.contiguous().cuda().T.detach(),
        "every other": lambda tensor: tensor.repeat_interleave(2, 1).cuda()[:, ::2].detach(),
        "backwards": lambda tensor: lucid.as_tensor(tensor.flip(0).cuda().array[::-1]),
    }[layout]
    pair = Pair(setting, [rng.standard_normal((6, 5)) for _ in range(2)], "float32", place)
    assert not pair.cuda[0].is_contiguous()
    memory = [param.array.data.ptr for param in pair.cuda]
    for _ in range(2):
        pair.step([rng.standard_normal((6, 5)) for _ in range(2)])
    pair.check(2e-6)
    assert [param.array.data.ptr for param in pair.cuda] == memory


@every_setting
def test_strided_and_broadcast_gradients(rng, setting):
    """A gradient may be a transposed or broadcast view; it is read, and not changed."""
    values, column = rng.standard_normal((4, 6)), rng.standard_normal((4, 1))
    turned = rng.standard_normal((6, 4))
    pair = Pair(setting, [values, values], "float32")
    for params in (pair.cpu, pair.cuda):
        device = params[0].device
        params[0].grad = lucid.tensor(column, dtype=lucid.float32, device=device).expand(4, 6)
        params[1].grad = lucid.tensor(turned, dtype=lucid.float32, device=device).T
    for optimizer in pair.optimizers:
        optimizer.step()
    pair.check(2e-6)
    np.testing.assert_array_equal(pair.cuda[1].grad.cpu().numpy(), turned.T.astype(np.float32))


@every_setting
def test_parameters_that_join_later(rng, setting):
    """A parameter without a gradient keeps still; when it joins, its own count of steps corrects its means."""
    pair = Pair(setting, [rng.standard_normal(20) for _ in range(3)], "float32")
    pair.step([rng.standard_normal(20), None, rng.standard_normal(20)])
    pair.step([rng.standard_normal(20) for _ in range(3)])
    pair.step([None, *(rng.standard_normal(20) for _ in range(2))])
    pair.check(2e-6)


@every_setting
def test_dtypes_side_by_side(rng, setting):
    """One group may hold parameters of several dtypes, complex ones beside real ones of the same parts."""
    name, options = SETTINGS[setting]
    results = []
    values = [rng.standard_normal(40) for _ in range(6)]
    grads = [rng.standard_normal(40) for _ in range(6)]
    for device in ("cpu", "cuda"):
        dtypes = [lucid.float32, lucid.float64, lucid.float16, lucid.float32, lucid.complex64, lucid.float16]
        params = [lucid.tensor(v, dtype=d, device=device).requires_grad_() for v, d in zip(values, dtypes, strict=True)]
        for param, grad in zip(params, grads, strict=True):
            param.grad = lucid.tensor(grad, dtype=param.dtype, device=device)
        getattr(optim, name)(params, **options).step()
        results.append([param.detach().cpu().numpy() for param in params])
    for cpu, cuda in zip(*results, strict=True):
        tolerance = TOLERANCE[cpu.dtype.name]
        np.testing.assert_allclose(cuda, cpu, rtol=tolerance, atol=tolerance)


@every_setting
def test_a_parameter_that_is_given_twice_makes_two_steps(rng, setting):
    """As on the CPU: one after the other, never both at once."""
    name, options = SETTINGS[setting]
    start, grad = rng.standard_normal((2, 50))
    results = []
    for device in ("cpu", "cuda"):
        param = lucid.tensor(start, dtype=lucid.float32, device=device).requires_grad_()
        with pytest.warns(UserWarning, match="duplicate"):
            optimizer = getattr(optim, name)([param, param], **options)
        for _ in range(2):
            param.grad = lucid.tensor(grad, dtype=lucid.float32, device=device)
            optimizer.step()
        results.append(param.detach().cpu().numpy())
    np.testing.assert_allclose(results[1], results[0], rtol=2e-6, atol=2e-6)


@every_setting
def test_what_is_not_finite_stays_where_it_is(setting):
    """Infinities and NaN in gradients and parameters give what they give on the CPU, and only there."""
    values = [0.5, -np.inf, 1.0, np.nan, 2.0, 3.0, np.inf]
    grads = [np.nan, 1.0, np.inf, 0.5, -np.inf, 0.25, 0.0]
    pair = Pair(setting, [values], "float32")
    with np.errstate(all="ignore"):
        for _ in range(3):
            pair.step([grads])
    np.testing.assert_allclose(numpy_of(pair.cuda[0]), numpy_of(pair.cpu[0]), rtol=2e-6)


@every_setting
def test_what_is_not_finite_in_the_state_stays_there(rng, setting):
    """Infinities and NaN of a state that was loaded give what they give on the CPU, whichever part of it has them."""
    values, grads = rng.standard_normal((2, 7))
    for part in range(3):
        pair = Pair(setting, [values], "float32")
        with np.errstate(all="ignore"):
            pair.step([grads])
            for optimizer, (param,) in zip(pair.optimizers, (pair.cpu, pair.cuda), strict=True):
                parts = [each for each in optimizer.state[param].values() if each.shape == param.shape]
                for k, number in enumerate([np.nan, np.inf, -np.inf] if part < len(parts) else []):
                    parts[part][2 * k] = number
            pair.step([grads])
        pair.check(2e-6)


@every_setting
def test_a_step_on_the_device_counts_as_an_in_place_change(setting):
    """Backward through a value that the kernel has overwritten is an error."""
    name, options = SETTINGS[setting]
    param = lucid.tensor([1.0, 2.0], device="cuda", requires_grad=True)
    loss = (param * param).sum()
    param.grad = lucid.tensor([0.5, -1.5], device="cuda")
    getattr(optim, name)([param], **options).step()
    with pytest.raises(RuntimeError, match="version"):
        loss.backward()


def test_another_formula_without_a_kernel():
    """A subclass with a formula of its own does that on the device too, not what the kernel of its base does."""

    class Uphill(optim.SGD):
        @staticmethod
        def formula(m, grad, param, momentum_buffer, *, lr):
            return param + grad * lr, momentum_buffer

    param = lucid.tensor([1.0, 2.0], device="cuda", requires_grad=True)
    param.grad = lucid.tensor([0.5, -1.0], device="cuda")
    Uphill([param], lr=0.5).step()
    assert param.tolist() == [1.25, 1.5]


def test_one_group_on_several_devices():
    """Each parameter takes its step where it lies, with its state, whatever device is current."""
    devices = ["cuda:0", "cpu", f"cuda:{lucid.cuda.device_count() - 1}"]
    params = [lucid.ones(3, device=device, requires_grad=True) for device in devices]
    optimizer = lucid.optim.Adam(params, lr=0.5)
    for param in params:
        param.grad = lucid.full((3,), 2.0, device=param.device)
    optimizer.step()
    for param in params:
        assert param.tolist() == [0.5] * 3
        assert optimizer.state[param]["exp_avg"].device == param.device
