"""Hooks of functions, called at every op that a thread runs, forward and backward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast

from lucid.autograd.modes.leaving import Context, together
from lucid.autograd.modes.state import intercepted, thread
from lucid.errors import HookError, SettingError

if TYPE_CHECKING:
    from lucid.autograd.hooks.functions import Call

PHASES = {"forward", "backward"}


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
