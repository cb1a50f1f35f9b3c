"""Hooks of functions, and their calls before and after each op that a thread runs, forward and backward."""

from __future__ import annotations

import functools
from inspect import signature
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from lucid.autograd.base import TensorBase, is_tuple
from lucid.autograd.hooks.firing import add_hook_note, fire
from lucid.autograd.hooks.gradients import check_replacement
from lucid.autograd.modes.leaving import Context, together
from lucid.autograd.modes.state import intercepted, thread
from lucid.errors import HookError, HookTypeError, SettingError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.engine.node import Node

T = TypeVar("T")
F = TypeVar("F", bound="Callable[..., Any]")

PHASES = {"forward", "backward"}


class Call:
    """One run of an op, as the hooks of functions see it.

    Attributes
    ----------
    name : str
        Of the op: ``mul``; with an underscore at the end where it changes its first operand, ``add_``; of a `Function`
        that of its class; in backward that of the node, ``MulBackward0``.
    phase : {"forward", "backward"}
        Which of them.
    inputs : tuple
        The operands, in their positions; in backward the gradients of the node's outputs, None where none came.
    settings : dict
        What was given beside them.
    node : Node or None
        In backward the node that runs.
    inner : bool
        Whether the ops that it runs are seen, too: those of a `Function` are, and those of hooks of modules.
    around : Call or None
        That of the op which runs this one.
    data : dict
        Of the hooks: what one puts there when the op begins it finds at the end.
    """

    __slots__ = ("around", "data", "inner", "inputs", "name", "node", "phase", "settings")

    def __init__(
        self,
        name: str,
        phase: str,
        inputs: tuple[Any, ...],
        settings: dict[str, Any],
        node: Node | None = None,
        *,
        inner: bool = False,
    ) -> None:
        self.name = name
        self.phase = phase
        self.inputs = inputs
        self.settings = settings
        self.node = node
        self.inner = inner
        self.around: Call | None = thread.state.call
        self.data: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<{self.phase} of {self.name}>"


def not_of_the_op(function: Callable[..., T], *arguments: Any) -> T:
    """Return ``function(*arguments)``, a user's that an op calls: hooks that wait for the end of the op see its ops."""
    state = thread.state
    if not state.hooks_wait:
        return function(*arguments)
    intercepted.add(state)
    state.hooks_wait = False
    state.function_hooks, state.node_hooks = state.open_hooks, state.open_node_hooks
    try:
        return function(*arguments)
    finally:
        state.function_hooks = state.node_hooks = ()
        state.hooks_wait = True


def outputs_of(output: Any) -> tuple[Any, ...]:
    """Return an op's result as a tuple, also if it is one value."""
    return cast("tuple[Any, ...]", output) if isinstance(output, tuple) else (output,)


class FunctionHook(Context):
    """A block that calls `before` and `after` around each op of this thread, forward and backward.

    Subclass it and write the methods that you need. Every op with tensors for operands counts, once: those that record
    nothing, views, in-place ops, ops of a `Function` beside the Function itself, and in backward each node. What one op
    does inside, as its conversions, is part of it, and what a hook runs itself is seen by none. Blocks nest: `before`
    is called from the outermost to the innermost, `after` and `failed` the other way round.

    Attributes
    ----------
    phases : tuple of str
        Of which it is told: ``("forward", "backward")``, unless a subclass or an object says less.

    Raises
    ------
    HookError
        If a block of the same object is open on this thread.
    SettingError
        If `phases` has another word than these two.

    Notes
    -----
    Where no block is open an op looks at nothing for it that it did not look at before. Constructors, which take no
    tensors, `detach`, and the steps of optimizers, which work on arrays, are no ops. A pass that runs sees the hooks
    that were there when it began. A block may end inside of its own hook, and blocks in any order: each takes off what
    it put on.

    Examples
    --------
    >>> import lucid
    >>> from lucid import hooks
    >>> class Names(hooks.FunctionHook):
    ...     def before(self, call):
    ...         print(call.phase, call.name, [tuple(x.shape) for x in call.inputs])
    >>> x = lucid.ones(3, requires_grad=True)
    >>> with Names():
    ...     (x * x).sum().backward()
    forward mul [(3,), (3,)]
    forward sum [(3,)]
    backward SumBackward0 [()]
    backward MulBackward0 [(3,)]
    backward AccumulateGrad [(3,)]
    """

    phases: tuple[str, ...] = ("forward", "backward")

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Return a hook that is in no block, whatever the constructor of a subclass does, or leaves out."""
        made = super().__new__(cls)
        Context.__init__(made)
        return made

    def __init__(self) -> None:
        super().__init__()

    def before(self, call: Call) -> None:
        """Hear of an op that begins now.

        Parameters
        ----------
        call : Call
            What runs; the same object comes to `after` or `failed`.
        """

    def after(self, call: Call, output: Any) -> Any:
        """Return None, or a replacement of the output.

        Parameters
        ----------
        call : Call
            What has run.
        output : Tensor or tuple
            What it has returned; in backward the gradient of each input of the node, None where none goes on. What an
            in-place op returns is its first operand, and nothing can take its place.
        """
        return None

    def failed(self, call: Call, error: BaseException) -> None:
        """Receive the error of an op after `before` was called for it: its own, or that of another hook."""

    def __enter__(self) -> Self:
        state = thread.state
        phases = {self.phases} if isinstance(self.phases, str) else set(self.phases)
        if not phases <= PHASES:
            raise SettingError(f"{type(self).__name__}.phases: expected some of {sorted(PHASES)}, got {self.phases!r}")
        forward, backward = state.open_hooks, state.open_node_hooks
        here = id(self)  # a subclass may say that others are equal
        if here in forward or here in backward:
            raise HookError(f"this {type(self).__name__} is open on this thread already: use another one inside")
        self._here().undo.append(together((forward.pop, here, None), (backward.pop, here, None)))
        intercepted.add(state)
        # stores alone, no calls: no interrupt falls between them
        if "forward" in phases:
            forward[here] = self
        if "backward" in phases:
            backward[here] = self
        return self


def in_positions(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of an op with tensors that were given by keywords in their positions, as operands are."""
    if not any(isinstance(value, TensorBase) for value in kwargs.values()):
        return args, kwargs
    rest = dict(kwargs)
    positional = list(args)
    for name, parameter in list(signature(function).parameters.items())[len(args) :]:
        if name not in rest or parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            break
        positional.append(rest.pop(name))
    return tuple(positional), rest


def seen(
    name: str, run: Callable[..., T], inputs: tuple[Any, ...], settings: dict[str, Any], *, inner: bool = False
) -> T:
    """Return ``run(*inputs, **settings)``, an op's forward, as the function hooks of this thread leave it.

    `inner` says whether the ops that it runs are seen, too: those of a user's function are.
    """
    return call_hooked(Call(name, "forward", inputs, settings, inner=inner), lambda: run(*inputs, **settings))[1]


def seen_as_one(function: F) -> F:
    """Return an op that is made of others, and is seen by the function hooks of a thread as one, under its name."""
    name = function.__name__.lstrip("_")

    @functools.wraps(function)
    def op(*args: Any, **kwargs: Any) -> Any:
        if intercepted and thread.state.function_hooks:
            return seen(name, function, *in_positions(function, args, kwargs))
        return function(*args, **kwargs)

    return cast("F", op)


def call_hooked(call: Call, run: Callable[[], T]) -> tuple[T, T]:
    """Return ``run()``, and the same after the changes of this thread's function hooks.

    They see no op that one of them runs itself. Each that was told of the call hears of its end, by an output or by an
    error, the innermost first, also where its block has ended meanwhile.
    """
    state = thread.state
    opened = state.open_node_hooks if call.phase == "backward" else state.open_hooks
    told: list[FunctionHook] = []

    def before(hook: FunctionHook, _: None) -> None:
        hook.before(call)
        told.append(hook)

    def after(hook: FunctionHook, output: Any) -> Any:
        told.pop()
        result = hook.after(call, output)
        return None if result is None else _fitted(hook, call, result, output)

    def owner() -> str:
        return f"the {call.phase} of {call.name}"

    state.function_hooks = state.node_hooks = ()
    try:
        fire(tuple(opened.values()), before, None, "function hook", owner)
        if call.inner:
            intercepted.add(state)
        try:
            state.call = call
            if call.inner:
                state.function_hooks, state.node_hooks = state.open_hooks, state.open_node_hooks
            else:
                state.hooks_wait = True
            output = run()
        finally:
            state.function_hooks = state.node_hooks = ()
            state.hooks_wait = False
            state.call = call.around
        return output, fire(told[::-1], after, output, "function hook", owner)
    except BaseException as error:
        _tell_of_error(told, call, error, owner())
        raise
    finally:
        # stores first: no interrupt falls between them
        state.function_hooks, state.node_hooks = state.open_hooks, state.open_node_hooks
        intercepted.add(state)  # an op that found none may have taken it off


def _tell_of_error(told: list[FunctionHook], call: Call, error: BaseException, owner: str) -> None:
    """Tell the hooks that an op has raised, the last first; an error of one is told to the others instead."""
    while told:
        hook = told.pop()
        try:
            hook.failed(call, error)
        except BaseException as another:
            add_hook_note(another, hook, "function hook", owner, len(told))
            _tell_of_error(told, call, another, owner)
            raise


def _fitted(hook: FunctionHook, call: Call, new: Any, old: Any) -> Any:
    """Return a hook's replacement of an output, if it fits."""
    kind = f"function hook of the {call.phase} of {call.name}"
    if call.name.endswith("_") and call.phase == "forward" and not call.inner:
        raise HookTypeError(f"{kind}: expected None, as the op has changed its first operand: change that, got {new!r}")
    if not is_tuple(old):
        _check_type(new, old, f"{kind}: expected None or")
        return new
    entries = cast("tuple[Any, ...]", new)
    if not isinstance(new, tuple) or len(entries) != len(old):
        raise HookTypeError(f"{kind}: expected None or a tuple of {len(old)} to be returned, got {new!r}")
    for k, (one, other) in enumerate(zip(entries, old, strict=True)):
        if call.phase == "forward":
            _check_type(one, other, f"{kind}: expected as entry {k}")
        elif one is not None:
            check_replacement(hook, kind, one, None, other)
    return entries


def _check_type(new: Any, old: Any, expected: str) -> None:
    """Raise `HookTypeError` unless a value is of the type of the one that it replaces."""
    wanted = cast("type[Any]", TensorBase if isinstance(old, TensorBase) else type(old))
    if not isinstance(new, wanted):
        name = "None" if old is None else "a Tensor" if wanted is TensorBase else f"a {wanted.__name__}"
        raise HookTypeError(f"{expected} {name} to be returned, got {type(new).__name__}")
