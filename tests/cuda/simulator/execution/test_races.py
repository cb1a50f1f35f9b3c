"""Accesses of shared memory that no barrier orders stop the launch, whatever order the threads happen to run in."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.cuda.simulator import runtime
from tests.cuda.simulator.launching import SEEDS, launcher, refused

pytestmark = pytest.mark.usefixtures("simulated")
SHARED = 'extern "C" __global__ void f(int* out, int n) {\n __shared__ int s[256];\n const int t = threadIdx.x;\n'


def kernel(body, threads=64, elements=64):
    """Return a function that runs the body, which has out, n, shared s and its thread's number t."""
    run = launcher(SHARED + body + "\n}", "Pi")
    return lambda out: run(2, threads, out, elements)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_missing_barrier(device, seed):
    """A reversal without its barrier names both threads and lines and what is missing; with it, it is right."""
    put, get = device
    runtime.set_seed(seed)
    out = put(np.zeros(64, np.int32))
    body = " s[t] = t;\n %s\n out[t] = s[63 - t];"
    words = refused(
        lambda: kernel(body % "")(out), "race on byte", "of the shared variable s: ", "store by thread (",
        "load by thread (", "(test.cu:4)", "(test.cu:6)", ", and no __syncthreads() between them",
    )  # fmt: skip
    assert "__syncwarp" not in words
    kernel(body % "__syncthreads();")(out)
    np.testing.assert_array_equal(get(out), np.arange(63, -1, -1))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("body", "words"),
    {
        "writes after reads": (" s[t] = t; __syncthreads(); out[t] = s[0]; s[t] = 1;", ("load by", "store by")),
        "writes after reads of one other": (
            " s[t] = t; __syncthreads(); if (t < 60) out[t] = s[t]; if (t == 63) { out[63] = s[5]; s[5] = 1; }",
            ("load by", "store by"),
        ),
        "writes after writes": (" s[0] = t;", ("store by thread", "then store by")),
        "writes of the same value": (" s[0] = 1;", ("store by thread", "then store by")),
        "round a loop": (
            " for (int i = 0; i < n; ++i) { s[t] = i; __syncthreads(); out[t] += s[n - 1 - t]; }",
            ("load by", "store by"),
        ),
        "atomics and reads": (" atomicAdd(&s[0], 1); out[t] = s[0];", ("atomic operation by", "load by")),
        "atomics and writes": (
            " if (t == 0) s[0] = 0; atomicAdd(&s[0], 1);",
            ("atomic operation by", "store by thread (0, 0, 0)"),
        ),
        "bytes of one word": (
            " char* c = (char*)s; c[t] = 1; __syncthreads(); c[t] = c[t ^ 1];",
            ("load by", "store by", "__syncwarp() or __syncthreads()"),
        ),
        "lanes of one warp": (
            " if (t < 32) { s[t] = t; out[t] = s[31 - t]; }",
            ("store by", "load by", "__syncwarp() or __syncthreads()"),
        ),
        "lanes of one warp after a shuffle": (
            " if (t < 32) { s[t] = t; __shfl_xor_sync(~0u, t, 1); out[t] = s[31 - t]; }",
            ("store by", "load by", "__syncwarp() or"),
        ),
        "lanes that did not meet": (
            " if (t < 32) { s[t] = t; __syncwarp(t < 16 ? 0xffffu : 0xffff0000u); out[t] = s[31 - t]; }",
            ("store by", "load by", "__syncwarp() or"),
        ),
        "warps that met on their own": (" s[t] = t; __syncwarp(); out[t] = s[63 - t];", ("store by", "load by")),
    }.values(),
)  # fmt: skip
def test_races(device, body, words, seed):
    """Each way for two accesses to be unordered is found in every order of threads."""
    put, _ = device
    runtime.set_seed(seed)
    refused(lambda: kernel(body)(put(np.zeros(64, np.int32))), "race on byte", *words)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "body",
    {
        "own places": " s[t] = t; s[t] += 1; out[t] = s[t];",
        "all read": " s[t] = t; __syncthreads(); out[t] = s[0] + s[63];",
        "atomics": " atomicAdd(&s[1], 1); atomicMax(&s[1], t); atomicCAS(&s[2], 0, t); __syncthreads(); out[t] = s[1];",
        "counting barrier": " s[t] = t; __syncthreads_count(1); out[t] = s[63 - t];",
        "bytes of one word": " char* c = (char*)s; c[t] = 1; s[64 + t] = 1; __syncthreads(); c[t] += 1;",
        "a warp that meets": (
            " if (t < 32) { s[t] = t; __syncwarp(); int v = s[31 - t]; __syncwarp(); s[t] = v; out[t] = s[t]; }"
        ),
        "halves of a warp that meet": (
            " if (t < 32) { const unsigned m = t < 16 ? 0xffffu : 0xffff0000u; s[t] = t; __syncwarp(m);"
            " int v = s[t ^ 15]; __syncwarp(m); s[t] = v; }"
        ),
        "order through a third lane": (
            " if (t == 0) { s[0] = 1; __syncwarp(3u); } if (t == 1) { __syncwarp(3u); __syncwarp(6u); }"
            " if (t == 2) { __syncwarp(6u); out[0] = s[0]; s[0] = 2; }"
        ),
        "lanes that have left": " if (t >= 20) return; s[t] = t; __syncwarp(); out[t] = s[19 - t];",
    }.values(),
)  # fmt: skip
def test_no_races(device, body, seed):
    """What barriers order, and what needs no order, is let through."""
    put, _ = device
    runtime.set_seed(seed)
    kernel(body, threads=32 if "return" in body else 64)(put(np.zeros(64, np.int32)))


@pytest.mark.parametrize("seed", SEEDS)
def test_dynamic_shared_memory(device, seed):
    """Dynamic shared memory is watched beside shared variables, in launches of any size one after the other."""
    put, _ = device
    runtime.set_seed(seed)
    source = """extern "C" __global__ void f(float* out, int by) {
        extern __shared__ float d[];
        __shared__ double s[64];
        d[threadIdx.x] = s[threadIdx.x] = 1;
        __syncthreads();
        out[threadIdx.x] = d[threadIdx.x] + s[threadIdx.x ^ 1];
        d[threadIdx.x + by] = 0;
    }"""
    run, out = launcher(source, "Pi"), put(np.zeros(64, np.float32))
    for shared in (256, 1024, 512):
        run(2, 64, out, 0, shared=shared)
        run(1, 32, out, 0, shared=shared)
        refused(lambda shared=shared: run(2, 32, out, 1, shared=shared), "of the dynamic shared memory")
    assert "__syncwarp() or" in refused(lambda: run(2, 32, out, 1, shared=256), "race on byte")


def test_blocks_share_nothing(device):
    """What one block left in shared memory does not race with the next, nor one launch with another."""
    put, _ = device
    run = launcher(SHARED + " if (t == (blockIdx.x + n) % 64) s[0] = t; }", "Pi")
    for n in range(70):
        run(5, 64, put(np.zeros(1, np.int32)), n)
