"""The one way in: a function of Tensors from a kernel and expressions of its gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import shown
from lucid.autograd.base import is_list, is_tuple
from lucid.autograd.kernels.elementwise import Elementwise, Reduction
from lucid.autograd.kernels.expressions import unknown_names
from lucid.autograd.kernels.fused import Fused
from lucid.autograd.kernels.raw import Raw
from lucid.base import gpu
from lucid.cuda.compiler import Function
from lucid.errors import ArgumentError, KernelError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.autograd.kernels.recording import KernelWithDerivative

__all__ = ["derivative"]


def derivative(
    kernel: Any, /, *, writes: Sequence[str] = (), backward: Callable[..., Any] | None = None, **gradients: str
) -> KernelWithDerivative:
    """Return a kernel of CuPy's, or of `lucid.cuda.compile`, as a function of Tensors that is recorded.

    It is called as the kernel is, with Tensors, CuPy's arrays and numbers, and returns Tensors. A keyword names an
    input; its text is the gradient of that input, an expression of CUDA C that is computed for each element:

    ======================  ====================================================================================
    name in an expression   meaning
    ======================  ====================================================================================
    ``x``                   the element of the input, a number in its own dtype; float32 for half types
    ``y``                   the element of the output, which is then kept for backward
    ``g``                   the gradient of the output; of several outputs, or where a parameter is called ``g``,
                            that of ``y`` is ``g_y``
    ``T``                   a type that the kernel's parameters are declared with
    ======================  ====================================================================================

    All expressions that a call needs are compiled into one kernel. Gradients of operands that were broadcast are summed
    to their shape. An input without an expression has no gradient: a Tensor of it that requires grad is refused.

    Without expressions they are found, and shown as text by ``f.gradients``:

    - of an ElementwiseKernel, whose operation assigns to each output once, ``y = x * sin(x)``;
    - of a ReductionKernel, which reduces by ``a + b``, what is mapped may be any known function, and what is made of
      the sum ``a`` any whose gradient needs no sum, such as ``y = a``, ``y = a / n``, ``y = sqrt(a)``;
    - of a function of `cupy.fuse`, which is called to see what it computes, here with float64 in mind, and by the
      first call with arguments of other dtypes, whose gradients are not shown.

    Known are ``+ - * /``, ``? :`` with comparisons, casts, and functions of `math.h` of floating-point numbers: powers,
    exponentials, logarithms, trigonometric and hyperbolic functions and their inverses, roots, `erf`, `fabs`, and `max`
    and `min`, whose operands get half of the gradient each where they are equal. They are those of real numbers.

    What expressions are made of known functions, given or found, is differentiated again for ``create_graph=True``.

    Parameters
    ----------
    kernel : cupy.ElementwiseKernel, ReductionKernel or RawKernel, fused function, or kernel of `lucid.cuda.compile`
        The result is called as it is by itself:

        - ``f(x, y)`` of an ElementwiseKernel, or ``f(x, y, out)``, which writes into `out`;
        - ``f(x, axis=0, keepdims=True)`` of a ReductionKernel, also with ``out=``;
        - ``f(grid, block, args)`` of a RawKernel or one of `lucid.cuda.compile`, which returns the tensors that it has
          written to: they are changed in place, and stand for the result from then on. Numbers become what the kernel
          declares. Arrays that expressions read have one shape;
        - ``f(x, y)`` of a fused function; its outputs are ``out``, or ``out0``, ``out1`` and so on.
    writes : sequence of str
        Parameters of a raw kernel that it writes to: all pointers that are not ``const``. What a tensor held before
        gets the gradient of an expression under its name, ``y="0"`` where it is lost and ``y="g"`` where the kernel
        adds to it. Other kernels write to their outputs, which may be named.
    backward : callable, optional
        Instead of expressions: ``backward(grads, args)`` gets the gradient of the output, or a tuple of several, and
        all arguments as Tensors and numbers, then outputs that are no arguments. It returns a gradient or None for each
        argument, or a dict of gradients by name. It is differentiated again where it is made of recorded operations.
    **gradients : str
        Expressions by the name of the input.

    Returns
    -------
    callable
        With `kernel`, `name` and `gradients`.

    Raises
    ------
    NotDifferentiableError
        If no expression is given and none is found; it says what is not understood. In a call, if an input without a
        gradient requires grad.
    KernelError
        If an expression names what is unknown, or `writes` leaves out what a raw kernel may write to.
    InplaceError
        In a call, if what is written to may not be changed, or shares memory with what backward needs.
    GraphError
        In a call, if the result is to be written into an array of CuPy's while an input requires grad.
    ArgumentError, DeviceError, DtypeError, ShapeError
        For arguments of a wrong type, on the CPU or on several devices, structured, or of shapes that do not fit.
    CudaUnavailableError
        If there is no CUDA device.

    Examples
    --------
    >>> square = cupy.ElementwiseKernel("T x, T a", "T y", "y = a * sin(x)", "wave")  # doctest: +SKIP
    >>> f = lucid.cuda.derivative(square)  # doctest: +SKIP
    >>> f.gradients  # doctest: +SKIP
    {'x': 'g * a * cos(x)', 'a': 'g * sin(x)'}
    >>> f = lucid.cuda.derivative(square, x="g * a * cos(x)", writes=("y",))  # doctest: +SKIP
    >>> x = lucid.ones(3, device="cuda", requires_grad=True)  # doctest: +SKIP
    >>> f(x, 2.0).sum().backward()  # doctest: +SKIP
    """
    _check(writes, backward, gradients)
    cupy = gpu.cupy()
    if isinstance(kernel, (Function, cupy.RawKernel)):
        made: Any = Raw(kernel, gradients, tuple(writes), backward)
    elif isinstance(kernel, cupy.ElementwiseKernel):
        made = Elementwise(kernel, gradients, backward)
    elif isinstance(kernel, cupy.ReductionKernel):
        made = Reduction(kernel, gradients, backward)
    elif isinstance(kernel, gpu.part("cupy._core.fusion").Fusion):
        made = Fused(kernel, gradients, backward)
    else:
        raise ArgumentError(
            "derivative: kernel: expected a RawKernel, ElementwiseKernel or ReductionKernel of CuPy's, a function of "
            f"cupy.fuse or a kernel of lucid.cuda.compile, got {shown(kernel)}"
        )
    if wrong := [name for name in writes if name not in made.results]:
        raise KernelError(f"{made.name}: writes names {wrong[0]!r}: expected some of {', '.join(made.results)}")
    _check_names(made, gradients)
    return made


def _check(writes: Any, backward: Any, gradients: dict[str, Any]) -> None:
    """Raise `ArgumentError` for arguments of a wrong type."""
    if not (is_tuple(writes) or is_list(writes)) or not all(isinstance(name, str) for name in writes):
        raise ArgumentError(f'derivative: writes: expected names, such as ("y",), got {shown(writes)}')
    if backward is not None and not callable(backward):
        raise ArgumentError(f"derivative: backward: expected a function or None, got {shown(backward)}")
    if backward is not None and gradients:
        raise ArgumentError(
            f"derivative: expected either backward, or expressions ({', '.join(gradients)}), got both: leave out one"
        )
    for name, text in gradients.items():
        if not isinstance(text, str) or not text.strip() or any(sign in text for sign in ";{}#"):
            raise ArgumentError(
                f"derivative: {name}: expected the text of an expression, such as 'g * cos(x)', got {shown(text)}"
            )


def _check_names(kernel: KernelWithDerivative, gradients: dict[str, str]) -> None:
    """Raise `KernelError` if an expression is of no input, or has an unknown name."""
    words = kernel.formulas.words
    known: set[str] = {*kernel.inputs, *kernel.parameters, *kernel.results, *kernel.seeds.values(), *words}
    for name, text in gradients.items():
        if name not in kernel.inputs:
            raise KernelError(
                f"{kernel.name} has no input {name!r} that can have a gradient: it has {', '.join(kernel.inputs)}"
            )
        if unknown := unknown_names(text, known):
            raise KernelError(
                f"{kernel.name}: {unknown[0]!r} in the gradient of {name}, {text!r}, is unknown: expected names among "
                f"{', '.join(sorted(known))}"
            )
