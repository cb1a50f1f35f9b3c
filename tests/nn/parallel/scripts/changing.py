"""What happens to a wrapped module between passes: conversions, freezing, dropped gradients, buffers, odd forms."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import lucid
from lucid import distributed as dist
from lucid import nn
from lucid.errors import ArgumentError, DistributedError, HookTypeError, InplaceError, SettingError
from lucid.nn.parallel import DistributedDataParallel
from tests.collectives.jobs import go_through, host
from tests.nn.parallel.scripts import joining
from tests.nn.parallel.scripts.reducing import Branching, batch, close, gradients, loss_of, mean, model

RANK, SIZE = 0, 1


def same_everywhere(tensors):
    """Check that processes have the same bits."""
    for tensor in tensors:
        rows = [lucid.zeros_like(tensor) for _ in range(SIZE)]
        dist.all_gather(rows, tensor.detach())
        assert all((row.array == rows[0].array).all() for row in rows)


def converted_parameters_keep_their_digits():
    """After passes in float32 gradients of float64 are put together in float64; other shapes have other buckets."""
    wide = lambda module, rank: (module(batch(rank).double() / 3) ** 2).sum()
    expected = mean(model().double(), wide, range(SIZE))
    for mib in (25, 1e-5):
        for view in (False, True):
            wrapped = DistributedDataParallel(model(), bucket_cap_mb=mib, gradient_as_bucket_view=view)
            for _ in range(2):
                loss_of(wrapped, RANK).backward()
            wrapped.zero_grad()
            wrapped.double()
            wide(wrapped, RANK).backward()
            for got, right in zip(gradients(wrapped), expected, strict=True):
                assert got.dtype == np.float64
                assert np.allclose(got, right, rtol=1e-13, atol=1e-13)
            last = wrapped.module[3]
            last.weight.data, last.bias.data = lucid.ones(5, 30).double(), lucid.ones(5).double()
            wrapped.zero_grad()
            wide(wrapped, RANK).backward()
            assert last.bias.grad.shape == (5,)
            same_everywhere(parameter.grad for parameter in wrapped.parameters())


def frozen_and_unfrozen():
    """What is frozen after wrapping keeps its gradient, and may return; what was frozen before must not come."""
    wrapped = DistributedDataParallel(model())
    wrapped.module[0].requires_grad_(False)
    loss_of(wrapped, RANK).backward()
    assert wrapped.module[0].weight.grad is None
    wrapped.module[0].requires_grad_(True)
    wrapped.zero_grad()
    loss_of(wrapped, RANK).backward()
    close(gradients(wrapped), mean(model(), loss_of, range(SIZE)))
    module = model()
    module[0].requires_grad_(False)
    wrapped = DistributedDataParallel(module)
    loss_of(wrapped, RANK).backward()
    module[0].requires_grad_(True)
    with pytest.raises(DistributedError, match=r"0\.weight requires grad, and did not when the module was wrapped"):
        wrapped(batch(RANK))
    del wrapped
    again = DistributedDataParallel(module)
    again.zero_grad()
    loss_of(again, RANK).backward()
    close(gradients(again), mean(model(), loss_of, range(SIZE)))


def forms_that_change_are_noticed():
    """Whatever would have a gradient that is not put together raises in the next forward; the rest may change."""

    def hidden(net):
        net[0]._parameters["weight"] = nn.Parameter(lucid.ones(40, 6))

    changes = {
        "a parameter": lambda net: setattr(net[3], "bias", nn.Parameter(lucid.ones(3))),
        "one past its attribute": hidden,
        "the last one is gone": lambda net: setattr(net[3], "bias", None),
        "one more": lambda net: net[3].register_parameter("more", nn.Parameter(lucid.ones(3))),
        "a module": lambda net: setattr(net, "2", nn.Linear(40, 30)),
        "a module more": lambda net: net.append(nn.Linear(3, 3)),
        "a module less": lambda net: net.__delitem__(2),
        "a table": lambda net: vars(net[0]).update(
            _parameters={**net[0]._parameters, "more": nn.Parameter(lucid.ones(3))}
        ),
    }
    for name, change in changes.items():
        wrapped = DistributedDataParallel(model())
        loss_of(wrapped, RANK).backward()
        change(wrapped.module)
        for _ in range(2):
            with pytest.raises(DistributedError, match="was added, removed or replaced"):
                wrapped(batch(RANK))
                raise AssertionError(name)
    wrapped = DistributedDataParallel(model())
    own = wrapped.module
    wrapped.module = model()
    with pytest.raises(DistributedError, match="was added, removed or replaced"):
        wrapped(batch(RANK))
    wrapped.module = own
    own[1] = nn.Tanh()
    for _ in range(2):
        wrapped.zero_grad()
        loss_of(wrapped, RANK).backward()
        close(gradients(wrapped), mean(model(nn.Tanh), loss_of, range(SIZE)))
    own[0].weight = nn.Parameter(own[0].weight.detach())
    with pytest.raises(DistributedError, match="was added, removed or replaced"):
        wrapped(batch(RANK))


def gradients_that_are_dropped_count_as_none():
    """By hooks in all processes, or after no_sync: nothing is written in their place."""
    wrapped = DistributedDataParallel(model())
    first = wrapped.module[0].weight

    def drop(parameter):
        parameter.grad = None

    first.register_post_accumulate_grad_hook(drop)
    loss_of(wrapped, RANK).backward()
    assert first.grad is None
    assert wrapped.module[0].bias.grad is not None
    wrapped = DistributedDataParallel(Branching())
    with wrapped.no_sync():
        wrapped(batch(RANK), 0).sum().backward()
    wrapped.zero_grad()
    wrapped(batch(RANK), 1).sum().backward()
    assert wrapped.module.even.weight.grad is None
    assert wrapped.module.odd.weight.grad is not None
    with wrapped.no_sync():  # kept, it is put together with the next pass, which does not touch it
        wrapped(batch(RANK), 0).sum().backward()
    wrapped(batch(RANK), 1).sum().backward()
    same_everywhere([wrapped.module.even.weight.grad])
    wrapped.module.even.weight.grad.fill_(RANK)
    wrapped(batch(RANK), 1).sum().backward()  # what no process touches keeps what it had, also what differs
    assert host(wrapped.module.even.weight.grad).tolist() == np.full((2, 5), RANK).tolist()


def passes_that_wait_are_chosen_by_an_attribute():
    """PyTorch's `require_backward_grad_sync`, as scripts set it: no pass before the last is put together."""
    wrapped = DistributedDataParallel(model())
    assert wrapped.require_backward_grad_sync
    for step in range(3):
        wrapped.require_backward_grad_sync = step == 2
        loss_of(wrapped, RANK).backward()
        assert wrapped.logging_data().get("passes", 0) == (step == 2)
    close(gradients(wrapped), [3 * each for each in mean(model(), loss_of, range(SIZE))])
    with wrapped.no_sync():
        assert not wrapped.require_backward_grad_sync
    with pytest.raises(TypeError, match="require_backward_grad_sync"):
        wrapped.require_backward_grad_sync = "no"


class Masked(nn.Module):
    """Has a buffer that backward needs, and one that changes."""

    def __init__(self, mask):
        super().__init__()
        lucid.manual_seed(3)
        self.linear, self.norm = nn.Linear(6, 3), nn.BatchNorm1d(3)
        self.register_buffer("mask", mask)

    def forward(self, x):
        return self.norm(self.linear(x)) * self.mask


def buffers_that_are_alike_are_not_written_to():
    """Two forwards may come before one backward that needs them; memory that cannot be written raises everywhere."""
    wrapped = DistributedDataParallel(Masked(lucid.tensor([1.0, 0.0, 2.0])))
    (loss_of(wrapped, RANK) + loss_of(wrapped, RANK)).backward()
    same_everywhere(parameter.grad for parameter in wrapped.parameters())
    wrapped(batch(RANK))
    assert wrapped.module.norm.num_batches_tracked.item() == 3
    wrapped.module.mask.copy_(lucid.tensor([1.0, 0.0 if RANK else -0.0, 2.0]))  # equal, and not the same
    wrapped(batch(RANK))
    assert np.signbit(host(wrapped.module.mask)).tolist() == [False, True, False]
    with pytest.raises(InplaceError, match="expand"):
        DistributedDataParallel(Masked(lucid.ones(3).expand(4, 3)))


class Odd(nn.Module):
    """Parameters of several dtypes, of no dimensions, and of no elements; one that two modules have."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(lucid.tensor(1.5))
        self.empty = nn.Parameter(lucid.zeros(0, 3))
        self.complex = nn.Parameter(lucid.ones(3, dtype=lucid.complex64))
        self.short = nn.Parameter(lucid.ones(3, dtype=lucid.bfloat16))
        self.wide = nn.Parameter(lucid.ones(3, dtype=lucid.float64))
        self.one, self.other = nn.Linear(6, 6), nn.Linear(6, 6)
        with lucid.no_grad():
            for linear in (self.one, self.other):
                linear.weight.fill_(0.5)
                linear.bias.fill_(0.25)
        self.other.weight = self.one.weight

    def forward(self, x):
        x = self.other(self.one(x))[:, :3] * self.scale
        return (x * self.short.float() * self.wide.float()).sum() + (x * self.complex).abs().sum() + self.empty.sum()


def parameters_of_every_form():
    """Each is put together in its own dtype; also by a process whose part of the batch is empty."""
    loss = lambda module, rank: module(batch(rank)[: 4 * (rank > 0)])
    expected = mean(Odd(), loss, range(SIZE))
    for settings in (
        {},
        {"gradient_as_bucket_view": True},
        {"reduction": "tree"},
        {"gradient_as_bucket_view": True, "reduction": "tree"},
        {"bucket_cap_mb": 1e-5},
    ):
        wrapped = DistributedDataParallel(Odd(), **settings)
        for _ in range(2):
            wrapped.zero_grad()
            loss(wrapped, RANK).backward()
            for parameter, right in zip(wrapped.parameters(), expected, strict=True):
                assert parameter.grad.dtype is parameter.dtype
                assert np.allclose(
                    parameter.grad.array.astype(right.dtype), right, rtol=1e-2 if right.itemsize == 2 else 1e-6
                )


def the_first_bucket_is_small():
    """It is on its way early: it ends with the gradient that makes it 1 MiB, however large the others may be."""
    wrapped = DistributedDataParallel(nn.Sequential(*(nn.Linear(400, 400) for _ in range(3))))
    wrapped(lucid.ones(1, 400)).sum().backward()
    buckets = [each["parameters"] for each in wrapped.logging_data()["buckets"]]
    assert buckets == [["2.bias", "2.weight", "1.bias", "1.weight"], ["0.bias", "0.weight"]]


def wrong_calls():
    """Devices that are no list, other dimensions, and hooks that return something say what was expected."""
    cases = (
        (ArgumentError, "device_ids: expected a list", lambda: DistributedDataParallel(model(), device_ids=0)),
        (SettingError, "dim: a process computes on one", lambda: DistributedDataParallel(model(), dim=1)),
    )
    for error, words, call in cases:
        with pytest.raises(error, match=words):
            call()
    wrapped = DistributedDataParallel(model())
    wrapped.register_reduced_grad_hook(lambda parameter: parameter.grad)
    with pytest.raises(HookTypeError, match=r"reduced grad hook .*: expected None to be returned, got Tensor"):
        loss_of(wrapped, RANK).backward()


def inputs_that_are_parameters_are_put_together():
    """`backward(inputs=)` of parameters accumulates; of that, and of a gradient penalty, there is nothing to say."""
    wrapped = DistributedDataParallel(model())
    loss_of(wrapped, RANK).backward(inputs=list(wrapped.parameters()))
    close(gradients(wrapped), mean(model(), loss_of, range(SIZE)))

    def penalty(module, rank):
        x = batch(rank).requires_grad_()
        (slope,) = lucid.autograd.grad(module(x).sum(), x, create_graph=True)
        return slope.square().sum() + loss_of(module, rank)

    smooth = DistributedDataParallel(model(nn.Tanh))
    with warnings.catch_warnings(action="error"):
        penalty(smooth, RANK).backward()
    close(gradients(smooth), mean(model(nn.Tanh), penalty, range(SIZE)))


def views_that_grow_again_are_refused():
    """A gradient in a bucket's memory that grows while that is on its way is an error; one of its own is sent again."""
    wrapped = DistributedDataParallel(model(), bucket_cap_mb=1e-5, gradient_as_bucket_view=True)
    last = wrapped.module[3]

    def again(_):
        with lucid.enable_grad():
            last(lucid.ones(1, 30)).sum().backward()

    wrapped.module[0].weight.register_hook(again)
    for _ in range(2):  # they are not in memory of the buckets of a pass before these have come back
        loss_of(wrapped, RANK).backward()
    with pytest.raises(DistributedError, match=r"gradient of 3\.\w+ has grown again .* zero_grad\(\) before the pass"):
        loss_of(wrapped, RANK).backward()
    dist.destroy_process_group()
    dist.init_process_group(timeout=60)


CHECKS = (
    converted_parameters_keep_their_digits,
    frozen_and_unfrozen,
    forms_that_change_are_noticed,
    gradients_that_are_dropped_count_as_none,
    passes_that_wait_are_chosen_by_an_attribute,
    buffers_that_are_alike_are_not_written_to,
    parameters_of_every_form,
    the_first_bucket_is_small,
    wrong_calls,
    inputs_that_are_parameters_are_put_together,
    views_that_grow_again_are_refused,
    *joining.CHECKS,
)

if __name__ == "__main__":
    dist.init_process_group(timeout=60)
    RANK, SIZE = dist.get_rank(), dist.get_world_size()
    go_through(CHECKS, RANK)
