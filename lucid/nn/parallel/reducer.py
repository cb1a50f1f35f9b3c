"""Puts gradients of several processes together, bucket after bucket, while backward is still under way."""

from __future__ import annotations

import time
import weakref
from functools import partial
from operator import attrgetter, call
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase, grad_of, is_list, wrap
from lucid.autograd.hooks.firing import fire, hook_name
from lucid.autograd.modes.state import thread
from lucid.base.arrays import astype, on
from lucid.base.capture import capture_of_this_thread
from lucid.base.device import device_of
from lucid.collectives.numbers import all_reduced, broadcasted
from lucid.collectives.reduction import ReduceOp
from lucid.errors import CaptureError, DistributedError, GraphError, HookTypeError
from lucid.nn.parallel.agreement import same
from lucid.nn.parallel.buckets import Bucket, GradBucket, divided, store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lucid.autograd.engine.passes import Pass
    from lucid.autograd.hooks.table import Entry, HookTable
    from lucid.collectives.group import ProcessGroup
    from lucid.nn.parameter import Parameter


MOST_NAMES = 3  # of a bucket's parameters in a message


class Reducer:
    """The backward pass of a `DistributedDataParallel`.

    A parameter's post-accumulate hook takes note that its gradient is there. A bucket is sent when all of its gradients
    are, at the next parameter's turn, so that all hooks of its own have seen them, and not before the buckets ahead of
    it. At the end of the outermost pass what is left is sent, with zeros for what has no gradient, and a mark for each
    parameter: which has one in any process, and which buckets have to be sent again since a gradient grew after they
    were sent. Then gradients are written, bucket after bucket, and the hooks of reduced gradients fire.

    Parameters
    ----------
    names : dict of str to Parameter
        Those that require grad.
    group : ProcessGroup
        The processes.
    mib : float
        How large a bucket becomes.
    tree : bool
        Whether sums are those of `tree_sum`, rather than of the engine.
    view : bool
        Whether gradients become parts of the buckets' memory.
    hooks : HookTable
        Of reduced gradients.
    """

    def __init__(
        self, names: dict[str, Parameter], group: ProcessGroup, mib: float, *, tree: bool, view: bool, hooks: HookTable
    ) -> None:
        self.names = list(names)
        self.parameters = list(names.values())
        self.group = group
        self.mib = mib
        self.tree = tree
        self.view = view
        self.hooks = hooks
        self.syncing = True
        self.parts = 1  # into how many gradients each process's part is cut: how many a mean is over beside processes
        self.communicate: tuple[Any, Callable[[Any, GradBucket], Any]] | None = None
        self.sums: dict[int, Any] | None = None  # by a parameter's number, in the place of its own gradient
        self._before: dict[int, Any] = {}
        self.settled = False  # whether buckets are in the order of a pass
        self.passes = 0
        self.report: dict[str, Any] = {}
        self._arrange(range(len(self.parameters) - 1, -1, -1))  # backward comes from the last to the first
        self._touched: set[int] = set()
        self._pass: weakref.ref[Pass] | None = None
        self._reset()
        self.warned = False  # of autograd.grad
        self.scale = 1.0  # of gradients, where fewer processes take part than there are
        self.closed = False
        self.handles: list[Any] = []
        if group.size() > 1 or view:
            self.attach()

    def attach(self) -> None:
        """Put its hooks on the parameters; a process that is alone needs none as long as nobody looks."""
        if self.handles:
            return
        this = weakref.ref(self)

        def noted(number: int) -> Callable[[Any], None]:
            def gradient_arrived(_: Any) -> None:
                reducer = this()
                if reducer is not None:
                    reducer.ready(number)

            return gradient_arrived

        self.handles = [
            parameter.register_post_accumulate_grad_hook(noted(number))
            for number, parameter in enumerate(self.parameters)
        ]

    def close(self) -> None:
        """Take its hooks off."""
        for handle in self.handles:
            handle.remove()
        self.closed = True

    def _arrange(self, order: Sequence[int]) -> None:
        """Make the buckets, in this order of parameters."""
        self._kinds = self._kinds_of()
        self._known = [weakref.ref(array) for array in self._arrays()]
        groups = divided(self.parameters, order, self.mib)
        self.buckets = [Bucket(index, numbers, self.parameters, wide=self.tree) for index, numbers in enumerate(groups)]
        self._bucket_of = {number: bucket for bucket in self.buckets for number in bucket.numbers}

    def _arrays(self) -> Iterator[Any]:
        return map(attrgetter("array"), self.parameters)

    def _kinds_of(self) -> list[Any]:
        """Return the dtype, shape and device of each parameter, the properties that decide the buckets."""
        return [(array.dtype, array.shape, device_of(array)) for array in self._arrays()]

    def _reset(self) -> None:
        self._pass = None
        self._next = 0
        self._seen: dict[int, None] = {}  # in the order in which they came
        self._again: set[int] = set()
        for bucket in self.buckets:
            bucket.reset()

    # ---- during a pass ----

    def ready(self, number: int) -> None:
        """Take note that a parameter's gradient is there."""
        self._touched.add(number)
        if not self.syncing:
            return
        this = thread.state.passes[0]
        if self._pass is None or self._pass() is not this:
            self._begin(this)
        self._send_full()
        bucket = self._bucket_of[number]
        if number not in self._seen:
            self._seen[number] = None
            bucket.remaining -= 1
            if not bucket.remaining:
                bucket.full = time.perf_counter()
        elif bucket.work is not None:
            self._check_memory(bucket, number)
            self._again.add(bucket.index)
        for each in self.buckets[: self._next]:
            _move_on(each.work)

    def _check_memory(self, bucket: Bucket, number: int) -> None:
        """Raise `DistributedError` if a gradient has grown in memory that is on its way."""
        grad = grad_of(self.parameters[number])
        if self.view and grad is not None and grad.array is bucket.views[bucket.numbers.index(number)]:
            raise DistributedError(
                f"DistributedDataParallel: the gradient of {self.names[number]} has grown again in the same pass, by a "
                "pass in a hook or a checkpoint that is reentrant, in memory of a bucket that is on its way: expected "
                "gradient_as_bucket_view=False, or zero_grad() before the pass"
            )

    def _begin(self, this: Pass | None) -> None:
        """Begin a pass; the one before may have ended by an exception."""
        if any(bucket.work is not None for bucket in self.buckets):
            self._reset()
            raise DistributedError(
                "DistributedDataParallel: the backward pass before this one has ended by an exception after gradients "
                "had been sent, so that processes are no longer at the same step: let the exception end the script, or "
                "make the process group and the module anew in all processes"
            )
        if not same(self._arrays(), map(call, self._known)):
            if self._kinds_of() != self._kinds:  # converted or moved since the last pass
                self._arrange([number for bucket in self.buckets for number in bucket.numbers])
            self._known = [weakref.ref(array) for array in self._arrays()]
        self._reset()
        self.started = time.perf_counter()
        if this is not None:
            self._pass = weakref.ref(this)
            this.queue(self.finish)

    def _send_full(self) -> None:
        """Send each bucket that is full, in their order."""
        while self._next < len(self.buckets) and not self.buckets[self._next].remaining:
            self._send(self.buckets[self._next])
            self._next += 1

    def _send(self, bucket: Bucket) -> None:
        # also one that this pass has left as it was: what is on it was put together before, and is the same everywhere
        bucket.fill(bucket.gradients() if self.sums is None else [self.sums.get(number) for number in bucket.numbers])
        bucket.sent = time.perf_counter()
        if self.communicate is not None:
            state, hook = self.communicate
            handle = GradBucket(bucket, bucket is self.buckets[-1])
            (bucket.work,) = fire(
                (hook,), lambda hook, _: (hook(state, handle),), (None,), "comm hook", "DistributedDataParallel"
            )
            return
        engine = self.group.engine(device_of(bucket.buffer).type, "DistributedDataParallel")
        names = _listed([self.names[number] for number in bucket.numbers])
        text = f"bucket {bucket.index} ({names}; {bucket.buffer.nbytes / 2**20:.2f} MiB)"
        if self.tree:
            bucket.work = self.group.begin(
                engine, "all_reduce", f"{text} as a tree", lambda: engine.tree_all_reduce(bucket.buffer), phases=2
            )
        else:
            bucket.work = self.group.begin(
                engine, "all_reduce", text, lambda: engine.all_reduce(bucket.buffer, ReduceOp.AVG)
            )

    # ---- at the end ----

    def reduce(self, sums: dict[int, Any], touched: set[int], before: dict[int, Any], parts: int = 1) -> None:
        """Put sums over several passes of this process together, and add their mean to the gradients from before."""
        self._begin(None)
        self.sums, self._touched, self._before, self.parts = sums, touched, before, parts
        try:
            self.finish()
        finally:
            self.sums, self._before, self.parts = None, {}, 1

    def shadow(self) -> None:
        """Take part in a pass of the others with no gradients of this process."""
        self.reduce({}, set(), {})

    def finish(self) -> None:
        """Send the remaining buckets, and write the results."""
        try:
            for bucket in self.buckets[self._next :]:
                self._send(bucket)
                self._next += 1
            used, again = self._agree()
            for bucket in self.buckets:
                if again[bucket.index]:
                    self._receive(bucket)
                    self._send(bucket)
            for bucket in self.buckets:
                began = time.perf_counter()
                self._receive(bucket)
                bucket.done = time.perf_counter()
                bucket.waited = bucket.done - began
                self._write(bucket, used)
                self._fire(bucket, used)
            self.passes += 1
            self._log()
            if not self.settled and capture_of_this_thread() is None:
                self._settle()
        finally:
            self._reset()
            self._touched.clear()

    def _agree(self) -> tuple[Any, Any]:
        """Return marks of parameters that have a gradient in any process, and of buckets that have to be sent again."""
        if capture_of_this_thread() is not None:
            self._check_captured()
            return [1] * len(self.parameters), [0] * len(self.buckets)
        marks = np.zeros(len(self.parameters) + len(self.buckets), np.uint8)
        # one that was dropped again, by a hook or by zero_grad after no_sync, counts as none
        values = self.sums
        if values is None:
            values = {number: grad_of(self.parameters[number]) for number in self._touched}
        marks[[number for number in self._touched if values.get(number) is not None]] = 1
        marks[[len(self.parameters) + index for index in self._again]] = 1
        marks = all_reduced(self.group, marks, ReduceOp.MAX, "marks of used parameters")
        return marks[: len(self.parameters)], marks[len(self.parameters) :]

    def _check_captured(self) -> None:
        """Raise `CaptureError` if results of other processes would have to be read."""
        missing = [name for number, name in enumerate(self.names) if number not in self._touched]
        if missing:
            raise CaptureError(
                f"DistributedDataParallel: {_listed(missing)} got no gradient, and a capture does "
                "not read which parameters have one in other processes: let every parameter take part in each captured "
                "step, set requires_grad=False before the module is wrapped, or do not capture"
            )
        if self._again:
            raise CaptureError(
                "DistributedDataParallel: a gradient grew after its bucket was sent, as by a backward inside of "
                "backward, and a capture does not read in which processes: do not capture the step"
            )

    def _receive(self, bucket: Bucket) -> None:
        """Wait until a bucket is back, and put the result into its buffer."""
        result: Any = bucket.work
        if hasattr(result, "wait"):
            result = result.wait()
        if is_list(result) and len(result) == 1:  # of a Work's own future
            (result,) = result
        if self.communicate is not None:
            if isinstance(result, TensorBase):
                with on(bucket.buffer):
                    bucket.buffer[...] = self._checked(result, bucket)
            elif result is not True:  # a Work, which has written the buffer
                raise HookTypeError(
                    "comm hook: expected a Future of a tensor in the form of bucket.buffer(), or the Work of a "
                    f"collective on it, got {type(result).__name__}"
                )
        elif self.tree:
            with on(bucket.buffer):
                bucket.buffer /= self.group.size() * self.parts
        if self.scale != 1.0:
            with on(bucket.buffer):
                bucket.buffer *= self.scale

    def _checked(self, result: TensorBase, bucket: Bucket) -> Any:
        array = result.array
        if array.size != bucket.buffer.size or device_of(array) != device_of(bucket.buffer):
            raise HookTypeError(
                f"comm hook: expected a tensor in the form of bucket.buffer(), {bucket.buffer.size} elements on "
                f"{device_of(bucket.buffer)}, got shape {tuple(array.shape)} on {device_of(array)}"
            )
        return array.reshape(-1)

    def _write(self, bucket: Bucket, used: Any) -> None:
        for number, parameter, view in zip(bucket.numbers, bucket.parameters, bucket.views, strict=True):
            if not used[number]:
                continue
            grad = grad_of(parameter)
            if number in self._before:
                with on(view):
                    view[...] = view + self._before[number]
            if self.view and view.dtype == parameter.array.dtype:
                if grad is None or grad.array is not view:
                    parameter.grad = wrap(view)
            elif grad is None:
                parameter.grad = wrap(astype(view, parameter.array.dtype, copy=True))
            else:
                self._write_into(grad, view, self.names[number])

    def _write_into(self, grad: TensorBase, view: Any, name: str) -> None:
        if grad.edge is not None:
            raise GraphError(
                f"DistributedDataParallel: the gradient of {name} is on the graph (create_graph=True), and the mean of "
                "processes has no derivative: take second derivatives of the module itself, `.module`"
            )
        store(grad, view, f"DistributedDataParallel: gradient of {name}")

    def _fire(self, bucket: Bucket, used: Any) -> None:
        entries = self.hooks.snapshot() if self.hooks else ()
        if not entries:
            return
        for number, parameter in zip(bucket.numbers, bucket.parameters, strict=True):
            if used[number]:
                fired = [entry for entry in entries if entry.option is None or number in entry.option]
                fire(fired, partial(_call_reduced, parameter), None, "reduced grad hook", self.names[number])

    def _settle(self) -> None:
        """Make the buckets anew in the order of the gradients of the first process."""
        self.settled = True
        order = [*self._seen, *(number for number in range(len(self.parameters)) if number not in self._seen)]
        agreed = broadcasted(self.group, np.array(order, np.int64), 0, "order of gradients")
        self._arrange([int(number) for number in agreed])

    def _log(self) -> None:
        self.report = {
            "passes": self.passes,
            "waited": sum(bucket.waited for bucket in self.buckets),
            "buckets": [
                {
                    "index": bucket.index,
                    "bytes": bucket.buffer.nbytes,
                    "parameters": [self.names[number] for number in bucket.numbers],
                    **{
                        name: None if value is None else value - self.started
                        for name, value in (("full", bucket.full), ("started", bucket.sent), ("finished", bucket.done))
                    },
                    "waited": bucket.waited,
                }
                for bucket in self.buckets
            ],
        }


def _listed(names: Sequence[str]) -> str:
    """Return the first of some names, and how many more there are."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _call_reduced(parameter: Parameter, hook: Entry, _: None) -> None:
    result = hook.func(parameter)
    if result is not None:
        raise HookTypeError(
            f"reduced grad hook {hook_name(hook)}: expected None to be returned, got {type(result).__name__}"
        )


def _move_on(work: Any) -> None:
    """Let a collective that is under way make a step, if that is up to this process."""
    ask = getattr(work, "is_completed", None) or getattr(work, "done", None)
    if ask is not None:
        ask()
