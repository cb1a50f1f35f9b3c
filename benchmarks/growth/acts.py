"""What a program does n times, or with n of something, in the names of both libraries.

`python -m benchmarks.growth` measures by which power of n the time grows, and `tests/laws/test_growth.py` counts what
Python does: the work of each should grow as n does.
"""

from __future__ import annotations

import copy
import io
import pickle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.hooks import ignore

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.measure import Peer


class Act(NamedTuple):
    """A call, and what makes the argument of each; the argument is made before anything is timed or counted."""

    call: Callable[[Any], object]
    prepare: Callable[[], Any]


class Family(NamedTuple):
    """Acts of any size, and the least of interest: below it other ways may be gone."""

    make: Callable[[Peer, int], Act]
    least: int


FAMILIES: dict[str, Family] = {}


def act(name: str, least: int = 100) -> Callable[[Callable[[Peer, int], Act]], Callable[[Peer, int], Act]]:
    """Return what puts a function that makes an act of size n among `FAMILIES`."""

    def put(make: Callable[[Peer, int], Act]) -> Callable[[Peer, int], Act]:
        FAMILIES[name] = Family(make, least)
        return make

    return put


def leaf(peer: Peer, size: int = 1) -> Any:
    return peer.tensor(np.ones(size, np.float32), requires_grad=True)


def leaves(peer: Peer, n: int) -> list[Any]:
    return [leaf(peer) for _ in range(n)]


def parameters(peer: Peer, n: int) -> list[Any]:
    """Return n parameters with gradients."""
    made = [peer.lib.nn.Parameter(peer.tensor(np.ones(2, np.float32))) for _ in range(n)]
    for parameter in made:
        parameter.grad = peer.tensor(np.ones(2, np.float32))
    return made


def model(peer: Peer, n: int) -> Any:
    """Return n layers, one after another."""
    return peer.lib.nn.Sequential(*[peer.lib.nn.Linear(1, 1) for _ in range(n)])


def nested(peer: Peer, n: int) -> Any:
    """Return a layer in n modules, each in the next."""
    module = peer.lib.nn.Linear(1, 1)
    for _ in range(n):
        module = peer.lib.nn.Sequential(module)
    return module


def chain(x: Any, n: int) -> Any:
    for _ in range(n):
        x = x + 1.0
    return x


# ---- the graph ----


@act("record a chain of adds")
def record_a_chain(peer: Peer, n: int) -> Act:
    return Act(lambda x: chain(x, n), lambda: leaf(peer))


@act("backward of a chain")
def backward_of_a_chain(peer: Peer, n: int) -> Act:
    return Act(lambda y: y.backward(), lambda: chain(leaf(peer), n))


def used(x: Any, n: int) -> Any:
    total = x
    for _ in range(n):
        total = total + x
    return total


@act("fan-in: one tensor used n times, and backward")
def fan_in(peer: Peer, n: int) -> Act:
    return Act(lambda x: used(x, n).backward(), lambda: leaf(peer))


@act("grad of n inputs")
def grad_of_inputs(peer: Peer, n: int) -> Act:
    def prepare() -> Any:
        inputs = leaves(peer, n)
        return peer.lib.cat(inputs).sum(), inputs

    return Act(lambda pair: peer.lib.autograd.grad(*pair), prepare)


@act("in-place adds")
def in_place_adds(peer: Peer, n: int) -> Act:
    def call(x: Any) -> Any:
        y = x * 1.0
        for _ in range(n):
            y.add_(1.0)
        return y.backward()

    return Act(call, lambda: leaf(peer))


@act("writes through n views, and backward")
def views(peer: Peer, n: int) -> Act:
    def call(x: Any) -> Any:
        y = x * 1.0
        for k in range(n):
            y[k].mul_(2.0)
        return y.sum().backward()

    return Act(call, lambda: leaf(peer, n))


@act("retain_grad along a chain")
def retained(peer: Peer, n: int) -> Act:
    def call(x: Any) -> Any:
        for _ in range(n):
            x = x + 1.0
            x.retain_grad()
        return x.backward()

    return Act(call, lambda: leaf(peer))


# ---- tensors ----


@act("cat of n tensors, and backward")
def cat(peer: Peer, n: int) -> Act:
    return Act(lambda parts: peer.lib.cat(parts).sum().backward(), lambda: leaves(peer, n))


@act("stack of n tensors, and backward")
def stack(peer: Peer, n: int) -> Act:
    return Act(lambda parts: peer.lib.stack(parts).sum().backward(), lambda: leaves(peer, n))


@act("unbind into n, and backward")
def unbind(peer: Peer, n: int) -> Act:
    return Act(lambda x: peer.lib.stack(x.unbind()).sum().backward(), lambda: leaf(peer, n))


@act("embedding of n indices, and backward")
def embedding(peer: Peer, n: int) -> Act:
    index = peer.tensor(np.arange(n) % 7)
    look_up = peer.lib.nn.functional.embedding
    table = np.ones((7, 3), np.float32)
    return Act(lambda w: look_up(index, w).sum().backward(), lambda: peer.tensor(table, requires_grad=True))


@act("tensor of a list of n numbers")
def from_a_list(peer: Peer, n: int) -> Act:
    return Act(peer.lib.tensor, lambda: [0.5] * n)


@act("tensor of a list of n tensors")
def from_tensors(peer: Peer, n: int) -> Act:
    return Act(peer.lib.tensor, lambda: [peer.lib.tensor(0.5)] * n)


@act("tolist of n elements")
def to_a_list(peer: Peer, n: int) -> Act:
    return Act(peer.lib.Tensor.tolist, lambda: leaf(peer, n))


@act("repr of n elements")
def shown(peer: Peer, n: int) -> Act:
    return Act(repr, lambda: peer.tensor(np.arange(n, dtype=np.float32)))


# ---- hooks ----


@act("register and remove n hooks of a tensor")
def tensor_hooks(peer: Peer, n: int) -> Act:
    def call(x: Any) -> None:
        for handle in [x.register_hook(ignore) for _ in range(n)]:
            handle.remove()

    return Act(call, lambda: leaf(peer))


@act("backward through n hooks of a tensor")
def tensor_hooks_called(peer: Peer, n: int) -> Act:
    def prepare() -> Any:
        x = leaf(peer)
        for _ in range(n):
            x.register_hook(ignore)
        return x * 1.0

    return Act(lambda y: y.backward(), prepare)


@act("register and remove n hooks of a module")
def module_hooks(peer: Peer, n: int) -> Act:
    def call(module: Any) -> None:
        for handle in [module.register_forward_hook(ignore) for _ in range(n)]:
            handle.remove()

    return Act(call, peer.lib.nn.Identity)


@act("call of a module with n hooks")
def module_hooks_called(peer: Peer, n: int) -> Act:
    x = leaf(peer)

    def prepare() -> Any:
        module = peer.lib.nn.Identity()
        for _ in range(n):
            module.register_forward_hook(ignore)
        return module

    return Act(lambda module: module(x), prepare)


@act("backward through n full backward hooks of a module")
def full_hooks_called(peer: Peer, n: int) -> Act:
    def prepare() -> Any:
        module = peer.lib.nn.Linear(1, 1)
        for _ in range(n):
            module.register_full_backward_hook(ignore)
        return module(leaf(peer)).sum()

    return Act(lambda y: y.backward(), prepare)


# ---- modules ----


@act("make a Sequential of n layers")
def make_a_sequential(peer: Peer, n: int) -> Act:
    return Act(lambda layers: peer.lib.nn.Sequential(*layers), lambda: [peer.lib.nn.Identity() for _ in range(n)])


@act("call a Sequential of n layers")
def call_a_sequential(peer: Peer, n: int) -> Act:
    x = leaf(peer)
    return Act(lambda module: module(x), lambda: model(peer, n))


@act("index a Sequential at n positions")
def index_a_sequential(peer: Peer, n: int) -> Act:
    return Act(lambda module: [module[k] for k in range(n)], lambda: model(peer, n))


@act("append n modules to a ModuleList, and index them")
def module_list(peer: Peer, n: int) -> Act:
    def call(layers: Any) -> Any:
        modules = peer.lib.nn.ModuleList()
        for layer in layers:
            modules.append(layer)
        return [modules[k] for k in range(n)]

    return Act(call, lambda: [peer.lib.nn.Identity() for _ in range(n)])


@act("append n parameters to a ParameterList, and index them")
def parameter_list(peer: Peer, n: int) -> Act:
    def call(values: Any) -> Any:
        made = peer.lib.nn.ParameterList()
        for value in values:
            made.append(value)
        return [made[k] for k in range(n)]

    return Act(call, lambda: parameters(peer, n))


@act("named_parameters of n layers")
def named_parameters(peer: Peer, n: int) -> Act:
    return Act(lambda module: list(module.named_parameters()), lambda: model(peer, n))


# PyTorch calls itself for each
@act("named_parameters of n modules in each other", least=20)
def named_in_depth(peer: Peer, n: int) -> Act:
    return Act(lambda module: list(module.named_parameters()), lambda: nested(peer, n))


@act("state_dict of n layers")
def state_dict(peer: Peer, n: int) -> Act:
    return Act(lambda module: module.state_dict(), lambda: model(peer, n))


@act("load_state_dict of n layers")
def load_state_dict(peer: Peer, n: int) -> Act:
    state = model(peer, n).state_dict()
    return Act(lambda module: module.load_state_dict(state), lambda: model(peer, n))


@act("deepcopy of n layers")
def deep_copy(peer: Peer, n: int) -> Act:
    return Act(copy.deepcopy, lambda: model(peer, n))


@act("pickle n layers, and back")
def pickled(peer: Peer, n: int) -> Act:
    return Act(lambda module: pickle.loads(pickle.dumps(module)), lambda: model(peer, n))


# a short header is parsed at once, a long one piece by piece
@act("save n tensors, and load them", least=400)
def saved(peer: Peer, n: int) -> Act:
    def call(state: Any) -> Any:
        file = io.BytesIO()
        peer.lib.save(state, file)
        file.seek(0)
        return peer.lib.load(file)

    return Act(call, lambda: {str(k): peer.tensor(np.ones(2, np.float32)) for k in range(n)})


@act("train, eval and requires_grad_ of n layers")
def modes(peer: Peer, n: int) -> Act:
    return Act(lambda module: module.train().eval().requires_grad_(False), lambda: model(peer, n))


@act("repr of n layers")
def shown_layers(peer: Peer, n: int) -> Act:
    return Act(repr, lambda: model(peer, n))


# ---- training ----


def stepped(peer: Peer, n: int, name: str, **settings: float) -> Act:
    def prepare() -> Any:
        optimizer = getattr(peer.lib.optim, name)(parameters(peer, n), lr=0.1, **settings)
        optimizer.step()
        return optimizer

    return Act(lambda optimizer: optimizer.step(), prepare)


@act("step of SGD over n parameters")
def step_of_sgd(peer: Peer, n: int) -> Act:
    return stepped(peer, n, "SGD", momentum=0.9)


@act("step of AdamW over n parameters")
def step_of_adamw(peer: Peer, n: int) -> Act:
    return stepped(peer, n, "AdamW")


@act("state dict of an optimizer of n parameters, and back")
def optimizer_state(peer: Peer, n: int) -> Act:
    def prepare() -> Any:
        optimizer = peer.lib.optim.SGD(parameters(peer, n), lr=0.1, momentum=0.9)
        optimizer.step()
        return optimizer

    return Act(lambda optimizer: optimizer.load_state_dict(optimizer.state_dict()), prepare)


@act("clip_grad_norm_ of n parameters")
def clip_grad_norm(peer: Peer, n: int) -> Act:
    return Act(lambda values: peer.lib.nn.utils.clip_grad_norm_(values, 1.0), lambda: parameters(peer, n))


@act("zero_grad of n layers")
def zero_grad(peer: Peer, n: int) -> Act:
    def prepare() -> Any:
        module = model(peer, n)
        for parameter in module.parameters():
            parameter.grad = peer.lib.zeros_like(parameter)
        return module

    return Act(lambda module: module.zero_grad(), prepare)


@act("DataLoader over n samples")
def data_loader(peer: Peer, n: int) -> Act:
    data = peer.lib.utils.data

    def prepare() -> Any:
        samples = data.TensorDataset(peer.tensor(np.ones((n, 2), np.float32)))
        return data.DataLoader(samples, batch_size=4, shuffle=True)

    return Act(list, prepare)


@act("parameters_to_vector of n, and back")
def vector(peer: Peer, n: int) -> Act:
    def call(values: Any) -> None:
        utils = peer.lib.nn.utils
        utils.vector_to_parameters(utils.parameters_to_vector(values), values)

    return Act(call, lambda: parameters(peer, n))


@act("pad_sequence of n sequences")
def pad_sequence(peer: Peer, n: int) -> Act:
    return Act(peer.lib.nn.utils.rnn.pad_sequence, lambda: leaves(peer, n))
