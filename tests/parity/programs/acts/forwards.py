"""The acts that compute: calling parts, operations, views, and changes in place."""

from __future__ import annotations

from tests.parity.programs.bodies import LARGE, correction, fed, feed, filled, mean_and_spread
from tests.parity.programs.graphs import at_boundary, overlap
from tests.parity.programs.structures import apart, flat, largest, refused, tensors_of


class Forwards:
    """The acts that compute. `Machine` gives the pool and the notes."""

    def fits(self, number):
        """Return whether a tensor can be given to a part: one of the program's shape, or at times any."""
        return lambda t: tuple(t.shape) == self.shape or number % 6 == 0

    def call(self, part, x, how):
        """Add what a part makes of x to the pool."""
        self.forwards += 1
        given = x * 1.0 if how % 3 == 0 else x
        if largest(x) > LARGE:
            given = x.tanh()
        self.say(f"{self.name(x)} -> m{part.number}({'copy' if how % 3 == 0 else ''})")
        self.put_output(feed(self.lib, part, given), x)

    def put_output(self, out, x):
        """Add what a part returned to the pool, and note it."""
        tensors = tensors_of(self.lib, out)
        if len(tensors) > 1:
            # they may be outputs of one node
            self.shared |= {id(t) for t in tensors}
        self.say(f"   = {[self.put(t, 'y', of=x) for t in tensors]}")
        self.note("output", out, [(t.requires_grad, t.is_leaf) for t in tensors])

    def forward(self, a, b, c, d):
        part = self.parts[b % len(self.parts)] if c % 3 == 0 else self.net
        self.call(part, self.pick(a, self.fits(d)), d)

    def quiet_forward(self, a, b, c, d):
        with self.lib.no_grad():
            self.forward(a, b, c, d)

    def direct_forward(self, a, b, c, d):
        """Call `forward` itself, which fires no hooks of the module."""
        part = self.parts[b % len(self.parts)]
        x = self.pick(a, self.fits(d))
        self.say(f"m{part.number}.forward({self.name(x)})")
        self.put_output(fed(self.lib, part, part.forward, x), x)

    def unary(self, a, b, c, d):
        x = self.whole(self.pick(a))
        if b % 17 == 12 and not x.is_floating_point():
            # PyTorch takes no sizes of bools, by another error
            return
        y = (
            x.sin, x.tanh, x.clone, lambda: x * 2.0, lambda: x[0].expand(2, 3).clone(), lambda: x.sum(),
            lambda: x.mean(),
            lambda: x + -0.25, lambda: x.to(self.lib.float32 if self.program.mixed else self.lib.float64),
            lambda: x * x, lambda: (x * x).sum(0, keepdim=True), lambda: x.exp().tanh(), x.abs,
            lambda: x.amax(-1) if apart(x, -1) else x * 0.5,
            lambda: self.lib.where(x > 0.1, x, x * 0.5), lambda: 1.0 - x, lambda: 3.0 * x,
        )[b % 17]()  # fmt: skip
        if b % 17 >= 14:
            # nodes with places for a condition or a number in lucid
            y.of_other_nodes = True
        self.say(f"{self.put(y, 'u', of=x)} = unary {b % 17} of {self.name(x)}")

    def whole(self, x):
        """Return x, of which a view may be taken: without history where nothing is recorded.

        PyTorch's views taken under no_grad claim to require grad and yet have no history; lucid's do not.
        """
        records = self.lib.is_grad_enabled() and not self.lib.is_inference_mode_enabled()
        if records:
            return x
        alias = x.detach()
        self.memory[id(alias)] = self.owner(x)
        # so that no other tensor gets its id
        self.held.append(alias)
        return alias

    def view(self, a, b, c, d):
        x = self.whole(self.pick(a))
        if b % 12 == 7:
            # PyTorch writes to those parts of an expanded tensor that do not overlap, lucid to none
            self.freeze_memory(x)
        y = (
            x.detach, lambda: x[0], lambda: x[..., :1], lambda: x.transpose(0, -1), lambda: x.unsqueeze(0),
            lambda: flat(x), lambda: x.view_as(x), lambda: x.expand(2, *x.shape), lambda: x.reshape(-1),
            lambda: x[..., ::2], lambda: x.squeeze(), lambda: x[None],
        )[b % 12]()  # fmt: skip
        self.say(f"{self.put(y, 'v', of=x)} = view {b % 12} of {self.name(x)}")

    def several(self, a, b, c, d):
        """Add all outputs of an operation that has several."""
        x = self.whole(self.pick(a))
        if (not x.ndim and b % 8 < 3) or (x.ndim and not len(x) and b % 8 == 4):
            # refused by both, though a view of a changed base by PyTorch first
            return
        if b % 8 in {4, 5} and not apart(x, 0 if b % 8 == 4 else -1):
            return
        # steps and loads change parameters, and PyTorch then refuses their parts
        given = x * 1.0 if d % 3 or any(x is p or x._base is p or overlap(x, p) for p in self.parameters()) else x
        many = filled(given)
        rows = correction(x.shape[0] if x.ndim else 1)
        ways = (
            lambda: given.unbind(0), lambda: given.split(1), lambda: given.chunk(2, -1),
            lambda: self.lib.var_mean(many, **correction(x.numel())), lambda: given.max(0), lambda: given.sort(-1),
            lambda: mean_and_spread(self.lib, many)(many, 0, **rows),
            lambda: self.lib.var_mean(many, 0, keepdim=True, **rows),
        )  # fmt: skip
        outputs = list(ways[b % 8]())
        if b % 8 < 3:
            # PyTorch refuses any use of these after their base was changed in place, lucid gives the right gradient
            self.freeze_memory(x)
        self.shared |= {id(y) for y in outputs}
        self.held += outputs
        if b % 8 in {4, 5}:
            # indices have a place among the inputs or outputs of a node in lucid
            outputs[0].of_other_nodes = True
        names = [self.put(y, "s", of=x) for y in outputs if y.is_floating_point()]
        self.say(f"{names} = several {b % 8} of {self.name(x)}{'' if given is x else ' * 1.0'}")

    def binary(self, a, b, c, d):
        x, y = self.pick(a), self.pick(b)
        if c % 9 in {2, 8} and not (x.is_floating_point() and y.is_floating_point()):
            # PyTorch subtracts no bools, and refuses their products by another error
            return
        if x.is_leaf and y.is_leaf and x.dtype != y.dtype:
            # a leaf that is cast first is reached after one that is not
            y = y * 1.0
        ways = (
            lambda: x * y, lambda: x + y, lambda: x - y, lambda: x / (y * y + 1.0), lambda: self.lib.maximum(x, y),
            lambda: self.lib.where(x > 0.1, x, y), lambda: self.lib.cat([x, y], -1), lambda: self.lib.stack([x, y]),
            lambda: x @ y.transpose(0, -1),
        )  # fmt: skip
        z = ways[c % 9]()
        if c % 9 in {5, 6, 7} or (c % 9 == 8 and not x.ndim == y.ndim == 2):
            # one with a place for the condition in lucid, and two that compute what is not needed in PyTorch; and
            # products that PyTorch views as others
            z.of_other_nodes = True
        self.say(f"{self.put(z, 'b')} = binary {c % 9} of {self.name(x)} and {self.name(y)}")

    # Changes in place

    def freeze_memory(self, x):
        """Let nothing change the memory of x."""
        self.frozen.add(self.owner(x))
        self.checkpoints.fixed.append(x)

    def may_change(self, x):
        """Tell whether both sides agree on what a change of this tensor in place does."""
        # PyTorch takes a view of a changed base for a leaf unless its node was brought up to date
        _ = x.grad_fn
        # a change of a view: PyTorch forgets hooks of what it was
        shared = sum(self.owner(t) == self.owner(x) for t in self.pool) > 1
        hooked = (shared and self.output_hooked) or (self.owner(x) != id(x) and id(x) in self.hooked)
        kept = self.owner(x) in self.frozen or self.checkpoints.keep(x)
        expanded = bool(x.numel()) and any(n > 1 and not step for n, step in zip(x.shape, x.stride(), strict=True))
        # PyTorch breaks an assertion
        breaks = x.retains_grad and id(x) in self.shared
        return x.numel() > 0 and not (hooked or kept or expanded or breaks or refused(self.lib, [x]))

    def copied(self, x):
        """Return a copy to be changed in place: a constant if it has no elements, as PyTorch's derivatives of those."""
        return x * 1.0 if x.numel() else x.detach() * 1.0

    def changed(self, x, way, y):
        """Change x in place."""

        def item():
            x[0] = 0.25

        y = self.lib.tensor(0.5, dtype=x.dtype) if y is None else y
        (
            lambda: x.mul_(0.5), lambda: x.add_(y), lambda: x.mul_(y), lambda: x[:1].neg_(), lambda: x.copy_(y), item,
            x.zero_, lambda: x.detach().mul_(2.0), lambda: x.sub_(y), lambda: x.transpose(0, -1).mul_(y),
            lambda: x.unsqueeze(0)[0].mul_(3.0), x.tanh_,
        )[way % 12]()  # fmt: skip
        if way % 12 == 6 or y.dtype != x.dtype:
            # a node of two inputs in lucid, and one that casts
            x.of_other_nodes = True
        if way % 12 == 11:
            # PyTorch saved it, lucid keeps the value apart
            self.freeze_memory(x)

    def change_copy(self, a, b, c, d):
        """Change a copy, which nothing has saved, in place."""
        x = self.copied(self.pick(a))
        y = self.pick(b, lambda t: t.shape == x.shape)
        if d % 2:
            self.say(f"{self.put(x, 'c')} will be changed in place")
            if d % 4 == 1 and x.requires_grad:
                self.tensor_hook(0, b, c, d)
        self.changed(x, c, y)
        self.say(f"{self.put(x, 'c')} changed in place (way {c % 12}) with {self.name(y)}")

    def change_view(self, a, b, c, d):
        """Change a view of a copy in place, and go on with both."""
        x = self.copied(self.pick(a))
        v = (
            lambda: flat(x), lambda: x[...], lambda: x[:1], lambda: x[..., :1], lambda: x.transpose(0, -1),
            lambda: x.detach(), lambda: x.unsqueeze(0)[0], lambda: x.squeeze(),
        )[b % 8]()  # fmt: skip
        y = self.pick(d, lambda t: t.ndim == 0)
        self.memory[id(v)] = self.owner(x)
        # so that no other tensors get their ids if the change is refused
        self.held += [x, v]
        if not self.lib.is_grad_enabled():
            # PyTorch refuses such a view after a change of its base that is recorded
            self.freeze_memory(x)
        # PyTorch makes a new node for a view whose memory was changed behind its back, the newest one
        c += c % 12 == 7
        self.changed(v, c, y)
        # now, as when something else asks for it is each side's own
        _ = v.grad_fn
        self.say(f"{self.put(x, 'c')}, {self.put(v, 'v', of=x)}: view {b % 8} changed in place (way {c % 12})")

    def change_output(self, a, b, c, d):
        """Change something of the pool in place: refused for leaves and at the boundary of hooked modules."""
        x = self.pick(a)
        if self.may_change(x):
            y = self.pick(b, lambda t: t.shape == x.shape and self.owner(t) != self.owner(x))
            # behind the back of a hooked module, what follows is refused at moments of their own
            c += c % 12 == 7 and x.grad_fn is not None and at_boundary(x.grad_fn)
            self.say(f"{self.name(x)} changed in place (way {c % 12}) with {self.name(y)}")
            self.changed(x, c, y)
