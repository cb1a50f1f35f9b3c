"""Meanings of settings in a kind of layers and in the functions that these call, by the names of kinds.

A kind is named by its classes and functions, ``MaxPool2d`` and ``max_pool2d``, by what these have in common,
``maxpool``, by a base class, or by the file or folder of the function. `lucid.settings.documents` makes the names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def by_kind(table: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Return a table with one kind for each key, of one with keys that name several."""
    kinds: dict[str, dict[str, str]] = {}
    for names, meanings in table.items():
        for name in names.split():
            kinds.setdefault(name, {}).update(meanings)
    return kinds


_ALONG_DIM = (
    "Dimension along which results sum to 1. None takes 0 for inputs of 0, 1 or 3 dimensions, else 1, and warns."
)
_BATCHES = "Whether inputs and results have the shape (batch, time, features), not (time, batch, features)."
_SLOPES = "bound of the slope below zero, which is drawn uniformly in training."

KINDS = by_kind({
    # windows
    "convolution": {
        "groups": "Number of groups: each group of output channels sees one group of input channels.",
        "padding": "Number of zeros at both ends of each dimension, ``'valid'`` for none, or ``'same'`` for as many as "
        "keep the size, which needs a stride of 1.",
    },
    "transposedconvolution convtranspose": {
        "padding": "Number of elements cut off at both ends of each dimension of the result.",
        "stride": "Step from the window of one element to that of the next.",
        "padding_mode": "``'zeros'``, the only one.",
    },
    "maxpool avgpool lppool maxunpool": {"stride": "Step from one window to the next; `kernel_size` if None."},
    "maxpool": {
        "padding": "Number of elements of minus infinity at both ends of a dimension, at most half of `kernel_size`.",
    },
    "avgpool": {
        "padding": "Number of zeros at both ends of each dimension, at most half of `kernel_size`.",
        "count_include_pad": "Whether the zeros of the padding count as elements of the mean.",
    },
    "maxunpool": {
        "kernel_size": "Size of a window of the pooling that is undone.",
        "padding": "Padding of the pooling that is undone.",
        "indices": "Positions of the maxima, as the pooling returns them, of the shape of `input`.",
        "output_size": "Sizes of the result; without it they follow from the other settings.",
    },
    "lppool": {"norm_type": "Order of the norm, not 0: ``sum(abs(x) ** norm_type) ** (1 / norm_type)``."},
    "adaptiveavgpool adaptivemaxpool": {
        "output_size": "Number of parts along each dimension; None for as many as there are elements.",
    },
    "fractionalmaxpool": {
        "output_size": "Number of windows along each dimension; either this or `output_ratio` is given.",
        "output_ratio": "Number of windows as a share of the size, in (0, 1), for each dimension or for all.",
        "_random_samples": "Numbers in [0, 1) that place the windows, shape (batch, channels, dimensions).",
    },
    "fold": {"output_size": "Height and width of the result."},
    "unfold fold": {"padding": "Number of zeros at both ends of height and width."},
    "padding": {
        "padding": "Number of elements added at each edge, or two for each dimension, the last dimension first: left, "
        "right, top, bottom, front, back. Elements are cut off where one is below 0.",
        "value": "The number at the edges.",
    },
    # sizes and places of images
    "upsample upsamplingbilinear2d upsamplingnearest2d interpolate": {
        "size": "Sizes of the result, one for each dimension or for all.",
        "scale_factor": "Factor of the sizes, for each dimension or for all, instead of `size`.",
        "mode": "``'nearest'``, ``'nearest-exact'``, ``'linear'``, ``'bilinear'``, ``'bicubic'``, ``'trilinear'`` or "
        "``'area'``.",
        "align_corners": "Whether elements at the corners stay where they are, in linear and cubic modes.",
        "recompute_scale_factor": "Whether places follow from the sizes of the result, instead of from `scale_factor`.",
        "antialias": "Whether images are smoothed before they get smaller, of ``'bilinear'`` and ``'bicubic'``.",
    },
    "channelshuffle": {"groups": "Number of groups of channels, which divides their number."},
    "flatten": {"start_dim": "First dimension that is joined.", "end_dim": "Last dimension that is joined."},
    "unflatten": {
        "dim": "Dimension that is divided.",
        "unflattened_size": "Sizes of the dimensions that it becomes; one of them may be -1.",
        "sizes": "Sizes of the dimensions that it becomes; one of them may be -1.",
    },
    # activations
    "celu": {"alpha": "Scale of the exponential, not 0; the result goes down to ``-alpha``."},
    "elu": {"alpha": "Factor of the exponential; the result goes down to ``-alpha``."},
    "glu": {"dim": "Dimension that is divided into two halves; its size is even."},
    "hardshrink": {"lambd": "Elements from ``-lambd`` to ``lambd`` become 0."},
    "softshrink": {"lambd": "How far elements are moved towards zero, at least 0."},
    "hardtanh": {"min_val": "The smallest result.", "max_val": "The largest result, above `min_val`."},
    "leakyrelu": {"negative_slope": "Factor of elements below zero."},
    "logsoftmax softmax softmin": {"dim": _ALONG_DIM},
    "prelu": {
        "init": "First value of the slopes.",
        "weight": "Slopes below zero: one element, or one for each channel, dimension 1 of `input`.",
    },
    "rrelu": {
        "lower": f"Lower {_SLOPES}",
        "upper": f"Upper {_SLOPES}",
        "training": "Whether slopes are drawn; otherwise they are the mean of the bounds.",
    },
    "softplus": {
        "beta": "Sharpness of the bend at zero, not 0.",
        "threshold": "Where ``beta * x`` is above it, the result is ``x`` itself.",
    },
    "threshold": {"threshold": "Elements above it stay.", "value": "What the others become."},
    # dropout
    "randomdrop dropout": {
        "p": "Probability with which an element, or a channel, is dropped, in [0, 1].",
        "training": "Whether anything is dropped; otherwise `input` is returned.",
    },
    # tables
    "embedding embeddingbag": {
        "padding_idx": "Row that gets no gradient, negative if counted from the end; a bag leaves it out.",
        "norm_type": "Order of the norm that `max_norm` is about.",
        "scale_grad_by_freq": "Whether the gradient of a row is divided by how often the row is used.",
        "sparse": "Accepted for PyTorch's sake; gradients are dense.",
        "mode": "``'sum'``, ``'mean'`` or ``'max'`` of the rows of a bag.",
        "include_last_offset": "Whether the last of the offsets is the end of the last bag.",
        "_weight": "First values of the table, shape (num_embeddings, embedding_dim), instead of drawn ones.",
        "_freeze": "Whether the table is not trained.",
        "max_norm": "Norm to which rows that are longer are shortened, in place, when they are used.",
    },
    # normalisation
    "affine normalisation batchnormalisation": {"eps": "Small number that is added to the variance."},
    "rmsnorm": {
        "eps": "Small number that is added to the mean square; the smallest step of the dtype from 1 on if None.",
        "normalized_shape": "Sizes of the last dimensions, over which the mean is taken.",
    },
    "syncbatchnorm": {"process_group": "The processes whose batches are taken together; all if None."},
    "localresponsenorm": {
        "size": "Number of neighbouring channels.",
        "alpha": "Factor of the mean square.",
        "beta": "Exponent of the divisor.",
        "k": "Number that is added to the mean square.",
    },
    # distances
    "cosinesimilarity": {"dim": "Dimension along which the vectors lie.", "eps": "Lengths count as this at least."},
    "pairwisedistance": {
        "p": "Order of the norm.",
        "eps": "Small number that is added to the difference.",
        "keepdim": "Whether the last dimension stays, of size 1.",
    },
    # losses
    "bcewithlogits binarycrossentropywithlogits": {
        "pos_weight": "Factor of the part of positive targets; broadcasts against the target.",
    },
    "bce binarycrossentropy bcewithlogits binarycrossentropywithlogits": {
        "weight": "Factor of each loss; broadcasts against the target.",
    },
    "crossentropy nll multimargin multilabelsoftmargin": {"weight": "Factor of each class, shape (classes,)."},
    "crossentropy nll": {
        "ignore_index": "Class whose targets count for nothing.",
        "label_smoothing": "Share of each target that is spread evenly over all classes, in [0, 1].",
    },
    "ctc": {
        "blank": "Class that stands for no label.",
        "zero_infinity": "Whether labels that are too long for their input cost nothing, not infinity.",
        "reduction": "``'none'``, ``'sum'``, or ``'mean'`` of the losses divided by the lengths of the labels.",
    },
    "gaussiannll": {
        "full": "Whether the constant ``log(2 * pi) / 2`` is added.",
        "eps": "Variances count as this at least.",
    },
    "poissonnll": {
        "log_input": "Whether the input is the logarithm of the rate, not the rate.",
        "full": "Whether the part without the input is added, by Stirling's formula.",
        "eps": "Small number that is added to the rate before its logarithm is taken.",
    },
    "huber": {"delta": "Distance above 0 from which on the loss is a straight line."},
    "kldiv": {
        "log_target": "Whether the target holds log-probabilities, not probabilities.",
        "reduction": "``'none'``, ``'sum'``, ``'mean'`` over all elements, or ``'batchmean'``, the sum divided by the "
        "size of the batch.",
    },
    "smoothl1": {"beta": "Distance, at least 0, from which on the loss is a straight line."},
    "cosineembedding": {"margin": "Cosine, in [-1, 1], up to which unlike pairs cost nothing."},
    "hingeembedding": {"margin": "Distance from which on unlike pairs cost nothing."},
    "marginranking": {"margin": "How far the input that ranks higher is to be above the other."},
    "multimargin": {
        "p": "1 or 2, the power of each margin that is missed.",
        "margin": "How far the target's score is to be above the others.",
    },
    "tripletmargin tripletmarginwithdistance": {
        "margin": "How much farther the negative is to be than the positive, above 0.",
        "p": "Order of the norm of the distance.",
        "eps": "Small number that is added to the differences.",
        "swap": "Whether the distance from positive to negative counts where it is smaller than that from the anchor.",
        "distance_function": "Function of two tensors that returns their distances; `pairwise_distance` if None.",
    },
    "adaptivelogsoftmaxwith": {
        "n_classes": "Number of classes, sorted by how frequent they are.",
        "cutoffs": "First classes of the clusters, ascending: those below the first have no cluster.",
        "div_value": "How many times fewer features each cluster has than the one before.",
        "head_bias": "Whether the scores of the frequent classes and of the clusters have a bias.",
    },
    # sequences and attention
    "rnnbase": {
        "mode": "``'LSTM'``, ``'GRU'``, ``'RNN_TANH'`` or ``'RNN_RELU'``.",
        "dropout": "Probability with which elements between two layers are dropped in training.",
        "proj_size": "Number of features to which the hidden state is projected, below `hidden_size`; 0 for none.",
        "batch_first": _BATCHES,
        "input_size": "Number of features of the input, at least 1.",
    },
    "multiheadattention": {
        "dropout": "Probability with which weights of the attention are dropped in training, below 1.",
        "add_bias_kv": "Whether a learned key and value are added to those of each sequence.",
        "add_zero_attn": "Whether a key and a value of zeros are added to those of each sequence.",
        "batch_first": _BATCHES,
        "bias": "Whether the projections have a bias.",
    },
    "transformer transformerencoderlayer transformerdecoderlayer": {
        "dropout": "Probability with which weights of the attention, activations and what is added are dropped.",
        "batch_first": _BATCHES,
        "bias": "Whether linear layers and those that normalise have a bias.",
    },
    "transformer": {
        "custom_encoder": "Encoder to use instead of the stack.",
        "custom_decoder": "Decoder to use instead of the stack.",
    },
    "transformerencoder": {
        "encoder_layer": "Layer that is copied.",
        "enable_nested_tensor": "Accepted for PyTorch's sake; keys that are padding are computed and masked.",
        "mask_check": "Accepted for PyTorch's sake.",
    },
    "transformerdecoder": {"decoder_layer": "Layer that is copied."},
    # modules that hold others
    "sequential": {"args": "The modules in order, or one OrderedDict of them, whose keys become their names."},
    "modulelist": {"modules": "The first modules."},
    "moduledict": {"modules": "The first modules by name, a mapping or pairs."},
    "parameterlist": {"values": "The first entries."},
    "parameterdict": {"parameters": "The first entries by name, a mapping or pairs."},
    "identity": {"args": "Ignored.", "kwargs": "Ignored."},
    "module": {"args": "None, unless `call_super_init` is set.", "kwargs": "None, unless `call_super_init` is set."},
    # hooks of all modules
    "everywhere": {
        "hook": "The function to call.",
        "with_kwargs": "Whether the hook gets the keyword arguments of the call as well, after the positional ones.",
        "always_call": "Whether the hook is called also where the forward raises.",
        "every_step": "Whether the hook is called at each step of a captured graph that is replayed.",
    },
})  # fmt: skip
