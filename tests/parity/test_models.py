"""The models of `examples/models` are PyTorch's once their import says so: state dicts, gradients and losses agree."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import lucid
from tests.device import DEVICE

MODELS = Path(__file__).parents[2] / "examples" / "models"
STEPS = 100 if DEVICE == "cpu" else 20  # of which the first few show a wrong kernel


def module_of(library, stem):
    """Return a model's source as a module that imports `library`, with nothing else in it changed."""
    source = (MODELS / f"{stem}.py").read_text(encoding="utf-8").replace("lucid", library)
    name = f"{library}_{stem}"
    module = sys.modules[name] = ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module


def gpt(module):
    """Return a small GPT without dropout."""
    return module.GPT(module.GPTConfig(vocabulary=50, context=16, layers=2, heads=2, width=32, dropout=0.0))


def tokens(rng):
    """Return two texts of eight tokens and what follows each token."""
    text = rng.integers(0, 50, (2, 9))
    return text[:, :-1], text[:, 1:]


def translator(module):
    """Return a small Transformer without dropout."""
    return module.Translator(
        module.TransformerConfig(vocabulary=50, context=16, layers=1, heads=2, width=16, inner=32, dropout=0.0)
    )


def translations(rng):
    """Return two texts of eight tokens, one of them padded, others of five, and what follows each of their tokens."""
    source, target = rng.integers(1, 50, (2, 8)), rng.integers(1, 50, (2, 6))
    source[1, 6:] = 0
    return source, target[:, :-1], target[:, 1:]


def resnet(module):
    """Return a narrow ResNet of two stages."""
    return module.ResNet(module.ResNetConfig(classes=5, width=8, blocks=(2, 1)))


def vit(module):
    """Return a small ViT."""
    return module.ViT(module.ViTConfig(classes=5, size=12, patch=4, layers=2, heads=2, width=16))


def pictures(size):
    """Return what makes four pictures and their classes."""
    return lambda rng: (rng.standard_normal((4, 3, size, size)).astype(np.float32), rng.integers(0, 5, 4))


def language_model(module):
    """Return a small language model of LSTM layers without dropout, whose two tables of words are one."""
    return module.LSTMLanguageModel(module.LSTMConfig(vocabulary=50, width=16, dropout=0.0, tied=True))


# The source's name, what makes a model of it, and a batch: inputs, and the class at each place of the output.
TABLE = {
    "gpt": (gpt, tokens),
    "lstm": (language_model, tokens),
    "transformer": (translator, translations),
    "resnet": (resnet, pictures(24)),
    "vit": (vit, pictures(12)),
}


def in_numpy(tensor):
    """Return the values of either library's tensor."""
    return tensor.detach().cpu().numpy()


def loss_of(library, model, *batch):
    """Return the outputs, and the mean cross-entropy of the classes, which are along their last dimension."""
    *inputs, classes = batch
    outputs = model(*inputs)
    return outputs, library.nn.functional.cross_entropy(outputs.reshape(-1, outputs.shape[-1]), classes.reshape(-1))


def differentiated(model, twin, batches):
    """Return the batches as tensors of either library, and the outputs of the first, after backward of its loss."""
    ours = [tuple(lucid.tensor(each, device=DEVICE) for each in batch) for batch in batches]
    theirs = [tuple(torch.tensor(each) for each in batch) for batch in batches]
    outputs, loss = loss_of(lucid, model, *ours[0])
    expected, expected_loss = loss_of(torch, twin, *theirs[0])
    loss.backward()
    expected_loss.backward()
    return ours, theirs, outputs, expected


def losses_of(library, model, batches):
    """Return the losses of as many steps of AdamW as there are batches."""
    optimizer, losses = library.optim.AdamW(model.parameters(), lr=3e-4), []
    for batch in batches:
        optimizer.zero_grad()
        losses.append(loss_of(library, model, *batch)[1])
        losses[-1].backward()
        optimizer.step()
    return [loss.item() for loss in losses]


@pytest.mark.parametrize("stem", TABLE)
def test_a_model_is_pytorchs(stem, rng):
    """State dicts go both ways; outputs, gradients and the losses of many steps agree within what float32 gives."""
    make, draw = TABLE[stem]
    model, twin = make(module_of("lucid", stem)), make(module_of("torch", stem))
    state = {key: in_numpy(value) for key, value in twin.state_dict().items()}
    model.load_state_dict({key: lucid.tensor(value, device=DEVICE) for key, value in state.items()})
    twin.load_state_dict({key: torch.tensor(in_numpy(value)) for key, value in model.state_dict().items()})
    ours, theirs, outputs, expected = differentiated(model, twin, [draw(rng) for _ in range(STEPS)])
    np.testing.assert_allclose(in_numpy(outputs), in_numpy(expected), rtol=1e-4, atol=1e-5)
    for (name, parameter), other in zip(model.named_parameters(), twin.parameters(), strict=True):
        scale = float(other.grad.abs().max())
        np.testing.assert_allclose(in_numpy(parameter.grad), in_numpy(other.grad), 1e-3, 1e-4 * scale, err_msg=name)

    # of many steps in float64: a ReLU that rounding moves across zero is a share of the loss
    sides = ((lucid, model.double(), ours), (torch, twin.double(), theirs))
    (losses, wanted) = [
        losses_of(library, module, [tuple(map(in_double, batch)) for batch in batches])
        for library, module, batches in sides
    ]
    np.testing.assert_allclose(losses, wanted, rtol=1e-6)


def in_double(tensor):
    """Return floating-point numbers of either library in float64, others as they are."""
    return tensor.double() if tensor.is_floating_point() else tensor
