"""What processes that train one model find in its gradients, buffers and hooks: compared with one process's module."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import lucid
from lucid import distributed as dist
from lucid import nn
from lucid.autograd.base import wrap
from lucid.collectives.reduction import tree_sum
from lucid.errors import DistributedError, GraphError, HookTypeError, SettingError
from lucid.nn.parallel import DistributedDataParallel
from tests.collectives.jobs import begin, go_through, host, numbers
from tests.device import shares_memory

RNG = np.random.default_rng(0)
RANK, SIZE = 0, 1


def model(kind=nn.ReLU):
    """Return the same module in every process."""
    lucid.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 40), kind(), nn.Linear(40, 30), nn.Linear(30, 3))


def batch(rank):
    """Return the part of a batch that is for one process, whole numbers whose sums are exact."""
    return lucid.tensor(np.asarray(numbers(rank, lucid.float32, (4, 6))).astype(np.float32))


def gradients(module):
    return [None if p.grad is None else host(p.grad).copy() for p in module.parameters()]


def mean(module, loss, ranks):
    """Return the mean over processes of each gradient, as one process computes them one after the other."""
    rows = []
    for rank in ranks:
        module.zero_grad()
        loss(module, rank).backward()
        rows.append(gradients(module))
    means = []
    for column in zip(*rows, strict=True):
        if all(each is None for each in column):
            means.append(None)
            continue
        like = next(each for each in column if each is not None)
        means.append(tree_sum([np.zeros_like(like) if each is None else each for each in column]) / len(rows))
    return means


def close(got, expected):
    for a, b in zip(got, expected, strict=True):
        assert (a is None) == (b is None)
        assert a is None or np.allclose(a, b, rtol=1e-6, atol=1e-6), np.abs(a - b).max()


def loss_of(module, rank):
    return (module(batch(rank)) ** 2).sum()


def gradients_are_the_mean_over_processes():
    """In one bucket and in many, in the first pass and when buckets are in the order of that; views or not."""
    expected = mean(model(), loss_of, range(SIZE))
    for mib in (25, 1e-5):
        for view in (False, True):
            wrapped = DistributedDataParallel(model(), bucket_cap_mb=mib, gradient_as_bucket_view=view)
            for _ in range(3):
                wrapped.zero_grad()
                loss_of(wrapped, RANK).backward()
                close(gradients(wrapped), expected)
            assert len(wrapped.reducer.buckets) == (1 if mib == 25 else 6)
            first = wrapped.reducer.buckets[0]
            shares = shares_memory(first.parameters[0].grad, wrap(first.buffer))
            assert shares == view
            before = gradients(wrapped)
            loss_of(wrapped, RANK).backward()  # accumulated: what is on them is the same everywhere
            close(gradients(wrapped), [2 * each for each in before])


def half_types_are_put_together_in_their_own_dtype():
    for dtype in (lucid.float16, lucid.bfloat16):
        wrapped = DistributedDataParallel(nn.Linear(6, 3).to(dtype))
        wrapped(batch(RANK).to(dtype)).sum().backward()
        ones = sum(np.asarray(host(batch(rank))).sum(0) for rank in range(SIZE)) / SIZE
        assert wrapped.module.weight.grad.dtype is dtype
        assert np.allclose(host(wrapped.module.weight.grad.to(lucid.float32)), ones, rtol=1e-2)


class Branching(nn.Module):
    """Uses another part in each process, and one in none."""

    def __init__(self):
        super().__init__()
        lucid.manual_seed(2)
        self.both, self.even, self.odd, self.never = nn.Linear(6, 5), nn.Linear(5, 2), nn.Linear(5, 2), nn.Linear(3, 3)

    def forward(self, x, rank):
        return (self.odd if rank % 2 else self.even)(self.both(x).relu())


def unused_parameters_count_as_zero():
    """Those that no process uses keep what they had; in many buckets and in one; the bits of one process, by a tree."""
    loss = lambda module, rank: (module(batch(rank), rank) ** 2).sum()
    expected = mean(Branching(), loss, range(SIZE))
    for mib in (25, 1e-5):
        wrapped = DistributedDataParallel(Branching(), bucket_cap_mb=mib, reduction="tree")
        for _ in range(3):
            wrapped.zero_grad()
            loss(wrapped, RANK).backward()
            assert all((a is None and b is None) or (a == b).all() for a, b in zip(gradients(wrapped), expected))
        assert wrapped.module.never.weight.grad is None
        kept = wrapped.module.never.weight.grad = lucid.ones(3, 3)
        loss(wrapped, RANK).backward()
        assert wrapped.module.never.weight.grad is kept
        assert (host(kept) == 1).all()


def no_sync_accumulates_alone():
    """The first pass after the block puts all of it together; the block may be nested, and left by an exception."""
    wrapped = DistributedDataParallel(model())
    with wrapped.no_sync():
        loss_of(wrapped, RANK).backward()
        with wrapped.no_sync(), pytest.raises(ZeroDivisionError):
            raise ZeroDivisionError
    reference = model()
    loss_of(reference, RANK).backward()
    close(gradients(wrapped), gradients(reference))
    loss_of(wrapped, RANK).backward()
    close(gradients(wrapped), [2 * each for each in mean(model(), loss_of, range(SIZE))])
    wrapped = DistributedDataParallel(Branching())
    with wrapped.no_sync():
        wrapped.module.never(batch(RANK)[:, :3]).sum().backward()
    wrapped(batch(RANK), RANK).sum().backward()  # a pass that does not use it puts it together, too
    row = sum(host(batch(rank))[:, :3].sum(0) for rank in range(SIZE)) / SIZE
    close([host(wrapped.module.never.weight.grad)], [np.tile(row, (3, 1))])


def nested_passes_are_sent_again():
    """A gradient that grows after its bucket was sent is put together again at the end of the outermost pass."""
    wrapped = DistributedDataParallel(model(), bucket_cap_mb=1e-5)
    reference = model()
    for module, ranks in ((wrapped, [RANK]), (reference, range(SIZE))):
        last = (module.module if module is wrapped else module)[3]

        def again(_, last=last, ranks=ranks):
            for rank in ranks:
                with lucid.enable_grad():
                    last(batch(rank)[:, :3].repeat(1, 10)).sum().backward()

        first = (module.module if module is wrapped else module)[0].weight
        handle = first.register_hook(again)
        if module is wrapped:
            loss_of(wrapped, RANK).backward()
        else:
            sum(loss_of(reference, rank) for rank in ranks).backward()
        handle.remove()
    close(gradients(wrapped), [each / SIZE for each in gradients(reference)])


def hooks_fire_in_their_order():
    """Post-accumulate hooks see this process's gradient, whenever registered, reduced ones the mean, as buckets go."""
    own = model()
    loss_of(own, RANK).backward()
    local = {id(each): grad for each, grad in zip(own.parameters(), gradients(own), strict=True)}
    seen = []
    module = model()
    names = {id(p): name for name, p in module.named_parameters()}
    locals_of = dict(zip(map(id, module.parameters()), local.values(), strict=True))
    expected = dict(zip(map(id, module.parameters()), mean(model(), loss_of, range(SIZE)), strict=True))

    def note(kind, wanted):
        def hook(parameter):
            close([host(parameter.grad)], [wanted[id(parameter)]])
            seen.append((kind, names[id(parameter)]))

        return hook

    parameters = list(module.parameters())
    parameters[0].register_post_accumulate_grad_hook(note("own", locals_of))
    wrapped = DistributedDataParallel(module, bucket_cap_mb=1e-5)
    for each in parameters[1:]:
        each.register_post_accumulate_grad_hook(note("own", locals_of))
    handle = wrapped.register_reduced_grad_hook(note("mean", expected))
    only = wrapped.register_reduced_grad_hook(lambda p: seen.append(("one", names[id(p)])), iter([parameters[2]]))
    loss_of(wrapped, RANK).backward()
    order = [name for bucket in wrapped.logging_data()["buckets"] for name in bucket["parameters"]]
    assert [name for kind, name in seen if kind == "mean"] == order
    assert [kind for kind, _ in seen] == ["own"] * 6 + ["mean"] * 4 + ["one"] * 0 + [k for k, _ in seen[10:]]
    assert [name for kind, name in seen if kind == "one"] == [names[id(parameters[2])]]
    handle.remove()
    only.remove()
    seen.clear()
    wrapped.zero_grad()
    loss_of(wrapped, RANK).backward()
    assert {kind for kind, _ in seen} == {"own"}


def what_a_hook_changes_is_sent():
    """A post-accumulate hook that scales or drops the gradient decides what this process sends."""
    for drops in (False, True):
        module = model()
        weight = module[0].weight

        def hook(parameter):
            if drops and RANK:
                parameter.grad = None
            else:
                parameter.grad = parameter.grad * (RANK + 1)

        wrapped = DistributedDataParallel(module, bucket_cap_mb=1e-5)
        weight.register_post_accumulate_grad_hook(hook)
        loss_of(wrapped, RANK).backward()
        rows = []
        for rank in range(SIZE):
            reference = model()
            loss_of(reference, rank).backward()
            rows.append(host(reference[0].weight.grad) * (0 if drops and rank else rank + 1))
        close([host(weight.grad)], [sum(rows) / SIZE])


def an_optimizer_in_backward_steps_on_the_mean():
    """A hook of reduced gradients that steps and drops them leaves the same parameters everywhere."""
    wrapped = DistributedDataParallel(model(), bucket_cap_mb=1e-5)
    steps = {id(p): lucid.optim.SGD([p], lr=0.01) for p in wrapped.parameters()}

    def step(parameter):
        steps[id(parameter)].step()
        parameter.grad = None

    wrapped.register_reduced_grad_hook(step)
    for _ in range(3):
        loss_of(wrapped, RANK).backward()
    assert all(p.grad is None for p in wrapped.parameters())
    rows = [lucid.zeros(3, 30) for _ in range(SIZE)]
    dist.all_gather(rows, wrapped.module[3].weight.detach())
    assert all((host(row) == host(rows[0])).all() for row in rows)


def all_begin_with_the_first_process():
    """Parameters and buffers at wrapping, buffers before each forward in training."""
    lucid.manual_seed(RANK)
    module = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4))
    module[1].running_mean.fill_(RANK)
    wrapped = DistributedDataParallel(module)
    rows = [lucid.zeros(4, 6) for _ in range(SIZE)]
    dist.all_gather(rows, module[0].weight.detach())
    assert all((host(row) == host(rows[0])).all() for row in rows)
    assert (host(module[1].running_mean) == 0).all()
    wrapped(batch(RANK))
    assert module[1].num_batches_tracked.item() == 1
    module[1].running_mean.fill_(RANK)
    with lucid.no_grad():
        wrapped(batch(RANK))  # of a process alone, such as for evaluation: nothing is sent
    wrapped.eval()
    wrapped(batch(RANK))
    assert SIZE == 1 or RANK == 0 or host(module[1].running_mean).max() > 0
    assert {name.partition(".")[0] for name in wrapped.state_dict()} == {"module"}


def comm_hooks_decide_how_gradients_come_together():
    """Futures, works and their chains; the state, buckets as they were made; what returns something else is refused."""
    expected = mean(model(), loss_of, range(SIZE))
    state = []

    def halved(given, bucket):
        assert isinstance(bucket, dist.GradBucket)
        given.append((bucket.index(), bucket.is_last(), len(bucket.parameters())))
        assert sum(each.numel() for each in bucket.gradients()) == bucket.buffer().numel()
        future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda future: future.value()[0] / SIZE).then(lambda future: future.value() / 2)

    wrapped = DistributedDataParallel(model(), bucket_cap_mb=1e-5)
    wrapped.register_comm_hook(state, halved)
    loss_of(wrapped, RANK).backward()
    close(gradients(wrapped), [each / 2 for each in expected])
    assert [index for index, *_ in state] == list(range(6))
    assert [last for _, last, _ in state] == [False] * 5 + [True]
    with pytest.raises(SettingError, match="there is one already"):
        wrapped.register_comm_hook(None, halved)
    wrapped = DistributedDataParallel(model())
    average = dist.ReduceOp.AVG
    wrapped.register_comm_hook(None, lambda _, bucket: dist.all_reduce(bucket.buffer(), average, async_op=True))
    loss_of(wrapped, RANK).backward()
    close(gradients(wrapped), expected)
    for wrong in (lambda _, bucket: 3, lambda _, bucket: lucid.zeros(7)):
        wrapped = DistributedDataParallel(model())
        wrapped.register_comm_hook(None, wrong)
        with pytest.raises(HookTypeError, match="comm hook: expected a"):
            loss_of(wrapped, RANK).backward()
    with pytest.raises(SettingError, match="order of a tree"):
        DistributedDataParallel(model(), reduction="tree").register_comm_hook(None, halved)


def wrong_calls_say_what_to_do():
    """Settings, modules and calls that make no sense; what is replaced after wrapping; graphs of passes."""
    wrapped = DistributedDataParallel(model())
    cases = (
        (SettingError, "belongs to another", lambda: DistributedDataParallel(wrapped.module)),
        (SettingError, "belongs to another", lambda: DistributedDataParallel(wrapped)),
        (SettingError, "requires grad", lambda: DistributedDataParallel(nn.ReLU())),
        (
            SettingError,
            "bucket_cap_mb: expected more than 0",
            lambda: DistributedDataParallel(model(), bucket_cap_mb=0),
        ),
        (SettingError, "reduction: expected", lambda: DistributedDataParallel(model(), reduction="ring")),
        (SettingError, "power of two", lambda: DistributedDataParallel(model(), shards=6)),
        (SettingError, "multiple of the", lambda: DistributedDataParallel(model(), shards=1)),
        (SettingError, "expected DistributedDataParallel", lambda: wrapped.split(batch(0))),
        (SettingError, "mixed_precision: not there", lambda: DistributedDataParallel(model(), mixed_precision=1)),
        (SettingError, "device_ids", lambda: DistributedDataParallel(model(), device_ids=[1])),
        (SettingError, "is not copied", lambda: copy.deepcopy(wrapped)),
        (SettingError, "is not copied", lambda: pickle.dumps(wrapped)),
        (SettingError, "some of the module's", lambda: wrapped.register_reduced_grad_hook(print, [lucid.ones(1)])),
        (HookTypeError, "expected", lambda: wrapped.register_reduced_grad_hook(3)),
    )
    for error, words, call in cases:
        with pytest.raises(error, match=words):
            call()
    changed = DistributedDataParallel(model())
    changed.module[1] = nn.Linear(40, 40)
    with pytest.raises(DistributedError, match="was added, removed or replaced"):
        changed(batch(RANK))
    # a graph of the pass itself has no derivative through other processes
    recorded = DistributedDataParallel(model())
    with pytest.raises(GraphError, match="create_graph=True"):
        loss_of(recorded, RANK).backward(create_graph=True)
    module = model()
    DistributedDataParallel(module)
    DistributedDataParallel(module)  # the one before is gone


def modules_that_differ_are_named():
    lucid.manual_seed(0)
    module = nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 2 + RANK))
    with pytest.raises(DistributedError, match=r"first that does is 1\.weight of shape \(\d, 4\), float32"):
        DistributedDataParallel(module)
    module = nn.Sequential(*[nn.Linear(2, 2) for _ in range(1 + RANK)])
    with pytest.raises(DistributedError, match=r"numbers of parameters and buffers, \[2, 4"):
        DistributedDataParallel(module)


def an_exception_before_anything_is_sent_leaves_no_trace():
    """The next pass is as if that had not been; after something was sent, processes are out of step, which is said."""
    wrapped = DistributedDataParallel(model())

    def fails(_):
        raise ZeroDivisionError

    handle = wrapped.module[0].weight.register_hook(fails)
    with pytest.raises(ZeroDivisionError):
        loss_of(wrapped, RANK).backward()
    handle.remove()
    wrapped.zero_grad()
    loss_of(wrapped, RANK).backward()
    close(gradients(wrapped), mean(model(), loss_of, range(SIZE)))
    wrapped = DistributedDataParallel(model(), bucket_cap_mb=1e-5)
    wrapped.module[0].weight.register_hook(fails)
    with pytest.raises(ZeroDivisionError):
        loss_of(wrapped, RANK).backward()
    with pytest.raises(DistributedError, match="has ended by an exception after gradients had been sent"):
        loss_of(wrapped, RANK).backward()
    dist.destroy_process_group()
    begin(60)


def uneven_numbers_of_batches():
    """Who has run out takes part with zeros; afterwards all have the parameters of one that came last."""
    for whole in (True, False):
        wrapped = DistributedDataParallel(nn.Sequential(nn.Linear(6, 2), nn.BatchNorm1d(2)), bucket_cap_mb=1e-5)
        optimizer = lucid.optim.SGD(wrapped.parameters(), lr=0.1)
        with wrapped.join(divide_by_initial_world_size=whole):
            for step in range(1 + RANK):
                optimizer.zero_grad()
                wrapped(batch(RANK)).sum().backward()
                bias = host(wrapped.module[1].bias.grad)
                active = sum(step < 1 + rank for rank in range(SIZE))
                assert np.allclose(bias, 4 * active / (SIZE if whole else active)), (whole, step, bias)
                optimizer.step()
            ended = [parameter.detach().clone() for parameter in wrapped.parameters()]
        # each batch has begun with the buffers of a process that still had one, and the last one's model is that of all
        assert wrapped.module[1].num_batches_tracked.item() == SIZE
        for last, parameter in zip(ended, wrapped.parameters(), strict=True):
            dist.broadcast(last, SIZE - 1)
            assert (host(last) == host(parameter)).all()
        for tensor in wrapped.state_dict().values():
            rows = [lucid.zeros_like(tensor) for _ in range(SIZE)]
            dist.all_gather(rows, tensor)
            assert all((host(row) == host(rows[0])).all() for row in rows)


def early_ends_can_raise():
    wrapped = DistributedDataParallel(nn.Linear(6, 2))
    with (
        pytest.raises(RuntimeError, match="at least one rank that exhausted inputs"),
        wrapped.join(throw_on_early_termination=True),
    ):
        for _ in range(1 + RANK):
            wrapped(batch(RANK)).sum().backward()
    dist.barrier()


def grad_without_accumulation_is_said_once():
    wrapped = DistributedDataParallel(model())
    with warnings.catch_warnings(record=True, action="always") as said:
        with wrapped.no_sync():  # where nothing is to be put together
            lucid.autograd.grad(loss_of(wrapped, RANK), list(wrapped.parameters()))
        assert not said
        for _ in range(2):
            lucid.autograd.grad(loss_of(wrapped, RANK), list(wrapped.parameters()))
    assert ["accumulates no gradients of parameters" in str(each.message) for each in said] == [True]


CHECKS = (
    gradients_are_the_mean_over_processes,
    half_types_are_put_together_in_their_own_dtype,
    unused_parameters_count_as_zero,
    no_sync_accumulates_alone,
    nested_passes_are_sent_again,
    hooks_fire_in_their_order,
    what_a_hook_changes_is_sent,
    an_optimizer_in_backward_steps_on_the_mean,
    all_begin_with_the_first_process,
    comm_hooks_decide_how_gradients_come_together,
    wrong_calls_say_what_to_do,
    modules_that_differ_are_named,
    uneven_numbers_of_batches,
    early_ends_can_raise,
    grad_without_accumulation_is_said_once,
    an_exception_before_anything_is_sent_leaves_no_trace,
)

if __name__ == "__main__":
    begin(60)
    RANK, SIZE = dist.get_rank(), dist.get_world_size()
    go_through(CHECKS, RANK)
