"""Spectra of the parts of a signal, and the signal of given spectra. Common rules of transforms: `lucid.ops.fft`.

- `input` is a signal or a batch of them, real or complex, or the spectra of one, as `stft` gives them.
- A frame is `n_fft` samples, the next one begins `hop_length` samples later, a quarter of a frame if that is None. Each
  is weighed by `window`, `win_length` numbers (None for as many as a frame has) in the middle of the frame with zeros
  on both sides; without a window by ones in their place. A complex window gives both halves of the spectrum.
- `center`: frames are centred at the multiples of `hop_length`, for which half a frame is added on both sides.
- `normalized`: transforms are divided by the root of `n_fft`.
- `onesided`: half of each spectrum is kept, or is what there is; None where all is real, or by the size.
- `return_complex`: of `stft`, False gives pairs of real numbers along a new last dimension, and it must be given for a
  real signal and window; of `istft`, whether the signal is complex, of both halves of its spectra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import among
from lucid.autograd.modes.casting import wide_in_autocast
from lucid.autograd.recording.namespace import GRAPH
from lucid.base.dtype import dtype_of
from lucid.errors import DtypeError, SettingError, ShapeError, warn
from lucid.ops.base.promotion import array_of, promote, tensor_dtype
from lucid.ops.base.scalars import as_bool, as_int
from lucid.ops.creation.filling import ones
from lucid.ops.elementwise.arithmetic import mul
from lucid.ops.elementwise.complex import abs, view_as_real
from lucid.ops.elementwise.division import div
from lucid.ops.elementwise.power import square
from lucid.ops.fft.one_dimension import fft, ifft, irfft, rfft
from lucid.ops.index.select import narrow, unfold
from lucid.ops.reduction.extremes import amin
from lucid.ops.shape.axes import transpose
from lucid.ops.shape.broadcasting import broadcast_to
from lucid.ops.shape.padding import MODES, ModeError, pad
from lucid.ops.shape.reshape import squeeze, unsqueeze

if TYPE_CHECKING:
    from lucid.tensor import Tensor

# Sums of squares of windows from which no signal is computed, as in PyTorch.
_NOTHING = 1e-11


def _is_complex(tensor: Tensor | None) -> bool:
    return tensor is not None and array_of(tensor).dtype.kind == "c"


def _real_dtype(tensor: Tensor) -> Any:
    return dtype_of(tensor.array.real)


def _frame(name: str, n_fft: int, hop_length: int | None, win_length: int | None) -> tuple[int, int, int]:
    """Return the sizes of a frame, of a step and of a window."""
    size = as_int(n_fft, "n_fft")
    hop = size // 4 if hop_length is None else as_int(hop_length, "hop_length")
    width = size if win_length is None else as_int(win_length, "win_length")
    if size < 1:
        raise ShapeError(f"{name}: expected n_fft > 0, got n_fft={size}")
    if hop < 1:
        raise ShapeError(f"{name}: expected hop_length > 0, got hop_length={hop}")
    if not 0 < width <= size:
        raise ShapeError(f"{name}: expected 0 < win_length <= n_fft, got win_length={width}, n_fft={size}")
    return size, hop, width


def _weights(name: str, window: Tensor | None, size: int, width: int, like: Any) -> Any:
    """Return the window in the middle of a frame; None for one of ones."""
    if window is None and width == size:
        return None
    if window is None:
        window = ones(width, dtype=_real_dtype(like), device=like.device)
    shape = array_of(window).shape
    if shape != (width,):
        raise ShapeError(f"{name}: expected a 1D window tensor of size win_length={width}, got shape {list(shape)}")
    before = (size - width) // 2
    return pad(window, (before, size - width - before)) if width < size else window


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Return the transforms of the frames of signals, shape (..., frequencies, frames).

    `pad_mode` is the mode of `pad` by which half a frame is added with `center`; without it `align_to_window` lets the
    first window, not the first frame, begin with the signal.

    >>> import lucid
    >>> lucid.stft(lucid.ones(4), 4, 4, center=False, return_complex=True).T
    tensor([[4.+0.j, 0.+0.j, 0.+0.j]])
    """
    size, hop, width = _frame("stft", n_fft, hop_length, win_length)
    x = wide_in_autocast(input)
    dtype = tensor_dtype(x)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise DtypeError(f"stft: expected a tensor of floating point or complex values, got one of {dtype}")
    if x.array.ndim not in (1, 2):
        raise ShapeError(f"stft: expected a 1D or 2D tensor, got shape {list(x.array.shape)}")
    both_real = not (_is_complex(input) or _is_complex(window))
    if return_complex is None and both_real:
        raise SettingError(
            "stft requires the return_complex parameter be given for real inputs: return_complex=True, or False for "
            "pairs of real numbers"
        )
    as_complex = not both_real if return_complex is None else as_bool(return_complex, "return_complex")
    half = both_real if onesided is None else as_bool(onesided, "onesided")
    if half and not both_real:
        raise SettingError("stft: Cannot have onesided output if window or input is complex: leave out onesided")
    weights = _weights("stft", window, size, width, x)
    if not among(pad_mode, MODES):
        raise ModeError(f"stft: pad_mode: expected one of {', '.join(MODES)}, got {pad_mode!r}")
    if as_bool(center, "center"):
        if align_to_window is not None:
            raise SettingError("stft: align_to_window should only be set when center = false")
        x = pad(x, (size // 2, size // 2), pad_mode)
    elif align_to_window is not None and as_bool(align_to_window, "align_to_window"):
        before = (size - width) // 2
        x = pad(x, (before, size - width - before))
    if size > x.array.shape[-1]:
        raise ShapeError(
            f"stft: expected n_fft of at most {x.array.shape[-1]}, the samples there are, got n_fft={size}"
        )
    frames = unfold(x, -1, size, hop)
    weighed = frames if weights is None else mul(frames, weights)
    norm = "ortho" if as_bool(normalized, "normalized") else "backward"
    spectra = transpose((rfft if half else fft)(weighed, norm=norm), -1, -2)
    return spectra if as_complex else view_as_real(spectra)


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Return the signals with an `stft` closest to `input`, of shape (..., frequencies, frames).

    Frames are transformed back, weighed by the window again, summed where they overlap, and divided by the sums of the
    squares of the windows, of which none may vanish. `length` is how many samples the signal has; without it those that
    the frames determine, less half a frame at both ends with `center`.

    >>> import lucid
    >>> spectra = lucid.stft(lucid.ones(4), 2, return_complex=True, hop_length=1)
    >>> lucid.istft(spectra, 2, hop_length=1)
    tensor([1., 1., 1., 1.])
    """
    size, hop, width = _frame("istft", n_fft, hop_length, win_length)
    shape = array_of(input).shape
    if not _is_complex(input):
        raise DtypeError(
            f"istft requires a complex-valued input tensor matching the output from stft with return_complex=True, got "
            f"one of {tensor_dtype(input)}"
        )
    if len(shape) not in (2, 3) or 0 in shape:
        raise ShapeError(f"istft: expected 2 or 3 dimensions, none of them empty, got shape {list(shape)}")
    if hop > width:
        raise ShapeError(f"istft: expected 0 < hop_length <= win_length, got hop_length={hop}, win_length={width}")
    half = shape[-2] != size if onesided is None else as_bool(onesided, "onesided")
    frequencies = size // 2 + 1 if half else size
    if shape[-2] != frequencies:
        raise ShapeError(
            f"istft: expected the frequency dimension of input to match n_fft={size} with onesided={half}: "
            f"{frequencies}, got shape {list(shape)}"
        )
    to_complex = as_bool(return_complex, "return_complex")
    if to_complex and half:
        raise SettingError(
            "istft: a complex signal has no onesided spectrum: give both halves, or return_complex=False"
        )
    if not to_complex and _is_complex(window):
        raise DtypeError("istft: Complex windows are incompatible with return_complex=False")
    weights = _weights("istft", window, size, width, input)
    norm = "ortho" if as_bool(normalized, "normalized") else "backward"
    spectra = transpose(input if len(shape) == 3 else unsqueeze(input, 0), -1, -2)
    if to_complex:
        frames = ifft(spectra, norm=norm)
    else:
        frames = irfft(narrow(spectra, -1, 0, size // 2 + 1), size, norm=norm)
    if weights is None:
        weights = ones(size, dtype=_real_dtype(input), device=input.device)
    count, whole = shape[-1], size + hop * (shape[-1] - 1)
    signal = _overlapped(mul(frames, weights), whole, hop)
    envelope = _overlapped(broadcast_to(square(weights), (1, count, size)), whole, hop)
    start = size // 2 if as_bool(center, "center") else 0
    end = whole - start if length is None else start + as_int(length, "length")
    extent = min(end, whole) - start
    if extent < 1:
        raise ShapeError(f"istft: expected frames that determine a sample, got {count} for length={length}")
    envelope = narrow(envelope, 1, start, extent)
    least = amin(abs(envelope)).item()
    if not least > _NOTHING:
        raise SettingError(
            f"istft: window overlap add min: {least:.3g}: samples that no window weighs are lost; use another "
            "window, a shorter hop_length or center=True"
        )
    out = div(*promote(narrow(signal, 1, start, extent), envelope))
    if end > whole:
        warn("istft: length is beyond the last frame; zeros are added, as nothing is known of the samples there")
        out = pad(out, (0, end - whole))
    return out if len(shape) == 3 else squeeze(out, 0)


def _overlapped(frames: Any, length: int, hop: int) -> Any:
    """Return the sums of frames, shape (batch, frames, samples), each `hop` samples after the one before."""
    batch, _, size = frames.array.shape
    return GRAPH.unfold_grad(frames, shape=(batch, length), dim=1, size=size, step=hop)
