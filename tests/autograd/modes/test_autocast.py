"""The mode `autocast`: what it sets for its block, of its thread, and what is left of it afterwards."""

from __future__ import annotations

import copy

import pytest

import lucid
from lucid import amp
from lucid.autograd.modes.state import AUTOCAST_OFF, thread, unusual
from lucid.errors import LucidError, SettingError
from tests.device import DEVICE
from tests.pieces import in_threads


def shown(device_type=DEVICE):
    """Return what holds for a type of device."""
    return (
        lucid.is_autocast_enabled(device_type),
        lucid.get_autocast_dtype(device_type),
        lucid.is_autocast_cache_enabled(),
    )


@pytest.fixture(autouse=True)
def nothing_left():
    """Every test leaves its thread as it was."""
    yield
    assert thread.state.autocast is AUTOCAST_OFF
    assert thread.state.autocast_nesting == 0
    assert not thread.state.autocast_cache


def test_what_it_is_at_first():
    """Nothing chooses its dtype; float16 on CUDA and bfloat16 on the CPU are the lower ones, and casts are kept."""
    assert shown("cpu") == (False, lucid.bfloat16, True)
    assert shown("cuda") == (False, lucid.float16, True)
    assert lucid.is_autocast_enabled() is False


def test_a_block_sets_and_puts_back():
    """A block sets the mode of its device type alone; what it replaced comes back, also after an exception."""
    other = "cuda" if DEVICE == "cpu" else "cpu"
    with lucid.autocast(DEVICE, dtype=lucid.float16, cache_enabled=False):
        assert shown() == (True, lucid.float16, False)
        assert not lucid.is_autocast_enabled(other)
        with lucid.autocast(DEVICE):
            # dtype and cache are by default those around the block
            assert shown() == (True, lucid.float16, False)
        with pytest.raises(ZeroDivisionError), lucid.autocast(DEVICE, dtype=lucid.bfloat16, enabled=False):
            assert shown() == (False, lucid.bfloat16, False)
            raise ZeroDivisionError
        assert shown() == (True, lucid.float16, False)
    assert thread.state.autocast is AUTOCAST_OFF
    lucid.ones(1).add(1)
    lucid.ones(1, requires_grad=True).add(1)
    assert thread.state not in unusual


def test_one_object_is_entered_again():
    """One object may be entered inside of itself, and copied."""
    mode = lucid.autocast(DEVICE)
    with mode, copy.deepcopy(mode), mode:
        assert lucid.is_autocast_enabled(DEVICE)
        assert lucid.autocast_increment_nesting() == 4
        assert lucid.autocast_decrement_nesting() == 3
    assert not lucid.is_autocast_enabled(DEVICE)


def test_it_decorates():
    """A decorated function runs inside, a decorated generator in its steps alone."""

    @lucid.autocast(DEVICE, dtype=lucid.float16)
    def product(x):
        return x @ x

    @lucid.autocast(DEVICE)
    def steps():
        yield lucid.is_autocast_enabled(DEVICE)

    assert product(lucid.ones(2, 2)).dtype is lucid.float16
    for inside in steps():
        assert inside
        assert not lucid.is_autocast_enabled(DEVICE)


def test_threads_have_modes_of_their_own():
    """Another thread is not inside, and what it sets is its own."""
    seen = []

    def run():
        seen.append(lucid.is_autocast_enabled(DEVICE))
        with lucid.autocast(DEVICE, dtype=lucid.float16):
            seen.append((lucid.ones(2, 2) @ lucid.ones(2, 2)).dtype)

    with lucid.autocast(DEVICE, dtype=lucid.bfloat16):
        in_threads(run)
        assert (lucid.ones(2, 2) @ lucid.ones(2, 2)).dtype is lucid.bfloat16
    assert seen == [False, lucid.float16]


def test_functions_set_it():
    """The functions that set the mode of a thread do what a block does."""
    half = lucid.ones(2, 2, dtype=lucid.float64)
    lucid.set_autocast_dtype(DEVICE, lucid.float16)
    assert lucid.get_autocast_dtype(DEVICE) is lucid.float16
    lucid.set_autocast_enabled(DEVICE, True)
    lucid.set_autocast_cache_enabled(False)
    try:
        assert shown() == (True, lucid.float16, False)
        assert (lucid.ones(2, 2) @ lucid.ones(2, 2)).dtype is lucid.float16
        assert (half @ half).dtype is lucid.float64
    finally:
        lucid.set_autocast_enabled(DEVICE, False)
        lucid.set_autocast_cache_enabled(True)
        lucid.set_autocast_dtype(DEVICE, lucid.float16 if DEVICE == "cuda" else lucid.bfloat16)
    assert (lucid.ones(2, 2) @ lucid.ones(2, 2)).dtype is lucid.float32


def test_what_is_set_in_a_pass_ends_with_its_node():
    """A hook that switches the mode on and leaves it on does so until its node is done."""
    x = lucid.ones(2, 2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda _: lucid.set_autocast_enabled(DEVICE, True))
    z = y * 3
    seen = []
    x.register_hook(lambda _: seen.append(lucid.is_autocast_enabled(DEVICE)))
    z.sum().backward()
    assert seen == [False]
    assert not lucid.is_autocast_enabled(DEVICE)

    def bad(_):
        lucid.set_autocast_enabled(DEVICE, True)
        raise ZeroDivisionError

    x.register_hook(bad)
    with pytest.raises(ZeroDivisionError):
        (x * 2).sum().backward()
    assert not lucid.is_autocast_enabled(DEVICE)


def test_scripts_write_0_and_1():
    """`enabled` takes them for False and True, which is what is answered then."""
    for enabled in (0, 1):
        with lucid.autocast(DEVICE, enabled=enabled):
            assert lucid.is_autocast_enabled(DEVICE) is bool(enabled)


@pytest.mark.cpu("warns of a device that is there")
def test_it_warns_where_it_cannot():
    """A dtype that is no half type, and CUDA where there is none, warn and cast nothing."""
    with pytest.warns(UserWarning, match="expected float16 or bfloat16, got lucid.float32") as caught:
        mode = lucid.autocast("cpu", dtype=lucid.float32)
    assert caught[0].filename == __file__
    with mode:
        assert not lucid.is_autocast_enabled("cpu")
    lucid.autocast("cuda", enabled=False)
    if not lucid.cuda.is_available():
        with pytest.warns(UserWarning, match="there is no CUDA device") as caught:
            mode = lucid.cuda.amp.autocast()
        with mode:
            assert not lucid.is_autocast_enabled("cuda")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: lucid.autocast("tpu"), "expected the device_type 'cuda' or 'cpu', got 'tpu'"),
        (lambda: lucid.autocast(3), "device_type: expected a string, got int 3"),
        (lambda: lucid.autocast("cpu", dtype="half precision"), "half precision"),
        (lambda: lucid.autocast("cpu", enabled=2), "enabled: expected a bool, got int 2"),
        (lambda: lucid.set_autocast_dtype("cpu", lucid.float32), "expected float16 or bfloat16, got lucid.float32"),
        (lambda: lucid.set_autocast_enabled("cpu", 1), "enabled: expected a bool, got int"),
        (lambda: lucid.is_autocast_enabled("meta"), "got 'meta'"),
        (lambda: amp.is_autocast_available(None), "device_type: expected a string, got None"),
    ],
)
def test_nonsense_is_refused(wrong, message):
    """What cannot be is refused with what can, and changes nothing."""
    with pytest.raises(LucidError, match=message):
        wrong()
    assert issubclass(SettingError, ValueError)
