"""Functions of random variables by PyTorch's names: values, inverses, and logarithms of determinants.

`TransformedDistribution` draws by them, `transform_to` and `biject_to` choose one for a constraint.
"""

from __future__ import annotations

from lucid.distributions.transformations.base import ComposeTransform, Transform, identity_transform
from lucid.distributions.transformations.elementwise import (
    AbsTransform,
    AffineTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)
from lucid.distributions.transformations.structural import (
    CatTransform,
    IndependentTransform,
    ReshapeTransform,
    StackTransform,
)
from lucid.distributions.transformations.vectors import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)
from lucid.public import publish as _publish

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip

_publish(globals())
