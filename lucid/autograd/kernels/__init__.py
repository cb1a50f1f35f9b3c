"""Kernels of the user's own as recorded operations: `lucid.cuda.derivative`.

`expressions` reads and writes C expressions, `slopes` differentiates them, `formulas` compiles several into one
recorded kernel; `recording` is what all kinds of kernels share, and `elementwise`, `raw` and `fused` are the kinds.
"""
