"""Registering hooks on a module; `lucid.nn.hooking.calling` and `lucid.nn.module.state` fire them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from lucid.autograd.hooks.context import in_context
from lucid.autograd.hooks.firing import check_callable, every_step_hook, hook_name
from lucid.autograd.hooks.owning import TableAttribute
from lucid.autograd.hooks.table import HookTable, RemovableHandle, register
from lucid.errors import HookTypeError, warn
from lucid.nn.hooking.boundary import FULL, PRE, Form
from lucid.nn.hooking.in_call import InCall

if TYPE_CHECKING:
    from collections.abc import Callable

    Hook = Callable[..., Any]


def takes_pytorch_form(hook: Callable[..., Any], theirs: int, ours: int, where: str) -> bool:
    """Return whether `hook` is called with PyTorch's arguments rather than with lucid's own, fewer or more.

    Parameters
    ----------
    hook : callable
        What is being registered. One that can take either form, such as ``*args``, gets PyTorch's; so does a callable
        whose signature Python does not know.
    theirs, ours : int
        How many positional arguments the two forms have.
    where : str
        The registration, for the message.

    Raises
    ------
    HookTypeError
        If it is not callable, or can take neither form.
    """
    check_callable(hook, where)
    try:
        signature = inspect.signature(hook)
    except (TypeError, ValueError):
        return True
    for count in (theirs, ours):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return count == theirs
    raise HookTypeError(
        f"{where}: expected a hook of {ours} positional arguments, or of {theirs} as in PyTorch, got "
        f"{hook_name(hook)} with the signature {signature}"
    )


def is_full_backward_hook(hook: Callable[..., Any], where: str, instead: str) -> bool:
    """Return whether a backward hook takes (module, grad_input, grad_output) rather than (tensor, grad): that warns.

    Parameters
    ----------
    hook, where
        As for `takes_pytorch_form`.
    instead : str
        The registration that such a hook is meant for.

    Raises
    ------
    HookTypeError
        If it is not callable, or can take neither form.
    """
    full = takes_pytorch_form(hook, 3, 2, where)
    if full:
        warn(
            f"{where}: a hook of three arguments (module, grad_input, grad_output) is a full backward hook: register "
            f"it with {instead}",
            FutureWarning,
        )
    return full


class HookMethods:
    """The hook tables of a module, under PyTorch's names, and the methods that fill them.

    Every registration returns a `lucid.nn.hooks.RemovableHandle`; what cannot be called it refuses with a TypeError. A
    table maps handle ids to hooks; those named after another with a suffix mark which of its hooks were registered with
    that option. With `every_step` each replay of a captured step calls the hook; see `lucid.cuda.graphed_step`. With
    `with_context` a hook of calls gets a `lucid.hooks.HookContext` after its other arguments.
    """

    _forward_pre_hooks = TableAttribute(counted=True)
    _forward_pre_hooks_with_kwargs = TableAttribute(counted=True)
    _forward_hooks = TableAttribute(counted=True)
    _forward_hooks_with_kwargs = TableAttribute(counted=True)
    _forward_hooks_always_called = TableAttribute(counted=True)
    _backward_pre_hooks = TableAttribute(counted=True)
    _backward_hooks = TableAttribute(counted=True)
    _output_hooks = TableAttribute(counted=True)
    _hooks_with_context = TableAttribute(counted=True)
    _state_dict_pre_hooks = TableAttribute()
    _state_dict_hooks = TableAttribute()
    _load_state_dict_pre_hooks = TableAttribute()
    _load_state_dict_post_hooks = TableAttribute()

    def _marks_of(self, with_context: bool) -> list[HookTable]:
        return [self._hooks_with_context] if with_context else []

    def register_forward_pre_hook(
        self,
        hook: Hook,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        every_step: bool = False,
        with_context: bool = False,
    ) -> RemovableHandle:
        """Return the handle of a hook that is called before `forward`, and may replace its arguments.

        Parameters
        ----------
        hook : callable
            ``hook(module, args)`` with the tuple of positional arguments; returns None, or new arguments, of which a
            single one that is no tuple is wrapped in one.
        prepend : bool
            Whether it fires before all pre-hooks of this module, rather than after them.
        with_kwargs : bool
            Whether it is called ``hook(module, args, kwargs)`` and returns None or ``(args, kwargs)``.

        Examples
        --------
        >>> import lucid
        >>> from lucid import nn
        >>> module = nn.Identity()
        >>> handle = module.register_forward_pre_hook(lambda module, args: args[0] + 1)
        >>> module(lucid.zeros(2))
        tensor([1., 1.])
        """
        hook = every_step_hook(in_context(hook, with_context, "forward pre", InCall), every_step)
        marks = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        marks += self._marks_of(with_context)
        return register(self._forward_pre_hooks, hook, "register_forward_pre_hook", prepend=prepend, marks=marks)

    def register_forward_hook(
        self,
        hook: Hook,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
        every_step: bool = False,
        with_context: bool = False,
    ) -> RemovableHandle:
        """Return the handle of a hook that is called after `forward`, and may replace its output.

        Parameters
        ----------
        hook : callable
            ``hook(module, args, output)`` with the tuple of positional arguments; anything but None that it returns
            replaces the output.
        prepend : bool
            Whether it fires before all forward hooks of this module, rather than after them.
        with_kwargs : bool
            Whether it is called ``hook(module, args, kwargs, output)``.
        always_call : bool
            Whether it is also called when `forward` or an earlier hook has raised an `Exception`; `output` is None if
            there is none. What it raises then becomes a warning, and the first error goes on.

        Examples
        --------
        >>> import lucid
        >>> from lucid import nn
        >>> module = nn.Identity()
        >>> handle = module.register_forward_hook(lambda module, args, output: output * 3)
        >>> module(lucid.ones(2))
        tensor([3., 3.])
        """
        hook = every_step_hook(in_context(hook, with_context, "forward", InCall), every_step)
        marks = [self._forward_hooks_with_kwargs] if with_kwargs else []
        marks += self._marks_of(with_context)
        if always_call:
            marks.append(self._forward_hooks_always_called)
        return register(self._forward_hooks, hook, "register_forward_hook", prepend=prepend, marks=marks)

    def register_full_backward_pre_hook(
        self,
        hook: Hook,
        prepend: bool = False,
        *,
        aligned: bool = False,
        structured: bool = False,
        every_step: bool = False,
        with_context: bool = False,
    ) -> RemovableHandle:
        """Return the handle of a hook that sees the gradients of the outputs before the module's backward.

        Parameters
        ----------
        hook : callable
            ``hook(module, grad_output)`` with a tuple of the gradients of the output tensors; returns None, or a tuple
            of equal length that replaces them for all that follows.
        prepend : bool
            Whether it fires before all backward pre-hooks of this module, rather than after them.
        aligned : bool
            Whether `grad_output` has an entry for each output, None for those that are no tensors, as in
            `register_full_backward_hook`.
        structured : bool
            Whether `grad_output` has the structure of the output, with None in place of what is no tensor.

        Examples
        --------
        >>> import lucid
        >>> from lucid import nn
        >>> module = nn.Identity()
        >>> handle = module.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 10,))
        >>> x = lucid.ones(2, requires_grad=True)
        >>> module(x).sum().backward()
        >>> x.grad
        tensor([10., 10.])
        """
        form = Form(structured=structured, aligned=aligned)
        hook = every_step_hook(in_context(hook, with_context, "backward pre", InCall), every_step)
        return register(
            self._backward_pre_hooks, hook, "register_full_backward_pre_hook", prepend=prepend,
            marks=self._marks_of(with_context), option=None if form == PRE else form,
        )  # fmt: skip

    def register_full_backward_hook(
        self,
        hook: Hook,
        prepend: bool = False,
        *,
        aligned: bool = True,
        with_kwargs: bool = False,
        structured: bool = False,
        every_step: bool = False,
        with_context: bool = False,
    ) -> RemovableHandle:
        """Return the handle of a hook that sees the gradients of the inputs, and may replace them.

        It fires once the gradients of all positional inputs are final: after everything inside of the module, before
        the tensor hooks of the inputs. If none of them requires grad it fires once the gradients of the outputs are
        known, with a warning, and may return None only. A call keeps the hooks that the module had at the time; it
        fires none if its outputs do not require grad.

        Parameters
        ----------
        hook : callable
            ``hook(module, grad_input, grad_output)`` with a tuple of one gradient for each positional argument and one
            for each output, None where it is no tensor; returns None, or a tuple of equal length that replaces
            `grad_input` for all that follows.
        prepend : bool
            Whether it fires before all backward hooks of this module, rather than after them.
        aligned : bool
            Whether `grad_output` has a None for each output that is no tensor, rather than leaving it out.
        with_kwargs : bool
            Whether it is called ``hook(module, grad_args, grad_kwargs, grad_output)``, with a dictionary of the
            gradients of the keyword arguments, and returns None or ``(grad_args, grad_kwargs)``.
        structured : bool
            Whether gradients come in the structure of the arguments and of the output, with lists, dictionaries and
            dataclasses in them, and None in place of what is no tensor.

        Notes
        -----
        A positional tensor that requires grad and has no part in the outputs keeps it from firing, as in PyTorch, if
        there is no other input; one by name, or in a structure, does not: then it fires as if there was none.

        With such a hook `forward` gets a view of each tensor passed, and the caller a view of each tensor returned.
        Changing either in place raises an error. A tuple or list that the module returns is several outputs, anything
        else is one; the arguments' lists and dictionaries are looked into for `structured` hooks only.

        Examples
        --------
        >>> import lucid
        >>> from lucid import nn
        >>> module = nn.Identity()
        >>> handle = module.register_full_backward_hook(lambda module, grad_input, grad_output: print(grad_input))
        >>> x = lucid.ones(2, requires_grad=True)
        >>> module(x).sum().backward()
        (tensor([1., 1.]),)
        """
        form = Form(structured, with_kwargs, aligned)
        hook = every_step_hook(in_context(hook, with_context, "backward", InCall), every_step)
        return register(
            self._backward_hooks, hook, "register_full_backward_hook", prepend=prepend,
            marks=self._marks_of(with_context), option=None if form == FULL else form,
        )  # fmt: skip

    def register_backward_hook(self, hook: Hook, *, every_step: bool = False) -> RemovableHandle:
        """Return the handle of a hook on the tensor that the module returns.

        Parameters
        ----------
        hook : callable
            ``hook(tensor, grad)`` with the output and its gradient; what it returns is ignored. It fires only where the
            module returns a single tensor. The tensor is not kept alive: once nobody else holds it, it is None. A hook
            of the three arguments ``(module, grad_input, grad_output)`` becomes a full backward hook, with a warning.

        Raises
        ------
        TypeError
            If `hook` cannot be called, or takes neither two nor three arguments.

        Examples
        --------
        >>> import lucid
        >>> from lucid import nn
        >>> module = nn.Identity()
        >>> handle = module.register_backward_hook(lambda tensor, grad: print(grad))
        >>> y = module(lucid.ones(1, requires_grad=True))
        >>> y.backward()
        tensor([1.])
        """
        if is_full_backward_hook(hook, "register_backward_hook", "register_full_backward_hook"):
            return self.register_full_backward_hook(hook, every_step=every_step)
        return register(self._output_hooks, every_step_hook(hook, every_step), "register_backward_hook")

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Return the handle of ``hook(module, prefix, keep_vars)``, called before the module saves its part.

        A module's hooks are called before those of its submodules; what they return is ignored.
        """
        return register(self._state_dict_pre_hooks, hook, "register_state_dict_pre_hook")

    def register_state_dict_hook(self, hook: Hook) -> RemovableHandle:
        """Return the handle of ``hook(module, state_dict, prefix, keep_vars)``, called after the module has saved.

        The hook may edit `state_dict`, in which the entries of the module and of all below it begin with `prefix`. A
        dictionary that it returns is what `state_dict` returns, if the module is the one that was asked. The hooks of
        submodules are called first.

        Examples
        --------
        >>> from lucid import nn
        >>> module = nn.Identity()
        >>> def note(module, state_dict, prefix, keep_vars):
        ...     state_dict[prefix + "note"] = "custom"
        >>> handle = module.register_state_dict_hook(note)
        >>> dict(module.state_dict())
        {'note': 'custom'}
        """
        return register(self._state_dict_hooks, hook, "register_state_dict_hook", option="keep_vars")

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Return the handle of ``hook(module, state_dict, prefix, local_metadata)``; the hook must return None.

        It is called as those of `register_state_dict_hook` are, with the module's metadata, which it may edit.
        """
        return register(self._state_dict_hooks, hook, "register_state_dict_post_hook", option="no result")

    def _register_state_dict_hook(self, hook: Hook) -> RemovableHandle:
        """Return the handle of ``hook(module, state_dict, prefix, local_metadata)``; it may return a new dictionary."""
        return register(self._state_dict_hooks, hook, "_register_state_dict_hook")

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Return the handle of a hook that is called before the module takes its part of a state dict.

        Parameters
        ----------
        hook : callable
            ``hook(module, state_dict, strict)`` with a dictionary of the entries of this module and of all below it,
            under their names within this module; it may edit the dictionary, which is not the caller's. PyTorch's
            ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`` is
            recognised by its number of arguments; its keys begin with `prefix`.

        Raises
        ------
        TypeError
            If `hook` cannot be called, or takes neither three nor eight arguments.
        """
        theirs = takes_pytorch_form(hook, 8, 3, "register_load_state_dict_pre_hook")
        return register(
            self._load_state_dict_pre_hooks, hook, "register_load_state_dict_pre_hook",
            option="with module" if theirs else "own keys",
        )  # fmt: skip

    def _register_load_state_dict_pre_hook(self, hook: Hook, with_module: bool = False) -> RemovableHandle:
        """Return the handle of a pre-hook in PyTorch's form; it receives the module only if `with_module` is set."""
        return register(
            self._load_state_dict_pre_hooks, hook, "_register_load_state_dict_pre_hook",
            option="with module" if with_module else None,
        )  # fmt: skip

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Return the handle of a hook that is called after the module has taken its part of a state dict.

        Parameters
        ----------
        hook : callable
            ``hook(module, missing_keys, unexpected_keys, strict)`` with the keys that belong to this module and to all
            below it, under their names within this module. It is called also when a strict load is about to raise, and
            may edit both lists, and so avoid or cause the error. PyTorch's ``hook(module, incompatible_keys)``, whose
            lists are those of the whole load, is recognised by its number of arguments.

        Raises
        ------
        TypeError
            If `hook` cannot be called, or takes neither four nor two arguments.
        """
        theirs = takes_pytorch_form(hook, 2, 4, "register_load_state_dict_post_hook")
        return register(
            self._load_state_dict_post_hooks, hook, "register_load_state_dict_post_hook",
            option=None if theirs else "own keys",
        )  # fmt: skip
