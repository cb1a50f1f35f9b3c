"""What `SyncBatchNorm` does among processes: compared with `BatchNorm` of the whole batch in one."""

from __future__ import annotations

import numpy as np

import lucid
from lucid import distributed as dist
from lucid import nn
from lucid.errors import NotDifferentiableError, SettingError, ShapeError
from lucid.nn.parallel import DistributedDataParallel
from tests.distributed.scripts.given import bits, drawn, refused, same_everywhere

TOLERANCES = {lucid.float64: 1e-12, lucid.float32: 2e-5, lucid.float16: 4e-3, lucid.bfloat16: 3e-2}
KINDS = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}


def rows_of(rank, size, empty):
    """Return how many rows a process has: each another number, one of them none."""
    return 0 if empty and rank == size - 1 else rank + 2


def whole_batch(size, shape, dtype, empty, shift=0.0):
    """Return the rows of all processes, and where those of each begin."""
    ends = np.cumsum([0, *(rows_of(rank, size, empty) for rank in range(size))])
    rng = drawn(3, len(shape))
    x, upper = (lucid.tensor(rng.standard_normal((int(ends[-1]), *shape))).to(dtype) for _ in range(2))
    return x + shift, upper, ends


def near(actual, expected, tolerance, what):
    actual, expected = (each.detach().to(lucid.float64).array for each in (actual, expected))
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance, err_msg=str(what))


def summed(tensor):
    """Return the sum of a tensor of all processes."""
    total = tensor.detach().to(lucid.float64)
    dist.all_reduce(total)
    return total


def norm_is_that_of_the_whole_batch(rank, size):
    """Compare result, gradients and running statistics with those of one process with all rows, for any sizes."""
    for shape in ((3,), (3, 4), (2, 3, 2), (2, 1, 2, 2)):
        for dtype, tolerance in TOLERANCES.items():
            for settings in (
                {},
                {"momentum": None},
                {"affine": False},
                {"track_running_stats": False},
                {"bias": False},
            ):
                for empty in (False, True):
                    case = shape, dtype, settings, empty
                    x, upper, ends = whole_batch(size, shape, dtype, empty)
                    one = KINDS[1 + len(shape)](shape[0], dtype=lucid.float64, **settings)
                    ours = nn.SyncBatchNorm(shape[0], dtype=dtype, **settings)
                    for place, (name, parameter) in enumerate(ours.named_parameters()):
                        values = lucid.tensor(drawn(4, place).standard_normal(shape[0])).to(dtype)
                        for each in (parameter, getattr(one, name)):
                            each.data.copy_(values)
                    all_rows = x.to(lucid.float64, copy=True).requires_grad_()
                    mine = x[ends[rank] : ends[rank + 1]].clone().requires_grad_()
                    for _ in range(2):
                        expected, out = one(all_rows), ours(mine)
                    (expected * upper.to(lucid.float64)).sum().backward()
                    (out * upper[ends[rank] : ends[rank + 1]]).sum().backward()
                    assert out.dtype is dtype
                    near(out, expected[ends[rank] : ends[rank + 1]], tolerance, case)
                    near(mine.grad, all_rows.grad[ends[rank] : ends[rank + 1]], tolerance, case)
                    for name, parameter in ours.named_parameters():
                        near(summed(parameter.grad), getattr(one, name).grad, 10 * tolerance, (name, case))
                    for name, buffer in ours.named_buffers():
                        near(buffer, getattr(one, name), tolerance, (name, case))
                        assert same_everywhere(buffer)


def norm_far_from_zero(rank, size):
    """Compare variances of values that lie close together far from 0, which keep their digits."""
    x, _, ends = whole_batch(size, (2,), lucid.float32, empty=False, shift=3e3)
    layer = nn.SyncBatchNorm(2, affine=False)
    out = layer(x[ends[rank] : ends[rank + 1]])
    rows = x.array.astype(np.float64)
    expected = (rows - rows.mean(0)) / np.sqrt(rows.var(0) + 1e-5)
    np.testing.assert_allclose(out.array, expected[ends[rank] : ends[rank + 1]], atol=2e-3)
    np.testing.assert_allclose(layer.running_var.array, 0.9 + 0.1 * rows.var(0, ddof=1), rtol=1e-6)


def norm_takes_one_collective_each_way(rank, size):
    """There is one in forward and one in backward, none in evaluation, and two runs have the same bits."""
    group = dist.new_group()
    layer = nn.SyncBatchNorm(3, process_group=group)
    x = lucid.tensor(drawn(5, rank).standard_normal((4, 3))).to(lucid.float32).requires_grad_()
    results = []
    for _ in range(2):
        started, x.grad = group.started, None
        out = layer(x)
        assert group.started == started + 1
        (out * out.detach().exp()).sum().backward()
        assert group.started == started + 2
        results.append(bits(out, x.grad))
    assert results[0] == results[1]
    layer.eval()
    started = group.started
    layer(x).sum().backward()
    assert group.started == started
    plain = nn.BatchNorm1d(3).eval()
    plain.load_state_dict(layer.state_dict())
    assert bits(layer(x)) == bits(plain(x))


def norm_refuses(rank, size):
    """Second derivatives, single values and shards of a tree are refused in all processes."""
    layer = nn.SyncBatchNorm(2)
    x = lucid.ones(3, 2, requires_grad=True)
    (grad,) = lucid.autograd.grad(layer(x).exp().sum(), x, create_graph=True)
    refused(NotDifferentiableError, lambda: grad.sum().backward(), "once_differentiable")
    refused(ShapeError, lambda: layer(lucid.ones(int(rank == 0), 2)), "more than 1 value per channel")
    assert layer(lucid.ones(1, 2)).shape == (1, 2)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 2), layer), shards=size if size != 3 else None)
    if size != 3:
        refused(SettingError, lambda: next(iter(model.split(lucid.ones(4, 2)))), "1 is a SyncBatchNorm")


def norm_in_a_model(rank, size):
    """Compare a converted model that processes train with one process that has the whole batch."""
    lucid.manual_seed(0)
    one = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2)).double()
    lucid.manual_seed(0)
    ours = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2)).double()
    ours = DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(ours))
    x = lucid.tensor(drawn(6).standard_normal((4 * size, 2, 4, 4)))
    one(x).square().mean().backward()
    ours(x[4 * rank : 4 * rank + 4]).square().mean().backward()
    for (name, parameter), expected in zip(ours.module.named_parameters(), one.parameters(), strict=True):
        near(parameter.grad, expected.grad, 1e-12, name)
    for (name, buffer), expected in zip(ours.module.named_buffers(), one.buffers(), strict=True):
        near(buffer, expected, 1e-12, name)


CHECKS = (
    norm_is_that_of_the_whole_batch,
    norm_far_from_zero,
    norm_takes_one_collective_each_way,
    norm_refuses,
    norm_in_a_model,
)
