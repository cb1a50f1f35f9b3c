"""Libraries for PyTorch on lucid: `python -m tests.compat.tools` tries those installed, for docs/users/tools.md.

Each function uses a library as its documentation does, with `torch` standing for lucid, and compares with what NumPy or
arithmetic says.
"""

from __future__ import annotations

import sys
import traceback
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np

from lucid.compat.standing_in import stand_in


def small_model():
    """Return a small convolutional network."""
    from torch import nn

    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 10))


def einops():
    """Rearrange, reduce and einsum with gradients, and layers."""
    import torch
    from einops import einsum, pack, rearrange, reduce, repeat
    from einops.layers.torch import EinMix, Rearrange

    x = torch.randn(2, 3, 4, 6, requires_grad=True)
    array = x.detach().numpy()
    y = rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=3)
    expected = array.reshape(2, 3, 2, 2, 2, 3).transpose(0, 2, 4, 3, 5, 1).reshape(2, 4, 18)
    np.testing.assert_array_equal(y.detach().numpy(), expected)
    np.testing.assert_allclose(reduce(x, "b c h w -> b c", "max").detach().numpy(), array.max((2, 3)))
    np.testing.assert_array_equal(repeat(x, "b c h w -> b (c r) h w", r=2).detach().numpy(), array.repeat(2, 1))
    inner = einsum(y, y, "b i c, b j c -> b i j")
    np.testing.assert_allclose(inner.detach().numpy(), expected @ expected.transpose(0, 2, 1), rtol=1e-5, atol=1e-5)
    inner.sum().backward()
    sums = np.broadcast_to(2 * expected.sum(1, keepdims=True), expected.shape)
    back = sums.reshape(2, 2, 2, 2, 3, 3).transpose(0, 5, 1, 3, 2, 4).reshape(2, 3, 4, 6)
    np.testing.assert_allclose(x.grad.numpy(), back, rtol=1e-4, atol=1e-4)
    packed, shapes = pack([x, x[:, :1]], "b * h w")
    assert packed.shape == (2, 4, 4, 6)
    assert shapes == [(3,), (1,)]
    assert Rearrange("b c h w -> b (c h w)")(x).shape == (2, 72)
    mix = EinMix("b c h w -> b h w d", weight_shape="c d", bias_shape="d", c=3, d=5)
    assert mix(x).shape == (2, 4, 6, 5)


def torchinfo():
    """Count parameters, and show the shape of each output."""
    from torchinfo import summary

    said = summary(small_model(), (2, 3, 8, 8), verbose=0)
    assert said.total_params == 3 * 4 * 9 + 4 + 36 * 10 + 10
    assert "[2, 4, 6, 6]" in str(said)


def torchextractor():
    """Get outputs of named layers beside the model's."""
    import torch
    import torchextractor as extractor

    model, x = small_model(), torch.randn(1, 3, 8, 8)
    output, features = extractor.Extractor(model, ["0", "2"])(x)
    assert torch.equal(output, model(x))
    assert torch.equal(features["0"], model[0](x))
    assert features["2"].shape == (1, 4, 3, 3)


def ttach():
    """Means over flipped inputs."""
    import torch
    from ttach import ClassificationTTAWrapper
    from ttach.aliases import hflip_transform

    model, x = small_model(), torch.randn(2, 3, 8, 8)
    expected = (model(x) + model(x.flip(3))) / 2
    assert torch.allclose(ClassificationTTAWrapper(model, hflip_transform())(x), expected, atol=1e-6)


def thop():
    """Multiplications and parameters of a model."""
    import torch
    from thop import profile

    operations, parameters = profile(small_model(), (torch.randn(1, 3, 8, 8),), verbose=False)
    assert parameters == 3 * 4 * 9 + 4 + 36 * 10 + 10
    assert operations > 3 * 4 * 9 * 36


def captum():
    """Attributions: integrated gradients sum to the change of the output; saliency is the gradient's size."""
    import torch
    from captum.attr import IntegratedGradients, LayerGradCam, Occlusion, Saliency

    model, x = small_model().eval(), torch.randn(2, 3, 8, 8)
    given, missed = IntegratedGradients(model).attribute(x, target=3, return_convergence_delta=True, n_steps=200)
    change = (model(x) - model(torch.zeros_like(x)))[:, 3]
    assert torch.allclose(given.sum((1, 2, 3)), change, atol=2e-2)
    assert missed.abs().max() < 2e-2
    leaf = x.clone().requires_grad_()
    model(leaf)[:, 3].sum().backward()
    assert torch.allclose(Saliency(model).attribute(x, target=3), leaf.grad.abs(), atol=1e-6)
    assert LayerGradCam(model, model[0]).attribute(x, target=3).shape == (2, 1, 6, 6)
    assert Occlusion(model).attribute(x, sliding_window_shapes=(3, 4, 4), strides=(3, 4, 4), target=3).shape == x.shape


def backpack():
    """Gradients of each sample sum to the gradient; squares of them to its second moment."""
    import torch
    from backpack import backpack as backpacking
    from backpack import extend
    from backpack.extensions import BatchGrad, SumGradSquared
    from torch import nn

    model, loss = extend(nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))), extend(nn.CrossEntropyLoss())
    x, y = torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
    with backpacking(BatchGrad(), SumGradSquared()):
        loss(model(x), y).backward()
    for parameter in model.parameters():
        assert torch.allclose(parameter.grad_batch.sum(0), parameter.grad, atol=1e-6)
        assert torch.allclose(parameter.grad_batch.square().sum(0), parameter.sum_grad_squared, atol=1e-6)


def opacus():
    """Gradients of each sample are those of separate passes, and a private step without noise means them, clipped."""
    import torch
    from opacus import GradSampleModule, PrivacyEngine
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    class Words(nn.Module):
        """Convolutions over embedded words."""

        def __init__(self):
            super().__init__()
            self.embedding, self.norm = nn.Embedding(7, 8), nn.LayerNorm(8)
            self.conv, self.groups = nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4)
            self.linear = nn.Linear(8, 3)

        def forward(self, words):
            image = self.groups(self.conv(self.norm(self.embedding(words))[:, None]))
            return self.linear(image.relu().mean((1, 2)))

    torch.manual_seed(0)
    model, loss = Words(), nn.CrossEntropyLoss()
    x, y = torch.randint(0, 7, (6, 5)), torch.tensor([0, 1, 2, 0, 1, 2])
    singles = []
    for k in range(6):
        model.zero_grad()
        loss(model(x[k : k + 1]), y[k : k + 1]).backward()
        singles.append([p.grad.numpy().copy() for p in model.parameters()])
    model.zero_grad()
    wrapped = GradSampleModule(model, loss_reduction="mean")
    loss(wrapped(x), y).backward()
    for index, p in enumerate(model.parameters()):
        np.testing.assert_allclose(p.grad_sample.numpy(), [one[index] for one in singles], rtol=1e-4, atol=1e-6)
    model = wrapped.to_standard_module()
    for mode in ("hooks", "ghost"):
        for p in model.parameters():
            p.grad = p.grad_sample = None
        before = [p.detach().numpy().copy() for p in model.parameters()]
        found = PrivacyEngine().make_private(
            module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.5), criterion=loss,
            data_loader=DataLoader(TensorDataset(x, y), batch_size=6), noise_multiplier=0.0, max_grad_norm=0.1,
            poisson_sampling=False, grad_sample_mode=mode,
        )  # fmt: skip
        private, optimizer, criterion = found[0], found[1], found[2] if mode == "ghost" else loss
        optimizer.zero_grad()
        criterion(private(x), y).backward()
        optimizer.step()
        sizes = [np.sqrt(sum((g.astype(float) ** 2).sum() for g in one)) for one in singles]
        for index, p in enumerate(model.parameters()):
            mean = sum(one[index] * min(1, 0.1 / size) for one, size in zip(singles, sizes, strict=True)) / 6
            np.testing.assert_allclose(p.detach().numpy(), before[index] - 0.5 * mean, rtol=1e-3, atol=1e-5)
            p.data = torch.tensor(before[index])
        model = private.to_standard_module()
    noisy = PrivacyEngine()
    private, optimizer, loader = noisy.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(TensorDataset(x, y), batch_size=3), noise_multiplier=1.0, max_grad_norm=1.0,
    )  # fmt: skip
    for words, labels in loader:
        optimizer.zero_grad()
        loss(private(words), labels).backward()
        optimizer.step()
    assert 0 < noisy.get_epsilon(delta=1e-5) < np.inf


# The function, and the package that it needs by its name at PyPI.
TOOLS = {
    "einops": (einops, "einops"),
    "torchinfo": (torchinfo, "torchinfo"),
    "torchextractor": (torchextractor, "torchextractor"),
    "ttach": (ttach, "ttach"),
    "thop": (thop, "thop"),
    "captum": (captum, "captum"),
    "backpack": (backpack, "backpack-for-pytorch"),
    "opacus": (opacus, "opacus"),
}


def main():
    """Try what is installed, or what the command line names; return how many failed."""
    stand_in()
    failed = 0
    for name in sys.argv[1:] or TOOLS:
        function, package = TOOLS[name]
        if find_spec(name) is None:
            print(f"{name}: not installed")
            continue
        try:
            function()
        except Exception:  # noqa: BLE001  of any kind, and the next one is tried
            traceback.print_exc()
            failed += 1
            print(f"{name} {version(package)}: failed")
        else:
            print(f"{name} {version(package)}: runs")
    return failed


if __name__ == "__main__":
    sys.exit(main())
