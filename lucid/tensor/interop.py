"""Tensors on the memory of other libraries' arrays, and the other way round: NumPy, DLPack, CUDA's array interface."""

from __future__ import annotations

import functools
import sys
from importlib import import_module
from types import FrameType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import wrap
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.views import live_edge
from lucid.base.arrays import asarray, to_device
from lucid.base.capture import check_not_capturing
from lucid.base.device import Device, as_device, device_of
from lucid.base.dtype import dtype_of
from lucid.base.foreign.dlpack import capsule_of, read
from lucid.errors import DeviceError, DtypeError, GraphError, SettingError
from lucid.ops.base.scalars import as_bool

if TYPE_CHECKING:
    from lucid.tensor import Tensor


class ExportError(GraphError, BufferError):
    """A tensor on the graph was handed to a library that does not record."""


class NotOfferedError(ExportError, AttributeError):
    """A tensor on the graph was asked for an interface; callers that test for it, as CuPy does, pass the call to it."""


class NumpyOfCudaError(DeviceError, TypeError):
    """A tensor on a CUDA device was handed to NumPy."""


OF_KERNELS = "; a kernel of your own is recorded by f = lucid.cuda.derivative(kernel), and f(tensor)"
TO_FILL = (
    "an array that it is written into, y[0] = x, has to be made like it, y = lucid.numpy.zeros(n, like=x) or "
    "zeros_like(x), or within lucid.autograd.graph.allow_mutation_on_saved_tensors(); or join parts by stack"
)
OF_ARRAYS = (
    f"; {TO_FILL} or concatenate; of a plain array's method, a.dot(x), there is the function, lucid.numpy.dot(a, x), "
    "of numpy.polynomial there are lucid.numpy.polyval, polyadd, polymul, polyder and polyint, and of SciPy's "
    "functions those of lucid.scipy"
)


def untracked(self: Tensor, call: str, *, recording: bool = True, remedy: str = "") -> Any:
    """Return the raw array for a library that does not record.

    Raises
    ------
    ExportError
        If this tensor requires grad and lucid is `recording`.
    """
    if recording and live_edge(self) is not None:
        raise export_error(call, remedy)
    return self.array


def export_error(call: str, remedy: str = "", *, kind: type[ExportError] = ExportError) -> ExportError:
    """Return the error of a tensor on the graph for a call that does not record, with its remedy."""
    return kind(f"can't call {call} on Tensor that requires grad: use tensor.detach() first{remedy}")


def lent_to_kernel(self: Tensor, name: str) -> Any:
    """Return the raw array for a kernel of `lucid.cuda.compile`: the kernel records nothing.

    Raises
    ------
    ExportError
        If this tensor requires grad, outside of `lucid.no_grad` and of a Function's forward.
    """
    return untracked(self, f"the kernel {name}", recording=bool(thread.state.recording), remedy=OF_KERNELS)


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray[Any, Any]:
    """Return the elements as a NumPy array on the same memory.

    Parameters
    ----------
    force : bool
        Detach and copy from the device where that is needed.

    Returns
    -------
    numpy.ndarray
        bfloat16 has the dtype of ml_dtypes.

    Raises
    ------
    GraphError
        If this tensor requires grad and grad mode is on: NumPy does not record.
    DeviceError
        If it is on a CUDA device.

    Examples
    --------
    >>> import lucid
    >>> lucid.tensor([1.0, 2.0]).numpy()
    array([1., 2.], dtype=float32)
    """
    force = as_bool(force, "force")
    array = untracked(self, "numpy()", recording=thread.state.grad_mode.enabled and not force)
    if type(array) is np.ndarray:
        return array
    if not force:
        raise NumpyOfCudaError(
            f"can't convert {device_of(array)} device type tensor to numpy: use tensor.cpu() to copy it to host memory "
            "first"
        )
    check_not_capturing("numpy()")
    return array.get()


NO_ARRAY = np.array(None)
"""What SciPy's sparse matrices take for no array: they leave the product to its class."""


def defers_to_tensor(asks: FrameType) -> bool:
    """Return whether a product of SciPy's sparse matrices asks for an array: the tensor computes that itself."""
    return asks.f_code.co_name == "_matmul_dispatch" and asks.f_globals["__name__"].startswith("scipy.sparse")


def to_array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    """Return ``numpy.asarray(tensor)``; see `numpy`."""
    if defers_to_tensor(sys._getframe(1)):  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - who asks
        return NO_ARRAY
    untracked(self, "numpy()", recording=thread.state.grad_mode.enabled, remedy=OF_ARRAYS)
    array = numpy(self)
    if dtype is None or array.dtype == dtype:
        return array.copy() if copy else array
    if copy is False:
        raise SettingError(f"a copy is needed to give a tensor of {dtype_of(array)} to NumPy as {np.dtype(dtype)}")
    return array.astype(dtype)


def dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Return the DLPack capsule of the tensor's memory, for ``from_dlpack`` of another library.

    Parameters
    ----------
    stream : int
        What work on a CUDA device waits for.
    max_version : pair of int
        The newest version of DLPack that the other library reads.
    dl_device : pair of int
        DLPack's kind of the device that the memory is wanted on, and its index.
    copy : bool
        Whether it has to be a copy, or must not be one.

    Raises
    ------
    ExportError
        If this tensor requires grad; a BufferError too.
    BufferError
        If elements lie in memory backwards, as they may in that of an array of NumPy's, and no copy is asked for; if
        memory of a CUDA device is wanted on the CPU, and no copy.
    """
    options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
    return capsule_of(
        untracked(self, "__dlpack__()"), {key: value for key, value in options.items() if value is not None}
    )


def dlpack_device(self: Tensor) -> tuple[int, int]:
    """Return DLPack's kind of device and its index."""
    return self.array.__dlpack_device__()


def from_dlpack(ext_tensor: Any, *, device: Device = None, copy: bool | None = None) -> Tensor:
    """Return a tensor on the memory of another library's array.

    Parameters
    ----------
    ext_tensor : object with ``__dlpack__`` and ``__dlpack_device__``
        On the CPU or a CUDA device.
    device : device, optional
        Where the tensor is to be; where the array is if left out.
    copy : bool, optional
        Whether it has to be a copy, or must not be one.

    Returns
    -------
    Tensor
        Changes of either are seen by the other; only CUDA memory that is to be read only is copied.

    Raises
    ------
    TypeError
        If it does not speak DLPack.
    DtypeError
        If lucid has no such dtype.
    DeviceError
        If it is on a device of another kind.
    CudaUnavailableError
        If it is on a CUDA device that lucid cannot use.
    SettingError
        If a copy is needed, and `copy` is False.

    Examples
    --------
    >>> import lucid
    >>> import numpy as np
    >>> array = np.zeros(2)
    >>> tensor = lucid.from_dlpack(array)
    >>> array[0] = 1
    >>> tensor
    tensor([1., 0.], dtype=lucid.float64)
    """
    if not hasattr(ext_tensor, "__dlpack__"):
        raise DtypeError(
            f"from_dlpack: ext_tensor: expected an array that has __dlpack__, got {type(ext_tensor).__name__}"
        )
    # NumPy's own arrays need no DLPack, which knows neither their bfloat16 nor their masks
    copy = None if copy is None else as_bool(copy, "copy")
    if isinstance(ext_tensor, np.ndarray):
        taken = asarray(ext_tensor, device="cpu")
    else:
        taken = read(ext_tensor, copies=copy is not False)
    here = device_of(taken)
    target = here if device is None else as_device(device)
    if target != here:
        if copy is False:
            raise SettingError(
                f"from_dlpack: a copy is needed to bring memory of {here} to {target}, and copy is False"
            )
        return wrap(to_device(taken, target))
    return wrap(taken.copy() if copy else taken)


NAMESPACE = "lucid.array_api"
"""What lies on tensors, and is imported when it is asked for."""
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def array_namespace(_self: Tensor, /, *, api_version: str | None = None) -> ModuleType:
    """Return `lucid.array_api`, the functions of the Python array API standard.

    Raises
    ------
    SettingError
        If another version is asked for than there are.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.ones(2)
    >>> x.__array_namespace__().sum(x)
    tensor(2.)
    """
    if api_version is not None and api_version not in VERSIONS:
        raise SettingError(
            f"__array_namespace__: api_version: expected one of {', '.join(VERSIONS)}, got {api_version!r}"
        )
    return import_module(NAMESPACE)


def to_device_of(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """Return the tensor on a device, joined to this one in the graph; itself if it is there.

    `stream` is None: work is in the order of the current stream.

    >>> import lucid
    >>> x = lucid.ones(2)
    >>> x.to_device("cpu") is x
    True
    """
    if stream is not None:
        raise SettingError(
            f"to_device: stream: expected None, the current stream, got {stream!r}: use lucid.cuda.stream"
        )
    return self.to(device)


def cuda_array_interface(self: Tensor) -> dict[str, Any]:
    """Return the description of CUDA memory that Numba and others read.

    It has no name for bfloat16: the one that NumPy's dtype has is given, which CuPy understands and others refuse.

    Raises
    ------
    AttributeError
        If the tensor is on the CPU.
    NotOfferedError
        If it requires grad. It is an AttributeError too: `hasattr` says no, and what asked goes on to `__array__` or
        `__dlpack__`, which refuse by name.
    """
    if type(self.array) is np.ndarray:
        raise AttributeError("a tensor on the CPU has no __cuda_array_interface__: move it with .cuda()")
    if live_edge(self) is not None:
        raise export_error("__cuda_array_interface__", OF_KERNELS, kind=NotOfferedError)
    interface = self.array.__cuda_array_interface__
    if self.array.dtype.kind == "V":
        # CuPy would say two bytes, and name no field of them, of which others make a dtype that holds nothing
        interface["typestr"] = self.array.dtype.name
        interface.pop("descr", None)
    return interface


PROTOCOLS = "lucid.tensor.numpy_calls.protocols"
"""What knows the rules of NumPy's functions."""


class UfuncProtocol:
    """`__array_ufunc__`, looked up by NumPy on the class of an operand, and by CuPy's operators on the operand itself.

    A tensor on a device has none: an operator of CuPy's then gives way to the tensor's own, ``a + x`` to
    ``x.__radd__(a)``, whether or not it requires grad. In-place ones ask nobody and call the ufunc.
    """

    @functools.cached_property
    def function(self) -> Any:
        """The function, imported when it is first asked for."""
        return import_module(PROTOCOLS).ufunc_call

    def __get__(self, tensor: Tensor | None, owner: type) -> Any:
        if tensor is None:
            return self.function
        return MethodType(self.function, tensor) if type(tensor.array) is np.ndarray else None
