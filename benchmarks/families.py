"""The families of kernels that `benchmarks.kernels` measures: one operation each, and the bytes that it must move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.measure import Peer

    Call = Callable[[], object]
    Builder = Callable[[Peer, str, int], Call]

WIDTH = 1024  # elements of a row


@dataclass(frozen=True)
class Family:
    """One operation on arrays of some rows of `WIDTH` elements.

    `passes` counts how often the elements of one such array move at the least, and `extra` the bytes of other dtypes
    for each element. `build(peer, dtype, rows)` sets everything up and returns the call to be timed, `cupy(cupy, rows)`
    that of CuPy in float32.
    """

    name: str
    passes: float
    build: Builder
    cupy: Callable[[Any, int], Call] | None = None
    extra: float = 0

    def bytes(self, count: int, itemsize: int) -> int:
        """Return the bytes that move for arrays of `count` elements."""
        return round(count * (self.passes * itemsize + self.extra))


def drawn(peer: Peer, dtype: str, *shape: int, requires_grad: bool = False) -> Any:
    """Return uniform numbers from -0.5 to 0.5."""
    made = (peer.lib.rand(*shape, device=peer.device) - 0.5).to(getattr(peer.lib, dtype))
    return made.requires_grad_(requires_grad)


def method(name: str, *arguments: Any) -> Builder:
    """Return a builder of a tensor's method."""

    def build(peer: Peer, dtype: str, rows: int) -> Call:
        call = getattr(drawn(peer, dtype, rows, WIDTH), name)
        return lambda: call(*arguments)

    return build


def functional(name: str, *arguments: Any, shape: tuple[int, ...] = (WIDTH,), **settings: Any) -> Builder:
    """Return a builder of a function of `nn.functional`, without a graph."""

    def build(peer: Peer, dtype: str, rows: int) -> Call:
        x, function = drawn(peer, dtype, rows, *shape), getattr(peer.lib.nn.functional, name)
        return lambda: function(x, *arguments, **settings)

    return build


def backward(name: str, *arguments: Any) -> Builder:
    """Return a builder of the backward pass alone of a function of `nn.functional`."""

    def build(peer: Peer, dtype: str, rows: int) -> Call:
        x = drawn(peer, dtype, rows, WIDTH, requires_grad=True)
        y = getattr(peer.lib.nn.functional, name)(x, *arguments)
        upstream = y.detach().clone()
        return lambda: peer.lib.autograd.grad(y, x, upstream, retain_graph=True)

    return build


def add(peer: Peer, dtype: str, rows: int) -> Call:
    a, b = (drawn(peer, dtype, rows, WIDTH) for _ in range(2))
    return lambda: a + b


def broadcast(peer: Peer, dtype: str, rows: int) -> Call:
    x, bias = drawn(peer, dtype, rows, WIDTH), drawn(peer, dtype, WIDTH)
    return lambda: x + bias


def biased_gelu(peer: Peer, dtype: str, rows: int) -> Call:
    """Return gelu of a sum with a bias: two kernels in PyTorch."""
    x, bias, functions = drawn(peer, dtype, rows, WIDTH), drawn(peer, dtype, WIDTH), peer.lib.nn.functional
    if hasattr(functions, "bias_activation"):
        return lambda: functions.bias_activation(x, bias, "gelu")
    return lambda: functions.gelu(x + bias)


def transposed(peer: Peer, dtype: str, rows: int) -> Call:
    x = drawn(peer, dtype, rows, WIDTH).T
    return x.contiguous


def masked(peer: Peer, dtype: str, rows: int) -> Call:
    x = drawn(peer, dtype, rows, WIDTH)
    mask = x > 0
    return lambda: x.masked_fill(mask, 0.0)


def cross_entropy(peer: Peer, dtype: str, rows: int) -> Call:
    x = drawn(peer, dtype, rows, WIDTH)
    labels = peer.lib.randint(0, WIDTH, (rows,), device=peer.device)
    return lambda: peer.lib.nn.functional.cross_entropy(x, labels)


def embedding(peer: Peer, dtype: str, rows: int) -> Call:
    table = drawn(peer, dtype, rows, WIDTH)
    places = peer.lib.randint(0, rows, (rows,), device=peer.device)
    return lambda: peer.lib.nn.functional.embedding(places, table)


def embedding_gradient(peer: Peer, dtype: str, rows: int) -> Call:
    table = drawn(peer, dtype, max(rows // 4, 1), WIDTH, requires_grad=True)
    places = peer.lib.randint(0, len(table), (rows,), device=peer.device)
    y = peer.lib.nn.functional.embedding(places, table)
    upstream = y.detach().clone()
    return lambda: peer.lib.autograd.grad(y, table, upstream, retain_graph=True)


def fill(name: str) -> Builder:
    """Return a builder of random draws."""

    def build(peer: Peer, dtype: str, rows: int) -> Call:
        draw = getattr(peer.lib, name)
        return lambda: draw(rows, WIDTH, dtype=getattr(peer.lib, dtype), device=peer.device)

    return build


def parameters(peer: Peer, dtype: str, rows: int) -> list[Any]:
    """Return 16 parameters with gradients."""
    made = [peer.lib.nn.Parameter(part.clone()) for part in drawn(peer, dtype, rows, WIDTH).reshape(16, -1).unbind(0)]
    for param in made:
        param.grad = param.detach().clone()
    return made


def optimizer(name: str, **settings: Any) -> Builder:
    """Return a builder of an optimizer's step."""

    def build(peer: Peer, dtype: str, rows: int) -> Call:
        return getattr(peer.lib.optim, name)(parameters(peer, dtype, rows), lr=1e-6, **settings).step

    return build


def gradient_norm(peer: Peer, dtype: str, rows: int) -> Call:
    grads = [param.grad for param in parameters(peer, dtype, rows)]
    return lambda: peer.lib.nn.utils.get_total_norm(grads)


def clipping(peer: Peer, dtype: str, rows: int) -> Call:
    params = parameters(peer, dtype, rows)
    return lambda: peer.lib.nn.utils.clip_grad_value_(params, 0.1)


def of_cupy(name: str, *arguments: Any) -> Callable[[Any, int], Call]:
    """Return a builder of the method of CuPy's array."""

    def build(cupy: Any, rows: int) -> Call:
        call = getattr(cupy.full((rows, WIDTH), 0.25, "float32"), name)
        return lambda: call(*arguments)

    return build


def cupy_add(cupy: Any, rows: int) -> Call:
    a, b = (cupy.full((rows, WIDTH), 0.25, "float32") for _ in range(2))
    return lambda: a + b


def cupy_broadcast(cupy: Any, rows: int) -> Call:
    x, bias = cupy.full((rows, WIDTH), 0.25, "float32"), cupy.full(WIDTH, 0.5, "float32")
    return lambda: x + bias


def cupy_transposed(cupy: Any, rows: int) -> Call:
    x = cupy.full((rows, WIDTH), 0.25, "float32").T
    return lambda: cupy.ascontiguousarray(x)


PICTURES = (16, 8, 8)  # channels, height and width: a row

FAMILIES = [
    # elementwise
    Family("add", 3, add, cupy_add),
    Family("bias, broadcast", 2, broadcast, cupy_broadcast),
    Family("gelu", 2, functional("gelu")),
    Family("gelu backward", 3, backward("gelu")),
    Family("bias and gelu", 2, biased_gelu),
    Family("masked fill", 2, masked, extra=1),
    Family("transposed copy", 2, transposed, cupy_transposed),
    # reductions
    Family("sum of all", 1, method("sum"), of_cupy("sum")),
    Family("sum of rows", 1, method("sum", 1), of_cupy("sum", 1)),
    Family("sum of columns", 1, method("sum", 0), of_cupy("sum", 0)),
    Family("argmax of rows", 1, method("argmax", 1), of_cupy("argmax", 1)),
    Family("cumulative sum", 2, method("cumsum", 1), of_cupy("cumsum", 1)),
    # rows
    Family("softmax", 2, functional("softmax", -1)),
    Family("softmax backward", 3, backward("softmax", -1)),
    Family("log-softmax", 2, functional("log_softmax", -1)),
    Family("cross-entropy", 1, cross_entropy),
    Family("layer norm", 2, functional("layer_norm", (WIDTH,))),
    Family("layer norm backward", 3, backward("layer_norm", (WIDTH,))),
    Family("rms norm", 2, functional("rms_norm", (WIDTH,))),
    # pictures
    Family("batch norm", 3, functional("batch_norm", None, None, shape=PICTURES, training=True)),
    Family("group norm", 2, functional("group_norm", 4, shape=PICTURES)),
    Family("max pooling", 1.25, functional("max_pool2d", 2, shape=PICTURES)),
    Family("average pooling", 1.25, functional("avg_pool2d", 2, shape=PICTURES)),
    # indices
    Family("embedding", 2, embedding),
    Family("embedding backward", 1.25, embedding_gradient),
    # random
    Family("uniform", 1, fill("rand")),
    Family("normal", 1, fill("randn")),
    Family("dropout", 2, functional("dropout", 0.5)),
    # all parameters at once
    Family("SGD, momentum", 5, optimizer("SGD", momentum=0.9)),
    Family("AdamW", 7, optimizer("AdamW")),
    Family("gradient norm", 1, gradient_norm),
    Family("clipping by value", 2, clipping),
]
