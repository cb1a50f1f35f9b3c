"""The one table of schedules: rows for each, from which tests of schedules follow."""

from __future__ import annotations

import lucid
from lucid.optim import lr_scheduler

NAMES = sorted([*lr_scheduler.__all__, "SWALR"])
"""The public schedules."""

RATES = (0.1, 0.03)
"""The learning rates of the two groups of `made`."""


class Warmup:
    """A function of the epoch with a state."""

    def __init__(self, length):
        self.length = length

    def __call__(self, epoch):
        return min(1.0, (epoch + 1) / self.length)


def halved(x):
    """Return the scale of a cycle."""
    return 1 / (1 + x)


# By row, what is called with the library's module of schedules and an optimizer of two groups with momentum.
SCHEDULES = {
    "lambda": lambda m, o: m.LambdaLR(o, lambda epoch: 0.95**epoch),
    "lambda, one for each group": lambda m, o: m.LambdaLR(o, [lambda epoch: 0.9**epoch, lambda epoch: 1 / (1 + epoch)]),
    "lambda, an object": lambda m, o: m.LambdaLR(o, Warmup(7)),
    "multiplicative": lambda m, o: m.MultiplicativeLR(o, lambda epoch: 0.97),
    "multiplicative, one for each group": lambda m, o: m.MultiplicativeLR(
        o, [lambda epoch: 1 - 1 / (1 + epoch) ** 2, lambda epoch: 1.01]
    ),
    "step": lambda m, o: m.StepLR(o, 7),
    "step of one, up": lambda m, o: m.StepLR(o, step_size=1, gamma=1.1),
    "step, to nothing": lambda m, o: m.StepLR(o, 5, gamma=0.0),
    "multi-step": lambda m, o: m.MultiStepLR(o, [3, 11, 30], gamma=0.3),
    "multi-step, unordered and twice": lambda m, o: m.MultiStepLR(o, [12, 4, 12, 0], gamma=0.7),
    "constant": lambda m, o: m.ConstantLR(o),
    "constant, long": lambda m, o: m.ConstantLR(o, factor=0.7, total_iters=23),
    "linear": lambda m, o: m.LinearLR(o),
    "linear, down": lambda m, o: m.LinearLR(o, start_factor=1.0, end_factor=0.0, total_iters=31),
    "linear, one step": lambda m, o: m.LinearLR(o, start_factor=0.01, end_factor=0.5, total_iters=1),
    "exponential": lambda m, o: m.ExponentialLR(o, 0.9),
    "exponential, up": lambda m, o: m.ExponentialLR(o, gamma=1.05),
    "polynomial": lambda m, o: m.PolynomialLR(o),
    "polynomial, a power": lambda m, o: m.PolynomialLR(o, total_iters=37, power=2.5),
    "polynomial, no power": lambda m, o: m.PolynomialLR(o, total_iters=4, power=0),
    "cosine": lambda m, o: m.CosineAnnealingLR(o, T_max=13),
    "cosine, a least rate": lambda m, o: m.CosineAnnealingLR(o, 10, eta_min=0.01),
    "cosine, one epoch": lambda m, o: m.CosineAnnealingLR(o, 1, eta_min=0.001),
    "restarts": lambda m, o: m.CosineAnnealingWarmRestarts(o, T_0=6),
    "restarts, longer": lambda m, o: m.CosineAnnealingWarmRestarts(o, 3, T_mult=2, eta_min=0.005),
    "restarts, one epoch": lambda m, o: m.CosineAnnealingWarmRestarts(o, 1, T_mult=3),
    "cyclic": lambda m, o: m.CyclicLR(o, 0.01, 0.2, step_size_up=5),
    "cyclic, lists": lambda m, o: m.CyclicLR(
        o, [0.01, 0.02], [0.2, 0.1], 4, 7, "triangular2", base_momentum=[0.5, 0.6], max_momentum=[0.8, 0.95]
    ),
    "cyclic, a range": lambda m, o: m.CyclicLR(o, 0.01, 0.2, 3, mode="exp_range", gamma=0.97, cycle_momentum=False),
    "cyclic, a function of cycles": lambda m, o: m.CyclicLR(o, 0.01, 0.2, 3, 2, scale_fn=halved),
    "cyclic, a function of steps": lambda m, o: m.CyclicLR(
        o, 0.01, 0.2, 3, 2, scale_fn=Warmup(9), scale_mode="iterations"
    ),
    "one cycle": lambda m, o: m.OneCycleLR(o, 0.5, total_steps=210),
    "one cycle, lines": lambda m, o: m.OneCycleLR(
        o, [0.5, 0.3], epochs=30, steps_per_epoch=7, pct_start=0.45, anneal_strategy="linear", div_factor=3.0
    ),
    "one cycle, three phases": lambda m, o: m.OneCycleLR(
        o, 0.5, 211, three_phase=True, pct_start=0.2, final_div_factor=100.0, base_momentum=[0.3, 0.4]
    ),
    "one cycle, no momentum": lambda m, o: m.OneCycleLR(o, 0.5, 205, cycle_momentum=False, pct_start=0.0),
    "swa": lambda m, o: m.SWALR(o, swa_lr=0.05),
    "swa, lines": lambda m, o: m.SWALR(o, [0.01, 0.06], anneal_epochs=17, anneal_strategy="linear"),
    "swa, at once": lambda m, o: m.SWALR(o, 0.02, anneal_epochs=0),
    "swa, one epoch": lambda m, o: m.SWALR(o, 0.02, anneal_epochs=1, anneal_strategy="linear"),
    "sequence": lambda m, o: m.SequentialLR(
        o, [m.LinearLR(o, 0.1, total_iters=5), m.CosineAnnealingLR(o, 20), m.StepLR(o, 3, 0.9)], [5, 25]
    ),
    "sequence, at once": lambda m, o: m.SequentialLR(o, [m.ConstantLR(o), m.ExponentialLR(o, 0.9)], [0]),
    "sequence, one is left out": lambda m, o: m.SequentialLR(
        o, [m.ConstantLR(o), m.StepLR(o, 2), m.CosineAnnealingWarmRestarts(o, 4)], [6, 6]
    ),
    "sequence, cycles": lambda m, o: m.SequentialLR(
        o, [m.CyclicLR(o, 0.01, 0.2, 3), m.PolynomialLR(o, 9, 2.0), m.SWALR(o, 0.03, 5)], [7, 19]
    ),
    "sequence, cycles that are left out": lambda m, o: m.SequentialLR(
        o, [m.StepLR(o, 2), m.CyclicLR(o, 0.01, 0.2, 3), m.ExponentialLR(o, 0.9)], [6, 6]
    ),
    "sequence in a sequence": lambda m, o: m.SequentialLR(
        o,
        [m.SequentialLR(o, [m.ConstantLR(o, 0.5, 4), m.ExponentialLR(o, 0.9)], [6]), m.LinearLR(o, 0.2)],
        [15],
    ),
    "chain": lambda m, o: m.ChainedScheduler([m.ConstantLR(o, 0.2, 6), m.ExponentialLR(o, 0.95)]),
    "chain of many": lambda m, o: m.ChainedScheduler(
        [m.LinearLR(o, 0.5), m.CosineAnnealingLR(o, 9, 0.001), m.MultiStepLR(o, [4, 8]), m.StepLR(o, 11, 0.5)], o
    ),
    "chain with a sequence": lambda m, o: m.ChainedScheduler(
        [
            m.SequentialLR(o, [m.ConstantLR(o, 0.5, 3), m.ExponentialLR(o, 0.9)], [5]),
            m.MultiplicativeLR(o, lambda _: 0.99),
        ]
    ),
    "chain of cycles, of which the later one ends first": lambda m, o: m.ChainedScheduler(
        [
            m.SequentialLR(o, [m.CyclicLR(o, 0.01, 0.2, 3), m.ExponentialLR(o, 0.9)], [15]),
            m.SequentialLR(o, [m.OneCycleLR(o, 0.5, total_steps=40), m.StepLR(o, 2)], [5]),
        ]
    ),
    "chain of cycles, of which the first one never ends": lambda m, o: m.ChainedScheduler(
        [m.CyclicLR(o, 0.01, 0.2, 3), m.SequentialLR(o, [m.OneCycleLR(o, 0.5, total_steps=40), m.StepLR(o, 2)], [5])]
    ),
    "chain in a sequence": lambda m, o: m.SequentialLR(
        o, [m.ChainedScheduler([m.LinearLR(o), m.ExponentialLR(o, 0.9)]), m.ConstantLR(o, 0.3, 4)], [8]
    ),
}


class Modules:
    """The schedules of a library in one place."""

    def __init__(self, library):
        self.places = (library.optim.lr_scheduler, library.optim.swa_utils)

    def __getattr__(self, name):
        schedules, averages = self.places
        return getattr(schedules if hasattr(schedules, name) else averages, name)


OURS = Modules(lucid)


def optimizer_of(library=lucid, kind="SGD", rates=RATES, **settings):
    """Return an optimizer of two groups with a parameter each, the first of the default learning rate."""
    settings = {"momentum": 0.9, **settings} if kind == "SGD" else settings
    first, second = (library.ones(2, requires_grad=True) for _ in range(2))
    groups = [{"params": [first]}, {"params": [second], "lr": rates[1]}]
    return getattr(library.optim, kind)(groups, lr=rates[0], **settings)


def made(row, library=lucid, **settings):
    """Return an optimizer of two groups, and the schedule of a row."""
    optimizer = optimizer_of(library, **settings)
    return optimizer, SCHEDULES[row](Modules(library), optimizer)


def number(value):
    """Return a number, of a tensor without a warning of its gradient."""
    return float(value.detach() if hasattr(value, "detach") else value)


def numbers(optimizer):
    """Return learning rate and momentum of each group, as numbers."""
    return [
        (number(group["lr"]), number(group["momentum"] if "momentum" in group else group["betas"][0]))
        for group in optimizer.param_groups
    ]


def run(optimizer, scheduler, steps):
    """Return the numbers of each epoch: before the first step, and after each."""
    found = [numbers(optimizer)]
    for _ in range(steps):
        optimizer.step()
        scheduler.step()
        found.append(numbers(optimizer))
    return found
