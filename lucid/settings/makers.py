"""Meanings of parameters of functions that make tensors, draw them, transform signals, or set modes."""

from __future__ import annotations

from lucid.settings.kinds import by_kind

_NORM = (
    "``'backward'``, the default, divides the inverse transform by the number of elements, ``'forward'`` the other "
    "one, ``'ortho'`` both by its root."
)

MAKER_KINDS = by_kind({
    # made of numbers
    "arange": {
        "start": "First number; 0 if there is one number alone, which is `end`.",
        "end": "End, which is not included.",
        "step": "Distance between numbers, not 0.",
    },
    "linspace": {"start": "First number.", "end": "Last number."},
    "linspace logspace": {"steps": "How many there are."},
    "logspace": {
        "start": "Exponent of the first number.",
        "end": "Exponent of the last number.",
        "base": "Base of the exponents.",
    },
    "eye": {"n": "Number of rows.", "m": "Number of columns; that of rows if None."},
    "trilindices triuindices": {
        "row": "Number of rows.",
        "col": "Number of columns.",
        "offset": "Number of the diagonal, 0 for the main one, above it if greater than 0.",
    },
    "full fulllike": {"fill_value": "The number."},
    "filling random": {
        "input": "Tensor whose shape, dtype and device the result has.",
        "dtype": "Dtype of the result; that of `input`, or the default one, if None.",
        "device": "Device of the result; that of `input`, or the default one, if None.",
    },
    "windows": {
        "window_length": "Number of samples.",
        "periodic": "Whether it is one period of a periodic window, not a symmetric one.",
        "alpha": "Constant part of the window.",
        "beta": "Shape of the window: part of the cosine, or, of Kaiser's, how narrow it is.",
    },
    "fftfreq rfftfreq": {"n": "Number of samples.", "d": "Distance between samples."},
    # made of data
    "tensor astensor": {"data": "A number, an array, a tensor, or nested lists of these."},
    "asarray": {
        "obj": "A number, an array, a tensor, or nested lists of these.",
        "copy": "True for a copy, False for the same memory or an error, None for a copy where it must be.",
    },
    "scalartensor": {"s": "The number."},
    "fromnumpy": {"ndarray": "The array, whose memory the tensor has."},
    "frombuffer": {
        "buffer": "Object with Python's buffer protocol, whose memory the tensor has.",
        "count": "Number of elements; all that there are if below 0.",
        "offset": "Bytes in front of the first element.",
        "dtype": "Dtype of the elements.",
    },
    # drawn
    "manualseed": {"seed": "A whole number in [-2**63, 2**64)."},
    "setrngstate": {"new_state": "State of the generator, as `get_rng_state` returns it."},
    "randint": {"bounds_and_size": "``high, size`` or ``low, high, size``, one after another."},
    "randintlike": {"bounds": "``high`` or ``low, high``, one after another."},
    "randint randintlike": {"low": "Lowest number; 0 if None.", "high": "Number above the highest one."},
    "randperm": {"n": "Number of elements."},
    "randint randperm": {"dtype": "Dtype of the result; int64 if None."},
    "normal": {
        "mean": "Mean, a number or a tensor.",
        "std": "Standard deviation, at least 0, a number or a tensor.",
        "size": "Sizes of the result, where mean and deviation are numbers.",
    },
    "bernoulli": {"input": "Probabilities of a 1.", "p": "Probability instead of those in `input`."},
    "binomial": {"count": "Numbers of trials.", "prob": "Probabilities of success."},
    "poisson": {"input": "Rates, at least 0."},
    "multinomial": {
        "input": "Weights of at least 0, shape (classes,) or (rows, classes).",
        "num_samples": "Number of indices for each row.",
        "replacement": "Whether an index may come again.",
    },
    # transforms
    "onedimension": {
        "n": "Number of elements that are transformed, or that come out: `input` is cut, or zeros are added.",
        "dim": "Dimension along which it is transformed.",
        "norm": _NORM,
    },
    "severaldimensions": {
        "s": "Numbers of elements along each dimension: `input` is cut, or zeros are added.",
        "dim": "Dimensions along which it is transformed; the last ones, or all, if None.",
        "norm": _NORM,
    },
    "shifting": {"dim": "Dimension, or dimensions, along which elements are rolled; all if None."},
    "stft istft": {
        "n_fft": "Number of samples of a frame.",
        "hop_length": "Number of samples from one frame to the next; a quarter of a frame if None.",
        "win_length": "Number of samples of the window, in the middle of a frame; `n_fft` if None.",
        "window": "Factors of the samples; ones if None.",
        "center": "Whether frames are centred at the multiples of `hop_length`, with half a frame added at both ends.",
        "pad_mode": "Mode of `pad` by which that is added.",
        "normalized": "Whether transforms are divided by the root of `n_fft`.",
        "onesided": "Whether there is only the half of the spectrum that determines it; None for what is real.",
        "length": "Number of samples of the result; those that the frames determine if None.",
    },
    "stft": {
        "input": "Signals, shape (samples,) or (batch, samples).",
        "return_complex": "Whether the result is complex, not pairs of real numbers along a last dimension.",
        "align_to_window": "Whether the first window, not the first frame, begins with the signal; without `center`.",
    },
    "istft": {
        "input": "Spectra, complex, shape (..., frequencies, frames).",
        "return_complex": "Whether the signals are complex.",
    },
    # modes
    "autocast": {
        "device_type": "``'cpu'`` or ``'cuda'``.",
        "dtype": "Dtype in which ops are computed.",
        "enabled": "Whether it is on.",
    },
    "istensor": {"obj": "Anything."},
    "issamesize": {"other": "The other tensor."},
    "setdefaultdevice": {"spec": "The device, such as ``'cuda'``; the CPU if None."},
})  # fmt: skip
