"""`lucid.hooks.FlopHook`: which products of a backward pass count, in place, and of second derivatives."""

from __future__ import annotations

import pytest

import lucid
from lucid import hooks
from lucid.autograd.function import Function
from lucid.nn import functional as F
from lucid.ops.recurrence.sequence import recurrence
from tests.device import DEVICE


def ones(*shape, grad=True):
    return lucid.ones(*shape, device=DEVICE, requires_grad=grad)


# Each makes a result of two operands by one product, of the given count, which each of its gradients takes again.
PRODUCTS = {
    "matmul": (lambda a, b: a @ b, (2, 3), (3, 4), 48),
    "linear": (F.linear, (2, 3), (4, 3), 48),
    "einsum": (lambda a, b: lucid.einsum("bij,bkj->bik", a, b), (2, 2, 3), (2, 4, 3), 96),
    "einsum over one": (lambda a, b: lucid.einsum("ij,jk->ik", a, b), (2, 1), (1, 3), 12),
    "conv2d": (F.conv2d, (2, 4, 5, 5), (6, 4, 3, 3), 2 * 2 * 6 * 9 * 36),
    "conv2d of groups": (lambda a, b: F.conv2d(a, b, groups=2), (2, 4, 5, 5), (6, 2, 3, 3), 2 * 2 * 6 * 9 * 18),
    "conv_transpose2d": (F.conv_transpose2d, (2, 4, 3, 3), (4, 6, 3, 3), 2 * 2 * 4 * 9 * 54),
    "addmm": (lambda a, b: lucid.addmm(ones(4, grad=False), a, b), (2, 3), (3, 4), 48),
}
EACH = pytest.mark.parametrize("name", PRODUCTS)


@EACH
@pytest.mark.parametrize("asked_for", ["first", "second", "both"])
def test_gradients_that_are_asked_for(name, asked_for):
    """A pass that computes one gradient counts one product, also where both operands require grad."""
    function, a_shape, b_shape, count = PRODUCTS[name]
    a, b = ones(*a_shape), ones(*b_shape)
    with hooks.FlopHook() as counted:
        y = function(a, b).sum()
        assert counted.total == count
        wanted = {"first": (a,), "second": (b,), "both": (a, b)}[asked_for]
        lucid.autograd.grad(y, wanted)
    assert counted.total == count * (1 + len(wanted))


@EACH
def test_second_derivatives(name):
    """The products that a recorded backward makes count there, and their gradients where these are computed."""
    function, a_shape, b_shape, count = PRODUCTS[name]
    a, b = ones(*a_shape), ones(*b_shape)
    with hooks.FlopHook() as counted:
        (grad,) = lucid.autograd.grad((function(a, b) ** 2).sum(), a, create_graph=True)
        assert counted.total == 2 * count
        (grad**2).sum().backward()
    # of the gradient's product both gradients, and of the function's own
    assert counted.total == 6 * count


def test_attention_of_different_sizes():
    """Its backward makes the scores again; what is not asked for is not counted."""
    q, k, v = ones(2, 3, 4, 5), ones(2, 3, 6, 5), ones(2, 3, 6, 7)
    scores, values = 2 * 24 * 6 * 5, 2 * 24 * 6 * 7
    asked = {(q,): 2 * scores + values, (k,): 2 * scores + values, (v,): scores + values,
             (q, k, v): 3 * scores + 2 * values}  # fmt: skip
    for wanted, count in asked.items():
        with hooks.FlopHook() as counted:
            y = F.scaled_dot_product_attention(q, k, v)
            assert counted.total == scores + values
            lucid.autograd.grad(y.sum(), wanted)
        assert counted.total == scores + values + count


def test_second_derivative_of_attention():
    q, k, v = ones(2, 4, 5), ones(2, 6, 5, grad=False), ones(2, 6, 7, grad=False)
    scores, values = 2 * 8 * 6 * 5, 2 * 8 * 6 * 7
    with hooks.FlopHook() as counted:
        y = F.scaled_dot_product_attention(q, k, v)
        (grad,) = lucid.autograd.grad((y**2).sum(), q, create_graph=True)
        first = counted.total
        grad.sum().backward()
    assert first == scores + values + 2 * scores + values
    # through the weights and the scores made again, through the gradient of the output, and of the first attention
    assert counted.flops["MatmulBackward0"] == 2 * scores + values
    assert counted.total == first + 2 * scores + values + 2 * scores + values


@pytest.mark.parametrize(
    ("name", "shapes", "count"),
    [
        ("addmm_", ((2, 4), (2, 3), (3, 4)), 48),
        ("baddbmm_", ((5, 2, 4), (5, 2, 3), (5, 3, 4)), 240),
        ("addbmm_", ((2, 4), (5, 2, 3), (5, 3, 4)), 240),
        ("addmv_", ((2,), (2, 3), (3,)), 12),
        ("addr_", ((2, 4), (2,), (4,)), 16),
    ],
)
@pytest.mark.parametrize("of_a_view", [False, True])
def test_in_place(name, shapes, count, of_a_view):
    """As where they make a new tensor, forward and backward, also by keyword."""
    target, a, b = ones(2, *shapes[0], grad=False), ones(*shapes[1]), ones(*shapes[2])
    target = target[0] if of_a_view else target[0].clone()
    with hooks.FlopHook() as counted:
        getattr(target, name)(a, b)
        assert counted.total == count
        target.sum().backward()
    assert counted.total == 3 * count


def test_a_function_of_the_name_of_an_op():
    """What it runs counts, and not its name."""

    class linear(Function):
        @staticmethod
        def forward(ctx, x):
            return x @ x

        @staticmethod
        def backward(ctx, grad):
            return grad

    with hooks.FlopHook() as counted:
        linear.apply(ones(2, 2)).sum().backward()
    assert counted.flops == {"matmul": 16}


def test_attention_of_which_the_mask_alone_is_trained():
    """Its gradient takes the scores again, and one product with the values."""
    q, k, v = (lucid.ones(2, 3, *shape, device=DEVICE) for shape in ((4, 5), (6, 5), (6, 7)))
    scores, values = 2 * 24 * 6 * 5, 2 * 24 * 6 * 7
    with hooks.FlopHook() as counted:
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=ones(4, 6))
        assert counted.total == scores + values
        out.sum().backward()
    assert counted.total == 2 * (scores + values)


@pytest.mark.parametrize("backwards", [False, True])
def test_recurrence_counts_the_products_of_its_steps(backwards):
    """One op counts as its steps: all products forward, and those of the gradients that are asked for backward."""
    sizes, width, inputs, out = (3, 2, 2), 5, 4, 2
    rows, first = sum(sizes), sizes[-1 if backwards else 0]
    w_ih, w_hh, w_hr = 4 * width * inputs, 4 * width * out, out * width
    shapes = {"w_ih": (4 * width, inputs), "w_hh": (4 * width, out), "w_hr": (out, width), "x": (rows, inputs)}
    shapes |= {"h_0": (3, out), "c_0": (3, width)}
    of_state = w_hh * (rows - first)
    expected = {
        "w_ih": w_ih * rows, "w_hh": w_hh * rows, "w_hr": w_hr * rows, "x": w_ih * rows, "h_0": w_hh * first, "c_0": 0
    }  # fmt: skip
    for name, count in expected.items():
        each = {key: lucid.ones(*shape, device="cpu") for key, shape in shapes.items()}
        each[name].requires_grad_()
        with hooks.FlopHook() as counted:
            output, _ = recurrence(
                "LSTM", each["x"], sizes, (each["h_0"], each["c_0"]), (each["w_ih"], each["w_hh"]), (None, None),
                each["w_hr"], backwards=backwards,
            )  # fmt: skip
            output.sum().backward()
        forward = 2 * rows * (w_ih + w_hh + w_hr)
        assert counted.flops == {"lstm": forward, "LstmBackward0": 2 * (count + of_state + w_hr * rows)}


def test_second_derivatives_of_recurrence_count(rng):
    """What a backward on the graph has recorded of the steps counts in its turn."""
    layer = lucid.nn.GRU(3, 4, device="cpu")
    x = lucid.tensor(rng.standard_normal((2, 3)).astype("f"), device="cpu", requires_grad=True)
    with hooks.FlopHook() as counted:
        (grad,) = lucid.autograd.grad(layer(x)[0].sum(), x, create_graph=True)
        before = counted.total
        lucid.autograd.grad(grad.sum(), list(layer.parameters()))
    assert counted.total > before
