"""Tools of distributions: triangles as vectors, and values that are kept."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import lucid
from lucid import distributions
from lucid import numpy as lnp
from lucid.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from lucid.errors import ShapeError
from tests.distributions.samples import of


def test_triangles():
    """A vector becomes a triangle and again that vector, with each diagonal; other lengths are refused."""
    for diag in (-1, 0, 1):
        count = {-1: 3, 0: 6, 1: 8}[diag]
        vector = of(np.arange(count) + 1.0)
        matrix = vec_to_tril_matrix(vector, diag)
        assert tuple(matrix.shape) == (3, 3)
        assert (tril_matrix_to_vec(matrix, diag) == vector).all()
    with pytest.raises(ShapeError, match="as many elements as a triangle has, got 2"):
        vec_to_tril_matrix(of([1.0, 2.0]))
    with pytest.raises(ShapeError, match="expected diag from -2 to 1, got 5"):
        tril_matrix_to_vec(of([[1.0, 0.0], [0.0, 1.0]]), 5)
    for shape in ((3, 2), (2, 3), (6,)):
        with pytest.raises(ShapeError, match=r"tril_matrix_to_vec: expected square matrices, got shape \("):
            tril_matrix_to_vec(of(np.ones(shape)))
    with pytest.raises(ShapeError, match="expected one dimension or more, got a number"):
        vec_to_tril_matrix(of(1.0))


@pytest.mark.parametrize("diag", [-3, -1, 0, 1, 2, 5])
def test_sizes_of_triangles(diag):
    """The size of a matrix is found of each number of elements, of none the largest without any."""
    held = [np.tril(np.ones((n, n)), diag).sum() for n in range(40)]
    for count in (*range(60), int(held[35])):
        sizes = [n for n in range(40) if held[n] == count]
        if sizes:
            assert vec_to_tril_matrix(of(np.ones(count)), diag).shape == (sizes[-1], sizes[-1])
        else:
            with pytest.raises(ShapeError, match=f"as many elements as a triangle has, got {count}"):
                vec_to_tril_matrix(of(np.ones(count)), diag)
    # a search that counts the rows of each size takes minutes here
    assert vec_to_tril_matrix(of(np.ones(held_by(300, diag))), diag).shape == (300, 300)


def held_by(size, diag):
    """Return how many elements a triangle holds."""
    return int(np.tri(size, k=diag).sum())


KEPT = {
    "Bernoulli": (lambda given: distributions.Bernoulli(logits=given), "probs", [0.5, -1.0]),
    "Bernoulli, logits": (lambda given: distributions.Bernoulli(probs=given), "logits", [0.4, 0.1]),
    "ContinuousBernoulli": (lambda given: distributions.ContinuousBernoulli(logits=given), "probs", [0.5, -1.0]),
    "NegativeBinomial": (lambda given: distributions.NegativeBinomial(3.0, logits=given), "probs", [0.5, -1.0]),
    "LowRankMultivariateNormal": (
        lambda given: distributions.LowRankMultivariateNormal(given * 0, given.unsqueeze(-1), given.square()),
        "variance",
        [0.5, -1.0],
    ),
    "MultivariateNormal": (
        lambda given: distributions.MultivariateNormal(given.detach(), scale_tril=given.square().diag_embed()),
        "covariance_matrix",
        [0.5, -1.0],
    ),
}


@pytest.mark.parametrize("row", [row for row in KEPT if row[0] != "L" and row[0] != "M"])
def test_what_is_kept_follows_changes_in_place(row):
    """After a parameter has changed in place what follows from it is that of a distribution made now."""
    make, name, value = KEPT[row]
    given = of(value)
    kept = make(given)
    wide = kept.expand((3, 2))
    first = getattr(kept, name)
    assert getattr(kept, name) is first
    getattr(wide, name)
    given.mul_(0.5)
    assert getattr(kept, name).tolist() == getattr(make(given), name).tolist() != first.tolist()
    assert getattr(wide, name).tolist() == [getattr(kept, name).tolist()] * 3
    if row == "Bernoulli":
        given.fill_(50.0)
        assert kept.sample((100,)).min().item() == 1


def test_what_is_set_stays():
    """Whether it was asked for before or not, and after changes of what it would be computed of."""
    for early in (False, True):
        given = of(0.5)
        made = distributions.Bernoulli(probs=given)
        if early:
            assert made.logits.item() == 0
        made.logits = of(7.0)
        given.add_(0.1)
        assert made.logits.item() == 7
        assert made.expand((2,)).logits.tolist() == [7, 7]


def test_a_write_into_what_is_kept_changes_no_distribution():
    """What was computed and handed out is computed anew if it has changed."""
    made = distributions.Categorical(logits=of(np.zeros(3)))
    wide = made.expand((2,))
    for each in (made, wide):
        probs = each.probs
        probs[..., 0] = 0.0
        each.probs.fill_(9.0)
        assert each.probs.tolist() == pytest.approx(np.full(each.probs.shape, 1 / 3))
        assert each.entropy().exp().tolist() == pytest.approx(np.full(each.batch_shape, 3.0))
    made.probs[0] = 0.0
    assert made.expand((2,)).probs.tolist() == pytest.approx(np.full((2, 3), 1 / 3))


@pytest.mark.parametrize("mode", [lucid.no_grad, lucid.inference_mode])
@pytest.mark.parametrize("row", KEPT)
def test_what_was_asked_for_without_a_graph_has_its_gradients(row, mode):
    """A value first met in inference mode, or without gradients, has those of one that was not."""
    make, name, value = KEPT[row]
    found = []
    for early in (False, True):
        given = of(value).requires_grad_()
        kept = make(given)
        if early:
            with mode():
                getattr(kept, name)
        found.append(lucid.autograd.grad(getattr(kept, name).square().sum(), given)[0].tolist())
    assert found[0] == found[1]
    assert 0 not in found[0]


OF_ARRAYS = {
    "Normal": lambda x: distributions.Normal(x, 1.0),
    "Gamma": lambda x: distributions.Gamma(x, x),
    "Weibull": lambda x: distributions.Weibull(1.0, x),
    "Categorical": lambda x: distributions.Categorical(logits=x),
    "MultivariateNormal": lambda x: distributions.MultivariateNormal(x, scale_tril=lnp.diag(x)),
    "TransformedDistribution": lambda x: distributions.TransformedDistribution(
        distributions.Normal(x, x), [distributions.transforms.AffineTransform(x, x)]
    ),
}


@pytest.mark.parametrize("kind", ["recorded", "filled"])
@pytest.mark.parametrize("name", OF_ARRAYS)
def test_parameters_and_values_may_be_arrays_of_lucid_numpy(name, kind, rng):
    """Of a recorded array, and of one that is filled, it is the distribution of that as a tensor, with gradients."""
    numbers_of = rng.random(3) + 0.5
    found = []
    for as_array in (False, True):
        x = of(numbers_of).requires_grad_()
        y = x * 1
        if as_array:
            y = lnp.asarray(y)
            if kind == "filled":
                y = lnp.zeros_like(y)
                y[:] = x
        made = OF_ARRAYS[name](y)
        lucid.manual_seed(0)
        draw = made.sample()
        logs = made.log_prob(lnp.asarray(draw.requires_grad_()) * 1 if as_array and draw.is_floating_point() else draw)
        (logs.sum() + made.expand((2, *made.batch_shape)).log_prob(draw).sum()).backward()
        assert type(draw) is type(logs) is lucid.Tensor
        found.append((logs.tolist(), x.grad.tolist()))
    for as_tensor, as_array in zip(*found, strict=True):
        np.testing.assert_allclose(as_array, as_tensor, rtol=1e-12, atol=1e-14)


def test_an_array_without_a_gradient_is_a_parameter(rng):
    """Densities of an array that is to be filled, and no gradient so far, are SciPy's."""
    x = lnp.asarray(of(rng.random(3)).requires_grad_())
    logs = distributions.Normal(lnp.full_like(x, 0.5), lnp.ones_like(x)).log_prob(lnp.zeros_like(x))
    np.testing.assert_allclose(logs.cpu().numpy(), scipy.stats.norm(0.5).logpdf(np.zeros(3)))
