"""Functions and modules with CUDA graphs as forward and backward, under PyTorch's name."""

from __future__ import annotations

import weakref
from functools import partial, wraps
from pickle import PicklingError
from types import MethodType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from lucid.arguments import shown
from lucid.autograd.base import INFERENCE, TensorBase, describe, version_of, wrap
from lucid.autograd.entry import grad as gradients_of
from lucid.autograd.function import Function, once_differentiable
from lucid.autograd.hooks.structure import map_leaves
from lucid.base import gpu
from lucid.cuda.streams import Stream
from lucid.errors import ArgumentError, CaptureError, HookError, InplaceError, SettingError, warn
from lucid.graphs.graph import CUDAGraph, beside, checked_pool, graph
from lucid.graphs.outside import Watch, holding
from lucid.graphs.static import check_form, copy_to_static, static_input, tensors_in, tensors_like
from lucid.ops.creation.filling import zeros_like

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lucid.cuda.memory import Pool


class Graphed(NamedTuple):
    """Tensors that the replays of one function read and write."""

    arguments: list[Any]
    """Tensors that the function is given."""
    parameters: list[Any]
    """Parameters, which stay where they are."""
    outputs: Any
    grad_outputs: list[Any]
    """One for each output, None for those that do not require grad."""
    grad_inputs: list[Any]
    """One for each argument and parameter, None for those that get none."""
    forward: CUDAGraph
    backward: CUDAGraph | None
    watch: Watch
    reading: Reading


def make_graphed_callables(
    callables: Any,
    sample_args: tuple[Any, ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Pool | CUDAGraph | None = None,
) -> Any:
    """Return functions or modules that launch one CUDA graph for their forward and one for their backward.

    What lies between them stays as it is: losses, hooks of the module itself, optimizers. A module is changed and
    returned: its `forward` is the graph as long as its `training` is what it is now. Results, and gradients that hooks
    or `lucid.autograd.grad` are given, are overwritten by the next call of the same function; they cannot be
    differentiated twice. So is what backward reads: it runs once after each call, before the next one. Several
    callables share memory: they are called in their order here, and their backwards run in the reverse. The warm-up
    draws random numbers and moves running statistics, as calls do, with the samples. For a whole training step see
    `lucid.cuda.graphed_step`.

    Parameters
    ----------
    callables : callable or tuple of callable
        Modules, which may have no hooks now, and functions, which take tensors alone.
    sample_args : tuple of Tensor, or tuple of such tuples
        Of each callable CUDA tensors as it will be called with: shapes, dtypes, and whether they require grad.
    num_warmup_iters : int
        How often each runs before, at least 1.
    allow_unused_input : bool
        Whether an input or parameter that requires grad may have none.
    pool : Pool or CUDAGraph, optional
        As for `lucid.cuda.graph`.

    Raises
    ------
    CaptureError
        If one does what cannot be captured; at a call, if a parameter was replaced since; in backward, if what it reads
        was overwritten by another call or backward.
    InplaceError
        In backward, if a result or a parameter that it reads was changed in place since the call.
    HookError
        If a module has hooks. Those that it gets later fire around the graph; those of its submodules do not fire.
    ShapeError
        At a call with tensors of another form.

    Examples
    --------
    >>> import lucid
    >>> model = lucid.nn.Linear(8, 1).to("cuda")  # doctest: +SKIP
    >>> x = lucid.randn(16, 8, device="cuda")  # doctest: +SKIP
    >>> model = lucid.cuda.make_graphed_callables(model, (x,))  # doctest: +SKIP
    >>> model(x).sum().backward()  # doctest: +SKIP
    """
    if not isinstance(num_warmup_iters, int) or isinstance(num_warmup_iters, bool) or num_warmup_iters < 1:
        raise SettingError(
            f"make_graphed_callables: expected num_warmup_iters as an integer of at least 1, got "
            f"{shown(num_warmup_iters)}"
        )
    if not isinstance(allow_unused_input, bool):
        raise ArgumentError(
            f"make_graphed_callables: expected allow_unused_input as a bool, got {shown(allow_unused_input)}"
        )
    several = isinstance(callables, tuple)
    functions = cast("tuple[Any, ...]", callables if several else (callables,))
    samples = cast("tuple[Any, ...]", sample_args if several else (sample_args,))
    if len(samples) != len(functions) or not all(isinstance(each, tuple) for each in samples):
        raise ArgumentError(
            "make_graphed_callables: sample_args: expected a tuple of arguments for each of "
            f"{len(functions)} callables, got {shown(sample_args)}"
        )
    for function in functions:
        _check_callable(function)
    memory = checked_pool(pool)
    device = gpu.current_device()
    inputs = [map_leaves(each, partial(static_input, "make_graphed_callables", device)) for each in samples]
    side = Stream()
    with beside(side):
        for function, args in zip(functions, inputs, strict=True):
            for _ in range(num_warmup_iters):
                _backward_of(function, args, _forward_of(function)(*args), allow_unused=allow_unused_input)
    graphed = _captured(functions, inputs, side, memory, allow_unused=allow_unused_input)
    made = tuple(
        _replaying(function, args, each) for function, args, each in zip(functions, inputs, graphed, strict=True)
    )
    return made if several else made[0]


def _check_callable(function: Any) -> None:
    if not callable(function):
        raise ArgumentError(f"make_graphed_callables: callables: expected a callable, got {shown(function)}")
    module: Any = function
    if not _is_module(module):
        return
    if module._active_hooks:  # noqa: SLF001
        raise HookError(
            "make_graphed_callables: the module has hooks, which would run once, at the capture: remove them and "
            "register them again afterwards, when they fire around the graph"
        )
    if any(buffer.requires_grad for buffer in module.buffers()):
        raise ArgumentError("make_graphed_callables: a buffer of the module requires grad: make it a parameter")


def _is_module(function: object) -> bool:
    return hasattr(function, "_active_hooks") and hasattr(function, "parameters")


def _forward_of(function: Any) -> Callable[..., Any]:
    return function.forward if _is_module(function) else function


def _parameters_of(function: Any) -> list[Any]:
    return [p for p in function.parameters() if p.requires_grad] if _is_module(function) else []


def _backward_of(function: Any, args: Any, outputs: Any, *, allow_unused: bool, grads: Any = None) -> list[Any]:
    """Return the gradient of each input, None for those that require none, of outputs with the given gradients."""
    inputs = [*tensors_in(args), *_parameters_of(function)]
    wanted = [tensor for tensor in inputs if tensor.requires_grad]
    roots = [tensor for tensor in tensors_in(outputs) if tensor.requires_grad]
    if not wanted or not roots:
        return [None] * len(inputs)
    if grads is None:
        grads = [zeros_like(root) for root in roots]
    results = iter(gradients_of(roots, wanted, grads, allow_unused=allow_unused))
    return [next(results) if tensor.requires_grad else None for tensor in inputs]


def _captured(
    functions: Sequence[Any], inputs: list[Any], side: Stream, memory: Pool, *, allow_unused: bool
) -> list[Graphed]:
    """Return the graphs of all forwards, captured in order, and of all backwards, captured from the last."""
    watches = [Watch(memory.device) for _ in functions]
    forwards: list[tuple[CUDAGraph, Any]] = []
    for function, args in zip(functions, inputs, strict=True):
        forward = CUDAGraph()
        with graph(forward, pool=memory, stream=side):
            outputs = _forward_of(function)(*args)
        forwards.append((forward, outputs))
    graphed: list[Graphed] = []
    calls: list[object] = ["it was never called"] * len(functions)
    for number, (function, args, watch, (forward, outputs)) in reversed(
        [*enumerate(zip(functions, inputs, watches, forwards, strict=True))]
    ):
        flat = tensors_in(outputs)
        with memory.used():
            grad_outputs = [zeros_like(tensor) if tensor.requires_grad else None for tensor in flat]
        present = [tensor for tensor in grad_outputs if tensor is not None]
        arguments, parameters = tensors_in(args), _parameters_of(function)
        leaves = [*arguments, *parameters]
        grad_inputs: list[Any] = [None] * len(leaves)
        backward = CUDAGraph() if present and any(tensor.requires_grad for tensor in leaves) else None
        if backward is not None:
            with graph(backward, pool=memory, stream=side):
                grad_inputs = _backward_of(function, args, outputs, allow_unused=allow_unused, grads=present)
        read: set[int] = backward.addresses() if backward is not None else set()
        watch.use(forward.addresses() | read)
        reading = Reading(calls, number, watch.at(read), [tensor.detach() for tensor in flat], read)
        graphed.append(
            Graphed(arguments, parameters, outputs, grad_outputs, grad_inputs, forward, backward, watch, reading)
        )
    fired = {name: kind for each in graphed for name, kind in each.forward.fired().items()}
    if fired:
        warn(
            "make_graphed_callables: these hooks ran when the forward was captured, and do not run when it is "
            f"replayed: {', '.join(f'{name}, {kind}' for name, kind in fired.items())}",
        )
    return graphed[::-1]


class Reading:
    """Values read by the backward of one of several callables, captured in order, and backwards from the last.

    What one made and let go of is memory of those after it. So a launch overwrites what backward reads of its own
    callable, and of those after that.

    Parameters
    ----------
    calls : list of object
        Shared by them all: of each the call whose values lie in memory, or words of what has overwritten them.
    number : int
        Which of them this is.
    outside : iterable of Tensor
        What backward reads of what was there before, such as parameters.
    results : list of Tensor
        What forward leaves in the graph's memory.
    addresses : set of int
        Those that backward reads.
    """

    def __init__(
        self, calls: list[object], number: int, outside: Iterable[Any], results: list[Any], addresses: set[int]
    ) -> None:
        self._calls, self._number, self._results = calls, number, results
        # a launch counts as a change of them: what has saved one of an earlier call must not read it
        self._counts: list[list[int]] = [[0] for _ in results]
        is_read = holding(addresses)
        read = [(version_of(tensor), describe(tensor)) for tensor in outside]
        for tensor, count in zip(results, self._counts, strict=True):
            if is_read(tensor.array):
                read.append((count, f"{describe(tensor)}, a result"))
        self._read = [(version, words) for version, words in read if version is not INFERENCE]

    def begin(self) -> list[int]:
        """Return a call, from now on the owner of the values in memory: the versions of the values for its backward."""
        for count in self._counts:
            count[0] += 1
        call = self._versions()
        self._overwrite(call, f"callable {self._number} was called")
        return call

    def results(self) -> tuple[Any, ...]:
        """Return the results of a call, outside of any graph."""
        made = tuple(wrap(tensor.array) for tensor in self._results)
        for tensor, count in zip(made, self._counts, strict=True):
            if getattr(tensor, "version", None) is not INFERENCE:
                tensor.version = count
        return made

    def end(self, call: list[int]) -> None:
        """Let the backward of a call overwrite the values that it reads.

        Raises
        ------
        CaptureError
            If something else has done so.
        InplaceError
            If one of the tensors was changed in place since.
        """
        number, latest = self._number, self._calls[self._number]
        if latest is not call:
            raise CaptureError(
                f"make_graphed_callables: backward of a call of callable {number}, but what it reads was overwritten: "
                f"{latest if isinstance(latest, str) else f'callable {number} was called again'} since. Run backward "
                "once after each call, before the next one, and backwards of several callables in the reverse of "
                "their order; let a make_graphed_callables of its own make what has to wait for another"
            )
        now = self._versions()
        if now != call:
            words = next(words for (_, words), a, b in zip(self._read, now, call, strict=True) if a != b)
            raise InplaceError(
                "make_graphed_callables: one of the variables needed for gradient computation has been modified by an "
                f"inplace operation between a call and its backward: a tensor of {words}. Change it before the call or "
                "after backward, or use the out-of-place op"
            )
        done = f"the backward of callable {number} was run"
        self._overwrite(done, done)

    def _overwrite(self, own: object, others: str) -> None:
        self._calls[self._number :] = [own, *[others] * (len(self._calls) - self._number - 1)]

    def _versions(self) -> list[int]:
        return [version[0] for version, _ in self._read]


def _replaying(function: Any, sample: Any, graphed: Graphed) -> Any:
    """Return a function that launches the graphs, or the module with such a forward."""

    class Replay(Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            ctx.call = graphed.reading.begin()
            copy_to_static(graphed.arguments, list(inputs[: len(graphed.arguments)]))
            graphed.forward.replay()
            outputs = graphed.reading.results()
            ctx.mark_non_differentiable(
                *[each for each, grad in zip(outputs, graphed.grad_outputs, strict=True) if grad is None]
            )
            return outputs

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, *grads: Any) -> Any:
            graphed.reading.end(ctx.call)
            pairs = [(own, new) for own, new in zip(graphed.grad_outputs, grads, strict=True) if own is not None]
            copy_to_static([own for own, _ in pairs], [new for _, new in pairs])
            if graphed.backward is not None:
                graphed.backward.replay()
            return tuple(None if grad is None else wrap(grad.array) for grad in graphed.grad_inputs)

    def replay(*args: Any) -> Any:
        tensors = tensors_like("make_graphed_callables", sample, args)
        # as PyTorch's copy to where the graph reads, which autocast relies on
        tensors = [
            new.to(like.dtype) if new.dtype.category == like.dtype.category == 2 else new
            for like, new in zip(graphed.arguments, tensors, strict=True)
        ]
        check_form("make_graphed_callables", graphed.arguments, tensors)
        for number, (own, new) in enumerate(zip(graphed.arguments, tensors, strict=True)):
            if new.requires_grad and not own.requires_grad:
                raise ArgumentError(
                    f"make_graphed_callables: input {number} requires grad, and the sample of {describe(own)} did not: "
                    "pass samples that require grad where the inputs will"
                )
        graphed.watch.check("call make_graphed_callables again, with the function or a module's copy without graphs")
        results = iter(Replay.apply(*tensors, *graphed.parameters))
        return map_leaves(graphed.outputs, lambda leaf: next(results) if isinstance(leaf, TensorBase) else leaf)

    if not _is_module(function):
        # the tensors that it closes over live as long as the graphs, which use them
        return wraps(function, assigned=(), updated=())(replay)
    function.forward = GraphedForward(function, replay)
    return function


class GraphedForward:
    """The forward of a module by graphs, as long as its `training` stays.

    A copy of the module computes with its own parameters, and so without the graphs.
    """

    def __init__(self, module: Any, replay: Callable[..., Any]) -> None:
        # weakly: the module holds this
        self._module: weakref.ref[Any] = weakref.ref(module)
        self._eager: Callable[..., Any] | None = module.__dict__.get("forward")
        self._training: bool = module.training
        self._replay = replay

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the output of the module's own forward."""
        module: Any = self._module()
        if module.training != self._training:
            return self._without_graphs(module)(*args, **kwargs)
        if kwargs:
            raise ArgumentError(
                f"make_graphed_callables: expected positional arguments, as the samples were, got {[*kwargs]}"
            )
        return self._replay(*args)

    def _without_graphs(self, module: Any) -> Callable[..., Any]:
        return self._eager if self._eager is not None else MethodType(module.__class__.forward, module)

    def __deepcopy__(self, memo: dict[int, Any]) -> Callable[..., Any]:
        module: Any = self._module()
        return self._without_graphs(memo.get(id(module), module))

    def __reduce__(self) -> NoReturn:
        raise PicklingError(
            "a module of make_graphed_callables cannot be pickled, as graphs are of this process: save its state_dict()"
        )
