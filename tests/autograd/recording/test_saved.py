"""Section 2.4 of the hooks contract: hooks of saved tensors."""

from __future__ import annotations

import contextlib
import weakref
from typing import TYPE_CHECKING

import pytest

import lucid
from lucid.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    increment_version,
    save_on_cpu,
    saved_tensors_hooks,
)
from lucid.errors import HookError
from tests.pieces import in_threads, leaf

if TYPE_CHECKING:
    from collections.abc import Callable

contract = pytest.mark.contract


@contract("2.4")
def test_pack_once_and_unpack_on_each_access() -> None:
    """Each saved tensor is packed once; each backward unpacks again; gradients are those of the unpacked values."""
    x = leaf(2.0, 3.0)
    packed, unpacked = [], []

    def pack(tensor: lucid.Tensor) -> lucid.Tensor:
        packed.append(tensor.tolist())
        return tensor.detach() + 1

    def unpack(tensor: lucid.Tensor) -> lucid.Tensor:
        unpacked.append(1)
        return tensor

    with saved_tensors_hooks(pack, unpack):
        y = x.exp()
    assert packed == [y.tolist()]
    grad = lucid.tensor([1.0, -2.0], dtype=lucid.float64)
    for _ in range(2):
        x.grad = None
        y.backward(grad, retain_graph=True)
        assert x.grad.tolist() == [(y[0].item() + 1), -2.0 * (y[1].item() + 1)]
    assert len(unpacked) == 2


@contract("2.4")
def test_only_the_innermost_pair_on_this_thread() -> None:
    """Nested pairs do not stack, and another thread has none."""
    x = leaf(2.0)
    names = []

    def pair(name: str) -> saved_tensors_hooks:
        return saved_tensors_hooks(lambda t: names.append(name) or t, lambda t: t)

    with pair("outer"):
        with pair("inner"):
            x.exp()
        in_threads(lambda: x.exp())
        x.exp()
    x.exp()
    assert names == ["inner", "outer"]
    names.clear()
    outer, inner = pair("outer"), pair("inner")
    with outer, inner:
        with outer:
            x.exp()
        x.exp()
    assert names == ["outer", "inner"]


@contract("2.4")
def test_double_backward_through_packed_tensors() -> None:
    """create_graph works with packed inputs."""
    x = leaf(2.0)
    with saved_tensors_hooks(lambda t: t.detach().cpu().numpy(), lucid.tensor):
        y = x * x * x
    (first,) = lucid.autograd.grad(y, x, create_graph=True)
    (second,) = lucid.autograd.grad(first, x)
    assert (first.item(), second.item()) == (12.0, 12.0)


@contract("2.4")
def test_bad_hooks() -> None:
    """In-place in pack and a non-tensor from unpack are errors; so is what cannot be called."""
    x = leaf(2.0)
    with (
        pytest.raises(RuntimeError, match="changed its input in place"),
        saved_tensors_hooks(lambda t: t.detach().add_(1), lambda t: t),
    ):
        x.exp()
    with saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x.exp()
    with pytest.raises(TypeError, match="expected a Tensor to be returned, got int"):
        y.backward()
    with pytest.raises(TypeError, match="expected a callable"):
        saved_tensors_hooks(None, lambda t: t)
    assert x.exp().requires_grad


@contract("2.4")
def test_disable() -> None:
    """Inside, entering saved_tensors_hooks raises the message; afterwards it works again."""
    pair = saved_tensors_hooks(lambda t: t, lambda t: t)
    with disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"), pair:
        pass
    with pair:
        with pytest.raises(RuntimeError, match="not now"), disable_saved_tensors_hooks("not now"):
            pass
        leaf(1.0).exp()


@contract("2.4")
def test_save_on_cpu() -> None:
    """The gradient is the same, and a change of the saved tensor meanwhile does not matter."""
    x = leaf(2.0)
    with save_on_cpu():
        y = x.exp()
        z = y * y
    with lucid.no_grad():
        y.zero_()
    z.backward()
    assert x.grad.item() == pytest.approx(2 * lucid.tensor(4.0, dtype=lucid.float64).exp().item())


@contract("2.4")
def test_allow_mutation() -> None:
    """Backward uses the values at saving; outside of the block the saved tensors are gone."""
    x = leaf(2.0)
    with allow_mutation_on_saved_tensors():
        y = x * 3
        z = y * y
        y.mul_(100)
        z.backward(retain_graph=True)
        assert x.grad.item() == 36.0
    with pytest.raises(RuntimeError, match="that block was left"):
        z.backward()
    w = x * 3
    z = w * w
    w.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


@pytest.mark.parametrize("outside", [True, False])
def test_allow_mutation_beside_other_hooks(outside: bool) -> None:
    """What was saved under it is kept before a change, whether a block of other hooks is open around it or inside."""
    x = leaf(2.0)
    others = saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor)
    with others if outside else contextlib.nullcontext(), allow_mutation_on_saved_tensors():
        y = x * 3
        z = y * y
        with contextlib.nullcontext() if outside else others:
            y.mul_(100)
        z.backward()
    assert x.grad.item() == 36.0


def test_allow_mutation_belongs_to_the_thread_that_enters() -> None:
    """A block made by one thread is open for another one that enters it."""
    x, block = leaf(2.0), allow_mutation_on_saved_tensors()

    def run() -> None:
        with block:
            y = x * 3
            z = y * y
            y.mul_(100)
            z.backward()

    in_threads(run)
    assert x.grad is not None
    assert x.grad.item() == 36.0


@contract("2.6")
def test_changes_and_freed_graphs_are_detected() -> None:
    """A changed saved tensor names versions; a second backward says retain_graph."""
    x = leaf(2.0, 3.0)
    y = x * 2
    z = (y * y).sum()
    y[0] = 5.0
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        z.backward()
    z = (x * x).sum()
    z.backward()
    with pytest.raises(RuntimeError, match=r"second time.*retain_graph=True"):
        z.backward()
    assert x.grad.tolist() == [4.0, 6.0]


class Kept(lucid.autograd.Function):
    """Its first argument times the second, which it saves; `seen` gets what backward finds, `act` may change that."""

    @staticmethod
    def forward(ctx, x, other, seen, act=None):
        ctx.save_for_backward(other)
        ctx.seen, ctx.act = seen, act
        return x * other

    @staticmethod
    def backward(ctx, grad):
        (other,) = ctx.saved_tensors
        ctx.seen.append(other)
        if ctx.act is not None:
            ctx.act(other)
        return grad * other, None, None, None


def test_what_a_hook_stored_has_versions_of_its_own() -> None:
    """Neither is a change of the stored tensor one of the original, nor the reverse; other nodes run."""
    x = leaf(2.0, 3.0)
    y = x * 1.0
    with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        z = Kept.apply(x, y.detach(), [], lambda t: t.mul_(5.0))
    other = y * y
    grad = lucid.tensor([1.0, -2.0], dtype=lucid.float64)
    lucid.autograd.backward([z, other], [grad, grad])
    assert y._version == 0
    assert x.grad.tolist() == (grad * 5.0 * x + 2.0 * grad * x).tolist()
    y, seen = x * 1.0, []
    before = y.tolist()
    with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        z = Kept.apply(x, y, seen)
    y.detach().mul_(7.0)
    z.backward(grad)
    assert seen[0].tolist() == before


def test_a_stored_tensor_read_from_a_node_has_its_own_versions() -> None:
    """So has what `_saved_self` gives, where hooks have stored it."""
    y = leaf(2.0) * 1.0
    with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        z = y * y
    saved = z.grad_fn._saved_self
    saved.detach().mul_(3.0)
    assert (saved._version, y._version) == (1, 0)


@pytest.mark.parametrize("kind", ["op", "function"])
def test_hooks_of_a_raw_saved_tensor_end_the_watch_over_its_version(kind: str) -> None:
    """What they stored does not change with the tensor, and so the node runs with the old values."""
    x, other = leaf(2.0, 3.0), lucid.tensor([4.0, 5.0], dtype=lucid.float64)
    y = Kept.apply(x, other, []) if kind == "function" else x * other
    saved = y.grad_fn._raw_saved_tensors[0] if kind == "function" else y.grad_fn._raw_saved_other
    saved.register_hooks(lambda t: t.clone(), lambda t: t)
    other.mul_(7.0)
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 5.0]


BESIDE_NUMBERS = {
    "mul": lambda y: 3.0 * y,
    "div by": lambda y: y / 3.0,
    "div": lambda y: 3.0 / y,
    "remainder": lambda y: 3.0 % y,
    "pow": lambda y: y**3.0,
    "pow of": lambda y: 3.0**y,
    "clamp": lambda y: y.clamp(2.5, 10.0),
}


@pytest.mark.parametrize("op", BESIDE_NUMBERS.values(), ids=BESIDE_NUMBERS)
def test_what_is_saved_beside_a_number(op: Callable[[lucid.Tensor], lucid.Tensor]) -> None:
    """Each attribute of a node gives what stands in its own place, and its hooks end the watch over that alone."""

    def run() -> tuple[lucid.Tensor, lucid.Tensor, lucid.Tensor]:
        x = leaf(2.0, 3.0)
        y = x * 1.0
        y.add_(0.0)  # so that its version is another than the result's
        return x, y, op(y)

    x, y, z = run()
    node = z.grad_fn
    found = {name: getattr(node, name) for name in dir(type(node)) if name.startswith("_saved_")}
    kept = {name: value for name, value in found.items() if isinstance(value, lucid.Tensor)}
    assert {value for value in found.values() if isinstance(value, float)} <= {2.5, 3.0, 10.0}
    for name, value in kept.items():
        theirs = z if name == "_saved_result" else y
        assert (value.tolist(), value._version) == (theirs.tolist(), theirs._version)
    z.sum().backward()
    expected = x.grad.tolist()
    for name in kept:
        x, y, z = run()
        getattr(z.grad_fn, f"_raw{name}").register_hooks(lambda t: t.clone(), lambda t: t)
        loss = z.sum()
        (z if name == "_saved_result" else y).detach().mul_(7.0)
        loss.backward()
        assert x.grad.tolist() == expected


@pytest.mark.parametrize("kind", ["op", "function"])
def test_what_an_unpack_hook_returns_brings_no_graph_along(kind: str) -> None:
    """A constant requires no grad also where the hook gives it back as part of a graph."""
    x, w = leaf(2.0, 3.0), leaf(4.0, 5.0)
    constant, part = lucid.ones(2, dtype=lucid.float64), w * 3.0
    with saved_tensors_hooks(lambda t: t, lambda t: part):
        y = x * constant if kind == "op" else Kept.apply(x, constant, [])
    saved = y.grad_fn._saved_other if kind == "op" else y.grad_fn.saved_tensors[0]
    assert (saved.tolist(), saved.requires_grad) == ([12.0, 15.0], False)
    (grad,) = lucid.autograd.grad(y.sum(), x, create_graph=True)
    assert grad.tolist() == [12.0, 15.0]
    assert not grad.requires_grad


@pytest.mark.parametrize("kind", ["plain", "leaf", "result", "view"])
@pytest.mark.parametrize("way", ["direct", "hooks", "checkpoint"])
def test_saved_tensors_keep_their_identity(way: str, kind: str) -> None:
    """A Function gets back the tensor that it saved; through hooks if it needs no gradient, as in PyTorch."""
    x, seen = leaf(2.0, 3.0), []
    other = {
        "plain": lambda: lucid.ones(2, dtype=lucid.float64),
        "leaf": lambda: leaf(4.0, 5.0),
        "result": lambda: leaf(4.0, 5.0) * 1.0,
        "view": lambda: lucid.ones(4, dtype=lucid.float64)[1:3],
    }[kind]()
    if way == "checkpoint":
        y = lucid.utils.checkpoint.checkpoint(Kept.apply, x, other, seen, use_reentrant=False)
    elif way == "hooks":
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            y = Kept.apply(x, other, seen)
    else:
        y = Kept.apply(x, other, seen)
    y.backward(lucid.ones(2, dtype=lucid.float64))
    assert (seen[0] is other) == (way == "direct" or not other.requires_grad)
    assert seen[0].requires_grad == other.requires_grad
    assert x.grad.tolist() == other.tolist()


def test_a_tensor_that_was_detached_in_place_after_saving() -> None:
    """What was computed from it keeps its place in the graph: the gradient is as before, also the second one."""
    x = leaf(2.0, 3.0)
    y = x.exp()
    z = y * y
    y.detach_()
    (first,) = lucid.autograd.grad(z.sum(), x, create_graph=True)
    (second,) = lucid.autograd.grad(first.sum(), x)
    expected = (2.0 * x).exp().detach()
    assert lucid.allclose(first, 2.0 * expected)
    assert lucid.allclose(second, 4.0 * expected)
    seen = []
    y = x * 1.0
    z = Kept.apply(x, y, seen)
    y.detach_()
    z.backward(lucid.ones(2, dtype=lucid.float64))
    assert seen[0].requires_grad


def test_pack_hooks_see_outputs_in_their_place() -> None:
    """A hook on an op's saved output sees that it requires grad and which node made it, and keeps no node alive."""
    seen = []

    def pack(tensor: lucid.Tensor) -> lucid.Tensor:
        seen.append((tensor.requires_grad, tensor.is_leaf, tensor.grad_fn.name()))
        return tensor

    x = leaf(2.0)
    with saved_tensors_hooks(pack, lambda t: t):
        y = x.exp()
    assert seen == [(True, False, "ExpBackward0")]
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None


def test_increment_version() -> None:
    """It counts for each tensor but those of inference mode, which have no counter; for none, if one is no tensor."""
    x, y = lucid.ones(1), lucid.ones(1)
    with lucid.inference_mode():
        z = lucid.ones(1)
        increment_version([x, z])
    increment_version(z)
    increment_version(t for t in (x, y))
    assert (x._version, y._version) == (2, 1)
    for wrong in ([x, 3], 3, [None]):
        with pytest.raises(RuntimeError, match="expected a Tensor or an iterable of them"):
            increment_version(wrong)
    assert x._version == 2


def test_the_message_is_text() -> None:
    """What is no text would only show when some hook is entered."""
    with pytest.raises(TypeError, match="disable_saved_tensors_hooks: message: expected a string, got int 3"):
        disable_saved_tensors_hooks(3)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("shape", [(5,), (1,), (1, 2)])
def test_an_unpack_hook_returns_the_shape_that_was_packed(shape) -> None:
    """Another shape, also one that broadcasts, is refused with the name of the hook; `.grad` stays."""

    def reshaped(packed: lucid.Tensor) -> lucid.Tensor:
        return lucid.ones(shape, dtype=lucid.float64)

    x = leaf(1, 2)
    with saved_tensors_hooks(lambda tensor: tensor, reshaped):
        y = x.exp()
    with pytest.raises(HookError, match=r"unpack hook .*reshaped.*: expected a tensor of shape \(2,\), .* got shape"):
        y.backward(leaf(3, 4).detach())
    assert x.grad is None


def test_numbers_that_are_saved_take_no_hooks():
    """A node that keeps a number in place of a tensor says so."""
    y = lucid.ones(2, requires_grad=True) * 3.0
    assert y.grad_fn._saved_other == 3.0
    with pytest.raises(HookError, match=r"_raw_saved_other: calling register_hooks on .* value 3.0 is forbidden"):
        y.grad_fn._raw_saved_other.register_hooks(lambda t: t, lambda t: t)
