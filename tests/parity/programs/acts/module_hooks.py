"""Registering hooks of every kind on the modules of a random program."""

from __future__ import annotations

from torch.utils.hooks import RemovableHandle

from tests.parity.programs.acts.hooks import Hooks
from tests.parity.programs.parts import STRUCTURED
from tests.parity.programs.structures import leaves_of, tensors_of


class ModuleHooks(Hooks):
    """The acts that register hooks of modules."""

    def forward_act(self, plan):
        """Change what a forward hook does where PyTorch and lucid differ, or a recomputation would."""
        return plan

    def forward_pre(self, a, b, c, d):
        plan = self.forward_act(self.plan("forward_pre", b))
        plan.target = (a, b, c, d)
        part = self.parts[a % len(self.parts)]
        named = c % 3 == 0

        if named:
            # PyTorch calls one that another hook takes off in the same call without the keyword arguments
            plan.fixed = True

            def hook(module, args, kwargs):
                return self.fire(
                    plan,
                    [module.number, args, kwargs],
                    lambda: self.scaled((args, kwargs), plan.number),
                    lambda: (args,),
                )
        else:

            def hook(module, args):
                def replaced():
                    new = self.scaled(args, plan.number)
                    return new[0] if len(new) == 1 else new

                return self.fire(plan, [module.number, args], replaced)

        handle = part.register_forward_pre_hook(hook, prepend=d % 3 == 0, with_kwargs=named)
        self.keep(plan, handle, f"m{part.number} prepend={d % 3 == 0} with_kwargs={named}")

    def forward_hook(self, a, b, c, d):
        plan = self.forward_act(self.plan("forward_hook", b))
        plan.target = (a, b, c, d)
        part = self.parts[a % len(self.parts)]
        # PyTorch stops a recomputation with an Exception, at which always-called hooks inside run once more; and it
        # calls one that is registered during a call that raises, in lucid it waits for the next
        named, always = c % 3 == 0, c % 4 == 0 and not (part.number in self.repeated or self.registering)
        plan.fixed = named or always
        if always and plan.act in {"remove itself", "remove another", "register"}:
            # PyTorch walks the living table after an error
            plan.act = "observe"

        def hook(module, args, *rest):
            *kwargs, output = rest
            # in a checkpoint in a checkpoint two tensors stand for one place: PyTorch fires the hooks of each in turn
            if d % 5 == 0 and output is not None and self.checkpoints.inside.count("plain") < 2:
                for tensor in tensors_of(self.lib, output)[:1]:
                    if tensor.requires_grad and not tensor.is_leaf and not self.muted:
                        self.hook_tensor(tensor, c)
            return self.fire(plan, [module.number, args, *kwargs, output], lambda: self.scaled(output, plan.number))

        handle = part.register_forward_hook(hook, prepend=d % 3 == 0, with_kwargs=named, always_call=always)
        self.keep(plan, handle, f"m{part.number} prepend={d % 3 == 0} with_kwargs={named} always_call={always}")

    def aligned(self):
        """Return what makes lucid's pre-hook see None for outputs that are no tensors, as PyTorch's does."""
        return {} if self.lib.__name__ == "torch" else {"aligned": True}

    def backward_hooked(self, number):
        """Return a part that may carry backward hooks: PyTorch fires none for lists and dictionaries."""
        fitting = [part for part in self.parts if part.kind not in STRUCTURED]
        return fitting[number % len(fitting)] if fitting else None

    def backward_pre(self, a, b, c, d):
        plan = self.plan("backward_pre", b)
        plan.target = (a, b, c, d)
        part = self.backward_hooked(a)
        if part is None:
            return

        def hook(module, grads):
            return self.fire(
                plan, [module.number, grads], lambda: self.scaled(grads, plan.number), lambda: (*grads, *grads)
            )

        handle = part.register_full_backward_pre_hook(hook, prepend=d % 3 == 0, **self.aligned())
        self.keep(plan, handle, f"m{part.number} prepend={d % 3 == 0}")

    def backward_hook(self, a, b, c, d):
        plan = self.plan("backward_hook", b)
        plan.target = (a, b, c, d)
        part = self.backward_hooked(a)
        if part is None:
            return

        def hook(module, into, out):
            # structured gradients of one output are no tuple
            return self.fire(
                plan, [module.number, into, tuple(leaves_of(out))], lambda: self.scaled(into, plan.number),
                lambda: (*into, *into, None),
            )  # fmt: skip

        def with_kwargs(module, into, named, out):
            result = hook(module, into, out)
            return None if result is None else (result, named)

        register, chosen, options = part.register_full_backward_hook, hook, {"prepend": d % 3 == 0}
        form = ("full", "full", "structured", "with_kwargs", "of three arguments")[c % 5]
        if self.lib.__name__ != "torch":
            # what lucid alone has does the same where there are only positional tensors
            if form == "structured":
                options["structured"] = True
            elif form == "with_kwargs" and part.kind not in {"mixed", "by_name"}:
                chosen, options["with_kwargs"] = with_kwargs, True
            elif form == "of three arguments" and d % 3:
                register, options = part.register_backward_hook, {}
        self.keep(plan, register(chosen, **options), f"m{part.number} prepend={d % 3 == 0} {form}")

    def output_hook(self, a, b, c, d):
        """Register a hook of the output tensor; `feed` puts it there in PyTorch."""
        self.output_hooked = True
        plan = self.plan("output_hook", b)
        plan.target = (a, b, c, d)
        part = self.parts[a % len(self.parts)]

        def hook(tensor, grad):
            self.fire(plan, [grad], lambda: None)

        if self.lib.__name__ == "torch":
            handle = RemovableHandle(part.output_hooks)
            part.output_hooks[handle.id] = hook
        else:
            handle = part.register_backward_hook(hook)
        self.keep(plan, handle, f"m{part.number}")

    def registration_hook(self, a, b, c, d):
        """Register a hook that sees, and may replace, what is stored in any module."""
        plan = self.plan("registration_hook", b)
        # PyTorch has forgotten the old value when one raises, and stores whatever one returns
        plan.act = "replace" if plan.act == "replace" else "observe"
        # PyTorch walks the living table
        plan.fixed = True
        kind = "buffer" if a % 3 == 0 else "parameter"

        def hook(module, name, value):
            # not what a module stores while it is made
            if hasattr(module, "number"):
                return self.fire(plan, [module.number, name, value], lambda: self.stored(value))
            return None

        handle = getattr(self.lib.nn.modules.module, f"register_module_{kind}_registration_hook")(hook)
        self.globals.append(handle)
        self.keep(plan, handle, f"every {kind}")

    def stored(self, value):
        """Return another value of the same kind."""
        halved = value.detach() * 0.5
        return self.lib.nn.Parameter(halved) if isinstance(value, self.lib.nn.Parameter) else halved

    def everywhere(self, a, b, c, d):
        """Register a hook of all modules."""
        lib = self.lib.nn.modules.module
        kind = ("forward_pre", "forward", "full_backward_pre", "full_backward")[a % 4]
        if a % 4 > 1 and self.structured:
            return
        plan = self.forward_act(self.plan(f"global_{kind}", b))
        plan.target = None

        def hook(module, *rest):
            if not hasattr(module, "number"):
                return None
            # what they return: the arguments, the output, the gradients of outputs, those of inputs
            value = rest[-1] if a % 4 == 1 else rest[0]
            if a % 4 == 2:
                # global pre-hooks do not see outputs that are no tensors in lucid, and see None for them in PyTorch
                rest = [g for g in value if g is not None]
            return self.fire(plan, [module.number, *rest], lambda: self.scaled(value, plan.number))

        # as for the hooks of one module
        always = a % 4 == 1 and c % 3 == 1 and not (self.repeated or self.registering)
        # not both: after an error PyTorch calls such a hook without the keyword arguments
        named = a % 4 == 1 and c % 3 == 0
        options = {"with_kwargs": named, "always_call": always} if named or always else {}
        plan.fixed = named or always
        if always and plan.act in {"remove itself", "remove another", "register"}:
            plan.act = "observe"
        handle = getattr(lib, f"register_module_{kind}_hook")(hook, **options)
        self.globals.append(handle)
        self.keep(plan, handle, f"all modules {options}")

    def state_hook(self, a, b, c, d):
        plan = self.plan("state_hook", b)
        # a load that fails changes nothing in lucid, and some parts in PyTorch
        plan.act = "raise" if plan.act == "raise" and c % 4 < 2 else "observe"
        part = self.parts[a % len(self.parts)]
        if c % 4 == 0:
            handle = part.register_state_dict_pre_hook(
                lambda module, prefix, keep: self.fire(plan, [module.number, prefix, keep], lambda: None)
            )
        elif c % 4 == 1:
            handle = part.register_state_dict_post_hook(
                lambda module, state, prefix, local: self.fire(plan, [module.number, prefix], lambda: None)
            )
        elif c % 4 == 2:
            handle = part.register_load_state_dict_pre_hook(
                # PyTorch says strict=True to the hooks of submodules whatever the load is
                lambda module, state, prefix, local, strict, missing, unexpected, errors: self.fire(
                    plan, [module.number, prefix], lambda: None
                )
            )
        else:
            handle = part.register_load_state_dict_post_hook(
                # they come after the load of each part in PyTorch, and after that of all parts in lucid
                lambda module, keys: self.after_load.append((plan.name, module.number, sorted(keys.missing_keys)))
            )
        self.keep(plan, handle, f"m{part.number} ({c % 4})")
