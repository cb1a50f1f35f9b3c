"""Slopes of orthogonal polynomials: multiples of others of the degree below; degrees and parameters have none.

References
----------
NIST Digital Library of Mathematical Functions, 18.9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.ops.elementwise.comparison import eq
from lucid.ops.elementwise.selection import where
from lucid.tensor.numpy_calls.by_scipy import Slope, by_scipy, enter

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor


def below(n: Tensor) -> Any:
    """Return the degree or order below, and 0 below 0, as SciPy has none there."""
    return where(eq(n, 0), n, n - 1)


def lower(name: str, n: Tensor, *others: Any) -> Any:
    """Return a polynomial of the degree below n, 1 of degree 0."""
    # of floats SciPy has NaN there for some parameters
    is_first = eq(n, 1)
    return where(is_first, 1.0, by_scipy(name)(where(is_first, 1, n - 1), *others))


def of_gegenbauer(n: Tensor, alpha: Tensor | float, x: Tensor) -> Any:
    """Return the slope of Gegenbauer's polynomial."""
    return lower("eval_gegenbauer", n, alpha + 1, x) * (alpha * 2)


def of_laguerre(n: Tensor, alpha: Tensor | float, x: Tensor) -> Any:
    """Return the slope of Laguerre's polynomial."""
    return -lower("eval_genlaguerre", n, alpha + 1, x)


def of_first_kind(n: Tensor, x: Tensor) -> Any:
    """Return the slope of Chebyshev's polynomial of the first kind."""
    return by_scipy("eval_chebyu")(n - 1, x) * n


def of_jacobi(n: Tensor, alpha: Tensor, beta: Tensor, x: Tensor) -> Any:
    """Return the slope of Jacobi's polynomial."""
    return lower("eval_jacobi", n, alpha + 1, beta + 1, x) * ((n + alpha + beta + 1) * 0.5)


def unless_constant(slope: Slope) -> Callable[..., Any]:
    """Return a slope that is 0 of degree 0: below that SciPy's polynomials have poles, and are infinite far out."""
    of_degree: Callable[..., Any] = slope

    def function(n: Tensor, *others: Any) -> Any:
        is_constant = eq(n, 0)
        return where(is_constant, 0.0, of_degree(where(is_constant, 1, n), *others))

    return function


POLYNOMIALS: dict[str, Slope] = {
    "eval_chebyc": lambda n, x: of_first_kind(n, x * 0.5),
    "eval_chebys": lambda n, x: of_gegenbauer(n, 1.0, x * 0.5) * 0.5,
    "eval_chebyt": of_first_kind,
    "eval_chebyu": lambda n, x: of_gegenbauer(n, 1.0, x),
    "eval_gegenbauer": of_gegenbauer,
    "eval_genlaguerre": of_laguerre,
    "eval_hermite": lambda n, x: by_scipy("eval_hermite")(n - 1, x) * (n * 2),
    "eval_hermitenorm": lambda n, x: by_scipy("eval_hermitenorm")(n - 1, x) * n,
    "eval_jacobi": of_jacobi,
    "eval_laguerre": lambda n, x: of_laguerre(n, 0.0, x),
    "eval_legendre": lambda n, x: of_gegenbauer(n, 0.5, x),
    "eval_sh_chebyt": lambda n, x: of_first_kind(n, x * 2 - 1) * 2,
    "eval_sh_chebyu": lambda n, x: of_gegenbauer(n, 1.0, x * 2 - 1) * 2,
    "eval_sh_legendre": lambda n, x: of_gegenbauer(n, 0.5, x * 2 - 1) * 2,
}
enter({name: unless_constant(slope) for name, slope in POLYNOMIALS.items()})
