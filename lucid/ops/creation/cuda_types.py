"""The types of tensors on CUDA devices, as older code names them: `lucid.cuda.FloatTensor` and the others."""

from __future__ import annotations

from lucid.ops.creation.constructors import TYPES

BFloat16Tensor = TYPES["lucid.cuda.BFloat16Tensor"]
BoolTensor = TYPES["lucid.cuda.BoolTensor"]
ByteTensor = TYPES["lucid.cuda.ByteTensor"]
CharTensor = TYPES["lucid.cuda.CharTensor"]
DoubleTensor = TYPES["lucid.cuda.DoubleTensor"]
FloatTensor = TYPES["lucid.cuda.FloatTensor"]
HalfTensor = TYPES["lucid.cuda.HalfTensor"]
IntTensor = TYPES["lucid.cuda.IntTensor"]
LongTensor = TYPES["lucid.cuda.LongTensor"]
ShortTensor = TYPES["lucid.cuda.ShortTensor"]
