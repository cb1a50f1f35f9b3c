"""Optimizers that declare their settings: checks of constructors, groups and state dicts follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from lucid.base import gpu
from lucid.optim.base.capturing import check_capture
from lucid.optim.base.settings import check_implementation
from lucid.optim.base.slots import check_devices
from lucid.optim.optimizer import Group, Optimizer, Params

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lucid.tensor import Tensor


class DeclaredOptimizer(Optimizer):
    """The base of optimizers with declared settings, each with its range.

    Parameters
    ----------
    arguments : dict
        The arguments of the subclass's constructor: its ``locals()``.

    Attributes
    ----------
    ranges : dict
        Of each setting the check of its values, by ``checks_of`` of ``lucid/settings/optimizers.py``.
    """

    ranges: ClassVar[Mapping[str, Callable[[Any, str], None]]]

    def __init__(self, params: Params, arguments: dict[str, Any]) -> None:
        check_implementation(arguments)
        super().__init__(params, {name: _frozen(arguments[name]) for name in self.ranges})

    def check_group(self, group: Group) -> None:
        """Raise if a setting of `group` is out of its range."""
        for name, check in self.ranges.items():
            check(group[name], name)

    def _prepared(self, by_group: list[list[Tensor]]) -> Callable[[], None]:
        if gpu.is_capturing():
            check_capture(self, by_group)
        return super()._prepared(by_group)

    def _check_devices(self, params: list[Tensor], group: Group) -> None:
        """Raise `DeviceError` if a gradient or an array of the state is on another device than its parameter."""
        for param in params:
            state = self.state.get(param) or {}
            named = [(f"its {name}", value.array) for name, value in state.items() if name not in self.scalars]
            check_devices(param.array, [("its gradient", param.stored_grad.array), *named])


def _frozen(value: object) -> Any:
    """Return a setting, as a tuple if it is a list, since its owner could change that."""
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value
