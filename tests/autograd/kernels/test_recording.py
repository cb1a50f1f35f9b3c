"""What a call records and changes, whatever the kind of kernel: as any op of lucid's does."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import lucid
from lucid import hooks
from lucid.autograd.kernels import formulas
from lucid.base import gpu
from lucid.errors import DeviceError, DtypeError, GraphError, InplaceError, NotDifferentiableError
from tests.autograd.kernels.making import drawn, elementwise, is_right, raw, reduction
from tests.device import two_devices
from tests.pieces import no_collections, raising

pytestmark = pytest.mark.gpu
derivative = lucid.cuda.derivative


def wave(**gradients):
    """Return ``a * sin(x)``, recorded."""
    return derivative(elementwise("T x, T a", "T y", "y = a * sin(x)"), **gradients)


# ---- results ----


def test_results_are_recorded_where_something_requires_grad(rng):
    """A result requires grad if an input does and grad mode is on; its node has the name of the kernel."""
    f = wave()
    x, a = drawn(rng, 3), drawn(rng, 3, requires_grad=False)
    y = f(x, a)
    assert isinstance(y, lucid.Tensor)
    assert (y.requires_grad, y.is_leaf, type(y.grad_fn).__name__) == (True, False, "waveBackward")
    assert not f(x.detach(), a).requires_grad
    with lucid.no_grad():
        assert not f(x, a).requires_grad
    with lucid.inference_mode():
        assert f(x, a).is_inference()


def test_an_input_without_an_expression_is_refused(rng):
    """A Tensor that requires grad is refused for it, by its name, unless nothing is recorded; nothing has changed."""
    f = wave(x="g * a * cos(x)")
    x, a, out = drawn(rng, 3), drawn(rng, 3), lucid.zeros(3, dtype=lucid.float64, device="cuda")
    for args in ((x, a), (x.detach(), a, out)):
        with pytest.raises(
            NotDifferentiableError, match=r"wave: the tensor given for a requires grad, .*a=\"g \* ...\""
        ):
            f(*args)
    assert (out.tolist(), out._version) == ([0.0] * 3, 0)
    with lucid.no_grad():
        f(x, a, out)
    assert f(x, a.detach()).requires_grad


def test_written_outputs(rng):
    """An output that is given is written to, counts the change, and is the result, as of an in-place op."""
    f = wave()
    x, a = drawn(rng, 3), drawn(rng, 3)
    out = lucid.empty(3, dtype=lucid.float64, device="cuda")
    assert f(x, a, out) is out
    assert (out._version, out.requires_grad) == (1, True)
    (grad,) = lucid.autograd.grad(out.sum(), x)
    np.testing.assert_allclose(grad.cpu().numpy(), (a * x.cos()).detach().cpu().numpy(), rtol=1e-14)

    def into_a_part(x, a):
        whole = (x * 2).repeat(2, 1)
        f(x, a, whole[0])
        return whole

    def over_one_on_the_graph(x, a):
        return f(x, a, x * 2)

    assert is_right(into_a_part, x, a)
    assert is_right(over_one_on_the_graph, x, a)
    total = derivative(reduction("T x", "x * x"))
    for shape, axis in (((3, 2), 0), ((3, 1), 1), ((3, 4), 1), ((2, 3, 2), (0, 2))):
        x = drawn(rng, *shape)
        size = x.sum(axis).shape

        def into_given(x, axis=axis, size=size):
            return total(x, axis=axis, out=lucid.empty(size, dtype=x.dtype, device="cuda"))

        assert is_right(into_given, x)


def test_an_output_over_an_input(rng):
    """It is refused where backward needs what the input held, and works where it does not."""
    f = wave()
    x = drawn(rng, 3)
    z = x * 1
    before, version = z.tolist(), z._version
    with pytest.raises(InplaceError, match=r"wave: y, which is written to, shares memory with x, .* or x.clone\(\)"):
        f(z, 2.0, z)
    assert (z.tolist(), z._version) == (before, version)
    exponential = derivative(elementwise("T x", "T y", "y = exp(x)", "exponential"))

    def inside(x):
        z = x * 1
        return exponential(z, z) * 2

    assert is_right(inside, x)
    with pytest.raises(InplaceError, match="leaf"):
        exponential(x, x)
    assert x.tolist() == before


def test_outputs_that_cannot_be_written(rng):
    """Broadcast memory, an array of CuPy's that would carry the graph and a leaf are refused before the launch."""
    f = wave()
    x, out = drawn(rng, 3), lucid.zeros(3, dtype=lucid.float64, device="cuda")
    with pytest.raises(InplaceError, match="shares read-only or broadcast memory"):
        f(x, 1.0, out[:1].expand(3))
    with pytest.raises(GraphError, match="wave: y is an array of CuPy's, which cannot carry the graph of its values"):
        f(x, 1.0, out.array)
    with pytest.raises(InplaceError, match="leaf"):
        f(x, 1.0, drawn(rng, 3))
    assert out.tolist() == [0.0] * 3
    y = f(x.detach(), 1.0, out.array)
    assert y is out.array
    np.testing.assert_allclose(y.get(), np.sin(x.detach().cpu().numpy()), rtol=1e-14)


@pytest.mark.parametrize("changed", ["x", "a", "y"])
def test_what_is_saved_and_changed_is_found(changed, rng):
    """What backward reads may not change in place meanwhile, be it an input, one without grad, or the result."""
    f = derivative(elementwise("T x, T a", "T y", "y = exp(x) * a"), x="g * y + 0 * a")
    values = {"x": drawn(rng, 3) * 1, "a": drawn(rng, 3, requires_grad=False)}
    values["y"] = f(values["x"], values["a"])
    loss = values["y"].sum()
    values[changed].mul_(2)
    if changed == "x":
        loss.backward()
    else:
        with pytest.raises(InplaceError, match="waveBackward: one of the variables needed for gradient computation"):
            loss.backward()


def test_a_second_backward_and_memory(rng):
    """What is kept is freed by backward, with words for a second one, and with the result."""
    f = wave()
    x = drawn(rng, 3)
    y = f(x, 2.0)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    with pytest.raises(GraphError, match="waveBackward: trying to backward through the graph a second time"):
        y.sum().backward()
    y = f(x * 1, 2.0)
    gone = weakref.ref(y.grad_fn.saved_tensors[0].array)
    with no_collections():
        del y
        assert gone() is None


# ---- hooks and modes ----


def test_hooks_fire(rng):
    """Hooks of tensors and of nodes, of saved tensors and of functions see the call as any op."""
    f = wave()
    x, seen = drawn(rng, 3), []
    x.register_hook(lambda g: seen.append("tensor"))

    class Note(hooks.FunctionHook):
        def before(self, call):
            seen.append(f"{call.phase} {call.name}")

    with Note(), lucid.autograd.graph.saved_tensors_hooks(lambda t: seen.append("pack") or t, lambda t: t):
        y = f(x, 2.0)
    y.grad_fn.register_prehook(lambda g: seen.append("prehook"))
    y.sum().backward()
    assert seen == ["forward wave", "pack", "prehook", "tensor"]


def test_checkpoint_and_functional_derivatives(rng):
    """A checkpointed function may call it, and lucid.func differentiates it."""
    f = wave()
    x = drawn(rng, 3)
    expected = lucid.autograd.grad((f(x, 2.0) ** 2).sum(), x)[0]
    y = lucid.utils.checkpoint.checkpoint(lambda x: f(x, 2.0) ** 2, x, use_reentrant=False)
    assert lucid.autograd.grad(y.sum(), x)[0].tolist() == expected.tolist()
    assert lucid.func.grad(lambda x: (f(x, 2.0) ** 2).sum())(x.detach()).tolist() == expected.tolist()


def test_a_captured_graph(rng):
    """Forward and backward are captured in a CUDA graph after a first call, and replayed for other values."""
    f = wave()
    x = drawn(rng, 4, dtype="float32")

    def step():
        return lucid.autograd.grad(f(x, 2.0).sum(), x)[0]

    side = lucid.cuda.Stream()
    with lucid.cuda.stream(side):
        step()
    graph = lucid.cuda.CUDAGraph()
    with lucid.cuda.graph(graph):
        grad = step()
    x.data.copy_(drawn(rng, 4, dtype="float32", requires_grad=False))
    graph.replay()
    np.testing.assert_allclose(grad.cpu().numpy(), 2 * np.cos(x.detach().cpu().numpy()), rtol=1e-6)


def test_third_derivatives(rng):
    """Gradients of gradients are found as far as they are asked for."""
    f = derivative(elementwise("T x", "T y", "y = sin(x)"))
    x = drawn(rng, 3)
    y = f(x)
    for _ in range(3):
        (y,) = lucid.autograd.grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose(y.detach().cpu().numpy(), -np.cos(x.detach().cpu().numpy()), rtol=1e-12)


def test_a_name_like_that_of_the_gradient(rng):
    """Parameters may be called as gradients are: those then have longer names."""
    f = derivative(elementwise("T x, T g", "T y", "y = x * g * g"))
    assert f.gradients == {"x": "g_y * g * g", "g": "g_y * g * x + g_y * (x * g)"}
    assert is_right(f, drawn(rng, 3), drawn(rng, 3))
    f = derivative(elementwise("T g, T g_y", "T y", "y = g * sin(g_y)"))
    assert f.gradients["g"] == "gg_y * sin(g_y)"
    assert is_right(f, drawn(rng, 3), drawn(rng, 3))


# ---- devices and foreign arrays ----


@two_devices
def test_devices(rng):
    """A call runs on the device of its arrays, current or not; arrays on several are refused with their places."""
    f, total, scale = (
        wave(),
        derivative(reduction("T x", "x * x")),
        derivative(raw(of="double"), x="g * 2 * a * x", writes=("y",)),
    )
    x = drawn(rng, 3).detach().to("cuda:1").requires_grad_()
    y = lucid.empty(3, dtype=lucid.float64, device="cuda:1")
    for call, expected in (
        (lambda: f(x, 2.0), 2 * x.cos()), (lambda: total(x), 2 * x), (lambda: scale(1, 32, (x, y, 2.0, 3)), 4 * x),
    ):  # fmt: skip
        result = call()
        (grad,) = lucid.autograd.grad(result.sum(), x)
        assert (result.device, grad.device) == (x.device, x.device)
        assert (grad - expected).abs().max().item() < 1e-14
    assert lucid.cuda.current_device() == 0
    with pytest.raises(DeviceError, match="wave: expected all arrays on one device, got x on cuda:1, a on cuda:0"):
        f(x, drawn(rng, 3))


def test_arrays_on_the_cpu_and_of_other_libraries(rng):
    """What lies on the CPU, and what is structured, is refused by name; what lends CUDA memory is taken."""
    f = wave()
    x = drawn(rng, 3)
    for other in (lucid.ones(3, device="cpu"), np.ones(3)):
        with pytest.raises(DeviceError, match=r"wave: a is an? (tensor|array) on the CPU, .*cuda\(\)"):
            f(x, other)
    with pytest.raises(DtypeError, match=r"wave: a is a structured array, .* pass each field"):
        f(x, np.zeros(3, dtype=[("u", "f8"), ("v", "f8")]))

    class Lender:
        array = drawn(rng, 3, requires_grad=False).array
        __cuda_array_interface__ = array.__cuda_array_interface__

    assert f(x, Lender()).shape == (3,)
    with pytest.raises(DtypeError, match="uint16"):
        derivative(elementwise("uint16 n, T x", "uint16 y", "y = n"), x="0")(gpu.cupy().ones(3, "H"), x)


def test_a_backward_that_is_not_recorded_is_a_launch(rng, monkeypatch):
    """Only a recorded backward is a call of a Function, with a node of its own; gradients are equal."""
    f = wave()
    x, a = drawn(rng, 3), drawn(rng, 3)
    recorded = lucid.autograd.grad(f(x, a).sum(), (x, a), create_graph=True)

    with monkeypatch.context() as patch:
        patch.setattr(formulas.KernelGradient, "apply", raising(AssertionError("a Function was applied")))
        plain = lucid.autograd.grad(f(x, a).sum(), (x, a))
        with pytest.raises(AssertionError, match="was applied"):
            lucid.autograd.grad(f(x, a).sum(), (x, a), create_graph=True)
    for one, other in zip(plain, recorded, strict=True):
        assert not one.requires_grad
        assert one.tolist() == other.tolist()
