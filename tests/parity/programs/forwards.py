"""The acts that compute: calling parts, operations, views, and changes in place."""

from __future__ import annotations

from tests.parity.programs.bodies import LARGE, correction, fed, feed
from tests.parity.programs.structures import largest, refused, tensors_of


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
        self.put_output(fed(part, part.forward, x), x)

    def unary(self, a, b, c, d):
        x = self.whole(self.pick(a))
        y = (
            x.sin, x.tanh, x.clone, lambda: x * 2.0, lambda: x[0].expand(2, 3).clone(), lambda: x.sum(),
            lambda: x.mean(),
            lambda: x + -0.25, lambda: x.to(self.lib.float32 if self.program.mixed else self.lib.float64),
            lambda: x * x, lambda: (x * x).sum(0, keepdim=True),
        )[b % 11]()  # fmt: skip
        self.say(f"{self.put(y, 'u', of=x)} = unary {b % 11} of {self.name(x)}")

    def whole(self, x):
        """Return x, of which a view may be taken: without history where nothing is recorded.

        PyTorch's views taken under no_grad claim to require grad and yet have no history; lucid's do not.
        """
        return x if self.lib.is_grad_enabled() else x.detach()

    def view(self, a, b, c, d):
        x = self.whole(self.pick(a))
        if b % 12 == 7:
            # PyTorch writes to those parts of an expanded tensor that do not overlap, lucid to none
            self.frozen.add(self.owner(x))
        y = (
            x.detach, lambda: x[0], lambda: x[..., :1], lambda: x.transpose(0, -1), lambda: x.unsqueeze(0),
            lambda: x.view(-1), lambda: x.view_as(x), lambda: x.expand(2, *x.shape), lambda: x.reshape(-1),
            lambda: x[..., ::2], lambda: x.squeeze(), lambda: x[None],
        )[b % 12]()  # fmt: skip
        self.say(f"{self.put(y, 'v', of=x)} = view {b % 12} of {self.name(x)}")

    def several(self, a, b, c, d):
        """Add all outputs of an operation that has several."""
        x = self.whole(self.pick(a))
        given = x * 1.0 if d % 3 else x
        rows = correction(x.shape[0] if x.ndim else 1)
        ways = (
            lambda: given.unbind(0), lambda: given.split(1), lambda: given.chunk(2, -1),
            lambda: self.lib.var_mean(given, **correction(x.numel())), lambda: given.max(0), lambda: given.sort(-1),
            lambda: self.lib.std_mean(given, 0, **rows), lambda: self.lib.var_mean(given, 0, keepdim=True, **rows),
        )  # fmt: skip
        outputs = list(ways[b % 8]())
        if b % 8 < 3:
            # PyTorch refuses any use of these after their base was changed in place, lucid gives the right gradient
            self.frozen.add(self.owner(x))
        self.shared |= {id(y) for y in outputs}
        self.held += outputs
        names = [self.put(y, "s", of=x) for y in outputs if y.is_floating_point()]
        self.say(f"{names} = several {b % 8} of {self.name(x)}{'' if given is x else ' * 1.0'}")

    def binary(self, a, b, c, d):
        x, y = self.pick(a), self.pick(b)
        if c % 4 == 2 and not (x.is_floating_point() and y.is_floating_point()):
            # PyTorch subtracts no bools
            return
        z = (lambda: x * y, lambda: x + y, lambda: x - y, lambda: x / (y * y + 1.0))[c % 4]()
        self.say(f"{self.put(z, 'b')} = {self.name(x)} {'*+-/'[c % 4]} {self.name(y)}")

    # Changes in place

    def may_change(self, x):
        """Tell whether both sides agree on what a change of this tensor in place does."""
        # PyTorch takes a view of a changed base for a leaf unless its node was brought up to date
        _ = x.grad_fn
        # a change of a view: PyTorch forgets hooks of what it was
        hooked = self.owner(x) != id(x) and (self.output_hooked or id(x) in self.hooked)
        return not hooked and self.owner(x) not in self.frozen and not refused(self.lib, [x])

    def changed(self, x, way, y):
        """Change x in place."""

        def item():
            x[0] = 0.25

        y = self.lib.tensor(0.5, dtype=x.dtype) if y is None else y
        (
            lambda: x.mul_(0.5), lambda: x.add_(y), lambda: x.mul_(y), lambda: x[:1].neg_(), lambda: x.copy_(y), item,
            lambda: x.mul_(0.0), lambda: x.detach().mul_(2.0), lambda: x.sub_(y), lambda: x.transpose(0, -1).mul_(y),
            lambda: x.unsqueeze(0)[0].mul_(3.0), lambda: x.sin_(),
        )[way % 12]()  # fmt: skip

    def change_copy(self, a, b, c, d):
        """Change a copy, which nothing has saved, in place."""
        x = self.pick(a) * 1.0
        y = self.pick(b, lambda t: t.shape == x.shape)
        if d % 2:
            self.say(f"{self.put(x, 'c')} will be changed in place")
            if d % 4 == 1 and x.requires_grad:
                self.tensor_hook(0, b, c, d)
        self.changed(x, c, y)
        self.say(f"{self.put(x, 'c')} changed in place (way {c % 12}) with {self.name(y)}")

    def change_view(self, a, b, c, d):
        """Change a view of a copy in place, and go on with both."""
        x = self.pick(a) * 1.0
        v = (
            lambda: x.view(-1), lambda: x[...], lambda: x[:1], lambda: x[..., :1], lambda: x.transpose(0, -1),
            lambda: x.detach(), lambda: x.unsqueeze(0)[0], lambda: x.squeeze(),
        )[b % 8]()  # fmt: skip
        y = self.pick(d, lambda t: t.ndim == 0)
        self.changed(v, c, y)
        self.say(f"{self.put(x, 'c')}, {self.put(v, 'v', of=x)}: view {b % 8} changed in place (way {c % 12})")

    def change_output(self, a, b, c, d):
        """Change something of the pool in place: refused for leaves and at the boundary of hooked modules."""
        x = self.pick(a)
        if self.may_change(x):
            y = self.pick(b, lambda t: t.shape == x.shape and self.owner(t) != self.owner(x))
            self.say(f"{self.name(x)} changed in place (way {c % 12}) with {self.name(y)}")
            self.changed(x, c, y)
