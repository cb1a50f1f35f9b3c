"""Meanings of parameters of functions beside the ops: initialisation, clipping of gradients, packing of sequences."""

from __future__ import annotations

from lucid.settings.kinds import by_kind

TOOL_KINDS = by_kind({
    "init": {
        "tensor": "Tensor that is filled in place, and returned.",
        "mean": "Mean of the values.",
        "std": "Standard deviation of the values.",
        "val": "The value.",
        "a": "Slope below zero of a ``'leaky_relu'`` that follows, or lower bound of the values.",
        "b": "Upper bound of the values.",
        "gain": "Factor of the values.",
        "mode": "``'fan_in'`` keeps the variance in forward, ``'fan_out'`` that in backward.",
        "nonlinearity": "Name of the function that follows, as of `calculate_gain`.",
        "sparsity": "Share of each column that is zero.",
        "generator": "Where the values come from; the default generator of the device if None.",
    },
    "fans": {"tensor": "Weight of two dimensions or more."},
    # gradients and parameters
    "gradients": {
        "parameters": "Parameters whose gradients are meant; those without one count nothing.",
        "max_norm": "The largest norm that is left, at least 0.",
        "total_norm": "Norm of all gradients, as `get_total_norm` returns it.",
        "foreach": "Accepted for PyTorch's sake.",
    },
    "parameterstovector vectortoparameters": {
        "parameters": "The parameters.",
        "vec": "Their elements, one parameter after another.",
    },
    "fuselinearbnweights": {
        "linear_w": "Weight of the linear layer.",
        "linear_b": "Bias of the linear layer; none if None.",
        "bn_rm": "Running mean of the batch normalisation.",
        "bn_rv": "Running variance of the batch normalisation.",
        "bn_eps": "Its `eps`.",
        "bn_w": "Its weight; ones if None.",
        "bn_b": "Its bias; zeros if None.",
    },
    "weightnorm removeweightnorm spectralnorm removespectralnorm": {
        "module": "Module that has the parameter.",
        "name": "Name of the parameter.",
        "n_power_iterations": "Number of steps of the estimate in each call in training, at least 1.",
        "eps": "Small number that keeps a divisor from zero.",
        "dim": "Dimension that counts the rows of the weight as a matrix.",
    },
    # sequences
    "rnn": {
        "input": "Padded sequences, shape (T, B, *).",
        "lengths": "Lengths of the sequences, B integers, on the CPU.",
        "batch_first": "Whether padded sequences have the shape (B, T, *), not (T, B, *).",
        "enforce_sorted": "Whether sequences must be given from the longest to the shortest.",
        "sequences": "The sequences, shape (L, *) each.",
        "sequence": "The packed sequences.",
        "packed_sequences": "The packed sequences.",
        "padded_sequences": "The sequences, as `pad_sequence` returns them.",
        "padding_value": "What stands where a sequence has ended.",
        "total_length": "T of the result; that of the longest if None.",
        "permutation": "The permutation, one row of integers.",
    },
    # derivatives and modes
    "functionalcall": {"module": "Module that is called."},
    "replaceallbatchnormmodules": {"root": "Module in which they are."},
    "jacrev": {"_preallocate_and_copy": "Makes no difference."},
    "custombwd": {"bwd": "The `backward`, of a decorator without brackets.", "device_type": "``'cpu'`` or ``'cuda'``."},
    # distributions
    "kldivergence": {"p": "Distribution that is drawn from.", "q": "Distribution that it is compared with."},
    "registerkl": {"type_p": "Class of the one distribution.", "type_q": "Class of the other distribution."},
})  # fmt: skip
