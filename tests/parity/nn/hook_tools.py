"""Four tools that live on hooks, written for PyTorch: only the line that says what `torch` is decides what they run on.

Recording activations, clipping gradients as they come, extracting features and watching the largest singular values are
what hook-based packages do with PyTorch's modules. They use what such packages use: handles gathered in lists,
`with_kwargs`, `prepend`, names from `named_modules`, hook dictionaries of which the lengths are read, and
``optimizer.step`` inside of backward.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, Self

import lucid as torch

if TYPE_CHECKING:
    from collections.abc import Iterable

nn = torch.nn


class ActivationRecorder:
    """Keeps what the modules of some types returned, and the gradients of that, inside a ``with`` block.

    Parameters
    ----------
    model : Module
        What is looked into.
    types : type or tuple of type
        Which modules to record.

    Attributes
    ----------
    activations, gradients : dict of str to list of Tensor
        By the name of the module, in the order of the calls.
    """

    def __init__(self, model: Any, types: Any = nn.Module) -> None:
        self.names = {module: name for name, module in model.named_modules() if isinstance(module, types)}
        self.activations: dict[str, list[Any]] = {name: [] for name in self.names.values()}
        self.gradients: dict[str, list[Any]] = {name: [] for name in self.names.values()}
        self._handles: list[Any] = []

    def _record(self, module: Any, args: Any, kwargs: Any, output: Any) -> None:
        self.activations[self.names[module]].append(output.detach().clone())

    def _record_gradient(self, module: Any, grad_input: Any, grad_output: Any) -> None:
        self.gradients[self.names[module]].append(grad_output[0].clone())

    def __enter__(self) -> Self:
        for module in self.names:
            self._handles.append(module.register_forward_hook(self._record, with_kwargs=True))
            self._handles.append(module.register_full_backward_hook(self._record_gradient))
        return self

    def __exit__(self, *exception: object) -> None:
        while self._handles:
            self._handles.pop().remove()


class GradientClipper:
    """Clips the gradient of each parameter as soon as it is there, and steps an optimizer of its own right then.

    No gradient outlives its own step, so that all of them are never in memory together.

    Parameters
    ----------
    model : Module
        Whose parameters are trained.
    max_norm : float
        The largest norm that a parameter's gradient may have.
    make_optimizer : callable
        Gets a list of one parameter.
    """

    def __init__(self, model: Any, max_norm: float, make_optimizer: Any) -> None:
        self.max_norm = max_norm
        self.norms: dict[str, list[float]] = {}
        self.optimizers = {p: make_optimizer([p]) for p in model.parameters()}
        self.handles = []
        for name, parameter in model.named_parameters():
            self.norms[name] = []
            self.handles.append(parameter.register_hook(self._clipper(name)))
            self.handles.append(parameter.register_post_accumulate_grad_hook(self._step))

    def _clipper(self, name: str) -> Any:
        def clip(grad: Any) -> Any:
            norm = grad.norm()
            self.norms[name].append(norm.item())
            return grad * (self.max_norm / (norm + 1e-6)).clamp(max=1.0)

        return clip

    def _step(self, parameter: Any) -> None:
        self.optimizers[parameter].step()
        parameter.grad = None

    def remove(self) -> None:
        """Let gradients come as they are."""
        for handle in self.handles:
            handle.remove()


class _Enough(Exception):
    """All features are there: no error, but what ends a forward."""


class FeatureExtractor(nn.Module):
    """Returns what layers inside a model return, without running what comes after the last of them.

    Parameters
    ----------
    model : Module
        What is looked into; nothing in it is changed.
    layers : iterable of str
        Names of modules, as in `named_modules`.
    """

    def __init__(self, model: Any, layers: Iterable[str]) -> None:
        super().__init__()
        self.model = model
        self.layers = list(layers)

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the features by name; they are on the graph."""
        features: dict[str, Any] = {}

        def keep(name: str, module: Any, args: Any, output: Any) -> None:
            features[name] = output
            if len(features) == len(self.layers):
                raise _Enough

        modules = dict(self.model.named_modules())
        with contextlib.ExitStack() as hooks:
            for name in self.layers:
                hooks.enter_context(modules[name].register_forward_hook(functools.partial(keep, name)))
            with contextlib.suppress(_Enough):
                self.model(*args, **kwargs)
        return {name: features[name] for name in self.layers}


class SpectralMonitor:
    """Estimates the largest singular value of every linear layer's weight at each call, and can hold it at a bound.

    Each call takes one step of power iteration, whose vectors are buffers of the layer: they are saved with it, and
    loading a model that was saved without them works.

    Parameters
    ----------
    model : Module
        Its linear layers are watched.
    bound : float, optional
        Where weights are scaled down to, in a pre-hook, before every other one.
    """

    def __init__(self, model: Any, bound: float | None = None) -> None:
        self.bound = bound
        self.history: dict[str, list[float]] = {}
        self.handles = []
        for name, module in model.named_modules():
            if isinstance(module, nn.Linear):
                self.history[name] = []
                module.register_buffer("spectral_v", torch.ones_like(module.weight[0]).detach())
                self.handles += [
                    module.register_forward_pre_hook(self._hook(name), prepend=True),
                    module._register_load_state_dict_pre_hook(self._fill, with_module=True),
                ]

    def _hook(self, name: str) -> Any:
        def look(module: Any, args: Any) -> None:
            with torch.no_grad():
                weight = module.weight
                u = weight @ module.spectral_v
                v = weight.t() @ (u / u.norm())
                sigma = v.norm()
                module.spectral_v.copy_(v / sigma)
                self.history[name].append(sigma.item())
                if self.bound is not None and sigma.item() > self.bound:
                    weight.mul_(self.bound / sigma)

        return look

    @staticmethod
    def _fill(module: Any, state_dict: Any, prefix: str, *_: Any) -> None:
        state_dict.setdefault(prefix + "spectral_v", module.spectral_v)


def hook_count(model: Any) -> int:
    """Return how many hooks wait for calls of `model`, read from the dictionaries that PyTorch's modules have."""
    tables = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return sum(len(getattr(module, table)) for module in model.modules() for table in tables)


def make_model() -> Any:
    """Return a small network whose weights need no random numbers."""
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Sequential(nn.Linear(8, 8), nn.Tanh()), nn.Linear(8, 2))
    with torch.no_grad():
        for parameter in model.parameters():
            numbers = torch.arange(parameter.numel(), dtype=torch.float64)
            parameter.copy_((numbers * numbers + 1).sin().reshape(parameter.shape))
    return model
