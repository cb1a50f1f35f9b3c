"""ElementwiseKernel and ReductionKernel with gradients given or found, on the device, against differences."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.autograd.kernels.expressions import parse
from lucid.autograd.kernels.slopes import FUNCTIONS
from lucid.errors import ArgumentError, KernelError, NotDifferentiableError
from tests.autograd.kernels import evaluating
from tests.autograd.kernels.making import drawn, elementwise, is_right, reduction

pytestmark = pytest.mark.gpu
derivative = lucid.cuda.derivative


# ---- elementwise: what is found ----


def test_the_text_is_shown():
    """What is found is text, by the name of the input, as one would write it."""
    f = derivative(elementwise("T x, T a, int32 n", "T y", "y = a * sin(x) + n;"))
    assert f.gradients == {"x": "g * a * cos(x)", "a": "g * sin(x)"}
    assert repr(f) == "derivative(wave, x='g * a * cos(x)', a='g * sin(x)')"


def test_all_known_functions(rng):
    """The kernels of each known function's gradient give its slope, and that of the slope."""
    names = [name for name in FUNCTIONS if name.isidentifier() and name != "neg" and not name.startswith("is")]
    calls = [f"{name}({', '.join(('x', 'z', 'x * z')[: len(FUNCTIONS[name])])})" for name in names]
    calls[names.index("acosh")] = "acosh(x + 1)"
    outputs = ", ".join(f"T y{index}" for index in range(len(calls)))
    operation = "; ".join(f"y{index} = {call}" for index, call in enumerate(calls))
    f = derivative(elementwise("T x, T z", outputs, operation))
    x, z = drawn(rng, 3), drawn(rng, 3)
    assert is_right(lambda x, z: lucid.stack(f(x, z)), x, z)


def test_variables_between(rng):
    """Values that a kernel keeps in variables are followed, in the type of the variable."""
    f = derivative(
        elementwise("T x, T z", "T y, T w", "const T r2 = x * x + z * z; T r = sqrt(r2); r *= x; y = exp(-r); w = r2")
    )
    x, z = drawn(rng, 3), drawn(rng, 3)
    assert is_right(lambda x, z: lucid.stack(f(x, z)), x, z)
    steps = derivative(elementwise("T x", "T y", "int n = x; T rest = x - n; y = rest * rest"))
    x = lucid.tensor([2.75, -1.5], dtype=lucid.float64, device="cuda", requires_grad=True)
    steps(x).sum().backward()
    assert x.grad.tolist() == [1.5, -1.0]


def test_random_expressions(rng):
    """Kernels of random expressions, and their gradients, give what Python computes of them."""
    terms = [evaluating.drawn(rng, ("x", "z"), 4) for _ in range(20)]
    outputs = ", ".join(f"T y{index}" for index in range(len(terms)))
    f = derivative(elementwise("T x, T z", outputs, "; ".join(f"y{k} = {term}" for k, term in enumerate(terms))))
    x, z = drawn(rng, 5), drawn(rng, 5)
    results = f(x, z)
    weights = rng.uniform(-1, 1, len(terms))
    found = lucid.autograd.grad(sum(w * y.sum() for w, y in zip(weights.tolist(), results, strict=True)), (x, z))
    for place in range(5):
        names = {"x": x[place].item(), "z": z[place].item()}
        expected = [evaluating.value(term, names) for term in terms]
        assert [y[place].item() for y in results] == pytest.approx(expected, rel=1e-12, abs=1e-12)
        for name, grad in zip("xz", found, strict=True):
            slope = sum(w * evaluating.difference(term, names, name) for w, term in zip(weights, terms, strict=True))
            assert grad[place].item() == pytest.approx(slope, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes(dtype, rng):
    """A kernel of any floating-point dtype has gradients of it; those of half types are computed in float32."""
    f = derivative(elementwise("T x, T a", "T y", "y = (T)exp((float)x) * a" if "16" in dtype else "y = exp(x) * a"))
    x, a = drawn(rng, 4, 3, dtype=dtype), drawn(rng, 3, dtype=dtype)
    g = drawn(rng, 4, 3, dtype=dtype, requires_grad=False)
    found = lucid.autograd.grad(f(x, a), (x, a), g)
    wide = [t.detach().double() for t in (x, a, g)]
    expected = (wide[2] * wide[0].exp() * wide[1], (wide[2] * wide[0].exp()).sum(0))
    bound = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-6, "float64": 1e-14}[dtype]
    for grad, want in zip(found, expected, strict=True):
        assert grad.dtype is getattr(lucid, dtype)
        assert ((grad.double() - want).abs() / want.abs()).max().item() < bound


def test_broadcasting_and_strides(rng):
    """Gradients have the shape of their operand, whatever was broadcast, of no dimension or not contiguous."""
    f = derivative(elementwise("T x, T a, T b", "T y", "y = a * sin(x * b)"))
    x, a, b = drawn(rng, 4, 3), drawn(rng, 4, 1), drawn(rng)
    assert f(x.T, a[:, 0], b).shape == (3, 4)
    assert is_right(lambda x, a, b: f(x.T, a[::1, 0].expand(3, 4), b), x, a, b)
    grads = lucid.autograd.grad(f(x, a, b).sum(), (x, a, b))
    assert [grad.shape for grad in grads] == [(4, 3), (4, 1), ()]


@pytest.mark.parametrize("shape", [(0,), (3, 0), ()])
def test_empty_and_of_no_dimension(shape, rng):
    """No elements, and one element without a dimension, have gradients of their shape."""
    f = derivative(elementwise("T x, T a", "T y", "y = x * x * a"))
    x = drawn(rng, *shape)
    y = f(x, 3.0)
    (grad,) = lucid.autograd.grad(y.sum(), x)
    assert (y.shape, grad.shape) == (shape, shape)
    np.testing.assert_allclose(grad.cpu().numpy(), 6 * x.detach().cpu().numpy(), rtol=1e-15)


def test_numbers_and_arrays_of_cupy(rng):
    """Numbers have the dtype that the kernel gives them; an array of CuPy's is an operand without a gradient."""
    f = derivative(elementwise("T x, T a, float64 c", "T y", "y = a * x * x + x * c"))
    x = drawn(rng, 3, dtype="float32")
    array = drawn(rng, 3, dtype="float32", requires_grad=False)
    (with_number,) = lucid.autograd.grad(f(x, 0.1, 1).sum(), x)
    (with_array,) = lucid.autograd.grad(f(x, array.array, 0.5).sum(), x)
    values, factor = x.detach().cpu().numpy(), np.float32(0.1)
    np.testing.assert_array_equal(with_number.cpu().numpy(), (factor * values * 2 + np.float64(1)).astype(np.float32))
    np.testing.assert_allclose(with_array.cpu().numpy(), array.cpu().numpy() * values * 2 + 0.5, rtol=1e-6)
    assert not f(array.array, 1.0, 2.0).requires_grad


def test_ties_share(rng):
    """Where operands of max are equal, each gets half, as of lucid.maximum; the kink of abs has the slope 0."""
    f = derivative(elementwise("T x, T z", "T y", "y = max(x, z) + abs(x)"))
    x = lucid.tensor([0.0, 1.0, 2.0], device="cuda", requires_grad=True)
    z = lucid.tensor([0.0, 2.0, 1.0], device="cuda", requires_grad=True)
    gx, gz = lucid.autograd.grad(f(x, z).sum(), (x, z))
    assert (gx.tolist(), gz.tolist()) == ([0.5, 1.0, 2.0], [0.5, 1.0, 0.0])


# ---- elementwise: what is given ----


def test_given_expressions(rng):
    """Expressions may use inputs, outputs, g, types, the preamble and constants, and are differentiated if known."""
    kernel = elementwise(
        "T x, T a", "T y", "y = twice(x) * a", preamble="template <class T> __device__ T twice(T x) { return x + x; }"
    )
    f = derivative(kernel, x="g * twice((T)a)", a="g * y / a + 0 * M_PI", writes=("y",))
    assert f.gradients == {"x": "g * twice((T)a)", "a": "g * y / a + 0 * M_PI"}
    x, a = drawn(rng, 4), drawn(rng, 1)
    assert lucid.autograd.gradcheck(f, (x, a))
    (first,) = lucid.autograd.grad(f(x, a).sum(), a, create_graph=True)
    assert lucid.autograd.grad(first.sum(), x)[0].tolist() == pytest.approx([2.0] * 4)
    (first,) = lucid.autograd.grad(f(x, a).sum(), x, create_graph=True)
    with pytest.raises(NotDifferentiableError, match=r"wave: no second derivative is found, because .*'twice'"):
        first.sum().backward()


MACROS = "#define ORDER 3\n#define XX \\\n (x * x)\n#  define H exp(XX)\n#define HALF (ORDER / 2.0)"


@pytest.mark.parametrize("name", ["XX", "H"])
def test_macros(rng, name):
    """A macro is a constant unless what it stands for reads a parameter: then the derivative is refused."""
    said = rf"its derivative is not found: {name} in 'z . {name}' is no parameter of the kernel, and no constant"
    for settings in ({"preamble": MACROS}, {"options": (f"-D{name}=x*x",)}):
        with pytest.raises(NotDifferentiableError, match=said):
            derivative(elementwise("T x, T z", "T y", f"y = z * {name}", **settings))
        with pytest.raises(NotDifferentiableError, match=said):
            derivative(reduction("T x, T z", f"z * {name}", **settings))
    x, z = drawn(rng, 4), drawn(rng, 4)
    f = derivative(elementwise("T x, T z", "T y", "y = pow(x, HALF) * z * ORDER", preamble=MACROS))
    assert is_right(f, x, z)
    f = derivative(elementwise("T x, T z", "T y", "y = z * XX * x", preamble=MACROS), x="g * z * (XX + 2 * x * x)")
    z = z.detach()
    (first,) = lucid.autograd.grad(f(x, z).sum(), x, create_graph=True)
    with pytest.raises(NotDifferentiableError, match="no second derivative is found, because XX is a macro that reads"):
        first.sum().backward()


def test_several_outputs(rng):
    """Of several outputs the gradients are g_NAME; one that gets none counts as zero."""
    f = derivative(elementwise("T x, T a", "T y, T z", "y = x * a; z = x + a"), x="g_y * a + g_z", a="g_y * x + g_z")
    x, a = drawn(rng, 2, 3), drawn(rng, 3)
    assert is_right(f, x, a)
    assert lucid.autograd.grad(f(x, a)[1].sum(), a)[0].tolist() == [2.0] * 3


def test_an_integer_output_has_no_gradient(rng):
    """An output of integers is a result as any other, and does not require grad."""
    f = derivative(elementwise("T x", "T y, int32 k", "y = x * x; k = 3"))
    x = drawn(rng, 3)
    y, k = f(x)
    assert (y.requires_grad, k.requires_grad, k.dtype) == (True, False, lucid.int32)
    assert lucid.autograd.grad(y.sum(), x)[0].tolist() == (2 * x).tolist()


def test_only_what_is_needed(rng, monkeypatch):
    """One kernel computes the gradients of the inputs that require grad, and only what it reads is kept."""
    f = derivative(elementwise("T x, T a", "T y", "y = sin(x) * a"))
    linear = derivative(elementwise("T x, T a", "T y", "y = x * a"))
    made, kind = [], type(f.kernel)
    monkeypatch.setattr("cupy.ElementwiseKernel", lambda *args, **kwargs: made.append(args) or kind(*args, **kwargs))
    x, a = drawn(rng, 3), drawn(rng, 3)
    y = f(x, a.detach())
    y.sum().backward()
    f(x.detach(), a).sum().backward()
    assert [args[2].count("_out") for args in made] == [1, 1]
    assert "cos(x)" in made[0][2]
    assert "cos" not in made[1][2]
    y = f(x, a)
    lucid.autograd.grad(y.sum(), (x, a))
    assert made[2][2].count("_out") == 2
    y = linear(x, a.detach())
    assert len(y.grad_fn.saved_tensors) == 1


def test_raw_parameters(rng):
    """An input that is indexed in any order has its gradient from a function, and no expression."""
    kernel = elementwise("raw T x, int64 n", "T y", "y = x[n - 1 - i]", name="flip")
    f = derivative(kernel, backward=lambda g, args: {"x": g.flip(0)})
    x = drawn(rng, 4)
    assert is_right(lambda x: f(x, 4, size=4) * x, x)
    with pytest.raises(KernelError, match=r"flip: x is a raw array.*backward="):
        derivative(kernel, x="g")
    with pytest.raises(NotDifferentiableError, match=r"flip: its derivative is not found: .*'\[n - 1 - i\]'"):
        derivative(kernel)


def test_complex_numbers(rng):
    """A given expression is computed in complex numbers; found ones are of real numbers, and say so."""
    kernel = elementwise("T x", "T y", "y = x * x", name="square")
    x = lucid.tensor(rng.uniform(-1, 1, 3) + 1j * rng.uniform(-1, 1, 3), device="cuda", requires_grad=True)
    assert lucid.autograd.gradcheck(derivative(kernel, x="T(2) * conj(x) * g"), (x,))
    with pytest.raises(NotDifferentiableError, match="square: derivatives are found for real numbers alone"):
        derivative(kernel)(x)


# ---- reductions ----


@pytest.mark.parametrize(
    "settings", [{}, {"axis": 1}, {"axis": (0, -1)}, {"axis": -2, "keepdims": True}, {"keepdims": True}]
)
@pytest.mark.parametrize(
    ("mapped", "after"),
    [("x * w * x", "y = a"), ("x * w", "y = sqrt(a)"), ("x - w", "y = a * 3"), ("x * w", "y = exp(-a)")],
)
def test_found_reductions(mapped, after, settings, rng):
    """A function of a sum of functions has the gradients that differences give, along any axis."""
    f = derivative(reduction("T x, T w", mapped, after))
    x, w = drawn(rng, 2, 3, 2), drawn(rng, 3, 1)
    y = f(x, w, **settings)
    total = {"x * w * x": x * w * x, "x * w": x * w, "x - w": x - w}[mapped]
    axis, keep = settings.get("axis", (0, 1, 2)), settings.get("keepdims", False)
    total = total.sum(axis, keepdim=keep)
    expected = {"y = a": total, "y = sqrt(a)": total.sqrt(), "y = a * 3": total * 3, "y = exp(-a)": (-total).exp()}[
        after
    ]
    assert y.shape == expected.shape
    assert (y - expected).abs().max().item() < 1e-12
    assert is_right(lambda x, w: f(x, w, **settings), x, w)


def test_given_reductions(rng):
    """The gradient of a maximum is given in terms of the output; `g` is that of the element's row."""
    f = derivative(reduction("T x", "x", reduced="max(a, b)", name="highest"), x="x == y ? g : 0")
    x = drawn(rng, 3, 4)
    assert is_right(lambda x: f(x, axis=1), x)
    assert lucid.autograd.grad(f(x), x)[0].sum().item() == 1


def test_a_mean(rng):
    """Numbers are inputs too, as the count of a mean."""
    f = derivative(reduction("T x, int64 n", "x", "y = a / n", name="mean"))
    assert f.gradients == {"x": "g / n"}
    x = drawn(rng, 2, 5)
    y = f(x, 5, axis=1)
    assert (y - x.mean(1)).abs().max().item() < 1e-15
    assert lucid.autograd.grad(y.sum(), x)[0].tolist() == pytest.approx(np.full((2, 5), 0.2))


def test_a_reduction_of_a_raw_array(rng):
    """An array that is read in any order has its gradient from a function, whatever its shape."""
    kernel = reduction("raw T w, T x", "x * w[4]", name="dotted")
    f = derivative(kernel, backward=lambda g, args: {"x": g * args[0][4].expand(3)})
    w, x = drawn(rng, 5, requires_grad=False), drawn(rng, 3)
    assert is_right(lambda x: f(w, x) * x, x)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"reduced": "a * b"}, r"total: its derivative is not found: the reduction 'a \* b' is not read as the sum"),
        ({"after": "y = a * a"}, r"the gradient of a \* a needs the sum a, which is not kept"),
        ({"after": "y = a * x"}, r"a \* x depends on the sum and on an input"),
        ({"mapped": "x[0]"}, r"'\[0\]' is not understood"),
        ({"reduce_type": "int"}, "it sums in int, which is no floating-point type"),
        ({"mapped": "x * k"}, "k in 'x . k' is no parameter of the kernel"),
        ({"after": "y = a / _in_ind.size()"}, "is not understood"),
    ],
)
def test_reductions_that_are_not_found(arguments, said):
    """What is not read of a reduction is said, with the remedy."""
    with pytest.raises(NotDifferentiableError, match=said) as error:
        derivative(reduction(**{"inputs": "T x", "mapped": "x", **arguments}))
    assert 'lucid.cuda.derivative(kernel, x="g * ...")' in str(error.value)


# ---- calls that cannot be ----


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        ("S t = x; y = t", "'S t = x' is no assignment to y"),
        ("y = j1(x)", "the derivative of 'j1' with 1 operands is not known"),
        ("y = x * k", "k in 'x . k' is no parameter of the kernel"),
        ("if (x > 0) y = x", "is no assignment to y"),
        ("y = x % 2", "'%' with 2 operands"),
        ("y = x & 1", "'& 1' is not understood"),
        ("y = i * x", "i in 'i . x' is no parameter"),
    ],
)
def test_what_is_not_found(operation, said):
    """A derivative that is not found is refused when it is asked for, with what was not understood and the remedy."""
    with pytest.raises(NotDifferentiableError, match=said) as error:
        derivative(elementwise("T x", "T y", operation))
    assert str(error.value).startswith("wave: its derivative is not found: ")
    assert 'lucid.cuda.derivative(kernel, x="g * ...")' in str(error.value)


def test_wrong_calls(rng):
    """The number of arguments, keywords, shapes and dtypes are looked at, and the error says what was expected."""
    f = derivative(elementwise("T x, T a", "T y", "y = x * a"))
    x = drawn(rng, 3)
    for call, said in (
        (lambda: f(x), r"wave: expected 2 inputs \(x, a\), and behind them y .* got 1 arguments"),
        (lambda: f(x, x, out=x), "wave: got out by keyword"),
        (lambda: f(x, drawn(rng, 2)), r"wave: these arguments do not fit \(x: shape \(3,\), .*broadcast"),
        (lambda: f(x, drawn(rng, 3, dtype="float32")), "wave: these arguments do not fit .*float32"),
        (lambda: f(1.0, 2.0), "wave: expected a CUDA tensor among its arguments, got numbers alone"),
        (lambda: f(x, [1.0]), "wave: a: expected a CUDA tensor, an array or a number, got list"),
        (lambda: f(x, "a"), "wave: a: expected a CUDA tensor, an array or a number, got str"),
    ):
        with pytest.raises(ArgumentError, match=said):
            call()
    silent = derivative(elementwise("T x", "T y", "y = x", no_return=True))
    with pytest.raises(ArgumentError, match="wave returns nothing"):
        silent(x)
    y = lucid.empty(3, dtype=lucid.float64, device="cuda")
    assert silent(x, y) is y
    total = derivative(reduction("T x", "x"))
    with pytest.raises(ArgumentError, match=r"total: these arguments do not fit .*axis 3"):
        total(x, axis=3)


def test_an_expression_that_does_not_compile(rng):
    """What the compiler refuses of an expression is said with the expression."""
    f = derivative(elementwise("T x", "T y", "y = x"), x="g * unknown_function(x)")
    with pytest.raises(KernelError, match=r"wave: the gradients \(x: g \* unknown_function\(x\)\) do not compile"):
        f(drawn(rng, 3)).sum().backward()


def test_the_reference_itself():
    """The reference of these tests computes what C does: one branch alone of a choice."""
    assert evaluating.value(parse("x > 0 ? 1 / x : 2"), {"x": 0.0}) == 2


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int32", "bool"])
def test_a_letter_of_integers(rng, dtype):
    """Division is the kernel's own, a cast to such a letter is flat, and unsigned types of any size are read."""
    f = derivative(elementwise("T x, U n", "T y", "U t = x * 9; y = x * x * (1.0 * n / 3) + t", "whole"))
    x = drawn(rng, 3)
    n = lucid.tensor([1, 2, 4], device="cuda").array.astype(dtype)
    (grad,) = lucid.autograd.grad(f(x, n).sum(), x, create_graph=True)
    (second,) = lucid.autograd.grad(grad.sum(), x)
    thirds = n.get() / 3
    np.testing.assert_allclose(grad.detach().cpu().numpy(), 2 * x.detach().cpu().numpy() * thirds, rtol=1e-14)
    np.testing.assert_allclose(second.cpu().numpy(), 2 * thirds, rtol=1e-14)
