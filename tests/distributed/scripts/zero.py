"""What `ZeroRedundancyOptimizer` does among processes: compared with the optimizer itself, on all parameters."""

from __future__ import annotations

import sys
from pathlib import Path

import lucid
from lucid import distributed as dist
from lucid import nn
from lucid.collectives.world import NON_MEMBER
from lucid.distributed.algorithms import Join
from lucid.distributed.optim import ZeroRedundancyOptimizer
from lucid.errors import DistributedError, SettingError, StateDictError
from lucid.nn.parallel import DistributedDataParallel
from lucid.optim import SGD, Adam, AdamW, Muon
from lucid.optim.lr_scheduler import OneCycleLR
from tests.distributed.scripts.given import bits, drawn, refused, same_everywhere

SHAPES = ((7, 3), (5,), (4, 4), (2, 3, 2), (), (9,))
DTYPES = (lucid.float32, lucid.float64, lucid.bfloat16, lucid.float16)


def parameters(dtypes=DTYPES, shapes=SHAPES):
    """Return parameters of several shapes and dtypes, the same in all processes."""
    rng = drawn(1)
    return [
        lucid.tensor(rng.standard_normal(shape)).to(dtypes[index % len(dtypes)]).requires_grad_()
        for index, shape in enumerate(shapes)
    ]


def give_gradients(params, step):
    """Give all but one parameter a gradient, the same in all processes."""
    rng = drawn(2, step)
    for index, param in enumerate(params):
        grad = lucid.tensor(rng.standard_normal(tuple(param.shape))).to(param.dtype)
        param.grad = None if index == step % len(params) else grad


def pair(kind, process_group=None, groups=None, dtypes=DTYPES, **settings):
    """Return a plain optimizer and one of several processes, with their parameters."""
    shapes = tuple(shape for shape in SHAPES if kind is not Muon or len(shape) == 2)
    ours, theirs = parameters(dtypes, shapes), parameters(dtypes, shapes)
    arranged = groups or (lambda params: params)
    return (
        kind(arranged(theirs), **settings), theirs,
        ZeroRedundancyOptimizer(arranged(ours), kind, process_group, **settings), ours,
    )  # fmt: skip


def two_groups(params):
    """Return two groups, of which one has settings of its own."""
    return [{"params": params[:2], "lr": 0.01}, {"params": params[2:]}]


def zero_has_the_bits_of_one(rank, size):
    """Every optimizer changes each parameter as it does alone, and keeps the state of each in one process."""
    for kind, settings in (
        (AdamW, {"lr": 0.1, "amsgrad": True}),
        (SGD, {"lr": 0.1, "momentum": 0.9}),
        (Muon, {"lr": 0.1}),
        (SGD, {"lr": 0.1}),
    ):
        dtypes = (lucid.float32,) if kind is Muon else DTYPES
        plain, theirs, zero, ours = pair(kind, groups=None if kind is Muon else two_groups, dtypes=dtypes, **settings)
        schedules = [OneCycleLR(each, 0.5, total_steps=9) for each in (plain, zero) if "momentum" in settings]
        for step in range(4):
            for params, optimizer in ((theirs, plain), (ours, zero)):
                give_gradients(params, step)
                optimizer.step()
            for schedule in schedules:
                schedule.step()
            assert bits(*ours) == bits(*theirs), (kind, step)
            assert [group["lr"] for group in zero.param_groups] == [group["lr"] for group in plain.param_groups]
        assert same_everywhere(*ours)
        kept = lucid.tensor([len(zero.state)])
        assert {*map(id, zero.state)} <= {*map(id, ours)}
        dist.all_reduce(kept)
        assert kept.item() == len(plain.state), kind
        zero.zero_grad()
        assert all(param.grad is None for param in ours)


def zero_deals_by_size(rank, size):
    """No process has more than its share and the largest parameter."""
    params = [lucid.zeros(1 + index % 5, requires_grad=True) for index in range(20)]
    zero = ZeroRedundancyOptimizer(params, SGD, lr=0.1)
    own = sum(param.array.size for param in zero.optim.param_groups[0]["params"])
    assert own <= sum(param.array.size for param in params) / size + 5
    everyone = lucid.tensor([own])
    dist.all_reduce(everyone)
    assert everyone.item() == sum(param.array.size for param in params)
    params = [*(lucid.zeros(1, requires_grad=True) for _ in range(10 * size - 10)), lucid.zeros(10, requires_grad=True)]
    zero = ZeroRedundancyOptimizer(params, SGD, lr=0.1)  # the largest first, or it would come on top of a share
    assert sum(param.array.size for param in zero.optim.param_groups[0]["params"]) == 10
    alone = ZeroRedundancyOptimizer([lucid.zeros(2, requires_grad=True)], SGD, lr=0.1)
    alone.step()
    assert len(alone.optim.param_groups[0]["params"]) == (rank == 0)


def zero_is_saved_from_one_process(rank, size):
    """Compare the state of all, in the process that asks for it, with the plain one; the next step ends it."""
    plain, theirs, zero, ours = pair(AdamW, groups=two_groups, lr=0.1)
    assert zero.param_groups[0]["lr"] == 0.01
    for step in range(2):
        give_gradients(theirs, step)
        give_gradients(ours, step)
        plain.step()
        zero.step()
    plain.param_groups[1]["lr"] = zero.param_groups[1]["lr"] = 0.3
    last = size - 1
    zero.consolidate_state_dict(to=last)
    if rank == last:
        saved, expected = zero.state_dict(), plain.state_dict()
        assert saved["param_groups"] == expected["param_groups"]
        assert saved["state"].keys() == expected["state"].keys()
        for number, entries in expected["state"].items():
            for name, value in entries.items():
                assert saved["state"][number][name].dtype is value.dtype, (number, name)
                assert bits(saved["state"][number][name]) == bits(value), (number, name)
    else:
        refused(StateDictError, zero.state_dict, "not been consolidated", f"to={rank}")
    give_gradients(ours, 2)
    zero.step()
    refused(StateDictError, zero.state_dict, "not been consolidated")
    refused(SettingError, lambda: zero.consolidate_state_dict(size), "expected a number")


def zero_goes_on_with_another_number(rank, size):
    """Load the state of other processes, or of the plain optimizer: a step has the same bits."""
    some = dist.new_group(range(size - 1) if size > 2 else [0])
    path = Path(sys.argv[1]) / "state.lucid"
    plain, theirs, _, ours = pair(Adam, lr=0.1)
    first = None if some is NON_MEMBER else ZeroRedundancyOptimizer(ours, Adam, some, lr=0.1)
    for step in range(3):
        give_gradients(theirs, step)
        give_gradients(ours, step)
        plain.step()
        if first is not None:
            first.step()
    if first is not None:
        first.consolidate_state_dict()
    if rank == 0:
        lucid.save({"params": ours, "state": first.state_dict()}, path)
    dist.barrier()
    loaded = lucid.load(path)
    for param, value in zip(ours, loaded["params"], strict=True):
        param.data.copy_(value)
    for saved in (loaded["state"], plain.state_dict()):
        zero = ZeroRedundancyOptimizer(ours, Adam, lr=7.0)
        zero.load_state_dict(saved)
        assert zero.param_groups[0]["lr"] == zero.optim.param_groups[0]["lr"] == 0.1
        assert all(zero._owners[param] == rank for param in zero.state)
        before = [param.detach().clone() for param in ours]
        give_gradients(ours, 3)
        zero.step()
        after = bits(*ours)
        for param, value in zip(ours, before, strict=True):
            param.data.copy_(value)
    give_gradients(theirs, 3)
    plain.step()
    assert after == bits(*theirs)


def zero_in_groups_and_with_closures(rank, size):
    """Add a group later, set settings, step with a closure: one call of it, and of each hook."""
    plain, theirs, zero, ours = pair(AdamW, lr=0.1, dtypes=(lucid.float32,))
    calls = []
    zero.register_step_post_hook(lambda *_: calls.append("hook"))
    for params, optimizer in ((theirs, plain), (ours, zero)):
        extra = lucid.ones(3, requires_grad=True)
        optimizer.param_groups[0]["lr"] = 0.2
        optimizer.add_param_group({"params": [extra], "lr": 0.5})
        params.append(extra)
        assert [group["lr"] for group in optimizer.param_groups] == [0.2, 0.5]
        give_gradients(params, 1)

    def closure():
        calls.append("closure")
        assert lucid.is_grad_enabled()
        return lucid.tensor(3.0)

    plain.step()
    assert zero.step(closure).item() == 3.0
    assert calls == ["closure", "hook"]
    assert bits(*ours) == bits(*theirs)
    named = ZeroRedundancyOptimizer([("a", lucid.ones(2, requires_grad=True))], SGD, lr=0.1)
    named.consolidate_state_dict()
    if rank == 0:
        assert named.state_dict()["param_groups"][0]["param_names"] == ["a"]


def zero_of_different_parameters(rank, size):
    """Where processes have different parameters all of them are told."""
    params = [lucid.ones(2 + (rank == 1), requires_grad=True)]
    refused(DistributedError, lambda: ZeroRedundancyOptimizer(params, SGD, lr=0.1), "different parameters")


def zero_steps_for_who_has_run_out(rank, size):
    """In a Join block a process without batches steps with the others: the bits are those of the plain optimizer."""
    rows = lucid.tensor(drawn(3, rank).standard_normal((size, 4, 6)))
    for whole in (True, False):
        ends = []
        for make in (Adam, lambda params, lr: ZeroRedundancyOptimizer(params, Adam, lr=lr)):
            lucid.manual_seed(4)
            model = DistributedDataParallel(nn.Linear(6, 3).double(), bucket_cap_mb=1e-5)
            optimizer = make(model.parameters(), lr=0.1)
            joinables = [model, *([optimizer] if isinstance(optimizer, ZeroRedundancyOptimizer) else [])]
            with Join(joinables, divide_by_initial_world_size=whole):
                for x in rows[: 1 + rank]:
                    optimizer.zero_grad()
                    model(x).square().sum().backward()
                    optimizer.step()
            assert same_everywhere(*model.parameters())
            ends.append(bits(*model.parameters()))
        assert ends[0] == ends[1], whole
    zero = ZeroRedundancyOptimizer(parameters(), SGD, lr=0.1)
    before = bits(*zero.param_groups[0]["params"])
    with Join([zero]):  # the first in the block, it tells the others itself
        for step in range(1 + rank):
            give_gradients(zero.param_groups[0]["params"], step)
            zero.step()
    assert same_everywhere(*zero.param_groups[0]["params"])
    assert bits(*zero.param_groups[0]["params"]) != before
    assert zero.join_device == lucid.device("cpu")
    assert zero.join_process_group is zero.process_group


CHECKS = (
    zero_has_the_bits_of_one,
    zero_deals_by_size,
    zero_is_saved_from_one_process,
    zero_goes_on_with_another_number,
    zero_in_groups_and_with_closures,
    zero_of_different_parameters,
    zero_steps_for_who_has_run_out,
)
