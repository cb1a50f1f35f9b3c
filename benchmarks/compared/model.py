"""A small GPT, written once for lucid and for PyTorch, and a library that leaves its hooks behind."""

from __future__ import annotations

from typing import Any

WIDTH, HEADS, LAYERS, VOCABULARY, CONTEXT, BATCH = 128, 4, 4, 200, 64, 4


def gpt(lib: Any, tap: Any = lambda name, x: x, *, trouble: str = "") -> Any:
    """Return the model in a library's modules.

    `tap` sees the gate of each block, which no module returns. As `trouble` the last block is the first once more
    (``"twice"``), what attention gives is set to zero in place afterwards (``"overwrites"``), or the head raises.
    """
    nn, functional = lib.nn, lib.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            batch, length, _ = x.shape
            q, k, v = (
                part.reshape(batch, length, HEADS, -1).transpose(1, 2) for part in self.qkv(x).split(WIDTH, dim=-1)
            )
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(batch, length, WIDTH))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.attn = nn.LayerNorm(WIDTH), Attention()
            self.ln_2, self.mlp = nn.LayerNorm(WIDTH), nn.Sequential(
                nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
            )  # fmt: skip

        def forward(self, x):
            y = self.attn(self.ln_1(x))
            x = x + y
            if trouble == "overwrites":
                y.zero_()
            gate = tap("gate", self.ln_2(x).mean(-1, keepdim=True).sigmoid())
            return x + gate * self.mlp(self.ln_2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(VOCABULARY, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            if trouble == "twice":
                self.blocks[-1] = self.blocks[0]
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens):
            x = self.embed(tokens)
            for block in self.blocks:
                x = block(x)
            if trouble == "raises":
                raise RuntimeError("the head fails")
            return self.head(x)

    lib.manual_seed(0)
    return GPT()


def tokens(lib: Any) -> Any:
    """Return a batch of what the model reads."""
    lib.manual_seed(1)
    return lib.randint(0, VOCABULARY, (BATCH, CONTEXT))


def forgetful(net: Any) -> None:
    """Register what nobody takes off again."""
    for module in net.modules():
        module.register_forward_hook(lambda module, args, output: None)
    for parameter in net.parameters():
        parameter.register_hook(lambda grad: None)


def hooks_on(net: Any) -> int:
    """Return how many hooks hang on a model's modules and parameters, by the tables that both libraries have."""
    modules = sum(
        len(getattr(module, name))
        for module in net.modules()
        for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    )
    return modules + sum(len(parameter._backward_hooks or ()) for parameter in net.parameters())
