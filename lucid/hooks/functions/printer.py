"""Every op, printed."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from lucid.autograd.base import TensorBase, describe
from lucid.autograd.hooks.functions import Call, FunctionHook, outputs_of


class PrintHook(FunctionHook):
    """A block that prints each op of this thread when it ends: its phase, its name, operands and output.

    Parameters
    ----------
    file : file, optional
        Where to; by default what is `sys.stdout` at that moment.

    Examples
    --------
    >>> import lucid
    >>> from lucid import hooks
    >>> x = lucid.ones(2, requires_grad=True)
    >>> with hooks.PrintHook():
    ...     (x * 3).backward(lucid.ones(2))
    forward mul: shape (2,), float32 on cpu, 3 -> shape (2,), float32 on cpu
    backward MulBackward0: shape (2,), float32 on cpu -> shape (2,), float32 on cpu, None
    backward AccumulateGrad: shape (2,), float32 on cpu
    """

    def __init__(self, file: TextIO | None = None) -> None:
        super().__init__()
        self._file = file

    def before(self, call: Call) -> None:
        """Note how many ops lie around this one, of those that are printed."""
        depth, around = 0, call.around
        while around is not None:
            depth += self in around.data
            around = around.around
        call.data[self] = depth

    def after(self, call: Call, output: Any) -> None:
        """Print the op and its result."""
        outputs = outputs_of(output)
        self._print(call, f" -> {', '.join(map(_word, outputs))}" if outputs else "")

    def failed(self, call: Call, error: BaseException) -> None:
        """Print the op and its error."""
        self._print(call, f" raises {type(error).__name__}")

    def _print(self, call: Call, end: str) -> None:
        arguments = [*map(_word, call.inputs), *(f"{name}={value!r}" for name, value in call.settings.items())]
        line = f"{'  ' * call.data.pop(self)}{call.phase} {call.name}: {', '.join(arguments)}{end}"
        print(line, file=self._file or sys.stdout)


def _word(value: Any) -> str:
    return describe(value) if isinstance(value, TensorBase) else repr(value)
