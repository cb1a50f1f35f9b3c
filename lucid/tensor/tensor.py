"""The Tensor class: its methods are the functions of `lucid.ops` and of the modules beside this one."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import lucid.ops
from lucid.autograd.base import registered
from lucid.autograd.retain import retains_grad
from lucid.autograd.primitive import PRIMITIVES
from lucid.tensor import conversion, copying, inplace, interop, operators, printing, recording
from lucid.tensor.attributes import Attributes


class Tensor(Attributes):
    """An array with a place in the graph."""

    __slots__ = ()

    __array_priority__ = 1000

    __repr__ = printing.describe_tensor
    __format__ = printing.format_tensor
    __hash__ = object.__hash__
    __bool__ = operators.truth
    __float__ = operators.as_float
    __int__ = operators.as_int
    __complex__ = operators.as_complex
    __index__ = operators.as_index
    __len__ = operators.length
    __iter__ = operators.iterate
    __contains__ = operators.contains
    __deepcopy__ = copying.deep_copy
    __reduce_ex__ = copying.reduce
    __array__ = interop.to_array
    __dlpack__ = interop.dlpack
    __dlpack_device__ = interop.dlpack_device
    __cuda_array_interface__ = property(interop.cuda_array_interface)

    item = conversion.item
    tolist = conversion.tolist
    numpy = interop.numpy
    to = conversion.to
    cpu = conversion.cpu
    cuda = conversion.cuda
    type = conversion.type_
    type_as = conversion.type_as
    half = conversion.cast("float16")
    bfloat16 = conversion.cast("bfloat16")
    float = conversion.cast("float32")
    double = conversion.cast("float64")
    char = conversion.cast("int8")
    byte = conversion.cast("uint8")
    short = conversion.cast("int16")
    int = conversion.cast("int32")
    long = conversion.cast("int64")
    bool = conversion.cast("bool")
    cfloat = conversion.cast("complex64")
    cdouble = conversion.cast("complex128")
    new_zeros = conversion.new_zeros
    new_ones = conversion.new_ones
    new_empty = conversion.new_empty
    new_full = conversion.new_full
    new_tensor = conversion.new_tensor

    copy_ = inplace.copy_
    fill_ = inplace.fill_
    zero_ = inplace.zero_

    backward = recording.backward
    register_hook = recording.register_hook
    register_post_accumulate_grad_hook = recording.register_post_accumulate_grad_hook
    retain_grad = recording.retain_grad
    requires_grad_ = recording.requires_grad_
    detach = recording.detach
    detach_ = recording.detach_

    @property
    def retains_grad(self) -> bool:
        """Whether this tensor is no leaf and `retain_grad` was called on it."""
        return retains_grad(self)

    def size(self, dim: Any = None) -> Any:
        """Return the shape, or the size of one dimension."""
        return self.array.shape if dim is None else self.array.shape[dim]

    def dim(self) -> Any:
        """Return the number of dimensions."""
        return self.array.ndim

    def numel(self) -> Any:
        """Return the number of elements."""
        return self.array.size



registered.tensor = Tensor

# For the time in which the families of ops land.
for _info in pkgutil.iter_modules(lucid.ops.__path__):
    try:
        _module = importlib.import_module(f"lucid.ops.{_info.name}")
    except Exception as _error:  # noqa: BLE001
        print(f"lucid.ops.{_info.name} does not load yet: {_error!r}", file=__import__("sys").stderr)
        continue
    for _name, _value in vars(_module).items():
        _public = callable(_value) and not _name.startswith("_") and getattr(_value, "__module__", "") == _module.__name__
        if _public and not hasattr(Tensor, _name) and not isinstance(_value, type):
            setattr(Tensor, _name, _value)
_ALL = {_n: _v for _i in pkgutil.iter_modules(lucid.ops.__path__) for _n, _v in vars(__import__("sys").modules.get(f"lucid.ops.{_i.name}", object)).items()} if True else {}
for _name in ("add", "sub", "mul", "div"):
    _slot = "truediv" if _name == "div" else _name
    setattr(Tensor, f"__{_slot}__", operators.direct(_name))
    setattr(Tensor, f"__i{_slot}__", inplace.in_place(_ALL[_name]))
    setattr(Tensor, f"__r{_slot}__", operators.reflected(PRIMITIVES[_name].call))
for _name, _slot in dict(pow="pow", floor_divide="floordiv", remainder="mod", matmul="matmul", bitwise_and="and", bitwise_or="or", bitwise_xor="xor").items():
    if _name in _ALL:
        setattr(Tensor, f"__{_slot}__", operators.operator(_ALL[_name]))
        setattr(Tensor, f"__i{_slot}__", inplace.in_place(_ALL[_name]))
        setattr(Tensor, f"__r{_slot}__", operators.reflected(_ALL[_name]))
for _name, _slot in dict(neg="neg", abs="abs", bitwise_not="invert").items():
    if _name in _ALL:
        setattr(Tensor, f"__{_slot}__", _ALL[_name])
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    if _name in _ALL:
        setattr(Tensor, f"__{_name}__", operators.operator(_ALL[_name]))
if "getitem" in _ALL:
    Tensor.__getitem__ = _ALL["getitem"]
for _name in "add sub mul div pow neg exp log sqrt relu clamp sigmoid tanh floor ceil round abs masked_fill scatter scatter_add index_add index_fill index_copy index_put lerp addcmul addcdiv".split():
    if _name in _ALL:
        setattr(Tensor, f"{_name}_", inplace.in_place(_ALL[_name]))
