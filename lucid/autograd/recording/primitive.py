"""Primitives: an op's forward on raw arrays, its derivative rules, and how a call of it is recorded."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import INFERENCE, TensorBase, describe, is_tuple, shape_error, version_of, wrap, wrap_on_graph
from lucid.autograd.hooks.functions import seen
from lucid.autograd.modes.casting import POLICIES, cast_operands
from lucid.autograd.modes.reading import note_leaves, watching
from lucid.autograd.modes.state import PLAIN, intercepted, thread, unusual
from lucid.autograd.recording.attach import attach, created
from lucid.autograd.recording.device_path import caller
from lucid.autograd.recording.namespace import CPU, GRAPH, PRIMITIVES
from lucid.autograd.recording.plan import MOST_OPERANDS, MOST_PLANS, DerivativePlan, Rule, kernel_or_reference
from lucid.autograd.recording.saved import PackedTuple, pack_saved
from lucid.autograd.recording.saved_attributes import expose, node_class
from lucid.autograd.recording.short_path import binary, unary
from lucid.autograd.recording.views import View, live_edge
from lucid.base import gpu
from lucid.base.functions import cupy_functions, with_weak_numbers
from lucid.cpu.halves import of_halves
from lucid.cuda.launch.elementwise import Elementwise
from lucid.cuda.launch.plans import can_be_noted, off_plan, with_plan
from lucid.errors import DeviceError, LucidError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lucid.autograd.base import Edge
    from lucid.autograd.recording.primitive_node import PrimitiveNode
    from lucid.cuda.launch.plans import LaunchPlan, LaunchPlans


class Primitive:
    """A differentiable function of arrays: called with tensors it records, its raw form works on arrays.

    Parameters
    ----------
    reference : callable
        ``reference(xp, *arrays, **settings)`` with the array module first; arrays are its positional parameters (the
        last may be ``*arrays``), settings its keyword-only ones. Runs on NumPy and CuPy alike.
    view : bool
        Whether the outputs share the first operand's memory.
    outputs : tuple of str
        Names of the outputs, for rules that need them; empty if their number varies.
    differentiable : tuple of int
        The outputs that carry a gradient; the others are integers.
    cpu : callable, optional
        A faster ``cpu(*arrays, **settings)`` for NumPy, such as the ufunc itself.
    holomorphic : bool
        Whether the rules, written for real arrays, hold for complex ones between two conjugations; False for rules
        that handle complex gradients themselves.
    name : str, optional
        That of the reference, if not given.
    inputs, settings : tuple of str, optional
        Names of the reference's parameters, where its code does not say them.
    saved_as : mapping of str to str, optional
        PyTorch's names of what rules name: ``b`` as ``exponent`` is ``grad_fn._saved_exponent``.
    """

    def __init__(
        self,
        reference: Callable[..., Any],
        *,
        view: bool = False,
        outputs: tuple[str, ...] = ("out",),
        differentiable: tuple[int, ...] = (0,),
        cpu: Callable[..., Any] | None = None,
        holomorphic: bool = True,
        name: str = "",
        inputs: tuple[str, ...] = (),
        settings: tuple[str, ...] = (),
        saved_as: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name or reference.__name__.strip("_")
        self.reference = reference
        self.view = view
        self.outputs = outputs
        self.differentiable = differentiable
        self.holomorphic = holomorphic
        self.saved_as = saved_as or {}
        # read off the code: `inspect.signature` for each primitive and rule is a tenth of the time of `import lucid`
        code = reference.__code__
        ends = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
        self.variadic = bool(code.co_flags & inspect.CO_VARARGS) and not inputs
        self.inputs = inputs or code.co_varnames[1 : ends[0]] + code.co_varnames[ends[1] : ends[1] + self.variadic]
        self.settings = settings or code.co_varnames[ends[0] : ends[1]]
        self.rules: list[Rule] = []
        self.sealed = False
        self.plans: dict[tuple[tuple[bool, ...], bool, bool, bool], DerivativePlan] = {}
        self.cpu: Callable[..., Any] = cpu or functools.partial(reference, np)
        self.of_halves = of_halves(self.cpu)
        self.kernel: Callable[..., Any] | None = None
        self.launch_plans: LaunchPlans = {}
        self.policy = POLICIES.get(self.name)
        if PRIMITIVES.setdefault(self.name, self) is not self:
            raise ValueError(f"a primitive named {self.name} exists already")
        setattr(CPU, self.name, self.cpu)
        self.call = self.general = self
        self.__doc__ = reference.__doc__

    @property
    def call(self) -> Callable[..., Any]:
        """The caller for tensors: the primitive itself, or the shorter one of an op family."""
        return getattr(GRAPH, self.name)

    @call.setter
    def call(self, function: Callable[..., Any]) -> None:
        setattr(GRAPH, self.name, function)

    def shorten(self, general: Callable[..., Any]) -> None:
        """Let calls take the short path, with `general` for the operands that it does not take."""
        self.general = general
        self.call = (unary if len(self.inputs) == 1 else binary)(self, general)

    def vjp(self, *names: Any, cuda: Callable[..., Any] | None = None, planned: bool = False) -> Any:
        """Attach a derivative rule: ``@op.vjp`` for all inputs, ``@op.vjp("a")`` for those that are named.

        Parameters
        ----------
        *names : str
            The inputs whose gradients the rule gives. It returns a tuple if there are several, or if the input is
            variadic.
        cuda : callable, optional
            ``cuda(grad, *arguments)``: one kernel that does on CUDA arrays what the rule does, or returns
            NotImplemented.
        planned : bool
            Whether the rule does nothing to CUDA arrays but what a launch plan notes, and may be done by one.

        Raises
        ------
        TypeError
            If the rules have been read already: the new one would never run.
        """
        if len(names) == 1 and callable(names[0]):
            return self.vjp(*self.inputs)(names[0])

        def attach(function: Callable[..., Any]) -> Callable[..., Any]:
            self.attach(Rule(function, names or self.inputs, cuda, planned=planned))
            return function

        return attach

    def attach(self, rule: Rule) -> None:
        """Attach a rule that is made already.

        Raises
        ------
        TypeError
            If the rules have been read already.
        """
        if self.sealed:
            raise TypeError(
                f"{self.name}: the rule {rule.function.__name__} comes after the op's rules were read, and would never "
                "run: attach all rules before the op gets its caller and before its first call"
            )
        self.rules.append(rule)
        if "node_type" in self.__dict__:
            expose(self, self.node_type, rule)

    def cuda(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Attach the kernel: ``function(*arrays, **settings)`` on CUDA arrays, or NotImplemented."""
        if "gpu" in self.__dict__:
            raise TypeError(f"{self.name}: a kernel comes after the op's first call on a device, and would never run")
        self.kernel = function
        return function

    @functools.cached_property
    def node_type(self) -> Any:
        """The class of its nodes, made for the first: most ops are in no program, and a class takes 10 us."""
        return node_class(self)

    @functools.cached_property
    def gpu(self) -> Callable[..., Any]:
        """The raw form on CUDA arrays: the kernel if it takes them, the reference on CuPy otherwise."""
        general = functools.partial(self.reference, cupy_functions())
        if not self.view:
            general = off_plan(with_weak_numbers(general))
        kernel = self.kernel
        if kernel is None:
            return general
        straight = kernel.straight() if isinstance(kernel, Elementwise) else None
        if straight is not None:

            def short(*arrays: Any) -> Any:
                try:
                    out = straight(*arrays)
                except TypeError:
                    out = kernel(*arrays)
                return general(*arrays) if out is NotImplemented else out

            return short
        return kernel_or_reference(kernel, general)

    @functools.cached_property
    def gpu_with_plan(self) -> Callable[[Sequence[Any], Mapping[str, Any]], tuple[Any, LaunchPlan | None]]:
        """The function of arrays and settings that returns the result of `gpu` and the launch plan that made it."""
        run = self.gpu
        if self.kernel is not None and can_be_noted(self.kernel):
            return with_plan(run, self.launch_plans)
        return lambda arrays, settings: (run(*arrays, **settings), None)

    @functools.cached_property
    def on_device(self) -> Callable[[Sequence[Any], dict[str, Any]], Any] | None:
        """The short path of calls with CUDA tensors, if there is one."""
        return caller(self)

    def positions(self, name: str, count: int) -> tuple[int, ...]:
        """Return the positions of the operands that belong to the input `name`, of `count` operands."""
        index = self.inputs.index(name)
        return tuple(range(index, count)) if self.variadic and index == len(self.inputs) - 1 else (index,)

    def source(self, argument: str, count: int) -> tuple[str, Any]:
        """Return the source of the rule's parameter `argument`."""
        if argument in self.inputs:
            return "input", self.positions(argument, count)
        if argument in self.outputs:
            return "out", self.outputs.index(argument)
        if argument in self.settings:
            return "setting", argument
        stem, _, what = argument.rpartition("_")
        if stem in self.inputs and what in {"shape", "dtype"}:
            spots = self.positions(stem, count)
            return (what + "s", spots) if self.variadic else (what, spots[0])
        raise TypeError(f"{self.name}: a rule asks for {argument!r}, which is no input, output or setting")

    def seal(self) -> list[Rule]:
        """Return the rules, and refuse further ones from now on."""
        self.sealed = True
        return self.rules

    def plan(
        self, needed: tuple[bool, ...], *, conjugate: bool = False, cuda: bool = False, halves: bool = False
    ) -> DerivativePlan:
        """Return the plan for one pattern of operands that require grad, of arrays of one kind on one device."""
        plan = self.plans.get((needed, conjugate, cuda, halves))
        if plan is None:
            self.seal()
            plan = DerivativePlan(self, needed, conjugate=conjugate, cuda=cuda, halves=halves)
            if len(needed) <= MOST_OPERANDS:
                if len(self.plans) >= MOST_PLANS:
                    self.plans.clear()
                self.plans[needed, conjugate, cuda, halves] = plan
        return plan

    def raw(self, arrays: Sequence[Any], settings: dict[str, Any]) -> Any:
        """Return the forward of raw arrays on their device, without NumPy's warnings.

        Raises
        ------
        ShapeError
            If the arrays do not fit each other, naming the op and the shapes.
        """
        first = next((a for a in arrays if hasattr(a, "shape")), None)
        try:
            if isinstance(first, np.ndarray) or first is None:
                return thread.state.quiet(self.cpu, *arrays, **settings)
            return gpu.run_on(first.data.device_id, self.gpu_with_plan, arrays, settings)[0]
        except LucidError:
            raise
        except (ValueError, MemoryError) as error:
            raise shape_error(self.name, arrays, error, elementwise=self.call is not self) from error

    def __call__(self, *operands: Any, **settings: Any) -> Any:
        """Return the output for `operands`, recorded if one of them requires grad."""
        if intercepted:
            if thread.state.function_hooks:
                return seen(self.name, self, operands, settings)
            if self.policy is not None:
                operands = cast_operands(self.name, self.policy, operands)
        arrays: list[Any] = []
        edges: list[Edge | None] = []
        kind: Any = None
        first: Any = None
        needs_grad = False
        for operand in operands:
            if isinstance(operand, TensorBase):
                array = operand.array
                if kind is None:
                    first = array
                    kind = array.__class__
                    if kind is not np.ndarray and (on_device := self.on_device) is not None:
                        out = on_device(operands, settings)
                        if out is not NotImplemented:
                            return out
                elif type(array) is not kind or (
                    kind is not np.ndarray and array.data.device_id != first.data.device_id
                ):
                    raise self.device_error(operands)
                edge = operand.edge if operand.origin is None or not self.rules else live_edge(operand)
                if edge is not None:
                    needs_grad = True
                arrays.append(array)
                edges.append(edge)
            else:
                arrays.append(operand)
                edges.append(None)
        state, launched = thread.state, None
        if kind is None:
            out = self.raw(arrays, settings)
        else:
            try:
                if kind is np.ndarray:
                    out = state.quiet(self.cpu if first.itemsize != 2 else self.of_halves, *arrays, **settings)
                else:
                    out, launched = gpu.run_on(first.data.device_id, self.gpu_with_plan, arrays, settings)
            except LucidError:
                raise
            except (ValueError, MemoryError) as error:
                raise shape_error(self.name, arrays, error, elementwise=self.call is not self) from error
        if watching and needs_grad:
            note_leaves(edges)
        recorded = needs_grad and self.rules and (state.recording if unusual else PLAIN)
        if is_tuple(out):
            return self.finish_several(operands, arrays, edges if recorded else None, out, settings, launched)
        if self.view:
            tensor = wrap_on_graph(out, None, version_of(operands[0]))
            if tensor.version is INFERENCE:
                return tensor
            tensor.origin = View(operands[0], self, settings, 0)
        elif recorded:
            tensor = wrap_on_graph(out, None, [0])
        else:
            return wrap(out)
        out = tensor.array
        if recorded and out.dtype.kind in "fcV":
            node = self.record(operands, arrays, edges, (out,), (tensor,), settings, launched)
            tensor.edge = (node, 0)
        return tensor

    def finish_several(
        self,
        operands: Sequence[Any],
        arrays: list[Any],
        edges: list[Edge | None] | None,
        outs: tuple[Any, ...],
        settings: dict[str, Any],
        launched: LaunchPlan | None,
    ) -> tuple[Any, ...]:
        """Return the outputs of a primitive of several outputs as tensors, recorded if `edges` is given."""
        if self.view:
            tensors = [wrap_on_graph(out, None, version_of(operands[0])) for out in outs]
        elif edges is not None:
            tensors = [wrap_on_graph(out, None, [0]) for out in outs]
        else:
            return tuple([wrap(out) for out in outs])
        if self.view and version_of(operands[0]) is INFERENCE:
            return tuple(tensors)
        outs = tuple([tensor.array for tensor in tensors])
        if edges is not None:
            node = self.record(operands, arrays, edges, outs, tensors, settings, launched)
            for index, tensor in enumerate(tensors):
                if tensor.array.dtype.kind in "fcV" and (not self.outputs or index in self.differentiable):
                    tensor.edge = (node, index)
        if self.view:
            for index, tensor in enumerate(tensors):
                tensor.origin = View(operands[0], self, settings, index, several=True)
        return tuple(tensors)

    def record(
        self,
        operands: Sequence[Any],
        arrays: list[Any],
        edges: list[Edge | None],
        outs: tuple[Any, ...],
        tensors: Sequence[Any],
        settings: dict[str, Any],
        launched: LaunchPlan | None = None,
    ) -> PrimitiveNode:
        """Return the node of one call; `launched` is the launch plan that made its arrays, if one did."""
        needed = tuple([edge is not None for edge in edges])
        conjugate = self.holomorphic and outs[0].dtype.kind == "c"
        cuda = type(outs[0]) is not np.ndarray
        plan = self.plan(needed, conjugate=conjugate, cuda=cuda, halves=not cuda and outs[0].itemsize == 2)
        values = plan.values_of(arrays, settings)
        if launched is not None and len(needed) <= MOST_OPERANDS:
            if len(launched.recorded) >= MOST_PLANS:
                launched.recorded.clear()
            launched.recorded[sum([1 << position for position, need in enumerate(needed) if need])] = plan, values
        node = plan.node_type()
        attach(node, tuple(edges), outs[0], whole=False)
        node.outputs = len(outs)
        saved: list[Any] = []
        versions: list[Any] = []
        for position in plan.saves:
            operand = operands[position]
            saved.append(arrays[position])
            if isinstance(operand, TensorBase):
                counter = version_of(operand)
                versions += (counter, counter[0])
            elif hasattr(operand, "shape"):
                versions += ([0], 0)  # every saved array has its pair
        for output in plan.saves_outs:
            saved.append(tensors[output].array)
            counter = version_of(tensors[output])
            versions += (counter, counter[0])
        node.kept = plan, tuple(saved), tuple(versions), values
        if unusual and saved and thread.state.saved_hooks:
            packed = map(operands.__getitem__, plan.saves)
            owners: list[Any] = [x if isinstance(x, TensorBase) else None for x in packed]
            owners += [tensors[output] for output in plan.saves_outs]
            # hooks see an output in its position in the graph, and hold nothing that keeps the node
            outputs = range(len(plan.saves), len(saved))
            for k in outputs:
                owners[k] = wrap_on_graph(saved[k], node.edge_of_saved(k), version_of(owners[k]))
            node.kept = plan, PackedTuple(pack_saved(tuple(saved), tuple(owners))), (), values
            for k in outputs:
                owners[k].edge = None
        return created(node) if unusual else node

    def device_error(self, operands: Sequence[Any]) -> DeviceError:
        """Return the error of operands on several devices."""
        got = "; ".join(f"operand {i} has {describe(o)}" for i, o in enumerate(operands) if isinstance(o, TensorBase))
        return DeviceError(
            f"{self.name}: expected all tensors on the same device, got {got}; move one with .to(device)"
        )

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"


def primitive(
    reference: Callable[..., Any] | None = None,
    *,
    view: bool = False,
    outputs: tuple[str, ...] = ("out",),
    differentiable: tuple[int, ...] = (0,),
    cpu: Callable[..., Any] | None = None,
    holomorphic: bool = True,
    saved_as: Mapping[str, str] | None = None,
) -> Any:
    """Declare a primitive from its reference forward; see :class:`Primitive`."""
    if reference is not None:
        return Primitive(reference)
    return functools.partial(
        Primitive,
        view=view,
        outputs=outputs,
        differentiable=differentiable,
        cpu=cpu,
        holomorphic=holomorphic,
        saved_as=saved_as,
    )
