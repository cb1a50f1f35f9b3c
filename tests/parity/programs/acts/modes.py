"""Modes that the steps of a program run in: as a context, by a decorator, in a generator function."""

from __future__ import annotations

from tests.parity.programs.structures import PlannedError


class Modes:
    """The act that enters a mode for the steps that follow. `Machine` gives the notes."""

    def init_modes(self):
        """Start without modes."""
        self.entered = []

    def makers(self):
        """Return what makes each mode; the first ones are decorators too."""
        lib = self.lib
        graph = lib.autograd.graph
        return (
            lib.no_grad,
            lib.enable_grad,
            # PyTorch cannot save what was made there, and lucid saves what it was cast to
            lib.no_grad if self.program.mixed else lib.inference_mode,
            lambda: lib.inference_mode(False),
            lambda: lib.set_grad_enabled(False),
            lambda: lib.set_grad_enabled(True),
            lib.autograd.detect_anomaly,
            lambda: lib.autograd.detect_anomaly(check_nan=False),
            lambda: graph.saved_tensors_hooks(lambda t: t.detach() * 2.0, lambda t: t * 0.5),
            lambda: graph.saved_tensors_hooks(lambda t: t.numpy(force=True).copy(), lib.tensor),
            graph.save_on_cpu,
            lambda: graph.disable_saved_tensors_hooks("none here"),
            graph.allow_mutation_on_saved_tensors,
        )

    DECORATORS = 6

    def mode(self, a, b, c, d):
        """Enter a mode for the next one to four steps."""
        makers = self.makers()
        which = a % len(makers)
        way = ("context", "decorator", "generator")[c % 3 if which < self.DECORATORS else 0]
        self.say(f"mode {which} as {way} for the next {1 + b % 4} steps")
        self.entered.append([makers[which], way, 1 + b % 4, d])

    def in_modes(self, act):
        """Return an act in the modes that are entered, the newest innermost."""
        for entry in reversed(self.entered):
            make, way, _, number = entry
            act = getattr(self, f"by_{way}")(make, act, number)
            entry[2] -= 1
        self.entered = [entry for entry in self.entered if entry[2]]
        return act

    def by_context(self, make, act, number):
        def inside():
            with make():
                act()

        return inside

    def by_decorator(self, make, act, number):
        return lambda: make()(act)()

    def by_generator(self, make, act, number):
        """Run the act in one step of a generator; the mode holds in each of its steps, and nowhere else."""

        def switches():
            return self.lib.is_grad_enabled(), self.lib.is_inference_mode_enabled()

        @make()
        def steps():
            try:
                seen = yield switches()
                self.note("sent", seen, switches())
                act()
                yield switches()
            except PlannedError:
                yield "thrown", switches()
            finally:
                self.note("closed", switches())
            return "returned"

        def inside():
            running = steps()
            self.note("first", next(running), switches())
            if number % 4 == 0:
                self.note("threw", running.throw(PlannedError), switches())
            self.note("second", running.send(number), switches())
            if number % 4 == 1:
                running.close()
            else:
                self.note("rest", list(running), switches())

        return inside
