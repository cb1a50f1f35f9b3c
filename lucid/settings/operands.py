"""Meanings of tensors that functions of layers and losses take, in the place of layers' own parameters."""

from __future__ import annotations

from lucid.settings.kinds import by_kind

_RUNNING = "of each channel, shape (channels,), which follows those of batches in place; None for none."
_SCALE = "Factor of each feature or channel; none if None."
_OFFSET = "What is added to each feature or channel; nothing if None."

OPERAND_KINDS = by_kind({
    "linear": {"input": "Features in the last dimension, shape (..., in).", "weight": "Matrix of shape (out, in)."},
    "linear bilinear": {"bias": "What is added, shape (out,)."},
    "bilinear": {
        "input1": "First features, shape (..., in1).",
        "input2": "Second features, shape (..., in2).",
        "weight": "Factors, shape (out, in1, in2).",
    },
    "convolution pooling": {"input": "Shape (batch, channels, *sizes), or without batch."},
    "convolution": {
        "weight": "Kernels, shape (out channels, channels / groups, *kernel_size).",
        "bias": "What is added to each output channel, shape (out channels,).",
    },
    "convtranspose": {"weight": "Kernels, shape (channels, out channels / groups, *kernel_size)."},
    "resampling": {"input": "Shape (batch, channels, *sizes), of a floating-point dtype."},
    "fold": {"input": "Columns, shape (batch, channels * elements of a window, windows)."},
    "affinegrid": {
        "theta": "Matrices, shape (batch, 2, 3), or (batch, 3, 4) of volumes.",
        "size": "Sizes of the images, (batch, channels, *sizes).",
    },
    "gridsample": {
        "grid": "Points, from -1 to 1 between the edges, shape (batch, *sizes, 2 or 3).",
        "mode": "``'bilinear'``, ``'nearest'``, or of images ``'bicubic'``.",
        "padding_mode": "What is outside: ``'zeros'``, the ``'border'``, or a ``'reflection'``.",
    },
    "grid": {"align_corners": "Whether -1 and 1 are the centres of the elements at the corners, not their edges."},
    "embedding": {
        "input": "Numbers of rows, integers.",
        "weight": "The table, of two dimensions.",
        "offsets": "Where bags begin in an `input` of one dimension.",
        "per_sample_weights": "Factor of each row that is named, in the mode ``'sum'``.",
    },
    "dropout": {"input": "Real numbers, of a floating-point dtype."},
    "layernorm groupnorm rmsnorm batchnorm instancenorm": {"weight": _SCALE, "bias": _OFFSET},
    "groupnorm": {"num_groups": "Number of groups, which divides that of channels."},
    "batchnorm instancenorm": {
        "running_mean": f"Mean {_RUNNING}",
        "running_var": f"Variance {_RUNNING}",
        "momentum": "Weight of a batch in them.",
        "training": "Whether mean and variance are those of the batch.",
        "use_input_stats": "Whether mean and variance are those of `input`.",
    },
    "biasactivation": {
        "bias": "What is added, along the last dimension.",
        "activation": "``'relu'``, ``'gelu'``, ``'gelu_tanh'``, ``'silu'``, ``'tanh'`` or ``'sigmoid'``.",
    },
    "gumbelsoftmax": {
        "logits": "Logarithms of probabilities, up to a constant.",
        "tau": "Temperature, above 0; the lower it is, the nearer the result is to one-hot.",
        "hard": "Whether the result is one-hot, with the gradient of the softmax.",
        "eps": "Accepted for PyTorch's sake.",
        "dim": "Dimension along which results sum to 1.",
    },
    "softmax logsoftmax softmin": {"dtype": "Dtype to which `input` is converted first."},
    # attention
    "scaleddotproductattention": {
        "query": "Shape (..., queries, features).",
        "key": "Shape (..., keys, features).",
        "value": "Shape (..., keys, out).",
        "attn_mask": "True where a query may look, or numbers that are added; broadcasts to (..., queries, keys).",
        "dropout_p": "Probability with which weights are dropped, below 1; always.",
        "is_causal": "Whether keys behind the query are masked.",
        "scale": "Factor of the scores; ``1 / sqrt(features)`` if None.",
        "enable_gqa": "Whether key and value may have fewer heads, each for several of the query.",
    },
    "multiheadattentionforward": {
        "query": "Shape (queries, batch, embed), or without batch.",
        "key": "Shape (keys, batch, features of keys), or without batch.",
        "value": "Shape (keys, batch, features of values), or without batch.",
        "embed_dim_to_check": "Number of features of the query, embed.",
        "num_heads": "Number of heads, which divides embed.",
        "in_proj_weight": "Weights of queries, keys and values, shape (3 * embed, embed).",
        "in_proj_bias": "What is added to them, shape (3 * embed,).",
        "bias_k": "One more key, shape (1, 1, embed).",
        "bias_v": "One more value, shape (1, 1, embed).",
        "add_zero_attn": "Whether a key and a value of zeros are added.",
        "dropout_p": "Probability with which weights are dropped in training, below 1.",
        "out_proj_weight": "Weights of the result, shape (embed, embed).",
        "out_proj_bias": "What is added to it, shape (embed,).",
        "training": "Whether weights are dropped.",
        "key_padding_mask": "True for keys that are padding, or numbers that are added, shape (batch, keys).",
        "need_weights": "Whether the weights are returned, too.",
        "attn_mask": "True where a query may not look, or numbers that are added, shape (queries, keys).",
        "use_separate_proj_weight": "Whether the next three hold the weights, not `in_proj_weight`.",
        "q_proj_weight": "Weights of queries, shape (embed, features).",
        "k_proj_weight": "Weights of keys, shape (embed, features of keys).",
        "v_proj_weight": "Weights of values, shape (embed, features of values).",
        "static_k": "Projected keys, shape (batch * num_heads, keys, embed / num_heads).",
        "static_v": "Projected values, of the shape of `static_k`.",
        "average_attn_weights": "Whether the weights are those of all heads on average.",
        "is_causal": "Whether `attn_mask` hides later keys from each query; it may be left unread then.",
    },
    # losses
    "loss": {
        "input": "Prediction, of a real floating-point dtype.",
        "target": "Truth, of the shape of `input`.",
        "input1": "First of the pairs.",
        "input2": "Second of the pairs.",
        "weight": "Factor of each loss; broadcasts against them.",
    },
    "crossentropy": {
        "input": "Logits, shape (classes,), (batch, classes) or (batch, classes, ...).",
        "target": "Classes, integers, of that shape without the classes; or their probabilities, of that shape.",
    },
    "nll": {
        "input": "Log-probabilities, shape (classes,), (batch, classes) or (batch, classes, ...).",
        "target": "Classes, integers, of that shape without the classes.",
    },
    "ctc": {
        "log_probs": "Log-probabilities, shape (time, batch, classes) or (time, classes).",
        "targets": "Labels, shape (batch, labels), or those of all in one dimension.",
        "input_lengths": "How much of each input counts, shape (batch,).",
        "target_lengths": "Number of labels of each, shape (batch,).",
    },
    "gaussiannll": {"input": "Means.", "var": "Variances, at least 0, a tensor or a number."},
    "poissonnll": {"input": "Logarithms of rates, or rates.", "target": "Counts."},
    "kldiv": {"input": "Log-probabilities.", "target": "Probabilities, or their logarithms."},
    "binarycrossentropy": {"input": "Probabilities.", "target": "Probabilities."},
    "binarycrossentropywithlogits": {"input": "Logits.", "target": "Probabilities."},
    "cosineembedding marginranking": {"target": "1 or -1, for each pair."},
    "hingeembedding softmargin": {"target": "1 or -1, for each element."},
    "multimargin": {"input": "Scores, shape (batch, classes) or (classes,).", "target": "Classes, integers."},
    "multilabelmargin": {"target": "Classes in each row, integers, up to the first -1."},
    "multilabelsoftmargin": {"target": "1 for each class that an example has, else 0."},
    "tripletmargin tripletmarginwithdistance": {
        "anchor": "The vectors that distances are from.",
        "positive": "Vectors that belong to them.",
        "negative": "Vectors that do not.",
    },
})  # fmt: skip
