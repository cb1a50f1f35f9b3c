"""Linear algebra under PyTorch's names. Common rules: `lucid.ops.decomposition`."""

from __future__ import annotations

from lucid.errors import LinAlgError

# imports, of tests/namespaces/ops.txt by `python -m tests.namespaces.exports`
from lucid.ops.base import keywords as _keywords
from lucid.ops.decomposition.chains import cross, diagonal, matrix_power, multi_dot, vander, vecdot
from lucid.ops.decomposition.eigen import eig, eigvals
from lucid.ops.decomposition.inverses import det, inv, inv_ex, slogdet, solve, solve_ex, tensorinv, tensorsolve
from lucid.ops.decomposition.lu import lu, lu_factor, lu_factor_ex, lu_solve
from lucid.ops.decomposition.matrix_exp import matrix_exp
from lucid.ops.decomposition.matrix_norms import matrix_norm, norm, vector_norm
from lucid.ops.decomposition.orthogonal import householder_product, qr
from lucid.ops.decomposition.pseudoinverse import cond, lstsq, matrix_rank, pinv
from lucid.ops.decomposition.spectral import eigh, eigvalsh, svd, svdvals
from lucid.ops.decomposition.triangular import cholesky, cholesky_ex, solve_triangular
from lucid.ops.linalg.products import matmul
from lucid.public import publish as _publish
from lucid.settings.documents import document as _document

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
    "householder_product", "inv", "inv_ex", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul",
    "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve",
    "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm",
]  # fmt: skip

_keywords.add_to_functions(__all__, globals(), "linalg.")

_publish(globals())
_document(__all__, globals())
