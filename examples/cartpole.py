"""Balance a pole on a cart by policy gradients, with the physics written out in NumPy.

    python examples/cartpole.py
    python examples/cartpole.py --updates 300 --seed 3

Sixteen carts run at once. The policy's gradient is that of A2C: advantages from a value network's estimates, several
steps ahead, with a bonus for entropy.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.progress import Progress

import lucid
from lucid import nn
from lucid.nn import functional

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid import Tensor

CARTS, STEPS, LONGEST = 16, 32, 500
DISCOUNT, ENTROPY = 0.99, 0.01


class CartPole:
    """Carts (position, speed, angle, angular speed) that are pushed left or right; Barto, Sutton and Anderson 1983."""

    GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
    FARTHEST, STEEPEST = 2.4, np.deg2rad(12)

    def __init__(self, carts: int, random: np.random.Generator) -> None:
        self.random = random
        self.state = random.uniform(-0.05, 0.05, (carts, 4))
        self.age = np.zeros(carts, np.int64)

    def step(self, pushes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Push each cart left (0) or right (1); return which poles fell, and the ages of carts that begin anew."""
        _, speed, angle, turning = self.state.T
        mass = self.CART + self.POLE
        push = np.where(pushes == 1, self.FORCE, -self.FORCE)
        pulled = (push + self.POLE * self.HALF_LENGTH * turning**2 * np.sin(angle)) / mass
        inertia = self.HALF_LENGTH * (4 / 3 - self.POLE * np.cos(angle) ** 2 / mass)
        faster_turning = (self.GRAVITY * np.sin(angle) - np.cos(angle) * pulled) / inertia
        faster = pulled - self.POLE * self.HALF_LENGTH * faster_turning * np.cos(angle) / mass
        self.state = self.state + self.SECONDS * np.stack([speed, faster, turning, faster_turning], axis=1)
        self.age += 1
        fell = (np.abs(self.state[:, 0]) > self.FARTHEST) | (np.abs(self.state[:, 2]) > self.STEEPEST)
        ended = fell | (self.age >= LONGEST)
        ages = self.age[ended]
        self.state[ended] = self.random.uniform(-0.05, 0.05, (len(ages), 4))
        self.age[ended] = 0
        return ended, ages


class Agent(nn.Module):
    """Scores of the two pushes, and what standing upright is still worth, 1 for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
        self.value = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores (n, 2) and values (n,)."""
        return self.policy(state), self.value(state).squeeze(-1)


def returns(ended: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return the discounted sums of a reward for each step (steps, carts), beyond the last step as estimated.

    The reward is ``1 - DISCOUNT``, so that a pole which never falls is worth 1.
    """
    sums, ahead = np.empty(ended.shape), last
    for step in reversed(range(len(ended))):
        ahead = sums[step] = 1 - DISCOUNT + DISCOUNT * np.where(ended[step], 0, ahead)
    return sums


def update(agent: Agent, optimizer: lucid.optim.Optimizer, carts: CartPole, device: str) -> list[int]:
    """Run all carts for some steps and follow the gradient; return how old the carts were that ended."""
    scores, values, chosen, ended, ages = [], [], [], [], []
    for _ in range(STEPS):
        score, value = agent(lucid.tensor(carts.state, dtype=lucid.float32, device=device))
        push = lucid.multinomial(functional.softmax(score.detach(), -1), 1)
        over, old = carts.step(push.squeeze(-1).cpu().numpy())
        for each, kept in zip((score, value, push, over), (scores, values, chosen, ended), strict=True):
            kept.append(each)
        ages += old.tolist()
    with lucid.no_grad():
        last = agent(lucid.tensor(carts.state, dtype=lucid.float32, device=device))[1]
    expected = lucid.tensor(returns(np.stack(ended), last.cpu().numpy()), dtype=lucid.float32, device=device)
    advantage = expected - lucid.stack(values)
    log_odds = functional.log_softmax(lucid.stack(scores), -1)
    followed = log_odds.gather(-1, lucid.stack(chosen)).squeeze(-1) * advantage.detach()
    entropy = -(log_odds * log_odds.exp()).sum(-1)
    optimizer.zero_grad()
    (advantage.square() - followed / advantage.detach().std() - ENTROPY * entropy).mean().backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    optimizer.step()
    return ages


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, and print how long poles stood at first and at last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--updates", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.updates < 1:
        parser.error(f"expected --updates of at least 1, got {options.updates}")
    if options.device == "cuda" and not lucid.cuda.is_available():
        parser.error("--device cuda, and there is no CUDA device")
    lucid.manual_seed(options.seed)
    agent, carts = Agent().to(options.device), CartPole(CARTS, np.random.default_rng(options.seed))
    optimizer = lucid.optim.Adam(agent.parameters(), lr=3e-3)
    console, ages = Console(), []
    with Progress(console=console) as progress:
        task = progress.add_task("training", total=options.updates)
        for _ in range(options.updates):
            ages += update(agent, optimizer, carts, options.device)
            shown = f"{np.mean(ages[-50:]):.0f} steps" if ages else "no pole fell"
            progress.update(task, advance=1, description=shown)
    if not ages:
        console.print("no pole fell")
        return 0
    first, last = np.mean(ages[:50]), np.mean(ages[-50:])
    console.print(f"the first 50 poles stood for {first:.0f} steps, the last 50 for {last:.0f} of {LONGEST}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
