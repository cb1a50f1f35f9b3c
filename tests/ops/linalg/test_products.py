"""Matrix products and sums of products: errors, half types, memory, NaN."""

from __future__ import annotations

import functools
from itertools import product

import numpy as np
import pytest

import lucid
from lucid.base.dtype import bfloat16
from lucid.errors import DtypeError, IndexOutOfRangeError, ShapeError
from lucid.ops.layers.convolution import conv1d
from lucid.ops.layers.linear import linear
from lucid.ops.linalg.addmm import addmm, baddbmm
from lucid.ops.linalg.einsum import einsum, inner, tensordot
from lucid.ops.linalg.products import bmm, dot, matmul, mm, mv, outer
from tests.device import shares_memory
from tests.gradients import numbers
from tests.pieces.children import python
from tests.pieces.memory import traced


def ones(*shape, dtype=None):
    return lucid.tensor(np.ones(shape, np.float32), dtype=dtype)


WRONG = {
    "transposed right": (
        lambda: matmul(ones(3, 4), ones(5, 4)),
        r"inner sizes differ: a has shape \(3, 4\), b has shape \(5, 4\); did you mean b.T\?",
    ),
    "transposed left": (lambda: matmul(ones(4, 3), ones(4, 5)), r"did you mean a.T\?"),
    "inner": (lambda: matmul(ones(3, 4), ones(5, 2)), r"b has shape \(5, 2\)$"),
    "no dimension": (lambda: matmul(ones(3), ones()), "at least 1 dimension"),
    "number": (lambda: matmul(ones(3), 2.0), "got the number 2.0"),
    "stacks": (lambda: matmul(ones(2, 3, 4), ones(3, 4, 5)), r"leading dimensions \(2,\) and \(3,\)"),
    "mm": (lambda: mm(ones(3), ones(3, 2)), r"mm: expected input of 2 dimensions, got shape \(3,\)"),
    "bmm": (lambda: bmm(ones(2, 3, 4), ones(1, 4, 5)), "stacks of as many matrices"),
    "mv": (lambda: mv(ones(3, 4), ones(3)), "inner sizes differ"),
    "dot": (lambda: dot(ones(3, 3), ones(3)), "dot: expected input of 1 dimension, got"),
    "outer": (lambda: outer(ones(3), ones(3, 1)), "outer: expected vec2 of 1 dimension"),
    "addmm": (lambda: addmm(ones(3), ones(2, 3), ones(3, 4)), r"expected input that can be broadcast to \(2, 4\)"),
    "baddbmm": (lambda: baddbmm(ones(3), ones(2, 3), ones(3, 4)), "batch1 of 3 dimensions"),
    "linear": (
        lambda: linear(ones(5, 28), ones(10, 784)),
        r"expected input with last dimension 784 \(weight has shape \(10, 784\)\), got input of shape \(5, 28\)",
    ),
    "linear weight": (lambda: linear(ones(2, 3), ones(2, 3, 3)), r"weight of shape \(out, in\)"),
    "linear bias": (lambda: linear(ones(2, 28), ones(10, 28), ones(9)), r"bias that can be broadcast to \(2, 10\)"),
    "inner products": (lambda: inner(ones(2, 3), ones(4)), "last dimension must match"),
    "tensordot": (lambda: tensordot(ones(2, 3), ones(4, 4), 1), "sizes differ"),
    "tensordot dims": (lambda: tensordot(ones(2, 3), ones(3), 2), "dims from 0 to 1"),
    "tensordot pairs": (lambda: tensordot(ones(2, 3), ones(2, 3), ([0, 1], [0])), r"dimensions \(0, 1\) of shape"),
    "tensordot backwards": (lambda: tensordot(ones(2, 3), ones(3), -1), "dims from 0 to 1"),
    "einsum result": (lambda: einsum("ij,jk->iz", ones(2, 2), ones(2, 2)), "'z' of the result is in no operand"),
    "einsum twice": (lambda: einsum("ij,jk->ii", ones(2, 2), ones(2, 2)), "'i' more often"),
    "einsum dimensions": (
        lambda: einsum("ij", ones(2, 2, 3)),
        "operand 0 has 3 dimensions, its subscripts 'ij' name 2",
    ),
    "einsum operands": (lambda: einsum("ij,jk", ones(2, 2)), "one tensor for each of 2 terms"),
    "einsum sizes": (lambda: einsum("ij,jk->ik", ones(2, 3), ones(4, 4)), "expected size 3 of 'j'.*got size 4"),
    "einsum letters": (lambda: einsum("i1->i", ones(2, 2)), "expected letters"),
    "einsum diagonal": (lambda: einsum("ii", ones(2, 3)), "expected size 2 of 'i'"),
    "einsum sublists": (lambda: einsum(ones(2), [52]), "numbers from 0 to 51"),
}


@pytest.mark.parametrize("case", WRONG)
def test_shapes_that_do_not_fit(case):
    """A shape error names the op, what was expected and what was got."""
    call, message = WRONG[case]
    with pytest.raises(ShapeError, match=message):
        call()


def test_a_dimension_that_is_not_there():
    """Tensordot over a dimension out of range is an index error."""
    with pytest.raises(IndexOutOfRangeError):
        tensordot(ones(2, 3), ones(3, 2), ([2], [0]))


@pytest.mark.parametrize(
    "dims", [([0, 1], [1, 0]), ([0, 2], [2, 0]), ([2, 0], [0, 1]), ([2, 0, 1], [0, 1, 2]), ([-1, 0], [1, -1]), ([], [])]
)
def test_tensordot_of_pairs_in_any_order(dims, rng):
    """Each dimension meets the one at the same place of the other list, also where all are of one size."""
    a, b = rng.standard_normal((2, 3, 3, 3))
    got = tensordot(lucid.tensor(a), lucid.tensor(b), dims).cpu().numpy()
    np.testing.assert_allclose(got, np.tensordot(a, b, dims), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("op", [matmul, linear, mm, lambda a, b: einsum("ij,jk", a, b), tensordot])
def test_dtypes_are_not_mixed(op):
    """Products of two dtypes, and of bools, are refused."""
    with pytest.raises(DtypeError, match=r"one dtype, got lucid.float32, lucid.float64"):
        op(ones(3, 3), ones(3, 3, dtype=lucid.float64))
    with pytest.raises(DtypeError, match="not defined for bool"):
        op(ones(3, 3, dtype=lucid.bool), ones(3, 3, dtype=lucid.bool))


def test_fractions_of_integers():
    """Addmm of integers takes integer factors only."""
    whole = ones(2, 2, dtype=lucid.int64)
    assert addmm(whole, whole, whole, beta=2, alpha=3).array.tolist() == [[8, 8], [8, 8]]
    with pytest.raises(DtypeError, match="beta and alpha to be integers"):
        addmm(whole, whole, whole, alpha=0.5)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16.numpy])
def test_half_types_sum_in_float32(dtype, rng):
    """Products of half types are rounded once: adding 4096 ones to themselves does not stop at 256 or 2048."""
    a, b = lucid.tensor(np.ones((1, 4096), dtype)), lucid.tensor(np.ones((4096, 1), dtype))
    w = lucid.tensor(np.ones((1, 4096), dtype))
    for out in (matmul(a, b), linear(a, w), einsum("ij,jk", a, b), addmm(lucid.tensor(np.zeros(1, dtype)), a, b)):
        assert out.array.dtype == dtype
        assert float(out.numpy(force=True)[0, 0]) == 4096


def test_beta_zero_ignores_the_input():
    """With beta=0 a NaN in the input does not reach the result, and its gradient is zero."""
    x = lucid.tensor(np.full((2, 2), np.nan, np.float32)).requires_grad_()
    out = addmm(x, ones(2, 3), ones(3, 2), beta=0)
    np.testing.assert_array_equal(out.detach().numpy(force=True), 3)
    out.backward(lucid.tensor(np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)))
    np.testing.assert_array_equal(x.grad.numpy(force=True), 0)


@pytest.mark.cpu("about the memory that a NumPy array owns")
def test_gradients_of_weights_own_their_memory(rng):
    """The weight gradients of linear and of convolutions are contiguous arrays of their own."""
    x = lucid.tensor(rng.standard_normal((8, 6)).astype(np.float32))
    weight = lucid.tensor(rng.standard_normal((5, 6)).astype(np.float32)).requires_grad_()
    kernel = lucid.tensor(rng.standard_normal((5, 6, 1)).astype(np.float32)).requires_grad_()
    linear(x, weight).backward(lucid.tensor(rng.standard_normal((8, 5)).astype(np.float32)))
    conv1d(x.reshape(1, 6, 8), kernel).backward(lucid.tensor(rng.standard_normal((1, 5, 8)).astype(np.float32)))
    for grad in (weight.grad.array, kernel.grad.array):
        assert grad.flags.owndata
        assert grad.flags.c_contiguous


# of a stack of many narrow matrices `x` and of one wide matrix `w`, of which every product is taken
STACKS = {
    "matmul": matmul,
    "linear": lambda x, w: linear(x, w.t()),
    "einsum": lambda x, w: einsum("bij,jk->bik", x, w),
    "tensordot": lambda x, w: tensordot(x, w, 1),
}


@pytest.mark.cpu("memory of NumPy's arrays is counted")
@pytest.mark.parametrize("name", STACKS)
def test_the_gradient_of_one_matrix_takes_no_memory_for_each_of_a_stack(name, rng):
    """What a matrix gives to a stack of products is summed in one product, not by a matrix for each of the stack."""
    x = lucid.tensor(rng.standard_normal((400, 2, 40)).astype(np.float32))
    w = lucid.tensor(rng.standard_normal((40, 50)).astype(np.float32)).requires_grad_()
    out = STACKS[name](x, w)
    assert out.shape == (400, 2, 50)
    grad = lucid.tensor(rng.standard_normal(out.shape).astype(np.float32))
    with traced() as memory:
        out.backward(grad)
    expected = x.numpy().reshape(-1, 40).T.astype(float) @ grad.numpy().reshape(-1, 50)
    np.testing.assert_allclose(w.grad.numpy(), expected, rtol=1e-4, atol=1e-4)
    assert memory.most < 400 * 40 * 50 * 4 / 2


@pytest.mark.parametrize(
    ("term", "shape"),
    [("ii", (1, 3)), ("ii", (3, 1)), ("i...i", (1, 2, 3)), ("iji", (3, 2, 1)), ("iii", (1, 1, 3)), ("iii", (3, 3, 1))],
)
def test_einsum_takes_diagonals_of_squares_only(term, shape):
    """A size of 1 is no diagonal of a larger one in its own operand, wherever it stands and whatever goes with it."""
    for equation, others in ((term, ()), (f"{term}->i", ()), (f"{term},i", (ones(3),)), (f"{term},i->i", (ones(1),))):
        with pytest.raises(ShapeError, match=r"of 'i', as before, got size . in operand 0"):
            einsum(equation, ones(*shape), *others)
    with pytest.raises(ShapeError, match=r"of 'i', as before, got size . in operand 1"):
        einsum(f"i,{term}", ones(3), ones(*shape))


def test_einsum_broadcasts_a_diagonal_of_one(rng):
    """A diagonal of size 1 meets larger dimensions of other operands, before it or behind."""
    a, b = rng.standard_normal((3, 3)), rng.standard_normal((1, 1))
    expected = np.trace(a) * b.item()
    row = np.diag(a)
    for equation, *operands in (("ii,ii", a, b), ("ii,ii", b, a), ("ii,i", b, row), ("i,ii", row, b)):
        got = einsum(equation, *map(lucid.tensor, operands))
        np.testing.assert_allclose(got.numpy(force=True), expected, rtol=1e-12)


def test_einsum_of_one_operand_is_a_view(rng):
    """Reordering, and a diagonal, share memory with the operand."""
    x = lucid.tensor(rng.standard_normal((3, 3)))
    for equation in ("ij->ji", "ij->ij", "ii->i"):
        assert shares_memory(einsum(equation, x), x)


def test_broadcast_operand(rng):
    """Views that repeat memory, such as the gradient of a sum, multiply like copies of them."""
    a = rng.standard_normal((4, 1))
    b = rng.standard_normal((5, 3))
    wide = lucid.tensor(a).expand(4, 5)
    np.testing.assert_allclose(matmul(wide, lucid.tensor(b)).numpy(force=True), np.repeat(a, 5, 1) @ b, rtol=1e-12)


def test_the_order_is_looked_for_only_when_needed():
    """opt_einsum is imported by the first einsum of three operands, not before."""
    program = (
        "import sys, lucid; from lucid.ops.linalg.einsum import einsum; x = lucid.ones(2, 2)\n"
        "einsum('ij,jk', x, x); print('opt_einsum' in sys.modules)\n"
        "einsum('ij,jk,kl', x, x, x); print('opt_einsum' in sys.modules)"
    )
    run = python("-c", program)
    assert run.stdout.split() == ["False", "True"], run.stderr


def test_inner_does_not_broadcast():
    """The last dimensions of `inner` have one size."""
    with pytest.raises(ShapeError, match=r"must match on both tensors, got shapes \[2, 1\] and \[1, 3\]"):
        lucid.inner(lucid.ones(2, 1), lucid.ones(1, 3))


def test_kron_takes_tensors():
    """What is no tensor is refused on either side."""
    for operands in ((2, lucid.ones(2)), (lucid.ones(2), 2.0)):
        with pytest.raises(TypeError, match="Tensor"):
            lucid.kron(*operands)


@pytest.mark.parametrize(("name", "reference"), [("vdot", np.vdot), ("linalg.vecdot", np.vdot), ("inner", np.inner)])
def test_which_factor_is_conjugated(name, reference, rng):
    """The first, or none, as NumPy says; of two complex vectors it is seen in the sign of the imaginary part."""
    a, b = (rng.standard_normal(3) + 1j * rng.standard_normal(3) for _ in range(2))
    function = functools.reduce(getattr, name.split("."), lucid)
    out = function(lucid.tensor(a), lucid.tensor(b))
    np.testing.assert_allclose(complex(out.item()), reference(a, b), rtol=1e-12)


def test_cross_products_are_along_the_first_dimension_of_size_three(rng):
    """Where several have that size, and none is named, it is the first one."""
    a, b = rng.standard_normal((2, 2, 3, 3))
    found = lucid.cross(lucid.tensor(a), lucid.tensor(b)).cpu().numpy()
    np.testing.assert_allclose(found, np.cross(a, b, axis=1), rtol=1e-12, atol=1e-14)


@pytest.mark.cpu("integers that overflow in CuPy's product are no result of C, and refused by a simulated device")
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize(
    ("left", "right"),
    [((64, 70), (70, 50)), ((3, 40, 60), (60, 90)), ((3, 40, 60), (3, 60, 90)), ((16, 999), (999, 16))],
)
def test_products_of_integers_are_exact(dtype, left, right, rng):
    """They are those of NumPy's integers, which wrap around, whatever the numbers: few bits, all bits, the lowest."""
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    ranges = [(least, most), (max(least, -5), 5), (least, min(least + 2, 0) if least else 2), (most - 1, most)]
    ranges += [(0, 0), (max(least, -(2**20)), min(most, 2**20)), (max(least, -(2**40)), 1)]
    for first, second in product(ranges, ranges):
        a, b = (rng.integers(*r, s, dtype, endpoint=True) for r, s in ((first, left), (second, right)))
        found = numbers(lucid.tensor(a) @ lucid.tensor(b))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, np.matmul(a, b))
        turned = lucid.tensor(np.ascontiguousarray(a.swapaxes(-1, -2))).mT @ lucid.tensor(b)
        np.testing.assert_array_equal(numbers(turned), found)


@pytest.mark.cpu("a device multiplies integers by a kernel")
@pytest.mark.parametrize(
    ("dtype", "size", "count", "work"),
    [
        ("int8", 5, 1, "f4"), ("int64", 5, 1, "f4"), ("int64", 2**20, 1, "f8"), ("int16", 2**15 - 1, 1, "f8"),
        ("int32", 2**31 - 1, 3, "f8"), ("int64", 2**63 - 1, 6, "f8"),
    ],
)  # fmt: skip
def test_how_often_integers_are_multiplied(dtype, size, count, work, rng, monkeypatch):
    """Once, in floats that hold the sums, if their bits allow it; else once for each pair of parts that counts."""
    a = rng.integers(-size, size, (64, 64), dtype, endpoint=True)
    a[0, 0], asked, multiply = size, [], np.matmul
    monkeypatch.setattr(np, "matmul", lambda *args, **kwargs: asked.append(args[0].dtype) or multiply(*args, **kwargs))
    lucid.tensor(a, device="cpu") @ lucid.tensor(a, device="cpu")
    assert asked == [np.dtype(work)] * count
