"""What code written for PyTorch reads of a running backward pass, under the private names that it has there."""

from __future__ import annotations

from lucid.autograd.engine.running import (
    current_graph_task_execution_order,
    current_graph_task_id,
    current_node,
    will_execute,
)

_current_autograd_node = current_node
_current_graph_task_execution_order = current_graph_task_execution_order
_current_graph_task_id = current_graph_task_id
_will_engine_execute_node = will_execute
