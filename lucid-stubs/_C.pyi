# Written by `python -m tests.compat.stubs`.
from lucid.autograd.engine.running import current_graph_task_execution_order as _current_graph_task_execution_order
from lucid.autograd.engine.running import current_graph_task_id as _current_graph_task_id
from lucid.autograd.engine.running import current_node as _current_autograd_node
from lucid.autograd.engine.running import will_execute as _will_engine_execute_node

__all__ = ['_current_autograd_node', '_current_graph_task_execution_order', '_current_graph_task_id', '_will_engine_execute_node']
