"""Walking a tree of modules: submodules, parameters and buffers with their dotted names, modes of the whole tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast

from lucid.errors import SettingError
from lucid.nn.hooking.registration import HookMethods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lucid.nn.module.module import Module
    from lucid.nn.parameter import Parameter
    from lucid.tensor import Tensor


class Tree(HookMethods):
    """Methods of a module for the tree of all modules below it."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Any]
    _modules: dict[str, Module | None]

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Return an iterator over (dotted name, module), this module first under `prefix`.

        Parameters
        ----------
        memo : set, optional
            Modules that are left out; those that come are added.
        prefix : str
            Stands before each name.
        remove_duplicate : bool
            Whether a module that is reached in two ways comes only once.

        Examples
        --------
        >>> from lucid import nn
        >>> [name for name, _ in nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU())).named_modules()]
        ['', '0', '1', '1.0']
        """
        seen: set[Any] = set() if memo is None else memo
        stack: list[tuple[str, Any]] = [(prefix, self)]
        while stack:
            name, module = stack.pop()
            if remove_duplicate:
                if module in seen:
                    continue
                seen.add(module)
            yield name, module
            inner = f"{name}." if name else ""
            stack += [(inner + key, child) for key, child in reversed(module._modules.items()) if child is not None]  # noqa: SLF001

    def modules(self) -> Iterator[Module]:
        """Return an iterator over this module and all below it, each once."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Return an iterator over (name, module) of the direct submodules, each once."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """Return an iterator over the direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules: Any = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        )
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Return an iterator over (dotted name, parameter).

        Parameters
        ----------
        prefix : str
            Stands before each name.
        recurse : bool
            Whether those of submodules come too.
        remove_duplicate : bool
            Whether a parameter that is shared comes only once.

        Examples
        --------
        >>> from lucid import nn
        >>> [name for name, _ in nn.Sequential(nn.Linear(1, 1)).named_parameters()]
        ['0.weight', '0.bias']
        """
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)  # noqa: SLF001

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Return an iterator over the parameters, each once; those of submodules too, unless `recurse` is False."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Return an iterator over (dotted name, buffer); the arguments are those of `named_parameters`."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)  # noqa: SLF001

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Return an iterator over the buffers, each once; those of submodules too, unless `recurse` is False."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """Return the module at a dotted path, this one for the empty path.

        Raises
        ------
        AttributeError
            If a step of the path does not exist or is no module.

        Examples
        --------
        >>> from lucid import nn
        >>> nn.Sequential(nn.Sequential(nn.ReLU())).get_submodule("0.0")
        ReLU()
        """
        module: Any = self
        for step in target.split(".") if target else ():
            if not hasattr(module, step):
                raise AttributeError(f"{type(module).__name__} has no attribute `{step}` (in the path {target!r})")
            module = getattr(module, step)
            if not isinstance(cast("object", module), Tree):
                raise AttributeError(  # noqa: TRY004  the path is at fault
                    f"`{step}` is not an nn.Module (in the path {target!r})"
                )
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put `module` at a dotted path, in place of the module at that path.

        Parameters
        ----------
        target : str
            The path; all but its last step must exist.
        module : Module
            What is put there.
        strict : bool
            Whether the last step, too, must exist.

        Raises
        ------
        ValueError
            If the path is empty, or `module` is no module.
        AttributeError
            If a step of the path does not exist or is no module.

        Examples
        --------
        >>> from lucid import nn
        >>> net = nn.Sequential(nn.Sequential(nn.ReLU()))
        >>> net.set_submodule("0.0", nn.Tanh())
        >>> net.get_submodule("0.0")
        Tanh()
        """
        if not target:
            raise SettingError("set_submodule: expected the path of a submodule, got an empty one")
        if not isinstance(cast("object", module), Tree):
            raise SettingError(f"set_submodule: expected an nn.Module for {target!r}, got {type(module).__name__}")
        path, _, name = target.rpartition(".")
        parent: Any = self.get_submodule(path)
        if strict or hasattr(parent, name):
            parent.get_submodule(name)
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a dotted path.

        Raises
        ------
        AttributeError
            If there is none, or None in its place.
        """
        parameter = self._get_member(target, "_parameters", "an nn.Parameter")
        if parameter is None:
            raise AttributeError(
                f"`{target.rpartition('.')[2]}` is not an nn.Parameter but None (in the path {target!r})"
            )
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a dotted path; one that is registered as None is None.

        Raises
        ------
        AttributeError
            If there is none.
        """
        return self._get_member(target, "_buffers", "a buffer")

    def _get_member(self, target: str, table: str, what: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}` (in the path {target!r})")
        if name not in getattr(module, table):
            raise AttributeError(f"`{name}` is not {what} (in the path {target!r})")
        return getattr(module, table)[name]

    def train(self, mode: bool = True) -> Self:
        """Return this module after setting training mode for it and all below it.

        Parameters
        ----------
        mode : bool
            True for training, False for evaluation: dropout and batch normalisation behave differently.

        Raises
        ------
        ValueError
            If `mode` is no bool.
        """
        if not isinstance(mode, bool):
            raise SettingError(f"training mode is expected to be boolean, got {type(mode).__name__}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Return this module after setting evaluation mode for it and all below it."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Return this module after setting `requires_grad` of all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters.

        Parameters
        ----------
        set_to_none : bool
            Whether `.grad` becomes None, or keeps its memory and becomes zero.
        """
        for parameter in self.parameters():
            grad = parameter.grad
            if grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            elif grad.grad_fn is not None:
                parameter.grad = grad.detach().clone().zero_()
            else:
                grad.requires_grad_(False)
                grad.zero_()

    def apply(self, fn: Callable[[Any], Any]) -> Self:
        """Return this module after calling ``fn(module)`` for all modules below it and for itself, children first.

        Examples
        --------
        >>> from lucid import nn
        >>> _ = nn.Sequential(nn.ReLU()).apply(lambda module: print(type(module).__name__))
        ReLU
        Sequential
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self
