"""ResNet-18 and -34: residual blocks of two 3 x 3 convolutions, for images of any size.

The names of parameters and buffers are those of torchvision, whose checkpoints load.
"""

from __future__ import annotations

from dataclasses import dataclass

import lucid
from lucid import nn


@dataclass(frozen=True)
class ResNetConfig:
    """Sizes; the defaults are those of ResNet-18, (3, 4, 6, 3) blocks make ResNet-34."""

    classes: int = 1000
    width: int = 64
    blocks: tuple[int, ...] = (2, 2, 2, 2)


class Block(nn.Module):
    """Two convolutions with batch normalisation, beside a residual connection that keeps up with their shape."""

    def __init__(self, channels: int, made: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, made, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(made)
        self.conv2 = nn.Conv2d(made, made, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(made)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or channels != made:
            self.downsample = nn.Sequential(nn.Conv2d(channels, made, 1, stride, bias=False), nn.BatchNorm2d(made))

    def forward(self, x: lucid.Tensor) -> lucid.Tensor:
        """Return images of shape (batch, made, height / stride, width / stride)."""
        beside = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + beside)


class ResNet(nn.Module):
    """The network: images of shape (batch, 3, height, width) to the logits of each class."""

    def __init__(self, config: ResNetConfig | None = None) -> None:
        super().__init__()
        config = config or ResNetConfig()
        self.conv1 = nn.Conv2d(3, config.width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(config.width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.stages = len(config.blocks)
        channels = config.width
        for stage, count in enumerate(config.blocks):
            made = config.width << stage
            first = Block(channels, made, stride=2 if stage else 1)
            more = [Block(made, made, stride=1) for _ in range(count - 1)]
            self.add_module(f"layer{stage + 1}", nn.Sequential(first, *more))
            channels = made
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, config.classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: lucid.Tensor) -> lucid.Tensor:
        """Return the logits, shape (batch, classes)."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.fc(self.avgpool(x).flatten(1))
