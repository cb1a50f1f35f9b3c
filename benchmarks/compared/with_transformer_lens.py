"""The tasks with TransformerLens, on a model of its own of the same size: it takes no other."""

from __future__ import annotations

from typing import Any

import torch
from transformer_lens import HookedTransformer, HookedTransformerConfig

from benchmarks.compared import model

LIB = torch


def net() -> Any:
    config = HookedTransformerConfig(
        n_layers=model.LAYERS, d_model=model.WIDTH, n_ctx=model.CONTEXT, d_head=model.WIDTH // model.HEADS,
        n_heads=model.HEADS, d_vocab=model.VOCABULARY, act_fn="gelu", d_mlp=4 * model.WIDTH, seed=0,
    )  # fmt: skip
    return HookedTransformer(config)


def capture(net: Any, x: Any) -> Any:
    _, kept = net.run_with_cache(x, names_filter=lambda name: name.endswith("attn_out"))
    return list(kept.values())


def patch(net: Any, x: Any) -> Any:
    _, kept = net.run_with_cache(x.flip(0), names_filter="blocks.1.hook_resid_post")
    return net.run_with_hooks(x, fwd_hooks=[("blocks.1.hook_resid_post", lambda value, hook: kept[hook.name])])


def ablate(net: Any, x: Any) -> Any:
    return net.run_with_hooks(x, fwd_hooks=[("blocks.1.hook_attn_out", lambda value, hook: value * 0)])


def stop(net: Any, x: Any) -> Any:
    return net(x, stop_at_layer=2)
