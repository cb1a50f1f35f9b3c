"""The examples of the five documents that hooks are specified by, as printed there, with what they must do.

Each example's source stands as in its document, with the indentation of classes restored; assertions follow.
"""

from __future__ import annotations

import gc
import inspect

import pytest

import lucid
from lucid import nn
from lucid.autograd import Function
from lucid.nn.modules.module import register_module_full_backward_hook
from tests.docs.pages import run

contract = pytest.mark.contract


# ---- S000: RemovableHandle of Tensor.register_hook ----


@pytest.mark.cpu("tensors on another device print it")
@contract("1.1")
def test_handle_of_a_tensor_hook():
    """The hook prints the gradient once, the removed hook no more, and the block's hook doubles what it passes on."""
    names, printed = run("""
        import lucid
        x = lucid.tensor([1.0, 2.0], requires_grad=True)
        handle = x.register_hook(lambda g: print('grad =', g))
        (x * x).sum().backward()
        handle.remove()
        before = x.grad.tolist()
        with x.register_hook(lambda g: g * 2) as h:
            (x * x).sum().backward()
    """)
    assert printed == ["grad = tensor([2., 4.])"]
    assert names["before"] == [2, 4]
    assert names["x"].grad.tolist() == [2 + 4, 4 + 8]
    (names["x"] * names["x"]).sum().backward()
    assert names["x"].grad.tolist() == [6 + 2, 12 + 4]


@contract("1.10")
def test_the_handle_as_documented():
    """The handle drops one entry of the list, by identity, once; `with` gives the handle itself; two classes."""

    class Alike:
        def __eq__(self, other):
            return True

        __hash__ = None

    first, second = Alike(), Alike()
    hooks = [first, second, second]
    handle = lucid.autograd.RemovableHandle(hooks, second)
    assert handle._hooks_list is hooks
    assert handle._hook is second
    with handle as bound:
        assert bound is handle
    assert [hook is first for hook in hooks] == [True, False]
    handle.remove()
    assert len(hooks) == 2
    assert lucid.autograd.RemovableHandle is not nn.hooks.RemovableHandle
    assert [*inspect.signature(lucid.autograd.RemovableHandle).parameters] == ["hooks_list", "hook"]


# ---- S001: module hooks ----


@contract("4.1")
def test_forward_pre_hook():
    """The pre-hook's tuple becomes the arguments; the returned callable takes the hook off."""
    names, _ = run("""
        import lucid
        import lucid.nn as nn
        class Scale(nn.Module):
            def forward(self, x):
                return x * 2
        def pre_hook(module, args):
            (x,) = args
            return (x + 1,)
        m = Scale()
        remove = m.register_forward_pre_hook(pre_hook)
        x = lucid.ones((2, 2))
        y = m(x) # effectively (x + 1) * 2
        remove()
    """)
    assert names["y"].tolist() == [[4, 4], [4, 4]]
    assert names["m"](names["x"]).tolist() == [[2, 2], [2, 2]]


@contract("4.2")
def test_forward_hook():
    """What the hook returns is the output; after removal the module's own result is."""
    names, _ = run("""
        import lucid
        import lucid.nn as nn
        class LinearBias(nn.Module):
            def __init__(self):
                super().__init__()
                self.b = nn.Parameter(lucid.ones((1,)))
            def forward(self, x):
                return x + self.b
        def post_hook(module, args, output):
            return output * 3
        m = LinearBias()
        remove = m.register_forward_hook(post_hook)
        x = lucid.ones((1,))
        y = m(x) # output is multiplied by 3
        remove()
    """)
    assert names["y"].tolist() == [6]
    assert names["m"](names["x"]).tolist() == [2]
    names["y"].backward()
    assert names["m"].b.grad.tolist() == [3]


@pytest.mark.cpu("tensors on another device print it")
@contract("5.7")
def test_backward_hook():
    """The hook of two arguments gets the output tensor's gradient; `backward` takes a tensor of one element."""
    names, printed = run("""
        import lucid
        import lucid.nn as nn
        class Square(nn.Module):
            def forward(self, x):
                return x * x
        def grad_hook(tensor, grad):
            print("grad:", grad)
        m = Square()
        m.register_backward_hook(grad_hook)
        x = lucid.ones((1,), requires_grad=True)
        y = m(x)
        y.backward()
    """)
    assert printed == ["grad: tensor([1.])"]
    assert names["x"].grad.tolist() == [2]


@pytest.mark.cpu("tensors on another device print it")
@contract("5.3")
def test_full_backward_pre_hook():
    """The pre-hook gets a tuple with the output's gradient, and may return it."""
    names, printed = run("""
        import lucid
        import lucid.nn as nn
        class Add(nn.Module):
            def forward(self, x, y):
                return x + y
        def pre_full_backward(module, grad_out):
            print("grad_out:", grad_out)
            return grad_out
        m = Add()
        m.register_full_backward_pre_hook(pre_full_backward)
        x = lucid.ones((1,), requires_grad=True)
        y = lucid.ones((1,), requires_grad=True)
        out = m(x, y)
        out.backward()
    """)
    assert printed == ["grad_out: (tensor([1.]),)"]
    assert [names[name].grad.tolist() for name in "xy"] == [[1], [1]]


@pytest.mark.cpu("tensors on another device print it")
@contract("5.2")
def test_full_backward_hook():
    """The hook gets the gradients of both positional inputs and of the output, as tuples."""
    names, printed = run("""
        import lucid
        import lucid.nn as nn
        class Mul(nn.Module):
            def forward(self, x, y):
                return x * y
        def full_backward(module, grad_in, grad_out):
            print("grad_in:", grad_in)
            print("grad_out:", grad_out)
        m = Mul()
        m.register_full_backward_hook(full_backward)
        x = lucid.ones((1,), requires_grad=True)
        y = lucid.ones((1,), requires_grad=True)
        out = m(x, y)
        out.backward()
    """)
    assert printed == ["grad_in: (tensor([1.]), tensor([1.]))", "grad_out: (tensor([1.]),)"]
    assert [names[name].grad.tolist() for name in "xy"] == [[1], [1]]


@contract("7.1")
def test_state_dict_pre_hook():
    """The pre-hook of a bare Module runs with the empty prefix."""
    _, printed = run("""
        import lucid.nn as nn
        def pre_state(module, prefix, keep_vars):
            print("saving with prefix:", prefix)
        m = nn.Module()
        m.register_state_dict_pre_hook(pre_state)
        _ = m.state_dict()
    """)
    assert printed == ["saving with prefix: "]


@contract("7.1")
@contract("7.3")
def test_state_dict_hook():
    """What the hook puts into the state dict, a string too, is in the result."""
    names, _ = run("""
        import lucid.nn as nn
        def post_state(module, state_dict, prefix, keep_vars):
            state_dict[prefix + "note"] = "custom"
        m = nn.Module()
        m.register_state_dict_hook(post_state)
        sd = m.state_dict()
    """)
    assert dict(names["sd"]) == {"note": "custom"}


@contract("7.2")
def test_load_state_dict_pre_hook():
    """The hook of three arguments may drop a key before a strict load, from a copy of the caller's dict."""
    names, _ = run("""
        import lucid.nn as nn
        def pre_load(module, state_dict, strict):
            state_dict.pop("legacy_key", None)
        m = nn.Module()
        m.register_load_state_dict_pre_hook(pre_load)
        m.load_state_dict({})
    """)
    given = {"legacy_key": lucid.tensor([1.0])}
    names["m"].load_state_dict(given)
    assert [*given] == ["legacy_key"]


@contract("7.2")
def test_load_state_dict_post_hook():
    """The hook of four arguments prints nothing where nothing is missing, and the names where something is."""
    source = """
        import lucid.nn as nn
        def post_load(module, missing, unexpected, strict):
            if missing:
                print("missing:", missing)
        m = nn.Module()
        m.register_load_state_dict_post_hook(post_load)
        m.load_state_dict({}, strict=False)
    """
    assert run(source)[1] == []
    assert run(source.replace("nn.Module()", "nn.Linear(1, 1)"))[1] == ["missing: ['weight', 'bias']"]


# ---- S002: Function and FunctionCtx ----


@contract("3.1")
def test_square_function():
    """The printed Function computes x*x and its gradient; its context carries tensors and attributes."""
    names, _ = run("""
        import lucid
        from lucid.autograd import Function
        class Square(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                ctx.shape = x.shape
                return x * x
            @staticmethod
            def backward(ctx, grad_out):
                (x,) = ctx.saved_tensors
                return 2 * x * grad_out
    """)
    x = lucid.tensor([1.5, -2.0, 0.25], requires_grad=True)
    y = names["Square"].apply(x)
    assert y.tolist() == [2.25, 4.0, 0.0625]
    y.backward(lucid.tensor([3.0, -1.0, 2.0]))
    assert x.grad.tolist() == [9.0, 4.0, 1.0]


@contract("3.1")
def test_context_as_documented():
    """A fresh context per call; the last `save_for_backward` wins; marked outputs carry no gradient."""
    contexts = []

    class Split(Function):
        @staticmethod
        def forward(ctx, x, scale, y):
            contexts.append(ctx)
            ctx.save_for_backward(x, y)
            ctx.save_for_backward(y, x)
            mask = x > 0
            ctx.mark_non_differentiable(mask)
            return x * y, mask

        @staticmethod
        def backward(ctx, grad, grad_of_mask):
            (y, _) = ctx.saved_tensors
            assert ctx.needs_input_grad == (True, False, False)
            return grad * y, None, None

    x = lucid.tensor([1.0, -3.0], requires_grad=True)
    y = lucid.tensor([5.0, 7.0])
    product, mask = Split.apply(x, 2, y)
    assert (product.requires_grad, mask.requires_grad) == (True, False)
    Split.apply(x, 2, y)
    assert contexts[0] is not contexts[1]
    product.backward(lucid.tensor([2.0, -1.0]))
    assert x.grad.tolist() == [10.0, -7.0]


# ---- S003: Hook ----


def hooked(**settings):
    """Return (module, Hook with both hooks, list of their calls)."""
    calls = []

    def prehook(module, args):
        calls.append("pre")
        return (args[0] + 1,)

    def posthook(module, args, output):
        calls.append("post")
        return output * 10

    return nn.Identity(), nn.Hook(prehook, posthook, **settings), calls


@contract("9.2")
@contract("9.3")
def test_hook_object_registers_and_deregisters():
    """Both hooks run while registered, in order; deregistering is safe at any time and undoes both."""
    module, hook, calls = hooked()
    hook.deregister()
    hook.register(module)
    assert module(lucid.tensor([1.0])).tolist() == [20]
    assert calls == ["pre", "post"]
    hook.deregister()
    hook.deregister()
    assert module(lucid.tensor([1.0])).tolist() == [1]


@contract("9.4")
@pytest.mark.parametrize(("train", "evaluate"), [(True, True), (True, False), (False, True), (False, False)])
def test_hook_object_heeds_the_mode(train, evaluate):
    """`train_update` and `eval_update` say in which mode of the module the hooks run."""
    module, hook, _ = hooked(train_update=train, eval_update=evaluate)
    hook.register(module)
    assert module(lucid.tensor([1.0])).tolist() == [20 if train else 1]
    module.eval()
    assert module(lucid.tensor([1.0])).tolist() == [20 if evaluate else 1]


@contract("9.1")
def test_hook_object_passes_keyword_arguments_on():
    """`prehook_kwargs` and `posthook_kwargs` go to the registrations: here the hooks see keyword arguments."""

    class Power(nn.Module):
        def forward(self, x, exponent=1):
            return x**exponent

    hook = nn.Hook(
        lambda module, args, kwargs: (args, {"exponent": kwargs["exponent"] + 1}),
        lambda module, args, kwargs, output: output + kwargs["exponent"],
        prehook_kwargs={"with_kwargs": True},
        posthook_kwargs={"with_kwargs": True},
    )
    module = Power()
    hook.register(module)
    assert module(lucid.tensor([2.0]), exponent=2).tolist() == [8 + 3]


@contract("9.1")
def test_hook_object_needs_a_hook():
    """At least one of prehook and posthook must not be None."""
    with pytest.raises(RuntimeError):
        nn.Hook()


@contract("9.5")
def test_hook_object_leaves_with_its_last_reference():
    """Deleting the Hook takes its hooks off the module at once."""
    module, hook, _ = hooked()
    hook.register(module)
    gc.disable()
    try:
        del hook
        assert module(lucid.tensor([1.0])).tolist() == [1]
    finally:
        gc.enable()


# ---- S004: register_full_backward_hook ----


class FullyConnected(nn.Module):
    """A module with a tensor, a number and a keyword argument."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def forward(self, x, scale, *, shift=None):
        out = self.inner(x) * scale
        return out if shift is None else out + shift


@contract("5.1")
def test_registered_as_documented():
    """Signature, defaults and the kind of handle."""
    parameters = inspect.signature(FullyConnected().register_full_backward_hook).parameters
    assert [*parameters][:2] == ["hook", "prepend"]
    assert parameters["prepend"].default is False
    handle = FullyConnected().register_full_backward_hook(lambda *_: None)
    assert isinstance(handle, nn.hooks.RemovableHandle)


@contract("5.2")
def test_arguments_of_the_hook():
    """Positional inputs only, None for what is no tensor; the hook runs if and only if gradients are computed."""
    module, seen = FullyConnected(), []
    handle = module.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append((m, grad_in, grad_out)))
    x = lucid.tensor([[1.0, -2.0, 0.5]], requires_grad=True)
    shift = lucid.tensor([0.5, 0.5], requires_grad=True)
    upstream = lucid.tensor([[2.0, -3.0]])
    module(x, 4.0, shift=shift).backward(upstream)
    ((owner, grad_in, grad_out),) = seen
    assert owner is module
    assert len(grad_in) == 2
    assert grad_in[0].tolist() == (upstream @ module.inner.weight * 4).tolist()
    assert grad_in[1] is None
    assert grad_out[0].tolist() == upstream.tolist()
    with lucid.no_grad():
        module(x, 4.0)
    handle.remove()
    module(x, 4.0).sum().backward()
    assert len(seen) == 1


@contract("5.1")
def test_a_returned_gradient_is_used():
    """What the hook returns takes the place of grad_input for all that follows."""
    module = FullyConnected()
    module.register_full_backward_hook(lambda m, grad_in, grad_out: (grad_in[0] * 0 + 7, None))
    seen = []
    module.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append(grad_in[0].tolist()))
    x = lucid.tensor([[1.0, -2.0, 0.5]], requires_grad=True)
    module(x, 4.0).backward(lucid.tensor([[2.0, -3.0]]))
    assert x.grad.tolist() == [[7, 7, 7]]
    assert seen == [[[7, 7, 7]]]


@contract("5.6")
def test_views_are_handed_over_and_in_place_changes_refused():
    """The forward gets a view of its input, the caller a view of the output; modifying either in place raises."""

    class InPlace(nn.Module):
        def forward(self, x):
            return x.mul_(2)

    module = InPlace()
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    module.register_full_backward_hook(lambda *_: None)
    with pytest.raises(RuntimeError):
        module(x * 1)
    linear = nn.Linear(2, 2)
    linear.register_full_backward_hook(lambda *_: None)
    received = []
    linear.register_forward_pre_hook(lambda m, args: None)
    linear.forward = lambda given: received.append(given) or nn.Linear.forward(linear, given)
    y = linear(x)
    assert received[0] is not x
    assert received[0].tolist() == x.tolist()
    with pytest.raises(RuntimeError):
        y.add_(1)


@contract("0.2")
@contract("6")
def test_order_of_backward_hooks():
    """Global hooks fire before all others; a prepended hook before those that the module has."""
    module, order = FullyConnected(), []
    module.register_full_backward_hook(lambda *_: order.append("second"))
    module.register_full_backward_hook(lambda *_: order.append("first"), prepend=True)

    def everywhere(owner, grad_in, grad_out):
        if owner is module:
            order.append("global")

    with register_module_full_backward_hook(everywhere):
        x = lucid.tensor([[1.0, -2.0, 0.5]], requires_grad=True)
        module(x, 4.0).backward(lucid.tensor([[2.0, -3.0]]))
    assert order == ["global", "first", "second"]
