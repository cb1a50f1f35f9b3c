"""Every row of `tests.samples` that names PyTorch's op, at special values and sizes: value, dtype, shape and gradients.

Zeros of both signs, infinities, NaN, subnormal and huge numbers, arrays that are empty, of one element, of no
dimension, backwards and strided in memory, operands of size 1 that broadcast; in four dtypes, with random upstream
gradients.

An element is right if it is PyTorch's or, in the narrower dtypes, what PyTorch gives in float64, rounded: there an
intermediate result that overflows shows. NaN, infinities and, in values, the sign of zero have to be the same.
A zero that stands for a sum of products too small for the dtype, as NumPy's numbers of a wider range show it, has the
sign that the order of rounding gives: a fused multiply-add leaves -0 of 0 and a small negative product, and PyTorch 0.
(Not in gradients, where a zero is most often a sum or a product with a mask.) Finite numbers may differ by a few units
in the last place, of themselves or of the terms that they are summed from. How large these are is measured: by what is
usual in the row's result, by how much it moves when everything that goes in moves by a millionth, and, where an element
depends on several, when every intermediate result does. The last finds terms that cancel whatever goes in, as in the
gradient of a softmax, and counts in units of float32 for halves, as they are computed in it.

Parker: Monte Carlo arithmetic: exploiting randomness in floating-point arithmetic. 1997.

On a GPU subnormal float32 are zeros, and bfloat16 is computed in float32: there PyTorch flushes them, too.

What differs on purpose stands in DIFFERENCES.
"""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch._decomp import core_aten_decompositions
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

import lucid
from tests.device import DEVICE
from tests.gradients import flat, is_floating, numbers
from tests.parity.ops.test_samples import SAMPLES, flat_torch
from tests.parity.values.special_cases import DTYPES, EPS, LEAST, MAX, SMALLEST, cases, in_dtype, is_real, laid_out
from tests.parity.values.special_differences import DIFFERENCES, ON_CUDA
from tests.sample_rows.linalg import decomposition
from tests.samples import FLOATS

# In units in the last place: of one operation in the dtype that halves are computed in, and of several, in their own.
UNITS = {"float16": 4, "bfloat16": 4, "float32": 32, "float64": 64}
STEP = 2.0**-20
REFUSALS = (RuntimeError, IndexError, ValueError, TypeError, AssertionError)


# Rows that factor matrices or solve equations are not tried: what becomes of numbers that are not finite, or whose
# products overflow, is the solver's, which is another one on each device and in PyTorch. Nor are `multi_dot`, which
# takes another order, and `vander`, as gradients of powers by products of the other factors have their rows.
PRODUCTS = tuple(f"linalg.{name}" for name in ("cross", "diagonal", "matmul", "vecdot", "vector_norm"))
FACTORING = {row.name for row in decomposition.ROWS if not row.name.startswith(PRODUCTS)}
TRIED = [sample for sample in SAMPLES if sample.name not in FACTORING]


@dataclass(frozen=True)
class Found:
    """One kind of difference in one result of one case."""

    case: str
    what: str
    kind: str
    text: str


# Ops with more rows than this share the dtypes among their rows.
MANY = 3


class Inexact(TorchDispatchMode):
    """A context where all that PyTorch computes is off by a millionth, also inside of ops that take several steps."""

    steps = core_aten_decompositions()

    def __init__(self, rng):
        super().__init__()
        self.rng = rng

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Return the results of one op, moved; those of one that takes steps are made of moved ones."""
        if func in self.steps:
            with self:
                return self.steps[func](*args, **(kwargs or {}))
        results = func(*args, **(kwargs or {}))
        shared = any(each.alias_info for each in func._schema.returns)
        return results if shared else tree_map_only(torch.Tensor, self.moved, results)

    def moved(self, tensor):
        """Return a tensor with its floating-point numbers moved."""
        if not (tensor.is_floating_point() or tensor.is_complex()):
            return tensor
        return tensor * torch.from_numpy(np.asarray(off(self.rng, tensor.shape)))


def off(rng, shape):
    """Return factors that differ from 1 by a millionth."""
    return 1 + STEP * rng.choice([-1.0, 1.0], shape)


def to_torch(array, requires_grad=False):
    """Return a PyTorch tensor of the elements of an array."""
    half = array.dtype == DTYPES["bfloat16"]
    tensor = torch.tensor(array.astype(np.float32) if half else array.copy())
    return (tensor.bfloat16() if half else tensor).requires_grad_(requires_grad)


def to_lucid(array, layout, requires_grad=False):
    """Return a tensor over an array of the given layout, where arrays of the device can have it."""
    in_memory = DEVICE == "cpu" and array.ndim
    tensor = lucid.from_numpy(laid_out(array, layout)) if in_memory else lucid.tensor(array)
    return tensor.requires_grad_() if requires_grad else tensor


def elements(tensor):
    """Return the elements of a tensor of either library as an array."""
    if isinstance(tensor, lucid.Tensor):
        return numbers(tensor)
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return tensor.float().numpy().astype(DTYPES["bfloat16"]) if tensor.dtype == torch.bfloat16 else tensor.numpy()


def wide(array):
    """Return real numbers in float64, and the parts of complex ones along a new dimension."""
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag]).astype(np.float64)
    return array.astype(np.float64)


def precision(array):
    """Return the name of the dtype in which real numbers, or the parts of complex ones, are kept."""
    return {"complex64": "float32", "complex128": "float64"}.get(array.dtype.name, array.dtype.name)


def graded(sample, arrays):
    """Tell which arguments require grad."""
    return [
        sample.differentiable and is_floating(array) and place not in sample.constants
        for place, array in enumerate(arrays)
    ]


@contextmanager
def flushing(arrays):
    """Let PyTorch take subnormal numbers for zeros where kernels of the device do."""
    dtypes = {name for array in arrays for name in FLOATS if array.dtype == DTYPES[name]}
    torch.set_flush_denormal(any(LEAST[name] != SMALLEST[name] for name in dtypes))
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def by_torch(sample, arrays, upstream=None, rng=None):
    """Return PyTorch's results, its gradients, and upstream gradients: those given, or drawn."""
    with flushing(arrays):
        return as_it_is(sample, [flushed(array) for array in arrays], upstream, rng)


def flushed(array):
    """Return an array whose subnormal numbers are zeros where they are for the device's kernels."""
    least = LEAST.get(array.dtype.name, 0)
    if least <= SMALLEST.get(array.dtype.name, 0):
        return array
    return np.where(np.abs(wide(array)) < least, np.copysign(0, wide(array)), wide(array)).astype(array.dtype)


def as_it_is(sample, arrays, upstream, rng):
    """Return what `by_torch` does, with subnormal numbers as the processor has them now."""
    tensors = [to_torch(array, requires) for array, requires in zip(arrays, graded(sample, arrays), strict=True)]
    outputs = flat_torch(sample.torch(torch, *tensors))
    roots = [out for out in outputs if out.requires_grad]
    if upstream is None:
        upstream = [drawn(elements(root), rng) for root in roots]
    gradients = ()
    if roots:
        wanted = [tensor for tensor in tensors if tensor.requires_grad]
        seeds = [to_torch(u) for u in upstream]
        gradients = torch.autograd.grad(roots, wanted, seeds, allow_unused=True)
    return outputs, gradients, upstream


def drawn(model, rng):
    """Return an upstream gradient for a result."""
    noise = rng.standard_normal(model.shape)
    if model.dtype.kind == "c":
        noise = noise + 1j * rng.standard_normal(model.shape)
    return np.asarray(noise).astype(model.dtype)


def by_lucid(sample, arrays, layout, upstream):
    """Return lucid's results and gradients."""
    tensors = [to_lucid(array, layout, needs) for array, needs in zip(arrays, graded(sample, arrays), strict=True)]
    outputs = flat(sample.op(*tensors))
    roots = [out for out in outputs if out.requires_grad]
    assert len(roots) == len(upstream), "other results require grad"
    if not roots:
        return outputs, ()
    wanted = [tensor for tensor in tensors if tensor.requires_grad]
    return outputs, lucid.autograd.grad(roots, wanted, [lucid.tensor(u) for u in upstream], allow_unused=True)


def wrong(got, expected, allowed, *, signs):
    """Return where elements differ by more than is allowed, and with `signs` where zeros do."""
    g, e = wide(got), wide(expected)
    unlike = ~((np.abs(g - e) <= allowed) | (g == e) | (np.isnan(g) & np.isnan(e)))
    return unlike | ((g == 0) & (e == 0) & (np.signbit(g) != np.signbit(e))) if signs else unlike


def rounding(expected, usual=0.0):
    """Return by how much numbers may differ because they are rounded, themselves or terms of a usual size."""
    name = precision(expected)
    size = np.maximum(np.abs(wide(expected)), usual)
    return UNITS[name] * EPS[name] * np.where(np.isfinite(size), size, 0) + 4 * LEAST[name]


def units(name):
    """Return what terms may be off by, of their size: in a dtype, and in that in which it is computed."""
    return [UNITS[each] * EPS[each] for each in (name, name if name == "float64" else "float32")]


class Row:
    """One row of the table in one dtype."""

    def __init__(self, sample, dtype, rng):
        self.sample, self.dtype, self.rng = sample, dtype, rng
        self.arrays = [in_dtype(array, dtype) for array in sample.inputs(rng)]
        self.elementwise = self.is_elementwise()
        self.usual = [] if self.elementwise else [self.largest(tensor) for tensor in self.exactly(self.arrays)]

    def is_elementwise(self):
        """Tell whether PyTorch gives the elements of a vector one by one what it gives the vector."""
        if not all(is_real(array) for array in self.arrays):
            return False
        vectors = [torch.tensor(np.resize(array.reshape(-1).astype(float) * 0.99, 7)) for array in self.arrays]
        try:
            (whole,) = flat_torch(self.sample.torch(torch, *vectors))
            parts = [self.sample.torch(torch, *[v[i : i + 1] for v in vectors]) for i in range(7)]
        except (*REFUSALS, AttributeError):
            return False
        if not all(isinstance(part, torch.Tensor) and part.shape == (1,) for part in parts):
            return False
        return whole.shape == (7,) and torch.allclose(whole.double(), torch.cat(parts).double(), equal_nan=True)

    def exactly(self, arrays, upstream=None):
        """Return PyTorch's results and gradients in float64."""
        doubled = [wide(array) if is_real(array) else array for array in arrays]
        seeds = None if upstream is None else [wide(u) if is_real(u) else u for u in upstream]
        outputs, gradients, _ = by_torch(self.sample, doubled, seeds, self.rng)
        return [*outputs, *gradients]

    @staticmethod
    def largest(tensor):
        """Return the size of the largest finite element."""
        size = np.abs(wide(elements(tensor))) if tensor is not None else np.zeros(1)
        return size[np.isfinite(size)].max(initial=0.0)

    def terms(self, arrays, upstream, exact, *, inside):
        """Return the sizes of the terms of all results and gradients: what moves them, going in or in every step."""
        sizes = [None if tensor is None else np.zeros(wide(elements(tensor)).shape) for tensor in exact]
        doubled, seeds = ([wide(a) if is_real(a) else a for a in some] for some in (arrays, upstream))

        def moved(array):
            return array * off(self.rng, array.shape) if is_floating(array) else array

        for _ in range(8):
            with Inexact(self.rng) if inside else nullcontext():
                near = self.exactly(list(map(moved, doubled)), list(map(moved, seeds)))
            for place, (tensor, at) in enumerate(zip(near, exact, strict=True)):
                if tensor is not None and tensor.shape == at.shape:
                    change = np.abs(wide(elements(tensor)) - wide(elements(at)))
                    size = np.where(np.isfinite(change), np.minimum(change / STEP, MAX["float64"]), change)
                    sizes[place] = np.fmax(sizes[place], size)
        return [None if size is None else np.where(np.isfinite(size), size, 0) for size in sizes]

    def differences(self, case, arrays, layout):
        """Return what lucid does otherwise in one case, nothing if PyTorch does not take the arguments."""
        try:
            outputs, gradients, upstream = by_torch(self.sample, arrays, None, self.rng)
        except REFUSALS:
            return []
        try:
            ours, our_gradients = by_lucid(self.sample, arrays, layout, upstream)
        except Exception as error:  # noqa: BLE001  whatever it is, it is what the user gets
            try:
                self.exactly(arrays, upstream)
            except REFUSALS:
                return []
            return [Found(case, "call", "refused", f"{type(error).__name__}: {error}")]
        if len(ours) != len(outputs):
            return [Found(case, "call", "number of results", f"{len(ours)}, PyTorch's {len(outputs)}")]
        found = []
        exact, sizes = [], {}
        for place, (got, wanted) in enumerate(zip([*ours, *our_gradients], [*outputs, *gradients], strict=True)):
            what = "value" if place < len(ours) else "gradient"
            if got is None or wanted is None:
                present = [tensor for tensor in (got, wanted) if tensor is not None]
                if present and elements(present[0]).any():
                    found.append(Found(case, what, "None", f"lucid {got}, PyTorch {wanted}"))
                continue
            got, wanted = elements(got), elements(wanted)
            if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
                text = f"lucid {got.dtype}{got.shape}, PyTorch {wanted.dtype}{wanted.shape}"
                found.append(Found(case, what, "shape or dtype", text))
                continue
            if not is_floating(wanted):
                if not np.array_equal(got, wanted):
                    found.append(Found(case, what, "whole number", f"lucid {got}, PyTorch {wanted}"))
                continue
            if got.tobytes() == wanted.tobytes():
                continue
            usual = 0.0 if self.elementwise else self.usual[place]
            signs = what == "value"
            bad = wrong(got, wanted, rounding(wanted, usual), signs=signs)
            if not bad.any():
                continue
            # each look excuses what those before it have not, and costs more than they do
            accepted = [wanted]
            exact = exact or self.exactly(arrays, upstream)
            if precision(wanted) != "float64":
                accepted.append(elements(exact[place]).astype(wanted.dtype))
                bad &= wrong(got, accepted[1], rounding(accepted[1], usual), signs=signs)
            of_terms = 0.0
            for inside, unit in zip((False, not self.elementwise), units(precision(wanted)), strict=True):
                # only numbers that are finite may differ by their terms
                apart = [np.isfinite(wide(each) - wide(got)) & (wide(each) != wide(got)) for each in accepted]
                if not (bad & np.logical_or.reduce(apart)).any():
                    break
                if inside not in sizes:
                    sizes[inside] = self.terms(arrays, upstream, exact, inside=inside)
                of_terms = of_terms + 16 * unit * sizes[inside][place]
                for each in accepted:
                    bad &= wrong(got, each, rounding(each, usual) + of_terms, signs=signs)
            if signs and not self.elementwise and (bad & (wide(got) == 0) & (wide(wanted) == 0)).any():
                bad &= (wide(got) != 0) | (wide(wanted) != 0) | (self.in_long_double(arrays, place, got.shape) == 0)
            found += described(case, what, got, wanted, bad, arrays if self.elementwise else ())
        return found

    def in_long_double(self, arrays, place, shape):
        """Return a result by the row's model in NumPy, in numbers of a wider range; zeros where it has none of them."""
        try:
            results = self.sample.reference(*[wide(x).astype(np.longdouble) if is_real(x) else x for x in arrays])
        except (*REFUSALS, AttributeError):
            return np.zeros(shape)
        result = np.asarray(results[place] if isinstance(results, tuple | list) else results)
        return result if result.shape == shape and result.dtype == np.longdouble else np.zeros(shape)


def described(case, what, got, wanted, bad, operands):
    """Return a line for each kind of difference among the elements that are bad."""
    g, w = wide(got), wide(wanted)
    kinds = {
        "sign of zero": (g == 0) & (w == 0),
        "NaN of PyTorch": np.isnan(w) & ~np.isnan(g),
        "NaN of lucid": np.isnan(g) & ~np.isnan(w),
        "sign of infinity": np.isinf(g) & np.isinf(w),
        "infinity of lucid": np.isinf(g) & np.isfinite(w),
        "infinity of PyTorch": np.isinf(w) & np.isfinite(g),
    }
    kinds["number"] = ~np.logical_or.reduce(list(kinds.values()))
    for kind, where in kinds.items():
        here = bad & where
        if here.any():
            at = [wide(x)[here][:3] for x in operands if wide(x).shape == here.shape]
            yield Found(
                case, what, kind, f"{here.sum()} of {here.size}: lucid {g[here][:3]}, PyTorch {w[here][:3]} at {at}"
            )


def found_in(sample, dtypes, rng, names=".*"):
    """Return what lucid does otherwise in the cases of a row that match, with the dtype and the layout."""
    found = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for dtype in dtypes:
            row = Row(sample, dtype, rng)
            for case, arrays, layout in cases(sample, row.arrays, dtype, rng, elementwise=row.elementwise):
                if re.fullmatch(names, case):
                    found += [(dtype, layout, each) for each in row.differences(case, arrays, layout)]
    return found


def dtypes_of(sample):
    """Return the dtypes of a row; complex numbers have their own."""
    return [dtype for dtype in FLOATS if dtype in sample.dtypes] or ["float64"]


def tried_in(sample):
    """Return the dtypes that a row is tried in: all, or one of them in turn if an op has many."""
    rows = [row.name for row in SAMPLES if row.name.split(":")[0] == sample.name.split(":")[0]]
    allowed = dtypes_of(sample)
    return allowed if len(rows) <= MANY else [allowed[rows.index(sample.name) % len(allowed)]]


@pytest.fixture(autouse=True, scope="module")
def plain_pytorch():
    """Compute small arrays without threads of PyTorch's, which wait for each other for most of the time.

    And without oneDNN: its bfloat16 convolution in 3-D reads beyond a volume of depth 1 that is padded and dilated,
    which ends the process or not, as memory happens to lie.
    """
    before = torch.get_num_threads(), torch.backends.mkldnn.enabled
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False
    yield
    torch.set_num_threads(before[0])
    torch.backends.mkldnn.enabled = before[1]


@pytest.mark.usefixtures("indices_are_read")
@pytest.mark.parametrize("sample", [pytest.param(s, id=s.name) for s in TRIED])
def test_like_pytorch_at_special_values(sample, rng):
    """Special values and sizes give PyTorch's results and gradients, but for what stands in DIFFERENCES."""
    known = DIFFERENCES if DEVICE == "cpu" else (*DIFFERENCES, *ON_CUDA)
    unexplained = [
        f"{dtype}, {layout}, {each.case}: {each.what}, {each.kind}: {each.text}"
        for dtype, layout, each in found_in(sample, tried_in(sample), rng)
        if not any(difference.covers(sample.name, each) for difference in known)
    ]
    assert not unexplained, "\n".join(unexplained)


@pytest.mark.cpu("kernels compute in another order, and need fewer entries")
@pytest.mark.parametrize("difference", [pytest.param(each, id=f"{each.rows}: {each.what}") for each in DIFFERENCES])
def test_each_difference_is_there(difference):
    """What stands in DIFFERENCES differs: an entry that excuses nothing in ten drawings is to be deleted.

    The drawings are always the same, and every row is tried in all of its dtypes: which of them the test above takes
    in turn depends on the order of the rows, and a product that loses its digits does so in float64.
    """
    rows = [sample for sample in SAMPLES if re.fullmatch(difference.rows, sample.name)]
    for number in range(10):
        rng = np.random.default_rng(number)
        for sample, dtype in ((sample, dtype) for sample in rows for dtype in dtypes_of(sample)):
            found = found_in(sample, [dtype], rng, difference.cases)
            if any(difference.covers(sample.name, each) for _, _, each in found):
                return
    pytest.fail(f"no difference is excused by: {difference.reason}")
