"""Derivatives and batches as PyTorch's: values, structures, what requires grad, and where both refuse."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch

import lucid

# PyTorch's forward mode loads its own deprecated parts, and its linearize traces
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr:UserWarning"),
]


def shown(value):
    """Return nested results with arrays for tensors, and whether each requires grad."""
    if isinstance(value, torch.Tensor | lucid.Tensor):
        return value.detach().cpu().numpy(), value.requires_grad
    if isinstance(value, tuple | list):
        return type(value)(shown(entry) for entry in value)
    if isinstance(value, dict):
        return {key: shown(entry) for key, entry in value.items()}
    return value


def same(ours, theirs):
    """Compare what `shown` returns."""
    assert type(ours) is type(theirs)
    if isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    elif isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            same(mine, other)
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key, other in theirs.items():
            same(ours[key], other)
    else:
        assert ours == theirs


def attention(x, w):
    """Return one output of several ops, of x (4, 3) and w (3, 3)."""
    scores = (x @ w) @ x.mT
    return (scores.softmax(-1) @ x).tanh().square().sum()


def network(f, model, x, y):
    """Return the loss of one sample as a function of parameters."""
    return lambda p: ((f.functional_call(model, p, (x,)) - y) ** 2).mean()


# By a name: what is computed by a library `lib`, its `func`, x (4, 3), w (3, 3), v (3,), and c, a leaf (3,).
PROGRAMS = {
    "grad": lambda lib, f, x, w, v, c: f.grad(attention, argnums=(0, 1))(x, w),
    "grad_and_value": lambda lib, f, x, w, v, c: f.grad_and_value(lambda x: (attention(x, w), x * c), has_aux=True)(x),
    "grad of grad": lambda lib, f, x, w, v, c: f.grad(lambda w: (f.grad(attention)(x, w) ** 2).sum())(w),
    "three levels": lambda lib, f, x, w, v, c: f.grad(
        lambda a: f.grad(lambda b: (a * b * f.grad(lambda d: (a * b * d**3).sum())(b)).sum())(a).sum()
    )(v),
    "same place": lambda lib, f, x, w, v, c: f.grad(lambda a: (a * f.grad(lambda b: (a * b * b).sum())(a)).sum())(v),
    "closure": lambda lib, f, x, w, v, c: f.grad(lambda a: (a**2 * c).sum())(v),
    "requires grad": lambda lib, f, x, w, v, c: f.grad(lambda a: (a**3).sum())(c),
    "no_grad": lambda lib, f, x, w, v, c: lib.no_grad()(f.grad(lambda a: (a**2 * c).sum()))(v),
    "vjp": lambda lib, f, x, w, v, c: f.vjp(lambda x: {"a": x @ w, "b": [x.sum(1)]}, x)[1]({"a": x, "b": [x[:, 0]]}),
    "vjp of a vjp": lambda lib, f, x, w, v, c: f.vjp(lambda a: f.vjp(lambda b: b.exp() * a, v)[1](a)[0], v)[1](v),
    "jvp": lambda lib, f, x, w, v, c: f.jvp(attention, (x, w), (x.sin(), w.cos())),
    "jvp of a closure": lambda lib, f, x, w, v, c: f.jvp(lambda a: (a * c, a.sum()), (v,), (v,)),
    "jvp of a grad": lambda lib, f, x, w, v, c: f.jvp(f.grad(attention), (x, w), (x.sin(), w.cos())),
    "grad of a jvp": lambda lib, f, x, w, v, c: f.grad(lambda a: f.jvp(lambda b: b**3 * a, (v,), (a,))[1].sum())(v),
    "linearize": lambda lib, f, x, w, v, c: f.linearize(lambda x, w: (x @ w).tanh(), x, w)[1](x.sin(), w.cos()),
    "jacrev": lambda lib, f, x, w, v, c: f.jacrev(lambda x, w: {"y": x @ w, "s": x.sum()}, argnums=(0, 1))(x, w),
    "jacfwd": lambda lib, f, x, w, v, c: f.jacfwd(lambda x, w: {"y": x @ w, "s": x.sum()}, argnums=(1, 0))(x, w),
    "jacobian of a closure": lambda lib, f, x, w, v, c: (f.jacrev(lambda a: a * c)(v), f.jacfwd(lambda a: a * c)(v)),
    "hessian": lambda lib, f, x, w, v, c: f.hessian(attention, argnums=(0, 1))(x, w),
    "jacfwd of jacrev": lambda lib, f, x, w, v, c: f.jacfwd(f.jacrev(lambda a: (a**3).prod() * a))(v),
    "jacrev of jacfwd": lambda lib, f, x, w, v, c: f.jacrev(f.jacfwd(lambda a: (a**3).prod() * a))(v),
    "vmap": lambda lib, f, x, w, v, c: f.vmap(lambda row, w: (row @ w, row.sum()), (0, None), (1, 0))(x, w),
    "vmap of dicts": lambda lib, f, x, w, v, c: f.vmap(lambda d: {"s": d["a"] * d["b"]}, ({"a": 0, "b": None},))(
        {"a": x, "b": v}
    ),
    "vmap of a leaf": lambda lib, f, x, w, v, c: f.vmap(lambda a, b: a * b, in_dims=(0, None))(c, v),
    "vmap of vmap": lambda lib, f, x, w, v, c: f.vmap(f.vmap(lambda a, b: (a * b).sum(), (0, None)), (None, 0))(x, x),
    "vmap of grad": lambda lib, f, x, w, v, c: f.vmap(f.grad(lambda a, w: (a @ w).exp().sum()), (0, None))(x, w),
    "grad of vmap": lambda lib, f, x, w, v, c: f.grad(lambda x: f.vmap(lambda a: (a @ w).exp().sum())(x).prod())(x),
    "vmap of hessian": lambda lib, f, x, w, v, c: f.vmap(f.hessian(lambda a: (a @ w).exp().sum()))(x),
    "vmap of jvp": lambda lib, f, x, w, v, c: f.vmap(lambda a: f.jvp(lambda b: b @ w, (a,), (v,))[1])(x),
    "jacrev of vmap": lambda lib, f, x, w, v, c: f.jacrev(f.vmap(lambda a: (a @ w).tanh()))(x),
    "vmap of what is in place": lambda lib, f, x, w, v, c: f.vmap(lambda a: a.clone().mul_(a).add_(1))(x),
    "chunks": lambda lib, f, x, w, v, c: f.vmap(lambda a: a.sin(), chunk_size=3)(x),
    "hook": lambda lib, f, x, w, v, c: f.grad(lambda a: hooked(a**2).sum())(v),
}


def hooked(tensor):
    """Return a tensor whose gradient is tripled on its way back."""
    tensor.register_hook(lambda g: g * 3)
    return tensor


def arguments(lib, rng_values):
    """Return what programs get, from arrays."""
    x, w, v, c = (lib.tensor(value) for value in rng_values)
    return lib, lib.func, x, w, v, c.requires_grad_()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, rng):
    """Both libraries give the same values in the same structure, of which the same require grad."""
    values = [rng.standard_normal(shape) for shape in ((4, 3), (3, 3), (3,), (3,))]
    ours, theirs = (shown(PROGRAMS[name](*arguments(lib, values))) for lib in (lucid, torch))
    same(ours, theirs)


def test_an_ensemble_and_its_single_samples(rng):
    """Stacked modules, and the gradients of each for each sample."""
    states = [
        {
            "0.weight": rng.standard_normal((4, 3)),
            "0.bias": rng.standard_normal(4),
            "2.weight": rng.standard_normal((1, 4)),
        }
        for _ in range(2)
    ]
    x, y = rng.standard_normal((5, 3)), rng.standard_normal((5, 1))
    results = []
    for lib in (lucid, torch):
        nn, f = lib.nn, lib.func
        models = [nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1, bias=False)).double() for _ in states]
        for model, state in zip(models, states, strict=True):
            model.load_state_dict({name: lib.tensor(value) for name, value in state.items()})
        parameters, buffers = f.stack_module_state(models)
        assert buffers == {}

        def loss(parameters, x, y, f=f, model=models[0]):
            return network(f, model, x, y)(parameters)

        per_sample = f.vmap(f.grad(loss), in_dims=(None, 0, 0))
        results.append(shown(f.vmap(per_sample, in_dims=(0, None, None))(parameters, lib.tensor(x), lib.tensor(y))))
    same(*results)


REFUSED = {
    "output": lambda lib, f, x: f.grad(lambda x: x)(x),
    "one element": lambda lib, f, x: f.grad(lambda x: x[:1])(x),
    "integer": lambda lib, f, x: f.grad(lambda x: x.sum())(x.long()),
    "argnums": lambda lib, f, x: f.grad(lambda x: x.sum(), argnums=2)(x),
    "aux": lambda lib, f, x: f.grad(lambda x: x.sum(), has_aux=True)(x),
    "in place": lambda lib, f, x: f.grad(lambda x: x.mul_(2).sum())(x),
    "cotangents": lambda lib, f, x: f.vjp(lambda x: x, x)[1]((x, x)),
    "tangents": lambda lib, f, x: f.jvp(lambda x: x, (x,), (x[:1],)),
    "primals": lambda lib, f, x: f.jvp(lambda x: x, x, x),
    "strict": lambda lib, f, x: f.jvp(lambda a: x, (x,), (x,), strict=True),
    "chunk_size": lambda lib, f, x: f.jacrev(lambda x: x, chunk_size=0)(x),
    "complex": lambda lib, f, x: f.jacrev(lambda x: x)(x * 1j),
    "in_dims": lambda lib, f, x: f.vmap(lambda x: x, in_dims=1)(x),
    "in_dims None": lambda lib, f, x: f.vmap(lambda x: x, in_dims=(None,))(x),
    "in_dims structure": lambda lib, f, x: f.vmap(lambda x: x, in_dims=(0, 0))(x),
    "sizes": lambda lib, f, x: f.vmap(lambda x, y: x)(x, x[:1]),
    "out_dims": lambda lib, f, x: f.vmap(lambda x: x, out_dims=1)(x),
    "out_dims None": lambda lib, f, x: f.vmap(lambda x: x, out_dims=None)(x),
    "output of vmap": lambda lib, f, x: f.vmap(lambda x: 3)(x),
    "random": lambda lib, f, x: f.vmap(lambda x: lib.rand(2))(x),
    "randomness": lambda lib, f, x: f.vmap(lambda x: x, randomness="some")(x),
    "no models": lambda lib, f, x: f.stack_module_state([]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    """Both refuse, and what PyTorch raises catches lucid's error."""
    call = functools.partial(REFUSED[name])
    with pytest.raises(Exception) as theirs:
        call(torch, torch.func, torch.tensor([1.0, 2.0]))
    with pytest.raises(theirs.type):
        call(lucid, lucid.func, lucid.tensor([1.0, 2.0]))
