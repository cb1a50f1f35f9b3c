"""A law: each tensor of a call may be on another device. It is moved along, or refused before the first change.

What the table of ops holds is in tests/kernels/test_bad_input.py; here are everything public by its signature, and
layers with what they keep. What trains them is in tests/optim/test_devices.py. A kernel that gets the memory
of another device is found where CuPy lets it pass, too: by its warning.
"""

from __future__ import annotations

import pytest

import lucid
from lucid import nn
from lucid.nn import functional as F
from tests.laws import test_wrong_types as public
from tests.layers import LAYERS, LOSSES, OF_TWO, TARGETS, input_of
from tests.pieces.elsewhere import check_elsewhere, drawn, each, made, t, tensors_in

pytestmark = pytest.mark.gpu
settings = public.settings


# ---- everything public ----

BY_DESIGN = {
    "lucid.cuda.graphed_step": "takes inputs of the current CUDA device, and refuses all others",
    "lucid.testing.assert_close": "says of what is elsewhere that it is not equal, as PyTorch's does",
    "lucid.nn.utils.spectral_norm": "draws vectors on the device of its weight",
    "lucid.nn.utils.parametrizations.orthogonal": "draws what completes a basis on the device of its weight",
}


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("place", [*public.NAMESPACES, "Tensor"])
def test_everything_public(place, rng):
    """Whatever takes several tensors, by its signature."""
    failures = {}
    for name in public.PUBLIC:
        if name.rpartition(".")[0] != place or not public.has_arguments(name) or name in BY_DESIGN:
            continue
        parameters = public.parameters_of(name)

        def build(_, name=name, parameters=parameters):
            public.saved.root = public.leaf()
            public.schedule.cache_clear()
            return public.arguments(name, parameters)

        if len(tensors_in(made(build, "cpu", 0))) > 1:
            try:
                check_elsewhere(build, lambda given, name=name: public.PUBLIC[name](*given[0], **given[1]), rng)
            except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - the others are tried all the same
                failures[name] = error
    public.schedule.cache_clear()
    if failures:
        raise BaseExceptionGroup(f"fail: {', '.join(failures)}", list(failures.values()))


# ---- layers and losses ----


def trained(given):
    """Return the outputs of a layer after their gradients were taken, and the gradients."""
    module, inputs = given
    outputs = tensors_in(module(*inputs))
    loss = sum((out * out).sum() for out in outputs if out.requires_grad)
    if isinstance(loss, lucid.Tensor):
        loss.backward()
    return [outputs, [tensor.grad for tensor in tensors_in(given) if tensor.grad is not None]]


def layer_rows():
    rows = {}
    for name, layer in LAYERS.items():
        for training in (True, False):

            def build(rng, name=name, layer=layer, training=training):
                x = t(input_of(name, rng))
                x = x.requires_grad_() if x.is_floating_point() else x
                return layer(nn).train(training), [x, *([OF_TWO[name](x).detach()] if name in OF_TWO else [])]

            if name != "nested" and (name in OF_TWO or [*layer(nn).parameters()] or [*layer(nn).buffers()]):
                rows[f"{name}, {'training' if training else 'evaluation'}"] = build
    for name, (kind, arguments) in LOSSES.items():

        def build(rng, name=name, kind=kind, arguments=arguments):
            given = {key: t(rng.random(v) + 0.1) if isinstance(v, tuple) else v for key, v in arguments.items()}
            x = t(rng.random((5, 3)) if kind == "probabilities" else rng.standard_normal((5, 3)), grad=True)
            return getattr(nn, name)(**given), [x, *map(t, TARGETS[kind](rng))]

        rows[name] = build
    return rows


def recurrent(kind, **arguments):
    def build(rng):
        hidden = [drawn(rng, 2 if arguments else 1, 2, 4) for _ in range(2 if kind == "LSTM" else 1)]
        module = Called(lambda m, x, *h: m(x, h if kind == "LSTM" else h[0]), getattr(nn, kind)(3, 4, **arguments))
        return module, [drawn(rng, 5, 2, 3, grad=True), *hidden]

    return build


class Called(nn.Module):
    """A module that calls a function, with what belongs to it."""

    def __init__(self, function, module=None):
        super().__init__()
        self.function, self.module = function, module

    def forward(self, *inputs):
        return self.function(*inputs) if self.module is None else self.function(self.module, *inputs)


def normed(function, *shape, training=True):
    """Return a function of an input, running statistics, weight and bias."""

    def build(rng):
        x, mean, var, weight, bias = drawn(rng, *shape, grad=True), *(drawn(rng, 2) for _ in range(4))
        return Called(lambda *given: function(*given, training)), [x, mean, var.abs(), weight.requires_grad_(), bias]

    return build


def computed(change):
    """Return a layer of which `change` lets a weight be computed; beside that it takes nothing that could be moved."""

    def build(rng):
        layer, x = change(nn.Linear(3, 3, bias=False)), rng.standard_normal((2, 3))
        return Called(lambda module: module(t(x).to(module.weight.device)), layer), []

    return build


def packed(kind):
    def build(rng):
        def function(module, x, *hidden):
            out, hidden = module(nn.utils.rnn.pack_padded_sequence(x, [5, 3]), *hidden)
            return nn.utils.rnn.pad_packed_sequence(out)[0], hidden

        module, inputs = recurrent(kind)(rng)
        return Called(function, module), inputs

    return build


par = nn.utils.parametrizations
MORE = {
    **{kind: recurrent(kind) for kind in ("RNN", "GRU", "LSTM")},
    "LSTM, both directions": recurrent("LSTM", bidirectional=True),
    **{f"{kind}, packed": packed(kind) for kind in ("RNN", "GRU", "LSTM")},
    "GRUCell": lambda rng: (nn.GRUCell(3, 4), [drawn(rng, 2, 3, grad=True), drawn(rng, 2, 4)]),
    "LSTMCell": lambda rng: (
        Called(lambda m, x, h, c: m(x, (h, c)), nn.LSTMCell(3, 4)),
        [drawn(rng, 2, 3, grad=True), drawn(rng, 2, 4), drawn(rng, 2, 4)],
    ),
    "MultiheadAttention": lambda rng: (
        Called(lambda m, q, k, v, mask, padding: m(q, k, v, padding > 9, attn_mask=mask), nn.MultiheadAttention(4, 2)),
        [*(drawn(rng, 3, 2, 4, grad=True) for _ in range(3)), drawn(rng, 3, 3), drawn(rng, 2, 3)],
    ),
    "Bilinear": lambda rng: (nn.Bilinear(2, 3, 4), [drawn(rng, 5, 2, grad=True), drawn(rng, 5, 3)]),
    "AdaptiveLogSoftmaxWithLoss": lambda rng: (
        Called(lambda m, x, y: m(x, y).loss, nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5], 2.0)),
        [drawn(rng, 6, 8, grad=True), t([0, 1, 3, 4, 6, 9])],
    ),
    "EmbeddingBag with offsets": lambda rng: (
        nn.EmbeddingBag(7, 3, mode="sum", max_norm=0.5),
        [t([1, 2, 3, 4]), t([0, 2]), drawn(rng, 4)],
    ),
    "embedding of a table": lambda rng: (
        Called(lambda i, w: F.embedding(i, w, max_norm=0.1)),
        [t([0, 1]), drawn(rng, 3, 2)],
    ),
    **{
        f"{f.__name__}, {'its own' if own else 'given'} statistics": normed(f, *shape, training=own)
        for f, shape in ((F.batch_norm, (5, 2)), (F.instance_norm, (5, 2, 3)))
        for own in (True, False)
    },
    "batch_norm, only a mean": lambda rng: (
        Called(lambda x, mean: F.batch_norm(x, mean, None, training=True)),
        [drawn(rng, 5, 2), drawn(rng, 2)],
    ),
    "group_norm": lambda rng: (
        Called(lambda x, w, b: F.group_norm(x, 2, w, b)),
        [drawn(rng, 2, 4, 3, grad=True), drawn(rng, 4), drawn(rng, 4)],
    ),
    **{f"{norm.__name__}": computed(norm) for norm in (par.weight_norm, par.spectral_norm, par.orthogonal)},
    "older spectral_norm": computed(nn.utils.spectral_norm),
    "pruned twice": computed(
        lambda layer: nn.utils.prune.l1_unstructured(
            nn.utils.prune.random_unstructured(layer, "weight", 0.3), "weight", 0.5
        )
    ),
    "normal": lambda rng: (Called(lucid.normal), [drawn(rng, 5), drawn(rng, 5).abs()]),
    "bernoulli_": lambda rng: (Called(lambda x, p: x.bernoulli_(p)), [drawn(rng, 5), t(rng.random(5))]),
}


@each({**layer_rows(), **MORE})
def test_layers(row, rng):
    """Each input, parameter, running statistic, mask and hidden state, forward and backward."""
    check_elsewhere(row, trained, rng)
