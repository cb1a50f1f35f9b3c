"""CUDA's device functions on the simulated device: mathematics, rounding, integers, halves, lanes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from lucid.base import gpu

pytestmark = pytest.mark.skipif(not gpu.is_simulated(), reason="needs LUCID_CUDA_SIMULATOR")

LETTERS = "abcd"


def computed(expression, dtype, *columns, before=""):
    """Return what an expression in a, b, c and d, arrays of one shape, gives on the device."""
    cupy = gpu.cupy()
    given = [cupy.asarray(np.asarray(column)) for column in columns]
    names = {"float32": "float", "float64": "double", "int32": "int", "uint32": "unsigned", "int64": "long long",
             "uint64": "unsigned long long", "float16": "half", "bool": "bool", "uint16": "unsigned short"}  # fmt: skip
    parameters = "".join(f", const {names[x.dtype.name]}* {n}_n" for x, n in zip(given, LETTERS, strict=False))
    values = "".join(f" const auto {n} = {n}_n[i];" for _, n in zip(given, LETTERS, strict=False))
    source = f"""#include <cuda_fp16.h>
    #include <cuda_bf16.h>
    extern "C" __global__ void f({names[np.dtype(dtype).name]}* out_n{parameters}) {{
        const int i = threadIdx.x;{values} {before} out_n[i] = {expression};
    }}"""
    count = given[0].size
    out = cupy.empty(count, dtype)
    cupy.RawKernel(source, "f")((1,), (count,), (out, *given))
    return out.get()


# ---- mathematics ----

NORMAL = 0.5 * math.erfc(-1.3 / math.sqrt(2))

# Abramowitz and Stegun, tables 7.1, 9.1, 9.4 and 9.8, or what Python's math has
FIGURES = [
    ("cyl_bessel_i0(a)", [0.0, 1.0, -2.0, 30.0], [1.0, 1.2660658777520083, 2.2795853023360673, 781672297823.9775]),
    ("cyl_bessel_i1(a)", [0.0, 1.0, -2.0], [0.0, 0.5651591039924850, -1.5906368546373291]),
    ("y1(a)", [1.0, 5.0], [-0.7812128213002887, 0.1478631433912268]),
    ("jn(2, a)", [1.0, 5.0], [0.1149034849319005, 0.04656511627775222]),
    ("yn(2, a)", [1.0, 5.0], [-1.6506826068162544, 0.3676628826055245]),
    ("erfcx(a)", [0.0, 1.0, -1.0], [1.0, math.e * math.erfc(1.0), math.e * math.erfc(-1.0)]),
    ("erfcx(a)", [50.0, 1e8], [0.01128153626532360, 1e-8 / math.sqrt(math.pi)]),
    ("erfcinv(a)", list(map(math.erfc, [0.0, 0.3, -1.5, 5.0, 25.0])), [0.0, 0.3, -1.5, 5.0, 25.0]),
    ("erfcinv(a)", [0.0, 2.0, 0.0625], [math.inf, -math.inf, 1.317150334986131]),
    ("normcdfinv(a)", [0.5, NORMAL, 1 - NORMAL], [0.0, 1.3, -1.3]),
    ("normcdf(a)", [-30.0, -10.0, 0.0, 1.3, -math.inf, math.inf],
     [4.9067139271481871e-198, 7.6198530241605261e-24, 0.5, NORMAL, 0.0, 1.0]),
    ("erfinv(a)", [1e-300, -1e-20, 0.25],
     [math.sqrt(math.pi) / 2e300, -math.sqrt(math.pi) / 2e20, 0.22531205501217808]),
    ("erfcx(a)", [-math.inf, -30.0, math.inf], [math.inf, math.inf, 0.0]),
    ("sinpi(a)", [0.25, 1e15 + 0.5, 1.9999999999], [math.sqrt(0.5), 1.0, -3.1415929135263349e-10]),
    ("cospi(a)", [0.25, -0.75, 1e15 + 1], [math.sqrt(0.5), -math.sqrt(0.5), -1.0]),
    ("norm(2, p) * rnorm(2, p) * a", [4.0], [4.0]),
    ("rhypot(a, 4.0)", [3.0, -3.0], [0.2, 0.2]),
    ("norm3d(a, 2.0, 3.0)", [6.0, 1e300, math.inf, -math.inf], [7.0, 1e300, math.inf, math.inf]),
    ("rnorm3d(a, 2.0, 3.0)", [6.0, math.inf], [1 / 7, 0.0]),
    ("norm4d(a, 1.0, 1.0, 1.0)", [1.0, 5.0], [2.0, math.sqrt(28)]),
    ("rnorm4d(a, 1.0, 1.0, 1.0)", [1.0], [0.5]),
    ("scalbn(a, 3)", [1.5, -math.inf], [12.0, -math.inf]),
    ("scalbln(a, -2L)", [6.0], [1.5]),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "given", "expected"), FIGURES)
def test_functions_of_doubles(expression, given, expected):
    """Figures of the literature, to a few units in the last place."""
    got = computed(expression, "float64", given, before="const double p[2] = {3.0, 4.0};")
    np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-15 if 0.0 in expected else 0.0)


def test_exact_zeros():
    """Sines and cosines of multiples of a half turn are zeros, of which sines keep the sign."""
    x = [0.0, -0.0, 1.0, -1.0, 2.0, 1e15]
    got = computed("sinpi(a)", "float64", x)
    assert not got.any()
    assert np.signbit(got[:2]).tolist() == [False, True]
    assert not computed("cospi(a)", "float64", np.add(x, 0.5)).any()
    assert not computed("cospif(a) * cospif(a) + sinpif(a + 0.5f)", "float32", np.float32([0.5, -1.5, 2.5])).any()


def test_overloads_of_floats():
    """Functions of a float give a float, where CUDA's do, so that they overload as they do there."""
    x = np.float32([1.1, 2.3])
    for call in ("exp10(a)", "rcbrt(a)", "jn(2, a)", "yn(2, a)", "modf(a, &whole)", "scalbln(a, 1L)"):
        assert computed(f"sizeof({call})", "int32", x, before="float whole;").tolist() == [4, 4], call
    assert computed("scalblnf(a, -3L)", "float32", np.float32([20.0])).tolist() == [2.5]
    assert computed("sizeof(rhypot(a, a))", "int32", x).tolist() == [8, 8]
    assert computed(
        "__isnanf(a) + 2 * __isinff(a) + 4 * __finitef(a)", "int32", np.float32([np.nan, np.inf, 1])
    ).tolist() == [1, 2, 4]


@pytest.mark.parametrize("function", ["cyl_bessel_i0", "cyl_bessel_i1", "y1", "erfcx", "erfcinv", "normcdfinv"])
def test_functions_of_floats(function, rng):
    """Under its own name and as an overload, what the function of doubles gives, rounded."""
    x = rng.uniform(0.01, 0.99, 50).astype("float32")
    expected = computed(f"{function}(a)", "float64", x.astype("float64"))
    for name in (f"{function}f", function):
        np.testing.assert_allclose(computed(f"{name}(a)", "float32", x), expected, rtol=1e-6)


def test_whole_numbers_and_pairs():
    """Rounding to integers, remainders with quotients, sines with cosines."""
    x = [2.5, -2.5, 0.49999999999999994, 3.5, -7.1]
    assert computed("lrint(a)", "int64", x).tolist() == [2, -2, 0, 4, -7]
    assert computed("lround(a)", "int64", x).tolist() == [3, -3, 0, 4, -7]
    assert computed("llrint(a)", "int64", x).tolist() == [2, -2, 0, 4, -7]
    assert computed("lroundf(a)", "int64", np.float32([2.5, -2.5])).tolist() == [3, -3]
    rest = computed("remquo(a, 3.0, &q) + 100 * (q & 7)", "float64", [7.0, 8.0], before="int q;")
    assert rest.tolist() == [1.0 + 200, -1.0 + 300]
    for pair, scale in (("sincos", 1.0), ("sincospi", math.pi)):
        got = computed("s + 10 * c", "float64", x, before=f"double s, c; {pair}(a, &s, &c);")
        np.testing.assert_allclose(got, np.sin(np.multiply(x, scale)) + 10 * np.cos(np.multiply(x, scale)), atol=1e-13)


# ---- rounding ----

EXACT = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}


@pytest.mark.parametrize("operation", EXACT)
@pytest.mark.parametrize(("prefix", "dtype"), [("f", "float32"), ("d", "float64")])
def test_directed_rounding(operation, prefix, dtype, rng):
    """Down and up are the neighbours of the exact result, to zero is one of them, to nearest the nearer one."""
    a, b = (rng.normal(size=200) * 2.0 ** rng.integers(-20, 20, 200) for _ in range(2))
    a, b = a.astype(dtype), b.astype(dtype)
    down, up, zero, nearest = (
        computed(f"__{prefix}{operation}_{mode}(a, b)", dtype, a, b) for mode in ("rd", "ru", "rz", "rn")
    )
    inexact = 0
    for n in range(200):
        exact = EXACT[operation](Fraction(float(a[n])), Fraction(float(b[n])))
        low, high = Fraction(float(down[n])), Fraction(float(up[n]))
        assert low <= exact <= high
        assert up[n] == (down[n] if low == exact else np.nextafter(down[n], np.inf, dtype=dtype))
        assert zero[n] == (down[n] if exact > 0 else up[n])
        assert abs(Fraction(float(nearest[n])) - exact) == min(exact - low, high - exact)
        inexact += low < high
    assert inexact > 100


def test_directed_rounding_of_the_rest(rng):
    """Fused products, roots, reciprocals and conversions are rounded in the same way."""
    a, b, c = rng.normal(size=(3, 100)).astype("float32")
    down, up = (computed(f"__fmaf_{mode}(a, b, c)", "float32", a, b, c) for mode in ("rd", "ru"))
    exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c, strict=True)]
    assert all(Fraction(float(x)) <= e <= Fraction(float(y)) for x, e, y in zip(down, exact, up, strict=True))
    assert (np.nextafter(down, np.float32(np.inf)) >= up).all()
    assert (down < up).sum() > 50
    positive = np.abs(a) + 1
    down, up = (computed(f"__fsqrt_{mode}(a)", "float32", positive).astype("float64") for mode in ("rd", "ru"))
    assert ((down**2 <= positive) & (positive <= up**2) & (down < up)).sum() > 90
    down, up = (computed(f"__drcp_{mode}(a)", "float64", positive.astype("float64")) for mode in ("rz", "ru"))
    assert all(Fraction(x) * Fraction(float(p)) <= 1 <= Fraction(y) * Fraction(float(p))
               for x, p, y in zip(down, positive, up, strict=True))  # fmt: skip
    wide = rng.normal(size=(3, 20))
    got = computed("__fma_rn(a, b, c)", "float64", *wide)
    exact = [Fraction(x) * Fraction(y) + Fraction(z) for x, y, z in wide.T]
    assert got.tolist() == [float(e) for e in exact]
    got = computed("__frsqrt_rn(a)", "float32", np.float32([0.0, 1e-6, 3.0, np.inf]))
    assert got.tolist() == np.float32([np.inf, 1000.00000127, 1 / math.sqrt(3), 0.0]).tolist()
    big = [2**24 + 1, -(2**24) - 1]
    assert computed("__int2float_rz(a)", "float32", np.int32(big)).tolist() == [2.0**24, -(2.0**24)]
    assert computed("__int2float_ru(a)", "float32", np.int32(big)).tolist() == [2.0**24 + 2, -(2.0**24)]
    assert computed("__int2float_rd(a)", "float32", np.int32(big)).tolist() == [2.0**24, -(2.0**24) - 2]
    assert computed("__double2float_ru(a)", "float32", [1 + 2.0**-40]).tolist() == [1 + 2.0**-23]
    assert computed("__ll2double_rd(a)", "float64", np.int64([2**53 + 1])).tolist() == [2.0**53]


@pytest.mark.parametrize("source", ["float32", "float64"])
def test_conversions_to_integers(source):
    """They saturate; NaN is 0, but the highest bit from a double or to 64 bits, as cvt of PTX has it."""
    x = np.array([np.nan, np.inf, -np.inf, 2.5, -0.4], source)
    prefix = {"float32": "float", "float64": "double"}[source]
    for name, dtype in (("int", "int32"), ("uint", "uint32"), ("ll", "int64"), ("ull", "uint64")):
        bounds = np.iinfo(dtype)
        nan = 1 << (bounds.bits - 1) if bounds.bits == 64 or source == "float64" else 0
        nan -= 2 * nan if bounds.min else 0
        got = computed(f"__{prefix}2{name}_rn(a)", dtype, x)
        assert got.tolist() == [nan, bounds.max, bounds.min, 2, 0]
    assert computed("__half2ll_rz(__double2half(a))", "int64", x.astype("float64"))[0] == -(2**63)


# ---- integers ----


def signed(word, size=32):
    """Return the number that the lowest bits of a word are in two's complement."""
    word &= (1 << size) - 1
    return word - (1 << size) if word >> (size - 1) else word


def parts(word, size, of=int):
    """Return the parts of a word, lowest first."""
    return [of(word >> at & ((1 << size) - 1)) for at in range(0, 32, size)]


def joined(values, size):
    """Return the word of these parts."""
    return sum((int(value) & ((1 << size) - 1)) << at * size for at, value in enumerate(values))


def of_parts(function, size, *, sign):
    """Return the function of words that does this with their parts."""
    of = (lambda part: signed(part, size)) if sign else int
    return lambda a, b: joined(map(function, parts(a, size, of), parts(b, size, of)), size)


def selected(a, b, selectors):
    """Return bytes of two words, as __byte_perm."""
    given = [*parts(a, 8), *parts(b, 8)]
    chosen = [selectors >> 4 * i & 15 for i in range(4)]
    return joined([(255 if given[s & 7] >> 7 else 0) if s & 8 else given[s & 7] for s in chosen], 8)


def clipped(x, size, *, sign):
    """Return x at most as far out as a part of this size can be."""
    low, high = (-(1 << (size - 1)), (1 << (size - 1)) - 1) if sign else (0, (1 << size) - 1)
    return min(max(x, low), high)


WORDS = {
    "__mul24(a, b)": lambda a, b, c: signed(a, 24) * signed(b, 24),
    "__mulhi((int)a, (int)b)": lambda a, b, c: signed(a) * signed(b) >> 32,
    "__umulhi(a, b)": lambda a, b, c: a * b >> 32,
    "__mul64hi(0ull + a << 32 | b, (int)c) ^ __umul64hi(0ull + a << 32 | b, c)": lambda a, b, c: (
        ((signed(a) << 32 | b) * signed(c) >> 64) ^ ((a << 32 | b) * c >> 64)
    ),
    "__clz(a >> (b & 31)) + 100 * __clzll((long long)(a >> (b & 31)))": lambda a, b, c: (
        32 - (a >> (b & 31)).bit_length() + 100 * (64 - (a >> (b & 31)).bit_length())
    ),
    "__clz(0) + __clzll(0)": lambda a, b, c: 96,
    "__brev(a)": lambda a, b, c: int(f"{a:032b}"[::-1], 2),
    "__umul24(a, b)": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "__sad(a, b, c)": lambda a, b, c: abs(signed(a) - signed(b)) + c,
    "__usad(a, b, c)": lambda a, b, c: abs(a - b) + c,
    "__hadd((int)a, (int)b)": lambda a, b, c: (signed(a) + signed(b)) >> 1,
    "__rhadd(a, b)": lambda a, b, c: (signed(a) + signed(b) + 1) >> 1,
    "__uhadd(a, b)": lambda a, b, c: (a + b) >> 1,
    "__urhadd(a, b)": lambda a, b, c: (a + b + 1) >> 1,
    "__funnelshift_l(a, b, c)": lambda a, b, c: (b << 32 | a) << (c & 31) >> 32,
    "__funnelshift_lc(a, b, c % 50)": lambda a, b, c: (b << 32 | a) << min(c % 50, 32) >> 32,
    "__funnelshift_r(a, b, c)": lambda a, b, c: (b << 32 | a) >> (c & 31),
    "__funnelshift_rc(a, b, c % 50)": lambda a, b, c: (b << 32 | a) >> min(c % 50, 32),
    "__byte_perm(a, b, c)": selected,
    "__dp4a((int)a, (int)b, (int)c)": lambda a, b, c: c + sum(
        signed(x, 8) * signed(y, 8) for x, y in zip(parts(a, 8), parts(b, 8), strict=True)
    ),
    "__dp4a(a, b, c)": lambda a, b, c: c + sum(x * y for x, y in zip(parts(a, 8), parts(b, 8), strict=True)),
    "__dp2a_lo(a, b, c)": lambda a, b, c: c + sum(x * y for x, y in zip(parts(a, 16), parts(b, 8)[:2], strict=True)),
    "__dp2a_hi((int)a, (int)b, (int)c)": lambda a, b, c: c + sum(
        signed(x, 16) * signed(y, 8) for x, y in zip(parts(a, 16), parts(b, 8)[2:], strict=True)
    ),
    "umin(a, b) ^ umax(b, c)": lambda a, b, c: min(a, b) ^ max(b, c),
    "__vneg4(a)": lambda a, b, c: of_parts(lambda x, y: -x, 8, sign=True)(a, a),
    "__vabs2(a)": lambda a, b, c: of_parts(lambda x, y: abs(x), 16, sign=True)(a, a),
}  # fmt: skip

OF_PARTS = {
    "add": (False, lambda size: lambda x, y: x + y),
    "sub": (False, lambda size: lambda x, y: x - y),
    "addss": (True, lambda size: lambda x, y: clipped(x + y, size, sign=True)),
    "subss": (True, lambda size: lambda x, y: clipped(x - y, size, sign=True)),
    "addus": (False, lambda size: lambda x, y: clipped(x + y, size, sign=False)),
    "subus": (False, lambda size: lambda x, y: clipped(x - y, size, sign=False)),
    "mins": (True, lambda size: min),
    "maxs": (True, lambda size: max),
    "minu": (False, lambda size: min),
    "maxu": (False, lambda size: max),
    "avgs": (True, lambda size: lambda x, y: (x + y + (x + y >= 0)) >> 1),
    "avgu": (False, lambda size: lambda x, y: (x + y + 1) >> 1),
    "haddu": (False, lambda size: lambda x, y: (x + y) >> 1),
    "absdiffs": (True, lambda size: lambda x, y: abs(x - y)),
    "absdiffu": (False, lambda size: lambda x, y: abs(x - y)),
    "cmpeq": (False, lambda size: lambda x, y: -(x == y)),
    "cmpne": (False, lambda size: lambda x, y: -(x != y)),
    "cmpgts": (True, lambda size: lambda x, y: -(x > y)),
    "cmpges": (True, lambda size: lambda x, y: -(x >= y)),
    "cmplts": (True, lambda size: lambda x, y: -(x < y)),
    "cmples": (True, lambda size: lambda x, y: -(x <= y)),
    "cmpgtu": (False, lambda size: lambda x, y: -(x > y)),
    "cmpgeu": (False, lambda size: lambda x, y: -(x >= y)),
    "cmpltu": (False, lambda size: lambda x, y: -(x < y)),
    "cmpleu": (False, lambda size: lambda x, y: -(x <= y)),
}


def random_words(rng):
    """Return three columns of words, some with equal parts and with extreme ones."""
    a, b, c = rng.integers(0, 2**32, (3, 300), dtype=np.uint32)
    b[:60] = a[:60] ^ (rng.integers(0, 2, 60, dtype=np.uint32) << 9)
    a[60:90], b[75:105] = 0x80008080, 0x7FFF7F80
    a[105:110], c[105:110] = 0xFFFFFFFF, 0xFFFFFFFF
    return a, b, c


@pytest.mark.parametrize("expression", WORDS)
def test_words(expression, rng):
    """Intrinsics of integers, against whole numbers without bounds."""
    columns = random_words(rng)
    expected = [WORDS[expression](*map(int, row)) & 0xFFFFFFFF for row in zip(*columns, strict=True)]
    assert computed(expression, "uint32", *columns).tolist() == expected


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("name", OF_PARTS)
def test_parts_of_words(name, count, rng):
    """What is done with the two or four parts of words."""
    a, b, _ = random_words(rng)
    sign, function = OF_PARTS[name]
    expected = of_parts(function(32 // count), 32 // count, sign=sign)
    got = computed(f"__v{name}{count}(a, b)", "uint32", a, b).tolist()
    assert got == [expected(int(x), int(y)) for x, y in zip(a, b, strict=True)]


def test_words_of_eight_bytes(rng):
    """A double is made of two words, and bits turn round in all 64."""
    x = rng.normal(size=50)
    assert (computed("__hiloint2double(__double2hiint(a), __double2loint(a))", "float64", x) == x).all()
    y = rng.integers(0, 2**63, 50, dtype=np.uint64)
    assert computed("__brevll(a)", "uint64", y).tolist() == [int(f"{int(n):064b}"[::-1], 2) for n in y]
    assert computed("ullmax(a, 5ull) - ullmin(a, 5ull)", "uint64", y).tolist() == [int(n) - 5 for n in y]
    assert computed("llmin(a, 3ll)", "int64", np.int64([-4, 9])).tolist() == [-4, 3]


# ---- halves ----


def test_halves(rng):
    """Functions of halves and of pairs round once, from float."""
    a, b = (np.abs(rng.normal(size=100)) + 0.1).astype("float16"), rng.normal(size=100).astype("float16")
    wide = a.astype("float64")
    functions = {"hsqrt": np.sqrt, "hexp": np.exp, "hexp2": np.exp2, "hlog": np.log, "hlog2": np.log2,
                 "hlog10": np.log10, "hsin": np.sin, "hcos": np.cos, "htanh": np.tanh, "hceil": np.ceil,
                 "hfloor": np.floor, "hrint": np.rint, "htrunc": np.trunc, "hrcp": np.reciprocal,
                 "hrsqrt": lambda x: 1 / np.sqrt(x), "hexp10": lambda x: 10.0**x}  # fmt: skip
    for name, function in functions.items():
        expected = function(wide).astype("float16")
        np.testing.assert_allclose(computed(f"{name}(a)", "float16", a), expected, rtol=1e-3, atol=1e-7, err_msg=name)
    pairs = {"__hadd2": a + b, "__hsub2": a - b, "__hmul2": a * b, "__h2div": a / b, "__hmax2": np.maximum(a, b),
             "__hmin2": np.minimum(a, b)}  # fmt: skip
    for name, expected in pairs.items():
        for end in ("low", "high"):
            before = "const half2 x = __halves2half2(a, b), y = __lowhigh2highlow(x);"
            got = computed(
                f"__{end}2half({name}({'x, y' if end == 'low' else 'y, x'}))", "float16", a, b, before=before
            )
            assert (got == expected).all(), name
    got = computed("__high2half(__hfma2(__half2half2(a), make_half2(a, b), __float2half2_rn(1.0f)))", "float16", a, b)
    assert (got == (wide * b.astype("float64") + 1).astype("float16")).all()
    assert (computed("__hge(a, b) + 2 * __hle(a, b) + 4 * __hne(a, b)", "int32", a, b)
            == (a >= b) + 2 * (a <= b) + 4 * (a != b)).all()  # fmt: skip
    numbers = np.float16([2.5, -2.5, 6e4, np.nan])
    assert computed("__half2int_rn(a)", "int32", numbers).tolist() == [2, -2, 60000, 0]
    assert computed("__half2int_rz(a)", "int32", numbers).tolist() == [2, -2, 60000, 0]
    assert computed("__half2int_ru(a)", "int32", numbers).tolist() == [3, -2, 60000, 0]
    assert computed("__half2uint_rd(a)", "uint32", numbers).tolist() == [2, 0, 60000, 0]
    assert computed("__int2half_rn(a)", "float16", np.int32([2049, 2051, 10**6])).tolist() == [2048, 2052, np.inf]


def test_pairs_of_halves(rng):
    """Functions of a pair are those of its parts, in their places, and comparisons tell of each and of both."""
    a, b = (np.abs(rng.normal(size=40)) + 0.1).astype("float16"), rng.normal(size=40).astype("float16")
    b[:9] = a[:9]
    before = "const half2 x = __half2(a, b), y = __half2(b, b); half2 z = x; z /= y;"
    for name in (
        "exp",
        "exp2",
        "exp10",
        "sin",
        "cos",
        "tanh",
        "ceil",
        "floor",
        "rint",
        "trunc",
        "log",
        "log2",
        "log10",
        "sqrt",
        "rsqrt",
        "rcp",
    ):
        got = computed(f"__low2float(h2{name}(x)) == __half2float(h{name}(a))", "int32", a, b, before=before)
        assert got.all(), name
        got = computed(
            f"__high2float(h2{name}(__lowhigh2highlow(x))) == __half2float(h{name}(a))", "int32", a, b, before=before
        )
        assert got.all(), name
    for name, compare in {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "ge": np.greater_equal,
        "gt": np.greater,
        "le": np.less_equal,
    }.items():
        expected = compare(a, b) + 2 * compare(b, b)
        got = computed(
            f"__low2float(__h{name}2(x, y)) + 2 * __high2float(__h{name}2(x, y))", "int32", a, b, before=before
        )
        assert (got == expected).all(), name
        got = computed(f"__hb{name}2(x, y)", "int32", a, b, before=before)
        assert (got == (compare(a, b) & compare(b, b))).all(), name
    assert (computed("__low2half(-z)", "float16", a, b, before=before) == -(a / b)).all()
    assert (computed("(x == x) + 2 * (x != x)", "int32", a, b, before=before) == 1).all()
    assert (
        computed("__high2half(__lows2half2(x, y)) + __low2half(__high2half2(x))", "float16", a, b, before=before)
        == b + b
    ).all()
    counted = computed("h", "float16", a, before="half h = a; h++; ++h; h--;")
    assert (counted == np.float16(1) + a + np.float16(1) - np.float16(1)).all()


def test_zeros_and_infinities_of_halves():
    """The negative zero is the lesser one, and an infinity has its sign."""
    a, b = np.float16([0.0, -0.0, np.nan]), np.float16([-0.0, 0.0, 1.0])
    assert np.signbit(computed("__hmin(a, b)", "float16", a, b)).tolist() == [True, True, False]
    assert np.signbit(computed("__hmax(a, b)", "float16", a, b)).tolist() == [False, False, False]
    assert computed("__hisinf(a)", "int32", np.float16([np.inf, -np.inf, np.nan, 1])).tolist() == [1, -1, 0, 0]


def test_bfloat16_of_wide_numbers():
    """Doubles and integers are rounded once, also where they lie just beside the middle of two."""
    before = "auto of = [](auto x) { return __bfloat162float(__nv_bfloat16(x)); };"
    middle = 1 + 2.0**-8
    x = [middle, middle + 2.0**-40, middle - 2.0**-40, -middle - 2.0**-40]
    expected = [1.0, 1 + 2.0**-7, 1.0, -1 - 2.0**-7]
    assert computed("of(a)", "float32", x, before=before).tolist() == expected
    whole = [2**60 + 2**52, 2**60 + 2**52 + 1, 2**60 + 2**52 - 1, -(2**60) - 2**52 - 1]
    got = computed("of(a)", "float32", np.int64(whole), before=before)
    assert got.tolist() == [value * 2.0**60 for value in expected]


# ---- lanes ----


@pytest.mark.parametrize(
    ("name", "dtype", "combine"),
    [
        ("add", "int32", np.add),
        ("add", "uint32", np.add),
        ("min", "int32", np.minimum),
        ("max", "uint32", np.maximum),
        ("and", "uint32", np.bitwise_and),
        ("or", "uint32", np.bitwise_or),
        ("xor", "uint32", np.bitwise_xor),
    ],
)
def test_reductions_of_lanes(name, dtype, combine, rng):
    """The lanes of a mask get what all of them offer, combined; others go on."""
    x = (
        rng.integers(-(2**31), 2**31, 64).astype(dtype)
        if dtype == "int32"
        else rng.integers(0, 2**32, 64).astype(dtype)
    )
    got = computed(f"(i & 1) ? __reduce_{name}_sync(0xAAAAAAAA, a) : a", dtype, x)
    with np.errstate(over="ignore"):
        for warp in (slice(1, 32, 2), slice(33, 64, 2)):
            assert (got[warp] == combine.reduce(x[warp], dtype=dtype)).all()
    assert (got[::2] == x[::2]).all()
    first = (x[:20] & 0x7FFFFFFF) | 1
    with np.errstate(over="ignore"):
        expected = combine.reduce(first, dtype=dtype)
    assert (computed(f"__reduce_{name}_sync(0xFFFFFFFF, a)", dtype, first) == expected).all()  # the others are gone


def test_lanes_that_agree():
    """__match_all_sync gives the lanes that are there if all have the value, else none, and says which it is."""
    x = np.repeat(np.int32([5, 6]), 32)
    x[40] = 7
    got = computed("__match_all_sync(0xFFFFFFFF, a, &equal) + (equal ? 0u : 9u)", "uint32", x, before="int equal = 3;")
    assert got.tolist() == [0xFFFFFFFF] * 32 + [9] * 32
    got = computed("__match_all_sync(0xFFFFFFFF, a, &equal)", "uint32", x[:20], before="int equal;")
    assert got.tolist() == [0xFFFFF] * 20


@pytest.mark.usefixtures("gpp_alone")
def test_kernels_named_like_functions():
    """A kernel may have the name of one of CUDA's functions, and call it."""
    cupy = gpu.cupy()
    for name in ("norm", "erf", "max", "clock", "__brev"):
        x = cupy.array([3.0, 4.0, 0.0])
        kernel = f'extern "C" __global__ void {name}(double* x, int n) {{ x[2] = ::norm(n, x) + ::erf(x[2]); }}'
        cupy.RawKernel(kernel, name)((1,), (1,), (x, 2))
        assert x.get()[2] == 5.0


SOURCES = {
    "other parameters": "__device__ float min(float a, float b, float c) { return min(a, min(b, c)); }",
    "the same parameters": "__device__ double min(double a, double b) { return a; } MIN3",
    "template": "template <class T> __device__ T min(T a, T b, T c) { return min(a, min(b, c)); }",
    "member": "struct S { float x; __device__ float min(float b) { return ::min(x, b); } }; MIN3",
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_overloads_beside_those_of_cuda(source):
    """A function of the source's stands beside CUDA's of its name; one with the same parameters is taken."""
    cupy = gpu.cupy()
    source = source.replace("MIN3", "__device__ float min(float a, float b, float c) { return 1.0f; }")
    x = cupy.zeros(3)
    kernel = f"""{source} extern "C" __global__ void f(double* x) {{
        x[0] = min(3.0f, 1.0f, 2.0f), x[1] = min(5, 4) + min(5u, threadIdx.x), x[2] = min(3.0, 2.0);
    }}"""
    cupy.RawKernel(kernel, "f")((1,), (1,), (x,))
    assert x.get().tolist() == [1.0, 4.0, 3.0 if "double min" in source else 2.0]


def test_names_of_members_are_free():
    """Constructors and members may have names that types, variables and namespaces of the source have, too."""
    cupy = gpu.cupy()
    source = """
    template <class T> struct Gate { T t; __device__ explicit Gate(T x) { t = 2 * x; } };
    namespace scale { __device__ float by(float x) { return 3 * x; } }
    __constant__ float size = 5.0f;
    struct Box { __device__ float scale(float x) { return x; } __device__ float size() { return 7.0f; } };
    extern "C" __global__ void f(float* x) {
        x[0] = Gate<float>(1.0f).t, x[1] = scale::by(1.0f), x[2] = size, x[3] = Box().size() + Box().scale(1.0f);
    }"""
    x = cupy.zeros(4, "float32")
    cupy.RawKernel(source, "f")((1,), (1,), (x,))
    assert x.get().tolist() == [2.0, 3.0, 5.0, 8.0]


def test_linkage_of_c():
    """Variables and functions of C's linkage are defined, in braces and without, whatever comments hold."""
    cupy = gpu.cupy()
    source = """// }
    extern "C" __constant__ float c[2];
    extern "C" __device__ int d = 3;
    extern "C" __device__ int one() { return 1; }
    extern "C" { /* } */ __device__ float e = 2.5f; // "}"
    __global__ void first(float* x) { if (x[0] > 1e9f) printf("}"); }
    __global__ void f(float* x) { x[0] = c[1] + d + e + one() + ('}' == '{'); }
    }"""
    module = cupy.RawModule(code=source)
    c = module.get_global("c")
    cupy.ndarray(2, "float32", c).set(np.float32([10, 20]))
    x = cupy.zeros(1, "float32")
    module.get_function("f")((1,), (1,), (x,))
    module.get_function("first")((1,), (1,), (x,))
    assert x.get().tolist() == [26.5]
    assert cupy.ndarray(1, "int32", module.get_global("d")).get().tolist() == [3]


def test_waiting_by_the_clock():
    """A kernel that waits until the clock has gone on comes to its end."""
    before = "const long long begin = clock64(); while (clock64() - begin < 1000) {}"
    assert computed("clock64() - begin >= 1000", "int32", np.int32([0, 0]), before=before).tolist() == [1, 1]


def test_bytes_of_memory():
    """Copies and fills of bytes are there, and keep to the bounds of what they are given."""
    cupy = gpu.cupy()
    before = "float from[2] = {a, 2 * a}, to[2]; memcpy(to, from, 8); memset(from, 0, 8);"
    assert computed("to[0] + to[1] + from[0]", "float32", np.float32([1, 2]), before=before).tolist() == [3.0, 6.0]
    kernel = cupy.RawKernel('extern "C" __global__ void f(float* x) { memset(x, 0, 13); }', "f")
    with pytest.raises(cupy.cuda.driver.CUDADriverError, match="out-of-range write"):
        kernel((1,), (1,), (cupy.ones(3, "float32"),))


@pytest.mark.parametrize("source", ['extern "C" {{ {shared} {kernel} }}', '{shared}\nextern "C" {kernel}'])
@pytest.mark.parametrize("declared", ["float s[]", "unsigned char raw[]"])
def test_dynamic_shared_memory_of_a_file(source, declared):
    """It may be declared outside of the kernels that use it, and is checked as inside of one."""
    cupy = gpu.cupy()
    use = "" if declared == "float s[]" else "float* s = reinterpret_cast<float*>(raw);"
    kernel = f"""__global__ void f(float* x, int n) {{
        {use} const int i = threadIdx.x; s[i + n] = x[i]; __syncthreads(); x[i] = s[3 - i];
    }}"""
    run = cupy.RawKernel(source.format(shared=f"extern __shared__ {declared};", kernel=kernel), "f")
    x = cupy.arange(4, dtype="float32")
    run((1,), (4,), (x, 0), shared_mem=16)
    assert x.get().tolist() == [3.0, 2.0, 1.0, 0.0]
    with pytest.raises(cupy.cuda.driver.CUDADriverError, match="just behind the dynamic shared memory of 16 bytes"):
        run((1,), (4,), (x, 1), shared_mem=16)


# ---- what a thread needs ----


@pytest.mark.parametrize("count", [60_000, 120_000])
def test_large_local_arrays(count):
    """A thread may have as much memory of its own as on a GPU, 512 KiB."""
    before = f"int own[{count}]; for (int k = 0; k < {count}; ++k) own[k] = k + i;"
    assert computed(f"own[{count} - 1 - a]", "int32", np.int32([0, 3]), before=before).tolist() == [
        count - 1,
        count - 3,
    ]


@pytest.mark.parametrize(
    "body",
    [
        "__device__ __noinline__ int deep(int n) { volatile int m = n; return m < 0 ? 0 : deep(n + 1) + m; }",
        "__device__ __noinline__ int deep(int n) { volatile int own[1000000]; own[n] = n; return own[n]; }",
    ],
    ids=["recursion", "local array"],
)
def test_a_stack_that_is_used_up(body):
    """It is an error of the launch that says so, and the device works on."""
    cupy = gpu.cupy()
    kernel = cupy.RawKernel(f'{body} extern "C" __global__ void f(int* x) {{ x[threadIdx.x] = deep(1); }}', "f")
    x = cupy.zeros(3, "int32")
    for _ in range(2):
        with pytest.raises(cupy.cuda.driver.CUDADriverError, match="recursion that does not end, or local arrays of"):
            kernel((1,), (3,), (x,))
    assert (x + 1).get().tolist() == [1, 1, 1]
