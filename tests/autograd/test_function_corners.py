"""Functions at odd inputs: what is dirty, returned as it is, given twice, by name or not at all."""

from __future__ import annotations

import warnings
import weakref
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.autograd import Function
from lucid.autograd.function import once_differentiable
from lucid.autograd.graph import GradientEdge, get_gradient_edge
from lucid.errors import LucidError
from tests.pieces import drawn, no_collections
from tests.pieces import function_of as function

contract = pytest.mark.contract


def doubling(ctx, x, *others):
    """Double `x` in place; the others are tripled."""
    ctx.mark_dirty(x)
    x.mul_(2)
    return (x, *[other * 3 for other in others]) if others else x


@pytest.fixture
def leaf(rng):
    return partial(drawn, rng)


@pytest.fixture
def constant(rng):
    return lambda *shape: lucid.tensor(rng.standard_normal(shape))


@contract("3.5")
@pytest.mark.parametrize("view", [False, True])
def test_a_dirty_input_that_is_returned_twice(leaf, constant, view):
    """Both outputs are the input, whose gradient is that of the last place; the other place has none."""

    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x, x

    received = []

    def backward(ctx, first, second):
        received.append((first.tolist(), second.tolist()))
        return first * 5 + second * 2

    x, upstream = leaf(3), constant(3)
    y = x * 1
    changed = y[:] if view else y
    a, b = function(forward, backward).apply(changed)
    assert a is b is changed
    (y * upstream).sum().backward()
    assert received == [([0.0] * 3, upstream.tolist())]
    assert x.grad.tolist() == (upstream * 2).tolist()


@contract("3.5")
def test_a_retained_gradient_follows_a_dirty_input(leaf, constant):
    """`retain_grad` before the call gives the gradient of the new values; a hook from before sees that of the old."""
    x, upstream = leaf(3), constant(3)
    y = x * 1
    seen = []
    y.retain_grad()
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    function(doubling, lambda ctx, grad: grad * 2).apply(y)
    (y * upstream).sum().backward()
    assert y.grad.tolist() == upstream.tolist()
    assert seen == [(upstream * 2).tolist()]


@contract("3.5")
def test_a_saved_dirty_input_is_an_output(leaf):
    """The second derivative goes through the values that forward has written, not through those before."""

    def forward(ctx, x):
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        return grad * out

    exponential = function(forward, backward)
    x = leaf(3)
    y = x * 1
    exponential.apply(y)
    (first,) = lucid.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = lucid.autograd.grad(first.sum(), x)
    assert lucid.allclose(second, x.detach().exp())
    # nothing of it waits for the garbage collector
    node = weakref.ref(y.grad_fn)
    with no_collections():
        del y, first, second
        assert node() is None


@contract("3.5")
def test_mark_dirty_is_a_change_for_all_who_saved_the_tensor(leaf):
    """Also where forward writes behind the version counter."""

    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.detach().array[...] = 7
        return x

    y = leaf(3) * 1
    square = y * y
    function(forward).apply(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.sum().backward()


@contract("3.5")
def test_marking_what_is_no_input_warns(leaf):
    """It is returned as any other output; without a graph nobody is bothered."""

    def forward(ctx, x):
        out = x * 2
        ctx.mark_dirty(out)
        return out

    marking = function(forward, lambda ctx, grad: grad * 2)
    x = leaf(3)
    with pytest.warns(UserWarning, match=r"only inputs should be given to ctx\.mark_dirty") as caught:
        y = marking.apply(x)
    assert caught[0].filename == __file__
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    with warnings.catch_warnings(action="error"):
        marking.apply(x.detach())


@contract("3.5")
def test_dirty_views_taken_in_no_grad_mode_are_refused(leaf):
    """They need no gradient themselves, but what they change does."""
    y = leaf(3) * 1
    with lucid.no_grad():
        view = y[:1]
    with pytest.raises(RuntimeError, match="taken in no_grad mode"):
        function(doubling).apply(view)


@contract("3.1")
def test_setup_context_sees_all_arguments(leaf, constant):
    """Defaults are filled in, keywords put into their positions, and a default that is a tensor gets its gradient."""
    factor = leaf(3)

    def setup_context(ctx, inputs, output):
        seen.append(inputs[2:])
        assert ctx.needs_input_grad == (True, True, False, False)
        ctx.save_for_backward(*inputs[:2])

    def backward(ctx, grad):
        x, factor = ctx.saved_tensors
        return grad * factor, grad * x, None, None

    def forward(x, factor=factor, power=1, shift=0):
        return x * factor + shift

    seen = []
    scaled = function(forward, backward, setup_context=setup_context)
    x, upstream = leaf(3), constant(3)
    for keywords, rest in (({}, (1, 0)), ({"shift": 4}, (1, 4)), ({"shift": 5, "power": 2}, (2, 5))):
        seen.clear()
        x.grad = factor.grad = None
        (scaled.apply(x, **keywords) * upstream).sum().backward()
        assert seen == [rest]
        assert x.grad.tolist() == (upstream * factor).tolist()
        assert factor.grad.tolist() == (upstream * x).tolist()


@contract("3.1")
def test_keyword_arguments_are_put_into_their_positions(leaf):
    """Also where forward takes ctx: gradients flow through them. One that has no position is a TypeError."""

    def forward(ctx, x, factor=2, shift=0):
        needs.append(ctx.needs_input_grad)
        return x * factor + shift

    needs = []
    scaled = function(forward, lambda ctx, grad: (grad * 2, None, None))
    x = leaf(3)
    scaled.apply(x=x).sum().backward()
    scaled.apply(factor=3, x=x)
    assert needs == [(True,), (True, False)]
    assert x.grad.tolist() == [2.0] * 3
    with pytest.raises(TypeError, match="shift by keyword"):
        scaled.apply(x, shift=1)
    with pytest.raises(TypeError, match="multiple values"):
        scaled.apply(x, x=x)

    def only(x, *, factor=2):
        return x * factor

    with pytest.raises(TypeError, match="factor by keyword"):
        function(only, setup_context=lambda ctx, inputs, output: None).apply(x)


@contract("3.1")
def test_backward_and_vjp_are_one_thing(leaf):
    """Both are refused when the derivative is asked for, also where a subclass adds the other; each alone works."""
    x = leaf(3)
    both = function(lambda ctx, x: x * 2, vjp=lambda ctx, grad: grad * 3)
    y = both.apply(x)
    with pytest.raises(RuntimeError, match="both 'backward' and 'vjp'"):
        y.sum().backward()

    class Base(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, grad):
            return grad * 2

    class Other(Base):
        @staticmethod
        def backward(ctx, grad):
            return grad * 5

    Base.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match=r"Other: .*both 'backward' and 'vjp'"):
        Other.apply(x).sum().backward()


@contract("3.5")
@pytest.mark.parametrize("mode", ["no_grad", "inference_mode", "marked"])
@pytest.mark.parametrize("dirty", [False, True])
def test_an_input_that_gets_no_gradient_comes_back_detached(leaf, mode, dirty):
    """The input itself stays in its graph; the output shares its memory and can be changed."""

    def forward(ctx, x):
        if dirty:
            ctx.mark_dirty(x)
        if mode == "marked":
            ctx.mark_non_differentiable(x)
        return x

    y = leaf(3) * 1
    with lucid.enable_grad() if mode == "marked" else getattr(lucid, mode)():
        out = function(forward).apply(y)
    assert out is not y
    assert (out.requires_grad, out._base, y.grad_fn.name()) == (False, None, "MulBackward0")
    out.add_(1)
    assert out.tolist() == y.tolist()


@contract("3.5")
def test_an_inference_tensor_returned_as_it_is():
    """It is another inference tensor, in inference mode and out of it."""
    with lucid.inference_mode():
        x = lucid.ones(3)
        outs = [function(lambda ctx, x: x).apply(x)]
    outs.append(function(lambda ctx, x: x).apply(x))
    for out in outs:
        assert out is not x
        assert out.is_inference()


@contract("3.1")
def test_contexts_check_what_they_are_given(leaf):
    """Markings take tensors, `set_materialize_grads` a bool; saved tensors are there once the call is recorded."""
    contexts = []

    def forward(ctx, x):
        with pytest.raises(RuntimeError, match="mark_dirty: expected tensors, got int as number 1"):
            ctx.mark_dirty(x, 3)
        with pytest.raises(RuntimeError, match="mark_non_differentiable: expected tensors, got NoneType"):
            ctx.mark_non_differentiable(None)
        with pytest.raises(TypeError, match="set_materialize_grads: expected a bool, got int"):
            ctx.set_materialize_grads(0)
        ctx.save_for_backward(x)
        assert ctx.saved_tensors == ()
        contexts.append(ctx)
        return x * 2

    checked = function(forward)
    x = leaf(3)
    y = checked.apply(x)
    assert contexts[0].saved_tensors == (x,)
    checked.apply(x.detach())
    assert contexts[1].saved_tensors == ()
    assert y.grad_fn.saved_tensors[0] is x


@contract("3.4")
def test_a_gradient_that_loses_its_imaginary_part_is_refused(leaf, constant):
    """A complex gradient of a real input is an error; a real one of a complex input is not."""
    x = leaf(3)
    with pytest.raises(RuntimeError, match=r"gradient 0 is complex128, its input float64"):
        function(lambda ctx, x: x * 2, lambda ctx, grad: grad * 1j).apply(x).sum().backward()
    assert x.grad is None
    z = constant(3).to(lucid.complex128).requires_grad_()
    function(lambda ctx, z: z.real * 2).apply(z).sum().backward()
    assert z.grad.tolist() == [1.0] * 3


@contract("3.4")
def test_a_named_tuple_of_gradients(leaf):
    """What backward returns may be a tuple of any kind."""

    class Grads(NamedTuple):
        x: lucid.Tensor
        factor: None

    x = leaf(3)
    function(lambda ctx, x, factor: x * factor, lambda ctx, grad: Grads(grad * 3, None)).apply(x, 3).sum().backward()
    assert x.grad.tolist() == [3.0] * 3


@contract("3.1")
def test_once_differentiable_outputs_are_of_one_node(leaf):
    """The gradients under create_graph are the outputs of one node named as PyTorch's, which cannot run."""
    product = function(lambda ctx, x, y: x * y, once_differentiable(lambda ctx, grad: (grad * 2, grad * 3)))
    x, y = leaf(3), leaf(3)
    a, b = lucid.autograd.grad((product.apply(x, y) ** 2).sum(), (x, y), create_graph=True)
    assert a.grad_fn is b.grad_fn
    assert (a.grad_fn.name(), a.output_nr, b.output_nr) == ("Error", 0, 1)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        b.sum().backward()


@contract("3.1")
def test_once_differentiable_bars_only_what_hangs_on_a_graph(leaf, constant):
    """A second derivative is refused where the gradient that came in has a graph; without one there is none to give."""
    product = function(lambda ctx, x, y: x * y, once_differentiable(lambda ctx, grad: (grad * 2, grad * 3)))
    x, y = leaf(3), leaf(3)
    for seed, barred in ((constant(3), False), (leaf(3), True)):
        grads = lucid.autograd.grad(product.apply(x, y), (x, y), seed, create_graph=True)
        assert [(grad.requires_grad, grad.grad_fn is not None) for grad in grads] == [(barred, barred)] * 2
    pair = function(lambda ctx, x: (x * 2, x * 3), once_differentiable(lambda ctx, one, other: one * 2 + other * 3))
    for seeds in ((leaf(3), constant(3)), (constant(3), leaf(3))):  # one of them is enough
        (grad,) = lucid.autograd.grad(pair.apply(x), x, seeds, create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            grad.sum().backward()


@contract("2.6")
def test_once_differentiable_outputs_count_changes_with_what_was_saved(leaf, constant):
    """A backward may return a saved tensor itself: who changes that gradient in place has changed the tensor."""
    factor = constant(3)

    def forward(ctx, x):
        ctx.save_for_backward(factor)
        return x * factor

    x = leaf(3)
    y = (function(forward, once_differentiable(lambda ctx, grad: ctx.saved_tensors[0])).apply(x) ** 2).sum()
    (grad,) = lucid.autograd.grad(y, x, create_graph=True)
    assert grad.grad_fn.name() == "Error"
    grad.mul_(2.0)
    assert factor._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@contract("3.1")
def test_a_gradient_that_came_into_a_graph_late_is_not_differentiated_twice_either(leaf, constant):
    """What once_differentiable bars includes a view of a gradient that a hook has changed since, in place."""
    x, factor, seed = leaf(2, 3), leaf(3, 2), constant(3, 2)
    y = function(
        lambda ctx, x: x * 2,
        once_differentiable(lambda ctx, grad: lucid.tensor(grad.cpu().numpy() * 2, device=grad.device)),
    ).apply(x)

    def change(grad):
        seed.mul_(factor)

    y.register_hook(change)
    (grad,) = lucid.autograd.grad(y.t(), x, seed, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


@contract("3.4")
def test_what_backward_gives_for_an_input_that_needs_no_gradient(leaf, constant):
    """It is neither looked at nor seen by posthooks, whatever its shape."""
    x, seen = leaf(3), []
    y = function(lambda ctx, x, other: x * 2, lambda ctx, grad: (grad * 2, lucid.ones(7))).apply(x, constant(3))
    y.grad_fn.register_hook(lambda given, received: seen.append([g is None for g in given]))
    assert y.grad_fn(lucid.ones_like(y))[1] is None
    y.sum().backward()
    assert seen == [[False, True]]
    assert x.grad.tolist() == [2.0] * 3


@contract("2.4")
def test_zeros_in_place_of_unused_gradients(leaf):
    """Under create_graph they are leaves that require grad; for an edge there are none, which is an error."""
    x, unused = leaf(3), leaf(2)
    y = (x * x).sum()
    for create_graph in (False, True):
        _, zeros = lucid.autograd.grad(
            y, (x, unused), retain_graph=True, create_graph=create_graph, materialize_grads=True
        )
        assert zeros.tolist() == [0.0, 0.0]
        assert zeros.requires_grad is create_graph
        assert zeros.is_leaf
    assert lucid.autograd.grad(zeros.sum(), unused, allow_unused=True) == (None,)
    edge = get_gradient_edge(unused)
    with pytest.raises(RuntimeError, match=r"element 1 .* GradientEdge"):
        lucid.autograd.grad(y, (x, edge), retain_graph=True, materialize_grads=True)
    assert lucid.autograd.grad(y, (x, edge), retain_graph=True, allow_unused=True)[1] is None
    (used,) = lucid.autograd.grad(y, get_gradient_edge(x), materialize_grads=True)
    assert used.tolist() == (x * 2).tolist()


@contract("2.4")
def test_an_edge_as_root_needs_no_gradient_if_it_has_one_element(leaf):
    """One of several elements, or of another shape than its gradient, is an error as it is for its tensor."""
    x = leaf(3)
    for root in ((x * x).sum(), (x * x)[:1]):
        expected = lucid.autograd.grad(root, x, retain_graph=True)[0].tolist()
        assert lucid.autograd.grad(get_gradient_edge(root), x, retain_graph=True)[0].tolist() == expected
        x.grad = None
        lucid.autograd.backward(get_gradient_edge(root))
        assert x.grad.tolist() == expected
    edge = get_gradient_edge(x * 2)
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        lucid.autograd.backward(edge)
    with pytest.raises(RuntimeError, match="mismatch in shape"):
        lucid.autograd.backward(edge, lucid.ones(2, dtype=lucid.float64))
    with pytest.raises(RuntimeError, match="mismatch in dtype"):
        lucid.autograd.backward(edge, lucid.ones(3, dtype=lucid.complex128))
    y, seen = x * 2, []
    y.grad_fn.register_prehook(lambda grads: seen.append(grads[0].dtype))
    lucid.autograd.backward(get_gradient_edge(y), lucid.ones(3, dtype=lucid.float32))
    assert seen == [lucid.float64]
    with pytest.raises(RuntimeError, match="get_gradient_edge"):
        lucid.autograd.backward(GradientEdge(edge.node, 0))


@contract("3.3")
def test_a_saved_output_that_takes_no_gradient_requires_none(leaf):
    """What was marked non-differentiable, or is an integer, comes back in backward as it is outside."""
    seen = []

    def forward(ctx, x):
        mask, place = x * 0, x.argmax()
        ctx.mark_non_differentiable(mask)
        out = x * 2
        ctx.save_for_backward(mask, place, out)
        return mask, place, out

    def backward(ctx, mask, place, grad):
        seen.extend(saved.requires_grad for saved in ctx.saved_tensors)
        return grad * 2

    function(forward, backward).apply(leaf(3))[2].sum().backward()
    assert seen == [False, False, True]


@contract("3.5")
@pytest.mark.parametrize("inner", [False, True])
def test_an_output_that_is_a_view_of_what_was_changed_is_refused(leaf, constant, inner):
    """Its values are no longer those that the Function gave, also where the memory itself is in no graph."""
    x, other = leaf(3), constant(3)
    view = function(lambda ctx, x, other: (other * 1 if inner else other)[:2], lambda ctx, grad: (None, None)).apply(
        x, other
    )
    assert inner or view._base is other
    with lucid.no_grad():
        (view if inner else other).mul_(2)
    assert view.requires_grad
    with pytest.raises(RuntimeError, match="view that was made inside Given"):
        view.sum()
    with lucid.no_grad():
        assert view.sum().item() == view.cpu().numpy().sum()
        with pytest.raises(RuntimeError, match="view that was made inside Given"):
            view.grad_fn


def test_inputs_of_grad_by_name(leaf):
    """A dictionary of inputs gives a dictionary of gradients, also batched; `only_inputs` is there for older code."""
    x, y = leaf(3), leaf(3)
    root = x * x * y
    given = {"x": x, "y": y}
    upstream = lucid.ones(3, dtype=lucid.float64)
    plain = lucid.autograd.grad(root, (x, y), upstream, retain_graph=True)
    named = lucid.autograd.grad(root, given, upstream, True, False, True)
    assert {name: grad.tolist() for name, grad in named.items()} == {
        name: grad.tolist() for name, grad in zip(given, plain, strict=True)
    }
    batched = lucid.autograd.grad(root, given, upstream[None], is_grads_batched=True, retain_graph=True)
    assert batched["y"][0].tolist() == plain[1].tolist()
    with pytest.warns(FutureWarning, match="only_inputs=False is ignored"):
        lucid.autograd.grad(root, x, upstream, only_inputs=False, retain_graph=True)
    root.backward(upstream, inputs=given)
    assert y.grad.tolist() == plain[1].tolist()


def test_what_grad_refuses(leaf):
    """None for tensors, no gradients for one, and settings that exclude each other."""
    x = leaf(3)
    y = (x * x).sum()
    for call in (
        lambda: lucid.autograd.backward(None),
        lambda: lucid.autograd.grad(None, x),
        lambda: lucid.autograd.grad(y, None),
    ):
        with pytest.raises(TypeError, match="got None"):
            call()
    with pytest.raises(RuntimeError, match="1 tensors and 0 gradients"):
        lucid.autograd.grad(y, x, [])
    with pytest.raises(ValueError, match="materialize_grads"):
        lucid.autograd.grad(y, x, allow_unused=False, materialize_grads=True)


def test_defaults_of_a_forward_without_context(leaf):
    """Where some arguments are left out, the last defaults are filled in, and none where all are given."""
    seen = []
    two_steps = function(
        lambda x, a=2.0, b=5.0: x * a + b,
        lambda ctx, grad: (grad * ctx.a, None, None),
        setup_context=lambda ctx, inputs, output: (seen.append(inputs[1:]), setattr(ctx, "a", inputs[1])),
    )
    x = leaf(3)
    for given in ((), (7.0,), (7.0, 8.0)):
        two_steps.apply(x, *given)
    assert seen == [(2.0, 5.0), (7.0, 5.0), (7.0, 8.0)]


def test_needs_input_grad_without_grad_mode(leaf, constant):
    """It says which arguments require grad, also where nothing is recorded."""
    seen = []
    given = function(lambda ctx, x, y: seen.append(ctx.needs_input_grad) or x + y)
    with lucid.no_grad():
        given.apply(leaf(2), constant(2))
    assert seen == [(True, False)]


def test_a_parameter_that_forward_sees_and_returns(leaf):
    """It stays the leaf that it is; what comes back is another tensor in the graph."""
    x, parameter = leaf(2), leaf(2)
    out = function(lambda ctx, x: parameter).apply(x)
    assert out is not parameter
    assert parameter.is_leaf
    assert not out.is_leaf


def test_what_stands_behind_a_freed_saved_tensor(leaf):
    """It cannot be read, nor packed by hooks, once the pass has freed it."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    x = leaf(2)
    out = function(forward).apply(x)
    (saved,) = out.grad_fn._raw_saved_tensors
    out.sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        saved.register_hooks(lambda t: t, lambda t: t)
    for name in ("_raw_saved_tensors", "saved_tensors"):
        with pytest.raises(RuntimeError, match="freed"):
            getattr(out.grad_fn, name)


def test_bfloat16_outputs_are_differentiable():
    """A Function's output of the half type that NumPy does not know carries its gradient."""
    x = lucid.ones(2, dtype=lucid.bfloat16, requires_grad=True)
    given = function(lambda ctx, x: x * 2, lambda ctx, grad: grad * 2)
    given.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


# ---- set_output_grad_dtype ----


def declaring(*dtypes):
    """Return a Function of three outputs, the last without a gradient, that notes what its backward gets."""
    seen = []

    def forward(ctx, x):
        ctx.set_output_grad_dtype(*dtypes)
        last = x.detach() * 2
        ctx.mark_non_differentiable(last)
        return x * 2, x * 3, last

    def backward(ctx, one, two, _):
        seen.append((one.dtype, two.dtype, one.tolist(), two.tolist()))
        return one * 2 + two * 3

    Three = function(forward, backward, name="Three")

    return Three, seen


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_come_in_the_declared_dtypes(create_graph):
    """Backward gets each gradient in the dtype that forward declared, zeros too; None leaves it that of the output."""
    three, seen = declaring(lucid.float64, None, None)
    x = lucid.ones(2, requires_grad=True)
    one, two, _ = three.apply(x)
    (grad,) = lucid.autograd.grad((one + two).sum(), x, create_graph=create_graph)
    assert seen == [(lucid.float64, lucid.float32, [1.0, 1.0], [1.0, 1.0])]
    assert grad.dtype is lucid.float32
    assert grad.tolist() == [5.0, 5.0]
    three.apply(x)[1].sum().backward()
    assert seen[1] == (lucid.float64, lucid.float32, [0.0, 0.0], [1.0, 1.0])
    if create_graph:
        # and the cast is part of the graph
        weight = lucid.full((2,), 3.0, requires_grad=True)
        (grad,) = lucid.autograd.grad((three.apply(x)[0] * weight).sum(), x, create_graph=True)
        grad.sum().backward(inputs=[weight])
        assert weight.grad.tolist() == [2.0, 2.0]
        assert weight.grad.dtype is lucid.float32


@pytest.mark.parametrize(
    ("dtypes", "message"),
    [
        ((lucid.float32,), "expected one dtype for each of 3 outputs, got 1"),
        ((None, None, lucid.float32), "output 2 gets no gradient: expected None for it, got lucid.float32"),
        (
            (lucid.int64, None, None),
            "expected floating-point or complex dtypes, got lucid.int64",
        ),
        (("number", None, None), "number"),
    ],
)
def test_dtypes_that_cannot_be_declared(dtypes, message):
    """A wrong number of dtypes, one of integers, and one of an output without a gradient are refused."""
    with pytest.raises(LucidError, match=message):
        declaring(*dtypes)[0].apply(lucid.ones(2, requires_grad=True))


# The identity, which hands no gradient on.
Unasked = function(lambda ctx, x: x.clone(), lambda ctx, grad: None)


def changed_in_part(x, values):
    """Return x, of which a row has been changed to others that require grad."""
    x[0] = values[1]
    return x


def hooked(module):
    """Return a module with hooks around its backward."""
    module.register_full_backward_hook(lambda *_: None)
    module.register_full_backward_pre_hook(lambda *_: None)
    return module


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.exp(),
        lambda x: lucid.cat([x, x]),
        lambda x: changed_in_part(x.clone(), x),
        lambda x: x.unbind(0)[0],
        lambda x: x.expand(3, *x.shape),
        lambda x: hooked(nn.Identity())(x),
        lambda x: hooked(nn.Softmax(-1))(x),
    ],
    ids=["an op", "a joined one", "one changed in part", "a part", "a view", "a hooked module", "a hooked op"],
)
@pytest.mark.parametrize("create_graph", [False, True])
def test_nodes_that_get_no_gradient_hand_none_on(make, create_graph):
    """A branch whose backward returns None adds nothing: gradients are those of the other branches."""
    x = lucid.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (Unasked.apply(make(x)).sum() + (x * 3).sum()).backward(create_graph=create_graph)
    assert x.grad.tolist() == [[3.0, 3.0], [3.0, 3.0]]


@pytest.mark.parametrize("given", [(3, 4), (3, 1), (5, 3, 4), (5, 3, 1), (1, 3, 4)])
def test_gradients_are_summed_to_the_shape_of_the_input(given, rng):
    """What is as large or larger, and broadcasts from it, is summed over what has been spread."""
    values = rng.standard_normal(given)

    Spread = function(lambda ctx, x: x.clone(), lambda ctx, grad: lucid.tensor(values))

    x = lucid.zeros(3, 1, dtype=lucid.float64, requires_grad=True)
    Spread.apply(x).sum().backward()
    expected = values.reshape(-1, *given[-2:]).sum(0).sum(1, keepdims=True)
    np.testing.assert_allclose(x.grad.numpy(force=True), expected, rtol=1e-12)
