# Written by `python -m tests.compat.stubs`.
from lucid.compat.helpers import current_accelerator as current_accelerator
from lucid.cuda import current_device as current_device_index
from lucid.cuda import current_stream as current_stream
from lucid.cuda import device as device_index
from lucid.cuda import device_count as device_count
from lucid.cuda import empty_cache as empty_cache
from lucid.cuda import is_available as is_available
from lucid.cuda import max_memory_allocated as max_memory_allocated
from lucid.cuda import mem_get_info as get_memory_info
from lucid.cuda import memory_allocated as memory_allocated
from lucid.cuda import memory_reserved as memory_reserved
from lucid.cuda import reset_peak_memory_stats as reset_peak_memory_stats
from lucid.cuda import set_device as set_device_index
from lucid.cuda import synchronize as synchronize

__all__ = ['current_accelerator', 'current_device_index', 'current_stream', 'device_count', 'device_index', 'empty_cache', 'get_memory_info', 'is_available', 'max_memory_allocated', 'memory_allocated', 'memory_reserved', 'reset_peak_memory_stats', 'set_device_index', 'synchronize']
