"""Checkpointing: a part of the forward keeps its inputs only, and is run again when backward needs more."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

from lucid.arguments import among, checked, unfit
from lucid.autograd.base import TensorBase, grad_of, is_tuple
from lucid.autograd.engine.node import as_leaf
from lucid.autograd.entry import backward
from lucid.autograd.function import Function
from lucid.autograd.hooks.firing import check_callable, hook_name
from lucid.autograd.modes.autocast import AutocastAs
from lucid.autograd.modes.leaving import Context
from lucid.autograd.modes.reading import Reads
from lucid.autograd.modes.state import enable_grad, thread
from lucid.autograd.recording.recomputation import Region, random_numbers
from lucid.autograd.recording.saved import saved_tensors_hooks
from lucid.autograd.recording.views import detached, live_edge
from lucid.base.random.generator import get_rng_states
from lucid.errors import CheckpointError, HookTypeError, warn

if TYPE_CHECKING:
    ContextManager = contextlib.AbstractContextManager[Any]

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "checkpoint",
    "checkpoint_sequential",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]


class set_checkpoint_early_stop(Context):
    """Inside, calls of `checkpoint` stop their recomputation as soon as all is there that backward needs, or do not.

    Parameters
    ----------
    enable : bool
        Goes before the argument `early_stop` of the calls.

    Examples
    --------
    >>> import lucid
    >>> from lucid.utils.checkpoint import checkpoint, set_checkpoint_early_stop
    >>> def double_exp(x):
    ...     y = x.exp() * 2
    ...     print("done")
    ...     return y
    >>> x = lucid.zeros(1, requires_grad=True)
    >>> with set_checkpoint_early_stop(False):
    ...     checkpoint(double_exp, x, use_reentrant=False).backward()
    done
    done
    """

    @checked
    def __init__(self, enable: bool) -> None:
        super().__init__()
        self._enable = enable

    def __enter__(self) -> None:
        state = thread.state
        self.undo.append((setattr, state, "early_stop", state.early_stop))
        state.early_stop = self._enable


class set_checkpoint_debug_enabled(Context):
    """Context that turns on or off the line of code that saved each tensor, in errors of `checkpoint`.

    Parameters
    ----------
    enabled : bool or None
        Goes before the argument `debug` of the calls; None leaves it to them.

    Examples
    --------
    >>> from lucid.utils.checkpoint import set_checkpoint_debug_enabled
    >>> with set_checkpoint_debug_enabled(True):
    ...     pass
    """

    @checked
    def __init__(self, enabled: bool | None) -> None:
        super().__init__()
        self._enabled = enabled

    def __enter__(self) -> None:
        state = thread.state
        self.undo.append((setattr, state, "debug", state.debug))
        state.debug = self._enabled


def noop_context_fn() -> tuple[ContextManager, ContextManager]:
    """Return two context managers that do nothing: the default of `context_fn`.

    Examples
    --------
    >>> from lucid.utils.checkpoint import noop_context_fn
    >>> forward, recomputation = noop_context_fn()
    >>> with forward, recomputation:
    ...     pass
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


class CheckpointFunction(Function):
    """The form of `checkpoint` with ``use_reentrant=True``: its backward runs the function again and backward in it.

    Examples
    --------
    >>> import lucid
    >>> from lucid.utils.checkpoint import CheckpointFunction
    >>> x = lucid.ones(1, requires_grad=True)
    >>> CheckpointFunction.apply(lambda x: x * 3, True, x).backward()
    >>> x.grad
    tensor([3.])
    """

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], preserve: bool, *args: Any) -> Any:
        """Return ``function(*args)``, not recorded."""
        ctx.function = function
        ctx.states = get_rng_states() if preserve else None
        ctx.autocast = thread.state.autocast
        ctx.others = [None if isinstance(a, TensorBase) else a for a in args]
        ctx.save_for_backward(*(a if isinstance(a, TensorBase) else None for a in args))
        ctx.reads = Reads(hook_name(function))
        with ctx.reads:
            outputs = function(*args)
        ctx.reads.close()
        return outputs

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Any, ...]:
        """Return the gradients of the tensors in `args`."""
        passes = thread.state.passes
        if passes and passes[-1].needed is not None:
            raise CheckpointError(
                "checkpoint with use_reentrant=True cannot be differentiated by autograd.grad or backward(inputs=...), "
                "as it fills the .grad of all leaves: pass use_reentrant=False"
            )
        if thread.state.grad_mode.enabled:
            raise CheckpointError(
                "checkpoint with use_reentrant=True has no second derivatives, so that create_graph=True would leave "
                "its part of them out: pass use_reentrant=False"
            )
        args: list[Any] = []
        for saved, other, needed in zip(ctx.saved_tensors, ctx.others, ctx.needs_input_grad[2:], strict=True):
            alias = other if saved is None else detached(saved)
            args.append(as_leaf(alias) if needed else alias)
        aliases = [alias for alias in args if isinstance(alias, TensorBase)]
        reads = Reads(ctx.reads.function, ctx.reads, known=aliases)
        with reads, random_numbers(ctx.states), enable_grad(), AutocastAs(ctx.autocast):
            outputs = ctx.function(*args)
        reads.end()
        outputs = outputs if is_tuple(outputs) else (outputs,)
        pairs = [
            (output, grad)
            for output, grad in zip(outputs, grad_outputs, strict=True)
            if isinstance(output, TensorBase) and live_edge(output) is not None
        ]
        if not pairs:
            raise CheckpointError(
                f"checkpoint of {hook_name(ctx.function)}: none of its outputs requires grad when it runs again: leave "
                "the checkpoint out, or pass use_reentrant=False"
            )
        backward([output for output, _ in pairs], [grad for _, grad in pairs])
        return None, None, *(grad_of(a) if isinstance(a, TensorBase) else None for a in args)


@checked
def checkpoint(
    function: Callable[..., Any] | None = None,
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[ContextManager, ContextManager]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Return ``function(*args, **kwargs)`` without the memory for its backward: it is run again for that.

    Parameters
    ----------
    function : callable, optional
        Must do the same each time that it is called; in-place changes of its arguments are refused. Without it a
        decorator is returned, whose functions are checkpointed at each call.
    *args, **kwargs
        Its arguments. Keyword arguments need ``use_reentrant=False``.
    use_reentrant : bool
        False records the graph as usual and recomputes what its nodes had saved when the first of them runs: every way
        of differentiating works, also twice. True records one node, whose backward runs `function` again with
        recording on, then backward inside of it: one of `args` must require grad, tensors in nested structures get
        none, and `autograd.grad`, ``backward(inputs=...)`` and second derivatives are refused. Left out, it is True
        with a warning, as in PyTorch.
    preserve_rng_state : bool
        Whether each run draws the same random numbers, on every device.
    context_fn : callable
        Returns two context managers, one for the first run and one for the others.
    determinism_check : {"default", "none"}
        Whether shape, dtype and device of the recomputed tensors are compared with those of the first run.
    debug : bool
        Whether errors say which line of code saved each tensor.
    early_stop : bool
        Whether a recomputation stops as soon as all is there that backward needs; see `set_checkpoint_early_stop`.

    Returns
    -------
    object
        What `function` returned.

    Raises
    ------
    CheckpointError
        If arguments exclude each other; in backward, if the function did not repeat itself, or read another parameter.
    InplaceError
        In backward, if an argument was changed in place since.

    Warns
    -----
    UserWarning
        If `use_reentrant` is left out, or is True and no argument requires grad.

    Notes
    -----
    Forward hooks of modules inside fire again in a recomputation, since they may replace values. Those that come after
    the last tensor was saved do not if it stops early: the forward hooks of a checkpointed layer fire once then, and
    twice under ``use_reentrant=True``. Backward hooks fire once.

    What the function reads beside its arguments, such as the parameters of modules, must be the same tensors, not
    changed since, when it is run again. Running statistics of batch and instance normalisation, counts of batches and
    the iterations of spectral norms move in the first run alone.

    Examples
    --------
    >>> import lucid
    >>> from lucid.utils.checkpoint import checkpoint
    >>> x = lucid.tensor([1.0, 2.0], requires_grad=True)
    >>> y = checkpoint(lambda x: (x * x).exp(), x, use_reentrant=False)
    >>> y.sum().backward()
    >>> x.grad
    tensor([  5.4366, 218.3926])
    >>> @checkpoint(use_reentrant=False)
    ... def block(x):
    ...     return (x * x).exp()
    >>> lucid.equal(block(x), y)
    True
    """
    if function is None:
        if kwargs:
            raise CheckpointError(f"checkpoint: without a function there are no arguments for it: {', '.join(kwargs)}")
        settings: dict[str, Any] = {
            "use_reentrant": use_reentrant,
            "preserve_rng_state": preserve_rng_state,
            "context_fn": context_fn,
            "determinism_check": determinism_check,
            "debug": debug,
            "early_stop": early_stop,
        }
        return functools.partial(_decorated, settings)
    check_callable(function, "checkpoint: function")
    if use_reentrant is None:
        warn(
            "checkpoint: use_reentrant was not given and is taken as True: pass use_reentrant=False, which supports "
            "every way of differentiating, or True"
        )
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise CheckpointError(
                f"checkpoint: unexpected keyword arguments with use_reentrant=True: {', '.join(kwargs)}: pass them by "
                "position, or pass use_reentrant=False"
            )
        if context_fn is not noop_context_fn or debug:
            raise CheckpointError("checkpoint: context_fn and debug need use_reentrant=False")
        if thread.state.recording and not any(isinstance(a, TensorBase) and live_edge(a) is not None for a in args):
            warn(
                "checkpoint: none of the arguments requires grad, so that with use_reentrant=True no gradient comes "
                "out of it: pass use_reentrant=False"
            )
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    if not among(determinism_check, {"default", "none"}):
        raise CheckpointError(f"checkpoint: determinism_check must be 'default' or 'none', got {determinism_check!r}")
    check_callable(context_fn, "checkpoint: context_fn")
    contexts: Any = context_fn()
    if not isinstance(contexts, tuple) or len(contexts) != 2:  # pyright: ignore[reportUnknownArgumentType]
        raise HookTypeError(f"checkpoint: expected context_fn to return two context managers, got {contexts!r}")
    first, again = contexts  # pyright: ignore[reportUnknownVariableType]
    if not thread.state.recording:
        return function(*args, **kwargs)
    region = Region(
        function,
        args,
        kwargs,
        preserve=preserve_rng_state,
        context=again,  # pyright: ignore[reportUnknownArgumentType]
        check=determinism_check == "default",
        debug=debug if thread.state.debug is None else thread.state.debug,
        early_stop=early_stop if thread.state.early_stop is None else thread.state.early_stop,
    )
    output: Any = None
    with region.reads, saved_tensors_hooks(region.pack, region.unpack), first:
        output = function(*args, **kwargs)
        region.close()
    if not region.complete:
        raise CheckpointError(
            f"checkpoint of {region.name}: the first context manager of context_fn suppressed the exception of the "
            "function, so that there is nothing to return"
        )
    return output


def _decorated(settings: dict[str, Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is checkpointed at each call."""
    check_callable(function, "checkpoint: function")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return checkpoint(function, *args, **settings, **kwargs)

    return call


@checked
def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, *, preserve_rng_state: bool = True
) -> Any:
    """Return the result of a sequence of functions on `input`, each segment but the last checkpointed.

    Parameters
    ----------
    functions : Sequential or sequence of callable
        Called one after the other.
    segments : int
        Into how many parts of equal length they are divided; what is left over goes to the last.
    input : Tensor
        The first one's argument.
    use_reentrant, preserve_rng_state
        As in `checkpoint`.

    Raises
    ------
    ValueError
        If there are fewer functions than segments, or no segment.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> from lucid.utils.checkpoint import checkpoint_sequential
    >>> model = nn.Sequential(*(nn.Tanh() for _ in range(5)))
    >>> x = lucid.ones(1, requires_grad=True)
    >>> checkpoint_sequential(model, 2, x, use_reentrant=False).backward()
    >>> x.grad
    tensor([0.0961])
    """
    if not isinstance(functions, Iterable):
        raise unfit(functions, "a Sequential or a list of functions", "functions")
    steps: list[Any] = list(cast("Iterable[Any]", functions))
    for step in steps:
        if not callable(step):
            raise unfit(step, "a callable", "functions")
    if not 1 <= segments <= len(steps):
        raise CheckpointError(f"checkpoint_sequential: expected 1 to {len(steps)} segments, got {segments}")
    if use_reentrant is None:
        warn("checkpoint_sequential: use_reentrant was not given and is taken as True: pass True or False")
        use_reentrant = True
    size = len(steps) // segments
    last = size * (segments - 1)
    for start in range(0, last, size):
        part = _InTurn(steps[start : start + size])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return _InTurn(steps[last:])(input)


class _InTurn:
    """Calls functions one after the other."""

    def __init__(self, steps: list[Any]) -> None:
        self.steps = steps

    def __call__(self, value: Any) -> Any:
        for step in self.steps:
            value = step(value)
        return value
