"""Finite differences: what gradients are compared with, without any rule of differentiation.

A gradient g of a function is right if the slope along every direction v is <g, v>. One random direction sees every
element of g, and costs four evaluations however large the input is.
"""

from __future__ import annotations

import numpy as np

import lucid

# The fourth-order stencil errs by STEP**4 times the fifth derivative, and rounding by 1e-16 / STEP.
STEP = 5e-4
STENCIL = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))
RELATIVE = 1e-6
ROUNDING = 1e-11


def is_floating(array):
    """Tell whether gradients exist for arrays of this dtype (bfloat16's kind is V)."""
    return array.dtype.kind in "fcV"


def flat(result):
    """Return the tensors that an op returned: one, or a nest of tuples and lists of them."""
    if isinstance(result, tuple | list):
        return [tensor for part in result for tensor in flat(part)]
    return [result] if isinstance(result, lucid.Tensor) else []


def numbers(tensor):
    """Return the elements of a tensor as a NumPy array of its dtype, wherever it is."""
    return np.asarray(tensor.detach().cpu().array)


def random_like(rng, array):
    """Return standard normal numbers in the shape and dtype of an array."""
    noise = rng.standard_normal(array.shape)
    if array.dtype.kind == "c":
        noise = noise + 1j * rng.standard_normal(array.shape)
    return np.asarray(noise).astype(array.dtype)


def drawing(rng):
    """Return what draws the upstream gradient of each output once, and gives the same numbers afterwards."""
    drawn = {}
    return lambda place, array: drawn.setdefault(place, random_like(rng, array))


def inner(a, b):
    """Return Re <a, b>: the pairing under which PyTorch's complex gradients are gradients."""
    return float(np.real(np.vdot(a, b)))


def tensors_of(arrays, constants=(), *, requires_grad=True, dtype=None, device=None):
    """Return one tensor for each array; those of floating point require grad and take `dtype`, `constants` apart."""
    tensors = []
    for place, array in enumerate(arrays):
        real_input = is_floating(array) and array.dtype.kind != "c"
        tensor = lucid.tensor(array, dtype=getattr(lucid, dtype) if dtype and real_input else None, device=device)
        if requires_grad and is_floating(array) and place not in constants:
            tensor.requires_grad_()
        tensors.append(tensor)
    return tensors


def outputs_and_gradients(op, tensors, upstream_of, *, may_be_constant=False):
    """Return what an op gives and the gradients of those tensors that require grad.

    Parameters
    ----------
    op : callable
        Takes the tensors.
    tensors : list of Tensor
        Its arguments.
    upstream_of : callable
        ``upstream_of(place, array)`` gives the upstream gradient of the output of that place; a tensor as it lies.
    may_be_constant : bool
        Whether it is allowed that no output requires grad.

    Returns
    -------
    tuple of (list of Tensor, list of Tensor or None)
    """
    outputs = flat(op(*tensors))
    roots = [(place, out) for place, out in enumerate(outputs) if out.requires_grad]
    assert roots or may_be_constant, "no output requires grad"
    upstream = [upstream_of(place, numbers(out)) for place, out in roots]
    upstream = [
        given if isinstance(given, lucid.Tensor) else lucid.tensor(given, dtype=out.dtype, device=out.device)
        for given, (_, out) in zip(upstream, roots, strict=True)
    ]
    wanted = [tensor for tensor in tensors if tensor.requires_grad]
    if not roots:
        return outputs, [None] * len(wanted)
    return outputs, list(lucid.autograd.grad([out for _, out in roots], wanted, upstream, allow_unused=True))


def slope(function, arrays, directions):
    """Return the derivative of a function of arrays to a number, along directions (None holds an array fixed)."""
    total = 0.0
    for steps, weight in STENCIL:
        moved = [
            array if direction is None else array + steps * STEP * direction
            for array, direction in zip(arrays, directions, strict=True)
        ]
        total += weight * function(moved)
    return total / STEP


def check_gradient(op, arrays, rng, constants=(), *, may_be_constant=False):
    """Fail unless the gradients of an op, for random upstream gradients, give its slope along a random direction.

    Parameters
    ----------
    op : callable
        Takes tensors; the result, or a nest of results, may hold tensors of integers, which are left out.
    arrays : sequence of numpy.ndarray
        float64 or complex128, and integer or bool arrays, which are held fixed.
    rng : numpy.random.Generator
        Draws the upstream gradients and the direction.
    constants : tuple of int
        Places of floating-point arrays that are held fixed too.
    may_be_constant : bool
        Whether outputs that require no grad are allowed; then their slope must be zero.
    """
    upstream = {}

    def draw(place, array):
        upstream[place] = random_like(rng, array)
        return upstream[place]

    tensors = tensors_of(arrays, constants)
    outputs, grads = outputs_and_gradients(op, tensors, draw, may_be_constant=may_be_constant)
    for place, out in enumerate(outputs):
        if may_be_constant and is_floating(out.array) and place not in upstream:
            draw(place, numbers(out))
    given = iter(grads)
    grads = [next(given) if tensor.requires_grad else None for tensor in tensors]
    directions = []
    for array, tensor in zip(arrays, tensors, strict=True):
        direction = random_like(rng, array) if tensor.requires_grad else None
        # no element moves by more than two steps, so that the domain and its kinks are not crossed
        directions.append(None if direction is None else direction / max(1.0, np.abs(direction).max(initial=0.0)))

    size = 0.0

    def project(moved):
        nonlocal size
        with lucid.no_grad():
            outputs = flat(op(*tensors_of(moved, requires_grad=False)))
        size = max(size, sum(np.abs(u * numbers(outputs[place])).sum() for place, u in upstream.items()))
        return sum(inner(u, numbers(outputs[place])) for place, u in upstream.items())

    numerical = slope(project, arrays, directions)
    pairs = [(numbers(g), v) for g, v in zip(grads, directions, strict=True) if g is not None and v is not None]
    analytical = sum(inner(g, v) for g, v in pairs)
    allowed = RELATIVE * sum(np.abs(g * v).sum() for g, v in pairs) + ROUNDING * size
    assert abs(numerical - analytical) <= allowed, (
        f"slope along a random direction: {numerical!r} by finite differences, {analytical!r} by backward, "
        f"{allowed!r} allowed"
    )


def gradient_of(op, count, constants=()):
    """Return the gradient of an op as an op: from its `count` inputs and its upstream gradients, to its gradients.

    Under grad mode it is recorded with ``create_graph=True``, so that checking its gradient checks second derivatives;
    under no_grad it runs the rules on arrays.
    """

    def gradient(*arguments):
        create_graph = lucid.is_grad_enabled()
        with lucid.enable_grad():
            inputs = []
            for place, tensor in enumerate(arguments[:count]):
                differentiated = is_floating(tensor.array) and place not in constants
                inputs.append(tensor.detach().requires_grad_() if differentiated and not create_graph else tensor)
            wanted = [tensor for tensor in inputs if tensor.requires_grad]
            roots = [out for out in flat(op(*inputs)) if out.requires_grad]
            grads = lucid.autograd.grad(
                roots, wanted, list(arguments[count:]), create_graph=create_graph, allow_unused=True
            )
        return [grad for grad in grads if grad is not None]

    return gradient


def check_second_derivative(op, arrays, rng, constants=()):
    """Fail unless the gradients of an op's gradients, by its inputs and its upstream gradients, are right."""
    outputs = [out for out in flat(op(*tensors_of(arrays, constants))) if out.requires_grad]
    upstream = [random_like(rng, numbers(out)) for out in outputs]
    gradient = gradient_of(op, len(arrays), constants)
    check_gradient(gradient, [*arrays, *upstream], rng, constants, may_be_constant=True)
