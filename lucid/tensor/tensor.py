"""The Tensor class: its methods are the functions of `lucid.ops` and of the modules beside this one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.short_path import register
from lucid.base.sharing import tensor_classes
from lucid.errors import ShapeError
from lucid.ops.base import storage as storages
from lucid.ops.base.keywords import add_to_methods
from lucid.ops.base.later import LaterModule
from lucid.ops.creation.constructors import construct
from lucid.ops.elementwise import arithmetic, division, logic, power
from lucid.ops.elementwise import complex as parts
from lucid.ops.index import indexing
from lucid.ops.linalg import products
from lucid.ops.shape import axes
from lucid.tensor import attributes, conversion, copying, differentiating, interop, layout, operators, printing
from lucid.tensor.inplace import in_place
from lucid.tensor.inplace_methods import InPlaceMethods
from lucid.tensor.methods import Methods
from lucid.tensor.operators import direct, operator, reflected

if TYPE_CHECKING:
    from typing import Self

    from lucid.base.device import Device
    from lucid.tensor import cupy_calls
    from lucid.tensor.numpy_calls import protocols
    from lucid.tensor.numpy_calls.rules import creation as numpys
else:
    cupy_calls = LaterModule("lucid.tensor.cupy_calls")
    numpys = LaterModule("lucid.tensor.numpy_calls.rules.creation")
    protocols = LaterModule("lucid.tensor.numpy_calls.protocols")


class Tensor(Methods, InPlaceMethods):
    """An array on one device, its elements all of one dtype, and its position in the graph of recorded ops.

    Made by `lucid.tensor`, the other creation functions, and every op; ``Tensor(2, 3)`` and ``Tensor([1.0])`` are
    PyTorch's older spelling of ``empty(2, 3)`` and ``tensor([1.0])`` in the default dtype. Methods are the functions of
    the same name in `lucid`, with this tensor as their first argument; those whose name ends in ``_`` write the result
    into this tensor.

    Parameters
    ----------
    *arguments : int, sequence or tensor
        Sizes, or data, in PyTorch's older spelling.
    device : device, optional
        Where it is; the default device if None.

    Attributes
    ----------
    array : numpy.ndarray or cupy.ndarray
        The elements. Writing to it directly is not seen by the version counter.

    Notes
    -----
    A tensor takes attributes of the user's. `copy` and pickle take them along, ops do not.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> y = (x @ x).relu().sum()
    >>> y.backward()
    >>> x.grad
    tensor([[ 7., 11.],
            [ 9., 13.]])
    """

    __slots__ = ()

    def __new__(cls, *arguments: Any, device: Device = None) -> Self:
        """Return a tensor of sizes, data, or a tensor, as `lucid.ops.creation.constructors` says."""
        return construct(cls, arguments, None, device)

    # NumPy and CuPy leave an operator to a tensor on either of its sides.
    __array_priority__ = 1000

    # ---- operators ----

    __add__ = direct("add")
    __radd__ = reflected(arithmetic.add)
    __iadd__ = in_place(arithmetic.add)
    __sub__ = direct("sub")
    __rsub__ = reflected(arithmetic.sub)
    __isub__ = in_place(arithmetic.sub)
    __mul__ = direct("mul")
    __rmul__ = reflected(arithmetic.mul)
    __imul__ = in_place(arithmetic.mul)
    __truediv__ = direct("div")
    __rtruediv__ = reflected(division.div)
    __itruediv__ = in_place(division.div)
    __floordiv__ = direct("floor_divide")
    __rfloordiv__ = reflected(division.floor_divide)
    __ifloordiv__ = in_place(division.floor_divide)
    __mod__ = direct("remainder")
    __rmod__ = reflected(division.remainder)
    __imod__ = in_place(division.remainder)
    __divmod__ = operator(operators.quotient_and_rest)
    __rdivmod__ = reflected(operators.quotient_and_rest)
    __pow__ = direct("pow")
    __rpow__ = reflected(power.pow)
    __ipow__ = in_place(power.pow)
    __matmul__ = operator(products.matmul)
    __rmatmul__ = reflected(products.matmul, as_it_is=True)
    __imatmul__ = in_place(products.matmul)
    __and__ = operator(logic.bitwise_and)
    __rand__ = reflected(logic.bitwise_and)
    __iand__ = in_place(logic.bitwise_and)
    __or__ = operator(logic.bitwise_or)
    __ror__ = reflected(logic.bitwise_or)
    __ior__ = in_place(logic.bitwise_or)
    __xor__ = operator(logic.bitwise_xor)
    __rxor__ = reflected(logic.bitwise_xor)
    __ixor__ = in_place(logic.bitwise_xor)
    __lshift__ = operator(logic.bitwise_left_shift)
    __rlshift__ = reflected(logic.bitwise_left_shift)
    __ilshift__ = in_place(logic.bitwise_left_shift)
    __rshift__ = operator(logic.bitwise_right_shift)
    __rrshift__ = reflected(logic.bitwise_right_shift)
    __irshift__ = in_place(logic.bitwise_right_shift)
    if TYPE_CHECKING:
        # elementwise, as arrays compare; `object` promises a bool
        def __eq__(self, other: object) -> Tensor: ...  # pyright: ignore[reportIncompatibleMethodOverride]
        def __ne__(self, other: object) -> Tensor: ...  # pyright: ignore[reportIncompatibleMethodOverride]
    else:
        __eq__ = direct("eq")
        __ne__ = direct("ne")
    __lt__ = direct("lt")
    __le__ = direct("le")
    __gt__ = direct("gt")
    __ge__ = direct("ge")
    __neg__ = arithmetic.neg
    __pos__ = operators.itself
    __abs__ = parts.abs
    __invert__ = logic.bitwise_not
    __hash__ = object.__hash__
    __getitem__ = indexing.getitem
    __setitem__ = indexing.setitem
    __len__ = operators.length
    __iter__ = operators.iterate
    __contains__ = operators.contains
    __bool__ = operators.truth
    __float__ = operators.as_float
    __int__ = operators.as_int
    __complex__ = operators.as_complex
    __index__ = operators.as_index
    __repr__ = printing.describe_tensor
    __format__ = printing.format_tensor
    __copy__ = copying.shallow_copy
    __deepcopy__ = copying.deep_copy
    __reduce__ = copying.reduce

    # ---- other libraries ----

    __array__ = interop.to_array
    __array_ufunc__ = interop.UfuncProtocol()
    __array_function__ = protocols.function_call
    __dlpack__ = interop.dlpack
    __dlpack_device__ = interop.dlpack_device
    __array_namespace__ = interop.array_namespace
    to_device = interop.to_device_of
    __cuda_array_interface__ = property(interop.cuda_array_interface)
    __cupy_override_elementwise_kernel__ = cupy_calls.kernel_call
    __cupy_override_reduction_kernel__ = cupy_calls.reduction_call
    _lent_to_kernel = interop.lent_to_kernel
    numpy = interop.numpy
    _in_numpys_form = cupy_calls.in_numpys_form
    astype = numpys.astype

    # ---- the graph ----

    backward = differentiating.backward
    register_hook = differentiating.register_hook
    register_post_accumulate_grad_hook = differentiating.register_post_accumulate_grad_hook
    retain_grad = differentiating.retain_grad
    requires_grad_ = differentiating.requires_grad_
    detach = differentiating.detach
    detach_ = differentiating.detach_

    # ---- memory, numbers, dtypes and devices ----

    size = layout.size
    stride = layout.stride
    dim = layout.dim
    ndimension = layout.dim
    numel = layout.numel
    nelement = layout.numel
    element_size = layout.element_size
    is_contiguous = layout.is_contiguous
    is_same_size = layout.is_same_size
    is_set_to = layout.is_set_to
    is_coalesced = is_conj = is_distributed = is_neg = layout.is_conj
    is_nonzero = operators.is_nonzero
    storage = storages.storage
    untyped_storage = storages.untyped_storage
    data_ptr = layout.data_ptr
    is_shared = layout.is_shared
    share_memory_ = layout.share_memory_
    record_stream = layout.record_stream
    storage_offset = layout.storage_offset
    is_floating_point = layout.is_floating_point
    is_complex = layout.is_complex
    is_signed = layout.is_signed
    is_inference = attributes.is_inference
    get_device = layout.get_device
    item = conversion.item
    tolist = conversion.tolist
    to = conversion.to
    cpu = conversion.cpu
    cuda = conversion.cuda
    is_pinned = conversion.is_pinned
    pin_memory = conversion.pin_memory
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
    new = conversion.new
    new_zeros = conversion.new_zeros
    new_ones = conversion.new_ones
    new_empty = conversion.new_empty
    new_full = conversion.new_full
    new_tensor = conversion.new_tensor

    # ---- properties that are ops ----

    @property
    def T(self) -> Tensor:
        """The tensor with its dimensions in reverse order; the transposed matrix."""
        return axes.permute(self, *reversed(range(self.array.ndim)))

    @property
    def mT(self) -> Tensor:
        """The tensor with its last two dimensions exchanged.

        Raises
        ------
        IndexOutOfRangeError
            If there are fewer than two.
        """
        return axes.transpose(self, -2, -1)

    @property
    def H(self) -> Tensor:
        """The conjugate of the transposed matrix; of a number its conjugate.

        Raises
        ------
        ShapeError
            If the tensor has one dimension or more than two.
        """
        if self.array.ndim not in {0, 2}:
            raise ShapeError(
                f"tensor.H is only supported on matrices (2-D tensors), got shape {list(self.array.shape)}: mH "
                "transposes batches of matrices"
            )
        return parts.conj(axes.transpose(self, 0, 1) if self.array.ndim else self)

    @property
    def mH(self) -> Tensor:
        """The conjugate with its last two dimensions exchanged."""
        return parts.conj(axes.transpose(self, -2, -1))

    @property
    def real(self) -> Tensor:
        """The real parts; the tensor itself if it is real."""
        return parts.real(self)

    @property
    def imag(self) -> Tensor:
        """The imaginary parts.

        Raises
        ------
        DtypeError
            If the tensor is real.
        """
        return parts.imag(self)


add_to_methods(Tensor)
register(Tensor)
tensor_classes.append(Tensor)
