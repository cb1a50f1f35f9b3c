"""What communication hooks make of gradients among processes: compared with NumPy on the gradients of all."""

from __future__ import annotations

import numpy as np

import lucid
from lucid import nn
from lucid.distributed.algorithms.ddp_comm_hooks.default_hooks import (
    allreduce_hook,
    bf16_compress_hook,
    bf16_compress_wrapper,
    fp16_compress_hook,
    fp16_compress_wrapper,
)
from lucid.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from lucid.nn.parallel import DistributedDataParallel
from lucid.utils.data import DistributedSampler
from tests.distributed.scripts.given import bits, drawn, same_everywhere

SHAPES = {"wide": (12, 10), "cube": (8, 4, 3), "bias": (5,), "number": ()}


class Given(nn.Module):
    """A module whose gradients are what it is called with."""

    def __init__(self):
        super().__init__()
        for name, shape in SHAPES.items():
            self.register_parameter(name, nn.Parameter(lucid.zeros(shape)))

    def forward(self, grads):
        return sum((parameter * grads[name]).sum() for name, parameter in self.named_parameters())


def gradients(rank, step, shapes=SHAPES):
    """Return the gradients of a process in a pass."""
    rng = drawn(7, rank, step)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def reduced(model, rank, step):
    """Return the gradients after a pass."""
    model.zero_grad()
    model({name: lucid.tensor(grad) for name, grad in gradients(rank, step).items()}).backward()
    return {name: parameter.grad.clone() for name, parameter in model.module.named_parameters()}


def hooked(hook, state=None, **settings):
    model = DistributedDataParallel(Given(), bucket_cap_mb=0.0003, **settings)
    model.register_comm_hook(state, hook)
    return model


def hooks_of_means(rank, size):
    """Means over all processes are those without a hook, or in a half type means of rounded gradients, rounded."""
    plain = DistributedDataParallel(Given(), bucket_cap_mb=0.0003)
    inner, seen = bf16_compress_wrapper(lambda state, bucket: note(bucket) or allreduce_hook(state, bucket)), []
    note = lambda bucket: seen.append(bucket.buffer().dtype)
    model = hooked(lambda state, bucket: note(bucket) or inner(state, bucket))
    for step in range(3):  # what a hook changes of a bucket is undone before the next pass; the first one makes them
        reduced(model, rank, step)
    assert seen[:2] == seen[-2:] == [lucid.float32, lucid.bfloat16]
    for view in (False, True):
        models = {
            None: hooked(allreduce_hook, gradient_as_bucket_view=view),
            lucid.float16: hooked(fp16_compress_hook, gradient_as_bucket_view=view),
            lucid.bfloat16: hooked(bf16_compress_hook, gradient_as_bucket_view=view),
        }
        wrapped = {
            lucid.float16: hooked(fp16_compress_wrapper(allreduce_hook), gradient_as_bucket_view=view),
            lucid.bfloat16: hooked(bf16_compress_wrapper(allreduce_hook), gradient_as_bucket_view=view),
        }
        for step in range(3):
            everyone = [gradients(each, step) for each in range(size)]
            whole = reduced(plain, rank, step)
            for dtype, model in models.items():
                found = reduced(model, rank, step)
                assert same_everywhere(*found.values())
                if dtype is None:
                    assert bits(*found.values()) == bits(*whole.values())
                    continue
                assert bits(*reduced(wrapped[dtype], rank, step).values()) == bits(*found.values())
                for name, grad in found.items():
                    halves = [lucid.tensor(each[name]).to(dtype).to(lucid.float32).array for each in everyone]
                    mean = lucid.tensor(np.asarray(sum(halves) / np.float32(size))).to(dtype).to(lucid.float32)
                    assert grad.dtype is lucid.float32
                    near = np.abs(grad.array - mean.array) <= np.abs(mean.array) * 2.0**-7
                    assert near.all(), (name, dtype)


def hooks_of_thin_matrices(rank, size):
    """PowerSGD gives P P^T M and keeps what that leaves out, with the matrix of the pass before; vectors stay means."""
    state = PowerSGDState(None, 2, start_powerSGD_iter=2, min_compression_rate=1.5)
    model = hooked(powerSGD_hook, state)
    plain = DistributedDataParallel(Given(), bucket_cap_mb=0.0003)
    errors, bases = {}, {}
    for step in range(6):
        everyone = [gradients(each, step) for each in range(size)]
        found, whole = reduced(model, rank, step), reduced(plain, rank, step)
        assert same_everywhere(*found.values())
        for name, grad in found.items():
            mean = sum(each[name] for each in everyone) / size
            if step < 2 or name in {"bias", "number"}:
                np.testing.assert_allclose(grad.array, mean, rtol=1e-6, atol=1e-6)
                continue
            matrices = [each[name].reshape(len(each[name]), -1).astype(np.float64) for each in everyone]
            if step > 2:
                matrices = [matrix + error for matrix, error in zip(matrices, errors[name], strict=True)]
                # a basis of what the pass before has found: the thin matrices themselves may differ by signs
                basis = bases[name]
                end = np.linalg.qr(sum(matrices) @ basis)[0]
                inner = sum(matrix.T @ end for matrix in matrices) / size
                result = end @ inner.T
                np.testing.assert_allclose(grad.array.reshape(result.shape), result, rtol=1e-3, atol=1e-4)
            else:
                result = grad.array.reshape(matrices[0].shape).astype(np.float64)
                assert np.linalg.matrix_rank(result, tol=1e-4) == 2
            bases[name] = np.linalg.svd(result)[2][:2].T
            errors[name] = [matrix - result for matrix in matrices]
        assert step < 2 or bits(whole["bias"]) == bits(found["bias"])
    rate, before, after = state.compression_stats()
    assert (before, after) == (4 * (120 + 96 + 5 + 1), 4 * (44 + 40 + 5 + 1))
    assert rate == before / after


def hooks_of_low_rank_lose_nothing(rank, size):
    """Find a mean of rank 1 as it is, in all variants, beside a gradient of zeros."""
    for hook, settings in (
        (powerSGD_hook, {}),
        (powerSGD_hook, {"warm_start": False, "use_error_feedback": False}),
        (powerSGD_hook, {"orthogonalization_epsilon": 1e-8}),
        # one that begins with the pass before, and what that has left out, keeps few digits in a half type
        (bf16_compress_wrapper(powerSGD_hook), {"warm_start": False, "use_error_feedback": False}),
    ):
        model = hooked(hook, PowerSGDState(None, start_powerSGD_iter=2, **settings))
        for step in range(4):
            rng = drawn(8, step)
            column, row = rng.standard_normal(12), rng.standard_normal(10)
            grads = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
            grads["wide"] = (np.outer(column, row) * (rank + 1)).astype(np.float32)
            model.zero_grad()
            model({name: lucid.tensor(grad) for name, grad in grads.items()}).backward()
            expected = np.outer(column, row) * (size + 1) / 2
            tolerance = 1e-4 if hook is powerSGD_hook else 0.05
            np.testing.assert_allclose(model.module.wide.grad.array, expected, rtol=tolerance, atol=tolerance)
            assert not model.module.cube.grad.array.any()


def hooks_beside_samplers(rank, size):
    """Ask the group who a sampler is for."""
    sampler = DistributedSampler(range(10), shuffle=False)
    assert (sampler.num_replicas, sampler.rank) == (size, rank)
    assert next(iter(sampler)) == rank
    assert list(sampler) == list(DistributedSampler(range(10), size, rank, shuffle=False))


CHECKS = (hooks_of_means, hooks_of_thin_matrices, hooks_of_low_rank_lose_nothing, hooks_beside_samplers)
