"""Section 2.4 of the hooks contract: hooks of saved tensors."""

from __future__ import annotations

import threading

import pytest

import lucid
from lucid.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)

contract = pytest.mark.contract


def leaf(*values: float) -> lucid.Tensor:
    return lucid.tensor(list(values), dtype=lucid.float64, requires_grad=True)


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
        worker = threading.Thread(target=lambda: x.exp())
        worker.start()
        worker.join()
        x.exp()
    x.exp()
    assert names == ["inner", "outer"]


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
