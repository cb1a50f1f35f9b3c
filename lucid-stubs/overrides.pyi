# Written by `python -m tests.compat.stubs`.
from lucid.compat.overriding import handle_torch_function as handle_torch_function
from lucid.compat.overriding import has_torch_function as has_torch_function
from lucid.compat.overriding import has_torch_function_unary as has_torch_function_unary
from lucid.compat.overriding import has_torch_function_variadic as has_torch_function_variadic
from lucid.compat.overriding import is_tensor_like as is_tensor_like
from lucid.compat.overriding import wrap_torch_function as wrap_torch_function

__all__ = ['handle_torch_function', 'has_torch_function', 'has_torch_function_unary', 'has_torch_function_variadic', 'is_tensor_like', 'wrap_torch_function']
