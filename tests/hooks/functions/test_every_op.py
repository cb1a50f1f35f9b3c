"""A law: a hook of functions sees every op of the table, on every path, and changes nothing by looking."""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
import pytest

import lucid
from lucid import hooks
from lucid._C import _current_graph_task_execution_order as nodes_of_this_pass
from tests.gradients import flat, numbers, tensors_of
from tests.samples import all_samples

SAMPLES = all_samples()
# Constructors: they look at the form of a tensor alone.
UNSEEN = {"rand_like", "randn_like", "randint_like"}


class Seen(hooks.FunctionHook):
    """Keeps what it is told, and how it ended."""

    def __init__(self):
        super().__init__()
        self.calls, self.open = [], []

    def before(self, call):
        self.open.append(call)

    def after(self, call, output):
        assert self.open.pop() is call
        self.calls.append((call, output))

    def failed(self, call, error):
        assert self.open.pop() is call
        self.calls.append((call, error))

    def names(self, phase="forward"):
        return [call.name for call, _ in self.calls if call.phase == phase]


def run(sample, arrays, rng):
    """Return a row's outputs and gradients, and which nodes its backward has run."""
    lucid.manual_seed(0)
    tensors = tensors_of(arrays, sample.constants)
    outputs = [out for out in flat(sample.op(*tensors)) if isinstance(out, lucid.Tensor)]
    nodes = []
    if any(out.requires_grad for out in outputs):
        wanted = [out for out in outputs if out.requires_grad]
        wanted[0].register_hook(lambda _: nodes.extend(node.name() for node in nodes_of_this_pass()))
        generator = np.random.default_rng(5)
        ones = [lucid.tensor(generator.normal(size=out.shape), dtype=out.dtype, device=out.device) for out in wanted]
        lucid.autograd.backward(wanted, ones)
    grads = [t.grad for t in tensors if isinstance(t, lucid.Tensor)]
    return [numbers(x) for x in (*outputs, *(g for g in grads if g is not None))], nodes


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sample", [pytest.param(s, id=s.name) for s in SAMPLES])
def test_every_op_is_seen(sample, rng):
    """In each mode; the values and gradients are those without hooks, and each node that runs is seen once."""
    arrays = sample.inputs(rng)
    plain, _ = run(sample, arrays, rng)
    with Seen() as seen:
        watched, nodes = run(sample, arrays, rng)
        outputs = [
            out for out in flat(sample.op(*tensors_of(arrays, sample.constants))) if isinstance(out, lucid.Tensor)
        ]
    assert len(plain) == len(watched)
    for one, other in zip(plain, watched, strict=True):
        np.testing.assert_array_equal(one, other)
    if sample.name.partition(":")[0] not in UNSEEN:
        assert seen.names(), "no op was seen"
        made = {id(x.array) for call, result in seen.calls for x in flat((call.inputs, result)) if hasattr(x, "array")}
        # what a differentiable op gives beside its values, as positions of maxima, it may make on its own
        wanted = [out for out in outputs if out.requires_grad] or outputs
        assert all(id(out.array) in made for out in wanted), "an op was not seen that made an output"
    assert sorted(seen.names("backward")) == sorted(nodes)
    for mode in (lucid.no_grad, lucid.inference_mode):
        with mode(), Seen() as again:
            sample.op(*tensors_of(arrays, requires_grad=False))
        assert again.names() or sample.name in UNSEEN
        assert not again.open


NO_OPS = {"detach_", "requires_grad_", "share_memory_"}
IN_PLACE = [name for name in dir(lucid.Tensor) if name.endswith("_") and not name.startswith("_")]
HALVES, WHOLE, LINE = lucid.full((2, 2), 0.5), lucid.tensor([[0, 1], [1, 0]]), lucid.full((2,), 3.0)
INDEX, MASK, CUBE = lucid.tensor([0, 1]), lucid.tensor([[True, False], [True, True]]), lucid.full((2, 2, 2), 0.5)
OPERANDS = (HALVES, WHOLE, CUBE, LINE)
ARGUMENTS = [
    (), (HALVES,), (WHOLE,), (LINE, LINE), (HALVES, HALVES), (HALVES, LINE), (0, INDEX, HALVES), (0, INDEX, 1.0),
    (MASK, HALVES), (MASK, 1.0), (0, 1), (0,), (1,), (0.5,), (HALVES, 0.5), ((INDEX, INDEX), LINE), (INDEX, LINE),
    (0, WHOLE, HALVES), (0, WHOLE, HALVES, "sum"), (0, INDEX, HALVES, "mean"), ((2, 2), (1, 2)), (2, 0, 1.0),
    (CUBE, CUBE),
]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in IN_PLACE if name not in NO_OPS])
def test_every_in_place_method_is_one_op(name):
    """Under its name, or that of the method of which it is another name; with the first arguments that fit.

    It counts as one change of the tensor.
    """
    method = getattr(lucid.Tensor, name)
    for x, args in itertools.product(OPERANDS, ARGUMENTS):
        own = x.clone()
        with Seen() as seen, contextlib.suppress(TypeError, ValueError, RuntimeError, IndexError):
            method(own, *args)
            break
    assert seen.names() == [method.__name__]
    ((call, output),) = seen.calls
    assert call.inputs[0] is output is own
    assert own._version == 1
