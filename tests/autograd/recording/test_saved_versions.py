"""What was saved and changes in place before backward is noticed, over all rows of `tests.samples`."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import lucid
from lucid.autograd.base import wrap
from lucid.errors import InplaceError
from tests.gradients import flat, is_floating, numbers, random_like, tensors_of
from tests.samples import all_samples, check_each

ROWS = [sample for sample in all_samples() if sample.differentiable]
rows = pytest.mark.parametrize("sample", [pytest.param(sample, id=sample.name) for sample in ROWS])


def spoil(tensor):
    """Change a tensor in place, so that no derivative by its values stays what it was."""
    with lucid.no_grad():
        if is_floating(tensor.array):
            tensor.mul_(1.7).add_(0.13)
        else:
            tensor.zero_()


def gradients(sample, tensors, upstream, changed, *, create_graph):
    """Return the gradients of a row's op after the input or output `changed` was changed in place; None if refused."""
    outputs = flat(sample.op(*tensors))
    roots = [out for out in outputs if out.requires_grad]
    if not upstream:
        upstream += [random_like(np.random.default_rng(1), numbers(out)) for out in roots]
    if changed is not None:
        kind, place = changed
        target = (tensors if kind == "input" else outputs)[place]
        try:
            spoil(target)
        except InplaceError:  # memory that is read twice
            return None
    given = [lucid.tensor(u, dtype=out.dtype) for u, out in zip(upstream, roots, strict=True)]
    wanted = [tensor for tensor in tensors if tensor.requires_grad]
    try:
        found = lucid.autograd.grad(roots, wanted, given, allow_unused=True, create_graph=create_graph)
    except InplaceError as error:
        if "modified by an inplace operation" not in str(error):
            raise
        return None
    return [None if grad is None else numbers(grad) for grad in found]


@rows
def test_a_change_before_backward(sample, rng):
    """After a change of any input or output the gradient is that of the forward, or backward is refused by name."""
    check_each(functools.partial(check_changes, sample), [("plain",), ("create_graph",)], rng)


def check_changes(sample, way, rng):
    create_graph = way == "create_graph"
    arrays = [np.asarray(array) for array in sample.inputs(rng)]

    def fresh():
        return tensors_of([array.copy() for array in arrays], sample.constants)

    upstream = []
    expected = gradients(sample, fresh(), upstream, None, create_graph=create_graph)
    count = len(flat(sample.op(*fresh())))
    places = [("input", k) for k in range(len(arrays)) if arrays[k].size]
    for changed in [*places, *[("output", k) for k in range(count)]]:
        found = gradients(sample, fresh(), upstream, changed, create_graph=create_graph)
        for got, right in zip(found or (), expected if found else (), strict=True):
            assert (got is None) == (right is None), changed
            if got is not None:
                np.testing.assert_allclose(got, right, rtol=1e-12, atol=1e-12, err_msg=str(changed))


# Ops off the short path: operands that it leaves to the general one.
FORMS = {
    "broadcast": lambda a, b: (a, b[:1]),
    "two dtypes": lambda a, b: (a, b.astype(np.float32)),
    "complex": lambda a, b: (a + 1j * b, b - 1j * a),
    "no dimension": lambda a, b: (a, b[0, 0]),
}
OPS = {
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "exp": lambda a, b: (a * b).exp(),
    "tanh": lambda a, b: (a + b).tanh(),
    "sqrt": lambda a, b: (a + b).sqrt(),
    "matmul": lambda a, b: a @ b.expand(a.shape).mT,
}


CASES = [(name, form) for name in OPS for form in FORMS if (name, form) != ("matmul", "two dtypes")]


@pytest.mark.parametrize(("name", "form"), CASES)
def test_the_version_of_what_was_saved(name, form, rng):
    """Each operand, or the output, that the derivative of these ops needs is refused once it has changed."""
    arrays = FORMS[form](rng.random((3, 3)) + 0.5, rng.random((3, 3)) + 0.5)

    def refuses(changed):
        x, y = (wrap(np.asarray(array)).requires_grad_() for array in arrays)
        out = OPS[name](x, y)
        spoil({"x": x, "y": y, "out": out}[changed])
        try:
            lucid.autograd.grad(out, [x, y], lucid.ones_like(out))
        except InplaceError as error:
            return "is at version 2; expected version 0" in str(error)
        return False

    if name in {"exp", "tanh", "sqrt"}:
        assert refuses("out")
        return
    # one of another dtype is cast, and the cast is saved
    assert refuses("x")
    assert refuses("y") == (form != "two dtypes")
