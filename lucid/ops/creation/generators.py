"""Generators of random numbers, with their state as tensors, and draws from them on a device.

What holds for all random tensors says `lucid.ops.creation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from lucid.arguments import unfit
from lucid.autograd.base import wrap
from lucid.base.arrays import Array, to_device
from lucid.base.device import CPU, Device, as_device, device
from lucid.base.dtype import dtype_of, uint8
from lucid.base.random import generator as state
from lucid.errors import DeviceError, DtypeError
from lucid.ops.base.operands import tensor_operand
from lucid.ops.creation.filling import on_device

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor


class Generator(state.Generator):
    """Stream of random numbers on one device: a seed and how far it has been read.

    `device` is ``"cpu"``, ``"cuda"`` or ``"cuda:N"``; `seed` any integer in [-2**63, 2**64), by default fresh entropy.

    >>> import lucid
    >>> generator = lucid.Generator().manual_seed(7)
    >>> before = generator.get_state()
    >>> first = lucid.rand(3, generator=generator)
    >>> generator.set_state(before)
    >>> bool(lucid.equal(lucid.rand(3, generator=generator), first))
    True
    """

    __slots__ = ()

    def __init__(self, device: device | str = "cpu", seed: int | None = None) -> None:
        super().__init__(str(device), seed)

    def get_state(self) -> Any:
        """State as a tensor of 24 bytes."""
        return wrap(super().get_state())

    def set_state(self, state: Any) -> None:
        """Continue from a state that `get_state` returned, of this or any other generator; else raise a ValueError."""
        super().set_state(bytes_of(state))


# Whoever gets a default generator, as from `manual_seed`, has one of the public class.
state.default_generator.__class__ = Generator


def bytes_of(value: Tensor) -> Any:
    """Return the array of a generator's state, on the CPU: a checkpoint may have been loaded to another device."""
    tensor = tensor_operand(value)
    if tensor.array.dtype != uint8.numpy:
        raise DtypeError(f"expected a generator state of dtype uint8, got {dtype_of(tensor.array)}")
    return to_device(tensor.array, CPU)


def manual_seed(seed: int) -> Generator:
    """Return the CPU's default generator, after the default generators of all devices were restarted with `seed`.

    `seed` is in [-2**63, 2**64), or a ValueError is raised.

    >>> import lucid
    >>> _ = lucid.manual_seed(0)
    >>> first = lucid.rand(3)
    >>> _ = lucid.manual_seed(0)
    >>> lucid.equal(lucid.rand(3), first)
    True
    """
    return cast("Generator", state.manual_seed(seed))


def seed() -> int:
    """Restart all default generators with a fresh seed in [0, 2**64) from the system, and return it.

    >>> import lucid
    >>> lucid.seed() == lucid.initial_seed()
    True
    """
    fresh = state.Generator("cpu").initial_seed()
    state.manual_seed(fresh)
    return fresh


def initial_seed() -> int:
    """Return the seed, in [0, 2**64), of the CPU's default generator.

    >>> import lucid
    >>> _ = lucid.manual_seed(3)
    >>> lucid.initial_seed()
    3
    """
    return state.default_generator_for("cpu").initial_seed()


def get_rng_state() -> Tensor:
    """Return the state of the CPU's default generator: 24 bytes, a tensor of dtype uint8.

    >>> import lucid
    >>> lucid.get_rng_state().dtype
    lucid.uint8
    """
    return wrap(state.get_rng_state())


def set_rng_state(new_state: Tensor) -> None:
    """Continue the CPU's default generator from `new_state`, a result of `get_rng_state`; else raise a ValueError.

    >>> import lucid
    >>> before = lucid.get_rng_state()
    >>> first = lucid.rand(3)
    >>> lucid.set_rng_state(before)
    >>> lucid.equal(lucid.rand(3), first)
    True
    """
    state.set_rng_state(bytes_of(new_state))


def stream_for(name: str, generator: state.Generator | None, device: device) -> state.Generator:
    """Return the generator of a draw on a device: the one that is given, or the device's own."""
    if generator is None:
        return state.default_generator_for(str(device))
    if not isinstance(generator, state.Generator):
        raise unfit(generator, "a Generator or None", "generator")
    if generator.device.partition(":")[0] != device.type:
        raise DeviceError(
            f"{name}: Expected a '{device.type}' device type for generator but found '{generator.device}'"
        )
    return generator


def drawn(
    name: str,
    make: Callable[[state.Generator, Any], Array],
    generator: state.Generator | None,
    device: Device,
    *,
    requires_grad: bool = False,
) -> Any:
    """Return the tensor that ``make(generator, numpy or cupy)`` draws on a device."""
    where = as_device(device)
    stream = stream_for(name, generator, where)
    return on_device(lambda xp: make(stream, xp), where, requires_grad)
