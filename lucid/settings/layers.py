"""The settings of layers by name, since a name means the same in every layer: its meaning and its range.

A layer in which a name may be something else says so in `_ranges`; what it means there stands in
`lucid.settings.kinds`, or in the class.
"""

from __future__ import annotations

from lucid.settings.ranges import ANY, FINITE, NOT_NEGATIVE, NOT_ZERO, POSITIVE, SHARE, Setting, number, whole, words

_PER_AXIS = whole(1, per_axis=True)
_COUNT = whole(1)
_SIZE = whole(0)

LAYERS: dict[str, Setting] = {
    # windows
    "dilation": Setting("Distance between neighbouring elements of a window.", _PER_AXIS),
    "kernel_size": Setting("Size of a window.", _PER_AXIS),
    "output_padding": Setting(
        "Number of elements added at the end of each dimension of the result, below `stride` or `dilation`.",
        whole(0, per_axis=True),
    ),
    "output_size": Setting("", _PER_AXIS),
    "padding": Setting("", whole(0, per_axis=True, or_word=True)),
    "padding_mode": Setting(
        "What is added at the edges: zeros, or elements of the input.",
        words("zeros", "reflect", "replicate", "circular"),
    ),
    "stride": Setting("Step from one window to the next.", _PER_AXIS),
    "ceil_mode": Setting("Whether the size of the result is rounded up, not down."),
    "return_indices": Setting("Whether the positions of the maxima are returned too, as int64."),
    # numbers of features, channels and parts
    "in_channels": Setting("Number of channels of the input.", _SIZE),
    "out_channels": Setting("Number of channels of the result.", _SIZE),
    "in_features": Setting("Size of the last dimension of the input.", _SIZE),
    "out_features": Setting("Size of the last dimension of the result.", _SIZE),
    "in1_features": Setting("Size of the last dimension of the first input.", _COUNT),
    "in2_features": Setting("Size of the last dimension of the second input.", _SIZE),
    "num_channels": Setting("Number of channels, dimension 1 of the input.", _SIZE),
    "num_groups": Setting("Number of groups of channels, which divides their number.", _COUNT),
    "normalized_shape": Setting("Sizes of the last dimensions, over which mean and variance are taken.", _SIZE),
    "num_embeddings": Setting("Number of rows of the table.", _SIZE),
    "embedding_dim": Setting("Size of a row of the table.", _SIZE),
    "num_parameters": Setting("1 for one slope, or the number of channels, dimension 1 of the input.", _SIZE),
    **dict.fromkeys(("groups", "size"), Setting("", _COUNT)),
    **dict.fromkeys(("blank", "num_features"), Setting("", _SIZE)),
    "downscale_factor": Setting("How many times lower and narrower the result is.", _COUNT),
    "upscale_factor": Setting("How many times higher and wider the result is.", _COUNT),
    # sequences
    "input_size": Setting("Number of features of the input.", _SIZE),
    "hidden_size": Setting("Number of features of the state.", _COUNT),
    "num_layers": Setting("Number of layers, one after the other.", _COUNT),
    "num_chunks": Setting("Number of gates, of `hidden_size` rows of the weights each.", _COUNT),
    "bidirectional": Setting("Whether a second direction reads the sequence from its end."),
    "nonlinearity": Setting("Function of the sum.", words("tanh", "relu")),
    # attention
    "embed_dim": Setting("Number of features of queries and results, a multiple of `num_heads`.", _COUNT),
    "num_heads": Setting("Number of heads.", _COUNT),
    "kdim": Setting("Number of features of keys; `embed_dim` if None.", _COUNT),
    "vdim": Setting("Number of features of values; `embed_dim` if None.", _COUNT),
    "d_model": Setting("Number of features of inputs and results, a multiple of `nhead`.", _COUNT),
    "nhead": Setting("Number of heads.", _COUNT),
    "num_encoder_layers": Setting("Number of layers of the encoder.", _COUNT),
    "num_decoder_layers": Setting("Number of layers of the decoder.", _COUNT),
    "dim_feedforward": Setting("Number of features between the two linear layers.", _SIZE),
    "activation": Setting("``'relu'``, ``'gelu'``, or a function of a tensor, between the two linear layers."),
    "norm_first": Setting("Whether layers are normalised at their inputs, not after they were added to them."),
    "norm": Setting("Layer that the result passes last, such as a `LayerNorm`."),
    # what is learned
    "bias": Setting("Whether the layer learns an additive bias."),
    "affine": Setting("Whether the layer learns a scale, and with `bias` an offset, for each channel."),
    "elementwise_affine": Setting("Whether the layer learns a scale for each element that it normalises together."),
    "device": Setting("Device of the parameters, such as ``'cuda'``; the default one if None."),
    "dtype": Setting("Floating-point dtype of the parameters; the default one if None."),
    # activations and numbers in formulas
    "inplace": Setting("Whether the input itself is changed and returned."),
    "approximate": Setting(
        "``'none'`` for the normal distribution function, ``'tanh'`` for an approximation.", words("none", "tanh")
    ),
    **dict.fromkeys(("alpha", "beta", "init", "k", "lambd", "margin", "negative_slope"), Setting("", FINITE)),
    **dict.fromkeys(("max_val", "min_val", "norm_type", "p", "threshold"), Setting("", ANY)),
    **dict.fromkeys(("delta", "div_value", "scale_factor"), Setting("", POSITIVE)),
    **dict.fromkeys(("dropout", "label_smoothing", "momentum"), Setting("", SHARE)),
    "eps": Setting("", NOT_NEGATIVE),
    "layer_norm_eps": Setting("`eps` of the layers that normalise.", NOT_NEGATIVE),
    "divisor_override": Setting("What sums are divided by, instead of the number of elements.", NOT_ZERO),
    "max_norm": Setting("", number("a number of at least 0", lambda value: value >= 0)),
    # losses
    "reduction": Setting(
        "``'none'`` for the losses of all elements, ``'mean'`` or ``'sum'`` for a tensor of no dimension.",
        words("none", "mean", "sum"),
    ),
    "size_average": Setting("Older form of `reduction`: False for a sum where `reduce` is not False."),
    "reduce": Setting("Older form of `reduction`: False for ``'none'``."),
}
