"""Functions of functions, under PyTorch's address: derivatives, and functions of single elements over batches.

`lucid.func.derivatives` says what holds for all derivatives, `docs/users/func.md` what differs from PyTorch.
"""

from __future__ import annotations

from lucid.func.batching import vmap
from lucid.func.derivatives import grad, grad_and_value, jvp, linearize, vjp
from lucid.func.ensembling import stack_module_state
from lucid.func.matrices import hessian, jacfwd, jacrev
from lucid.func.normalisation import replace_all_batch_norm_modules_
from lucid.nn.utils.stateless import functional_call
from lucid.public import publish as _publish
from lucid.settings.documents import document as _document

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip

_publish(globals(), vmap="lucid")
_document(__all__, globals())
