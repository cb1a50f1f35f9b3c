"""Inverses, equations, factors and norms of matrices."""

from __future__ import annotations

import functools
import math

import numpy as np

import lucid
from tests.samples import Sample

WIDE = ("float32", "float64")
# Of inverses and differences of values: a few conditions of 10 on the way.
COARSE = {"float32": 2e-4, "float64": 1e-9}


def of(path):
    """Return what finds a function by its path in `lucid` or PyTorch."""

    def find(module):
        return functools.reduce(getattr, path.split("."), module)

    return find


def normal(*shapes):
    """Return what draws an array for each shape."""
    return lambda rng: tuple(rng.standard_normal(shape) for shape in shapes)


def regular(*shapes, turned=False):
    """Return what draws matrices near a multiple of the identity; `turned` ones have their rows in reverse order."""

    def draw(rng):
        arrays = [0.3 * rng.standard_normal(shape) for shape in shapes]
        arrays = [a + 2 * np.eye(*a.shape[-2:]) if a.ndim > 1 else a for a in arrays]
        return (np.flip(arrays[0], -2).copy() if turned else arrays[0], *arrays[1:])

    return draw


def unfolded(*others, axis=2):
    """Return what draws a matrix near a multiple of the identity whose rows are two axes, its columns at `axis`."""

    def draw(rng):
        matrix, *rest = regular((6, 6), *others)(rng)
        return (np.moveaxis(matrix.reshape(2, 3, 6), 2, axis).copy(), *rest)

    return draw


def spread(*shape):
    """Return what draws matrices of singular values near 1, 2, 3, ..."""

    def draw(rng):
        u, s, vh = np.linalg.svd(rng.standard_normal(shape), full_matrices=False)
        s = np.arange(s.shape[-1], 0, -1) + 0.2 * rng.random(s.shape)
        return (u * s[..., None, :] @ vh,)

    return draw


def symmetric(*shape):
    """Return what draws symmetric matrices of eigenvalues near 1, 2, 3, ..., of either sign."""

    def draw(rng):
        q, _ = np.linalg.qr(rng.standard_normal(shape))
        sizes = np.arange(shape[-1], 0, -1) + 0.2 * rng.random(shape[:-1])
        return (q * (rng.choice([-1.0, 1.0], shape[:-1]) * sizes)[..., None, :] @ q.swapaxes(-1, -2),)

    return draw


def sums_of(matrix):
    """Return the gaps of what takes the largest or smallest sum of a row or column: what parts these, and signs."""
    sizes = np.abs(matrix)
    return [matrix / sizes.mean() * 8, *(np.diff(np.sort(sizes.sum(axis))) for axis in (-1, -2))]


def uneven(*shape):
    """Return what draws an array of either sign, whose elements, and sums of rows and columns, differ in size."""

    def draw(rng):
        array = rng.uniform(0.9, 1.1, shape) * rng.choice([-1.0, 1.0], shape)
        rows = 1.5 ** rng.permutation(shape[-2])
        return (array * rows[:, None] * 2.0 ** rng.permutation(shape[-1]) / 4,)

    return draw


def positive(x):
    """Return positive-definite matrices of any."""
    return x @ x.swapaxes(-1, -2) + x.shape[-1] * eye(x)


def hermitian(x):
    """Return the symmetric part: what a step beside a symmetric matrix is taken for."""
    return (x + x.swapaxes(-1, -2)) / 2


def detached(x):
    """Return what no gradient is asked of, as its op has none."""
    return x if isinstance(x, np.ndarray) else x.detach()


def eye(x):
    if isinstance(x, np.ndarray):
        return np.eye(x.shape[-1])
    module = lucid if isinstance(x, lucid.Tensor) else __import__("torch")
    return module.eye(x.shape[-1], dtype=x.dtype, device=x.device)


def row(name, inputs, reference=None, *settings, before=None, after=None, **more):
    """Return a row of a function; `before` changes its first tensor, and `after` makes its results unique."""
    keywords = settings[-1] if settings and isinstance(settings[-1], dict) else {}
    settings = settings[:-1] if keywords else settings
    find = of(name.partition(":")[0])

    def call(module, *tensors):
        if before is not None:
            tensors = (before(tensors[0]), *tensors[1:])
        result = find(module)(*tensors, *settings, **keywords)
        return result if after is None else after(result)

    def expected(*arrays):
        return reference(*((before(arrays[0]), *arrays[1:]) if before else arrays))

    more = {"dtypes": WIDE, "tolerance": COARSE, **more}
    return Sample(
        name, functools.partial(call, lucid), inputs, reference and expected,
        lambda torch, *tensors: call(torch, *tensors), **more,
    )  # fmt: skip


def solved(a, b):
    return np.linalg.solve(a, b)


def triangle(upper, unit):
    def reference(a, b):
        part = np.triu(a) if upper else np.tril(a)
        if unit:
            part = part - part * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
        return np.linalg.solve(part, b)

    return reference


def cofactors(a):
    return np.linalg.det(a)


def exponential(a):
    values, vectors = np.linalg.eig(a)
    return ((vectors * np.exp(values)[..., None, :]) @ np.linalg.inv(vectors)).real


def lu_parts(a):
    """Return P, L and U by elimination in plain Python."""
    n, m = a.shape
    p, u, lower = list(range(n)), a.copy(), np.zeros((n, min(n, m)))
    for k in range(min(n, m)):
        best = max(range(k, n), key=lambda i: abs(u[i, k]))
        u[[k, best]], lower[[k, best]] = u[[best, k]], lower[[best, k]]
        p[k], p[best] = p[best], p[k]
        for i in range(k + 1, n):
            lower[i, k] = u[i, k] / u[k, k]
            u[i] -= lower[i, k] * u[k]
        lower[k, k] = 1
    return np.eye(n)[:, p], lower, np.triu(u[: min(n, m)])


def packed(a):
    _, lower, upper = lu_parts(a)
    n, m = a.shape
    out = np.zeros((n, m))
    out[:, : lower.shape[1]] += np.tril(lower, -1)
    out[: upper.shape[0]] += upper
    return out


def first(result):
    return result[0]


def reflections(v, tau):
    if v.ndim > 2:  # an empty stack
        return v
    n, k = v.shape
    out = np.eye(n)
    for i in range(k):
        w = np.tril(v, -1)[:, i] + np.eye(n)[i]
        out = out @ (np.eye(n) - tau[i] * np.outer(w, w))
    return out[:, :k]


def reflected(v, tau, x, *, left, turned):
    q = reflections(np.pad(v, ((0, 0), (0, 1))), np.append(tau, 0.0))
    q = q.T if turned else q
    return q @ x if left else x @ q


def singular(a):
    return np.linalg.svd(a, compute_uv=False)


def projectors(result):
    """Return the values, and the projectors on each pair of vectors times its value: these are unique."""
    u, s, vh = result
    k = s.shape[-1]
    return s, (u[..., :k] * s[..., None, :] ** 2) @ vh[..., :k, :]


def turned_back(result):
    return result.U, result.S, result.V.mT


def numpy_svd(a):
    return projectors(np.linalg.svd(a, full_matrices=False))


def rotating(*shape):
    """Return what draws matrices of which two eigenvalues are a pair of complex numbers, and the others real."""

    def draw(rng):
        sizes = np.arange(shape[-1], 0, -1) + 0.2 * rng.random(shape[:-1])
        blocks = sizes[..., None] * np.eye(shape[-1])
        blocks[..., 0, 1], blocks[..., 1, 0] = 2, -2
        p = np.eye(shape[-1]) + 0.3 * rng.standard_normal(shape)
        return (p @ blocks @ np.linalg.inv(p),)

    return draw


def unordered(result):
    """Return sums over eigenvalues, and over these and the sizes in their vectors, which no order changes."""
    values, vectors = result
    sizes = abs(vectors)
    return (values**3).sum(-1).real, ((sizes * values[..., None, :]) @ (sizes + 0 * values[..., None, :]).mT).real


def spectral(result):
    values, vectors = result
    return values, (vectors * values[..., None, :] ** 3) @ vectors.swapaxes(-1, -2)


def turned(result):
    """Return the factors whose R has a positive diagonal; which of the two it has is the library's choice."""
    signs = result.R.diagonal(0, -2, -1).sign()
    return result.Q * signs[..., None, :], result.R * signs[..., None]


def numpy_qr(a, mode="reduced"):
    q, r = np.linalg.qr(a, mode)
    signs = np.sign(np.diagonal(r, 0, -2, -1))
    return q[..., : signs.shape[-1]] * signs[..., None, :], r[..., : signs.shape[-1], :] * signs[..., None]


def norm_of(order):
    return lambda a: np.linalg.norm(a, order, (-2, -1))


ROWS = [
    row("linalg.inv", regular((3, 3)), np.linalg.inv, empty=normal((0, 3, 3))),
    row("linalg.inv:stack", regular((2, 4, 3, 3)), np.linalg.inv, empty=normal((2, 0, 0))),
    row("linalg.inv_ex", regular((2, 3, 3)), np.linalg.inv, after=first),
    row("inverse", regular((3, 3)), np.linalg.inv),
    row("linalg.solve", regular((3, 3), (3, 2)), solved, empty=normal((0, 0), (0, 2))),
    row("linalg.solve:vector", regular((3, 3), (3,)), solved),
    row("linalg.solve:stacks", regular((2, 1, 3, 3), (4, 3, 2)), solved),
    row("linalg.solve:one matrix", regular((3, 3), (2, 3, 2)), solved),
    row("linalg.solve:right", regular((3, 3), (2, 3)), lambda a, b: b @ np.linalg.inv(a), {"left": False}),
    row("linalg.solve_ex", regular((2, 3, 3), (2, 3, 2)), solved, after=first),
    row("linalg.det", normal((3, 3)), cofactors, empty=normal((2, 0, 0))),
    row("linalg.det:stack", normal((2, 2, 4, 4)), cofactors),
    row("det", normal((3, 3)), cofactors),
    row("linalg.slogdet", regular((2, 3, 3)), np.linalg.slogdet, after=tuple),
    row("slogdet", regular((3, 3)), np.linalg.slogdet, after=tuple),
    row("logdet", normal((2, 3, 3)), lambda a: np.log(np.linalg.det(a)), before=positive),
    row("linalg.tensorinv", unfolded(), lambda a: np.linalg.tensorinv(a, 2)),
    row("linalg.tensorsolve", unfolded((2, 3)), np.linalg.tensorsolve),
    row(
        "linalg.tensorsolve:dims", unfolded((2, 3), axis=1), lambda a, b: np.linalg.tensorsolve(a, b, (1,)),
        {"dims": (1,)},
    ),
    *[
        row(
            f"linalg.solve_triangular:{upper} {unit}", regular((2, 1, 3, 3), (3, 3, 2)), triangle(upper, unit),
            {"upper": upper, "unitriangular": unit}, empty=normal((2, 0, 3, 3), (3, 2)),
        )
        for upper in (False, True) for unit in (False, True)
    ],
    row(
        "linalg.solve_triangular:right", regular((3, 3), (2, 3)), lambda a, b: b @ np.linalg.inv(np.triu(a)),
        {"upper": True, "left": False},
    ),
    row("linalg.cholesky", normal((3, 3)), np.linalg.cholesky, before=positive, empty=normal((0, 3, 3))),
    row("linalg.cholesky:stack", normal((2, 3, 3)), np.linalg.cholesky, before=positive),
    row(
        "linalg.cholesky:upper", normal((3, 3)), lambda a: np.linalg.cholesky(a).T, {"upper": True}, before=positive,
    ),
    row("cholesky", normal((3, 3)), np.linalg.cholesky, before=positive),
    row("linalg.cholesky_ex", normal((2, 3, 3)), np.linalg.cholesky, before=positive, after=first),
    Sample(
        "cholesky_solve", lambda a, b: lucid.cholesky_solve(b, a), regular((3, 3), (3, 2)),
        lambda a, b: np.linalg.solve(np.tril(a) @ np.tril(a).T, b), dtypes=WIDE, tolerance=COARSE,
    ),
    Sample(
        "cholesky_solve:upper", lambda a, b: lucid.cholesky_solve(b, a, True), regular((3, 3), (3, 2)),
        lambda a, b: np.linalg.solve(np.triu(a).T @ np.triu(a), b), dtypes=WIDE, tolerance=COARSE,
    ),
    Sample(
        "cholesky_inverse", lucid.cholesky_inverse, regular((2, 3, 3)),
        lambda a: np.linalg.inv(np.tril(a) @ np.tril(a).swapaxes(-1, -2)), dtypes=WIDE, tolerance=COARSE,
    ),
    *[
        row(f"linalg.lu:{shape}", regular(shape, turned=True), lu_parts, after=tuple, constants=())
        for shape in ((3, 3), (4, 3), (3, 4))
    ],
    *[
        row(f"linalg.lu_factor:{shape}", regular(shape, turned=True), packed, after=first)
        for shape in ((3, 3), (4, 3), (3, 4))
    ],
    row("linalg.lu_factor_ex", regular((3, 3), turned=True), packed, after=first),
    Sample(
        "lu_unpack", lambda a: tuple(lucid.lu_unpack(*lucid.linalg.lu_factor(a))), regular((3, 3)), lu_parts,
        lambda torch, a: tuple(torch.lu_unpack(*torch.linalg.lu_factor(a))), dtypes=WIDE, tolerance=COARSE,
    ),
    *[
        Sample(
            f"linalg.lu_solve:{left} {turned}",
            lambda a, b, k=k: lucid.linalg.lu_solve(*lucid.linalg.lu_factor(a), b, **k),
            regular((2, 3, 3), (3, 3)),
            lambda a, b, left=left, turned=turned: (
                np.linalg.solve(a.swapaxes(-1, -2) if turned else a, b)
                if left else b @ np.linalg.inv(a.swapaxes(-1, -2) if turned else a)
            ),
            lambda torch, a, b, k=k: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b, **k),
            dtypes=WIDE, tolerance=COARSE,
        )
        for left in (True, False) for turned in (True, False) for k in [{"left": left, "adjoint": turned}]
    ],
    Sample(
        "lu_solve", lambda a, b: lucid.lu_solve(b, *lucid.linalg.lu_factor(a)), regular((3, 3), (3, 2)), solved,
        dtypes=WIDE, tolerance=COARSE,
    ),
    *[
        row(f"linalg.qr:{shape}", regular(shape), numpy_qr, after=turned)
        for shape in ((3, 3), (4, 2), (2, 4), (2, 4, 3))
    ],
    row(
        "linalg.qr:complete", normal((4, 2)), lambda a: np.abs(np.linalg.qr(a, "complete")[1]), "complete",
        before=detached, after=lambda result: result.R.abs(), differentiable=False,
    ),
    row(
        "linalg.qr:r", normal((4, 2)), lambda a: np.abs(np.linalg.qr(a, "r")), "r", before=detached,
        after=lambda result: result.R.abs(), differentiable=False,
    ),
    row("qr", regular((3, 3)), numpy_qr, after=turned),
    row(
        "geqrf", normal((4, 2)), lambda a: np.abs(np.linalg.qr(a, "r")), before=detached,
        after=lambda r: r.a[:2].triu().abs(), differentiable=False,
    ),
    row("linalg.householder_product", normal((4, 3), (3,)), reflections, empty=normal((0, 3, 2), (0, 2))),
    row("orgqr", normal((4, 3), (3,)), reflections),
    *[
        row(
            f"ormqr:{left} {turned}", normal((4, 3), (3,), (4, 2) if left else (2, 4)),
            lambda v, tau, x, left=left, turned=turned: reflected(v, tau, x, left=left, turned=turned),
            left, turned,
        )
        for left in (True, False) for turned in (True, False)
    ],
    *[
        row(f"linalg.svd:{shape}", spread(*shape), numpy_svd, {"full_matrices": False}, after=projectors)
        for shape in ((3, 3), (4, 3), (3, 4), (2, 4, 3))
    ],
    row("linalg.svd:full", spread(4, 3), numpy_svd, after=projectors),
    Sample(
        "svd", lambda a: projectors(turned_back(lucid.svd(a))), spread(4, 3), numpy_svd,
        lambda torch, a: projectors(turned_back(torch.svd(a))), dtypes=WIDE, tolerance=COARSE,
    ),
    *[
        row(f"linalg.svdvals:{shape}", spread(*shape), singular, empty=normal((0, 3, 2)))
        for shape in ((3, 3), (2, 4, 3))
    ],
    *[
        row(
            f"linalg.eigh:{shape}", symmetric(*shape), lambda a: spectral(np.linalg.eigh(a)), before=hermitian,
            after=lambda result: spectral(tuple(result)),
        )
        for shape in ((3, 3), (2, 4, 4))
    ],
    row(
        "linalg.eigh:upper", symmetric(3, 3), lambda a: spectral(np.linalg.eigh(a)), "U", before=hermitian,
        after=lambda result: spectral(tuple(result)),
    ),
    *[
        row(f"linalg.eig:{shape}", rotating(*shape), lambda a: unordered(np.linalg.eig(a)), after=unordered)
        for shape in ((3, 3), (2, 4, 4))
    ],
    row(
        "linalg.eigvals", rotating(2, 3, 3), lambda a: (np.linalg.eigvals(a) ** 3).sum(-1).real,
        after=lambda values: (values**3).sum(-1).real, empty=normal((0, 3, 3)),
    ),
    row("linalg.eigvalsh", symmetric(2, 3, 3), np.linalg.eigvalsh, before=hermitian, empty=normal((0, 3, 3))),
    *[
        row(f"linalg.pinv:{shape}", spread(*shape), np.linalg.pinv, empty=normal((0, 3, 2)))
        for shape in ((3, 3), (4, 3), (2, 3, 4))
    ],
    row("linalg.pinv:hermitian", symmetric(3, 3), np.linalg.pinv, {"hermitian": True}, before=hermitian),
    row("pinverse", spread(3, 2), np.linalg.pinv),
    row(
        "linalg.matrix_rank", lambda rng: (np.stack([np.ones((3, 3)), np.eye(3)]),), np.linalg.matrix_rank,
        differentiable=False,
    ),
    *[
        row(f"linalg.cond:{p}", spread(2, 3, 3), lambda a, p=p: np.linalg.cond(a, p), p)
        for p in (None, 2, -2)
    ],
    *[
        # PyTorch's second derivative raises for these
        Sample(
            f"linalg.cond:{p}", lambda a, p=p: lucid.linalg.cond(a, p), spread(2, 3, 3),
            lambda a, p=p: np.linalg.cond(a, p), dtypes=WIDE, tolerance=COARSE,
            gaps=lambda a: sums_of(a) + sums_of(np.linalg.inv(a)),
        )
        for p in (1, -1, math.inf, "fro", "nuc")
    ],
    *[
        row(
            f"linalg.lstsq:{shape}", lambda rng, s=shape: (*spread(*s)(rng), rng.standard_normal((*s[:-1], 2))),
            lambda a, b: np.linalg.pinv(a) @ b, after=first,
        )
        for shape in ((3, 3), (4, 3), (2, 3, 4))
    ],
    *[
        row(f"{name}:{shape}", normal(shape), exponential, empty=normal((2, 0, 0)))
        for name in ("linalg.matrix_exp", "matrix_exp") for shape in ((3, 3), (2, 2, 2))
    ],
    row("linalg.matrix_power", regular((3, 3)), lambda a: np.linalg.matrix_power(a, -3), -3),
    *[
        row(f"linalg.matrix_norm:{order}", draw(2, 3, 4), norm_of(order), order)
        for draw, orders in ((spread, ("fro", "nuc", 2, -2)), (uneven, (1, -1, math.inf, -math.inf)))
        for order in orders
    ],
    row(
        "linalg.matrix_norm:dims", spread(2, 3, 4), lambda a: np.linalg.norm(a, "nuc", (2, 0), keepdims=True), "nuc",
        {"dim": (2, 0), "keepdim": True},
    ),
    *[
        row(f"linalg.vector_norm:{order}", uneven(3, 4), lambda a, p=order: np.linalg.norm(a, p, 1), order, 1)
        for order in (2, 1, 3, math.inf)
    ],
    row("linalg.vector_norm:all", normal((3, 4)), lambda a: np.linalg.norm(a.ravel())),
    row("linalg.norm", normal((2, 3, 4)), lambda a: np.linalg.norm(a.ravel())),
    row("linalg.norm:matrix", uneven(3, 4), lambda a: np.linalg.norm(a, 1), 1),
    row("linalg.norm:vectors", uneven(3, 4), lambda a: np.linalg.norm(a, 1, 0), 1, 0),
    Sample(
        "linalg.multi_dot", lambda *t: lucid.linalg.multi_dot(t), normal((2, 5), (5, 3), (3, 4), (4,)),
        lambda *a: functools.reduce(np.matmul, a), lambda torch, *t: torch.linalg.multi_dot(t), dtypes=WIDE,
    ),
    row("linalg.vecdot", normal((2, 3), (3,)), lambda a, b: (a * b).sum(-1)),
    row("linalg.vecdot:dim", normal((2, 3), (2, 3)), lambda a, b: (a * b).sum(0), {"dim": 0}),
    row("linalg.cross", normal((2, 3), (1, 3)), np.cross),
    row("linalg.diagonal", normal((2, 3, 4)), lambda a: np.diagonal(a, 1, -2, -1), {"offset": 1}),
    row("linalg.vander", normal((2, 3)), lambda a: a[..., None] ** np.arange(4), {"N": 4}),
    row("linalg.matmul", normal((2, 3), (3, 2)), np.matmul),
]  # fmt: skip
