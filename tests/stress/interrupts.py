"""`python -m tests.stress.interrupts --trials 10000`: Ctrl-C at random moments of training leaves nothing half done.

A model with hooks of every kind, a checkpoint and saved-tensor hooks is trained, saved and loaded; an alarm presses
Ctrl-C somewhere within. After each the thread's modes, the hooks, the optimiser, the model and the file are
as before or as after what was interrupted, and the next step is the one that a model never interrupted makes.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import timeit
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import lucid
from lucid import nn
from lucid.autograd.graph import saved_tensors_hooks
from lucid.autograd.modes.state import ORDINARY, thread
from lucid.utils.checkpoint import checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    State = dict[str, np.ndarray[Any, Any]]

ACTS = ("forward", "backward", "step", "save", "load")


class Model(nn.Module):
    """Six modules; the middle is checkpointed, and what the end saves goes through hooks."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.middle = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.norm = nn.LayerNorm(4)
        self.last = nn.Linear(4, 1)

    def forward(self, x: lucid.Tensor) -> lucid.Tensor:
        """Return one number for each row."""
        x = self.first(x)
        x = checkpoint(self.middle, x, use_reentrant=False)
        with saved_tensors_hooks(lambda t: t.detach() * 2, lambda t: t / 2):
            return self.last(self.norm(x))


class Trial:
    """A model under training, and what is known of it."""

    def __init__(self, folder: Path) -> None:
        lucid.manual_seed(1)
        self.model = Model()
        self.optimizer = lucid.optim.Adam(self.model.parameters(), lr=0.01)
        self.x = lucid.randn(5, 3)
        self.path = folder / "model.safetensors"
        self.fired: Counter[str] = Counter()
        first, weight = self.model.first, self.model.last.weight
        registers: list[Any] = [
            first.register_forward_pre_hook, first.register_forward_hook, first.register_full_backward_pre_hook,
            first.register_full_backward_hook, weight.register_hook, weight.register_post_accumulate_grad_hook,
        ]  # fmt: skip
        self.hooks = [register.__name__ for register in registers]
        for register in registers:
            register(self._note(register.__name__))
        self.prepare()
        self.act("step")
        self.act("save")
        self.prepare()  # after the step: a graph from before it is refused

    def _note(self, name: str) -> Callable[..., None]:
        return lambda *_: self.fired.update([name])

    def values(self) -> State:
        """Return copies of all that a step or a load changes."""
        found = {name: p.detach().numpy().copy() for name, p in self.model.named_parameters()}
        for index, p in enumerate(self.model.parameters()):
            for name, value in self.optimizer.state[p].items():
                found[f"{name} of {index}"] = value.numpy().copy()
        return found

    def put_back(self, values: State) -> None:
        """Undo what a step or a load has changed since `values`."""
        for name, p in self.model.named_parameters():
            p.data.numpy()[...] = values[name]
        for index, p in enumerate(self.model.parameters()):
            for name, value in self.optimizer.state[p].items():
                value.numpy()[...] = values[f"{name} of {index}"]

    def act(self, what: str) -> None:
        """Do one thing that may be interrupted."""
        if what == "forward":
            self.model(self.x)
        elif what == "backward":
            self.loss.backward(retain_graph=True)
        elif what == "step":
            self.optimizer.step()
        elif what == "save":
            lucid.save(self.model.state_dict(), self.path)
        else:
            self.model.load_state_dict(lucid.load(self.path))

    def prepare(self) -> None:
        """Run forward and backward, so that everything is there that one thing needs."""
        self.optimizer.zero_grad()
        self.loss = (self.model(self.x) ** 2).mean()
        self.loss.backward(retain_graph=True)

    def on_file(self) -> State:
        """Return what the file holds."""
        return {name: value.numpy() for name, value in lucid.load(self.path).items()}

    def interrupted(self, what: str, delay: float) -> bool:
        """Do `what`, with a Ctrl-C after `delay` seconds; return whether that came in time."""
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                self.act(what)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            return True
        return False

    def faults(self, what: str, before: State, saved: State) -> list[str]:
        """Return what an interrupt of `what` has left half done; the values were `before`, the file's `saved`."""
        found: list[str] = []
        state = thread.state
        if state.modes() != ORDINARY or state.anomaly is not None:
            found.append(f"modes are {state.modes()}")
        if state.passes:
            found.append("passes are on")
        if self.optimizer._stepping:
            found.append("the optimiser is stepping")
        if [path for path in self.path.parent.iterdir() if path != self.path]:
            found.append("files are left")
        parameters = {name: before[name] for name in saved}
        if not any(same(self.on_file(), each) for each in (saved, parameters)):
            found.append("the file is neither the old nor the new")
        state.grad_mode, state.saved_hooks[:] = ORDINARY[0], ()
        state.passes.clear()
        values = self.values()
        self.put_back(before)
        self.act(what)
        if not any(same(values, each) for each in (before, self.values())):
            found.append("values are neither the old nor the new")
        self.fired.clear()
        self.prepare()
        if self.fired != dict.fromkeys(self.hooks, 1):
            found.append(f"hooks fired {dict(self.fired)}")
        fresh = Model()
        fresh.load_state_dict(self.model.state_dict())
        (fresh(self.x) ** 2).mean().backward()
        grads: list[Any] = [(p.grad, q.grad) for p, q in zip(self.model.parameters(), fresh.parameters(), strict=True)]
        if not all(np.array_equal(p.numpy(), q.numpy()) for p, q in grads):
            found.append("gradients are not those of a fresh model")
        return found


def same(one: State, other: State) -> bool:
    """Return whether two states agree bit by bit."""
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def run(trials: int, seed: int = 0) -> tuple[Counter[str], Counter[str]]:
    """Return how often each thing was interrupted, and how often each fault was seen."""
    draw = random.Random(seed)
    counts: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    before = {
        signal.SIGALRM: signal.signal(signal.SIGALRM, lambda number, frame: signal.raise_signal(signal.SIGINT)),
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
    }
    try:
        with tempfile.TemporaryDirectory() as folder:
            trial = Trial(Path(folder))
            times = {what: min(timeit.repeat(partial(trial.act, what), number=1, repeat=5)) for what in ACTS}
            while counts.total() < trials:
                what = draw.choice(ACTS)
                trial.prepare()
                values, saved = trial.values(), trial.on_file()
                if trial.interrupted(what, draw.uniform(1e-6, times[what])):
                    counts[what] += 1
                    faults.update(f"{what}: {each}" for each in trial.faults(what, values, saved))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return counts, faults


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.stress.interrupts", description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    given = parser.parse_args()
    counts, faults = run(given.trials, given.seed)
    print(f"seed {given.seed}: {counts.total()} interrupts: {dict(counts)}; half done: {faults.total()}")
    for name, count in faults.most_common():
        print(f"{count:6} {name}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
