"""Meanings of the parameters of distributions and of their transforms, by name."""

from __future__ import annotations

from lucid.settings.ranges import Setting

_ONE_FORM = "one of the forms of the covariance is given."

DISTRIBUTIONS = {
    name: Setting(meaning)
    for name, meaning in {
        # what it is a distribution of
        "loc": "Where it lies: the mean, the mode or another centre.",
        "scale": "How wide it is, above 0.",
        "rate": "Inverse of the scale, or mean number of events, above 0.",
        "low": "Lower bound, which can be drawn.",
        "high": "Upper bound, above the lower one; it is not drawn.",
        "concentration": "Shape of the distribution, above 0.",
        "concentration1": "First exponent of the density, above 0.",
        "concentration0": "Second exponent of the density, above 0.",
        "alpha": "Exponent of the tail, above 0.",
        "df": "Degrees of freedom, above 0.",
        "df1": "Degrees of freedom of the numerator, above 0.",
        "df2": "Degrees of freedom of the denominator, above 0.",
        "probs": "Probabilities, or weights of classes along the last dimension; either these or `logits` are given.",
        "logits": "Log-odds, or logarithms of weights of classes; either these or `probs` are given.",
        "lims": "Taken as PyTorch has it: which formula is closer depends on the dtype alone.",
        "total_count": "Number of trials.",
        "temperature": "Temperature above 0: the lower it is, the nearer draws are to one-hot.",
        "covariance_matrix": f"Covariance, positive definite; {_ONE_FORM}",
        "precision_matrix": f"Inverse of the covariance; {_ONE_FORM}",
        "scale_tril": f"Lower Cholesky factor of the covariance; {_ONE_FORM}",
        "cov_factor": "Factor W of the covariance ``W @ W.T + diag(d)``, shape (..., size, rank).",
        "cov_diag": "Diagonal d of the covariance ``W @ W.T + diag(d)``, above 0, shape (..., size).",
        # what it is made of
        "base_distribution": "The distribution that it is made of.",
        "mixture_distribution": "Categorical distribution of the components.",
        "component_distribution": "The components, along the last dimension of the batch.",
        "reinterpreted_batch_ndims": "Number of the last dimensions of the batch that become part of an event.",
        "transforms": "The transforms of a draw, the first one first, or one transform.",
        "base_transform": "The transform that it is made of.",
        "parts": "The transforms, the first one first.",
        "tseq": "The transforms, in order.",
        "dim": "Dimension along which they are; of matrices their size.",
        "lengths": "Sizes of the pieces; 1 each if None.",
        "exponent": "The exponent.",
        "event_dim": "Number of dimensions of an event.",
        "in_shape": "Shape of an event.",
        "out_shape": "Shape of what it becomes, of as many elements.",
        "distribution": "Distribution of numbers with a `cdf`.",
        "cache_size": "1 keeps the last input and output, by which the inverse is exact; 0 keeps none.",
    }.items()
}
