"""Batch normalisation over the parts of a batch that several processes have."""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Self, cast

from lucid.arguments import unfit
from lucid.autograd.base import describe, wrap
from lucid.autograd.function import Function, once_differentiable
from lucid.base.arrays import Array, astype, namespace, on
from lucid.base.device import Device, device_of
from lucid.collectives.group import ProcessGroup
from lucid.collectives.reduction import tree_sum
from lucid.collectives.world import default_group
from lucid.errors import SettingError, ShapeError
from lucid.nn.layers.normalisation.batch import BatchNorm
from lucid.nn.module.module import Module
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.base.rows import sum_of
from lucid.ops.layers.batch_normalisation import MeanOfBatches, track
from lucid.ops.layers.normalisation import channels_of, check_affine, real_operand
from lucid.settings.checks import ranged

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor


class SyncBatchNorm(BatchNorm):
    """Batch normalisation by the mean and variance, in training, of the batches of all processes together.

    Each of `num_features` channels, dimension 1 of an input of at least two, is normalised. Processes may have batches
    of different sizes. Their statistics are added in an order that their number alone decides, in float64, by one
    collective in forward and one in backward, so that a run repeats bit by bit. A process that is alone, and
    evaluation, need none: the layer is `BatchNorm1d`, `BatchNorm2d` or `BatchNorm3d` then.

    Notes
    -----
    In training among several processes it has no second derivative: a NotDifferentiableError is raised where one is
    computed. Gradients of weight and bias are those of this process's batch, as of each
    parameter, and `DistributedDataParallel` puts them together.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> nn.SyncBatchNorm(1)(lucid.tensor([[1.0], [3.0]]))
    tensor([[-1.0000],
            [ 1.0000]], grad_fn=<NormaliseBackward0>)
    """

    @ranged
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-05,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Device = None,
        dtype: Dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = _checked_group(process_group)

    def check_dimensions(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ShapeError(f"SyncBatchNorm: expected at least 2D input, got {describe(input)}")

    def normalised(
        self, input: Tensor, mean: Tensor | None, variance: Tensor | None, momentum: float | MeanOfBatches
    ) -> Tensor:
        if self.training:
            group = default_group("SyncBatchNorm") if self.process_group is None else self.process_group
            if group.size() > 1:
                return _normalised(input, mean, variance, self.weight, self.bias, momentum, self.eps, group)
        return super().normalised(input, mean, variance, momentum)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Return `module` with each layer of batch normalisation in it replaced by one over all processes.

        The new layers have the parameters, buffers, hooks and settings of the old ones, which they share with them.

        Parameters
        ----------
        module : Module
            Its layers are replaced in place; if it is a layer of batch normalisation itself, the new one is returned.
        process_group : ProcessGroup, optional
            The processes; all if None.

        Raises
        ------
        SettingError
            If a layer is a lazy one, whose channels are not known yet.

        Examples
        --------
        >>> from lucid import nn
        >>> nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)))
        Sequential(
          (0): Linear(in_features=3, out_features=2, bias=True)
          (1): SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
        )
        """
        if not isinstance(module, Module):
            raise unfit(module, "a Module", "module")
        group = _checked_group(process_group)
        layers = [layer for layer in module.modules() if isinstance(layer, BatchNorm)]
        lazy = [layer for layer in layers if getattr(layer, "cls_to_become", None) is not None]
        if lazy:
            raise SettingError(
                f"convert_sync_batchnorm: {type(lazy[0]).__name__}: its channels are not known yet: call the module "
                "with an input first"
            )
        # one that stands at two places stays one
        made = {id(layer): cls._converted(layer, group) for layer in layers}
        for parent in module.modules():
            for name, child in list(vars(parent)["_modules"].items()):
                if id(child) in made:
                    setattr(parent, name, made[id(child)])
        return made.get(id(module), module)

    @classmethod
    def _converted(cls, layer: BatchNorm, group: ProcessGroup | None) -> Self:
        """Return a layer of this class in place of another, with its attributes and the handles of its hooks."""
        converted = cls.__new__(cls)
        vars(converted).update({
            name: copy.copy(cast("Any", value)) if type(value) is dict else value for name, value in vars(layer).items()
        })  # fmt: skip
        converted.process_group = group
        return converted


def _checked_group(group: object) -> ProcessGroup | None:
    if group is not None and not isinstance(group, ProcessGroup):
        raise unfit(group, "a ProcessGroup that this process is in, or None", "process_group")
    return group


# ---- the function ----


def _normalised(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None, bias: Tensor | None,
    momentum: float | MeanOfBatches, eps: float, group: ProcessGroup,
) -> Tensor:  # fmt: skip
    """Return `input` normalised by the statistics of all processes of `group`, and update the running ones."""
    x = real_operand("SyncBatchNorm", input)
    channels, _ = channels_of("SyncBatchNorm", x, {"running_mean": running_mean, "running_var": running_var})
    if not channels:
        raise ShapeError("SyncBatchNorm: number of input channels should be non-zero, got 0")
    check_affine("SyncBatchNorm", x, (channels,), "one for each channel", weight=weight, bias=bias)
    out, mean, variance, total = _Synchronised.apply(x, weight, bias, eps, group)
    # only where this process has no say of its own does the host wait for the number
    count = x.array.size // channels
    if count < 2:
        count = int(total.array)
        if count == 1:
            raise ShapeError(
                "SyncBatchNorm: Expected more than 1 value per channel when training, in all processes together, got "
                f"input size {list(x.array.shape)} here, and nothing elsewhere"
            )
    if count:
        track(running_mean, running_var, mean, variance, 1.0, momentum)
    return out


class _Synchronised(Function):
    """Values brought to the mean 0 and the variance 1 of all processes' batches, by one collective in each direction.

    Each process makes mean and sum of squares about it of its own batch, and those of all follow from these, so that
    nothing cancels where values lie far from 0 (Chan, Golub and LeVeque, 1983).
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, group: ProcessGroup
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the result, mean and unbiased variance of the whole batch, and how many values a channel has."""
        array = x.array
        xp = namespace(array)
        channels = array.shape[1]
        shape = (1, channels, *[1] * (array.ndim - 2))
        axes = (0, *range(2, array.ndim))
        with on(array):
            values = astype(array, accumulation_dtype(array.dtype))
            count = array.size // channels
            own = sum_of(xp, values, axes, keepdims=True) / max(count, 1)
            centred = values - own
            drift = sum_of(xp, centred, axes).astype("f8")
            squares = sum_of(xp, centred * centred, axes).astype("f8") - drift * drift / max(count, 1)
            precise = own.reshape(-1).astype("f8") + drift / max(count, 1)
            mine = xp.concatenate([xp.full(1, count, "f8"), precise, squares])
        rows = _gathered(group, mine)
        with on(array):
            counts, means, spreads = rows[:, :1], rows[:, 1 : channels + 1], rows[:, channels + 1 :]
            total = tree_sum(list(counts))
            mean = tree_sum(list(counts * means)) / xp.maximum(total, 1)
            spread = tree_sum(list(spreads + counts * (means - mean) ** 2))
            scale = 1 / xp.sqrt(spread / xp.maximum(total, 1) + eps)
            factor = scale if weight is None else scale * weight.array.astype("f8")
            shift = (own.reshape(-1) - mean).astype(values.dtype)
            out = centred + shift.reshape(shape)
            out *= factor.reshape(shape).astype(values.dtype)
            if bias is not None:
                out += bias.array.reshape(shape).astype(values.dtype)
            unbiased = spread / xp.maximum(total - 1, 1)
            statistics = wrap(mean.astype(values.dtype)), wrap(unbiased.astype(values.dtype)), wrap(total[0])
        ctx.group = group
        ctx.save_for_backward(x, weight, bias, wrap(own), wrap(shift), wrap(scale), wrap(total))
        ctx.mark_non_differentiable(*statistics)
        return wrap(astype(out, array.dtype)), *statistics

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Any, ...]:
        """Return the gradients of x, of all processes' results, and those of weight and bias, of this process's."""
        saved: list[Any] = [None if each is None else each.array for each in ctx.saved_tensors]
        x, weight, bias, own, shift, scale, total = saved
        xp: ModuleType = namespace(x)
        shape = (1, x.shape[1], *[1] * (x.ndim - 2))
        axes = (0, *range(2, x.ndim))
        with on(x):
            upper, values = astype(grad_outputs[0].array, own.dtype), astype(x, own.dtype)
            centred = values - own + shift.reshape(shape)
            sums = xp.stack([sum_of(xp, upper, axes), sum_of(xp, upper * centred, axes)]).astype("f8")
            to_bias = None if bias is None else wrap(astype(sums[0], bias.dtype, copy=True))
            to_weight = None if weight is None else wrap(astype(sums[1] * scale, weight.dtype))
        if not ctx.needs_input_grad[0]:
            return None, to_weight, to_bias, None, None
        sums = tree_summed(ctx.group, sums, "SyncBatchNorm", f"sums of SyncBatchNorm, {sums.size} numbers, as a tree")
        with on(x):
            level, slope = sums / xp.maximum(total, 1)
            slope *= scale * scale
            factor = scale if weight is None else scale * weight.astype("f8")
            level, slope, factor = [each.reshape(shape).astype(own.dtype) for each in (level, slope, factor)]
            to_x = wrap(astype((upper - level - centred * slope) * factor, x.dtype))
        return to_x, to_weight, to_bias, None, None


def _gathered(group: ProcessGroup, array: Array) -> Any:
    """Return the arrays of all processes as rows."""
    with on(array):
        rows = namespace(array).empty((group.size(), *array.shape), array.dtype)
    engine = group.engine(device_of(array).type, "SyncBatchNorm")
    text = f"statistics of SyncBatchNorm, {array.size} numbers"
    group.begin(engine, "all_gather", text, partial(engine.all_gather, rows, array)).wait()
    return rows


def tree_summed(group: ProcessGroup, array: Array, place: str, text: str) -> Array:
    """Return an array after the sum of those of all processes, added as a tree, is written into it."""
    engine = group.engine(device_of(array).type, place)
    group.begin(engine, "all_reduce", text, partial(engine.tree_all_reduce, array), phases=2).wait()
    return array
