"""Random programs of NumPy's, run on NumPy and on `lucid.numpy`: ``python -m tests.numpy.programs --count 20000``.

A program makes arrays, some of which require grad, and takes steps: operators, functions, methods, indices, changes in
place, each with random operands. After each step both sides must agree: in value, shape and dtype, or both refuse. What
NumPy has computed is what both sides go on with, so that roundings do not add up.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections import Counter

import numpy as np

import lucid
from lucid import numpy as lnp
from lucid.base import gpu
from lucid.errors import DtypeError, InplaceError
from lucid.numpy.results import is_to_fill
from lucid.tensor.numpy_calls.operands import NumpyCallError
from tests.device import DEVICE

FLOATS = ("float32", "float64")
DTYPES = (*FLOATS, "float64", "complex128", "float16", "complex64", "int64", "int32", "bool", "uint8")
UNARY = (
    "sin cos tanh exp negative absolute square sign floor ceil rint isfinite "
    "isnan conjugate sqrt log1p arctan positive cbrt"
)
BINARY = "+ - * / // % ** < <= > >= == != @ & |"
PAIRED = "add subtract multiply divide maximum minimum arctan2 power hypot logaddexp fmax copysign fmod"
REDUCED = "sum mean std var max min prod all any argmax argmin cumsum cumprod median ptp nansum"
METHODS = "sum mean std var max min prod all any argmax argmin cumsum cumprod"
NUMBERS = (2, -1, 0.5, 3.0, 1j, True, np.float32(1.5), np.float64(-0.25), np.int64(3))
TOLERANCE = {2: 2e-2, 4: 2e-4, 8: 1e-8, 16: 1e-8}
STEPS = 6
WRITTEN_HERE = (
    "setting an array element", "converted to Python scalars", "boolean array indexing assignment requires",
    "object does not support item assignment",
)  # fmt: skip
"""Words of what NumPy refuses to write: sizes of 1 broadcast here, as they did to NumPy before 2.4, and a scalar takes
an assignment, ``x[...] = 1``."""


ON_DEVICE = DEVICE != "cpu"
LEAF = lucid.zeros(1, requires_grad=True, device=DEVICE)
WIDER = IndexError, TypeError, ValueError
"""What CuPy does not raise: it takes bools, several axes and powers below 0 where NumPy does not. Of an element that is
written twice in one assignment it says that the value is undefined, and that indices out of bounds wrap."""
REAL_PLACES = "numpy.interp: expected real places"
"""Words of a refusal: of a complex scalar, and of no array, NumPy drops the imaginary part."""
UNCHECKED = "out of bounds", "non-empty take"
"""Words of NumPy about indices; on a device lucid looks at them in debug mode."""


class Difference(AssertionError):
    """NumPy and `lucid.numpy` do not agree."""


class Program:
    """One random program: the arrays that it has, and its text so far."""

    def __init__(self, rng):
        self.rng, self.lines, self.here, self.there = rng, [], {}, {}
        for _ in range(rng.integers(2, 4)):
            self.begin()

    def begin(self):
        """Make an array."""
        rng = self.rng
        dtype = str(rng.choice(DTYPES))
        shape = tuple(rng.choice([1, 2, 3, 4], rng.integers(0, 4)).tolist())
        if rng.random() < 0.03:
            shape = (*shape, 0)
        values = rng.standard_normal(shape) * 2
        if dtype.startswith("complex"):
            values = values + 1j * rng.standard_normal(shape)
        values = np.asarray(np.abs(values) * 2 if dtype == "uint8" else values).astype(dtype)
        self.keep(values, recorded=values.dtype.kind in "fc" and rng.random() < 0.8)

    def keep(self, value, *, recorded):
        """Keep a result of NumPy's on both sides; of those that do not require grad one half can be filled."""
        name = f"a{len(self.here)}"
        value = np.array(value)
        to_fill = not recorded and value.ndim and bool(self.rng.random() < 0.5)
        # what no dimension is left of is a scalar of NumPy's, as results are
        self.here[name] = value[()] if recorded else value
        self.there[name] = made(value, recorded=recorded, to_fill=to_fill)
        kind = " recorded" if recorded else " to fill" if to_fill else ""
        self.lines.append(f"# {name}: {value.dtype}{value.shape}{kind}")

    def name(self, *, recorded=False):
        """Return the name of one of the arrays."""
        names = [n for n, v in self.there.items() if not recorded or isinstance(v, lucid.Tensor)]
        return str(self.rng.choice(names or list(self.there)))

    def operand(self):
        """Return an array or a number."""
        if self.rng.random() < 0.3:
            return repr(NUMBERS[self.rng.integers(len(NUMBERS))])
        return self.name()

    def axis(self, name):
        """Return an axis of an array, some or none."""
        ndim = self.here[name].ndim
        if not ndim or self.rng.random() < 0.3:
            return None
        if self.rng.random() < 0.2:
            return tuple(self.rng.permutation(ndim)[: self.rng.integers(1, ndim + 1)].tolist())
        return int(self.rng.integers(-ndim, ndim))

    def key(self, name, *, once=False):
        """Return the text of an index of an array, to be written to where each element is named `once`."""
        rng, parts = self.rng, []
        kinds = ["int", "slice", "back", "none", "ellipsis", "mask", "array", "list", "two"][: 6 if once else None]
        for size in self.here[name].shape[: rng.integers(0, 4)]:
            kind = rng.choice(kinds)
            at = [int(k) for k in rng.integers(-size, max(size, 1), 3)] if size else [0, 0, 0]
            if kind == "int":
                parts.append(str(at[0]))
            elif kind == "slice":
                parts.append(f"{at[0]}:{at[1]}:{rng.integers(1, 3)}")
            elif kind == "back":
                parts.append(rng.choice(["::-1", f"{at[0]}::-2"]))
            elif kind == "array":
                parts.append(f"np.array({at})")
            elif kind == "two":
                parts.append(f"np.array([[{at[0]}], [{at[1]}]])")
            elif kind == "list":
                parts.append(str(at[:2]))
            elif kind == "mask":
                parts.append(f"np.array({(rng.random(size) < 0.5).tolist()}, bool)")
            else:
                parts += ["None"] if kind == "none" else ["..."] if "..." not in parts else []
        return ", ".join(parts) or "..."

    def expression(self):
        """Return a random expression."""
        rng = self.rng
        x = self.name(recorded=True)
        kind = rng.choice(
            ["unary", "binary", "paired", "reduced", "method", "index", "shape", "join", "choose", "other"]
        )
        if kind == "unary":
            name = str(rng.choice(UNARY.split()))
            if ON_DEVICE and name == "log1p" and self.here[x].dtype.kind == "c":
                name = "sin"  # CuPy's log1p takes imaginary parts of -0.0 for 0.0
            return f"np.{name}({x})"
        if kind == "binary":
            sides = [x, self.operand()]
            rng.shuffle(sides)
            return f"{sides[0]} {rng.choice(BINARY.split())} {sides[1]}"
        if kind == "paired":
            sides = [x, self.operand()]
            rng.shuffle(sides)
            return f"np.{rng.choice(PAIRED.split())}({', '.join(sides)})"
        if kind in {"reduced", "method"}:
            name = rng.choice((REDUCED if kind == "reduced" else METHODS).split())
            axis = self.axis(x)
            settings = f"axis={axis}"
            if name not in {"cumsum", "cumprod"} and rng.random() < 0.3:
                settings += ", keepdims=True"
            if name in {"std", "var"} and rng.random() < 0.3:
                settings += ", ddof=1"
            if name in {"sum", "mean", "prod", "cumsum"} and rng.random() < 0.15:
                settings += f", dtype=np.{rng.choice(['float32', 'float64', 'complex128'])}"
            return f"np.{name}({x}, {settings})" if kind == "reduced" else f"{x}.{name}({settings})"
        if kind == "index":
            return f"{x}[{self.key(x)}]"
        if kind == "shape":
            return str(rng.choice([
                f"{x}.T", f"{x}.ravel()", f"{x}.reshape(-1)", f"{x}.reshape(1, -1)", f"np.expand_dims({x}, 0)",
                f"{x}.squeeze()",
                f"np.flip({x})", f"{x}.transpose()", f"np.moveaxis({x}, 0, -1)", f"np.roll({x}, 1)", f"np.tile({x}, 2)",
                f"{x}.repeat(2)", f"np.swapaxes({x}, 0, -1)", f"np.atleast_2d({x})",
                f"np.broadcast_to({x}, (2, *{x}.shape))",
                f"{x}.flatten()", f"{x}.copy()", f"np.diag({x})", f"np.tril({x})", f"np.rot90({x})",
                f"{x}.size", f"len({x})",
                f"{x}.shape", f"{x}.ndim", f"{x}.dtype", f"{x}.reshape(-1, order='F')", f"{x}.swapaxes(0, 1)",
            ]))  # fmt: skip
        if kind == "join":
            y = self.name()
            return str(rng.choice([
                f"np.concatenate([{x}, {y}])", f"np.stack([{x}, {y}])", f"np.hstack([{x}, {y}])",
                f"np.vstack([{x}, {y}])",
                f"np.append({x}, {y})", f"np.array([{x}, {y}])", f"np.concatenate([{x}, {y}], axis=None)",
                f"np.column_stack([{x}, {y}])", f"np.array([{x}, 1.0])", f"np.r_[{x}, {y}]",
                f"np.array_split({x}, 2)[0]",
            ]))  # fmt: skip
        if kind == "choose":
            y = self.operand()
            return str(rng.choice([
                f"np.where({x} > 0, {x}, {y})", f"np.clip({x}, -1, 1)", f"{x}.clip(0, None)", f"np.sort({x}, axis=-1)",
                f"np.argsort({x}, axis=-1, kind='stable')", f"{x}[{x} > 0]", f"np.take({x}, [0, -1])",
                f"np.round({x}, 1)",
                f"np.nonzero({x})[0]", f"np.unique({x})", f"np.nan_to_num({x})", f"np.where({x} != 0, {y}, {x})",
                f"{x}.round()", f"{x}.argsort(kind='stable')", f"np.select([{x} > 1], [{x}], {y})", f"np.diff({x})",
            ]))  # fmt: skip
        y = self.name()
        return str(rng.choice([
            f"{x}.astype(np.{rng.choice(FLOATS)})", f"{x}.astype('complex128')", f"{x}.real", f"{x}.imag",
            f"np.dot({x}, {y})",
            f"np.outer({x}, {y})", f"np.matmul({x}, {y})", f"np.inner({x}, {y})", f"np.linalg.norm({x})",
            f"np.trace({x})",
            f"np.zeros_like({x})", f"np.ones_like({x}) * {y}", f"abs({x})", f"-{x}", f"np.isclose({x}, {y})",
            f"np.angle({x})",
            f"np.average({x})", f"np.fft.fft({x})", f"np.einsum('...->...', {x})", f"np.kron({x}, {y})",
            f"[v for v in {x}][0]",
            f"np.sum([{x}, {x}])", f"np.percentile({x}, 30)", f"np.pad({x}, 1)", f"divmod({x}, 2)[0]",
            f"np.linspace({x}, 2, 3)",
            f"np.full((2,), {x})", f"np.cov({x})", f"np.gradient({x})", f"np.interp({x}, [0.0, 1.0], [1.0, 3.0])",
            f"np.real_if_close({x})", f"np.convolve({x}, [1.0, 2.0])", f"np.asarray({x}, dtype=np.float64)",
            f"np.trapezoid({x})",
        ]))  # fmt: skip

    def step(self):
        """Take a step on both sides, and compare what it gives."""
        rng = self.rng
        if rng.random() < 0.15:
            x = self.name(recorded=True)
            parts = [
                f"{x}[0], {x}[-1] = {x}[-1], {x}[0]", f"part = {x}[{self.key(x)}]; part += {self.operand()}",
                f"part = {x}[{self.key(x)}]; {x} *= {self.operand()}; {x}[...] = part",
            ]  # fmt: skip
            # a single element of an array of CuPy's own is a view
            has_parts = np.ndim(self.here[x]) and not (ON_DEVICE and not isinstance(self.there[x], lucid.Tensor))
            self.change(x, str(rng.choice([
                *(parts if has_parts else ()), f"{x}[{self.key(x, once=ON_DEVICE)}] = {self.operand()}",
                f"{x} += {self.operand()}", f"{x} *= {self.operand()}",
                f"{x} -= {self.operand()}", f"{x}[...] = {self.operand()}", f"{x} /= {self.operand()}",
            ])))  # fmt: skip
            return
        text = self.expression()
        if ON_DEVICE and "percentile" in text and not all(self.here[x].size for x in self.here if x in text):
            return  # CuPy's reads before an array of no elements
        self.lines.append(text)
        ours, theirs = self.outcome(text, lnp, self.there), self.outcome(text, np, self.here)
        if self.agree(ours, theirs):
            value = theirs
            if isinstance(value, np.ndarray | np.generic) and np.asarray(value).dtype.char in "?bBhilqefdFD":
                if np.size(value) < 5000 and np.ndim(value) < 6:
                    self.keep(tamed(value), recorded=isinstance(ours, lucid.Tensor))

    def change(self, x, text):
        """Change an array in place on both sides."""
        self.lines.append(text)
        ours, theirs = self.done(text, lnp, self.there), self.done(text, np, self.here)
        self.agree(ours or self.there[x], theirs or self.here[x])
        self.here.pop("part", None), self.there.pop("part", None)
        value, to_fill = tamed(self.here[x]), is_to_fill(self.there[x])
        recorded = isinstance(self.there[x], lucid.Tensor) and not to_fill
        self.here[x] = value[()] if recorded else value
        self.there[x] = made(value, recorded=recorded, to_fill=to_fill)

    def outcome(self, text, module, names):
        """Return what an expression gives, or the error that it raises."""
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return eval(text, {"np": module}, names)
        except Exception as error:  # noqa: BLE001 - which one is compared
            return error

    def done(self, text, module, names):
        """Return the error of a statement, or None."""
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                exec(text, {"np": module}, names)
        except Exception as error:  # noqa: BLE001 - which one is compared
            return error
        return None

    def agree(self, ours, theirs):
        """Return whether there is a value to go on with, or raise what is different."""
        of_places = isinstance(ours, DtypeError) and REAL_PLACES in str(ours)
        if of_places or isinstance(ours, NumpyCallError | InplaceError):
            return False  # refused by name
        if ON_DEVICE and self.is_cupys(ours, theirs):
            return False
        if isinstance(theirs, Exception) or isinstance(ours, Exception):
            if any(words in str(theirs) for words in WRITTEN_HERE):
                return False
            if isinstance(theirs, Exception) != isinstance(ours, Exception):
                raise Difference(self.report(ours, theirs))
            return False
        one, other = np.asarray(plain(ours)), np.asarray(theirs)
        if one.shape != other.shape or one.dtype != other.dtype:
            raise Difference(self.report(ours, theirs))
        if other.dtype.kind in "fc":
            if ON_DEVICE and other.dtype.kind == "c":
                # CuPy's quotients and powers are NaN where NumPy's are infinite
                one, other = (np.where(np.isfinite(x), x, np.nan) for x in (one, other))
            error = TOLERANCE[other.real.dtype.itemsize]
            finite = np.abs(other[np.isfinite(other)])
            close = np.allclose(one, other, rtol=error, atol=error * float(finite.max(initial=1e-3)), equal_nan=True)
        else:
            close = other.dtype == object or np.array_equal(one, other)
        if not close:
            raise Difference(self.report(ours, theirs))
        return True

    def is_cupys(self, ours, theirs):
        """Return whether what may differ is CuPy's: it computes with arrays alone, and does not refuse the same."""
        named = [value for name, value in self.there.items() if re.search(rf"\b{name}\b", self.lines[-1])]
        if not any(isinstance(value, lucid.Tensor) for value in named):
            return True
        computed = not isinstance(ours, Exception | lucid.Tensor)
        return isinstance(theirs, WIDER) and (computed or any(words in str(theirs) for words in UNCHECKED))

    def report(self, ours, theirs):
        """Return the text of the program, and what both sides gave."""
        return "\n".join([*self.lines, f"numpy: {shown(theirs)}", f"lucid: {shown(ours)}"])


def made(value, *, recorded, to_fill):
    """Return values as an array of `lucid.numpy`: one that requires grad, one that can be filled, or a plain one."""
    if recorded:
        return lnp.asarray(lucid.tensor(value, requires_grad=True)) * 1
    return lnp.array(value, like=LEAF) if to_fill else lnp.array(value)


def plain(value):
    """Return a value without its graph."""
    if isinstance(value, list | tuple):
        return type(value)([plain(each) for each in value])
    value = value.detach().cpu().numpy() if isinstance(value, lucid.Tensor) else value
    return value.get() if gpu.is_gpu_array(value) else value


def tamed(value):
    """Return a value whose numbers are not so large that functions of them are noise."""
    value = np.asarray(value)
    if value.dtype.kind not in "fc":
        return value
    small = np.where(np.isfinite(value) & (np.abs(value) < 100), value, value.dtype.type(1.25))
    return small.astype(value.dtype)


def shown(value):
    """Return words for a value."""
    if isinstance(value, Exception):
        return f"{type(value).__name__}: {value}"
    array = np.asarray(plain(value))
    words = np.array2string(array.ravel()[:6], max_line_width=1000)
    return f"{type(value).__name__} {array.dtype}{array.shape} {words}"


def run(seed):
    """Return the difference that the program of a seed shows, or None; and how many steps it took."""
    program = Program(np.random.default_rng(seed))
    try:
        for _ in range(STEPS):
            program.step()
    except Difference as difference:
        return str(difference), program
    return None, program


def main(arguments):
    """Run programs, and print what differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.numpy.programs", description=__doc__)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--first", type=int, default=0)
    settings = parser.parse_args(arguments)
    lucid.set_default_device(DEVICE)
    kinds = Counter()
    for seed in range(settings.first, settings.first + settings.count):
        difference, _ = run(seed)
        if difference:
            kinds[difference.splitlines()[-3].split("(")[0]] += 1
            print(f"---- program {seed}\n{difference}", flush=True)
    print(f"{settings.count} programs, {sum(kinds.values())} differences")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
