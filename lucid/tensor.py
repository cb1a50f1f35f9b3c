"""Tensor."""
from __future__ import annotations
from typing import Any
from lucid.autograd.base import TensorBase, registered
from lucid.ops import elementwise, core
from lucid.autograd import functions
from lucid.autograd.retain import register_hook
class Tensor(TensorBase):
    __slots__=()
    __add__=elementwise._add.call
    __mul__=elementwise._mul.call
    @property
    def grad(self): return self.stored_grad
    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        functions.backward(self, gradient, retain_graph, create_graph, inputs)
    def register_hook(self, h): return register_hook(self, h)
registered.tensor = Tensor
