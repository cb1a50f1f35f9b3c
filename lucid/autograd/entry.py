"""`backward` and `grad`: the entry to a backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.arguments import named
from lucid.autograd.base import TensorBase, describe, wrap
from lucid.autograd.engine import loop
from lucid.autograd.engine.node import as_leaf
from lucid.autograd.engine.retain import retain_grad
from lucid.autograd.graph import GradientEdge
from lucid.autograd.modes.decorating import check_bool
from lucid.autograd.recording.namespace import GRAPH
from lucid.autograd.recording.views import live_edge
from lucid.base.arrays import Array, namespace, on, ones_beside, to_device, zeros_beside
from lucid.base.device import device_of
from lucid.errors import DtypeError, GraphError, HookTypeError, NotATensorError, SettingError, ShapeError, warn

if TYPE_CHECKING:
    from lucid.autograd.base import Edge


def edge_of(tensor: Any, role: str) -> Edge:
    """Return the edge that the gradient of `tensor` goes to.

    Raises
    ------
    TypeError
        If it is neither a tensor nor a `GradientEdge`.
    GraphError
        If it does not require grad.
    """
    if isinstance(tensor, GradientEdge):
        return tensor.node, tensor.output_nr
    if not isinstance(tensor, TensorBase):
        raise NotATensorError(
            f"{named(tensor)}: {role}: expected a Tensor or a GradientEdge, got {type(tensor).__name__}"
        )
    edge = live_edge(tensor)
    if edge is None:
        raise GraphError(
            f"{role} of {describe(tensor)} does not require grad and does not have a grad_fn: make it from tensors "
            "with requires_grad=True, outside lucid.no_grad()"
        )
    return edge


def _as_sequence(value: Any, role: str) -> tuple[Any, ...]:
    if value is None:
        raise NotATensorError(f"{role}: expected a Tensor, a GradientEdge or a sequence of them, got None")
    if type(value) is dict:
        value = cast("dict[Any, Any]", value).values()
    # an array is one value of the wrong type, not a sequence of rows
    if isinstance(value, TensorBase | GradientEdge) or hasattr(value, "dtype") or not hasattr(value, "__iter__"):
        return (value,)
    return (*value,)


def _seeds(roots: tuple[Any, ...], gradients: Any, *, create_graph: bool) -> list[tuple[Edge, Any]]:
    """Return each root's edge with the gradient that the pass begins with."""
    grads = (None,) * len(roots) if gradients is None else _as_sequence(gradients, "gradients")
    if len(grads) != len(roots):
        raise ShapeError(f"got {len(roots)} tensors and {len(grads)} gradients: expected one gradient for each tensor")
    seeds: list[tuple[Edge, Any]] = []
    for index, root in enumerate(roots):
        edge = edge_of(root, f"element {index} of tensors")
        grad = grads[index]
        array = root.array if isinstance(root, TensorBase) else _stand_in(root)
        if grad is None:
            if array is None:
                raise GraphError(
                    "a GradientEdge as root needs its gradient: pass one for it, or take the edge from its tensor by "
                    "get_gradient_edge"
                )
            if array.size != 1:
                raise GraphError(
                    f"grad can be implicitly created only for scalar outputs: the output has shape "
                    f"{tuple(array.shape)}, so pass a gradient of that shape, or reduce it, for one with .sum()"
                )
            if array.dtype.kind == "c":
                raise GraphError("grad can be implicitly created only for real outputs: pass a complex gradient")
            grad = wrap(one_like(array))
        elif not isinstance(grad, TensorBase):
            got = type(grad).__name__
            raise HookTypeError(f"{named(grad)}: gradient {index}: expected a Tensor or None, got {got}")
        elif array is not None and grad.array.shape != array.shape:
            raise ShapeError(
                f"mismatch in shape: gradient {index} has shape {tuple(grad.array.shape)} and its tensor has shape "
                f"{tuple(array.shape)}: expected equal shapes"
            )
        elif array is not None and device_of(grad.array) != device_of(array):
            raise ShapeError(f"gradient {index} has {describe(grad)}, its tensor {describe(array)}: move one")
        elif array is not None and grad.array.dtype.kind == "c" and array.dtype.kind != "c":
            raise DtypeError(
                f"mismatch in dtype: gradient {index} is {grad.array.dtype} and its tensor {array.dtype}: "
                "expected a real gradient"
            )
        if array is not None and grad.array.dtype != array.dtype:
            grad = GRAPH.cast(grad, dtype=array.dtype)
        seeds.append((edge, grad if create_graph else grad.array))
    return seeds


def _stand_in(root: GradientEdge) -> Array | None:
    """Return an array of the shape, dtype and device of the root's tensor; None if these are not known."""
    if root.form is None:
        return None
    shape, dtype, device = root.form
    one = to_device(np.empty((), dtype), device)
    with on(one):
        return namespace(one).broadcast_to(one, shape)


# By floating-point dtype and number of dimensions: a copy of an array costs a sixth of `np.ones`.
_ones: dict[tuple[Any, int], Array] = {}


def one_like(array: Array) -> Array:
    """Return a new array of a single one, of the dtype, dimensions and device of `array`."""
    if type(array) is not np.ndarray:
        return ones_beside(array)
    key = array.dtype, array.ndim
    one = _ones.get(key)
    if one is None:
        one = _ones[key] = np.ones(array.shape, array.dtype)
    return one.copy()


def check_flags(name: str, **flags: Any) -> None:
    """Refuse flags of a pass that are no bools; None is one that was left out."""
    for flag, value in flags.items():
        if value is not None:
            check_bool(value, f"{name}: {flag}")


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add to the `.grad` of every leaf x the gradient sum_k J_k(x)^T grad_tensors[k] of the given tensors.

    Parameters
    ----------
    tensors : Tensor, GradientEdge, or sequence of them
        The roots of the pass.
    grad_tensors : Tensor, None, or sequence of them, optional
        The gradient of each root, of its shape. None stands for ones where the root has a single element.
    retain_graph : bool, optional
        Whether the graph can run again; by default as `create_graph`.
    create_graph : bool
        Whether the pass is recorded, so that the gradients can be differentiated.
    inputs : Tensor, sequence of Tensor, or dict of them, optional
        Gradients are accumulated for these only.

    Raises
    ------
    GraphError
        If a root does not require grad, needs a gradient of its own, or its graph was freed; if `inputs` is empty.
    ShapeError
        If a gradient has another shape than its root, or their numbers differ.
    DtypeError
        If a gradient is complex and its root real.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0], requires_grad=True)
    >>> lucid.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    if retain_graph is not None or create_graph:
        check_flags("backward", retain_graph=retain_graph, create_graph=create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    if grad_tensors is None and inputs is None and isinstance(tensors, TensorBase):
        # what nearly every training step does: one scalar root, all leaves
        edge = tensors.edge if tensors.origin is None else live_edge(tensors)
        array = tensors.array
        one = _ones.get((array.dtype, array.ndim)) if type(array) is np.ndarray else None
        if one is not None and edge is not None and array.size == 1:
            one = one.copy()
            loop.run(((edge, wrap(one) if create_graph else one),), keep_graph=keep, create_graph=create_graph)
            return
    seeds = _seeds(_as_sequence(tensors, "tensors"), grad_tensors, create_graph=create_graph)
    wanted = None
    if inputs is not None:
        targets = _as_sequence(inputs, "inputs")
        if not targets:
            raise GraphError("backward: inputs is empty: expected at least one tensor, or None for all leaves")
        wanted = [edge_of(target, f"element {index} of inputs") for index, target in enumerate(targets)]
        for target in targets:
            if isinstance(target, TensorBase):
                retain_grad(target)
    loop.run(seeds, keep_graph=keep, create_graph=create_graph, wanted=wanted)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """Return the gradient sum_k J_k(x)^T grad_outputs[k] for each of `inputs`; no `.grad` is touched.

    Parameters
    ----------
    outputs : Tensor, GradientEdge, or sequence of them
        The roots of the pass.
    inputs : Tensor, GradientEdge, sequence of them, or dict with them as values
        What to differentiate by.
    grad_outputs : Tensor, None, or sequence of them, optional
        The gradient of each root, of its shape. None stands for ones where the root has a single element.
    retain_graph : bool, optional
        Whether the graph can run again; by default as `create_graph`.
    create_graph : bool
        Whether the pass is recorded, so that the result can be differentiated.
    only_inputs : bool
        True: gradients for `inputs` only. False, an old form, is ignored with a `FutureWarning`.
    allow_unused : bool, optional
        Whether an input that the outputs do not depend on gives None instead of an error.
    is_grads_batched : bool
        Whether `grad_outputs` have one more leading dimension, the batch, which the results then have too.
    materialize_grads : bool
        Whether zeros replace None; under `create_graph` they require grad, as leaves.

    Returns
    -------
    tuple of Tensor or None
        One entry for each input, of its shape and dtype; a dict with the keys of `inputs` where that is one.

    Raises
    ------
    ValueError
        If `materialize_grads` is True and `allow_unused` False.
    GraphError
        If a tensor does not require grad, the graph was freed, or an input was not used and may not be, or is a
        `GradientEdge` for which zeros are asked; if `inputs` is empty.
    ShapeError
        If a gradient has another shape than its root.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0], requires_grad=True)
    >>> lucid.autograd.grad((x**3).sum(), x)
    (tensor([ 3., 12.]),)
    """
    if retain_graph is not None or create_graph or is_grads_batched or materialize_grads or allow_unused is not None:
        check_flags(
            "grad", retain_graph=retain_graph, create_graph=create_graph, is_grads_batched=is_grads_batched,
            materialize_grads=materialize_grads, allow_unused=allow_unused,
        )  # fmt: skip
    targets = _as_sequence(inputs, "inputs")
    if not targets:
        raise GraphError("grad: inputs is empty: expected at least one tensor to differentiate by")
    if materialize_grads:
        if allow_unused is False:
            raise SettingError("grad: materialize_grads=True needs allow_unused to be True or None, got False")
        allow_unused = True
    if not only_inputs:
        warn(
            "grad: only_inputs=False is ignored: call backward to accumulate gradients of the other leaves too",
            FutureWarning,
        )
    keep = create_graph if retain_graph is None else retain_graph
    roots = _as_sequence(outputs, "outputs")
    rest = create_graph, allow_unused, materialize_grads
    if is_grads_batched:
        grads, count = _batch(grad_outputs)
        rows: list[list[Any]] = []
        for index in range(count):
            # when its turn has come: an error in the pass of one before it comes first
            row = tuple(None if g is None else g[index] for g in grads)
            rows.append(_gradients(roots, targets, row, keep or index < count - 1, *rest))
        results = [None if column[0] is None else GRAPH.stack(*column, dim=0) for column in zip(*rows, strict=True)]
    else:
        results = _gradients(roots, targets, grad_outputs, keep, *rest)
    if type(inputs) is dict:
        return dict(zip(cast("dict[Any, Any]", inputs), results, strict=True))
    return tuple(results)


def _gradients(
    roots: tuple[Any, ...],
    targets: tuple[Any, ...],
    grads: Any,
    keep: bool,
    create_graph: bool,
    allow_unused: bool | None,
    materialize_grads: bool,
) -> list[Any]:
    """Return the gradient for each of the targets, from one pass."""
    wanted = [edge_of(target, f"element {index} of inputs") for index, target in enumerate(targets)]
    seeds = _seeds(roots, grads, create_graph=create_graph)
    captured = loop.run(seeds, keep_graph=keep, create_graph=create_graph, wanted=wanted, accumulate=False)
    results: list[Any] = []
    # one edge may be asked for twice: the engine keeps the last position, so all its positions share that entry
    last = {edge: position for position, edge in enumerate(wanted)}
    for index, target in enumerate(targets):
        value = captured[last[wanted[index]]]
        if value is None:
            if materialize_grads:
                if not isinstance(target, TensorBase):
                    raise GraphError(
                        f"grad: element {index} of inputs was not used, and materialize_grads cannot be used when the "
                        "input is a GradientEdge: pass its tensor, or take None for it"
                    )
                value = wrap(zeros_beside(target.array))
                if create_graph:
                    as_leaf(value)
            elif not allow_unused:
                raise GraphError(
                    f"element {index} of inputs was not used in the graph of the outputs: pass allow_unused=True to "
                    "get None for it"
                )
        elif isinstance(target, TensorBase) and value.array.dtype != target.array.dtype:
            value = GRAPH.cast(value, dtype=target.array.dtype)
        results.append(value)
    return results


def _batch(gradients: Any) -> tuple[tuple[Any, ...], int]:
    """Return the gradients of `is_grads_batched` as a tuple, and the size of their leading dimension."""
    grads = () if gradients is None else _as_sequence(gradients, "grad_outputs")
    sizes = {g.array.shape[0] for g in grads if isinstance(g, TensorBase) and g.array.ndim}
    if len(sizes) != 1:
        raise ShapeError(
            f"grad: is_grads_batched needs grad_outputs of one leading dimension, got sizes {sorted(sizes)}"
        )
    count = sizes.pop()
    if not count:
        raise ShapeError("grad: is_grads_batched needs grad_outputs of one gradient or more, got a leading size of 0")
    return grads, count
