"""The older forms of weight and spectral norm: forward pre-hooks that compute the weight before each call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import checked
from lucid.autograd.modes.reading import recomputing
from lucid.autograd.modes.state import no_grad
from lucid.errors import SettingError, warn
from lucid.nn.module.computing import Computing
from lucid.nn.parameter import Parameter
from lucid.nn.utils import norms
from lucid.ops.base.one_device import check_one_device
from lucid.ops.reduction.norms import normalize

if TYPE_CHECKING:
    from lucid.nn.module.module import Module
    from lucid.tensor import Tensor

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]


class _Norm(Computing):
    """A pre-hook that computes the attribute `name` from tensors with names that begin with it."""

    title = ""
    parts: tuple[str, ...] = ()

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def attribute(self) -> str:
        return self.name

    def part(self, module: Any, suffix: str) -> Any:
        """Return the attribute of the name with a suffix."""
        return getattr(module, self.name + suffix)

    def __call__(self, module: Any, _: Any) -> None:
        setattr(module, self.name, self.computed(module))

    @classmethod
    def of(cls, module: Module, name: str) -> tuple[int, _Norm] | None:
        """Return the hook on a weight and its number, if there is one."""
        hooks = module._forward_pre_hooks.items()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return next(((k, hook) for k, hook in hooks if isinstance(hook, cls) and hook.name == name), None)

    @classmethod
    def parameter_of(cls, module: Module, name: str) -> Parameter:
        """Return the parameter that is to be computed; a SettingError if there is none, or it is computed already."""
        if cls.of(module, name) is not None:
            raise SettingError(f"cannot register two {cls.title} hooks on the same parameter {name!r}")
        weight = vars(module)["_parameters"].get(name)
        if weight is None:
            raise SettingError(f"{cls.title}: {type(module).__name__} has no parameter with name {name!r}")
        return weight

    @classmethod
    def remove(cls, module: Module, name: str) -> None:
        """Make the weight a parameter again, of the value that it has."""
        entry = cls.of(module, name)
        if entry is None:
            raise SettingError(f"{cls.title} of {name!r} not found in {type(module).__name__}")
        number, hook = entry
        with no_grad():
            weight = hook.computed(module)
        for suffix in ("", *cls.parts):
            delattr(module, name + suffix)
        module.register_parameter(name, Parameter(weight))
        del module._forward_pre_hooks[number]  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


class _WeightNorm(_Norm):
    title = "weight_norm"
    parts = ("_g", "_v")

    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = dim

    def computed(self, module: Any) -> Tensor:
        return norms.of_length(self.part(module, "_v"), self.part(module, "_g"), self.dim)


class _SpectralNorm(_Norm):
    title = "spectral_norm"
    parts = ("_orig", "_u", "_v")

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__(name)
        norms.check_iterations(n_power_iterations)
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def __call__(self, module: Any, inputs: Any) -> None:
        if module.training and not recomputing():
            weight, u, v = [self.part(module, suffix) for suffix in self.parts]
            check_one_device("spectral_norm", weight, u, v)
            with no_grad():
                matrix = norms.as_matrix(weight, self.dim)
                for _ in range(self.n_power_iterations):
                    v.copy_(normalize(matrix.T @ u, dim=0, eps=self.eps))
                    u.copy_(normalize(matrix @ v, dim=0, eps=self.eps))
        super().__call__(module, inputs)

    def computed(self, module: Any) -> Tensor:
        weight, u, v = [self.part(module, suffix) for suffix in self.parts]
        return norms.by_spectrum(weight, norms.as_matrix(weight, self.dim), u, v)


@checked
def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Return the module with a forward pre-hook that makes a weight ``g * v / |v|`` of two parameters.

    They are `weight_g` and `weight_v`. `lucid.nn.utils.parametrizations.weight_norm` does so whenever the weight is
    read, and takes state dicts of this.

    Parameters
    ----------
    module : Module
    name : str
        The name of the parameter.
    dim : int, optional
        For each index along it there is one length g; None makes it one for all.

    Raises
    ------
    SettingError
        If the module has no parameter of this name, or this hook on it.
    IndexOutOfRangeError
        If the weight has no dimension `dim`.

    Warns
    -----
    FutureWarning
        As in PyTorch.

    Examples
    --------
    >>> import warnings
    >>> from lucid import nn
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = nn.utils.weight_norm(nn.Linear(20, 40))
    >>> layer.weight_g.shape, layer.weight_v.shape
    (lucid.Size([40, 1]), lucid.Size([40, 20]))
    """
    warn("weight_norm: take lucid.nn.utils.parametrizations.weight_norm instead", FutureWarning)
    weight = _WeightNorm.parameter_of(module, name)
    hook = _WeightNorm(name, None if dim == -1 else dim)
    with no_grad():
        length = norms.lengths(weight, hook.dim)
    delattr(module, name)
    module.register_parameter(f"{name}_g", Parameter(length))
    module.register_parameter(f"{name}_v", Parameter(weight))
    setattr(module, name, hook.computed(module))
    module.register_forward_pre_hook(hook)
    return module


@checked
def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Return the module after making a weight a parameter again, without the hook of `weight_norm`.

    Raises
    ------
    SettingError
        If there is no such hook on it.
    """
    _WeightNorm.remove(module, name)
    return module


@checked
def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Return the module with a forward pre-hook that divides a weight by its largest singular value.

    What is divided is the parameter `weight_orig`; the buffers `weight_u` and `weight_v` are the vectors that estimate
    the value, which come nearer to the singular ones in each call in training. See also
    `lucid.nn.utils.parametrizations.spectral_norm`, which has the same parameters, and does so whenever the weight is
    read.

    Raises
    ------
    SettingError
        If the module has no parameter of this name, or this hook on it, or `n_power_iterations` is below 1.

    Examples
    --------
    >>> from lucid import nn
    >>> nn.utils.spectral_norm(nn.Linear(20, 40)).weight_u.shape
    lucid.Size([40])
    """
    weight = _SpectralNorm.parameter_of(module, name)
    hook = _SpectralNorm(name, n_power_iterations, norms.dim_of_outputs(module) if dim is None else dim, eps)
    u, v = norms.drawn_vectors(norms.as_matrix(weight.detach(), hook.dim), eps)
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.detach())
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(hook)
    return module


@checked
def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Return the module after making a weight a parameter again, without the hook of `spectral_norm`.

    Raises
    ------
    SettingError
        If there is no such hook on it.
    """
    _SpectralNorm.remove(module, name)
    return module
