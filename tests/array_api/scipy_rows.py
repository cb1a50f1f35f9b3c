"""SciPy's and scikit-learn's functions of the array API, called with Tensors: ``python -m tests.array_api.scipy_rows``.

Each row is one that these libraries offer for several kinds of arrays. What is printed, a line for each, is whether its
result is recorded, with NumPy's value and the gradient that differences give, or why it is not. The first line of
``main`` has to come before SciPy is imported: the environment variable says that it looks at arrays' namespaces.
"""

from __future__ import annotations

import os
import sys
import warnings

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np
from scipy import differentiate, fft, integrate, signal, spatial, special, stats
from scipy.cluster import vq
from scipy.optimize import elementwise, rosen, rosen_der, rosen_hess, rosen_hess_prod
from sklearn import config_context, discriminant_analysis, metrics, naive_bayes, preprocessing
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.metrics import pairwise

import lucid
from lucid.errors import LucidError

draw = np.random.default_rng(0)
V, X = draw.uniform(0.2, 0.8, 12), draw.uniform(0.2, 0.8, (5, 6))
LONG = draw.uniform(0.2, 0.8, (25, 3))
NINE = draw.uniform(0.2, 0.8, 9)


def beside(x, array):
    """Return an array of the kind of `x`."""
    return lucid.tensor(array, dtype=lucid.float64) if isinstance(x, lucid.Tensor) else np.asarray(array, float)


UFUNCS = """cbrt cosdg cosm1 cotdg dawsn ellipe ellipk entr erf erfc erfcinv erfcx erfi erfinv exp1 exp10 exp2 expi
expit exprel gamma gammaln gammasgn i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e log_expit log_ndtr loggamma logit ndtr ndtri psi
rgamma sinc sindg spence tandg wrightomega y0 y1""".split()  # noqa: SIM905 - rows of words
DERIVATIVES = ("ivp", "jvp", "kvp", "yvp")
ORDERED = """expn hyp0f1 iv ive jv jve kn kv kve modstruve struve yn yv yve eval_chebyc eval_chebys eval_chebyt
eval_chebyu eval_hermite eval_hermitenorm eval_laguerre eval_legendre eval_sh_chebyt eval_sh_chebyu eval_sh_legendre
chdtri gammainccinv gammaincinv pdtr pdtrc stdtrit zeta""".split()  # noqa: SIM905
COMPLEX = "hankel1 hankel1e hankel2 hankel2e h1vp h2vp".split()  # noqa: SIM905
PAIRS = """beta betaln binom boxcox boxcox1p huber inv_boxcox inv_boxcox1p kl_div owens_t poch pseudo_huber
rel_entr xlog1py xlogy""".split()  # noqa: SIM905
AVERAGES = "circmean circstd circvar describe entropy gmean hmean kstat kurtosis sem skew variation gstd iqr".split()  # noqa: SIM905

ROWS = {
    **{f"special.{name}": (lambda x, name=name: getattr(special, name)(x), V) for name in UFUNCS},
    **{f"special.{name}": (lambda x, name=name: getattr(special, name)(
        (0.6 if name in {"chdtri", "gammainccinv", "gammaincinv", "stdtrit"} else 2), x), V) for name in ORDERED},
    **{f"special.{name}": (lambda x, name=name: abs(getattr(special, name)(0.6, x)), V) for name in COMPLEX},
    **{f"special.{name}": (lambda x, name=name: getattr(special, name)(x + 1, x * x + 0.1), V) for name in PAIRS},
    **{f"special.{name}": (lambda x, name=name: getattr(special, name)(0.6, x), V) for name in DERIVATIVES},
    **{f"special.{name}": (lambda x, name=name: getattr(special, name)(x)[0], V) for name in (
        "airy", "fresnel", "shichi", "sici")},
    "special.betaincinv": (lambda x: special.betaincinv(2.0, 0.7, x), V),
    "special.betainccinv": (lambda x: special.betainccinv(2.0, 0.7, x), V),
    "special.ellipeinc": (lambda x: special.ellipeinc(x, 0.3), V),
    "special.ellipj": (lambda x: special.ellipj(x, 0.3)[1], V),
    "special.ellipkinc": (lambda x: special.ellipkinc(x, 0.3), V),
    "special.eval_gegenbauer": (lambda x: special.eval_gegenbauer(3, 0.7, x), V),
    "special.eval_genlaguerre": (lambda x: special.eval_genlaguerre(3, 0.7, x), V),
    "special.eval_jacobi": (lambda x: special.eval_jacobi(3, 0.7, -0.3, x), V),
    "special.ndtri_exp": (lambda x: special.ndtri_exp(-x), V),
    "special.fdtri": (lambda x: special.fdtri(3.0, 5.0, x), V),
    "special.hyp1f1": (lambda x: special.hyp1f1(0.4, 1.3, x), V),
    "special.hyp2f1": (lambda x: special.hyp2f1(0.4, -0.7, 1.3, x), V),
    "special.lambertw": (lambda x: abs(special.lambertw(x)), V),
    "special.voigt_profile": (lambda x: special.voigt_profile(x, x * x + 0.1, x + 1), V),
    "special.wofz": (lambda x: abs(special.wofz(x)), V),
    "special.betainc": (lambda x: special.betainc(beside(x, 2.0), beside(x, 0.7), x), V),
    "special.betaincc": (lambda x: special.betaincc(beside(x, 2.0), beside(x, 0.7), x), V),
    "special.chdtr": (lambda x: special.chdtr(beside(x, 3.0), x), V),
    "special.chdtrc": (lambda x: special.chdtrc(beside(x, 3.0), x), V),
    "special.fdtr": (lambda x: special.fdtr(beside(x, 3.0), beside(x, 5.0), x), V),
    "special.fdtrc": (lambda x: special.fdtrc(beside(x, 3.0), beside(x, 5.0), x), V),
    "special.gammainc": (lambda x: special.gammainc(beside(x, 1.7), x), V),
    "special.gammaincc": (lambda x: special.gammaincc(beside(x, 1.7), x), V),
    "special.log_softmax": (lambda x: special.log_softmax(x, axis=1), X),
    "special.logsumexp": (lambda x: special.logsumexp(x, axis=0), X),
    "special.multigammaln": (lambda x: special.multigammaln(x + 3, 2), V),
    "special.polygamma": (lambda x: special.polygamma(1, x), V),
    "special.softmax": (lambda x: special.softmax(x, axis=1), X),
    "special.stdtr": (lambda x: special.stdtr(beside(x, 3.0), x - 0.5), V),
    "cluster.vq.whiten": (lambda x: vq.whiten(x), X),
    "differentiate.derivative": (lambda x: differentiate.derivative(lambda t: t**3, x).df, V),
    "differentiate.jacobian": (lambda x: differentiate.jacobian(lambda t: t**2, x).df, V[:3]),
    "fft.fft": (lambda x: abs(fft.fft(x)), V),
    "fft.fftn": (lambda x: abs(fft.fftn(x)), X),
    "fft.fftshift": (lambda x: fft.fftshift(x), V),
    "fft.fht": (lambda x: fft.fht(x, 0.1, 0.5), V),
    "fft.hfft": (lambda x: fft.hfft(x), V),
    "fft.irfft": (lambda x: fft.irfft(x), V),
    "fft.rfft": (lambda x: abs(fft.rfft(x)), V),
    "integrate.cubature": (lambda x: integrate.cubature(
        lambda t: t[:, 0] ** 2 * x[0], beside(x, [0.0]), beside(x, [1.0])).estimate, V),
    "integrate.cumulative_simpson": (lambda x: integrate.cumulative_simpson(x), X),
    "integrate.cumulative_trapezoid": (lambda x: integrate.cumulative_trapezoid(x), X),
    "integrate.romb": (lambda x: integrate.romb(x), NINE),
    "integrate.tanhsinh": (lambda x: integrate.tanhsinh(
        lambda t, a: a * t * t, beside(x, 0.0), beside(x, 1.0), args=(x,)).integral, V),
    "integrate.trapezoid": (lambda x: integrate.trapezoid(x), X),
    "optimize.elementwise.find_root": (lambda x: elementwise.find_root(
        lambda t, a: t * t - a, (x * 0, x * 0 + 1), args=(x,)).x, V),
    "optimize.rosen": (lambda x: rosen(x), V),
    "optimize.rosen_der": (lambda x: rosen_der(x), V),
    "optimize.rosen_hess": (lambda x: rosen_hess(x), V),
    "optimize.rosen_hess_prod": (lambda x: rosen_hess_prod(x, x * x), V),
    "signal.correlate": (lambda x: signal.correlate(x, x, method="fft"), V),
    "signal.envelope": (lambda x: signal.envelope(x), V),
    "signal.fftconvolve": (lambda x: signal.fftconvolve(x, x), V),
    "signal.freqz": (lambda x: abs(signal.freqz(x, worN=8)[1]), V),
    "signal.hilbert": (lambda x: abs(signal.hilbert(x)), V),
    "signal.oaconvolve": (lambda x: signal.oaconvolve(x, x[:4]), V),
    "signal.normalize": (lambda x: signal.normalize(x[:3], x[3:6])[0], V),
    "signal.resample": (lambda x: signal.resample(x, 8), V),
    "spatial.transform.Rotation.as_matrix": (
        lambda x: spatial.transform.Rotation.from_rotvec(x[:3]).as_matrix(), V),
    "spatial.transform.Rotation.as_quat": (
        lambda x: spatial.transform.Rotation.from_euler("xyz", x[:3]).as_quat(), V),
    **{f"stats.{name}": (lambda x, name=name: part(getattr(stats, name)(x), "variance"), V)
       for name in AVERAGES if name != "kstat"},
    "stats.alexandergovern": (lambda x: stats.alexandergovern(x, x * x).statistic, V),
    "stats.bartlett": (lambda x: stats.bartlett(x, x * x).statistic, V),
    "stats.boxcox_llf": (lambda x: stats.boxcox_llf(0.5, x), V),
    "stats.chisquare": (lambda x: stats.chisquare(x).pvalue, V),
    "stats.combine_pvalues": (lambda x: stats.combine_pvalues(x).pvalue, V),
    "stats.differential_entropy": (lambda x: stats.differential_entropy(x), V),
    "stats.directional_stats": (lambda x: stats.directional_stats(x).mean_direction, X),
    "stats.f_oneway": (lambda x: stats.f_oneway(x, x * x).pvalue, V),
    "stats.gzscore": (lambda x: stats.gzscore(x), X),
    "stats.jarque_bera": (lambda x: stats.jarque_bera(x).pvalue, V),
    "stats.kstat": (lambda x: stats.kstat(x, 2), V),
    "stats.kurtosistest": (lambda x: stats.kurtosistest(x).pvalue, LONG),
    "stats.levene": (lambda x: stats.levene(x, x * x).pvalue, V),
    "stats.lmoment": (lambda x: stats.lmoment(x), V),
    "stats.moment": (lambda x: stats.moment(x, 3), X),
    "stats.normaltest": (lambda x: stats.normaltest(x).pvalue, LONG),
    "stats.pearsonr": (lambda x: stats.pearsonr(x, x * x).pvalue, V),
    "stats.pmean": (lambda x: stats.pmean(x, 2), X),
    "stats.power_divergence": (lambda x: stats.power_divergence(x, lambda_=0.5).pvalue, V),
    "stats.quantile": (lambda x: stats.quantile(x, beside(x, 0.3)), V),
    "stats.skewtest": (lambda x: stats.skewtest(x).pvalue, LONG),
    "stats.tmax": (lambda x: stats.tmax(x, 0.9), X),
    "stats.tmean": (lambda x: stats.tmean(x, (0.1, 0.9)), X),
    "stats.tmin": (lambda x: stats.tmin(x, 0.1), X),
    "stats.trim_mean": (lambda x: stats.trim_mean(x, 0.1), V),
    "stats.tstd": (lambda x: stats.tstd(x, (0.1, 0.9)), X),
    "stats.ttest_1samp": (lambda x: stats.ttest_1samp(x, 0.4).pvalue, X),
    "stats.ttest_ind": (lambda x: stats.ttest_ind(x, x * x).pvalue, X),
    "stats.ttest_rel": (lambda x: stats.ttest_rel(x, x * x).pvalue, X),
    "stats.tvar": (lambda x: stats.tvar(x, (0.1, 0.9)), X),
    "stats.yeojohnson_llf": (lambda x: stats.yeojohnson_llf(0.5, x), V),
    "stats.zmap": (lambda x: stats.zmap(x, x * x), X),
    "stats.zscore": (lambda x: stats.zscore(x), X),
}  # fmt: skip

LEARNED = {
    "preprocessing.KernelCenterer": lambda x, y, c: preprocessing.KernelCenterer().fit_transform(x @ x.T),
    "preprocessing.MaxAbsScaler": lambda x, y, c: preprocessing.MaxAbsScaler().fit_transform(x),
    "preprocessing.MinMaxScaler": lambda x, y, c: preprocessing.MinMaxScaler().fit_transform(x),
    "preprocessing.Normalizer": lambda x, y, c: preprocessing.Normalizer().fit_transform(x),
    "preprocessing.PolynomialFeatures": lambda x, y, c: preprocessing.PolynomialFeatures().fit_transform(x),
    "preprocessing.StandardScaler": lambda x, y, c: preprocessing.StandardScaler().fit_transform(x),
    "decomposition.PCA": lambda x, y, c: abs(PCA(2, svd_solver="full").fit_transform(x)),
    "linear_model.Ridge": lambda x, y, c: Ridge(solver="svd").fit(x, y).coef_,
    "discriminant_analysis.LinearDiscriminantAnalysis": lambda x, y, c: abs(
        discriminant_analysis.LinearDiscriminantAnalysis().fit(x, c).transform(x)
    ),
    "naive_bayes.GaussianNB": lambda x, y, c: naive_bayes.GaussianNB().fit(x, c).predict_proba(x),
    "metrics.accuracy_score": lambda x, y, c: metrics.accuracy_score(c, 1 - c),
    "metrics.brier_score_loss": lambda x, y, c: metrics.brier_score_loss(c, 1 / (1 + y * y)),
    "metrics.confusion_matrix": lambda x, y, c: metrics.confusion_matrix(c, 1 - c),
    "metrics.d2_tweedie_score": lambda x, y, c: metrics.d2_tweedie_score(abs(y) + 1, abs(y) + 2),
    "metrics.explained_variance_score": lambda x, y, c: metrics.explained_variance_score(y, y * y),
    "metrics.f1_score": lambda x, y, c: metrics.f1_score(c, 1 - c),
    "metrics.log_loss": lambda x, y, c: metrics.log_loss(c, 1 / (1 + y * y)),
    "metrics.max_error": lambda x, y, c: metrics.max_error(y, y * y),
    "metrics.mean_absolute_error": lambda x, y, c: metrics.mean_absolute_error(y, y * y),
    "metrics.mean_absolute_percentage_error": lambda x, y, c: metrics.mean_absolute_percentage_error(y, y * y),
    "metrics.mean_pinball_loss": lambda x, y, c: metrics.mean_pinball_loss(y, y * y),
    "metrics.mean_poisson_deviance": lambda x, y, c: metrics.mean_poisson_deviance(abs(y) + 1, y * y + 1),
    "metrics.mean_squared_error": lambda x, y, c: metrics.mean_squared_error(y, y * y),
    "metrics.precision_score": lambda x, y, c: metrics.precision_score(c, 1 - c),
    "metrics.r2_score": lambda x, y, c: metrics.r2_score(y, y * y),
    "metrics.zero_one_loss": lambda x, y, c: metrics.zero_one_loss(c, 1 - c),
    **{
        f"metrics.pairwise.{name}": lambda x, y, c, name=name: getattr(pairwise, name)(abs(x))
        for name in (
            "additive_chi2_kernel", "cosine_similarity", "euclidean_distances", "linear_kernel", "polynomial_kernel",
            "rbf_kernel", "sigmoid_kernel",
        )
    },
}  # fmt: skip


WHY = {
    "InplaceError": "it writes into what its gradient needs",
    "SettingError": "it indexes with a negative step",
}
"""What functions do that is refused, by the error."""


def part(result, name):
    """Return one of several results, or the one that there is."""
    return getattr(result, name) if type(result).__name__ == "DescribeResult" else result


def outcome(function, array):
    """Return ``"recorded"``, or what is not right, of a function of SciPy's."""
    wanted = np.asarray(function(array))
    x = lucid.tensor(array, requires_grad=True)
    try:
        made = function(x)
        made = made[()] if isinstance(made, np.ndarray) else made
        if not isinstance(made, lucid.Tensor) or not made.requires_grad:
            return "a constant"
        if not np.allclose(made.numpy(force=True), wanted, rtol=1e-7, atol=1e-10):
            return "other values"
        weights = np.random.default_rng(1).uniform(0.5, 1.5, wanted.shape)
        (made * lucid.tensor(weights)).sum().backward()
    except LucidError as error:
        return WHY.get(type(error).__name__, f"{type(error).__name__}: {error}")
    slope = np.zeros_like(array)
    for place in np.ndindex(array.shape):
        sides = [array.copy(), array.copy()]
        sides[0][place] += 1e-6
        sides[1][place] -= 1e-6
        first, second = (np.sum(np.asarray(function(side)) * weights) for side in sides)
        slope[place] = (first - second) / 2e-6
    right = np.allclose(x.grad.numpy(force=True), slope, rtol=1e-4, atol=1e-5 * max(1, np.abs(slope).max()))
    return "recorded" if right else "another gradient"


def learned(function):
    """Return ``"computed"``, or what is not right, of a function of scikit-learn's."""
    generator = np.random.default_rng(0)
    x, y = generator.standard_normal((12, 4)), generator.standard_normal(12)
    c = (y > 0).astype(np.int64)
    with config_context(array_api_dispatch=True):
        wanted, made = function(x, y, c), function(*[lucid.tensor(each) for each in (x, y, c)])
    made = made.numpy(force=True) if isinstance(made, lucid.Tensor) else made
    return "computed" if np.allclose(made, wanted, rtol=1e-6) else "other values"


def outcomes():
    """Return what each row gives, by its name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {f"scipy.{name}": outcome(*row) for name, row in ROWS.items()}
        return found | {f"sklearn.{name}": learned(function) for name, function in LEARNED.items()}


if __name__ == "__main__":
    sys.stdout.write("".join(f"{name}: {how}\n" for name, how in outcomes().items()))
