"""The names under which code written for PyTorch's hooks looks for things: each is there, and does what it is for."""

from __future__ import annotations

import copy
import importlib
import inspect
from collections import OrderedDict

import pytest

import lucid
from lucid import nn
from lucid.autograd import Function
from lucid.autograd.hooks.owning import TableAttribute

A, G, F = lucid.autograd, lucid.autograd.graph, lucid.autograd.function


def leaf(*values):
    """Return a float64 tensor that requires grad."""
    return lucid.tensor(list(values), dtype=lucid.float64, requires_grad=True)


class Triple(Function):
    """Three times its argument."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 3

    @staticmethod
    def backward(ctx, grad):
        assert ctx.saved_tensors[0].shape == grad.shape
        return grad * 3


def use_handle(kind):
    """Take a module's hook off by its handle, and find the handle's type."""
    module = nn.Identity()
    handle = module.register_forward_hook(lambda m, a, o: o * 2)
    assert isinstance(handle, kind)
    assert handle.id in module._forward_hooks
    with handle:
        assert module(leaf(1.0)).tolist() == [2.0]
    return module(leaf(1.0)).tolist() == [1.0] and not module._forward_hooks


def use_tensor_handle():
    x = leaf(1.0)
    with x.register_hook(lambda g: g * 2) as handle:
        assert isinstance(handle, A.RemovableHandle)
        (x * 1).backward()
    return x.grad.tolist() == [2.0] and not isinstance(handle, lucid.utils.hooks.RemovableHandle)


def use_saved_tensors_hooks():
    x, seen = leaf(2.0), []
    with G.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        (x * x).backward()
    return len(seen) == 2


def use_disable():
    with pytest.raises(RuntimeError, match="off"), G.disable_saved_tensors_hooks("off"):
        G.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__()
    return True


def use_save_on_cpu():
    x = leaf(2.0)
    with G.save_on_cpu(pin_memory=False):
        y = x * x
    y.backward()
    return x.grad.tolist() == [4.0]


def use_multi_grad_hook():
    x, y, seen = leaf(1.0), leaf(2.0), []
    with G.register_multi_grad_hook([x, y], seen.append, mode="all"):
        (x * 3 + y).backward()
    return [g.tolist() for g in seen[0]] == [[3.0], [1.0]]


def use_mutation():
    x = leaf(1.0)
    with G.allow_mutation_on_saved_tensors():
        y = x * 2
        z = y * y
        y.zero_()
        z.backward()
    return x.grad.tolist() == [8.0]


def use_increment_version():
    x = leaf(1.0)
    G.increment_version(x)
    return x._version == 1


def use_queue_callback():
    x, seen = leaf(1.0), []
    x.register_hook(lambda g: G.queue_callback(lambda: seen.append(x.grad.tolist())))
    (x * 2).backward()
    x.register_hook(lambda g: A.Variable._execution_engine.queue_callback(lambda: seen.append("again")))
    (x * 2).backward()
    return seen == [[2.0], [4.0], "again"]


def use_current():
    x, seen = leaf(1.0), []
    y = x * 2
    y.register_hook(lambda g: seen.append((G.current_node() is y.grad_fn, G.current_graph_task_id() >= 0)))
    y.backward()
    return seen == [(True, True)] and G.current_node() is None and G.current_graph_task_id() == -1


def use_execution():
    """Read of the pass that runs what ported code reads of it."""
    C, x = lucid._C, leaf(1.0)
    y, other = (x * 2).exp(), x * 3
    assert (C._current_autograd_node(), C._current_graph_task_id()) == (None, -1)
    for outside in (C._current_graph_task_execution_order, lambda: C._will_engine_execute_node(other.grad_fn)):
        with pytest.raises(RuntimeError, match="during a backward pass"):
            outside()
    seen = []

    def look(grad):
        assert C._current_autograd_node() is y.grad_fn
        assert C._current_graph_task_id() >= 0
        assert C._will_engine_execute_node(y.grad_fn)
        assert not C._will_engine_execute_node(other.grad_fn)
        with pytest.raises(RuntimeError, match="expected a node"):
            C._will_engine_execute_node(None)
        seen.extend(node.name() for node in C._current_graph_task_execution_order())

    y.register_hook(look)
    y.backward()
    return seen == ["ExpBackward0", "MulBackward0", "AccumulateGrad"]


def use_saved_tensor():
    raw = (leaf(1.0) ** 2).grad_fn._raw_saved_self
    with pytest.raises(TypeError):
        A.SavedTensor()
    return isinstance(raw, A.SavedTensor)


def use_grad_mode():
    modes = A.grad_mode
    with modes.no_grad(), modes.enable_grad(), modes.set_grad_enabled(False), modes.set_multithreading_enabled(True):
        assert not (leaf(1.0) * 2).requires_grad
        with modes.inference_mode():
            return lucid.is_inference(leaf(1.0).detach() * 2)


def use_is_inference():
    with pytest.raises(TypeError, match="expected a Tensor"):
        lucid.is_inference([1.0])
    with lucid.inference_mode():
        made = lucid.ones(1)
    return lucid.is_inference(made) and made.is_inference() and not lucid.is_inference(leaf(1.0))


def use_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        @F.once_differentiable
        def backward(ctx, grad):
            return grad * 2

    x, seed = leaf(3.0), leaf(1.0)
    (slope,) = A.grad(Once.apply(x), x, seed, create_graph=True)
    with pytest.raises(NotImplementedError, match="once_differentiable"):
        slope.backward()
    return True


def use_inplace_function():
    class AddOne(F.InplaceFunction):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    y = leaf(1.0) * 2
    return issubclass(F.InplaceFunction, Function) and AddOne.apply(y) is y and y.tolist() == [3.0]


def use_node():
    node = (leaf(1.0) * 2).grad_fn
    assert isinstance(node, G.Node)
    assert not isinstance(leaf(1.0), G.Node)
    assert hasattr(node, "next_functions")
    assert hasattr(node, "metadata")
    accumulate = node.next_functions[0][0]
    return accumulate.name() == "AccumulateGrad" and node.name() == "MulBackward0" and callable(node.register_prehook)


def use_gradient_edge():
    x = leaf(2.0)
    y = x * 3
    edge = G.get_gradient_edge(y)
    assert isinstance(edge, G.GradientEdge)
    assert edge.node is y.grad_fn
    return A.grad(y * y, edge)[0].tolist() == [12.0] and edge.output_nr == 0


def use_backward_function_class():
    node = Triple.apply(leaf(1.0)).grad_fn
    return isinstance(node, F.BackwardCFunction) and isinstance(node, G.Node) and node.name() == "TripleBackward"


def use_global(register, count, trigger="forward"):
    """Register a hook of all modules, see it called with `count` arguments, and take it off."""
    seen = []
    with register(lambda *args: seen.append(len(args))):
        module = nn.Linear(1, 1)
        if trigger == "forward":
            module(lucid.ones(1, 1, requires_grad=True)).sum().backward()
        elif trigger == "buffer":
            module.register_buffer("extra", lucid.ones(1))
        elif trigger == "module":
            module.child = nn.Identity()
    calls = len(seen)
    nn.Linear(1, 1)(lucid.ones(1, 1, requires_grad=True)).sum().backward()
    return seen[0] == count and len(seen) == calls


def use_hook():
    module = nn.Identity()
    hook = nn.hooks.Hook(posthook=lambda m, a, o: o + 1)
    hook.register(module)
    return module(leaf(1.0)).tolist() == [2.0] and nn.Hook is nn.hooks.Hook


class Recorder(nn.hooks.ContextualHook):
    """Keeps how often a module was called."""

    def __init__(self):
        super().__init__(prehook="before")
        self.calls = 0

    def before(self, module, args):
        self.calls += 1


def use_contextual_hook():
    module, recorder = nn.Identity(), Recorder()
    recorder.register(module)
    module(leaf(1.0))
    return recorder.calls == 1


class Norm(nn.hooks.StateHook):
    """Keeps the name of the module's type."""

    def hook(self, module):
        self.seen = type(module).__name__


def use_state_hook():
    module = nn.Identity()
    hook = Norm(module)
    hook.register()
    module(leaf(1.0))
    return hook.seen == "Identity"


def use_module_dictionaries():
    """Existing tools read the lengths of a module's tables, their keys, and copy them."""
    module = nn.Linear(1, 1)
    # PyTorch's names, which stay; whatever else a module keeps hooks in looks the same
    tables = [
        "_forward_hooks",
        "_forward_hooks_with_kwargs",
        "_forward_hooks_always_called",
        "_forward_pre_hooks",
        "_forward_pre_hooks_with_kwargs",
        "_backward_hooks",
        "_backward_pre_hooks",
        "_state_dict_hooks",
        "_state_dict_pre_hooks",
        "_load_state_dict_pre_hooks",
        "_load_state_dict_post_hooks",
        *(name for name in dir(nn.Module) if isinstance(getattr(nn.Module, name), TableAttribute)),
    ]
    assert all(len(getattr(module, name)) == 0 and isinstance(getattr(module, name), OrderedDict) for name in tables)
    assert list(module._parameters) == ["weight", "bias"]
    assert len(module._buffers) == len(module._modules) == 0
    handle = module.register_forward_hook(lambda m, a, k, o: None, with_kwargs=True, always_call=True)
    assert list(module._forward_hooks) == [handle.id] == list(module._forward_hooks_with_kwargs)
    module._forward_hooks.clear()
    return len(module._forward_hooks) == 0


def use_tensor_attributes():
    x = leaf(1.0, 2.0)
    assert x._backward_hooks is None

    def hook(grad):
        return None

    handle = x.register_hook(hook)
    assert list(x._backward_hooks.values()) == [hook]
    handle.remove()
    assert not x._backward_hooks
    after = x.register_post_accumulate_grad_hook(lambda t: None)
    assert len(x._post_accumulate_grad_hooks) == 1
    after.remove()
    y = x * 2
    y.register_hook(hook)
    assert len(y._backward_hooks) == 1
    view = y[0]
    assert view._base is y
    assert y._base is None
    before = y._version
    view.mul_(2)
    assert y._version == view._version == before + 1
    assert copy.deepcopy(x)._backward_hooks is None
    return True


def use_saved_attributes():
    x = leaf(3.0)
    node = (x**2).grad_fn
    assert node._saved_exponent == 2
    assert node._saved_self.tolist() == [3.0]
    node._raw_saved_self.register_hooks(lambda t: t, lambda t: t * 0)
    return [a for a in dir((x * x).grad_fn) if a.startswith("_saved")] == ["_saved_other", "_saved_self"]


def use_functional():
    def f(x):
        return (x * x).sum()

    x, v = lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 10.0])
    functional = A.functional
    results = [functional.vjp(f, x)[1], functional.jvp(f, x, v)[1], functional.vhp(f, x, v)[1]]
    results += [functional.hvp(f, x, v)[1], functional.jacobian(f, x), functional.hessian(f, x)]
    return [r.tolist() for r in results] == [[2, 4], 42, [2, 20], [2, 20], [2, 4], [[2, 0], [0, 2]]]


def use_checkpoint():
    checkpointing = lucid.utils.checkpoint
    x = leaf(1.0)
    with checkpointing.set_checkpoint_early_stop(False), checkpointing.set_checkpoint_debug_enabled(None):
        checkpointing.checkpoint(
            lambda x: x * 2, x, use_reentrant=False, context_fn=checkpointing.noop_context_fn
        ).backward()
    checkpointing.checkpoint_sequential([lucid.neg, lucid.neg], 2, x, use_reentrant=True).backward()
    checkpointing.CheckpointFunction.apply(lambda x: x * 5, True, x).backward()
    return x.grad.tolist() == [8.0] and issubclass(checkpointing.CheckpointError, RuntimeError)


def use_record_function():
    with A.profiler.record_function("a range"):
        return True


def use_multithreading():
    with A.set_multithreading_enabled(False):
        return not A.is_multithreading_enabled()


def use_variable():
    return isinstance(leaf(1.0), A.Variable) and A.Variable(leaf(1.0), requires_grad=True).is_leaf


def use_function_ctx():
    node = Triple.apply(leaf(1.0)).grad_fn
    return isinstance(node.ctx, F.FunctionCtx) and node.saved_tensors[0].tolist() == [1.0]


MODULE = "nn.modules.module"
USES = {
    "utils.hooks.RemovableHandle": lambda: use_handle(lucid.utils.hooks.RemovableHandle),
    "utils.checkpoint": use_checkpoint,
    "autograd.Function": lambda: Triple.apply(leaf(1.0)).tolist() == [3.0],
    "autograd.FunctionCtx": use_function_ctx,
    "autograd.Variable": use_variable,
    "autograd.RemovableHandle": use_tensor_handle,
    "autograd.backward": lambda: A.backward([x := leaf(1.0)], [leaf(2.0)]) is None and x.grad.tolist() == [2.0],
    "autograd.grad": lambda: A.grad((x := leaf(3.0)) * x, x)[0].tolist() == [6.0],
    "autograd.gradcheck": lambda: A.gradcheck(lambda x: x.sin(), leaf(1.0)),
    "autograd.gradgradcheck": lambda: A.gradgradcheck(lambda x: x.sin(), leaf(1.0)),
    "autograd.functional": use_functional,
    "autograd.profiler.record_function": use_record_function,
    "autograd.set_multithreading_enabled": use_multithreading,
    "autograd.is_multithreading_enabled": lambda: A.is_multithreading_enabled(),
    "autograd.graph.Node": use_node,
    "autograd.graph.GradientEdge": use_gradient_edge,
    "autograd.graph.get_gradient_edge": use_gradient_edge,
    "autograd.graph.saved_tensors_hooks": use_saved_tensors_hooks,
    "autograd.graph.save_on_cpu": use_save_on_cpu,
    "autograd.graph.disable_saved_tensors_hooks": use_disable,
    "autograd.graph.register_multi_grad_hook": use_multi_grad_hook,
    "autograd.graph.allow_mutation_on_saved_tensors": use_mutation,
    "autograd.graph.increment_version": use_increment_version,
    "autograd.graph.queue_callback": use_queue_callback,
    "autograd.graph.current_node": use_current,
    "autograd.graph.current_graph_task_id": use_current,
    "_C._current_autograd_node": use_execution,
    "_C._current_graph_task_id": use_execution,
    "_C._current_graph_task_execution_order": use_execution,
    "_C._will_engine_execute_node": use_execution,
    "autograd.SavedTensor": use_saved_tensor,
    "autograd.grad_mode": use_grad_mode,
    "is_inference": use_is_inference,
    "autograd.function.once_differentiable": use_once_differentiable,
    "autograd.function.InplaceFunction": use_inplace_function,
    "autograd.function.FunctionCtx": use_function_ctx,
    "autograd.function.BackwardCFunction": use_backward_function_class,
    f"{MODULE}.register_module_forward_pre_hook": lambda: use_global(nn.register_module_forward_pre_hook, 2),
    f"{MODULE}.register_module_forward_hook": lambda: use_global(nn.register_module_forward_hook, 3),
    f"{MODULE}.register_module_full_backward_pre_hook": lambda: use_global(
        nn.register_module_full_backward_pre_hook, 2
    ),
    f"{MODULE}.register_module_full_backward_hook": lambda: use_global(nn.register_module_full_backward_hook, 3),
    f"{MODULE}.register_module_parameter_registration_hook": lambda: use_global(
        nn.register_module_parameter_registration_hook, 3
    ),
    f"{MODULE}.register_module_buffer_registration_hook": lambda: use_global(
        nn.register_module_buffer_registration_hook, 3, "buffer"
    ),
    f"{MODULE}.register_module_module_registration_hook": lambda: use_global(
        nn.register_module_module_registration_hook, 3, "module"
    ),
    "nn.hooks.RemovableHandle": lambda: use_handle(nn.hooks.RemovableHandle),
    "nn.hooks.Hook": use_hook,
    "nn.hooks.ContextualHook": use_contextual_hook,
    "nn.hooks.StateHook": use_state_hook,
    "nn.Module": use_module_dictionaries,
    "Tensor": use_tensor_attributes,
    "autograd.graph": use_saved_attributes,
}


def find(name):
    """Return what stands under a dotted name of lucid, imported as ported code would."""
    place, _, last = f"lucid.{name}".rpartition(".")
    return getattr(importlib.import_module(place), last)


@pytest.mark.parametrize("name", USES)
def test_each_name(name):
    """The name can be imported, says what it is, and works."""
    assert inspect.getdoc(find(name))
    assert USES[name]()


@pytest.mark.parametrize(
    "module", ["autograd", "autograd.graph", "autograd.function", "autograd.functional", "utils", "utils.checkpoint"]
)
def test_everything_public_is_documented(module):
    """Every name in `__all__` exists; classes and functions have a documentation with an example, or parameters."""
    module = importlib.import_module(f"lucid.{module}")
    for name in module.__all__:
        text = inspect.getdoc(getattr(module, name))
        assert text, name
        assert text.splitlines()[0].strip(), name
