"""Sections 0 and 1 of the hooks contract: tensor hooks and their handle."""

from __future__ import annotations

import copy
import functools
import gc
import itertools
import threading
import weakref
from typing import Any

import pytest

import lucid
from lucid.autograd import RemovableHandle
from lucid.autograd.hooks import table as tables
from tests.pieces import function_of, leaf, no_collections, raising

contract = pytest.mark.contract


@contract("0.1")
def test_none_keeps_and_a_tensor_replaces() -> None:
    """None leaves the gradient as it is, a returned tensor takes its place."""
    x = leaf(1.0, 2.0)
    x.register_hook(lambda grad: None)
    x.register_hook(lambda grad: grad * 10)
    (x * x).sum().backward()
    assert x.grad.tolist() == [20.0, 40.0]


@contract("0.2")
@contract("1.3")
def test_hooks_chain_in_order_of_registration() -> None:
    """Each hook gets what the one before returned."""
    x = leaf(3.0)
    seen = []
    x.register_hook(lambda grad: seen.append(grad.item()) or grad + 1)
    x.register_hook(lambda grad: seen.append(grad.item()) or grad * 2)
    x.register_hook(lambda grad: seen.append(grad.item()))
    (5 * x).backward()
    assert seen == [5.0, 6.0, 12.0]
    assert x.grad.item() == 12.0


@pytest.mark.parametrize("kind", ["leaf", "op"])
def test_a_hook_that_hangs_another_kind_beside_itself(kind: str) -> None:
    """It fires once all the same, and what it has hung there takes its turn in the same pass."""
    x = leaf(3.0)
    y = x if kind == "leaf" else x * 1
    events: list[str] = []

    def hang(grad: Any) -> Any:
        events.append("hang")
        if kind == "leaf":
            y.register_post_accumulate_grad_hook(lambda _: events.append("added"))
        else:
            y.retain_grad()
            y.grad_fn.register_prehook(lambda _: events.append("added"))
        return grad * 2

    y.register_hook(hang)
    y.register_hook(lambda _: events.append("after"))
    (5 * y).backward()
    assert events == ["hang", "after", "added"]
    assert (x.grad.item(), y.grad.item()) == (10.0, 10.0)


@pytest.mark.parametrize("others", [*itertools.permutations(("prehook", "posthook", "retained"), 2)], ids="-".join)
@pytest.mark.parametrize("first", [True, False])
def test_a_tensor_hook_beside_each_other_kind(others: tuple[str, str], first: bool) -> None:
    """Each fires, alone beside a tensor hook or with a third, in whatever order they were registered."""
    for kinds in (others[:1], others):
        x = leaf(3.0)
        y = x * 1
        node: Any = y.grad_fn
        events: list[str] = []
        register = {
            "prehook": lambda node=node, events=events: node.register_prehook(lambda _: events.append("prehook")),
            "posthook": lambda node=node, events=events: node.register_hook(lambda *_: events.append("posthook")),
            "retained": y.retain_grad,
            "hook": lambda y=y, events=events: y.register_hook(lambda _: events.append("hook")),
        }
        for kind in ("hook", *kinds) if first else (*kinds, "hook"):
            register[kind]()
        (5 * y).backward()
        assert sorted(events) == sorted({"hook", *kinds} - {"retained"})
        assert x.grad.item() == 5.0
        assert "retained" not in kinds or y.grad.item() == 5.0


@contract("0.3")
def test_firing_goes_over_a_snapshot() -> None:
    """A hook removed while hooks fire still fires in this pass, one added waits for the next."""
    x = leaf(1.0)
    events = []

    def first(grad: object) -> None:
        events.append("first")
        second_handle.remove()
        x.register_hook(lambda grad: events.append("added"))

    first_handle = x.register_hook(first)
    second_handle = x.register_hook(lambda grad: events.append("second"))
    (x * 2).backward()
    assert events == ["first", "second"]
    first_handle.remove()
    events.clear()
    (x * 2).backward()
    assert events == ["added"]


@contract("0.4")
def test_handle_is_callable_idempotent_and_a_context() -> None:
    """handle(), remove() twice and leaving a with block each take the hook off; exceptions pass."""
    x = leaf(1.0)
    calls = []
    for take_off in (lambda h: h(), lambda h: (h.remove(), h.remove())):
        handle = x.register_hook(lambda grad: calls.append(1))
        take_off(handle)
    with pytest.raises(ZeroDivisionError), x.register_hook(lambda grad: calls.append(2)) as handle:
        assert isinstance(handle, RemovableHandle)
        raise ZeroDivisionError
    (x * 2).backward()
    assert calls == []


@contract("0.5")
def test_an_exception_keeps_its_type_and_says_which_hook() -> None:
    """The note names hook, file, kind, tensor and index; later hooks and the accumulation do not happen."""
    x, y = leaf(1.0), leaf(2.0)
    later = []

    def explode(grad: object) -> None:
        raise KeyError("boom")

    x.register_hook(lambda grad: None)
    x.register_hook(explode)
    x.register_hook(later.append)
    with pytest.raises(KeyError, match="boom") as caught:
        (x * y).backward()
    (note,) = caught.value.__notes__
    assert "explode" in note
    assert "test_hooks.py:" in note
    assert "tensor hook number 1" in note
    assert "leaf tensor of shape (1,), float64" in note
    assert later == []
    assert x.grad is None
    assert lucid.is_grad_enabled()
    z = leaf(4.0)
    (z * z).backward()
    assert z.grad.item() == 8.0


class Equal:
    """Hooks that are all equal, as two methods of one object are; one of them fails."""

    def __init__(self, *, fails: bool) -> None:
        self.fails = fails

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, grad: object) -> None:
        if self.fails:
            raise ZeroDivisionError


@contract("0.5")
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another kind"])
def test_an_error_counts_the_very_hook(beside: bool) -> None:
    """The note's number is that of the hook that raised, also where another is equal to it."""
    x = leaf(1.0)
    for fails in (False, True):
        x.register_hook(Equal(fails=fails))
    if beside:
        x.register_post_accumulate_grad_hook(lambda tensor: None)
    with pytest.raises(ZeroDivisionError) as caught:
        (x * 2).backward()
    assert "tensor hook number 1" in caught.value.__notes__[0]


@contract("0.5")
@pytest.mark.parametrize("register", ["register_hook", "register_post_accumulate_grad_hook"])
def test_an_interrupt_is_no_error_of_a_hook(register: str) -> None:
    """Ctrl-C while a hook runs passes as it is: no note puts it down to the hook."""
    x = leaf(1.0)
    getattr(x, register)(raising(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt) as caught:
        (x * 2).backward()
    assert not hasattr(caught.value, "__notes__")


@contract("0.6")
@pytest.mark.parametrize("wrong", [None, 3, "hook"])
def test_what_cannot_be_called_is_refused_at_registration(wrong: object) -> None:
    """A TypeError, and nothing is registered."""
    x = leaf(1.0)
    for register in (x.register_hook, x.register_post_accumulate_grad_hook, (x * 2).grad_fn.register_hook):
        with pytest.raises(TypeError, match="expected a callable hook"):
            register(wrong)
    (x * 2).backward()
    assert x.grad.item() == 2.0


@contract("0.6")
@contract("1.1")
def test_a_tensor_without_grad_takes_no_hook() -> None:
    """RuntimeError at registration."""
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        lucid.ones(2).register_hook(print)
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        lucid.ones(2).register_post_accumulate_grad_hook(print)


@contract("0.7")
def test_hooks_run_on_the_thread_of_backward() -> None:
    """The hook sees the thread that called backward."""
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda grad: seen.append(threading.get_ident()))
    worker = threading.Thread(target=lambda: (x * 2).backward())
    worker.start()
    expected = worker.ident
    worker.join()
    assert seen == [expected]


@contract("0.8")
def test_hooks_and_handles_make_no_cycle() -> None:
    """Dropping the last reference to tensor and graph frees them without the garbage collector."""
    gc.collect()
    with no_collections():
        x = leaf(1.0)
        y = x * 2
        handles = [x.register_hook(lambda grad: None), y.register_hook(lambda grad: None)]
        y.retain_grad()
        handles.append(y.grad_fn.register_hook(lambda given, received: None))
        handles.append(x.register_post_accumulate_grad_hook(lambda tensor: None))
        y.backward()
        dead = [weakref.ref(x), weakref.ref(y), weakref.ref(y.grad_fn)]
        del x, y
        assert [reference() for reference in dead] == [None] * 3
        for handle in handles:
            handle.remove()


@contract("0.9")
def test_grad_mode_inside_hooks() -> None:
    """Off, and on under create_graph."""
    modes = []
    x = leaf(1.0)
    x.register_hook(lambda grad: modes.append((lucid.is_grad_enabled(), grad.requires_grad)))
    (x * x).backward()
    (x * x).backward(create_graph=True)
    assert modes == [(False, False), (True, True)]


@contract("1.2")
def test_called_once_with_the_sum_over_all_uses_before_grad_changes() -> None:
    """The hook gets dL/dx of this pass; .grad still holds its old value; what it returns is added."""
    x = leaf(1.0, 2.0)
    x.grad = lucid.tensor([100.0, 100.0], dtype=lucid.float64)
    seen = []
    x.register_hook(lambda grad: seen.append((grad.tolist(), x.grad.tolist())) or grad * 2)
    (x * 3 + x * x + x).sum().backward()
    assert seen == [([6.0, 8.0], [100.0, 100.0])]
    assert x.grad.tolist() == [112.0, 116.0]


@contract("1.2")
def test_a_scaling_hook_is_not_applied_to_earlier_passes() -> None:
    """Two passes with a doubling hook give twice the doubled gradient."""
    x = leaf(1.0)
    x.register_hook(lambda grad: grad * 2)
    for _ in range(2):
        (x * 3).backward()
    assert x.grad.item() == 12.0


@contract("1.4")
def test_intermediates_and_roots() -> None:
    """On an intermediate the replacement flows upstream; on the root the hook gets the seed."""
    x = leaf(2.0)
    y = x * 3
    z = y * y
    seen = []
    y.register_hook(lambda grad: grad * 10)
    z.register_hook(lambda grad: seen.append(grad.item()))
    z.backward(lucid.tensor([0.5], dtype=lucid.float64))
    assert seen == [0.5]
    assert x.grad.item() == pytest.approx(0.5 * 2 * 6 * 10 * 3)


@contract("1.5")
def test_under_autograd_grad() -> None:
    """The hooks' result is what grad returns; hooks off the way to the inputs do not fire."""
    x, w = leaf(2.0), leaf(3.0)
    fired = []
    x.register_hook(lambda grad: grad + 100)
    w.register_hook(lambda grad: fired.append("w"))
    y = x * w
    side = w * 5
    side.register_hook(lambda grad: fired.append("side"))
    (grad,) = lucid.autograd.grad(y + side, x)
    assert grad.item() == 103.0
    assert fired == []
    assert x.grad is None


@contract("1.5")
def test_never_for_a_tensor_that_the_pass_did_not_reach() -> None:
    """A hook on a tensor of another graph stays silent, and so does a root that leads to no wanted input."""
    x, y = leaf(1.0), leaf(1.0)
    y.register_hook(lambda grad: pytest.fail("not reached"))
    root = y * 2
    root.register_hook(lambda grad: pytest.fail("leads to no input"))
    (x * 2).backward()
    assert lucid.autograd.grad([x * 3, root], [x], allow_unused=True)[0].item() == 3.0


@contract("1.6")
@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda grad: 3.0, TypeError, "expected None or a Tensor"),
        (lambda grad: grad.cpu().numpy(), TypeError, "expected None or a Tensor"),
        (lambda grad: grad.reshape(1, 2), RuntimeError, r"expected shape \(2,\), float64 on \S+, got shape \(1, 2\)"),
        (lambda grad: grad[:1], RuntimeError, r"got shape \(1,\)"),
        (lambda grad: grad.float(), RuntimeError, "got shape .* float32"),
    ],
)
def test_wrong_returns(wrong: object, error: type[Exception], text: str) -> None:
    """A non-tensor is a TypeError; another shape, even one that broadcasts, or dtype is a RuntimeError."""
    for make in (
        lambda f: f,
        lambda f: functools.partial(f),
        lambda f: type("Hook", (), {"__call__": lambda s, g: f(g)})(),
    ):
        x = leaf(1.0, 2.0)
        x.register_hook(make(wrong))
        with pytest.raises(error, match=text) as caught:
            (x * 2).sum().backward()
        assert x.grad is None
        assert "lambda" in str(caught.value) or "Hook" in str(caught.value)


@contract("1.7")
def test_multi_output_nodes_call_the_hooks_of_all_outputs() -> None:
    """The hook of an unused output gets None."""
    x = leaf(1.0, 2.0, 3.0)
    a, b = x.split([1, 2])
    seen = []
    a.register_hook(lambda grad: seen.append(("a", grad)))
    b.register_hook(lambda grad: seen.append(("b", grad.tolist())))
    (b * 2).sum().backward()
    assert seen == [("a", None), ("b", [2.0, 2.0])]
    assert x.grad.tolist() == [0.0, 2.0, 2.0]


@pytest.mark.parametrize("first", ["a", "b"])
def test_the_first_gradient_of_several_tensors_is_one(first: str) -> None:
    """A multi-grad hook with ``mode="any"`` waits for a gradient; one with "all" has None for an output without one."""
    parts = dict(zip("ab", leaf(1.0, 2.0).split(1), strict=True))
    seen = {"any": [], "all": []}
    for mode, calls in seen.items():
        lucid.autograd.graph.register_multi_grad_hook(list(parts.values()), calls.append, mode=mode)
    (parts[first] * 3).backward()
    assert [grad.tolist() for grad in seen["any"]] == [[3.0]]
    ((one, other),) = seen["all"]
    given, missing = (one, other) if first == "a" else (other, one)
    assert (given.tolist(), missing) == ([3.0], None)


def test_several_tensors_wait_for_those_alone_that_a_pass_reaches() -> None:
    """Of a pass for chosen inputs a multi-grad hook has None for the tensors that lie on the way to others."""
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    a, b = x * 2, y * 3
    calls = []
    lucid.autograd.graph.register_multi_grad_hook([a, b], calls.append)
    lucid.autograd.grad((a * b).sum(), x)
    ((one, other),) = calls
    assert (one.tolist(), other) == ([9.0, 12.0], None)


@contract("1.7")
def test_nodes_upstream_of_a_none_still_execute() -> None:
    """If a Function returns None, upstream nodes run and their hooks get None."""
    Stop = function_of(lambda ctx, x: x * 1, lambda ctx, grad: None, name="Stop")

    x = leaf(1.0)
    y = x * 2
    seen = []
    y.register_hook(lambda grad: seen.append(grad))
    y.grad_fn.register_hook(lambda given, received: seen.append((given, received)))
    Stop.apply(y).backward()
    assert seen == [None, ((None, None), (None,))] or seen == [None, ((None,), (None,))]
    assert x.grad is None
    seen.clear()
    parts = leaf(1.0, 2.0).split(1)
    for name, part in zip("ab", parts, strict=True):
        part.register_hook(lambda grad, name=name: seen.append((name, grad)))
    Stop.apply(parts[0]).backward()
    assert sorted(seen) == [("a", None), ("b", None)]


@contract("1.8")
def test_in_place_versions_keep_their_own_hooks() -> None:
    """A hook registered before an in-place op sees the old version's gradient, one after it the new; both come off."""
    x = leaf(3.0)
    y = x * 2
    seen = []
    before = y.register_hook(lambda grad: seen.append(("before", grad.item())))
    y.mul_(5)
    after = y.register_hook(lambda grad: seen.append(("after", grad.item())))
    (y * 7).backward(retain_graph=True)
    assert seen == [("after", 7.0), ("before", 35.0)]
    seen.clear()
    before.remove()
    after.remove()
    (y * 7).backward()
    assert seen == []


@contract("1.8")
def test_a_leaf_changed_under_no_grad_keeps_its_hooks() -> None:
    """An optimizer step does not lose hooks."""
    x = leaf(3.0)
    seen = []
    x.register_hook(lambda grad: seen.append(grad.item()))
    with lucid.no_grad():
        x.add_(1)
    (x * x).backward()
    assert seen == [8.0]


@contract("1.9")
def test_copies_have_no_hooks() -> None:
    """clone, detach and deepcopy do not take hooks along."""
    x = leaf(3.0)
    calls = []
    x.register_hook(lambda grad: calls.append(1))
    for other in (x.detach().requires_grad_(), copy.deepcopy(x)):
        (other * 2).backward()
    clone = x.detach().clone().requires_grad_()
    (clone * 2).backward()
    assert calls == []


@contract("1.10")
def test_the_handle_is_a_list_scan_by_identity() -> None:
    """One entry is dropped, the one that is the very callable; the same callable twice is removed one by one."""

    class Equal:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None

        def __call__(self, grad: object) -> None:
            pass

    first, second = Equal(), Equal()
    hooks = [first, second]
    handle = RemovableHandle(hooks, second)
    assert handle._hooks_list is hooks
    assert handle._hook is second
    handle.remove()
    assert len(hooks) == 1
    assert hooks[0] is first
    handle.remove()
    assert len(hooks) == 1
    x = leaf(1.0)
    calls = []

    def hook(grad: object) -> None:
        calls.append(1)

    one, two = x.register_hook(hook), x.register_hook(hook)
    one.remove()
    one.remove()
    (x * 2).backward()
    assert calls == [1]
    two.remove()
    (x * 2).backward()
    assert calls == [1]


def test_a_hook_is_found_at_every_place() -> None:
    """Each one of lists of all lengths is taken out, and the others stay in their order."""
    for count in range(1, 7):
        for hook in "abcdef"[:count]:
            hooks: list[Any] = [*"abcdef"[:count]]
            RemovableHandle(hooks, hook).remove()
            assert "".join(hooks) == "abcdef"[:count].replace(hook, "")


def test_no_hook_is_taken_out_while_another_is() -> None:
    """A removal waits for one that has found a place in the list and not yet emptied it."""
    waited: list[bool] = []

    class Removing(list[Any]):
        def __getitem__(self, index: Any) -> Any:
            if not waited:
                worker.start()
                worker.join(0.2)
                waited.append(worker.is_alive())
            return super().__getitem__(index)

    hooks = Removing([print, len, repr])
    worker = threading.Thread(target=RemovableHandle(hooks, print).remove)
    RemovableHandle(hooks, repr).remove()
    worker.join()
    assert waited == [True]
    assert [*hooks] == [len]


def test_no_hook_comes_in_front_while_another_is_taken_out() -> None:
    """Registering ahead of others waits for a removal that is half done."""
    waited: list[bool] = []

    class Removing(tables.HookTable):
        def __delitem__(self, key: int) -> None:
            super().__delitem__(key)
            worker.start()
            worker.join(0.2)
            waited.append(worker.is_alive())

    table = Removing()
    worker = threading.Thread(target=tables.register, args=(table, repr, "here"), kwargs={"prepend": True})
    handle = tables.register(table, print, "here")
    tables.register(table, len, "here")
    handle.remove()
    worker.join()
    assert waited == [True]
    assert [*table.values()] == [repr, len]


@contract("1.11")
def test_retain_grad_sees_the_result_of_all_hooks() -> None:
    """Whatever the order of registration; idempotent; a no-op on leaves; accumulates out of place."""
    x = leaf(2.0)
    y = x * 3
    y.retain_grad()
    y.register_hook(lambda grad: grad * 10)
    y.retain_grad()
    x.retain_grad()
    (y * 2).backward(retain_graph=True)
    first = y.grad
    assert first.item() == 20.0
    (y * 2).backward()
    assert y.grad.item() == 40.0
    assert first.item() == 20.0
    assert y.retains_grad
    assert not x.retains_grad
    z = x * 3
    z.register_hook(lambda grad: grad * 10)
    z.retain_grad()
    z.backward()
    assert z.grad.item() == 10.0


@contract("0.5")
def test_a_hook_of_one_output_that_raises_leaves_no_gradient_at_another() -> None:
    """Gradients are retained once the hooks of all outputs of the node have run."""
    x = lucid.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    first, second = x.unbind(0)
    first.register_hook(lambda grad: None)
    first.retain_grad()
    second.retain_grad()
    handle = second.register_hook(lambda grad: 1 / 0)
    out = (first * second).sum()
    with pytest.raises(ZeroDivisionError):
        out.backward(retain_graph=True)
    assert first.grad is second.grad is x.grad is None
    handle.remove()
    out.backward()
    assert [first.grad.tolist(), second.grad.tolist()] == [[3.0, 4.0], [1.0, 2.0]]


@contract("1.11")
def test_retain_grad_follows_in_place_and_works_under_grad() -> None:
    """The latest version's gradient is kept, also by autograd.grad."""
    x = leaf(2.0)
    y = x * 3
    y.retain_grad()
    y.mul_(4)
    lucid.autograd.grad(y * 5, x)
    assert y.grad.item() == 5.0


@contract("1.11")
def test_grad_of_a_non_leaf_warns() -> None:
    """`.grad` of a tensor that is no leaf and retains nothing is None with a UserWarning."""
    y = leaf(2.0) * 3
    with pytest.warns(UserWarning, match="not a leaf"):
        assert y.grad is None
    y.retain_grad()
    assert y.grad is None


@contract("1.12")
def test_post_accumulate_hooks() -> None:
    """Called with the leaf after .grad was updated, once per pass; may set it to None; not under autograd.grad."""
    x = leaf(2.0)
    seen = []

    def step(tensor: lucid.Tensor) -> None:
        seen.append((tensor is x, tensor.grad.item()))
        tensor.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    (x * 3 + x * 4).backward()
    lucid.autograd.grad(x * 3, x)
    assert seen == [(True, 7.0)]
    assert x.grad is None
    handle.remove()
    (x * 3).backward()
    assert len(seen) == 1


@contract("1.12")
def test_post_accumulate_hooks_of_a_leaf_that_gets_none() -> None:
    """Once per pass that comes to the leaf, also where it brings None: `.grad` is as before then."""
    OfTheFirst = function_of(lambda ctx, x, y: x * 1, lambda ctx, grad: (grad, None), name="OfTheFirst")

    x, y = leaf(2.0), leaf(3.0)
    seen = []
    y.register_post_accumulate_grad_hook(lambda tensor: seen.append(tensor.grad))
    OfTheFirst.apply(x, y).backward()
    assert seen == [None]
    (OfTheFirst.apply(x, y) + y).backward()
    assert [grad if grad is None else grad.item() for grad in seen] == [None, 1.0]


@contract("1.12")
def test_post_accumulate_hooks_are_for_leaves_and_return_none() -> None:
    """RuntimeError on a non-leaf; a TypeError for a returned value, after the accumulation."""
    x = leaf(2.0)
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(print)
    x.register_post_accumulate_grad_hook(lambda tensor: tensor)
    with pytest.raises(TypeError, match="expected None"):
        (x * 2).backward()
    assert x.grad.item() == 2.0


def test_accumulation_in_place_is_seen_through_aliases() -> None:
    """A second pass adds into the array of .grad, so that who holds a view of it sees the sum."""
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    held, alias = x.grad, x.grad.detach()
    (x * x).sum().backward()
    assert x.grad is held
    assert alias.tolist() == [4.0, 8.0]


def test_two_leaves_do_not_share_one_buffer() -> None:
    """Gradients that an op hands to two leaves are two arrays."""
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x + y).backward(lucid.tensor([5.0, 6.0], dtype=lucid.float64))
    x.grad.zero_()
    assert y.grad.tolist() == [5.0, 6.0]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("kind", ["leaf", "op"])
def test_a_hook_gets_the_dtype_that_its_tensor_has_now(kind: str, create_graph: bool) -> None:
    """Where `data` got another dtype after the graph was made, the gradient is converted before hooks see it."""
    x = lucid.ones(3, requires_grad=True)
    hooked = x if kind == "leaf" else x * 1
    out = (hooked * 2).sum()
    seen: list[Any] = []
    hooked.register_hook(lambda grad: seen.append(grad.dtype))
    hooked.data = hooked.data.double()
    out.backward(create_graph=create_graph)
    assert seen == [lucid.float64]
    assert kind == "op" or x.grad.dtype is lucid.float64
    assert x.grad.tolist() == [2.0] * 3


def test_hooks_by_pytorchs_names():
    """`_backward_hooks` and `_post_accumulate_grad_hooks` are those of one tensor, in order; None where it has none."""
    x = lucid.ones(2, requires_grad=True)
    first, second = (x * 2).unbind(0)
    hooks = [lambda grad, number=number: None for number in range(4)]
    assert (second._backward_hooks, x._post_accumulate_grad_hooks, x.detach()._backward_hooks) == (None, None, None)
    for tensor, hook in ((first, hooks[0]), (second, hooks[1]), (second, hooks[2])):
        tensor.register_hook(hook)
    x.register_post_accumulate_grad_hook(hooks[3])
    assert [*first._backward_hooks.values()] == hooks[:1]
    assert [*second._backward_hooks.items()] == [(0, hooks[1]), (1, hooks[2])]
    assert [*x._post_accumulate_grad_hooks.values()] == hooks[3:]
    assert x._backward_hooks is None
