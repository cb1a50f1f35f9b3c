"""Methods of pruning: how each chooses elements to hold at zero, and how it puts its mask and its hook on a module."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from lucid.autograd.modes.state import no_grad
from lucid.errors import ArgumentError, IndexOutOfRangeError, SettingError, ShapeError
from lucid.nn.module.computing import Computing
from lucid.ops.creation.filling import ones_like
from lucid.ops.creation.random import rand
from lucid.ops.reduction.norms import norm
from lucid.ops.reduction.sorting import argsort

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lucid.nn.module.module import Module
    from lucid.tensor import Tensor


def hooks_of(module: Module) -> Any:
    """Return the forward pre-hooks of a module by their numbers."""
    return module._forward_pre_hooks  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def scores_of(scores: Any, t: Any) -> Any:
    """Return the scores that decide on pruning: the elements of the tensor itself unless others are given."""
    if scores is None:
        return t.detach()
    if scores.shape != t.shape:
        raise ShapeError(
            f"importance_scores should have the same shape as the parameter, {tuple(t.shape)}, got "
            f"{tuple(scores.shape)}"
        )
    return scores.detach()


class BasePruningMethod(Computing):
    """The base of methods of pruning: a subclass defines `compute_mask`, and the elements for it by `PRUNING_TYPE`.

    `PRUNING_TYPE` is ``"unstructured"`` for a method that is given the elements that are left, in one dimension,
    ``"structured"`` for the slices along its `dim` of which something is left, and ``"global"`` for all.
    """

    PRUNING_TYPE: str
    _tensor_name: str = ""

    def __call__(self, module: Any, inputs: Any) -> None:
        """Compute the parameter, as a pre-hook."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @property
    def attribute(self) -> str:
        """The name of the parameter."""
        return self._tensor_name

    def computed(self, module: Any) -> Any:
        """Return the pruned tensor of a module."""
        return self.apply_mask(module)

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return a mask of zeros and ones for the tensor `t`; zeros of `default_mask` stay zero."""

    def apply_mask(self, module: Module) -> Any:
        """Return the pruned tensor of a module."""
        if not self._tensor_name:
            raise SettingError(f"{type(self).__name__}: {type(module).__name__} has to be pruned first: call apply")
        mask, original = getattr(module, f"{self._tensor_name}_mask"), getattr(module, f"{self._tensor_name}_orig")
        return mask.to(original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Return the method after pruning a parameter by it; the other arguments are those of its constructor.

        Raises
        ------
        SettingError
            If the module has no parameter of this name. A call that fails changes nothing.
        """
        method = cls(*args, **kwargs)
        method._tensor_name = name
        number, before = next(((k, hook) for k, hook in hooks_of(module).items() if prunes(hook, name)), (None, None))
        whole: Any = vars(module)["_parameters"].get(name if before is None else f"{name}_orig")
        if whole is None:
            raise SettingError(f"prune: {type(module).__name__} has no parameter with name {name!r}")
        scores = scores_of(importance_scores, whole if before is None else before.apply_mask(module))
        result: BasePruningMethod = method
        if before is None:
            default = ones_like(whole.detach())
        else:
            default = getattr(module, f"{name}_mask").detach().clone()
            result = PruningContainer(*(before if isinstance(before, PruningContainer) else (before,)), method)
        with no_grad():
            mask = result.compute_mask(scores, default)
        if before is None:
            delattr(module, name)
            module.register_parameter(f"{name}_orig", whole)
        else:
            del hooks_of(module)[number]
        module.register_buffer(f"{name}_mask", mask)
        result(module, None)
        module.register_forward_pre_hook(result)
        return result

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """Return the tensor `t` pruned, without a module."""
        scores = scores_of(importance_scores, t)
        default = ones_like(t.detach()) if default_mask is None else default_mask
        with no_grad():
            mask = self.compute_mask(scores, default)
        return t * mask.to(t.dtype)

    def remove(self, module: Module) -> None:
        """Make the parameter an ordinary one again; pruned elements stay zero."""
        name = self._tensor_name
        with no_grad():
            value = self.apply_mask(module)
        original = getattr(module, f"{name}_orig")
        for suffix in ("", "_orig", "_mask"):
            delattr(module, name + suffix)
        original.data = value
        module.register_parameter(name, original)


def prunes(hook: Any, name: str) -> bool:
    """Return whether a hook prunes the parameter of that name."""
    return isinstance(hook, BasePruningMethod) and hook._tensor_name == name  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


class PruningContainer(BasePruningMethod):
    """Several methods of pruning on one parameter; the last is the one to be applied."""

    PRUNING_TYPE = "global"

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name  # noqa: SLF001
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a method, of the same parameter.

        Raises
        ------
        ArgumentError
            If it is none.
        SettingError
            If it is one of another parameter.
        """
        if not isinstance(method, BasePruningMethod):
            raise ArgumentError(f"{type(method).__name__} is not a BasePruningMethod subclass")
        name = method._tensor_name  # noqa: SLF001
        if name != self._tensor_name:
            raise SettingError(
                f"can only add pruning methods acting on the parameter named {self._tensor_name!r}, got one on {name!r}"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask by the last method, for the elements that the mask so far has left."""
        method: Any = self._pruning_methods[-1]
        kind: str = method.PRUNING_TYPE
        if kind not in {"unstructured", "structured", "global"}:
            raise SettingError(f"unrecognized PRUNING_TYPE {kind!r}: expected 'unstructured', 'structured' or 'global'")
        place: Any = ...
        if kind == "unstructured":
            place = default_mask == 1
        elif kind == "structured":
            dim = _dim_of(t, method.dim)
            others = [axis for axis in range(t.ndim) if axis != dim]
            place = (*[slice(None)] * dim, default_mask.sum(others) != 0)
        mask = default_mask.to(t.dtype).clone()
        mask[place] = method.compute_mask(t[place], default_mask[place]).to(t.dtype)
        return mask


def _dim_of(t: Any, dim: int) -> int:
    if not -t.ndim <= dim < t.ndim:
        raise IndexOutOfRangeError(f"invalid index {dim} for tensor of size {tuple(t.shape)}")
    return dim % t.ndim


def _check_amount(amount: Any) -> Any:
    if not isinstance(amount, numbers.Real) or isinstance(amount, bool):
        raise ArgumentError(f"amount: expected an int or a float, got {type(amount).__name__}")
    if not 0 <= float(amount) <= (float("inf") if isinstance(amount, numbers.Integral) else 1):
        raise SettingError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")
    return amount


class _ByAmount(BasePruningMethod):
    """The base of methods that prune a number of units, those with the least scores."""

    amount: Any

    def places(self, scores: Any) -> Any:
        """Return the indices of the least scores, as many as are to be pruned."""
        size = scores.numel()
        count = int(self.amount) if isinstance(self.amount, numbers.Integral) else round(self.amount * size)
        if count > size:
            raise SettingError(f"amount={count} should be smaller than the number of parameters to prune={size}")
        return argsort(scores)[:count]


class _Unstructured(_ByAmount):
    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        self.amount = _check_amount(amount)

    def scores(self, t: Any) -> Any:
        """Return a score for each element."""
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask so far without the elements of the least scores."""
        mask = default_mask.clone().reshape(-1)
        mask[self.places(self.scores(t.reshape(-1)))] = 0
        return mask.reshape(t.shape)


class RandomUnstructured(_Unstructured):
    """Prunes elements that are drawn."""

    def scores(self, t: Any) -> Any:
        """Return random numbers."""
        return rand(t.shape, device=t.device)


class L1Unstructured(_Unstructured):
    """Prunes the elements of the least magnitude."""

    def scores(self, t: Any) -> Any:
        """Return magnitudes."""
        return t.abs()


class _Structured(_ByAmount):
    PRUNING_TYPE = "structured"

    def scores(self, t: Any, dim: int) -> Any:
        """Return a score for each slice along a dimension."""
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask so far without the slices of the least scores."""
        if t.ndim < 2:
            raise SettingError(
                f"structured pruning can only be applied to multidimensional tensors, got shape {tuple(t.shape)}"
            )
        dim = _dim_of(t, self.dim)
        mask = default_mask.clone()
        mask[(*[slice(None)] * dim, self.places(self.scores(t, dim)))] = 0
        return mask

    dim: int


class RandomStructured(_Structured):
    """Prunes slices that are drawn, along `dim`."""

    def __init__(self, amount: float, dim: int = -1) -> None:
        self.amount = _check_amount(amount)
        self.dim = dim

    def scores(self, t: Any, dim: int) -> Any:
        """Return random numbers."""
        return rand(t.shape[dim], device=t.device)


class LnStructured(_Structured):
    """Prunes the slices of the least norm of order `n`, along `dim`."""

    def __init__(self, amount: float, n: float | str, dim: int = -1) -> None:
        self.amount = _check_amount(amount)
        self.n = n
        self.dim = dim

    def scores(self, t: Any, dim: int) -> Any:
        """Return norms."""
        return norm(t, self.n, [axis for axis in range(t.ndim) if axis != dim])


class Identity(BasePruningMethod):
    """Prunes nothing: parameter, mask and hook as of any pruned parameter."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask so far."""
        return default_mask


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the product of the mask so far and the given one."""
        if self.mask.shape != default_mask.shape:
            raise ShapeError(
                f"mask: expected the shape of the parameter, {tuple(default_mask.shape)}, got {tuple(self.mask.shape)}"
            )
        return default_mask * self.mask.to(default_mask.dtype)
