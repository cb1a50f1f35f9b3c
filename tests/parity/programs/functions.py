"""Functions of a user's own, of every kind that autograd tells apart; each is applied to x, weight and a part."""

from __future__ import annotations

import functools

import numpy as np

from tests.pieces import function_of


@functools.cache
def functions(lib):
    """Return the Functions of a library by name; the part that applies one notes what it sees."""

    class Plain(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, part):
            ctx.save_for_backward(x, weight)
            ctx.factor = 0.5
            return x * weight * ctx.factor

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            return shrunk(grad * weight * ctx.factor, x), shrunk(grad * x * ctx.factor, weight), None

    StraightThrough = function_of(
        lambda ctx, x, weight, part: (x * 2.0).sin(), lambda ctx, grad: (grad, None, None), lib, name="StraightThrough"
    )

    class Several(lib.autograd.Function):
        """Three outputs, one of no dimension; unused ones get zeros."""

        @staticmethod
        def forward(ctx, x, weight, part):
            ctx.part = part
            ctx.save_for_backward(x)
            return x * 2.0, x.sum(), x.cos()

        @staticmethod
        def backward(ctx, doubled, total, cosine):
            (x,) = ctx.saved_tensors
            ctx.part.note("Several", doubled, total, cosine)
            return doubled * 2.0 + total - cosine * x.sin(), None, None

    class Unfilled(lib.autograd.Function):
        """Unused outputs get None."""

        @staticmethod
        def forward(ctx, x, weight, part):
            ctx.part = part
            ctx.set_materialize_grads(False)
            return x * 2.0, x.mean() * 0.5, x * 3.0

        @staticmethod
        def backward(ctx, doubled, mean, tripled):
            ctx.part.note("Unfilled", doubled, mean, tripled)
            grads = [g * f for g, f in ((doubled, 2.0), (mean, 0.5), (tripled, 3.0)) if g is not None]
            return (sum(grads[1:], grads[0]) if grads else None), None, None

    class Marked(lib.autograd.Function):
        """One output is not differentiable by mark, one by its dtype."""

        @staticmethod
        def forward(ctx, x, weight, part):
            ctx.part = part
            y, fixed, flags = x * 0.5, x * 3.0, x.isnan()
            ctx.mark_non_differentiable(fixed)
            return y, fixed, flags

        @staticmethod
        def backward(ctx, grad, fixed, flags):
            ctx.part.note("Marked", grad, fixed, flags)
            return grad * 0.5, None, None

    class Dirty(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, part):
            ctx.mark_dirty(x)
            x.mul_(0.5)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 0.5, None, None

    class DirtyAndMore(lib.autograd.Function):
        """A changed input beside another output."""

        @staticmethod
        def forward(ctx, x, weight, part):
            ctx.mark_dirty(x)
            total = x.sum()
            return x.mul_(0.5), total

        @staticmethod
        def backward(ctx, grad, total):
            return grad * 0.5 + total, None, None

    class DirtyTwice(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, part):
            ctx.mark_dirty(x)
            x.mul_(0.5)
            return x, x

        @staticmethod
        def backward(ctx, first, second):
            return (first + second) * 0.5, None, None

    # Returns its inputs as they are.
    Unchanged = function_of(
        lambda ctx, x, weight, part: (x, weight),
        lambda ctx, grad, of_weight: (grad * 2.0, of_weight * 3.0, None),
        lib,
        name="Unchanged",
    )

    # Returns a view of its input.
    View = function_of(
        lambda ctx, x, weight, part: x.view_as(x), lambda ctx, grad: (grad * 2.0, None, None), lib, name="View"
    )

    class SetUp(lib.autograd.Function):
        """`forward` without a context, and a default that `setup_context` sees."""

        @staticmethod
        def forward(x, weight, part, factor=0.5):
            return x * weight * factor, x.sum()

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, weight, ctx.part = inputs[:3]
            ctx.part.note("SetUp", inputs[3:], output, ctx.needs_input_grad)
            ctx.save_for_backward(x, weight)
            ctx.factor = inputs[3] if len(inputs) > 3 else 0.5

        @staticmethod
        def backward(ctx, grad, total):
            x, weight = ctx.saved_tensors
            return shrunk(grad * weight * ctx.factor, x) + total, shrunk(grad * x * ctx.factor, weight), None

    class Once(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, part):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        @lib.autograd.function.once_differentiable
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * x.cos(), None, None

    class SavesOutput(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, part):
            y = x.tanh()
            ctx.save_for_backward(y, None, weight)
            return y

        @staticmethod
        def backward(ctx, grad):
            y, _, weight = ctx.saved_tensors
            return grad * (1.0 - y * y), None if weight is None else weight * 0.0, None

    class ReadsTwice(lib.autograd.Function):
        """Reads what it saved twice."""

        @staticmethod
        def forward(ctx, x, weight, part):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0].cos() + ctx.saved_tensors[0] * 0.0, None, None

    class SavesBetween(lib.autograd.Function):
        """Saves what is neither input nor output: its part of a second derivative is lost, on both sides."""

        @staticmethod
        def forward(ctx, x, weight, part):
            cosine = x.cos()
            ctx.save_for_backward(cosine)
            return x.sin()

        @staticmethod
        def backward(ctx, grad):
            (cosine,) = ctx.saved_tensors
            return grad * cosine, None, None

    class Nested(lib.autograd.Function):
        """Applies another Function inside, and one in backward."""

        @staticmethod
        def forward(ctx, x, weight, part):
            ctx.part = part
            ctx.save_for_backward(x, weight)
            return Plain.apply(x, weight, part) + StraightThrough.apply(x, weight, part)

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            return shrunk(StraightThrough.apply(grad, weight, ctx.part), x), shrunk(grad * x, weight), None

    class ToScalar(lib.autograd.Function):
        """One number out of all, whose gradient is expanded."""

        @staticmethod
        def forward(ctx, x, weight, part):
            ctx.shape = tuple(x.shape)
            return x.sum() * 0.5

        @staticmethod
        def backward(ctx, grad):
            return (grad * 0.5).expand(ctx.shape), None, None

    class Needs(lib.autograd.Function):
        """Computes what is needed."""

        @staticmethod
        def forward(ctx, x, weight, part):
            ctx.part = part
            part.note("Needs", ctx.needs_input_grad)
            ctx.save_for_backward(x, weight)
            return x * weight

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            ctx.part.note("Needs backward", ctx.needs_input_grad, grad)
            return (
                shrunk(grad * weight, x) if ctx.needs_input_grad[0] else None,
                shrunk(grad * x, weight) if ctx.needs_input_grad[1] else None,
            )

    class AsNumPy(lib.autograd.Function):
        """Computes by NumPy in both directions."""

        @staticmethod
        def forward(ctx, x, weight, part):
            ctx.cosine = np.cos(x.numpy(force=True))
            return lib.tensor(np.sin(x.numpy(force=True)))

        @staticmethod
        def backward(ctx, grad):
            return lib.tensor(grad.numpy(force=True) * ctx.cosine), None, None

    # Has no gradient for what it computes with.
    Blocked = function_of(
        lambda ctx, x, weight, part: x * 2.0, lambda ctx, grad: (None, None, None), lib, name="Blocked"
    )

    class Short(lib.autograd.Function):
        """Returns too few gradients, or one that fits nothing."""

        @staticmethod
        def forward(ctx, x, weight, part):
            ctx.wrong = part.a % 3
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            return (grad, (grad, None, grad), (grad.expand(2, 2, *grad.shape), None, None))[ctx.wrong]

    class Breaks(lib.autograd.Function):
        """Raises in one of the directions."""

        @staticmethod
        def forward(ctx, x, weight, part):
            ctx.calls = 0
            if part.a % 3 == 0:
                raise ZeroDivisionError
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            raise FloatingPointError

    def shrunk(grad, x):
        """Return a gradient summed to the shape of what was broadcast."""
        return (grad.sum() if x.ndim < grad.ndim else grad).to(x.dtype)

    return {name: function for name, function in locals().items() if isinstance(function, type)}


# those that change x in place
DIRTY = frozenset({"Dirty", "DirtyAndMore", "DirtyTwice"})
# those that return an input or a view of it
VIEWS = frozenset({"Unchanged", "View"})
# those that a checkpoint runs again in another way: PyTorch's gives what is saved only once, and runs again even where
# None arrives
UNREPEATABLE = frozenset({"ReadsTwice", "Blocked", "Unfilled"})
# those that give each tensor a gradient
COMPLETE = frozenset({"Plain", "SetUp", "Nested", "Needs", "Unchanged", "SavesOutput"})
# those that hand None on to what they were computed from
GIVES_NONE = frozenset({"Blocked", "Unfilled"})
NAMES = (
    *("Plain", "StraightThrough", "Several", "Unfilled", "Marked", "Dirty", "DirtyAndMore", "DirtyTwice", "Unchanged"),
    *("View", "SetUp", "Once", "SavesOutput", "SavesBetween", "Nested", "ToScalar", "Needs", "AsNumPy", "Blocked"),
    *("Short", "Breaks", "ReadsTwice"),
)
