"""Whatever writes into a tensor's memory: what was saved of it before is kept, or backward refuses."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lucid
from lucid import hooks
from lucid import numpy as lnp
from lucid.autograd.graph import allow_mutation_on_saved_tensors
from lucid.autograd.recording.mutation import FEW
from lucid.nn import functional as F
from lucid.scipy import linalg, ndimage
from tests.optimizers import USUAL

PACKAGE = Path(lucid.__file__).parent
OPTIMIZERS = {**USUAL, "Muon": {}, "Adafactor": {}}


def parameter() -> Any:
    x = lucid.full((3, 3), 2.0).requires_grad_()
    x.grad = lucid.full((3, 3), 0.25)
    return x


def of_step(name: str) -> Any:
    """Return a parameter, and a step of an optimizer."""
    x = parameter()
    return x, getattr(lucid.optim, name)([x], **{"lr": 0.1, **OPTIMIZERS[name]}).step


def of_state(name: str) -> list[Any]:
    """Return pairs as `of_step`, of each tensor of the state that a third step writes into."""
    pairs = []
    for number in range(9):
        x = parameter()
        optimizer = getattr(lucid.optim, name)([x], **{"lr": 0.1, **OPTIMIZERS[name]})
        for grad in (0.25, -0.75):
            x.grad.fill_(grad)
            optimizer.step()
        x.grad.fill_(0.5)
        state = [value for value in optimizer.state[x].values() if isinstance(value, lucid.Tensor)]
        if number < len(state):
            pairs.append((state[number], optimizer.step))
    return pairs


def of_gradient(change: Any) -> Any:
    x = parameter()
    return x.grad, lambda: change(x)


def of_scaler() -> Any:
    x = parameter()
    optimizer, scaler = lucid.optim.SGD([x], lr=0.1), lucid.amp.GradScaler(x.device.type)
    scaler.scale(lucid.ones(1, requires_grad=True))
    return x.grad, lambda: scaler.unscale_(optimizer)


def of_embedding() -> Any:
    table = lucid.full((3, 3), 10.0)
    return table, lambda: F.embedding(lucid.tensor([0, 2]), table, max_norm=1.0)


def of_statistics(name: str) -> Any:
    layer = lucid.nn.BatchNorm1d(3)
    return getattr(layer, name), lambda: layer(lucid.tensor([[1.0, 2.0, 5.0], [0.0, 3.0, 9.0]]))


def of_average() -> Any:
    model = lucid.nn.Linear(2, 2)
    average = lucid.optim.swa_utils.AveragedModel(model)
    average.update_parameters(model)
    lucid.nn.init.ones_(model.weight)
    return average.module.weight, lambda: average.update_parameters(model)


def of_tensor(change: Any) -> Any:
    x = parameter().detach()
    return x, lambda: change(x)


def of_vector(change: Any) -> Any:
    x = lucid.tensor([3.0, 1.0, 2.0], dtype=lucid.float64)
    return x, lambda: change(x)


MASK = np.ones((3, 3), bool)
BY_NUMPY = {
    "multiply(out=)": lambda x: lnp.multiply(x, 2.0, out=x),
    "multiply(out=) by its place": lambda x: lnp.multiply(x, 2.0, x),
    "modf(out=)": lambda x: lnp.modf(x + 0.5, out=(x, x + 1)),
    "sum(out=)": lambda x: lnp.sum(x, 0, out=x[0]),
    "sum(out=) by its place": lambda x: lnp.sum(x, 0, None, x[0]),
    "cumsum(out=)": lambda x: lnp.cumsum(x, 0, out=x),
    "clip(out=)": lambda x: lnp.clip(x, 0.0, 1.0, out=x),
    "round(out=)": lambda x: lnp.round(x + 0.75, out=x),
    "matmul(out=)": lambda x: lnp.matmul(x + 1, x + 1, out=x),
    "concatenate(out=)": lambda x: lnp.concatenate([x[:1] * 3, x[1:]], out=x),
    "einsum(out=)": lambda x: lnp.einsum("ij->ij", x * 2, out=x),
    "copyto": lambda x: lnp.copyto(x, 1.0),
    "put": lambda x: lnp.put(x, [0], 9.0),
    "place": lambda x: lnp.place(x, MASK, [9.0]),
    "putmask": lambda x: lnp.putmask(x, MASK, [9.0]),
    "put_along_axis": lambda x: lnp.put_along_axis(x, np.zeros((1, 3), int), 9.0, 0),
    "fill_diagonal": lambda x: lnp.fill_diagonal(x, 9.0),
    "add.at": lambda x: lnp.add.at(x, [0], 9.0),
}
UNUSUAL = {
    "random.shuffle": lambda x: (np.random.seed(1), lnp.random.shuffle(x)),  # noqa: NPY002  what it shuffles by
    "copyto by names": lambda x: lnp.copyto(src=1.0, dst=x),
    "put by names": lambda x: lnp.put(ind=[0], v=9.0, a=x),
    "put_along_axis by names": lambda x: lnp.put_along_axis(indices=np.array([0]), values=9.0, axis=0, arr=x),
    "fill_diagonal by names": lambda x: lnp.fill_diagonal(val=9.0, a=x.reshape(1, 3)),
    "add.reduce by its place": lambda x: lnp.add.reduce(x[None] * 2, 0, None, x),
    "add.accumulate by its place": lambda x: lnp.add.accumulate(x + 1, 0, None, x),
    "add.reduceat by its place": lambda x: lnp.add.reduceat(np.ones(3), [0, 1, 2], 0, None, x),
    "nan_to_num in place": lambda x: lnp.nan_to_num(x.div_(x - 1), copy=False),
    "median(overwrite_input)": lambda x: lnp.median(x, overwrite_input=True),
    "percentile(overwrite_input) by its place": lambda x: lnp.percentile(x, 50, None, None, True),
    "ndimage(output)": lambda x: ndimage.gaussian_filter1d(np.eye(3)[0], 1.0, output=x),
    "ndimage(distances)": lambda x: ndimage.distance_transform_edt(np.array([0, 1, 1]), distances=x),
    "linalg(overwrite_b)": lambda x: linalg.solve(np.diag([2.0, 3.0, 4.0]), x, overwrite_b=True),
}
"""Writes of NumPy's and SciPy's into a vector of 3, 1, 2."""
ON_CPU = pytest.mark.cpu("CuPy's functions have no such parameter, or take no arrays of NumPy's beside")
OF_CPU = ("einsum", "reduceat", "overwrite", "ndimage", "put_along_axis by")

WRITTEN: dict[str, Any] = {
    **{f"{name}.step": lambda name=name: [of_step(name)] for name in OPTIMIZERS},
    **{f"state of {name}": lambda name=name: of_state(name) for name in OPTIMIZERS},
    "accumulation": lambda: [of_gradient(lambda x: (x * 3).sum().backward())],
    "clip_grad_norm_": lambda: [of_gradient(lambda x: lucid.nn.utils.clip_grad_norm_([x], 0.1))],
    "clip_grad_value_": lambda: [of_gradient(lambda x: lucid.nn.utils.clip_grad_value_([x], 0.1))],
    "zero_grad": lambda: [of_gradient(lambda x: lucid.optim.SGD([x], lr=0.1).zero_grad(set_to_none=False))],
    "unscale_": lambda: [of_scaler()],
    "embedding": lambda: [of_embedding()],
    "batch_norm": lambda: [of_statistics("running_mean"), of_statistics("running_var")],
    "update_parameters": lambda: [of_average()],
    "copy_": lambda: [of_tensor(lambda x: x.copy_(lucid.zeros(3, 3)))],
    "__setitem__": lambda: [of_tensor(lambda x: x.__setitem__(0, 7.0))],
    "normal_": lambda: [of_tensor(lambda x: x.normal_())],
    **{f"lucid.numpy: {name}": lambda write=write: [of_tensor(write)] for name, write in BY_NUMPY.items()},
    **{f"lucid: {name}": lambda write=write: [of_vector(write)] for name, write in UNUSUAL.items()},
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=ON_CPU if any(word in name for word in OF_CPU) else ()) for name in WRITTEN]
)
def test_saved_values_are_kept_or_missed(name: str) -> None:
    """In a block that keeps them backward uses the values at saving; elsewhere it refuses, and never uses others."""
    changed = 0
    for keeps in (True, False):
        for target, change in WRITTEN[name]():
            weight = lucid.ones(target.shape, dtype=target.dtype, device=target.device, requires_grad=True)
            before = target.detach().clone()
            with allow_mutation_on_saved_tensors() if keeps else lucid.enable_grad():
                loss = (target.detach() * weight).sum()
                change()
                changed += not lucid.equal(target.detach(), before)
                if keeps:
                    loss.backward()
                    assert lucid.equal(weight.grad, before)
                elif not lucid.equal(target.detach(), before):
                    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                        loss.backward()
    assert changed


@pytest.mark.parametrize(
    "kept", [True, pytest.param(False, marks=pytest.mark.cpu("CuPy's put wraps places"))], ids=["kept", "not kept"]
)
def test_a_write_that_is_refused_is_none(kept: bool) -> None:
    """Where NumPy raises before it writes backward goes on; where it raises in the midst, backward refuses."""
    w, x = lucid.ones(3, dtype=lucid.float64, requires_grad=True), lucid.tensor([3.0, 1.0, 2.0], dtype=lucid.float64)
    loss = (w * x).sum()
    refused = [lambda: lnp.copyto(x, lnp.ones(2)), lambda: lnp.add(lnp.ones(3), lnp.ones(2), out=x)]
    for write in refused if kept else [lambda: lnp.put(x, [0, 9], 5.0)]:
        with pytest.raises((ValueError, IndexError)):
            write()
    if kept:
        loss.backward()
        assert w.grad.tolist() == [3.0, 1.0, 2.0]
    elif x.tolist() != [3.0, 1.0, 2.0]:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


# what changes no values, is told of a change that has been, or has another function keep them
WITHOUT = {
    "function._check_dirty", "graph.increment_version", "inplace.change", "inplace.reshaped_in_place",
    "memory.mark_written",
}  # fmt: skip


def test_a_hook_that_writes_into_its_gradient() -> None:
    """Neither the other branch nor the tensor given to backward sees what NumPy's functions write into it."""
    a, b = (lucid.ones(2, requires_grad=True) for _ in range(2))
    seed = lucid.full((2,), 3.0)
    a.register_hook(lambda g: (lnp.multiply(g, 2.0, out=g), None)[1])
    (a + b).backward(seed)
    assert (a.grad.tolist(), b.grad.tolist(), seed.tolist()) == ([6.0, 6.0], [3.0, 3.0], [3.0, 3.0])


def test_what_counts_a_change_keeps_saved_values_first() -> None:
    """Each function that counts a version up calls `keep_saved` or `before_change`."""
    found, missing = 0, []
    for path in PACKAGE.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            inside = [*ast.walk(function)]
            counts = [
                node
                for node in inside
                if isinstance(node, ast.AugAssign) and ast.unparse(node.target).endswith("version[0]")
            ]
            calls = {ast.unparse(node.func).rpartition(".")[2] for node in inside if isinstance(node, ast.Call)}
            found += bool(counts)
            if counts and not calls & {"keep_saved", "before_change"}:
                missing.append(f"{path.stem}.{function.name}")
    assert found > 8
    assert {*missing} == WITHOUT


def test_captured_values_stay() -> None:
    """What `hooks.capture` holds of a parameter is what it was at that moment, whatever an optimizer does."""

    class Plain(lucid.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.x = lucid.nn.Parameter(lucid.full((2, 2), 2.0))

        def forward(self) -> Any:
            return self.x

    for name, settings in OPTIMIZERS.items():
        model = Plain()
        optimizer = getattr(lucid.optim, name)(model.parameters(), **{"lr": 0.1, **settings})
        with hooks.capture(model, "") as seen:
            model().sum().backward()
        kept = seen["", "output"]
        before = kept.detach().clone()
        optimizer.step()
        assert lucid.equal(kept.detach(), before)
        assert not lucid.equal(model.x.detach(), before)


def test_what_died_is_not_kept() -> None:
    """A block that saves in each of many iterations holds no more than what lives, of one tensor and of many."""
    x, w = lucid.ones(2, requires_grad=True), lucid.ones(2)
    block = allow_mutation_on_saved_tensors()
    with block:
        loss = (w * x).sum()
        for _ in range(4 * FEW):
            y = x * 2
            (y * y * w).sum().backward()
        kept = block._block._kept
        assert sum(len(references) for _, references in kept.values()) <= 2 * FEW
        w.zero_()
        x.grad = None
        loss.backward()
    assert x.grad.tolist() == [1.0, 1.0]
