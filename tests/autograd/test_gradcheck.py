"""gradcheck and gradgradcheck: they accept what is right, and say precisely what is wrong."""

from __future__ import annotations

import re

import numpy as np
import pytest

import lucid
from lucid.autograd import GradcheckError, gradcheck, gradgradcheck
from lucid.autograd.function import Function
from tests.pieces import function_of


def double(rng, *shape):
    """Return a random float64 tensor that requires grad."""
    return lucid.tensor(rng.uniform(0.5, 1.5, shape), requires_grad=True)


def complex_double(rng, *shape):
    """Return a random complex128 tensor that requires grad."""
    return lucid.tensor(rng.uniform(0.5, 1.5, shape) + 1j * rng.uniform(0.5, 1.5, shape), requires_grad=True)


def without_half(x):
    """Return x * x with half of its gradient."""
    return x * x.detach()


@pytest.mark.parametrize("fast_mode", [None, False, True])
def test_right_gradients_pass(rng, fast_mode):
    """A function of several inputs, one that needs no gradient, and several outputs passes in every mode."""

    def func(x, y, number):
        return x * y + number, (x * x).sum(), x > 1

    assert gradcheck(func, (double(rng, 2, 3), double(rng, 3), 2.0), fast_mode=fast_mode)
    assert gradcheck(func, (double(rng, 2, 3), double(rng, 3).detach(), 2.0), fast_mode=fast_mode)


@pytest.mark.parametrize("fast_mode", [None, False, True])
def test_wrong_gradients_fail(rng, fast_mode):
    """A gradient that misses a term raises, or gives False on request."""
    x = double(rng, 2, 3)
    with pytest.raises(GradcheckError):
        gradcheck(without_half, x, fast_mode=fast_mode)
    assert gradcheck(without_half, x, fast_mode=fast_mode, raise_exception=False) is False


class Spoiled(Function):
    """The identity, which multiplies the gradients that `number` says, counted over all passes; None: all of them."""

    number: int | None = None
    passes = 0
    factor = np.nan

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        Spoiled.passes += 1
        return grad * Spoiled.factor if Spoiled.number in {None, Spoiled.passes} else grad


@pytest.mark.parametrize("fast_mode", [None, False, True])
@pytest.mark.parametrize("make", [double, complex_double])
def test_nan_passes_nowhere(rng, make, fast_mode):
    """NaN is near nothing: in all gradients, in those of one pass alone, and in outputs that must not change."""
    calls = []

    def moved(x):
        calls.append(x)
        return x.detach() if len(calls) == 1 else x.detach() * np.nan

    Spoiled.number, Spoiled.passes, Spoiled.factor = None, 0, np.nan
    with pytest.raises(GradcheckError, match=r"differs: numerical|Jacobian mismatch .* analytical \(?nan"):
        gradcheck(Spoiled.apply, make(rng, 2), fast_mode=fast_mode, check_undefined_grad=False)
    Spoiled.number = Spoiled.passes + 2
    with pytest.raises(GradcheckError, match=r"not reentrant: .* differ by nan"):
        gradcheck(Spoiled.apply, make(rng, 2), fast_mode=fast_mode, nondet_tol=1.0)
    with pytest.raises(GradcheckError, match=r"slope along .* differs|no output requires grad"):
        gradcheck(moved, make(rng, 2), fast_mode=fast_mode)


def test_infinity_in_both_passes_is_no_difference(rng):
    """It is that of one pass alone; in both it is a wrong gradient."""
    Spoiled.number, Spoiled.passes, Spoiled.factor = None, 0, np.inf
    with pytest.raises(GradcheckError, match=r"Jacobian mismatch .* analytical -?inf"):
        gradcheck(Spoiled.apply, double(rng, 2), fast_mode=False, check_undefined_grad=False)
    Spoiled.number = Spoiled.passes + 2
    with pytest.raises(GradcheckError, match=r"not reentrant: .* differ by inf"):
        gradcheck(Spoiled.apply, double(rng, 2), nondet_tol=1.0)


def test_the_message_names_what_is_wrong(rng):
    """The error says which output, which input, which element, and gives both values."""
    x, y = double(rng, 2), lucid.tensor([1.0, 3.0], dtype=lucid.float64, requires_grad=True)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda x, y: (x * 2.0, without_half(y)), (x, y))
    text = str(caught.value)
    assert "output 1, element [0]" in text
    assert f"with respect to input 1 (shape (2,), float64 on {lucid.get_default_device()}), element [0]" in text
    assert re.search(r"numerical 2\.0+\d*|numerical 1\.9999\d*", text)
    assert "analytical 1.0" in text


def test_one_wrong_element_is_found(rng):
    """One element that is wrong by one part in a hundred, among many, fails the comparison element by element."""
    weights = np.ones((4, 5))
    weights[2, 3] = 1.01

    Wrong = function_of(lambda ctx, x: x * 3.0, lambda ctx, grad: grad * 3.0 * lucid.tensor(weights))

    with pytest.raises(GradcheckError, match=r"output 0, element \[2, 3\]"):
        gradcheck(Wrong.apply, double(rng, 4, 5))


def test_complex_gradients_have_pytorchs_convention(rng):
    """Holomorphic and other functions of complex numbers pass, from complex to real and from real to complex too."""
    z, x = complex_double(rng, 3), double(rng, 3)
    assert gradcheck(lambda z: z * z, z)
    assert gradcheck(lambda z: lucid.abs(z), z)
    assert gradcheck(lambda z: z * lucid.conj(z), z)
    assert gradcheck(lambda x, z: x * z, (x, z))
    assert gradcheck(lambda z: z * lucid.conj(z), z, fast_mode=True)
    assert gradgradcheck(lambda z: z * z * lucid.conj(z), z)


def test_a_complex_gradient_without_its_conjugate_fails(rng):
    """The gradient of z * w by z is grad * conj(w): without the conjugate it is wrong in its imaginary part only."""

    def forward(ctx, z, w):
        ctx.w = w.detach()
        return z * w

    Wrong = function_of(forward, lambda ctx, grad: (grad * ctx.w, None), name="Wrong")

    inputs = complex_double(rng, 2), complex_double(rng, 2).detach()
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(Wrong.apply, inputs)
    with pytest.raises(GradcheckError, match="slope"):
        gradcheck(Wrong.apply, inputs, fast_mode=True)


def squared(ctx, x):
    """Return the square, and save what it is of."""
    ctx.save_for_backward(x)
    return x * x


def test_second_derivatives(rng):
    """A right first and a wrong second derivative passes gradcheck and fails gradgradcheck."""

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2.0 * x.detach()

    Square = function_of(squared, backward, name="Square")

    x = double(rng, 3)
    assert gradcheck(Square.apply, x)
    with pytest.raises(GradcheckError):
        gradgradcheck(Square.apply, x)
    assert gradgradcheck(Square.apply, x, raise_exception=False) is False
    assert gradgradcheck(lambda x: x * x, x)
    upstream = lucid.tensor(rng.standard_normal(3))
    assert gradgradcheck(lambda x: x * x * x, x, upstream)


def test_inputs_are_as_before(rng):
    """Checking moves the inputs and puts them back, even when the function raises; their grad and version stay."""
    x = double(rng, 3)
    before = x.detach().clone()
    gradcheck(lambda x: x * x, x)
    calls = []

    def failing(x):
        calls.append(x)
        if len(calls) > 2:
            raise KeyError("stop")
        return x * x

    with pytest.raises(KeyError):
        gradcheck(failing, x)
    assert lucid.equal(x.detach(), before)
    assert x.grad is None
    assert x._version == 0


def test_a_closure_over_its_inputs_is_checked(rng):
    """The inputs are moved in place, so that a function may ignore its arguments and use parameters it knows."""
    weight = double(rng, 3)
    assert gradcheck(lambda _: weight * weight, weight)
    with pytest.raises(GradcheckError):
        gradcheck(lambda _: weight * weight.detach(), weight)


def test_views_as_outputs(rng):
    """An output that shares the input's memory is compared as it was, not as it became."""
    assert gradcheck(lambda x: x.reshape(-1), double(rng, 2, 3))
    assert gradcheck(lambda x: x[0], double(rng, 2, 3), fast_mode=True)


def test_what_changes_without_gradient_is_reported(rng):
    """A function whose outputs do not require grad must not depend on the input."""
    x = double(rng, 3)
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda x: x.detach() * 2.0, x)
    assert gradcheck(lambda x: x.detach() * 0.0, x)


def test_backward_must_be_deterministic(rng):
    """Two passes that differ fail, unless nondet_tol allows as much."""

    class Noisy(Function):
        passes, noise = 0, 1e-7

        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            Noisy.passes += 1
            return grad * (2.0 + Noisy.noise * Noisy.passes)

    x = double(rng, 3)
    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(Noisy.apply, x)
    assert gradcheck(Noisy.apply, x, nondet_tol=1e-5)

    Noisy.noise = 1e-12  # which differences of gradients do not see
    with pytest.raises(GradcheckError, match="not reentrant"):
        gradgradcheck(lambda x: x * Noisy.apply(x), x)
    assert gradgradcheck(lambda x: x * Noisy.apply(x), x, nondet_tol=1e-9)


def test_undefined_gradients_count_as_zeros(rng):
    """A backward that takes None for something else than zeros fails."""

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2.0, x * 3.0

    def backward(ctx, first, second):
        if first is None:
            return second
        return first * 2.0 + (0.0 if second is None else second * 3.0)

    Two = function_of(forward, backward, name="Two")

    x = double(rng, 3)
    with pytest.raises(GradcheckError, match="must take None for zeros"):
        gradcheck(Two.apply, x)


@pytest.mark.parametrize("fast", [None, False, True])
def test_the_only_output_without_a_gradient(rng, fast):
    """Hooks and backward get None for the gradient of an output, also of a single one, and must take it for zeros."""

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2.0

    def backward(ctx, grad):
        seen.append(grad)
        return grad * 2.0

    Twice = function_of(forward, backward, name="Twice")

    def with_hook(hook):
        def run(x):
            y = x.clone()
            y.register_hook(hook)
            return y

        return run

    def refuse(grad):
        if grad is None:
            raise RuntimeError("no gradient")

    seen = []
    x = double(rng, 3)
    ones = lucid.ones(3, dtype=lucid.float64)
    for wrong in (Twice.apply, with_hook(refuse), with_hook(lambda grad: ones if grad is None else grad)):
        with pytest.raises(GradcheckError, match="must take None for zeros"):
            gradcheck(wrong, x, fast_mode=fast)
        assert not gradcheck(wrong, x, fast_mode=fast, raise_exception=False)
        assert gradcheck(wrong, x, fast_mode=fast, check_undefined_grad=False)
    assert None in seen
    assert gradcheck(with_hook(lambda grad: None if grad is None else grad * 1.0), x, fast_mode=fast)


@pytest.mark.parametrize("fast", [None, False, True])
def test_outputs_that_change_their_form(fast):
    """Where shape or dtype or number of the outputs depends on values there is no derivative: an AssertionError."""
    x = lucid.ones(1, dtype=lucid.float64, requires_grad=True)
    for what, func in {
        "shape": lambda x: lucid.cat([x, x]) if x.detach().item() >= 1 else x,
        "dtype": lambda x: x.float() if x.detach().item() >= 1 else x,
        "as many": lambda x: (x, x) if x.detach().item() >= 1 else (x,),
    }.items():
        with pytest.raises(AssertionError, match=what):
            gradcheck(func, x, fast_mode=fast)
        with pytest.raises(AssertionError, match=what):
            gradcheck(func, x, fast_mode=fast, raise_exception=False)
        assert x.item() == 1


@pytest.mark.parametrize("fast", [None, False, True])
def test_grad_outputs_that_require_no_grad_are_constants(rng, fast):
    """Gradgradcheck checks by those of `grad_outputs` that require grad, and takes the others as they are."""
    Detached = function_of(squared, lambda ctx, grad: 2 * ctx.saved_tensors[0] * grad.detach(), name="Detached")

    x, upstream = double(rng, 3), double(rng, 3)
    assert gradgradcheck(Detached.apply, x, upstream.detach(), fast_mode=fast)
    with pytest.raises(GradcheckError, match="input 1"):
        gradgradcheck(Detached.apply, x, upstream, fast_mode=fast)


def test_misuse_is_refused(rng):
    """No input that requires grad and one that cannot be moved are errors; a lower precision is a warning."""
    with pytest.raises(ValueError, match="at least one input that requires grad"):
        gradcheck(lambda x: x * 2.0, double(rng, 2).detach())
    with pytest.raises(ValueError, match=r"overlapping or read-only memory.*clone"):
        gradcheck(lambda x: x * 2.0, double(rng, 1).expand(3))
    with pytest.warns(UserWarning, match="float64"):
        gradcheck(lambda x: x * 2.0, double(rng, 2).detach().float().requires_grad_(), raise_exception=False)


def test_large_jacobians_are_projected(rng):
    """Above ten thousand elements of the Jacobian the default is one random direction, which still sees an error."""
    x = double(rng, 200)
    calls = []

    def func(x):
        calls.append(x)
        return x * x

    assert gradcheck(func, x)
    assert len(calls) < 10
    with pytest.raises(GradcheckError, match="slope"):
        gradcheck(without_half, x)


@pytest.mark.parametrize("sign", [1, -1])
def test_outputs_without_a_graph_may_not_move(sign):
    """An output that grows or falls with an input, and requires no grad, is a fault."""
    x = lucid.ones(2, dtype=lucid.float64, requires_grad=True)
    with pytest.raises(GradcheckError, match="no output requires grad"):
        gradcheck(lambda x: x.detach() * sign, (x,))


@pytest.mark.parametrize("place", [0, 1])
def test_second_derivatives_beside_a_constant(place, rng):
    """An argument that requires no grad may stand before or behind the one that does."""
    arguments = [lucid.tensor(rng.uniform(1, 2, 3), requires_grad=number == place) for number in range(2)]
    assert gradgradcheck(lambda a, b: a * a * b * b * b, arguments)


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
@pytest.mark.parametrize("calls", [2, 3, 4, 6])
def test_the_input_is_put_back_where_the_function_fails(check, calls, rng):
    """An error of the function in the midst of the differences leaves the tensors as they were."""
    x, left = lucid.tensor(rng.standard_normal(3), requires_grad=True), iter(range(calls))
    before = x.tolist()

    def fails(x):
        next(left, None) is not None or pytest.fail("as it is to")
        return (x * x * x).sum()

    with pytest.raises(pytest.fail.Exception):
        check(fails, x)
    assert x.tolist() == before
