# Written by `python -m tests.compat.stubs`.
from lucid.autograd import enable_grad as enable_grad
from lucid.autograd import inference_mode as inference_mode
from lucid.autograd import no_grad as no_grad
from lucid.autograd import set_grad_enabled as set_grad_enabled
from lucid.autograd import set_multithreading_enabled as set_multithreading_enabled

__all__ = ['enable_grad', 'inference_mode', 'no_grad', 'set_grad_enabled', 'set_multithreading_enabled']
