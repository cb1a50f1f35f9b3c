"""Modules, parameters, layers, losses, initialisation, and the hooks of modules."""

from __future__ import annotations

from lucid.nn import hooks, init, modules
from lucid.nn.container import ModuleDict, ModuleList, Sequential
from lucid.nn.hooks import Hook
from lucid.nn.linear import Identity, Linear
from lucid.nn.module import Module
from lucid.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from lucid.nn.parameter import Buffer, Parameter

__all__ = [
    "Buffer",
    "Hook",
    "Identity",
    "Linear",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "Sequential",
    "hooks",
    "init",
    "modules",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]
