"""What the hooks of a random program do when they fire, and registering those of tensors and nodes."""

from __future__ import annotations

from tests.parity.programs.bodies import feed
from tests.parity.programs.graphs import at_boundary, converts, gives_indices, is_reentrant, of_function
from tests.parity.programs.structures import PlannedError, leaves_of, mapped, merged, values_of

# What a hook does beside noting that it was called; by their weights
ACTS = (
    *("observe",) * 5,
    *("replace",) * 5,
    *("use",) * 3,
    *("remove itself", "remove another", "register", "register", "raise", "wrong", "queue", "differentiate"),
    *("differentiate", "enter"),
)


class Plan:
    """One registered hook: its name in the program, what it does, and the handle that takes it off."""

    def __init__(self, name, kind, act, number):
        self.name, self.kind, self.act, self.number = name, kind, act, number
        self.calls = 0
        self.handle = None
        self.fixed = False
        self.of_leaf = False
        self.target = None

    @property
    def leaves_calls(self):
        """Tell whether it goes while a call inside of a call fires it: PyTorch's outer one forgets its kind."""
        return self.fixed and self.act == "remove itself"


class Hooks:
    """The acts that register hooks of tensors and nodes, and remove any. `Machine` gives the pool and the notes."""

    def init_hooks(self):
        """Start without hooks."""
        self.plans = []
        self.globals = []
        self.watched = set()
        self.watched_nodes = []
        self.hooked = set()
        self.output_hooked = False
        self.kept = []
        self.originals = []
        self.held = []
        self.after_load = []
        self.unordered = []
        self.registering = 0
        self.count = 0

    def plan(self, kind, number):
        """Return a new hook of a kind; the number selects what it does."""
        act = ACTS[number % len(ACTS)] if not self.registering else "observe"
        self.count += 1
        return Plan(f"{kind} h{self.count}", kind, act, number // len(ACTS))

    def keep(self, plan, handle, where):
        """Note the handle of a registered hook."""
        plan.handle = handle
        self.plans.append(plan)
        self.say(f"{plan.name} on {where}: {plan.act} {plan.number}")

    def fire(self, plan, seen, replaced, wrong=None):
        """Note a hook call, do what the hook is to do, and return what it is to return."""
        if self.muted:
            return self.fire_muted(plan, seen, replaced)
        plan.calls += 1
        self.note(plan.name, self.lib.is_grad_enabled(), *seen)
        if plan.act == "use":
            self.use(plan, seen)
        if plan.act == "replace":
            return replaced()
        if plan.act == "wrong" and wrong is not None and plan.calls == 1 + plan.number % 2:
            return wrong()
        if plan.act == "raise" and plan.calls == 1 + plan.number % 3:
            raise (PlannedError, ValueError, KeyError)[plan.number % 3]
        if plan.act == "remove itself" and plan.handle is not None:
            plan.handle.remove()
        elif plan.act == "remove another":
            self.remove_one(plan.number)
        elif plan.act == "register" and plan.calls == 1:
            self.register_inside(plan)
        elif plan.act == "queue":
            # refused outside of backward
            self.attempt(f"{plan.name} queues", self.queue, plan)
        elif plan.act in {"differentiate", "enter"}:
            getattr(self, plan.act)(plan)
        return None

    def queue(self, plan):
        """Note, at the end of the pass that runs, that it has ended."""
        self.lib.autograd.Variable._execution_engine.queue_callback(lambda: self.note_part(f"{plan.name} at the end"))

    def differentiate(self, plan):
        """Run a backward pass of its own inside of a hook."""
        # with gradients enabled inside of inference mode PyTorch's checkpoints and Functions save, and then raise;
        # in a first run a gradient makes lucid recompute no more of a checkpoint than it needs, PyTorch all of it
        if plan.calls > 1 or self.lib.is_inference_mode_enabled() or "plain" in self.checkpoints.inside:
            return
        # PyTorch's multi-grad hooks of all tensors count a pass and one inside of it together; its nodes of leaves
        # may hand `.grad` itself to posthooks, with what a pass inside of a hook of the leaf has added to it
        fresh = plan.kind in {"accumulate", "node_post"} or id(self.pool[0]) in self.watched
        x = self.leaf() if fresh or plan.number % 2 == 0 else self.pool[0]
        way = plan.number // 2 % 5
        with self.lib.enable_grad():
            if way == 1:
                y = self.lib.utils.checkpoint.checkpoint(
                    # PyTorch refuses reentrant ones inside of a pass of autograd.grad, even in a pass of their own
                    lambda x: x.sin().tanh(),
                    x * 1.0,
                    use_reentrant=False,
                )
            elif way == 2 and not (fresh or self.watched or plan.fixed or any(p.leaves_calls for p in self.plans)):
                # PyTorch walks the living table of always-called hooks
                y = merged(self.lib, feed(self.lib, self.parts[0], x))
            else:
                y = x.sin()
            if way == 3:
                (first,) = self.lib.autograd.grad(y.sum(), x, create_graph=True)
                self.note(f"{plan.name} inside", self.lib.autograd.grad((first * first).sum(), x))
                return
            if way == 4:
                with self.lib.autograd.graph.saved_tensors_hooks(lambda t: t.detach() * 2.0, lambda t: t * 0.5):
                    y = y.tanh()
        if y.requires_grad:
            # a copy: where y is a view of x, PyTorch would make it the gradient of x, and add to it
            y.backward(y.detach() * 1.0)
        self.note(f"{plan.name} inside", x.grad)

    def use(self, plan, seen):
        """Note what a user's code makes of the first tensor that a hook was given."""
        found = [leaf for leaf in leaves_of(list(seen)) if isinstance(leaf, self.lib.Tensor)]
        if not found:
            return
        # what a recomputation is to save again should not depend on what the operations of each side save
        g = found[0].detach() if self.checkpoints.inside else found[0]
        uses = (
            lambda: g.clone(), lambda: g + 1, lambda: g.detach().clone().mul_(0.5),
            lambda: g.detach().cpu().numpy().copy(), lambda: float(g.sum()),
            lambda: g.expand(2, *g.shape), lambda: g.reshape(-1), lambda: 1.0 - g * 1.0,
            lambda: g.to(self.lib.float32), lambda: g.reshape(-1)[:1].clone().zero_(), lambda: (g == g).all(),
            lambda: [tuple(g.shape), g.ndim, g.numel(), g.requires_grad, g.is_leaf],
            lambda: g * g.detach().cpu().numpy().sum(),
        )  # fmt: skip
        self.attempt(f"{plan.name} uses", lambda: self.note(f"{plan.name} uses", uses[plan.number % len(uses)]()))

    def enter(self, plan):
        """Enter a mode and leave it to the pass to go back; forward hooks leave it themselves."""
        graph = self.lib.autograd.graph
        mode = (
            lambda: graph.saved_tensors_hooks(lambda t: t.detach() * 2.0, lambda t: t * 0.5), self.lib.enable_grad,
            self.lib.no_grad,
        )[plan.number % 3]()  # fmt: skip
        mode.__enter__()
        try:
            # beside a checkpoint as in `use`
            y = self.leaf().detach() * 2.0 if self.checkpoints.inside else self.leaf() * self.leaf()
            self.note(f"{plan.name} entered", y.requires_grad)
        finally:
            mode.__exit__(None, None, None)

    def fire_muted(self, plan, seen, replaced):
        """Do what a hook does in a pass through derivatives: only those of leaves act, in whatever order."""
        if plan.kind not in {"tensor_hook", "accumulate"} or not plan.of_leaf:
            return None
        self.unordered.append((plan.name, *values_of(seen)))
        return replaced() if plan.act == "replace" else None

    def register_inside(self, plan):
        """Register another hook while one fires: on what it hangs on, or anywhere."""
        self.registering += 1
        try:
            n = plan.number
            if plan.target is not None and n % 2:
                getattr(self, plan.kind)(*plan.target)
            else:
                kinds = ("tensor_hook", "forward_pre", "forward_hook", "backward_pre", "backward_hook", "accumulate")
                getattr(self, kinds[n % len(kinds)])(n, n // 3, n // 5, n // 7)
        finally:
            self.registering -= 1

    def remove_one(self, number):
        """Take a hook off."""
        plans = [p for p in self.plans if not p.fixed]
        if plans:
            plan = plans[-1 - number % len(plans)]
            self.say(f"{plan.name} removed")
            plan.handle.remove()

    def remove_hook(self, a, b, c, d):
        self.remove_one(a)

    def remove_global_hooks(self):
        for handle in self.globals:
            handle.remove()

    def scaled(self, value, number=0):
        """Return a structure with another tensor in place of each in it: half of it, for other numbers another way."""
        lib = self.lib
        if "plain" in self.checkpoints.inside:
            # a way that saves nothing, as in `use`
            number = 0

        def replaced(g):
            if not (isinstance(g, lib.Tensor) and g.is_floating_point()):
                return g
            return (
                lambda: g * 0.5, lambda: g.clone(), lambda: g + 1, lambda: g.detach().clone().mul_(0.5),
                lambda: lib.tensor(g.detach().cpu().numpy() * 0.5), lambda: lib.zeros_like(g), lambda: g,
                lambda: g.sum().expand(tuple(g.shape)).clone(), lambda: g.tanh() * 0.5, lambda: g.detach().clone(),
                lambda: lib.full(tuple(g.shape), 0.5, dtype=g.dtype), lambda: g.mean() * g,
            )[number % 12]()  # fmt: skip

        return mapped(replaced, value)

    # Of tensors

    def hookable(self, number, keep=lambda tensor: True):
        """Return a tensor of the pool or a parameter that requires grad."""
        found = [t for t in [*self.parameters(), *self.pool] if t.requires_grad and keep(t)]
        if not found:
            return None
        chosen = found[-1 - number % len(found)]
        # PyTorch crashes where a hook is registered on a view of a changed base whose node it has not replaced yet
        _ = chosen.grad_fn
        self.hooked.add(id(chosen))
        # so that no other tensor gets its id
        self.held.append(chosen)
        return chosen

    def where(self, tensor):
        """Return a tensor's name, or a parameter's place."""
        places = [index for index, p in enumerate(self.parameters()) if p is tensor]
        return f"parameter {places[0]}" if places else self.name(tensor)

    def tensor_hook(self, a, b, c, d):
        x = self.hookable(a)
        # PyTorch breaks off if a hook hangs another on a further output of the node whose hooks are being called
        if x is not None and not (self.registering and id(x) in self.shared):
            self.hook_tensor(x, b, (a, b, c, d))

    def hook_tensor(self, x, number, target=None):
        """Register a tensor hook on x."""
        self.hooked.add(id(x))
        # so that no other tensor gets its id
        self.held.append(x)
        plan = self.plan("tensor_hook", number)
        plan.target = target
        plan.of_leaf = x.is_leaf

        def hook(grad):
            return self.fire(
                plan, [grad], lambda: self.scaled(grad, plan.number), lambda: None if grad is None else grad[None]
            )

        self.keep(plan, x.register_hook(hook), self.where(x))

    def retain(self, a, b, c, d):
        x = self.pick(a, lambda t: t.requires_grad)
        _ = x.grad_fn
        self.say(f"{self.name(x)}.retain_grad()")
        x.retain_grad()

    def accumulate(self, a, b, c, d):
        x = self.hookable(a, lambda t: t.is_leaf)
        if x is None:
            return
        plan = self.plan("accumulate", b)
        plan.target = (a, b, c, d)
        plan.of_leaf = True

        def hook(leaf):
            if self.fire(plan, [leaf.grad], lambda: True):
                # PyTorch refuses to add to an expanded gradient, lucid adds
                leaf.grad = None if b % 2 else self.scaled(leaf.grad, plan.number).contiguous()

        self.keep(plan, x.register_post_accumulate_grad_hook(hook), self.where(x))

    def node(self, a):
        """Return a node, and what it is the node of; None where lucid and PyTorch build other ones."""
        # PyTorch finds no node of a leaf in inference mode, and none of a leaf made there
        x = self.hookable(a, lambda t: not t.is_inference())
        if x is None or self.lib.is_inference_mode_enabled():
            return None, None
        node = self.lib.autograd.graph.get_gradient_edge(x).node
        # at the boundary of a module PyTorch's own hooks are hooks of such a node, lucid's are what the node does
        # and PyTorch's CopySlices runs the op that changed a view inside itself, which in lucid is a node of its own
        if at_boundary(node) or node.name().endswith("CopySlices"):
            return None, None
        # PyTorch's node of a leaf lives as long as somebody holds it, lucid's as long as the leaf
        self.held.append(node)
        return node, x

    def node_pre(self, a, b, c, d):
        plan = self.plan("node_pre", b)
        plan.target = (a, b, c, d)
        node, x = self.node(a)

        def hook(grads):
            return self.fire(plan, grads, lambda: self.scaled(grads, plan.number), lambda: (*grads, *grads))

        if node is not None and not gives_indices(node):
            self.keep(plan, node.register_prehook(hook), f"node of {self.where(x)}")

    def node_post(self, a, b, c, d):
        plan = self.plan("node_post", b)
        plan.target = (a, b, c, d)
        node, x = self.node(a)

        def hook(into, grads):
            return self.fire(plan, [into, grads], lambda: self.scaled(into, plan.number), lambda: (*into, None))

        if node is not None and self.registering and is_reentrant(node):
            # while it runs: PyTorch calls such a hook after this run, without gradients of outputs
            return
        # what goes on from the node differs: a cast is a node of its own in lucid, a linear layer several in PyTorch,
        # and what a Function returns for an input that requires no grad is None in lucid
        if (
            node is not None
            and not (converts(node) or getattr(x, "of_other_nodes", False) or (x._base is not None and x._version))
            and not (of_function(node) and any(f is None for f, _ in node.next_functions))
        ):
            self.keep(plan, node.register_hook(hook), f"node of {self.where(x)}")

    def watchable(self, tensor, *, anyone):
        """Tell whether both sides agree on what a multi-grad hook on this tensor sees."""
        # PyTorch finds no node of a leaf made in inference mode
        if tensor.is_inference():
            return False
        # its mode "any" takes the None of an unused output, or of a Function, for a gradient
        return not anyone or not (
            self.returns_none or id(tensor) in self.shared or (not tensor.is_leaf and at_boundary(tensor.grad_fn))
        )

    def multi(self, a, b, c, d):
        # in the pass under way, roots would count in lucid only, and PyTorch may refuse its inputs
        # and PyTorch finds no node of a leaf in inference mode
        if self.registering or self.lib.is_inference_mode_enabled():
            return
        if any(spec.kind == "reentrant" for spec in self.program.specs):
            # a pass inside of a pass counts what both reach as one in PyTorch
            return
        tensors = [self.hookable(n, lambda t: self.watchable(t, anyone=d % 2 == 0)) for n in (a, c)]
        tensors = list({id(t): t for t in tensors if t is not None}.values())
        # PyTorch never counts a root of the pass, lucid does: these are not used as roots
        self.watched |= {id(t) for t in tensors}
        self.watched_nodes += [t.grad_fn for t in tensors if not t.is_leaf]
        self.kept += [t for t in tensors if not t.is_leaf]
        plan = self.plan("multi", b)
        plan.target = (a, b, c, d)

        def hook(grads):
            self.fire(plan, grads if isinstance(grads, list | tuple) else [grads], lambda: None)

        mode = "all" if d % 2 else "any"
        handle = self.lib.autograd.graph.register_multi_grad_hook(tensors, hook, mode=mode)
        self.keep(plan, handle, f"{[self.where(t) for t in tensors]} {mode}")
