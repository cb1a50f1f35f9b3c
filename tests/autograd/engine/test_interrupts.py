"""Ctrl-C at every place where Python looks for it: nothing of the thread is left switched."""

from __future__ import annotations

import ast
import gc
import signal
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import lucid
from lucid.autograd import RemovableHandle
from lucid.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from lucid.autograd.modes.state import ORDINARY, thread
from lucid.base.interrupts import uninterrupted
from lucid.utils.checkpoint import checkpoint, set_checkpoint_debug_enabled, set_checkpoint_early_stop
from tests.device import DEVICE
from tests.stress import interrupts

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Callable, Generator, Iterator

# a Ctrl-C inside of a weak reference's callback or a generator's end is shown and ignored by Python
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def _sigint_as_in_python() -> Generator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Interrupting:
    """Presses Ctrl-C at one of the moments at which Python looks for it: a function begins, or a call in C is over."""

    def __init__(self, moment: int) -> None:
        self.left = moment

    def __call__(self, frame: object, event: str, argument: object) -> None:
        """Count a moment."""
        if event in {"call", "c_return"}:
            self.left -= 1
            if self.left == 0:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGINT)


def state() -> tuple[Any, ...]:
    """Return what a block or a pass may have switched."""
    s = thread.state
    return s.modes(), s.anomaly, s.early_stop, s.debug, [*s.passes]


def at_every_moment(act: Callable[[], object], check: Callable[[], object]) -> int:
    """Interrupt `act` at each of its moments in turn, with `check` after each; return how many there were."""
    act()
    moment = 0
    while True:
        moment += 1
        interrupting = Interrupting(moment)
        gc.disable()  # a collection would run callbacks of test tools, and lose the interrupt in one
        try:
            sys.setprofile(interrupting)
            try:
                act()
            finally:
                sys.setprofile(None)
                gc.enable()
        except KeyboardInterrupt:
            check()
            continue
        if interrupting.left > 0:
            return moment - 1
        check()


X = lucid.tensor([2.0], requires_grad=True)


def in_block(make: Callable[[], contextlib.AbstractContextManager[Any]]) -> Callable[[], None]:
    """Return the use of a context manager around two ops."""

    def act() -> None:
        with warnings.catch_warnings(action="ignore"), make():
            (X * X).exp()

    return act


def backward() -> None:
    """Run a pass with hooks, one of which leaves a mode on, and one inside of a hook."""
    y = X.exp()
    y.register_hook(lambda g: lucid.set_grad_enabled(True) and None)
    y.register_hook(lambda g: lucid.autograd.grad(X * 2, X) and None)
    (y * y).sum().backward()


ACTS: dict[str, Callable[[], None]] = {
    "no_grad": in_block(lucid.no_grad),
    "enable_grad": in_block(lucid.enable_grad),
    "inference_mode": in_block(lucid.inference_mode),
    "saved_tensors_hooks": in_block(lambda: saved_tensors_hooks(lambda t: t, lambda t: t)),
    "save_on_cpu": in_block(save_on_cpu),
    "disable_saved_tensors_hooks": in_block(lambda: disable_saved_tensors_hooks("no")),
    "allow_mutation_on_saved_tensors": in_block(allow_mutation_on_saved_tensors),
    "detect_anomaly": in_block(lucid.autograd.detect_anomaly),
    "early stop": in_block(lambda: set_checkpoint_early_stop(False)),
    "debug": in_block(lambda: set_checkpoint_debug_enabled(True)),
    "decorated": lucid.no_grad()(lambda: None),
    "backward": backward,
    "create_graph": lambda: (X * X * X).backward(create_graph=True),
    "checkpoint": lambda: checkpoint(lambda x: x.exp().sin(), X, use_reentrant=False).sum().backward(),
}


def loops_in_blocks(node: ast.AST, in_block: bool = False) -> Iterator[int]:
    """Give the lines of ``while`` loops with a condition that stand in a block which must see each interrupt."""
    for child in ast.iter_child_nodes(node):
        is_block = isinstance(node, ast.With | ast.AsyncWith) or (
            isinstance(node, ast.Try | ast.TryStar)
            and child in node.body
            and (node.finalbody or any(is_for_interrupts(handler) for handler in node.handlers))
        )
        own_code = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        inside = (in_block or bool(is_block)) and not own_code
        if inside and isinstance(child, ast.While) and not isinstance(child.test, ast.Constant):
            yield child.lineno
        yield from loops_in_blocks(child, inside)


def is_for_interrupts(handler: ast.ExceptHandler) -> bool:
    """Tell whether a handler takes a KeyboardInterrupt."""
    names = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)} if handler.type else None
    return names is None or not names.isdisjoint({"BaseException", "KeyboardInterrupt"})


@pytest.mark.parametrize(
    ("block", "is_seen"),
    [
        ("with f():\n while g(): h()", True),
        ("try:\n if x:\n  while g(): h()\nfinally:\n k()", True),
        ("try:\n while g(): h()\nexcept (OSError, BaseException):\n k()", True),
        ("try:\n while g(): h()\nexcept:\n k()", True),
        ("try:\n while g(): h()\nexcept OSError:\n k()", False),
        ("try:\n while True: h()\nfinally:\n k()", False),
        ("try:\n k()\nfinally:\n while g(): h()", False),
        ("with f():\n def inner():\n  while g(): h()", False),
        ("with f():\n async def inner():\n  while g(): h()", False),
    ],
)
def test_loops_are_seen(block: str, is_seen: bool) -> None:
    """What the next test looks for, in blocks that have it and in some that have not."""
    assert bool([*loops_in_blocks(ast.parse(block))]) is is_seen


def test_no_interrupt_passes_a_handler_by() -> None:
    """Since Python 3.12 the jump back of ``while condition:`` lies outside of the handlers around the loop.

    A Ctrl-C that falls there leaves locks closed and switches on: such loops are functions of their own, which are
    called in the block. (A ``for`` and ``while True`` jump inside.)
    """
    root = Path(__file__).parents[3]
    found = {
        f"{path.relative_to(root)}:{line}"
        for folder in ("lucid", "benchmarks", "examples")
        for path in (root / folder).rglob("*.py")
        for line in loops_in_blocks(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set()


@pytest.mark.parametrize("name", ACTS)
def test_no_mode_stays(name: str) -> None:
    """Wherever Ctrl-C falls in a block or a pass, the thread is as it was before."""
    expected = ORDINARY, None, None, None, []

    def check() -> None:
        now = state()
        X.grad = None
        thread.state.__init__()
        assert now == expected

    assert at_every_moment(ACTS[name], check) > 5


def test_a_step_is_whole() -> None:
    """Wherever Ctrl-C falls in a step, all parameters have made it or none, and hooks fire around the next step."""
    params = [lucid.ones(2, requires_grad=True) for _ in range(3)]
    optimizer = lucid.optim.Adam(params)
    for p in params:
        p.grad = lucid.ones(2)
    taken = 0

    def check() -> None:
        assert len({optimizer.state[p]["step"].item() for p in params}) == 1
        assert len({p[0].item() for p in params}) == 1
        assert not optimizer._stepping

    taken = at_every_moment(optimizer.step, check)
    assert taken > 50


@pytest.mark.parametrize("hooked", [False, True])
def test_a_load_is_whole(hooked: bool) -> None:
    """Wherever Ctrl-C falls in load_state_dict of a module or an optimiser, all of it is loaded or nothing.

    Without hooks no old values are kept: there the Ctrl-C waits.
    """
    model = lucid.nn.Sequential(lucid.nn.Linear(1, 1), lucid.nn.Linear(1, 1))
    if hooked:
        model.register_load_state_dict_post_hook(lambda module, keys: None)
    states = [{name: lucid.full_like(p, float(n)) for name, p in model.named_parameters()} for n in range(2)]
    optimizer = lucid.optim.AdamW(model.parameters(), lr=0.5)
    settings = [optimizer.state_dict(), lucid.optim.Adam(model.parameters(), lr=0.1).state_dict()]
    count = 0

    def act() -> None:
        nonlocal count
        count += 1
        model.load_state_dict(states[count % 2])
        optimizer.load_state_dict(settings[count % 2])

    def check() -> None:
        assert len({p.sum().item() for p in model.parameters()}) == 1
        assert optimizer.param_groups[0]["decoupled_weight_decay"]

    assert at_every_moment(act, check) > 50


def test_a_removal_can_be_repeated() -> None:
    """Wherever Ctrl-C falls in a removal, another call takes the hook off."""
    hooks: list[Any] = []

    def renewed() -> RemovableHandle:
        hooks[:] = [print, len, repr]
        return RemovableHandle(hooks, len)

    handle = renewed()

    def check() -> None:
        nonlocal handle
        handle.remove()
        assert hooks == [print, repr]
        handle = renewed()

    assert at_every_moment(lambda: handle.remove(), check) > 2


def test_uninterrupted() -> None:
    """The first Ctrl-C waits for the end, the second does not; the handler is the user's again in any case."""
    done: list[str] = []

    def act(times: int) -> None:
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        done.append("whole")

    for times in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            uninterrupted(lambda times=times: act(times))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert done == ["whole"]
    assert uninterrupted(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        uninterrupted(lambda: 1 // 0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with ThreadPoolExecutor(1) as pool:
        assert (
            pool.submit(uninterrupted, lambda: signal.getsignal(signal.SIGINT)).result() is signal.default_int_handler
        )
    pressed: list[int] = []

    def own(number: int, frame: object) -> None:
        pressed.append(len(done))

    signal.signal(signal.SIGINT, own)
    uninterrupted(lambda: act(1))
    assert pressed == [len(done)]
    assert signal.getsignal(signal.SIGINT) is own
    done.pop()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    uninterrupted(lambda: act(2))
    assert done == ["whole"] * 2


def test_a_handler_that_a_hook_sets_stays() -> None:
    """What a hook of a load sets to handle Ctrl-C handles it from then on."""
    came: list[int] = []
    model = lucid.nn.Linear(1, 1)
    model.register_load_state_dict_post_hook(
        lambda module, keys: signal.signal(signal.SIGINT, lambda number, frame: came.append(number)) and None
    )
    model.load_state_dict(model.state_dict())
    signal.raise_signal(signal.SIGINT)
    assert came == [signal.SIGINT]


@pytest.mark.skipif(DEVICE != "cpu", reason="about NumPy arrays: the command trains on the CPU")
def test_random_moments() -> None:
    """The short form of `python -m tests.stress.interrupts`."""
    with warnings.catch_warnings(action="ignore"):
        counts, faults = interrupts.run(200)
    assert counts.total() == 200
    assert not faults
