"""Communication hooks of means: among processes, and in one that is alone."""

from __future__ import annotations

import pytest

import lucid
from lucid import nn
from lucid.distributed.algorithms.ddp_comm_hooks import default_hooks
from lucid.errors import DtypeError
from lucid.nn.parallel import DistributedDataParallel
from tests.device import DEVICE


@pytest.mark.parametrize("name", default_hooks.__all__)
def test_a_process_that_is_alone(name, rng):
    """There a mean is the gradient itself, rounded as it would travel, and buckets stay what they were."""
    hook = getattr(default_hooks, name)
    if name.endswith("wrapper"):
        hook = hook(default_hooks.allreduce_hook)
        assert hook.__name__ == "allreduce_hook"
    half = {"f": lucid.float16, "b": lucid.bfloat16, "a": lucid.float32}[name[0]]
    model = DistributedDataParallel(nn.Linear(3, 2).to(DEVICE))
    model.register_comm_hook(None, hook)
    x = lucid.tensor(rng.standard_normal((4, 3)), dtype=lucid.float32, device=DEVICE)
    (plain,) = lucid.autograd.grad(nn.functional.linear(x, model.module.weight).exp().sum(), model.module.weight)
    for _ in range(2):
        model.zero_grad()
        (nn.functional.linear(x, model.module.weight).exp().sum() + 0 * model(x).sum()).backward()
        assert model.module.weight.grad.tolist() == plain.to(half).to(lucid.float32).tolist()


@pytest.mark.parametrize("hook", [default_hooks.fp16_compress_hook, default_hooks.bf16_compress_hook])
def test_complex_gradients(hook):
    """A half type holds no complex numbers, and their imaginary parts are not dropped."""
    model = nn.Module()
    model.weight = nn.Parameter(lucid.ones(2, dtype=lucid.complex64))
    model.forward = lambda: (model.weight * model.weight.conj()).real.sum()
    wrapped = DistributedDataParallel(model)
    wrapped.register_comm_hook(None, hook)
    with pytest.raises(DtypeError, match="expected real gradients"):
        wrapped().backward()
