"""Calls of public functions with a number in the place of each parameter that is one.

They are those that the rows of the table of samples make: a profiler sees which public function a row calls first, and
with what. `OTHERS` makes those that no row makes.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import warnings
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import lucid
from lucid.nn import functional as F
from tests.samples import all_samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Where a function is looked for: the first that has it names it.
PLACES = {"nn.functional.": F, "": lucid, "linalg.": lucid.linalg, "Tensor.": lucid.Tensor}


def _vector() -> lucid.Tensor:
    return lucid.tensor([0.5, -1.0, 2.0, 0.25])


def _matrix() -> lucid.Tensor:
    return lucid.tensor([[0.5, -1.0, 2.0], [0.25, 1.5, -0.75], [3.0, 0.125, 1.0]])


def _images(*shape: int) -> lucid.Tensor:
    return lucid.arange(float(np.prod(shape))).sin().reshape(shape)


def _places() -> lucid.Tensor:
    return lucid.tensor([[0, 1, 2, 0]])


def _spectrum() -> lucid.Tensor:
    return lucid.complex(_images(3, 4), _images(3, 4).cos())


def _unpooled(d: int, **settings: Any) -> Any:
    """Return what one of `max_unpool1d` to `max_unpool3d` makes of ones, one for each place."""
    places = lucid.arange(2**d).reshape(1, 1, *[2] * d)
    return getattr(F, f"max_unpool{d}d")(lucid.ones(1, 1, *[2] * d), places, **{"kernel_size": 2, **settings})


# Calls of functions without operands or derivatives, and of settings that no sample gives; they come before the rows.
OTHERS: list[Callable[[], Any]] = [
    lambda: F.gumbel_softmax(_matrix(), 0.5, eps=0.5, dim=0),
    lambda: lucid.unravel_index(_places(), (2, 3)),
    lambda: lucid.pinverse(_matrix(), 0.25),
    *(lambda of=of: lucid.linalg.pinv(_matrix(), **{of: 0.25}) for of in ("rcond", "atol", "rtol")),
    lambda: lucid.linalg.matrix_rank(_matrix(), 0.5),
    lambda: lucid.linalg.matrix_rank(_matrix(), atol=0.5, rtol=0.25),
    lambda: lucid.linalg.lstsq(_matrix(), _matrix(), 0.25).rank,
    lambda: lucid.slice_scatter(_matrix(), _matrix()[:1], 0, 1, 2),
    lambda: lucid.allclose(_matrix(), _matrix(), 0.5, 0.5),
    lambda: lucid.isclose(_matrix(), _matrix() + 0.25, 0.5, 0.5),
    lambda: lucid.tril_indices(2, 3, 1),
    lambda: lucid.triu_indices(2, 3, 1),
    lambda: lucid.sum(_matrix(), (0, 1)),
    lambda: F.embedding(_places(), _matrix(), max_norm=0.5, norm_type=1.0),
    lambda: F.embedding_bag(_places(), _matrix(), max_norm=0.5, norm_type=1.0),
    lambda: F.pad(_matrix(), (1, 1), value=0.5),
    lambda: lucid.addmm(_matrix(), _matrix(), _matrix(), beta=0.5, alpha=0.5),
    lambda: lucid.baddbmm(_images(2, 3, 3), _images(2, 3, 3), _images(2, 3, 3), beta=0.5, alpha=0.5),
    lambda: F.cross_entropy(_matrix(), lucid.tensor([0, 2, 1]), ignore_index=2),
    lambda: F.layer_norm(_matrix(), (3,)),
    lambda: F.rms_norm(_matrix(), (3,), eps=0.5),
    lambda: lucid.tile(_matrix(), (2, 1)),
    lambda: lucid.unsafe_split(_matrix(), 2),
    lambda: lucid.zeros(2, 3),
    lambda: lucid.ones(2, 3),
    lambda: lucid.empty(0, 3),
    lambda: lucid.full((2, 3), 1.5),
    lambda: lucid.full_like(_matrix(), 1.5),
    lambda: lucid.scalar_tensor(1.5),
    lambda: _matrix()[None, :1].squeeze(0, 1),
    lambda: lucid.linalg.matrix_power(_matrix(), 2),
    lambda: lucid.nan_to_num(_matrix().log(), 1.5, 2.5, -2.5),
    lambda: F.adaptive_max_pool3d(_images(1, 2, 4, 4, 4), (4, 3, 2)),
    lambda: F.lp_pool3d(_images(1, 2, 4, 4, 4), 2.0, 2, 1),
    lambda: F.fractional_max_pool2d(_images(1, 2, 6, 6), 3, output_ratio=(0.5, 0.5)),
    lambda: F.fractional_max_pool3d(_images(1, 2, 6, 6, 6), 2, output_ratio=(0.5, 0.5, 0.5)),
    *(lambda d=d: _unpooled(d, stride=3, padding=1, output_size=(3,) * d) for d in (1, 2, 3)),
    lambda: lucid.rand(2, 3),
    lambda: lucid.randn(2, 3),
    lambda: lucid.normal(1.0, 2.0, (2, 3)),
    lambda: lucid.randint(2, 3, (4,)),
    lambda: lucid.randint(low=2, high=3, size=(4,)),
    lambda: lucid.randint_like(_matrix(), 2, 3),
    lambda: lucid.randint_like(_matrix(), low=2, high=3),
    lambda: lucid.randperm(1),
    lambda: lucid.bernoulli(_matrix(), 1.0),
    lambda: lucid.multinomial(_matrix().abs(), 2),
    lambda: lucid.manual_seed(5),
    lambda: lucid.eye(2, 3),
    lambda: lucid.arange(1.0, 5.0, 2.0),
    lambda: lucid.linspace(1.0, 2.0, 3),
    lambda: lucid.logspace(1.0, 2.0, 3, base=2.0),
    lambda: lucid.bartlett_window(4),
    lambda: lucid.blackman_window(4),
    lambda: lucid.hann_window(4),
    lambda: lucid.hamming_window(4, False, 0.5, 0.25),
    lambda: lucid.kaiser_window(4, False, 2.0),
    lambda: lucid.repeat_interleave(_matrix(), lucid.tensor([1, 2, 1]), 0, output_size=4),
    lambda: _matrix().view(1, 9),
    lambda: lucid.unique_consecutive(_matrix(), dim=0),
    lambda: F.max_pool1d(_images(1, 2, 6), 2, 1),
    lambda: lucid.std_mean(_matrix(), 0, correction=2.0),
    lambda: lucid.var_mean(_matrix(), 0, correction=2.0),
    lambda: lucid.trapezoid(_matrix(), dx=0.5),
    lambda: lucid.frombuffer(bytearray(b"abc"), dtype=lucid.uint8, count=1, offset=1),
    lambda: lucid.stft(_vector(), 4, 2, 3, window=lucid.ones(3), return_complex=True),
    lambda: lucid.istft(_spectrum(), 4, 2, 3, window=lucid.ones(3), length=5),
]


def is_number(value: object) -> bool:
    """Tell whether a value is a number that is no bool, or several of them."""
    if isinstance(value, tuple | list):
        return bool(value) and all(map(is_number, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class Call:
    """A public function and what it is given.

    Attributes
    ----------
    path : str
        Its name in `lucid`, such as ``"nn.functional.elu"``.
    arguments : dict
        By parameter, in their order; tensors as arrays.
    """

    path: str
    arguments: dict[str, Any]

    @property
    def name(self) -> str:
        """Return the name of the function alone."""
        return self.path.rpartition(".")[2]

    @functools.cached_property
    def function(self) -> Any:
        """Return the function, without what gives it further keywords."""
        return inspect.unwrap(functools.reduce(getattr, self.path.split("."), lucid))

    def given(self, module: Any) -> dict[str, Any]:
        """Return what the function is given beside its defaults, by parameter, with tensors of a module."""
        defaults = {p.name: p.default for p in inspect.signature(self.function).parameters.values()}
        return {
            name: _of_module(module, value)
            for name, value in self.arguments.items()
            if not _is_default(value, defaults[name])
        }

    def __call__(self, module: Any, number: Callable[[Any], Any] = lambda value: value, of: str = "") -> Any:
        """Call the function of this name in `module`, with ``number(value)`` for each number of the parameter `of`."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        parameters = inspect.signature(self.function).parameters.values()
        several = any(p.kind is p.VAR_POSITIONAL and self.arguments[p.name] for p in parameters)
        for parameter in parameters:
            positional = parameter.kind in {parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD}
            value = _of_module(module, self.arguments[parameter.name])
            if parameter.name == of:
                value = _mapped(number, value)
            if parameter.kind is parameter.VAR_POSITIONAL:
                args += value
            elif parameter.kind is parameter.VAR_KEYWORD:
                kwargs |= value
            elif positional and (several or parameter.default is parameter.empty):
                args.append(value)
            elif parameter.name == of or not _is_default(self.arguments[parameter.name], parameter.default):
                kwargs[parameter.name] = value
        if several and hasattr(args[0], self.name):  # PyTorch's functions take sizes and dimensions in one tuple
            return getattr(args[0], self.name)(*args[1:], **kwargs)
        return functools.reduce(getattr, self.path.split("."), module)(*args, **kwargs)


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Return what a function makes of a number, or of each of several."""
    if isinstance(value, tuple | list):
        return type(value)(_mapped(function, each) for each in value)
    return function(value)


def _is_default(value: object, default: object) -> bool:
    return value is default or (not isinstance(value, np.ndarray) and type(value) is type(default) and value == default)


def _kept(value: Any) -> Any:
    """Return an argument with arrays for tensors."""
    if isinstance(value, lucid.Tensor):
        return value.numpy(force=True).copy()
    if type(value) in {tuple, list}:
        return type(value)(map(_kept, value))
    return value


def _of_module(module: Any, value: Any) -> Any:
    """Return a kept argument with tensors and dtypes of a module."""
    if isinstance(value, np.ndarray):
        return module.tensor(value)
    if isinstance(value, lucid.dtype):
        return getattr(module, str(value).removeprefix("lucid."))
    if type(value) in {tuple, list}:
        return type(value)(_of_module(module, each) for each in value)
    return value


@functools.cache
def _paths() -> dict[Any, list[str]]:
    """Return the names of public functions by their code: one for each name, in the first place that has it."""
    found: dict[Any, list[str]] = defaultdict(list)
    for place, holder in PLACES.items():
        for name in dir(holder):
            function = getattr(holder, name)
            if name.startswith("_") or not inspect.isfunction(function):
                continue
            paths = found[inspect.unwrap(function).__code__]
            # a method stands for a function only where there is none
            if not (paths if place == "Tensor." else [path for path in paths if path.rpartition(".")[2] == name]):
                paths.append(place + name)
    return found


def calls_of(call: Callable[[], Any]) -> list[Call]:
    """Return the public functions that something calls, and with what; not those that these call."""
    paths, seen, under_way = _paths(), [], []

    def profiler(frame: Any, event: str, _: object) -> None:
        if event == "call" and not under_way and frame.f_code in paths:
            under_way.append(frame)
            seen.append((frame.f_code, {name: _kept(value) for name, value in frame.f_locals.items()}))
        elif event == "return" and under_way and frame is under_way[-1]:
            under_way.clear()

    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        call()
    finally:
        sys.setprofile(before)
    return [Call(path, arguments) for code, arguments in seen for path in paths[code]]


@functools.cache
def all_calls() -> list[Call]:
    """Return the calls of all rows of the table of samples, and the others."""
    calls = list(OTHERS)
    for sample in all_samples():
        arrays = sample.inputs(np.random.default_rng(0))
        calls.append(lambda sample=sample, arrays=arrays: sample.op(*map(lucid.tensor, arrays)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [each for call in calls for each in calls_of(call)]


# A tensor in their place is an operand, or one number for each result or example, and may require grad.
OPERANDS = {
    "max.dim", "min.dim", "normal.mean", "normal.std", "quantile.q", "nanquantile.q", "index_fill.value",
    "masked_fill.value", "scatter.value", "nn.functional.gaussian_nll_loss.var", "nn.functional.ctc_loss.input_lengths",
    "nn.functional.ctc_loss.target_lengths",
}  # fmt: skip
# What they take is looked at as a number too, beside names of dimensions.
UNTOLD = {"transpose.dim0", "swapdims.dim0", "Tensor.repeat.sizes", "linalg.pinv.rcond"}


def numbers_of(path: str, function: Any) -> Iterator[str]:
    """Yield the parameters of a public function that are annotated as a number or as several."""
    for parameter in inspect.signature(function).parameters.values():
        key = f"{path}.{parameter.name}"
        number = re.match(r"(?!Tensor).*\b(int|float|Dims|Sizes|Number)\b", str(parameter.annotation))
        if (number or key in UNTOLD) and key not in OPERANDS:
            yield parameter.name


@dataclass(frozen=True)
class Row:
    """A call, of which one parameter is a number or several."""

    call: Call
    parameter: str

    @property
    def value(self) -> Any:
        """Return the number, or the numbers."""
        return self.call.arguments[self.parameter]

    @property
    def is_integral(self) -> bool:
        """Return whether the parameter takes ints alone."""
        annotation = str(inspect.signature(self.call.function).parameters[self.parameter].annotation)
        return not re.search(r"\b(float|Number)\b", annotation)

    def __call__(self, module: Any, number: Callable[[Any], Any]) -> Any:
        """Call the function of `module` with ``number(value)`` for each of the numbers."""
        return self.call(module, number, self.parameter)


@functools.cache
def number_rows() -> dict[str, Row]:
    """Return a call for each parameter that is a number, by its function and name; its own value, not the default."""
    rows: dict[str, Row] = {}
    for call in all_calls():
        signature = inspect.signature(call.function).parameters
        for name in numbers_of(call.path, call.function):
            value = call.arguments[name]
            key = f"{call.path}.{name}{', several' if isinstance(value, tuple | list) else ''}"
            default = signature[name].default
            if is_number(value) and (key not in rows or _is_default(rows[key].value, default)):
                rows[key] = Row(call, name)
    return rows
