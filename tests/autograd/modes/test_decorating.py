"""Grad modes as decorators of functions, generators, coroutines, asynchronous generators and classes."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import inspect
import pickle
import threading
import warnings
import weakref

import pytest

import lucid
from lucid.autograd import detect_anomaly, is_multithreading_enabled, set_detect_anomaly, set_multithreading_enabled
from lucid.autograd.graph import disable_saved_tensors_hooks, saved_tensors_hooks
from lucid.autograd.modes import state as autograd_mode
from lucid.errors import GraphError
from lucid.utils.checkpoint import set_checkpoint_debug_enabled, set_checkpoint_early_stop
from tests.pieces import in_threads, no_collections
from tests.waiting import PATIENCE


def state():
    """Return grad mode and inference mode of this thread."""
    return lucid.is_grad_enabled(), lucid.is_inference_mode_enabled()


OUTSIDE = (True, False)
# what decorates, the state inside, and the mode that holds outside meanwhile
MODES = {
    "no_grad()": (lambda: lucid.no_grad(), (False, False), None),
    "no_grad": (lambda: lucid.no_grad, (False, False), None),
    "enable_grad": (lambda: lucid.enable_grad(), (True, False), lucid.no_grad),
    "set_grad_enabled(False)": (lambda: lucid.set_grad_enabled(False), (False, False), None),
    "set_grad_enabled(True)": (lambda: lucid.set_grad_enabled(True), (True, False), lucid.no_grad),
    "inference_mode()": (lambda: lucid.inference_mode(), (False, True), None),
    "inference_mode(False)": (lambda: lucid.inference_mode(False), (True, False), lucid.inference_mode),
}


@pytest.fixture(params=MODES)
def mode(request):
    """Return a decorator, the state that it makes, and the state outside, which it must leave alone."""
    make, inside, around = MODES[request.param]

    def decorator(function):
        return make()(function)

    with (around or lucid.enable_grad)():
        outside = state()
        assert outside != inside
        yield decorator, inside, outside
        assert state() == outside


def test_a_generator_has_the_mode_in_each_step(mode):
    """It holds around next, send, throw and close, not in the caller between; values, errors and returns go through."""
    decorator, inside, outside = mode
    seen = []

    @decorator
    def steps(start):
        seen.append(state())
        sent = yield start
        seen.append((sent, state()))
        try:
            yield sent * 2
        except KeyError as error:
            seen.append((error.args, state()))
        try:
            yield "last"
        finally:
            seen.append(state())

    generator = steps(1)
    assert (next(generator), state()) == (1, outside)
    assert (generator.send(5), state()) == (10, outside)
    assert (generator.throw(KeyError("k")), state()) == ("last", outside)
    generator.close()
    assert state() == outside
    assert seen == [inside, (5, inside), (("k",), inside), inside]
    assert next(generator, "closed") == "closed"


def test_a_generator_gives_its_return_value_and_its_errors(mode):
    """`yield from` gets what the generator returns; an error of a step leaves the mode as it was."""
    decorator, inside, outside = mode

    @decorator
    def value():
        yield state()
        return state()

    @decorator
    def fails():
        yield 1
        raise ZeroDivisionError

    def outer():
        returned = yield from value()
        assert returned == inside
        yield state()

    assert list(outer()) == [inside, outside]
    generator = fails()
    next(generator)
    with pytest.raises(ZeroDivisionError):
        next(generator)
    assert state() == outside


def test_what_records_between_the_steps_records():
    """Ops of the caller between two steps are recorded, those of the generator are not."""
    x = lucid.tensor([2.0], requires_grad=True)

    @lucid.no_grad()
    def evaluate():
        for _ in range(3):
            yield x * 3

    for inner in evaluate():
        assert not inner.requires_grad
        assert (x * 2).requires_grad


def test_a_coroutine_has_the_mode_between_its_awaits(mode):
    """While a coroutine waits, other tasks of the loop run in their own modes."""
    decorator, inside, outside = mode

    @decorator
    async def one(turns):
        seen = [state()]
        for _ in range(turns):
            await asyncio.sleep(0)
            seen.append(state())
        return seen

    async def other(turns):
        seen = [state()]
        for _ in range(turns):
            await asyncio.sleep(0)
            seen.append(state())
        return seen

    async def both():
        return await asyncio.gather(one(3), other(3), one(2))

    assert asyncio.run(both()) == [[inside] * 4, [outside] * 4, [inside] * 3]


def test_a_coroutine_is_cancelled_inside_its_mode(mode):
    """Cancellation reaches the coroutine inside of the mode, and an error goes on to who awaits."""
    decorator, inside, outside = mode
    seen = []

    @decorator
    async def sleeper():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append(state())
            raise

    async def main():
        task = asyncio.create_task(sleeper())
        await asyncio.sleep(0)
        assert state() == outside
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert seen == [inside]


def test_an_asynchronous_generator_has_the_mode_in_each_step(mode):
    """It holds in each step up to the next await or yield, through asend, athrow and aclose."""
    decorator, inside, outside = mode
    seen = []

    @decorator
    async def steps(start):
        seen.append(state())
        sent = yield start
        await asyncio.sleep(0)
        seen.append((sent, state()))
        try:
            yield sent * 2
        except KeyError:
            await asyncio.sleep(0)
            seen.append(state())
        try:
            yield "last"
        finally:
            await asyncio.sleep(0)
            seen.append(state())

    async def watch(turns):
        for _ in range(turns):
            assert state() == outside
            await asyncio.sleep(0)

    async def use():
        generator = steps(1)
        assert (await anext(generator), state()) == (1, outside)
        assert (await generator.asend(5), state()) == (10, outside)
        assert (await generator.athrow(KeyError("k")), state()) == ("last", outside)
        await generator.aclose()
        assert state() == outside
        return [step async for step in counted(3)]

    @decorator
    async def counted(count):
        for index in range(count):
            await asyncio.sleep(0)
            yield index, state()

    async def main():
        return (await asyncio.gather(use(), watch(20)))[0]

    assert asyncio.run(main()) == [(index, inside) for index in range(3)]
    assert seen == [inside, (5, inside), inside, inside]


def test_decorated_functions_stay_of_their_kind():
    """`inspect` finds generators, coroutines and asynchronous generators after decoration too, with their names."""

    @lucid.no_grad()
    def plain():
        """Doc."""

    @lucid.no_grad()
    def generator():
        yield

    @lucid.inference_mode()
    async def coroutine():
        pass

    @lucid.set_grad_enabled(False)
    async def async_generator():
        yield

    assert inspect.isgeneratorfunction(generator)
    assert inspect.iscoroutinefunction(coroutine)
    assert inspect.isasyncgenfunction(async_generator)
    assert not inspect.isgeneratorfunction(plain)
    assert [f.__name__ for f in (plain, generator, coroutine, async_generator)] == [
        "plain",
        "generator",
        "coroutine",
        "async_generator",
    ]
    assert plain.__doc__ == "Doc."
    assert inspect.isgeneratorfunction(lucid.no_grad()(functools.partial(generator)))


def test_methods_and_recursion_and_threads(mode):
    """Methods are decorated as functions are; calls that overlap, nested or on threads, do not mix."""
    decorator, inside, _ = mode

    class Model:
        @decorator
        def run(self, depth):
            assert state() == inside
            if depth:
                self.run(depth - 1)
            assert state() == inside
            return state()

        @decorator
        def parts(self):
            yield state()
            yield state()

    model = Model()
    assert model.run(3) == inside
    first, second = model.parts(), model.parts()
    assert [next(first), next(second), next(first), next(second)] == [inside] * 4
    results = []
    in_threads(*[lambda: results.append((model.run(1), state()))] * 4)
    assert results == [(inside, OUTSIDE)] * 4


def test_a_decorated_class_warns_and_becomes_a_function(mode):
    """Only making an instance runs inside the mode, as in PyTorch, which warns in the same way."""
    decorator, inside, outside = mode

    class Model:
        def __init__(self):
            self.made = state()

        def run(self):
            return state()

    with pytest.warns(FutureWarning, match="Model"):
        make = decorator(Model)
    assert inspect.isfunction(make)
    assert vars(make) == {"__wrapped__": Model}
    model = make()
    assert type(model) is Model
    assert (model.made, model.run()) == (inside, outside)


class Thrown(Exception):
    """What weak references can refer to."""


def test_a_waiting_generator_holds_nothing_of_its_callers():
    """What was yielded and what was thrown in belongs to the caller: both go at once, without the garbage collector."""

    @lucid.no_grad()
    def steps():
        while True:
            with contextlib.suppress(Thrown):
                yield lucid.ones(1)

    with no_collections():
        generator = steps()
        value = weakref.ref(next(generator))
        assert value() is None
        error = Thrown()
        kept = weakref.ref(generator.throw(error))
        assert kept() is None
        gone = weakref.ref(error)
        del error
        assert gone() is None
        generator.close()


@pytest.mark.parametrize("setting", [lucid.set_grad_enabled, set_multithreading_enabled])
@pytest.mark.parametrize("value", ["no", 0, None, lambda: True])
def test_a_setting_is_a_bool(setting, value):
    """Anything else would silently count as True or False, a decorated function for one; nothing is switched."""
    with pytest.raises(TypeError, match="expected a bool, got"):
        setting(value)
    assert (lucid.is_grad_enabled(), is_multithreading_enabled()) == (True, True)


def test_a_waiting_asynchronous_generator_holds_nothing_of_its_callers():
    """As one that is not asynchronous."""

    @lucid.no_grad()
    async def steps():
        while True:
            with contextlib.suppress(Thrown):
                yield lucid.ones(1)

    def result(step):
        try:
            step.send(None)
        except StopIteration as end:
            return weakref.ref(end.value)

    with no_collections():
        generator = steps()
        assert result(generator.asend(None))() is None
        error = Thrown()
        assert result(generator.athrow(error))() is None
        gone = weakref.ref(error)
        del error
        assert gone() is None


def test_multithreading_as_decorator():
    """`set_multithreading_enabled` decorates too: it holds in the calls and not between."""

    @set_multithreading_enabled(False)
    def steps():
        yield is_multithreading_enabled()
        yield is_multithreading_enabled()

    assert [(inner, is_multithreading_enabled()) for inner in steps()] == [(False, True), (False, True)]
    assert is_multithreading_enabled()


@pytest.mark.filterwarnings("ignore:anomaly detection")
def test_modes_of_a_new_thread():
    """It begins with those that a program begins with, whatever the thread has that starts it."""

    def modes():
        return (
            lucid.is_grad_enabled(), lucid.is_inference_mode_enabled(), lucid.is_anomaly_enabled(),
            lucid.is_autocast_enabled("cpu"), is_multithreading_enabled(),
        )  # fmt: skip

    found = []
    with (
        lucid.no_grad(), lucid.inference_mode(), detect_anomaly(), lucid.autocast("cpu"),
        set_multithreading_enabled(False),
    ):  # fmt: skip
        in_threads(lambda: found.append(modes()))
    assert found == [(True, False, False, False, True)]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda mode: pickle.loads(pickle.dumps(mode))])
def test_a_copy_of_what_switched_at_once(copied):
    """It holds what stood before: once that is back, ops are recorded."""
    x = lucid.ones(1, requires_grad=True)
    with lucid.enable_grad():
        with copied(lucid.set_grad_enabled(False)):
            assert not (x * 2).requires_grad
        assert (x * 2).requires_grad


@pytest.mark.parametrize("mode", [lucid.no_grad, lucid.enable_grad, lucid.inference_mode])
def test_leaving_more_often_than_entering(mode):
    """An exit without an entry is refused, and changes nothing."""
    with lucid.set_grad_enabled(False):
        before = state()
        used = mode()
        with used:
            pass
        with pytest.raises(GraphError, match=f"{mode.__name__}: __exit__ without an __enter__"):
            used.__exit__(None, None, None)
        assert state() == before


def same(value):
    """Return the argument: a hook that can be pickled."""
    return value


CONTEXTS = {
    "no_grad": lucid.no_grad,
    "enable_grad": lucid.enable_grad,
    "inference_mode": lucid.inference_mode,
    "set_grad_enabled": lambda: lucid.set_grad_enabled(False),
    "set_multithreading_enabled": lambda: set_multithreading_enabled(False),
    "detect_anomaly": detect_anomaly,
    "set_detect_anomaly": lambda: set_detect_anomaly(True),
    "saved_tensors_hooks": lambda: saved_tensors_hooks(same, same),
    "disable_saved_tensors_hooks": lambda: disable_saved_tensors_hooks("none here"),
    "set_checkpoint_early_stop": lambda: set_checkpoint_early_stop(False),
    "set_checkpoint_debug_enabled": lambda: set_checkpoint_debug_enabled(True),
}


def everything():
    """Return what a context manager may have switched on this thread."""
    state = autograd_mode.thread.state
    return state.modes(), state.anomaly, state.early_stop, state.debug, state.multithreading


def made(name):
    """Return a context manager that has not begun."""
    before = everything()
    with warnings.catch_warnings(action="ignore"):
        context = CONTEXTS[name]()
    if everything() != before:  # it begins when it is made
        with context:
            pass
    return context


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
@pytest.mark.parametrize("name", CONTEXTS)
def test_a_copy_is_a_context_manager_of_its_own(name, copied):
    """A copy or a pickle, made outside or inside of a block, does what the original does, and stands in no block."""
    before = everything()
    context = made(name)
    outside = copied(context)
    with context:
        inside = everything()
        other = copied(context)
        if name != "saved_tensors_hooks":  # takes hooks off that a backward pass has put back on
            with pytest.raises(GraphError):
                other.__exit__(None, None, None)
        assert everything() == inside
    for mode in (outside, other):
        with mode:
            now = everything()
            assert now[1:] == inside[1:]
            assert now[0][0] is inside[0][0]
            assert len(now[0][1]) == len(inside[0][1])
        assert everything() == before
    assert (lucid.ones(1, requires_grad=True) * 2).requires_grad


@pytest.mark.parametrize("name", CONTEXTS)
def test_threads_share_a_context_manager(name):
    """Where several threads stand in blocks of one object, each gets back what it had, whoever leaves first."""
    context = made(name)
    before = everything()
    entered, leave, left = threading.Event(), threading.Event(), threading.Event()
    seen = []

    def other():
        with context:
            entered.set()
            assert leave.wait(PATIENCE)
        seen.append(everything())
        left.set()

    worker = threading.Thread(target=other)
    worker.start()
    assert entered.wait(PATIENCE)
    with context:
        inside = everything()
        leave.set()
        assert left.wait(PATIENCE)
        assert everything() == inside
    worker.join()
    assert [before] == seen
    assert everything() == before


@pytest.mark.parametrize("name", CONTEXTS)
def test_one_context_manager_again_and_inside_of_itself(name):
    """Each block of an object holds until its own end."""
    before = everything()
    context = made(name)
    for _ in range(2):
        with context:
            outer = everything()
            if name != "disable_saved_tensors_hooks":
                with context:
                    pass
            assert everything() == outer != before or name == "enable_grad"
        assert everything() == before


@pytest.mark.parametrize("value", [3, "off", None])
def test_inference_mode_takes_a_bool(value):
    """What merely counts as True or False is refused, as by `set_grad_enabled`."""
    with pytest.raises(TypeError, match="inference_mode: mode: expected a bool, got"):
        lucid.inference_mode(value)


class Told:
    """What a thread's modes are to be, told by hand: the grad mode, inference mode, and the saved-tensor hooks."""

    def __init__(self):
        self.grad = True
        self.inference = False
        self.hooks = []
        self.anomaly = False


def check_modes(told, packed):
    """Check that ops do what the modes say: are recorded or not, carry versions or not, and pack what they save."""
    x = lucid.ones(1, requires_grad=True) if not told.inference else None
    assert lucid.is_grad_enabled() == told.grad
    assert lucid.is_inference_mode_enabled() == told.inference
    assert lucid.autograd.is_anomaly_enabled() == told.anomaly
    assert lucid.ones(1).is_inference() == told.inference
    if x is None:
        return
    packed.clear()
    for op in (lambda: x * x, lambda: x.exp(), lambda: x * 2.0, lambda: lucid.cat([x, x])):
        assert op().requires_grad == told.grad
    assert packed == (told.hooks[-1:] * 3 if told.grad else [])


def test_any_nesting_of_modes(rng):
    """After any sequence of blocks entered and left, switches and backward passes, ops obey the modes."""
    packed = []

    def grad_mode(told, make, grad, inference):
        before = told.grad, told.inference
        context = make()
        context.__enter__()
        told.grad = grad
        told.inference = told.inference if inference is None else inference

        def leave():
            context.__exit__(None, None, None)
            told.grad, told.inference = before

        return leave

    def hooks(told, number):
        def pack(tensor):
            packed.append(number)
            return tensor

        context = lucid.autograd.graph.saved_tensors_hooks(pack, lambda t: t)
        context.__enter__()
        told.hooks.append(number)

        def leave():
            context.__exit__()
            told.hooks.remove(number)

        return leave

    def anomaly(told, on):
        before = told.anomaly
        context = lucid.autograd.set_detect_anomaly(on)
        context.__enter__()
        told.anomaly = on

        def leave():
            context.__exit__()
            told.anomaly = before

        return leave

    def switch(told, on):
        lucid.set_grad_enabled(on)
        told.grad = on

    def backward(told, create_graph):
        """Run a pass, with a hook that leaves a mode on and one that runs a pass of its own."""

        def inner_pass(grad):
            with lucid.enable_grad():
                z = x * x
            lucid.autograd.grad(z, x, create_graph=not create_graph)

        with lucid.inference_mode(False):
            x = lucid.ones(1, requires_grad=True)
            y = x.exp()
            y.register_hook(lambda grad: lucid.set_grad_enabled(not create_graph) and None)
            y.register_hook(inner_pass)
            x.register_hook(lambda grad: seen.append(lucid.is_grad_enabled()))
            seen = []
            (y * y).backward(create_graph=create_graph)
            assert seen[-1] == create_graph

    kinds = [
        lambda told, n: grad_mode(told, lucid.no_grad, grad=False, inference=None),
        lambda told, n: grad_mode(told, lucid.enable_grad, grad=True, inference=None),
        lambda told, n: grad_mode(told, lucid.inference_mode, grad=False, inference=True),
        lambda told, n: grad_mode(told, lambda: lucid.inference_mode(False), grad=True, inference=False),
        hooks,
        lambda told, n: anomaly(told, on=n % 2 == 0),
        lambda told, n: switch(told, on=n % 2 == 0),
        lambda told, n: backward(told, create_graph=n % 2 == 0),
    ]
    for _ in range(150):
        told, open_blocks = Told(), []
        for number in range(12):
            if open_blocks and rng.random() < 0.4:
                open_blocks.pop()()
            else:
                leave = kinds[rng.integers(len(kinds))](told, number)
                if leave is not None:
                    open_blocks.append(leave)
            if rng.random() < 0.7:
                check_modes(told, packed)
        while open_blocks:
            open_blocks.pop()()
        lucid.set_grad_enabled(True)
        lucid.autograd.set_detect_anomaly(False)
