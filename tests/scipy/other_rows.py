"""Calls of `scipy.fft`, `integrate`, `special` and `linalg`."""

from __future__ import annotations

import numpy as np

from lucid import numpy as lnp
from tests.scipy.checks import Row, between, complex_of, increasing

GRID, WIDE = (4, 6), (3, 7)
POSITIVE = between(0.2, 2.0, 4, 3)


def positive_definite(rng):
    """Return a matrix that has a Cholesky factor."""
    a = rng.standard_normal((4, 4))
    return a @ a.T + np.diag([1.0, 2, 3, 4])


TRANSFORMS = ("dct", "idct", "dst", "idst")
FFT = [
    *[
        Row(name, lambda l, x, n=name, t=t, m=m, o=o: getattr(l, n)(x, t, None, 0, m, orthogonalize=o), (GRID,), t == 2)
        for name in TRANSFORMS
        for t in (1, 2, 3, 4)
        for m, o in ((None, None), ("ortho", None), ("forward", True))
    ],
    *[
        Row(name, lambda l, x, n=name, k=k: getattr(l, n)(x, n=k, workers=1), (shape,))
        for name in TRANSFORMS
        for k, shape in ((4, GRID), (9, GRID), (None, complex_of(3, 5)))
    ],
    *[
        Row(f"{name}n", lambda l, x, n=name, s=s, k=k: getattr(l, f"{n}n")(x, s=s, axes=k, norm="ortho"), (GRID,))
        for name in TRANSFORMS
        for s, k in ((None, None), ((3, 8), None), (5, (0,)))
    ],
    *[
        Row(name, lambda l, x, n=name: getattr(l, n)(x), (GRID,))
        for name in (
            "fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn",
            "rfftn", "irfftn", "fftshift", "ifftshift",
        )
    ],
    *[
        Row(name, lambda l, x, n=name: getattr(l, n)(x, 5, 0, "ortho", workers=1), (GRID,))
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    ],
    *[
        Row(name, lambda l, x, n=name: getattr(l, n)(x, (5, 4), (1, 0), "forward"), (GRID,))
        for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
    ],
    *[
        Row(name, lambda l, x, n=name, s=s: getattr(l, n)(x, s), (GRID,))
        for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
        for s in ((4, 5), (5,))
        if name[-1] == "n" or len(s) == 2
    ],
    *[Row(name, lambda l, x, n=name: getattr(l, n)(x, 1), (WIDE,)) for name in ("fftshift", "ifftshift")],
    *[
        Row(f"{name}n", lambda l, x, n=name, k=k: getattr(l, f"{n}n")(x, 3, *k, "ortho", orthogonalize=False), (GRID,))
        for name in TRANSFORMS
        for k in (((3, 8), (1, 0)), ((5,), None), (5, None))
    ],
    *[
        Row(f"{name}n", lambda l, x, n=name: getattr(l, f"{n}n")(x, s=np.int64(3), axes=np.int64(0)), (GRID,))
        for name in (*TRANSFORMS, "fft", "irfft")
    ],
    Row("dctn", lambda l, x: l.dctn(x, s=(-1, 4)), (GRID,)),
    Row("fft", lambda l, x: l.fft(x, 5, axis=0, norm="ortho", workers=1), (GRID,)),
    *[Row("fftn", lambda l, x, s=s: l.fftn(x, s), (GRID,)) for s in ((4,), 4)],
    *[
        Row(name, lambda l, x, n=name, t=t, k=k: getattr(l, n)(x, t, axis=k), ((2, 4, 3),))
        for name in TRANSFORMS
        for t, k in ((1, -1), (1, 1), (2, 0), (3, -2), (4, 1))
    ],
    *[
        Row("dct", lambda l, x, m=m: l.dct(x, 2, norm=m, orthogonalize=m is None), (complex_of(3, 5),))
        for m in (None, "ortho")
    ],
]  # fmt: skip

INTEGRALS = ("simpson", "trapezoid", "cumulative_trapezoid", "cumulative_simpson")
INTEGRATE = [
    *[
        Row(name, lambda l, y, x, n=name: getattr(l, n)(y, x=x), ((3, k), increasing(k)), k == 7)
        for name in INTEGRALS
        for k in (2, 3, 4, 6, 7)
    ],
    *[
        Row(name, lambda l, y, n=name: getattr(l, n)(y, dx=0.3, axis=0), ((k, 2),))
        for name in INTEGRALS
        for k in (2, 3, 6, 7)
    ],
    *[
        Row("simpson", lambda l, y, x=x: l.simpson(y, x), ((3, len(x)),))
        for x in ([0, 1, 1, 2.0], [0, 0, 1, 2.0], [0, 1, 2, 2.0], [0, 1, 1, 1.0])
    ],
    *[
        Row("simpson", lambda l, y, d=d: l.simpson(y, dx=d), (shape,))
        for d in (np.float64(0.3), np.int64(2), np.array(0.3))
        for shape in ((5,), (3, 2), (3, 5), (3, 6))
    ],
    *[Row("simpson", lambda l, y, d: l.simpson(y, dx=d, axis=0), ((k, 3), between(1, 2))) for k in (2, 3, 4)],
    Row("simpson", lambda l, y, x: l.simpson(y, l.cumulative_trapezoid(x * x + 0.1, initial=0)), (WIDE, WIDE)),
    *[
        Row("cumulative_trapezoid", lambda l, y, d: l.cumulative_trapezoid(y, dx=d, axis=0), (
            (k, 3), between(1, 2, *s)))
        for k in (2, 5)
        for s in ((3,), (1, 3))
    ],
    *[
        Row("cumulative_simpson", lambda l, y, d, k=k: l.cumulative_simpson(y, dx=d, axis=k), (
            shape, between(1, 2, *dx)))
        for k, shape, dx in ((0, (2, 3), (1, 3)), (0, (5, 3), (1, 3)), (-1, (3, 5), (3, 1)), (1, (2, 5, 3), (2, 1, 3)))
    ],
    *[
        Row("simpson", lambda l, y, d: l.simpson(y, dx=d, axis=0), ((k, 3), between(1, 2, 3)))
        for k in (2, 3, 4, 5)
    ],
    Row("romb", lambda l, y, d: l.romb(y, d, axis=0), ((5, 3), between(1, 2, 3))),
    Row("cumulative_trapezoid", lambda l, y: l.cumulative_trapezoid(y, initial=0), (WIDE,)),
    Row("cumulative_simpson", lambda l, y: l.cumulative_simpson(y, initial=2.0), (WIDE,)),
    Row("romb", lambda l, y: l.romb(y, 0.5), ((2, 9),)),
    Row("romb", lambda l, y: l.romb(y, axis=0), ((5, 2),)),
    Row("fixed_quad", lambda l, a, b: l.fixed_quad(lambda t: t**2 * 3, a, b), (between(0, 1), between(1, 2)), True),
    Row(
        "fixed_quad",
        lambda l, a, b: l.fixed_quad(lambda t, p: t**p, a, b, (7,), 3),
        (between(0, 1), between(1, 2)),
    ),
    Row(
        "odeint",
        lambda l, y, t, k: l.odeint(lambda y, t, k: lnp.sin(t) - k * y, y, t, (k,), rtol=1e-12, atol=1e-12),
        ((2,), increasing(3), (2,)),
        True,
    ),
    Row(
        "odeint",
        lambda l, y, a: l.odeint(
            lambda t, y, p: [y[1], -p["a"] * y[0]], y, [-1, 0.5, 1], ({"a": a, "b": 2},),
            lambda t, y, p: np.array([[0.0, -p["a"]], [1.0, 0.0]]), col_deriv=1, full_output=1, rtol=1e-12,
            atol=[1e-12, 1e-13], h0=1e-4, tfirst=True,
        )[0],
        ((2,), between(1, 2)),
    ),
    Row(
        "odeint",
        lambda l, y, k: l.odeint(
            lambda y, t, k: -k * y, y, np.linspace(0, 1, 3), (k,), ml=0, mu=0, rtol=1e-11, atol=1e-11, hmax=0.1,
            hmin=1e-9, mxstep=5000, mxordn=8, mxords=4,
        ),
        ((3,), between(1, 2, 3)),
    ),
]  # fmt: skip

SPECIAL = [
    *[
        Row(name, lambda l, x, n=name: getattr(l, n)(x), (POSITIVE,))
        for name in ("gammaln", "erf", "psi", "j0", "expit", "i0", "digamma", "entr", "exp1", "gamma")
    ],
    *[
        Row(name, lambda l, x, y, n=name: getattr(l, n)(x, y), (POSITIVE, POSITIVE))
        for name in ("xlogy", "rel_entr", "betaln")
    ],
    *[
        Row(name, lambda l, x, n=name, k=k: getattr(l, n)(x, axis=k), ((2, 3, 4),), True)
        for name in ("logsumexp", "softmax", "log_softmax")
        for k in (None, 0, (0, 2), -1, (-1,), (2, -2))
    ],
    Row("logsumexp", lambda l, x, w: l.logsumexp(x, 0, w, True), (POSITIVE, POSITIVE)),
    Row("logsumexp", lambda l, x, w: l.logsumexp(x, 0, -w, return_sign=True)[0], (POSITIVE, POSITIVE)),
    Row("polygamma", lambda l, x: l.polygamma(2, x), (POSITIVE,)),
    Row("polygamma", lambda l, x: l.polygamma([[2], [0], [1], [2]], x), (POSITIVE,), True),
    *[Row(name, lambda l, x, n=name: getattr(l, n)(x, np.int64(1)), ((2, 3),)) for name in ("softmax", "log_softmax")],
    *[
        Row(name, lambda l, z, n=name: getattr(l, n)(1, z, 0), (POSITIVE,))
        for name in ("h1vp", "h2vp", "ivp", "jvp", "kvp", "yvp")
    ],
    Row("multigammaln", lambda l, x: l.multigammaln(x + 1, 2), (POSITIVE,)),
    Row("sinc", lambda l, x: l.sinc(x), (POSITIVE,)),
    *[Row(name, lambda l, z, n=name: getattr(l, n)(z), (complex_of(3),), True) for name in ("erf", "erfc", "wofz")],
    *[Row(name, lambda l, x, n=name: getattr(l, n)(x), (POSITIVE,)) for name in ("fresnel", "sici", "airy")],
    *[
        Row(name, lambda l, x, n=name: getattr(l, n)(1.5, x), (POSITIVE,), True)
        for name in ("jv", "yv", "iv", "kv", "hankel1")
    ],
    *[
        Row(name, lambda l, x, y, n=name: getattr(l, n)(x, y), (POSITIVE, POSITIVE), True)
        for name in ("beta", "huber", "pseudo_huber", "binom", "poch", "owens_t", "boxcox1p", "inv_boxcox1p")
    ],
    *[
        Row(name, lambda l, z, n=name, k=k, d=d: getattr(l, n)(k, z, d), (shape,), d)
        for name in ("spherical_in", "spherical_jn", "spherical_kn", "spherical_yn")
        for k in (np.array([[0], [1], [3], [4]]), 2)
        for d in (False, True)
        for shape in (POSITIVE, complex_of(4, 3), *([] if name[-2] == "k" else [between(-2.0, -0.2, 4, 3)]))
        if shape is POSITIVE or np.ndim(k) == 0
    ],
    *[
        Row(name, lambda l, z, n=name, k=k: getattr(l, n)(0.5, z, k), (POSITIVE,), k == 1)
        for name in ("h1vp", "h2vp", "ivp", "jvp", "kvp", "yvp")
        for k in (1, 2)
    ],
    Row("voigt_profile", lambda l, x, s, g: l.voigt_profile(x, s, g), ((4, 3), POSITIVE, POSITIVE), True),
    Row("zeta", lambda l, q: l.zeta(2.5, q), (POSITIVE,), True),
    *[
        Row("lambertw", lambda l, z, k=k: l.lambertw(z, k, 1e-12), (shape,), True)
        for k in (0, -1)
        for shape in (POSITIVE, complex_of(3))
    ],
    *[
        Row(name, lambda l, x, y, n=name: getattr(l, n)(x, y), (between(2.2, 4, 5), between(0.2, 2, 5)), True)
        for name in ("comb", "perm")
    ],
    Row("factorial", lambda l, x: l.factorial(x), ((5,),), True),
]


def square(rng):
    """Return a matrix far from singular ones."""
    return rng.standard_normal((4, 4)) + np.diag([5.0, -6, 7, -8])


def complex_square(rng):
    """Return a complex matrix far from singular ones."""
    return square(rng) + 1j * rng.standard_normal((4, 4))


def complex_definite(rng):
    """Return a Hermitian matrix of positive eigenvalues."""
    factor = complex_square(rng)
    return factor @ factor.conj().T / 5


def small(rng):
    """Return a matrix of which exponentials are of about its own size."""
    return rng.standard_normal((3, 3)) * 0.4


def complex_small(rng):
    """Return a complex one."""
    return small(rng) + 1j * small(rng)


def diagonals(rng):
    """Return the diagonals of such a matrix, the main one second."""
    return rng.standard_normal((4, 6)) * 0.3 + np.array([[0.0], [4], [0], [0]])


def batch_of_squares(rng):
    """Return matrices far from singular ones."""
    return np.eye(2) * 3 + rng.standard_normal((3, 2, 2))


def diagonals_of(count):
    """Return what draws those of several."""
    return lambda rng: np.stack([diagonals(rng) for _ in range(count)])


LINALG = [
    *[
        Row(name, lambda l, x, n=name: getattr(l, n)(x), (square,))
        for name in ("inv", "det", "norm", "expm", "svdvals")
    ],
    Row("pinv", lambda l, x: l.pinv(x), ((5, 3),)),
    Row("svd", lambda l, x: l.svd(x)[1], (square,)),
    Row("solve", lambda l, a, b: l.solve(a, b), (square, (4,))),
    Row("solve", lambda l, a, b: l.solve(a, b, transposed=True), (square, (4, 2))),
    *[
        Row("solve", lambda l, a, b, k=k: l.solve(a, b, k, assume_a="pos"), (positive_definite, (4,)))
        for k in (True, False)
    ],
    *[
        Row("solve_triangular", lambda l, a, b, k=k, t=t: l.solve_triangular(a, b, t, k), (positive_definite, (4,)))
        for k in (True, False)
        for t in (0, "T")
    ],
    *[
        Row("solve_triangular", lambda l, a, b: l.solve_triangular(a, b), (batch_of_squares, shape))
        for shape in ((2,), (2, 1), (3, 2, 4))
    ],
    *[Row("cho_solve", lambda l, a, b, k=k: l.cho_solve((a, k), b), (batch_of_squares, (2,))) for k in (True, False)],
    *[
        Row("solve_banded", lambda l, a, b: l.solve_banded((2, 1), a, b), (batch, shape))
        for batch, shape in (
            (diagonals, (2, 6, 3)),
            (diagonals_of(3), (6,)),
            (diagonals_of(3), (2, 1, 6, 2)),
            (diagonals_of(3), (6, 1)),
        )
    ],
    Row("block_diag", lambda l, a, b, c: l.block_diag(a, b, c), ((3, 2, 2), (4, 1, 1, 2), (2,))),
    Row("circulant", lambda l, c: l.circulant(c), ((),)),
    *[
        Row(
            "solve_discrete_lyapunov",
            lambda l, a, q, m=m: l.solve_discrete_lyapunov(a * 0.2, q, m),
            ((3, 2, 2), (2, 2)),
        )
        for m in ("direct", "bilinear")
    ],
    *[Row("cholesky", lambda l, a, k=k: l.cholesky(a, k), (positive_definite,)) for k in (True, False)],
    *[
        Row("solve_triangular", lambda l, a, b, t=t: l.solve_triangular(a, b, t), (complex_square, complex_of(4)))
        for t in (0, 1, 2, "N", "T", "C")
    ],
    Row("solve_triangular", lambda l, a, b: l.solve_triangular(a, b, unit_diagonal=True), (positive_definite, (4,))),
    *[
        Row("cho_solve", lambda l, a, b, k=k: l.cho_solve(l.cho_factor(a, k), b), (positive_definite, (4, 2)))
        for k in (True, False)
    ],
    Row("norm", lambda l, x: l.norm(x, 3, 0, True), ((4, 3),)),
    Row("svd", lambda l, x: l.svd(x, False)[1], ((5, 3),)),
    Row("svd", lambda l, x: l.svd(x, compute_uv=False), ((5, 3),)),
    Row("eigh", lambda l, a: l.eigh(a, lower=False, eigvals_only=True), (positive_definite,)),
    Row("eigh", lambda l, a: l.eigh(a, eigvals_only=True), (positive_definite,)),
    *[Row("eigh", lambda l, a, k=k: l.eigh(a, lower=k)[1] ** 2, (positive_definite,)) for k in (True, False)],
    Row("eigvalsh", lambda l, a: l.eigvalsh(a, lower=False), (positive_definite,)),
    *[Row("eigh", lambda l, a, b, k=k: l.eigh(a, b, lower=k), (square, positive_definite), k) for k in (True, False)],
    Row("eigh", lambda l, a, b: abs(l.eigh(a, b)[1]), (complex_square, complex_definite)),
    Row("eigvalsh", lambda l, a, b: l.eigvalsh(a, b), (square, positive_definite)),
    *[Row("qr", lambda l, a: l.qr(a, mode="economic"), (shape,), shape == (4, 3)) for shape in ((4, 3), (2, 4))],
    *[Row("qr", lambda l, a: l.qr(a), (draw,)) for draw in (square, complex_square, (2, 3))],
    *[Row("qr", lambda l, a: l.qr(a, mode="r"), (shape,)) for shape in ((4, 3), (2, 4), (3, 4, 2))],
    *[
        Row("lstsq", lambda l, a, b, k=kept: tuple(l.lstsq(a, b)[i] for i in k), (shape, (shape[0], *columns)), True)
        for shape, kept in (((5, 3), (0, 1, 3)), ((3, 5), (0, 3)))
        for columns in ((), (2,))
    ],
    Row("lstsq", lambda l, a, b: l.lstsq(a, b, 0.3)[0], (square, (4,))),
    Row("block_diag", lambda l, a, b: l.block_diag(a, b, 2.0), ((2, 3), (2,))),
    Row("toeplitz", lambda l, c, r: l.toeplitz(c, r), ((4,), (3,))),
    Row("toeplitz", lambda l, c: l.toeplitz(c), (complex_of(4),)),
    Row("hankel", lambda l, c, r: l.hankel(c, r), ((4,), (3,))),
    Row("hankel", lambda l, c: l.hankel(c), (complex_of(4),)),
    *[Row("circulant", lambda l, c: l.circulant(c), (shape,)) for shape in ((5,), (2, 4), complex_of(3))],
    Row("khatri_rao", lambda l, a, b: l.khatri_rao(a, b), ((2, 3), (4, 3))),
    *[
        Row("solve_sylvester", lambda l, a, b, q: l.solve_sylvester(a, b, q), arrays, k == 0)
        for k, arrays in enumerate(
            (
                (positive_definite, (3, 3), (4, 3)),
                (complex_of(2, 2), complex_of(3, 3), complex_of(2, 3)),
                (positive_definite, positive_definite, complex_of(4, 4)),
                ((2, 3, 3), (2, 2, 2), (2, 3, 2)),
            )
        )
    ],
    *[
        Row(name, lambda l, a, q, n=name: getattr(l, n)(a, q), (matrix, shape), matrix is positive_definite)
        for name in ("solve_continuous_lyapunov", "solve_lyapunov")
        for matrix, shape in ((positive_definite, (4, 4)), (complex_square, complex_of(4, 4)))
    ],
    *[
        Row(
            "solve_discrete_lyapunov",
            lambda l, a, q, m=method: l.solve_discrete_lyapunov(a * 0.1, q, m),
            (matrix, shape),
            method == "direct",
        )
        for method in ("direct", "bilinear", None)
        for matrix, shape in ((positive_definite, (4, 4)), (complex_square, complex_of(4, 4)))
    ],
    *[
        Row(name, lambda l, x, n=name: getattr(l, n)(x), (matrix,), matrix in {positive_definite, square, small}, 1e-9)
        for name in ("sqrtm", "logm", "cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm")
        for matrix in (
            (positive_definite, square, complex_square) if name in {"sqrtm", "logm"} else (small, complex_small)
        )
    ],
    *[
        Row("solve", lambda l, a, b, k=k: l.solve(a * (1 + 0.1j), b, assume_a=k), (square, (4,)))
        for k in ("her", "sym")
    ],
    Row("norm", lambda l, x: l.norm(x), ((4,),)),
    *[Row("norm", lambda l, x, k=k: l.norm(x, k), (square,)) for k in (1, np.inf, "fro", 2)],
    Row(
        "cho_solve",
        lambda l, b: l.cho_solve(l.cho_factor(np.eye(3) + np.ones((2, 3, 3)), lower=True), b),
        ((2, 3, 2),),
    ),
    Row("solve_banded", lambda l, a, b: l.solve_banded((2, 1), a, b), (diagonals, (6, 2)), True),
    Row("solve_banded", lambda l, a, b: l.solve_banded((2, 1), a * (1 + 0.5j), b), (diagonals, complex_of(6))),
]
