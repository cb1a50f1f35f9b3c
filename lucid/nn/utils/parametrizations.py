"""Parametrizations of weights: by length and direction, their largest singular value, and orthonormal columns."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from lucid.arguments import checked
from lucid.autograd.base import TensorBase
from lucid.autograd.modes.reading import recomputing
from lucid.autograd.modes.state import no_grad
from lucid.errors import IndexOutOfRangeError, SettingError
from lucid.nn.module.module import Module
from lucid.nn.utils import norms
from lucid.nn.utils.orthogonality import Orthogonal, check_map
from lucid.nn.utils.parametrize import register_parametrization
from lucid.ops.base.one_device import check_one_device
from lucid.ops.reduction.norms import normalize

if TYPE_CHECKING:
    from lucid.tensor import Tensor

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return norms.of_length(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norms.lengths(weight, self.dim), weight


def _take_older_names(name: str, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    older = f"{prefix}{name}_g", f"{prefix}{name}_v"
    if all(key in state_dict for key in older):
        for i, key in enumerate(older):
            state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)


@checked
def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Return the module after making a weight the product of length and direction, ``g * v / |v|``.

    It is trained as `module.parametrizations.weight.original0`, the lengths g, and `original1`, v (Salimans and Kingma,
    2016). State dicts of the older `lucid.nn.utils.weight_norm` are taken as well.

    Parameters
    ----------
    module : Module
    name : str
        The name of the weight.
    dim : int, optional
        For each index along it there is one length; None makes it one for all.

    Raises
    ------
    SettingError
        If the module has no tensor of this name.
    IndexOutOfRangeError
        If the weight has no dimension `dim`.

    Examples
    --------
    >>> from lucid import nn
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(20, 40))
    >>> layer.parametrizations.weight.original0.shape
    lucid.Size([40, 1])
    """
    register_parametrization(module, name, _WeightNorm(None if dim == -1 else dim), unsafe=True)
    module._register_load_state_dict_pre_hook(functools.partial(_take_older_names, name))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return module


def _tensor_of(module: Module, name: str) -> Any:
    """Return the parameter or buffer of a name; a SettingError says that there is none."""
    tensor = getattr(module, name, None)
    if not isinstance(tensor, TensorBase):
        raise SettingError(f"{type(module).__name__} has no parameter or buffer with name {name!r}")
    return tensor


class _SpectralNorm(Module):
    _u: Any
    _v: Any

    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexOutOfRangeError(
                f"spectral_norm: dim: expected one in [{-weight.ndim}, {weight.ndim - 1}], got {dim}"
            )
        norms.check_iterations(n_power_iterations)
        self.dim = dim % weight.ndim
        self.eps = eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = norms.as_matrix(weight.detach(), self.dim)
            for role, vector in zip(("_u", "_v"), norms.drawn_vectors(matrix, eps), strict=True):
                self.register_buffer(role, vector)
            self._iterate(matrix, 15)

    def _iterate(self, matrix: Tensor, count: int) -> None:
        with no_grad():
            for _ in range(count):
                self._u.copy_(normalize(matrix @ self._v, dim=0, eps=self.eps))
                self._v.copy_(normalize(matrix.T @ self._u, dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = norms.as_matrix(weight, self.dim)
        if self.training and not recomputing():
            check_one_device("spectral_norm", weight, self._u, self._v)
            self._iterate(matrix.detach(), self.n_power_iterations)
        return norms.by_spectrum(weight, matrix, self._u, self._v)

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


@checked
def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Return the module after dividing a weight by its largest singular value, as GANs' discriminators need it.

    It is estimated by two vectors, which come nearer to the singular ones whenever the weight is read in training
    (Miyato, Kataoka, Koyama and Yoshida, 2018). A vector is divided by its length.

    Parameters
    ----------
    module : Module
    name : str
        The name of the weight.
    n_power_iterations : int
        How often both vectors are multiplied by the weight each time, at least 1.
    eps : float
        What is divided by at least.
    dim : int, optional
        The dimension of the outputs, the rows of the matrix: 0 but for transposed convolutions, where it is 1.

    Raises
    ------
    SettingError
        If the module has no tensor of this name, or `n_power_iterations` is below 1.
    IndexOutOfRangeError
        If the weight has no dimension `dim`.

    Examples
    --------
    >>> from lucid import nn
    >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(20, 40))
    >>> [name for name, _ in layer.named_buffers()]
    ['parametrizations.weight.0._u', 'parametrizations.weight.0._v']
    """
    rows = norms.dim_of_outputs(module) if dim is None else dim
    made = _SpectralNorm(_tensor_of(module, name), n_power_iterations, rows, eps)
    return register_parametrization(module, name, made)


@checked
def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Return the module after giving a weight orthonormal columns, or rows if there are fewer of these.

    Matrices lie in the last two dimensions. What is trained, `module.parametrizations.weight.original`, is any matrix.

    Parameters
    ----------
    module : Module
    name : str
        The name of the weight.
    orthogonal_map : str, optional
        What makes it orthogonal: ``"matrix_exp"``, the exponential of a skew-symmetric matrix; ``"cayley"``, Cayley's
        map of one; ``"householder"``, a product of reflections. ``"matrix_exp"`` for square and complex matrices and
        ``"householder"`` for others, unless it is given.
    use_trivialization : bool
        Whether it is multiplied by a constant orthogonal matrix, by which training starts at the weight that is there
        (Lezcano-Casado, 2019), made orthogonal, and a weight can be assigned.

    Raises
    ------
    SettingError
        If the module has no tensor of this name, or there is no such map, or not for complex numbers.
    ShapeError
        If the weight has fewer than two dimensions.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(20, 40))
    >>> bool(lucid.dist(layer.weight.T @ layer.weight, lucid.eye(20)) < 1e-4)
    True
    """
    weight = _tensor_of(module, name)
    made = Orthogonal(tuple(weight.shape), check_map(weight, orthogonal_map), use_trivialization=use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)
