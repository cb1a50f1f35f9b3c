"""A law: what trains finds each of its tensors elsewhere. It is moved along, or refused before the first change.

The parameters, gradients, state and rates of every optimizer and scaler; averages, norms, schedules, state dicts; and
what hooks give back. Layers and all that is public are in tests/laws/test_devices.py.
"""

from __future__ import annotations

import pytest

import lucid
from lucid import nn, optim
from lucid.errors import DeviceError
from lucid.optim import lr_scheduler, swa_utils
from tests.optimizers import COUNTED_THERE, NAMES, OTHERS, USUAL
from tests.pieces.elsewhere import check_elsewhere, drawn, each, t
from tests.schedulers import SCHEDULES

pytestmark = pytest.mark.gpu


# ---- optimizers and scalers ----


def training(kind, steps, groups=1, **arguments):
    """Return what makes an optimizer that has taken some steps, with gradients for the next one, and the gradients."""

    def build(rng):
        params = [
            drawn(rng, *shape, grad=True) for shape in ([(3, 2), (2, 2)] if kind == "Muon" else [(3, 2), (4,), ()])
        ]
        given = [{"params": params[:1]}, {"params": params[1:]}] if groups > 1 else params
        optimizer = getattr(optim, kind)(given, lr=t(0.05), **arguments)
        for step in range(steps + 1):
            for param in params:
                param.grad = drawn(rng, *param.shape)
            if step < steps:
                stepped((optimizer, None))
        return optimizer, [param.grad for param in params]

    return build


def stepped(given):
    """Take a step, and return the parameters."""
    optimizer, _ = given
    params = [param for group in optimizer.param_groups for param in group["params"]]
    optimizer.step(*[lambda: sum((p.detach() ** 2).sum().cpu() for p in params)] * isinstance(optimizer, optim.LBFGS))
    return params


def scaled(given):
    """Take a step with a scaler, and return the parameters."""
    optimizer, _ = given
    scaler = lucid.amp.GradScaler(init_scale=4.0)
    scaler.scale(lucid.ones(1))
    scaler.step(optimizer)
    scaler.update()
    return [param for group in optimizer.param_groups for param in group["params"]]


STEPS = {
    f"{kind}, {how} step, {what}": (training(kind, steps, **arguments), call)
    for kind in [*NAMES, *OTHERS]
    for how, steps in (("first", 0), ("later", 2))
    for what, call, arguments in [
        ("", stepped, USUAL.get(kind, {})),
        *([("two groups", stepped, {**USUAL.get(kind, {}), "groups": 2})] if kind != "LBFGS" else []),
        *([("counted there", stepped, {**USUAL[kind], **COUNTED_THERE[kind]})] if COUNTED_THERE.get(kind) else []),
        *([("scaled", scaled, USUAL.get(kind, {}))] if kind != "LBFGS" else []),
    ]
}


@each(STEPS)
def test_steps(row, rng):
    """Each parameter, gradient and tensor of the state; counts and rates are read, or moved, wherever they are."""
    assert check_elsewhere(*row, rng)


# ---- what else trains ----


def averaged(count, **arguments):
    def build(rng):
        model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        average = swa_utils.AveragedModel(model, **{name: make() for name, make in arguments.items()})
        for _ in range(count):
            average.update_parameters(model)
        return model, average

    return build


def update(given):
    model, average = given
    average.update_parameters(model)
    return average


def with_grads(rng):
    params = [drawn(rng, 2, grad=True) for _ in range(3)]
    for param in params:
        param.grad = drawn(rng, 2)
    return params, [param.grad for param in params]


def scheduled(schedule):
    class Schedules:
        """The schedules of both modules."""

        def __getattr__(self, name):
            return getattr(lr_scheduler if hasattr(lr_scheduler, name) else swa_utils, name)

    def build(rng):
        groups = [{"params": [drawn(rng, 2, grad=True)], "lr": t(lr)} for lr in (0.1, 0.03)]
        optimizer = optim.SGD(groups, momentum=0.9)
        made = schedule(Schedules(), optimizer)
        optimizer.step()
        made.step()
        return [optimizer.param_groups, [*vars(made).values()], optimizer], made

    return build


def go_on(given):
    (*_, optimizer), schedule = given
    for _ in range(3):
        optimizer.step()
        schedule.step()
    return [group["lr"] for group in optimizer.param_groups]


def batch_norm():
    return nn.BatchNorm1d(2)


def one_leaf(rng):
    return drawn(rng, 2, grad=True), drawn(rng, 2)


def returning(register):
    """Return a backward pass in which a hook gives another gradient."""

    def call(given):
        x, grad = given
        y = x * 2
        register(x, y, grad)
        (y * 3).sum().backward()
        return x.grad

    return call


class Doubled(lucid.autograd.Function):
    """Has the gradient that it was given beside its input."""

    @staticmethod
    def forward(ctx, x, grad):
        ctx.save_for_backward(grad)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return ctx.saved_tensors[0], None


def unpacked(given):
    x, other = given
    with lucid.autograd.graph.saved_tensors_hooks(lambda _: None, lambda _: other):
        y = x * x
    y.sum().backward()
    return x.grad


def accumulated(given):
    x, _ = given
    ((x * 2).sum() + (x * x).sum()).backward()
    return x.grad


def leaf_with_grad(rng):
    x, grad = one_leaf(rng)
    x.grad = grad
    return x, grad


REST = {
    **{
        f"an average of {count}, {name}": (averaged(count, **arguments), update)
        for count in (0, 2)
        for name, arguments in {
            "mean": {},
            "of buffers too": {"use_buffers": lambda: True},
            "a function": {"avg_fn": lambda: swa_utils.get_ema_avg_fn(0.9)},
            "a function of lists": {"multi_avg_fn": lambda: swa_utils.get_ema_multi_avg_fn(0.9)},
        }.items()
    },
    **{
        make.__name__: (
            lambda rng: ([drawn(rng, 2), drawn(rng, 2)], [drawn(rng, 2), drawn(rng, 2)], t(2)),
            lambda given, make=make: (make()(*given), given[0])[1],
        )
        for make in (swa_utils.get_swa_multi_avg_fn, swa_utils.get_ema_multi_avg_fn)
    },
    **{
        f"a norm of order {order}": (with_grads, lambda given, order=order: nn.utils.get_total_norm(given[1], order))
        for order in (2.0, 1.0, float("inf"), 0.0, 3.0)
    },
    "clip_grad_norm_": (with_grads, lambda given: [nn.utils.clip_grad_norm_(given[0], 0.1), given]),
    "clip_grads_with_norm_": (
        lambda rng: (*with_grads(rng), t(2.0)),
        lambda given: [nn.utils.clip_grads_with_norm_(given[0], 0.1, given[2]), given],
    ),
    "clip_grad_value_": (with_grads, lambda given: [nn.utils.clip_grad_value_(given[0], 0.1), given]),
    "vector_to_parameters": (
        lambda rng: (*with_grads(rng), drawn(rng, 6)),
        lambda given: [nn.utils.vector_to_parameters(given[2], given[0]), given],
    ),
    **{f"schedule: {name}": (scheduled(schedule), go_on) for name, schedule in SCHEDULES.items()},
    "load_state_dict": (
        lambda _: (batch_norm(), batch_norm().state_dict()),
        lambda given: [given[0].load_state_dict(given[1]) and None, given[0]],
    ),
    "functional_call": (
        lambda rng: (batch_norm(), {"weight": drawn(rng, 2), "running_mean": drawn(rng, 2)}, drawn(rng, 3, 2)),
        lambda given: [lucid.func.functional_call(given[0], given[1], (given[2],)), given[1]],
    ),
    "backward": (one_leaf, lambda given: (given[0] * 2).backward(given[1])),
    "tensor hook": (one_leaf, returning(lambda x, y, g: x.register_hook(lambda _: g))),
    "tensor hook inside": (one_leaf, returning(lambda x, y, g: y.register_hook(lambda _: g))),
    "node hook": (one_leaf, returning(lambda x, y, g: y.grad_fn.register_hook(lambda *_: (g, None)))),
    "node prehook": (one_leaf, returning(lambda x, y, g: y.grad_fn.register_prehook(lambda _: (g,)))),
    "function": (one_leaf, lambda given: Doubled.apply(*given).sum().backward()),
    "saved elsewhere": (one_leaf, unpacked),
    "a gradient of before": (leaf_with_grad, accumulated),
    "setting a gradient": (one_leaf, lambda given: setattr(given[0], "grad", given[1])),
    "state of a generator": (
        lambda _: [lucid.Generator("cpu", 5).get_state()],
        lambda given: lucid.Generator("cpu").set_state(given[0]),
    ),
}


@each(REST)
def test_what_else_trains(row, rng):
    """Averages of weights, norms of gradients, learning rates in tensors, state dicts, hooks."""
    check_elsewhere(*row, rng)


@pytest.mark.parametrize(("here", "there"), [("cpu", "cuda:0"), ("cuda:0", "cpu"), ("cuda:0", "cuda:1")])
@pytest.mark.parametrize("elements", [3, 100_000, 600_000])
@pytest.mark.parametrize("leaf", [True, False])
def test_data_moved_between_two_uses(here, there, elements, leaf):
    """Gradients of one tensor that lie on two devices are not added up."""
    if "cuda:1" in there and lucid.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    x = lucid.ones(elements, device=here, requires_grad=True)
    used = x if leaf else x * 1
    loss = (used * 2).sum().cpu()
    used.data = used.detach().to(there)
    with pytest.raises(DeviceError, match=f"gradient on {there} and gets one on {here}"):
        (loss + (used * 3).sum().cpu()).backward()
    assert x.grad is None
