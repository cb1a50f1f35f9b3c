"""Norm of all gradients, clipping and unscaling on a CUDA device, in a few launches and without waiting for it."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.cuda.launch import multi_tensor
from lucid.cuda.launch.multi_tensor import Arrays

pytestmark = pytest.mark.gpu

# relative error of a norm that is rounded to the dtype once, and of gradients rounded once more
TOLERANCE = {"float64": 1e-14, "float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}
every_dtype = pytest.mark.parametrize("dtype", TOLERANCE)
SIZES = ((1,), (31,), (33,), (0,), (), (4, 5), (1023,), (1025,), (5000,))


def parameters(grads, dtype):
    """Return parameters on the device with given gradients, and the gradients in float64 as the dtype holds them."""
    made, exact = [], []
    for grad in grads:
        param = nn.Parameter(lucid.zeros(np.shape(grad), dtype=getattr(lucid, dtype), device="cuda"))
        param.grad = lucid.tensor(grad, dtype=getattr(lucid, dtype), device="cuda")
        made.append(param)
        exact.append(numpy_of(param.grad))
    return made, exact


def numpy_of(tensor):
    return tensor.detach().cpu().numpy().astype(np.float64)


def flat(arrays):
    return np.concatenate([np.ravel(array) for array in arrays])


@every_dtype
@pytest.mark.parametrize("order", [1, 2, 2.0, float("inf"), 3.5, 0.5])
def test_norm_of_all(rng, dtype, order):
    """The norm of many tensors is that of one vector of all their elements, in their dtype."""
    sizes = [shape for shape in SIZES if order != float("inf") or np.prod(shape)]
    params, exact = parameters([rng.standard_normal(shape) for shape in sizes], dtype)
    total = nn.utils.get_total_norm([param.grad for param in params], order)
    assert total.is_cuda
    assert total.shape == ()
    assert total.dtype == params[0].dtype
    expected = np.linalg.norm(flat(exact), order)
    if dtype == "float16" and expected > 65504:
        expected = np.inf
    # orders without a kernel of their own round the norm of each tensor first
    tolerance = TOLERANCE[dtype] * (1 if order in {1, 2, float("inf")} else 10)
    np.testing.assert_allclose(numpy_of(total), expected, rtol=tolerance)


@pytest.mark.parametrize("order", [1, 2, float("inf")])
def test_norm_of_more_tensors_than_a_table_holds(rng, order):
    """Hundreds of tensors, of which each counts once."""
    params, exact = parameters([rng.standard_normal(2) for _ in range(401)], "float32")
    total = nn.utils.get_total_norm([param.grad for param in params], order)
    np.testing.assert_allclose(numpy_of(total), np.linalg.norm(flat(exact), order), rtol=1e-6)


def test_norm_is_the_same_every_time(rng):
    """The order of additions depends on the sizes alone: the same tensors give the same bits."""
    grads = [lucid.tensor(rng.standard_normal(n), dtype=lucid.float32, device="cuda") for n in (9000, 17, 4097)]
    norms = {nn.utils.get_total_norm(grads).item() for _ in range(3)}
    assert len(norms) == 1


def test_norm_of_several_dtypes_and_layouts(rng):
    """Tensors of several dtypes count alike, strided and broadcast ones too, and one that comes twice counts twice."""
    a, b, c = rng.standard_normal((6, 4)), rng.standard_normal((5, 1)), rng.standard_normal(33)
    turned = lucid.tensor(a, dtype=lucid.float32, device="cuda").T
    spread = lucid.tensor(b, dtype=lucid.float64, device="cuda").expand(5, 7)
    short = lucid.tensor(c, dtype=lucid.float16, device="cuda")[::2]
    total = nn.utils.get_total_norm([turned, spread, short, short])
    pieces = [numpy_of(turned), numpy_of(spread), numpy_of(short), numpy_of(short)]
    assert total.dtype == lucid.float64
    np.testing.assert_allclose(numpy_of(total), np.linalg.norm(flat(pieces)), rtol=1e-6)


@pytest.mark.parametrize("order", [1, 2, float("inf")])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_norm_sees_what_is_not_finite(rng, order, bad):
    """One NaN makes the norm NaN and one infinity makes it infinite, wherever it stands."""
    for place in (0, 70, 2999):
        grads = [rng.standard_normal(3000), rng.standard_normal(50)]
        grads[0][place] = bad
        total = nn.utils.get_total_norm([lucid.tensor(g, dtype=lucid.float32, device="cuda") for g in grads], order)
        np.testing.assert_equal(total.item(), abs(bad))


@pytest.mark.parametrize("shapes", [[(0,)], [(0, 3), (0,)]])
def test_norm_of_nothing(shapes):
    """Without an element the norm is 0, and that of order infinity is refused, as no element is the largest."""
    grads = [lucid.zeros(shape, device="cuda") for shape in shapes]
    for order in (1, 2):
        assert nn.utils.get_total_norm(grads, order).item() == 0
    with pytest.raises(RuntimeError, match="non-zero size"):
        nn.utils.get_total_norm(grads, float("inf"))


@every_dtype
def test_clipping_by_norm(rng, dtype):
    """Gradients are scaled to the norm that is allowed, in place, and the norm before is returned."""
    params, exact = parameters([rng.standard_normal(shape) for shape in SIZES], dtype)
    grads = [param.grad for param in params]
    norm = np.linalg.norm(flat(exact))
    total = nn.utils.clip_grad_norm_(params, 1.5)
    np.testing.assert_allclose(numpy_of(total), norm, rtol=TOLERANCE[dtype])
    for param, grad, before in zip(params, grads, exact, strict=True):
        assert param.grad is grad
        np.testing.assert_allclose(numpy_of(grad), before * 1.5 / norm, rtol=3 * TOLERANCE[dtype], atol=1e-7)


@every_dtype
def test_clipping_what_is_short_enough_changes_no_bit(rng, dtype):
    """A norm below what is allowed leaves the gradients as they are."""
    params, exact = parameters([rng.standard_normal(n) for n in (5, 2000)], dtype)
    nn.utils.clip_grad_norm_(params, 1e4)
    for param, before in zip(params, exact, strict=True):
        np.testing.assert_array_equal(numpy_of(param.grad), before)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_clipping_by_a_norm_that_is_not_finite(bad):
    """As on the CPU: an infinite norm makes zeros, a NaN makes NaN of everything; an error on request, before that."""
    results = []
    for device in ("cpu", "cuda"):
        param = nn.Parameter(lucid.zeros(3, device=device))
        param.grad = lucid.tensor([1.0, bad, -2.0], device=device)
        with pytest.raises(RuntimeError, match="non-finite"):
            nn.utils.clip_grad_norm_([param], 1.0, error_if_nonfinite=True)
        nn.utils.clip_grad_norm_([param], 1.0)
        results.append(param.grad.cpu().numpy())
    np.testing.assert_array_equal(*results)


def test_clipping_with_a_norm_of_another_dtype(rng):
    """The norm may have been computed in another dtype than that of a gradient, or on the CPU."""
    for total in (
        lucid.tensor(4.0, dtype=lucid.float16, device="cuda"), lucid.tensor(4.0, dtype=lucid.float64, device="cuda"),
        lucid.tensor(4.0),
    ):  # fmt: skip
        params, exact = parameters([rng.standard_normal(40)], "float32")
        nn.utils.clip_grads_with_norm_(params, 1.0, total)
        np.testing.assert_allclose(numpy_of(params[0].grad), exact[0] / 4, rtol=2e-6)


@pytest.mark.parametrize("kind", ["strided", "in a graph", "twice"])
def test_clipping_gradients_of_every_kind(rng, kind):
    """Gradients that a kernel cannot change are changed all the same, and as the CPU does it."""
    values, other = rng.standard_normal((4, 3)), rng.standard_normal(70)
    results = []
    for device in ("cpu", "cuda"):
        params = [nn.Parameter(lucid.zeros(shape, device=device)) for shape in ((4, 3), (70,))]
        grad = lucid.tensor(values, dtype=lucid.float32, device=device)
        params[0].grad = grad.T.contiguous().T if kind == "strided" else grad
        if kind == "in a graph":
            params[0].grad = grad.requires_grad_() * 2
        params[1].grad = lucid.tensor(other, dtype=lucid.float32, device=device)
        given = [*params, params[1]] if kind == "twice" else params
        nn.utils.clip_grad_norm_(given, 2.0)
        nn.utils.clip_grad_value_(given, 0.3)
        results.append([param.grad.detach().cpu().numpy() for param in params])
    for cpu, cuda in zip(*results, strict=True):
        np.testing.assert_allclose(cuda, cpu, rtol=2e-6)


@every_dtype
def test_clipping_by_value(rng, dtype):
    """Every element is limited on both sides; NaN stays."""
    grads = [rng.standard_normal(shape) for shape in SIZES]
    grads[-1][[0, 77, -1]] = np.nan, np.inf, -np.inf
    params, exact = parameters(grads, dtype)
    nn.utils.clip_grad_value_(params, 0.5)
    for param, before in zip(params, exact, strict=True):
        np.testing.assert_array_equal(numpy_of(param.grad), np.clip(before, -0.5, 0.5))


def test_clipping_counts_as_an_in_place_change():
    """Backward through a gradient that was clipped after it was used is an error."""
    for clip in (lambda p: nn.utils.clip_grad_norm_([p], 0.1), lambda p: nn.utils.clip_grad_value_([p], 0.1)):
        param = nn.Parameter(lucid.zeros(2, device="cuda"))
        param.grad = lucid.tensor([3.0, 4.0], device="cuda")
        x = lucid.tensor([1.0, 2.0], device="cuda", requires_grad=True)
        loss = (x * param.grad).sum()
        clip(param)
        with pytest.raises(RuntimeError, match="version"):
            loss.backward()


def test_clipping_what_kernels_leave_counts_as_an_in_place_change_too():
    """Those that a kernel has changed are counted, whatever is left to operations beside them."""
    for clip in (lambda p: nn.utils.clip_grad_norm_(p, 0.1), lambda p: nn.utils.clip_grad_value_(p, 0.1)):
        params = [nn.Parameter(lucid.zeros(shape, device="cuda")) for shape in ((2, 3), (2,))]
        params[0].grad = lucid.ones(2, 3, device="cuda")
        params[0].grad.data = lucid.ones(3, 2, device="cuda").T
        params[1].grad = lucid.tensor([3.0, 4.0], device="cuda")
        versions = [param.grad._version for param in params]
        clip(params)
        assert all(param.grad._version > before for param, before in zip(params, versions, strict=True))


@pytest.fixture
def second(two_devices):
    """Return another device than the current one."""
    return "cuda:1"


def test_gradients_that_lie_alike_on_another_device(rng, second):
    """What is kept of arrays on one device is not used for those of the same shapes on another."""
    grads = [rng.standard_normal(shape) for shape in SIZES]
    for device in ("cuda:0", second, "cuda:0"):
        params = [nn.Parameter(lucid.zeros(np.shape(grad), device=device)) for grad in grads]
        for param, grad in zip(params, grads, strict=True):
            param.grad = lucid.tensor(grad, dtype=lucid.float32, device=device)
        total = nn.utils.clip_grad_norm_(params, 1.5)
        assert total.device == lucid.device(device)
        np.testing.assert_allclose(total.item(), np.linalg.norm(flat(grads)), rtol=1e-6)
        norm = np.linalg.norm(flat([numpy_of(param.grad) for param in params]))
        np.testing.assert_allclose(norm, 1.5, rtol=1e-5)


def test_clipping_with_a_norm_on_another_device(rng, second):
    """A kernel reads the norm where it lies: gradients on another device go by a copy of it."""
    total = lucid.tensor(4.0, device="cuda:0")
    values = [rng.standard_normal(40) for _ in range(2)]
    params = [nn.Parameter(lucid.zeros(40, device=device)) for device in ("cuda:0", second)]
    for param, value in zip(params, values, strict=True):
        param.grad = lucid.tensor(value, dtype=lucid.float32, device=param.device)
    nn.utils.clip_grads_with_norm_(params, 1.0, total)
    for param, value in zip(params, values, strict=True):
        np.testing.assert_allclose(numpy_of(param.grad), value / 4, rtol=2e-6)


def test_what_is_kept_of_shapes_stays_bounded():
    """Gradients of ever other shapes do not fill the memory of the host."""
    for size in range(1, 2 * multi_tensor._MOST_LAYOUTS + 2):
        assert nn.utils.get_total_norm([lucid.ones(size, device="cuda")], "inf").item() == 1
        assert len(multi_tensor._layouts) <= multi_tensor._MOST_LAYOUTS


@every_dtype
@pytest.mark.parametrize("bad", [None, np.nan, np.inf, -np.inf])
def test_unscaling_finds_what_is_not_finite(rng, dtype, bad):
    """All elements are multiplied, and the flag tells whether one was infinite or NaN, wherever it stands."""
    for place in (0, 3000, -1):
        grads = [rng.standard_normal(n) for n in (40, 4097)]
        if bad is not None:
            grads[1][place] = bad
        params, exact = parameters(grads, dtype)
        found = lucid.zeros((), device="cuda")
        rest = Arrays([param.grad.array for param in params]).unscale(0.25, found.array)
        assert rest == []
        assert found.item() == (bad is not None)
        for param, before in zip(params, exact, strict=True):
            expected = lucid.tensor(before / 4, dtype=param.dtype)
            np.testing.assert_array_equal(numpy_of(param.grad), numpy_of(expected))
