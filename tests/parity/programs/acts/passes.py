"""The acts of backward: passes of every kind, and differentiating twice."""

from __future__ import annotations

from tests.parity.programs.graphs import is_reentrant, nodes_above, overlap


class Passes:
    """The acts that run backward. `Machine` gives the pool and the notes."""

    def cannot_repeat(self, roots):
        """Tell whether PyTorch refuses to run a checkpoint again: in inference mode it saves nothing there."""
        return self.lib.is_inference_mode_enabled() and bool(nodes_above(roots) & set(self.checkpoints.nodes))

    def has_reentrant(self, roots):
        """Tell whether a pass would reach a reentrant checkpoint, of which second derivatives differ."""
        return any(is_reentrant(node) for node in nodes_above(roots))

    def is_watched(self, t):
        """Tell whether a multi-grad hook waits for a tensor, or for another output of its node."""
        return id(t) in self.watched or (not t.is_leaf and any(t.grad_fn is node for node in self.watched_nodes))

    def roots(self, numbers):
        """Return up to two tensors that require grad, with a random gradient for each."""
        chosen = self.distinct(numbers, lambda t: t.requires_grad and not self.is_watched(t))
        if not chosen:
            chosen = [self.leaf() * 1.0]
        if len(chosen) > 1:
            # in which order PyTorch reaches several leaves that are roots is no rule
            chosen = [t if t.grad_fn is not None else t * 1.0 for t in chosen]
        return chosen, [self.gradient(t) for t in chosen]

    def gradient(self, t):
        """Return a random gradient of a tensor."""
        return self.lib.tensor(self.rng.standard_normal(tuple(t.shape)), dtype=t.dtype)

    def fresh_roots(self, numbers):
        """Return copies as roots: PyTorch fires the hooks of a root that leads to no input, lucid does not."""
        roots, grads = self.roots(numbers)
        return [root * 1.0 for root in roots], grads

    def edges(self, tensors, number):
        """Return tensors, or the places in the graph where their gradients arrive."""
        # PyTorch finds none of a leaf in inference mode, and none of a leaf made there
        if number % 5 or self.lib.is_inference_mode_enabled() or any(t.is_inference() for t in tensors):
            return tensors
        return [self.lib.autograd.graph.get_gradient_edge(t) for t in tensors]

    def given(self, roots, grads, number):
        """Return the gradients of roots; at times none, which those of one element do not need."""
        return None if number % 4 == 0 and all(root.numel() == 1 for root in roots) else grads

    def backward(self, a, b, c, d):
        roots, grads = self.roots((a, b) if c % 2 else (a,))
        if self.cannot_repeat(roots):
            return
        times = 1 + (d % 3 == 0)
        # second derivatives that reentrant checkpoints refuse, and PyTorch gets wrong
        create = d % 7 == 0 and not self.has_reentrant(roots)
        self.say(f"backward({[self.name(t) for t in roots]}, create_graph={create}) x {times}")
        try:
            for time in range(times):
                # PyTorch's .grad may be a view of these, which the second pass changes
                given = self.given(roots, [g.clone() for g in grads], b)
                self.lib.autograd.backward(
                    self.edges(roots, b), given, create_graph=create,
                    retain_graph=time + 1 < times or d % 4 == 0,
                )  # fmt: skip
                self.part_gradients()
                self.note("gradients", [t.grad for t in self.leaves()])
        except Exception:
            self.forget_graph()
            raise
        finally:
            self.forget_refused()
            if create:
                for t in self.leaves():
                    t.grad = None if t.grad is None else t.grad.detach()
        if d % 4:
            self.forget_graph()

    def part_gradients(self):
        """Let no gradients of leaves share memory, as parts of one gradient may in PyTorch: it adds to both."""
        held = [t for t in self.leaves() if t.grad is not None]
        for index, t in enumerate(held):
            if any(other is not t and overlap(t.grad, other.grad) for other in held[:index]):
                with self.lib.inference_mode(t.grad.is_inference()):
                    t.grad = t.grad.clone()

    def forget_refused(self):
        """Drop the gradients that were made in inference mode: PyTorch adds to them outside of it, and then raises."""
        if not self.lib.is_inference_mode_enabled():
            for t in self.leaves():
                if t.grad is not None and t.grad.is_inference():
                    t.grad = None

    def inputs(self, numbers):
        # PyTorch runs the node of an input that is no leaf, and its hooks, though nobody gets what it gives; and it
        # refuses multi-grad hooks on inputs of autograd.grad
        found = self.distinct(numbers, lambda t: t.is_leaf and t.requires_grad) + self.parameters()[: numbers[0] % 3]
        return [t for t in found if t.requires_grad and id(t) not in self.watched]

    def backward_to_inputs(self, a, b, c, d):
        roots, grads = self.fresh_roots((a,))
        if self.cannot_repeat(roots):
            return
        inputs = self.inputs((b, c))
        self.say(f"backward({[self.name(t) for t in roots]}, inputs={[self.name(t) for t in inputs]})")
        try:
            self.lib.autograd.backward(roots, self.given(roots, grads, d), inputs=self.edges(inputs, d))
            self.part_gradients()
        finally:
            self.forget_refused()
            self.forget_graph()
        self.note("gradients", [t.grad for t in self.leaves()])

    def grad(self, a, b, c, d):
        roots, grads = self.fresh_roots((a,))
        if self.cannot_repeat(roots):
            return
        inputs = self.inputs((b, c))
        if d % 2:
            # a hook on an input that is no leaf: PyTorch returns what the hook was given if another input lies below
            inputs += self.distinct(
                (d,), lambda t: t.requires_grad and not t.is_leaf and id(t) not in self.hooked | self.watched
            )
        inputs = list({id(t): t for t in inputs}.values()) or [self.leaf()]
        options = {"allow_unused": None if c % 7 == 0 else c % 5 > 0, "materialize_grads": c % 7 == 0}
        self.say(f"autograd.grad({[self.name(t) for t in roots]}, {[self.name(t) for t in inputs]}, {options})")
        try:
            edges = self.edges(inputs, b)
            found = self.lib.autograd.grad(self.edges(roots, c), edges, self.given(roots, grads, d), **options)
            self.note("grad", found, [g is not None and g.requires_grad for g in found])
        finally:
            self.forget_graph()

    def double(self, a, b, c, d):
        """Differentiate by the leaves twice.

        The second pass goes through the recorded derivatives, and how these use intermediate tensors is each side's own
        affair: only hooks of leaves act there, and only what reaches leaves is compared.
        """
        # as in `inputs`
        leaves = [t for t in self.leaves() if t.requires_grad and id(t) not in self.watched] or [self.leaf()]
        roots, grads = self.fresh_roots((a, b) if c % 2 else (a,))
        if self.has_reentrant(roots) or self.cannot_repeat(roots):
            # second derivatives through reentrant ones are refused by lucid, wrong in PyTorch
            return
        self.say(f"double backward of {[self.name(t) for t in roots]}")
        try:
            first = self.lib.autograd.grad(roots, leaves, grads, create_graph=True, allow_unused=True)
            self.note("first", first, [g is not None and g.requires_grad for g in first])
            total = sum((g * g).sum() for g in first if g is not None and g.requires_grad)
            if isinstance(total, self.lib.Tensor) and total.requires_grad:
                self.muted = True
                total.backward()
            for note in sorted(self.unordered, key=lambda note: note[0]):
                self.note(*note)
        except Exception:
            # which leaves had theirs by then depends on the order
            for t in self.leaves():
                t.grad = None
            raise
        finally:
            for t in self.pool:
                if t.retains_grad:
                    t.grad = None
            self.unordered.clear()
            self.muted = False
            self.forget_graph()
        self.note(
            "second", [self.lib.zeros(tuple(t.shape), dtype=t.dtype) if t.grad is None else t.grad for t in leaves]
        )
        for t in leaves:
            t.grad = None
