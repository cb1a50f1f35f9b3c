# Written by `python -m tests.compat.stubs`.
from lucid.nn import Module as Module
from lucid.nn.hooking.everywhere import register_module_backward_hook as register_module_backward_hook
from lucid.nn.hooking.everywhere import register_module_buffer_registration_hook as register_module_buffer_registration_hook
from lucid.nn.hooking.everywhere import register_module_forward_hook as register_module_forward_hook
from lucid.nn.hooking.everywhere import register_module_forward_pre_hook as register_module_forward_pre_hook
from lucid.nn.hooking.everywhere import register_module_full_backward_hook as register_module_full_backward_hook
from lucid.nn.hooking.everywhere import register_module_full_backward_pre_hook as register_module_full_backward_pre_hook
from lucid.nn.hooking.everywhere import register_module_module_registration_hook as register_module_module_registration_hook
from lucid.nn.hooking.everywhere import register_module_parameter_registration_hook as register_module_parameter_registration_hook
from lucid.nn.module.state import IncompatibleKeys as _IncompatibleKeys

__all__ = ['Module', '_IncompatibleKeys', 'register_module_backward_hook', 'register_module_buffer_registration_hook', 'register_module_forward_hook', 'register_module_forward_pre_hook', 'register_module_full_backward_hook', 'register_module_full_backward_pre_hook', 'register_module_module_registration_hook', 'register_module_parameter_registration_hook']
