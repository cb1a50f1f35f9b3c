"""A whole training step as a CUDA graph, with care for warm-up, inputs, hooks, and changes that a graph would miss."""

from __future__ import annotations

from functools import partial
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, NoReturn

from lucid.arguments import shown
from lucid.autograd.base import TensorBase, describe, grad_of, wrap
from lucid.autograd.hooks.structure import map_leaves
from lucid.autograd.modes.state import set_grad_enabled, thread
from lucid.autograd.recording.views import live_edge
from lucid.base import gpu
from lucid.cuda.streams import Stream
from lucid.errors import ArgumentError, CaptureError, SettingError, warn
from lucid.graphs.capture import Capture
from lucid.graphs.graph import beside, check_replay, checked_pool, recording
from lucid.graphs.outside import Gradients, Watch, holding
from lucid.graphs.static import check_form, copy_to_static, detached, static_input, tensors_in, tensors_like
from lucid.nn.hooking.tables import calls_noted

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.cuda.memory import Pool
    from lucid.graphs.graph import CUDAGraph


def graphed_step(
    step: Callable[..., Any], *inputs: Any, warmup: int = 3, pool: Pool | CUDAGraph | None = None
) -> GraphedStep:
    """Return a function that runs `step`, from the fourth call on by launching one CUDA graph.

    Each call is one step, with its own inputs. The first `warmup` run as always, on a stream of their own. The next one
    is captured and launched. Later ones copy the inputs to where the graph reads them, and launch it. Random numbers
    are those of the same steps without a graph. What is returned lies in the graph's memory, which the next call
    overwrites, and is detached: clone it to keep it. See docs/users/speed.md.

    Parameters
    ----------
    step : callable
        Takes tensors as `inputs` are. It computes on the current device alone, reads no values on the host, and uses
        optimizers with ``capturable=True`` where they count steps.
    *inputs : Tensor, or tuples, lists and dicts of them
        CUDA tensors of the shapes and dtypes of every later call; their values are not used.
    warmup : int
        At least 1: what a first step makes, such as an optimizer's state, a graph would make again each time.
    pool : Pool or CUDAGraph, optional
        As for `lucid.cuda.graph`.

    Raises
    ------
    CaptureError
        At the call that captures: where `step` does what cannot be captured; gradients are as before then. At a later
        one: if a tensor that the step uses was replaced since, or is gone.
    ShapeError, DtypeError
        If an input is of another shape or dtype; the graph stays.

    Notes
    -----
    Hooks that fire in the step run when it is captured, and what they queue on the device is part of the graph; a
    warning names them. One that was registered with ``every_step=True`` is called in each step, between two parts of
    the graph. If a hook that would fire in the step was added or removed since, the next call captures anew, with a
    warning.

    Examples
    --------
    >>> import lucid
    >>> model = lucid.nn.Linear(8, 1).to("cuda")  # doctest: +SKIP
    >>> optimizer = lucid.optim.AdamW(model.parameters(), capturable=True)  # doctest: +SKIP
    >>> def step(x, y):
    ...     optimizer.zero_grad()
    ...     loss = lucid.nn.functional.mse_loss(model(x), y)
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss
    >>> x, y = lucid.randn(16, 8, device="cuda"), lucid.randn(16, 1, device="cuda")  # doctest: +SKIP
    >>> graphed = lucid.cuda.graphed_step(step, x, y)  # doctest: +SKIP
    >>> for _ in range(100):  # doctest: +SKIP
    ...     loss = graphed(x, y)
    """
    if not callable(step):
        raise ArgumentError(f"graphed_step: expected a callable step, got {shown(step)}")
    if not isinstance(warmup, int) or isinstance(warmup, bool):
        raise ArgumentError(f"graphed_step: expected warmup as an integer, got {shown(warmup)}")
    if warmup < 1:
        raise SettingError(f"graphed_step: expected at least 1 step of warmup, got {warmup}")
    return GraphedStep(step, inputs, warmup, checked_pool(pool))


class OutsideCall:
    """A call of a hook between two parts of a step: later parts read its result of the capture."""

    __slots__ = ("args", "argument_memory", "function", "gradients", "kwargs", "recording", "result")

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], changed: set[int]
    ) -> None:
        self.function = function
        self.args, self.kwargs = args, kwargs
        self.recording = thread.state.grad_mode.enabled
        tensors = tensors_in((args, kwargs))
        nodes = {id(edge[0]) for tensor in tensors if (edge := live_edge(tensor)) is not None}
        leaves = [tensor for tensor in tensors if tensor.requires_grad and tensor.is_leaf]
        for group in getattr(args[0], "param_groups", ()) if args else ():
            leaves += group["params"]
        before = [(leaf, grad_of(leaf)) for leaf in leaves]
        try:
            self.result = function(*args, **kwargs)
        finally:
            changed.update([id(leaf) for leaf, grad in before if grad_of(leaf) is not grad])
        # of each leaf that it is given the gradient before and after
        self.gradients = [(leaf, grad, grad_of(leaf)) for leaf, grad in before]
        self.argument_memory = {id(tensor.array.data.mem) for tensor in tensors if tensor.is_cuda}
        for tensor in tensors_in(self.result):
            edge = live_edge(tensor)
            if edge is not None and id(edge[0]) not in nodes:
                raise CaptureError(
                    f"a hook with every_step=True returned a tensor of {describe(tensor)} that it recorded for "
                    "backward, which the graph would do with the values of the capture each time: let it return what "
                    "it was given, or a tensor without a graph; or register it without every_step"
                )
        # what it returned may be the user's: later parts read a copy, but of what it was given
        self.result = map_leaves(
            self.result, lambda leaf: leaf if self._is_argument(leaf) else wrap(leaf.array).clone()
        )

    def _is_argument(self, leaf: Any) -> bool:
        return not isinstance(leaf, TensorBase) or id(getattr(leaf.array.data, "mem", None)) in self.argument_memory

    def replay(self, stream: object) -> None:
        """Call the hook again, with the values of now, and write its result into that of the capture."""
        for leaf, before, _ in self.gradients:
            leaf.stored_grad = before
        with set_grad_enabled(self.recording):
            result = self.function(*self.args, **self.kwargs)
        for leaf, _, after in self.gradients:
            now = grad_of(leaf)
            if (now is None) != (after is None):
                raise CaptureError(
                    f"a hook with every_step=True left {'no' if now is None else 'a'} gradient to a tensor of "
                    f"{describe(leaf)} in a replayed step, other than when the step was captured: let it do the same "
                    "each time, or call reset() on the graphed step"
                )
            if now is not after:
                wrap(after.array).copy_(wrap(now.array))
                leaf.stored_grad = after
        targets, sources = tensors_in(self.result), tensors_in(result)
        if (self.result is None) != (result is None) or [_form(t) for t in targets] != [_form(s) for s in sources]:
            raise CaptureError(
                f"a hook with every_step=True returned {_words(result)} in a replayed step, and {_words(self.result)} "
                "when the step was captured: let it return the same kind of thing each time, or call reset() on the "
                "graphed step"
            )
        for target, source in zip(targets, sources, strict=True):
            if not self._is_argument(target):
                wrap(target.array).copy_(wrap(source.array))
            elif source.array.data.ptr != target.array.data.ptr or source.array.strides != target.array.strides:
                raise CaptureError(
                    "a hook with every_step=True returned another tensor in a replayed step than the one of those it "
                    "was given that it returned when the step was captured: let it return the same each time, or a "
                    "copy, or call reset() on the graphed step"
                )


class GraphedStep:
    """Result of `graphed_step`."""

    def __init__(self, step: Callable[..., Any], inputs: tuple[Any, ...], warmup: int, pool: Pool) -> None:
        self._step = step
        self._warmup, self._remaining = warmup, warmup
        self._pool = pool
        self._stream = Stream()
        self._inputs = map_leaves(inputs, partial(static_input, "graphed_step", pool.device))
        self._leaves = tensors_in(self._inputs)
        self._parts: list[Capture | OutsideCall] = []
        self._outputs: Any = None
        self._watch: Watch | None = None
        self._gradients: Gradients | None = None

    @property
    def inputs(self) -> Any:
        """The tensors that the step is called with, in a tuple; each call copies its inputs to them."""
        return self._inputs

    def __reduce__(self) -> NoReturn:
        raise PicklingError("a graphed step is of this process and its tensors: make one of each copy of the model")

    def reset(self) -> None:
        """Forget the graph: the next calls warm up, and then one captures anew."""
        self._forget()
        self._remaining = self._warmup

    def _forget(self) -> None:
        self._parts, self._outputs, self._watch, self._gradients = [], None, None, None

    def __call__(self, *inputs: Any) -> Any:
        """Return the result of the step for `inputs`."""
        check_replay("graphed_step", self._pool.device)
        tensors = tensors_like("graphed_step", self._inputs, inputs)
        check_form("graphed_step", self._leaves, tensors)
        if self._watch is not None and self._gradients is not None:
            self._watch.check(
                "call reset() on the graphed step, which then captures anew, as after an optimizer's load_state_dict"
            )
            self._gradients.check()
            if self._watch.hooks_changed:
                warn(
                    "graphed_step: a hook that fires in the step was added or removed since it was captured: it is "
                    "captured anew",
                )
                self._forget()
        copy_to_static(self._leaves, tensors)
        if self._parts:
            stream = gpu.current_stream()
            for part in self._parts:
                part.replay(stream)
            if self._gradients is not None:
                self._gradients.leave()
            return self._outputs
        return self._run_or_capture()

    def _run_or_capture(self) -> Any:
        """Return the result of a step, run, or captured and launched, on this object's stream."""
        with beside(self._stream):
            if not self._remaining:
                self._capture()
                return self._outputs
            outputs = map_leaves(self._step(*self._inputs), partial(detached, static=self._leaves))
            self._remaining -= 1
            return outputs

    def _own(self, addresses: set[int]) -> Callable[[Any], bool]:
        """Return a test of whether captured work made or uses an array, by the addresses in the graph."""
        is_used = holding(addresses)
        return lambda array: self._pool.holds(array) or is_used(array)

    def _capture(self) -> None:
        watch = Watch(self._pool.device)
        parts: list[Capture | OutsideCall] = []
        captures: list[Capture] = []
        # by `id`, the tensors whose gradient hooks between the parts have changed
        changed: set[int] = set()
        allocator, pool = gpu.cupy().cuda.get_allocator(), self._pool

        def begin() -> None:
            capture = Capture(pool)
            capture.outside = call_outside
            captures.append(capture)
            capture.begin()

        def end() -> None:
            captures[-1].end()
            parts.append(captures[-1])

        def call_outside(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            end()
            captures[-1].replay(gpu.current_stream())
            # what a hook makes and keeps lies where no part of the graph writes
            with gpu.cupy().cuda.using_allocator(allocator):
                call = OutsideCall(function, args, kwargs, changed)
            parts.append(call)
            begin()
            return call.result

        with recording(pool), calls_noted():
            try:
                begin()
                outputs = map_leaves(self._step(*self._inputs), partial(detached, static=self._leaves))
                end()
                addresses = _addresses(captures)
                gradients = Gradients(watch.gradients(), _assigned(captures), changed, self._own(addresses))
                watch.use(addresses)
                captures[-1].replay(gpu.current_stream())
            except BaseException:
                for capture in reversed(captures):
                    capture.abandon()
                watch.put_back(changed | _assigned(captures), self._own(_addresses(captures)))
                raise
            finally:
                done, recorded = parts[:], captures[:]
                # the functions above hold each other: what they hold else would wait for the collector of garbage
                parts.clear()
                captures.clear()
                for capture in recorded:
                    capture.outside = None
        for capture in recorded:
            capture.undo.clear()
            watch.places.update(capture.places)
        self._watch, self._gradients = watch, gradients
        self._parts, self._outputs = done, outputs
        fired = {name: kind for part in recorded for name, kind in part.fired.items()}
        if fired:
            warn(
                "graphed_step: these hooks ran when the step was captured, and do not run when it is replayed, but for "
                f"what they queued on the device: {', '.join(f'{name}, {kind}' for name, kind in fired.items())}. "
                "Register with every_step=True what each step has to call",
            )


def _addresses(captures: list[Capture]) -> set[int]:
    return {address for part in captures for address in part.addresses}


def _assigned(captures: list[Capture]) -> set[int]:
    return {each for part in captures for each in part.assigned}


def _form(tensor: Any) -> tuple[Any, ...]:
    return tensor.array.shape, tensor.array.dtype, tensor.is_cuda


def _words(result: object) -> str:
    return ", ".join([f"a tensor of {describe(tensor)}" for tensor in tensors_in(result)]) or type(result).__name__
