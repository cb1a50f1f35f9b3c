"""A stand-in for NVIDIA's package, which computes attention in float64 in the memory of the simulated device.

It computes no convolutions. It holds its caller to the order of calls, to addresses for every tensor of a graph and no
other, and to the alignment that cuDNN takes for granted.
"""

from __future__ import annotations

import ctypes
import math
import types

import ml_dtypes
import numpy as np

STAGES = (
    "tensor", "operation", "set_output", "validate", "build_operation_graph", "create_execution_plans",
    "deselect_numeric_notes", "check_support", "build_plans", "get_workspace_size", "execute",
)  # fmt: skip
DTYPES = {"HALF": np.float16, "BFLOAT16": ml_dtypes.bfloat16, "FLOAT": np.float32}
WORKSPACE = 1 << 20


class Tensor:
    """A tensor of a graph; an output once its layout is told."""

    def __init__(self, graph, **facts):
        self.graph, self.facts, self.is_output = graph, facts, False

    def tell(self, **facts):
        self.graph.reach("set_output")
        self.facts |= facts
        return self

    def set_output(self, is_output):
        self.is_output = is_output
        return self.tell()

    def set_dim(self, dim):
        return self.tell(dim=dim)

    def set_stride(self, stride):
        return self.tell(stride=stride)

    def set_data_type(self, data_type):
        return self.tell(data_type=data_type)

    def at(self, address):
        """Return what lies at an address as a NumPy view."""
        assert type(address) is int
        assert address % 16 == 0
        dtype = np.dtype(DTYPES[self.facts["data_type"]])
        dim, stride = self.facts["dim"], self.facts["stride"]
        count = 1 + sum((size - 1) * step for size, step in zip(dim, stride, strict=True))
        flat = np.frombuffer((ctypes.c_char * (count * dtype.itemsize)).from_address(address), dtype)
        return np.lib.stride_tricks.as_strided(flat, dim, [step * dtype.itemsize for step in stride], writeable=True)


class Graph:
    """A graph of one operation."""

    def __init__(self, package, handle):
        self.package, self.handle, self.stage = package, handle, 0
        self.inputs, self.outputs, self.operation, self.settings = {}, [], None, {}

    def reach(self, name):
        """Go on to a stage: none is left out, and none comes twice but those that declare tensors."""
        stage = STAGES.index(name)
        assert stage == self.stage + 1 or (stage == self.stage and name in ("tensor", "set_output", "execute"))
        self.stage = stage

    def tensor(self, **facts):
        self.reach("tensor")
        self.package.note("tensor", facts)
        return Tensor(self, **facts)

    def operate(self, operation, outputs, given):
        self.reach("operation")
        self.package.note(operation, given)
        self.operation = operation
        self.inputs = {name: value for name, value in given.items() if isinstance(value, Tensor)}
        self.settings = {name: value for name, value in given.items() if not isinstance(value, Tensor)}
        assert self.settings.pop("compute_data_type") == "FLOAT"
        self.outputs = [Tensor(self) for _ in range(outputs)]
        return self.outputs

    def sdpa(self, **given):
        return self.operate("sdpa", 2, given)

    def sdpa_backward(self, **given):
        return self.operate("sdpa_backward", 3, given)

    def conv_fprop(self, **given):
        return self.operate("conv_fprop", 1, given)[0]

    def get_workspace_size(self):
        self.reach("get_workspace_size")
        return WORKSPACE

    def __getattr__(self, name):
        def stage(*arguments):
            self.reach(name)
            self.package.note(name, arguments)
            if name == "validate":
                assert all(x.is_output and {"dim", "stride", "data_type"} <= set(x.facts) for x in self.outputs)
            if name == "check_support" and not self.package.able:
                raise self.package.cudnnGraphNotSupportedError("no engine")

        return stage

    def execute(self, addresses, workspace, *, handle):
        self.reach("execute")
        self.package.note("execute", {"operation": self.operation, "stream": handle.stream, "handle": handle})
        assert type(workspace) is int
        assert workspace
        assert set(addresses) == {*self.inputs.values(), *self.outputs}
        inputs = {name: x.at(addresses[x]).astype(np.float64) for name, x in self.inputs.items()}
        if self.operation in COMPUTED:
            for x, values in zip(self.outputs, COMPUTED[self.operation](inputs, self.settings), strict=True):
                x.at(addresses[x])[...] = values


def scores(inputs, settings):
    """Return the scaled scores; beyond the right bound of the diagonal from the top left, minus infinity."""
    s = settings["attn_scale"] * inputs["q"] @ inputs["k"].swapaxes(-1, -2)
    bound = settings.get("diagonal_band_right_bound", math.inf)
    return np.where(np.arange(s.shape[-1]) > np.arange(s.shape[-2])[:, None] + bound, -np.inf, s)


def forward(inputs, settings):
    """Return the output and the statistics: logarithms, to base e, of sums of exponentials of scores."""
    assert settings.keys() <= {"attn_scale", "diagonal_band_right_bound", "generate_stats"}
    assert settings["generate_stats"] is True
    s = scores(inputs, settings)
    top = s.max(-1, keepdims=True)
    stats = top + np.log(np.exp(s - top).sum(-1, keepdims=True))
    return np.exp(s - stats) @ inputs["v"], stats


def backward(inputs, settings):
    """Return the gradients of queries, keys and values, from the output and the statistics that are given."""
    assert settings.keys() <= {"attn_scale", "diagonal_band_right_bound", "use_deterministic_algorithm"}
    weights = np.exp(scores(inputs, settings) - inputs["stats"])
    delta = (inputs["dO"] * inputs["o"]).sum(-1, keepdims=True)
    ds = settings["attn_scale"] * weights * (inputs["dO"] @ inputs["v"].swapaxes(-1, -2) - delta)
    return ds @ inputs["k"], ds.swapaxes(-1, -2) @ inputs["q"], weights.swapaxes(-1, -2) @ inputs["dO"]


COMPUTED = {"sdpa": forward, "sdpa_backward": backward}


class Package:
    """The package itself: what is called is remembered in `calls`; with `able` False it supports nothing."""

    data_type = types.SimpleNamespace(FLOAT="FLOAT", HALF="HALF", BFLOAT16="BFLOAT16")
    heur_mode = types.SimpleNamespace(A="A", FALLBACK="FALLBACK")
    numerical_note = types.SimpleNamespace(
        NONDETERMINISTIC="n", DOWN_CONVERT_INPUTS="d", REDUCED_PRECISION_REDUCTION="r", TENSOR_CORE="t"
    )

    class cudnnGraphNotSupportedError(Exception):
        """What the package raises."""

    def __init__(self):
        self.calls, self.able = [], True

    def note(self, name, what):
        self.calls.append((name, what))

    def called(self, name):
        """Return what the calls of a name were given, in order."""
        return [what for called, what in self.calls if called == name]

    def create_handle(self):
        self.note("create_handle", None)
        return types.SimpleNamespace(stream=None)

    def set_stream(self, handle, stream):
        handle.stream = stream

    def pygraph(self, *, io_data_type, intermediate_data_type, compute_data_type, handle):
        self.note("pygraph", io_data_type)
        assert intermediate_data_type == compute_data_type == "FLOAT"
        return Graph(self, handle)
