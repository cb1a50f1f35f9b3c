"""The acts of training: optimizers, parameters, saved states, copies."""

from __future__ import annotations

import contextlib
import copy

from tests.parity.programs.structures import refused


class Training:
    """The acts of training. `Machine` gives the net and the notes."""

    def zero_grad(self, a, b, c, d):
        if a % 3 == 0 and self.optimizer:
            self.say(f"optimizer.zero_grad({b % 2 == 0})")
            self.optimizer.zero_grad(set_to_none=b % 2 == 0)
        else:
            self.say(f"net.zero_grad({b % 2 == 0})")
            self.net.zero_grad(set_to_none=b % 2 == 0)
        self.note("zeroed", [p.grad for p in self.parameters()])

    def optimizer_step(self, a, b, c, d):
        if self.optimizer:
            self.say("optimizer.step()")
            try:
                with self.as_before_if_refused(self.parameters()):
                    self.optimizer.step()
            finally:
                if self.lib.is_inference_mode_enabled():
                    # its state is made of inference tensors, which PyTorch's next step may not change
                    self.new_optimizer()
            self.forget_converted()
            self.note("stepped", self.parameters())

    @contextlib.contextmanager
    def as_before_if_refused(self, tensors):
        """Undo what is done to tensors if it raises as it may not change them: PyTorch has changed some by then."""
        before = [t.detach() * 1.0 for t in tensors]
        try:
            yield
        except Exception:
            if refused(self.lib, tensors):
                with self.lib.inference_mode():
                    for t, values in zip(tensors, before, strict=True):
                        t.copy_(values)
                self.after_load.clear()
                self.new_optimizer()
            raise

    def new_optimizer(self):
        self.optimizer = self.lib.optim.SGD(self.parameters(), lr=0.1, momentum=0.9) if self.parameters() else None

    def forget_converted(self):
        """Forget graphs that cast changed parameters: lucid's have saved what was cast, PyTorch's are refused."""
        if self.program.mixed:
            self.forget_graph()

    def optimizer_hook(self, a, b, c, d):
        """Register a hook of the optimizer's step; it goes with the optimizer."""
        if not self.optimizer:
            return
        plan = self.plan("optimizer_hook", b)
        # PyTorch walks the living tables
        plan.fixed = True
        plan.act = "observe" if plan.act == "remove itself" else plan.act

        def hook(optimizer, args, kwargs):
            self.fire(plan, [len(args), kwargs, [p.grad for p in self.parameters()]], lambda: None)

        register = self.optimizer.register_step_post_hook if a % 2 else self.optimizer.register_step_pre_hook
        self.keep(plan, register(hook), "the optimizer" + (" after" if a % 2 else " before"))

    def assign(self, a, b, c, d):
        """Store a new parameter or buffer in a part that has some of its own."""
        fitting = [part for part in self.parts if hasattr(part, "spec") and not part.spec.children]
        if not fitting:
            return
        part = fitting[a % len(fitting)]
        value = self.values(() if d % 4 == 0 else self.shape)
        if c % 3:
            if not part.weight.requires_grad:
                # a checkpoint would save more when it runs again, and each side takes it in the order that it saves
                self.forget_graph()
            self.say(f"m{part.number}.weight = Parameter")
            part.weight = self.lib.nn.Parameter(value)
        else:
            self.say(f"m{part.number}.register_buffer")
            part.register_buffer("state", value)
        self.forget_converted()
        self.note("stored", *[value for _, value in sorted(part.state_dict().items())])

    def train(self, a, b, c, d):
        self.say(f"net.train({a % 2 == 0})")
        self.net.train(a % 2 == 0)

    def freeze(self, a, b, c, d):
        """Switch whether a parameter requires grad."""
        parameters = self.parameters()
        if parameters:
            p = parameters[a % len(parameters)]
            self.say(f"parameter {a % len(parameters)}.requires_grad_({b % 2 == 0})")
            # a second derivative through what saved it follows the flag of now in PyTorch
            self.forget_graph()
            # and a view of it requires grad in PyTorch as soon as it does
            self.kept += [t for t in self.pool if t._base is p]
            self.pool = [t for t in self.pool if t._base is not p]
            p.requires_grad_(b % 2 == 0)

    def state_dict(self, a, b, c, d):
        part = self.parts[b % len(self.parts)] if a % 2 else self.net
        self.say(f"m{part.number}.load_state_dict(m{part.number}.state_dict())")
        state = part.state_dict()
        self.note("state", dict(state))
        with self.as_before_if_refused([*part.parameters(), *part.buffers()]):
            part.load_state_dict({key: value * 0.5 for key, value in state.items()}, strict=c % 2 == 0)
        for note in self.after_load:
            self.note(*note)
        self.after_load.clear()
        self.forget_converted()
        self.note("loaded", self.parameters())

    def deepcopy(self, a, b, c, d):
        """Go on with a copy of the net."""
        self.say("net = deepcopy(net)")
        # the hooks' handles are those of the original
        self.originals.append(self.parts)
        copied = copy.deepcopy(self.parts)
        self.parts, self.net = copied, copied[-1]
        self.new_optimizer()
        self.note("copied", [(p, p.grad) for p in self.parameters()])
