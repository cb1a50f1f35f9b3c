"""Special functions, under PyTorch's address. Common rules: `help(lucid.ops.base.declaration)`."""

from __future__ import annotations

# imports, of tests/namespaces/ops.txt by `python -m tests.namespaces.exports`
from lucid.ops.activation.sigmoid import sigmoid as expit
from lucid.ops.activation.softmax import log_softmax, softmax
from lucid.ops.base import keywords as _keywords
from lucid.ops.elementwise.exponential import entr, exp2, expm1, log1p, logit, xlog1py, xlogy
from lucid.ops.elementwise.rounding import round
from lucid.ops.elementwise.special import digamma, erf, erfc, erfinv, i0, i1, ndtr, polygamma
from lucid.ops.elementwise.special import digamma as psi
from lucid.ops.elementwise.special import lgamma as gammaln
from lucid.ops.elementwise.special import mvlgamma as multigammaln
from lucid.ops.elementwise.trigonometry import sinc
from lucid.ops.reduction.norms import logsumexp
from lucid.public import publish as _publish
from lucid.settings.documents import document as _document

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0", "i1", "log1p", "log_softmax",
    "logit", "logsumexp", "multigammaln", "ndtr", "polygamma", "psi", "round", "sinc", "softmax", "xlog1py", "xlogy",
]  # fmt: skip

_keywords.add_to_functions(__all__, globals(), "special.")

_publish(globals())
_document(__all__, globals())
