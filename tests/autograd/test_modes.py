"""Grad modes as decorators of functions, generators, coroutines, asynchronous generators and classes."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import inspect
import threading
import weakref

import pytest

import lucid
from lucid.autograd import is_multithreading_enabled, set_multithreading_enabled


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
    threads = [threading.Thread(target=lambda: results.append((model.run(1), state()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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

    gc.disable()
    try:
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
    finally:
        gc.enable()


def test_multithreading_as_decorator():
    """`set_multithreading_enabled` decorates too: it holds in the calls and not between."""

    @set_multithreading_enabled(False)
    def steps():
        yield is_multithreading_enabled()
        yield is_multithreading_enabled()

    assert [(inner, is_multithreading_enabled()) for inner in steps()] == [(False, True), (False, True)]
    assert is_multithreading_enabled()
