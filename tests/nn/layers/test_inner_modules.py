"""What a layer is made of is called: hooks of each inner module fire in every setting, and their results count."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.public import written_in
from tests.device import without_default_device
from tests.gradients import flat, numbers
from tests.layers import LAYERS, LOSSES, OF_TWO, input_of

MASK = nn.Transformer.generate_square_subsequent_mask


def draw(rng, *shape):
    """Return a tensor that requires grad."""
    return lucid.tensor(rng.standard_normal(shape).astype(np.float32), requires_grad=True)


def here(call):
    """Return named arguments of a call, tensors on the device of the test."""
    on = lucid.get_default_device()
    return {name: value.to(on) if isinstance(value, lucid.Tensor) else value for name, value in (call or {}).items()}


def attention(call=None, **settings):
    """Return what makes attention of four features and its arguments."""

    def make(rng):
        layer = nn.MultiheadAttention(4, 2, **settings)
        x = draw(rng, 3, 5, 4)
        keys = [draw(rng, 3, 5, settings.get(name, 4)) for name in ("kdim", "vdim")]
        return layer, (x, *keys), here(call)

    return make


def layer_of_transformer(kind, call=None, sources=1, **settings):
    """Return what makes a layer of a Transformer, and sequences."""

    def make(rng):
        args = [draw(rng, 3, 5, 4) for _ in range(sources)]
        made = {name: value() if name == "activation" else value for name, value in settings.items()}
        return kind(4, 2, dim_feedforward=6, **made), args, here(call)

    return make


def stack(kind, layer, sources):
    """Return what makes a stack of two layers and a norm, and sequences."""

    def make(rng):
        args = [draw(rng, 3, 5, 4) for _ in range(sources)]
        return kind(layer(4, 2, 6), 2, nn.LayerNorm(4)), args, {}

    return make


def unbatched(rng):
    x = draw(rng, 5, 4)
    return nn.MultiheadAttention(4, 2), (x, x, x), {}


def adaptive(rng):
    # a target in each cluster
    targets = lucid.tensor(np.array([0, 1, 2, 3, 4, 5, 6, 7]))
    return nn.AdaptiveLogSoftmaxWithLoss(4, 8, [2, 5], 1.0, head_bias=True), (draw(rng, 8, 4), targets), {}


def whole(rng):
    settings = {"num_encoder_layers": 1, "num_decoder_layers": 2, "dim_feedforward": 6}
    return nn.Transformer(4, 2, **settings), (draw(rng, 3, 5, 4), draw(rng, 2, 5, 4)), {}


ENCODER, DECODER = nn.TransformerEncoderLayer, nn.TransformerDecoderLayer
COMPOSED = {
    "attention": attention(),
    "attention, one input": lambda rng: (nn.MultiheadAttention(4, 2), [draw(rng, 3, 5, 4)] * 3, {}),
    "attention, no weights": attention({"need_weights": False}),
    "attention, each head's weights": attention({"average_attn_weights": False}),
    "attention, causal": attention({"need_weights": False, "attn_mask": MASK(3), "is_causal": True}),
    "attention, batch first": attention(batch_first=True),
    "attention, other features": attention(kdim=3, vdim=2),
    "attention, added keys": attention(add_bias_kv=True, add_zero_attn=True),
    "attention, no bias": attention(bias=False, dropout=0.5),
    "attention, no batch": unbatched,
    "encoder layer": layer_of_transformer(ENCODER),
    "encoder layer, norm first": layer_of_transformer(ENCODER, norm_first=True, batch_first=True, bias=False),
    "encoder layer, mask": layer_of_transformer(ENCODER, {"src_mask": MASK(3), "is_causal": True}),
    "encoder layer, module": layer_of_transformer(ENCODER, activation=nn.PReLU),
    "decoder layer": layer_of_transformer(DECODER, sources=2),
    "decoder layer, norm first": layer_of_transformer(DECODER, sources=2, norm_first=True, dropout=0.0),
    "encoder": stack(nn.TransformerEncoder, ENCODER, 1),
    "decoder": stack(nn.TransformerDecoder, DECODER, 2),
    "transformer": whole,
    "adaptive softmax": adaptive,
}


def from_row(name):
    """Return what makes the layer of a row of `tests.layers` and its input."""

    def make(rng):
        array = input_of(name, rng)
        x = lucid.tensor(array) if array.dtype.kind == "i" else draw(rng, *array.shape)
        return LAYERS[name](nn), (x, OF_TWO[name](x)) if name in OF_TWO else (x,), {}

    return make


def has_inner(module):
    """Return whether modules inside of a module own parameters."""
    return any(owns(each) for each in module.modules() if each is not module)


def owns(module):
    """Return whether a module has parameters of its own."""
    return next(module.parameters(recurse=False), None) is not None


CASES = {
    **COMPOSED,
    **{name: from_row(name) for name, make in LAYERS.items() if name != "nested" and has_inner(make(nn))},
}


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("name", CASES)
def test_hooks_of_inner_modules_fire(name, training, rng):
    """Each inner module with parameters fires forward and backward hooks, with gradients of its own outputs."""
    layer, args, kwargs = CASES[name](rng)
    layer.train(training)
    fired = {}
    inner = {path: module for path, module in layer.named_modules() if path and owns(module)}
    assert inner
    for path, module in inner.items():
        note = fired.setdefault(path, []).append
        module.register_forward_pre_hook(lambda module, args, note=note: note("pre"))
        module.register_forward_hook(lambda module, args, out, note=note: note("forward"))
        module.register_full_backward_pre_hook(lambda module, grads, note=note: note("backward pre"))
        module.register_full_backward_hook(lambda module, into, out, note=note: note("backward"))
    outputs = flat(layer(*args, **kwargs))
    sum(out.square().sum() for out in outputs if out.requires_grad).backward()
    assert all({*each} == {"pre", "forward", "backward pre", "backward"} for each in fired.values()), fired
    for each in fired.values():
        each.clear()
    with lucid.inference_mode():
        layer(*args, **kwargs)
    assert all({*each} == {"pre", "forward"} for each in fired.values()), fired


@pytest.mark.parametrize("name", CASES)
def test_what_an_inner_hook_returns_is_used(name, rng):
    """A forward hook of an inner module changes what the layer gives, and its gradients."""
    layer, args, kwargs = CASES[name](rng)
    layer.eval()
    before = [numbers(out) for out in flat(layer(*args, **kwargs))]
    for path, module in layer.named_modules():
        if not path or not owns(module):
            continue

        def spoil(module, args, out):
            if isinstance(out, tuple):
                return (out[0] * 0 + 7, *out[1:])
            return out * 0 + lucid.arange(out.numel(), dtype=out.dtype).reshape(out.shape) ** 2

        with module.register_forward_hook(spoil):
            after = [numbers(out) for out in flat(layer(*args, **kwargs))]
        assert any(not np.array_equal(a, b) for a, b in zip(before, after, strict=True)), path


def test_every_layer_is_looked_at():
    """A layer of lucid that is made of others stands in the table, or has no module with parameters inside."""
    seen = {type(make(np.random.default_rng(0))[0]) for make in CASES.values()}
    with warnings.catch_warnings(action="ignore"):
        seen |= {type(make(nn)) for make in LAYERS.values()}
    seen |= {getattr(nn, name) for name in LOSSES}
    containers = {nn.ModuleList, nn.ModuleDict, nn.Sequential, nn.ParameterList, nn.ParameterDict, nn.Module}
    for name in nn.__all__:
        kind = getattr(nn, name)
        if not (inspect.isclass(kind) and issubclass(kind, nn.Module)) or kind in seen | containers:
            continue
        if name.startswith("Lazy"):
            continue  # becomes the class of a row
        text = "".join(
            inspect.getsource(base.__init__)
            for base in kind.__mro__
            if written_in(base).startswith("lucid.nn.layers") and "__init__" in vars(base)
        )
        made = [other for other in nn.__all__ if inspect.isclass(getattr(nn, other)) and f"= {other}(" in text]
        assert not any(issubclass(getattr(nn, other), nn.Module) for other in made), (
            f"nn.{name} is made of {made}, whose hooks nobody tries: add a row to COMPOSED here"
        )


@pytest.mark.filterwarnings("ignore:weight_norm")
@pytest.mark.parametrize(
    "change",
    [
        lambda part: nn.utils.parametrizations.weight_norm(part),
        lambda part: nn.utils.parametrizations.spectral_norm(part),
        lambda part: nn.utils.weight_norm(part),
        lambda part: nn.utils.spectral_norm(part),
        lambda part: nn.utils.prune.l1_unstructured(part, "weight", 0.5),
    ],
    ids=["weight norm", "spectral norm", "older weight norm", "older spectral norm", "pruning"],
)
def test_inner_weights_may_be_computed(change, rng):
    """A product whose weight is computed anew in each call trains, step after step."""
    layer = nn.MultiheadAttention(4, 2)
    change(layer.out_proj)
    sgd = lucid.optim.SGD(layer.parameters(), 0.1)
    for _ in range(3):
        sgd.zero_grad()
        x = draw(rng, 3, 5, 4)
        layer(x, x, x)[0].square().sum().backward()
        before = [numbers(p).copy() for p in layer.out_proj.parameters()]
        sgd.step()
        after = [numbers(p) for p in layer.out_proj.parameters()]
        assert all(not np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_another_module_in_its_place(rng):
    """What stands in the place of the last product needs no weight: it is called."""
    layer = nn.MultiheadAttention(4, 2)
    x = draw(rng, 3, 5, 4)
    layer.out_proj = nn.Sequential(nn.Linear(4, 3, bias=False), nn.Linear(3, 4))
    out, _ = layer(x, x, x)
    first, second = layer.out_proj
    layer.out_proj = nn.Identity()
    heads, _ = layer(x, x, x)
    np.testing.assert_allclose(numbers(out), numbers(second(first(heads))), rtol=1e-5, atol=1e-6)


def test_the_input_says_where_a_layer_computes(rng):
    """No layer asks for the default device while it computes, which is wrong where it and its input lie elsewhere."""
    for make in (*COMPOSED.values(), *(from_row(name) for name in LAYERS if name != "nested")):
        layer, args, kwargs = make(rng)
        with without_default_device(), warnings.catch_warnings(action="ignore"):
            for training in (True, False):
                outputs = [out for out in flat(layer.train(training)(*args, **kwargs)) if out.requires_grad]
                if outputs:
                    sum(out.abs().sum() for out in outputs).backward(retain_graph=True)
