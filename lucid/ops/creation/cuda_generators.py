"""The default generators of CUDA devices. Common rules of random tensors: `lucid.ops.creation`.

A device need not be there to be seeded: a script's first lines run anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.arguments import checked
from lucid.autograd.base import wrap
from lucid.base import gpu
from lucid.base.random import generator as state
from lucid.cuda.devices import CudaDevice, cuda_index
from lucid.ops.creation.generators import bytes_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lucid.tensor import Tensor


def _generator(device: CudaDevice) -> state.Generator:
    return state.default_generator_for(f"cuda:{cuda_index(device)}")


def manual_seed(seed: int) -> None:
    """Restart the default generator of the current CUDA device with `seed`; without a device, only check it.

    `seed` is in [-2**63, 2**64), or a ValueError is raised.

    >>> import lucid
    >>> lucid.cuda.manual_seed(0)
    """
    state.Generator("cuda", seed)
    if gpu.is_available():
        _generator(None).manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Restart the default generators of all CUDA devices with `seed`; without a device, only check it.

    `seed` is in [-2**63, 2**64), or a ValueError is raised.

    >>> import lucid
    >>> lucid.cuda.manual_seed_all(0)
    """
    state.Generator("cuda", seed)
    for index in range(gpu.device_count()):
        _generator(index).manual_seed(seed)


def seed() -> None:
    """Restart the default generator of the current CUDA device with a fresh seed from the system."""
    manual_seed(state.Generator("cpu").initial_seed())


def seed_all() -> None:
    """Restart the default generators of all CUDA devices with one fresh seed from the system."""
    manual_seed_all(state.Generator("cpu").initial_seed())


def initial_seed() -> int:
    """Return the seed, in [0, 2**64), of the current CUDA device's default generator."""
    return _generator(None).initial_seed()


def get_rng_state(device: CudaDevice = "cuda") -> Tensor:
    """Return the state of the default generator of a CUDA `device`: 24 bytes, a tensor of dtype uint8 on the CPU.

    A CudaUnavailableError is raised where there is none.
    """
    return wrap(state.Generator.get_state(_generator(device)))


def get_rng_state_all() -> list[Tensor]:
    """Return the states of the default generators of all CUDA devices.

    >>> import lucid
    >>> len(lucid.cuda.get_rng_state_all()) == lucid.cuda.device_count()
    True
    """
    return [get_rng_state(index) for index in range(gpu.device_count())]


def set_rng_state(new_state: Tensor, device: CudaDevice = "cuda") -> None:
    """Continue the default generator of a CUDA `device` from `new_state`, a result of `get_rng_state`.

    Anything else raises a ValueError, and a CudaUnavailableError is raised where there is no such device.
    """
    state.Generator.set_state(_generator(device), bytes_of(new_state))


@checked
def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Continue the default generators of all CUDA devices, in order, from `new_states`.

    >>> import lucid
    >>> lucid.cuda.set_rng_state_all(lucid.cuda.get_rng_state_all())
    """
    for index, each in enumerate(new_states):
        set_rng_state(each, index)
