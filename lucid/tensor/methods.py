"""The methods of a tensor that are functions of `lucid.ops` and return a new tensor or a view."""

from __future__ import annotations

from typing import TYPE_CHECKING

# modules under other names than their functions have, which are the methods below
from lucid.ops.activation import hard, prelu, sigmoid, softmax
from lucid.ops.activation import relu as activation
from lucid.ops.base import strided
from lucid.ops.base.later import LaterModule
from lucid.ops.creation import sampling
from lucid.ops.elementwise import (
    arithmetic,
    combination,
    comparison,
    division,
    exponential,
    logic,
    nonfinite,
    power,
    rounding,
    selection,
    special,
    trigonometry,
)
from lucid.ops.elementwise import complex as parts
from lucid.ops.index import gather as gathering
from lucid.ops.index import index_select as slices
from lucid.ops.index import indexing, placing
from lucid.ops.index import masked_select as masking
from lucid.ops.index import scatter as scattering
from lucid.ops.index import scatter_reduce as reducing
from lucid.ops.index import select as picking
from lucid.ops.linalg import addmm, composed, distances, einsum
from lucid.ops.linalg import products as linalg
from lucid.ops.reduction import (
    closeness,
    covariance,
    cumulative,
    differences,
    extremes,
    membership,
    norms,
    ranks,
    running,
    sorting,
    statistics,
    sums,
)
from lucid.ops.shape import axes, broadcasting, diagonal, repeating, splitting
from lucid.ops.shape import reshape as shape
from lucid.tensor import operators
from lucid.tensor.attributes import Attributes

if TYPE_CHECKING:
    from lucid.ops.decomposition import chains, inverses, matrix_exp, older, orthogonal, triangular
    from lucid.ops.fft import short_time
else:
    chains = LaterModule("lucid.ops.decomposition.chains")
    inverses = LaterModule("lucid.ops.decomposition.inverses")
    matrix_exp = LaterModule("lucid.ops.decomposition.matrix_exp")
    older = LaterModule("lucid.ops.decomposition.older")
    orthogonal = LaterModule("lucid.ops.decomposition.orthogonal")
    triangular = LaterModule("lucid.ops.decomposition.triangular")
    short_time = LaterModule("lucid.ops.fft.short_time")


class Methods(Attributes):
    """The functions of `lucid` with a tensor as first argument, as its methods."""

    __slots__ = ()

    # ---- elementwise ----

    add = arithmetic.add
    sub = subtract = arithmetic.sub
    mul = multiply = arithmetic.mul
    neg = negative = arithmetic.neg
    positive = operators.itself
    div = divide = true_divide = division.div
    floor_divide = division.floor_divide
    remainder = division.remainder
    fmod = division.fmod
    reciprocal = division.reciprocal
    pow = power.pow
    square = power.square
    sqrt = power.sqrt
    rsqrt = power.rsqrt
    exp = exponential.exp
    exp2 = exponential.exp2
    expm1 = exponential.expm1
    log = exponential.log
    log2 = exponential.log2
    log10 = exponential.log10
    log1p = exponential.log1p
    logaddexp = exponential.logaddexp
    sin = trigonometry.sin
    cos = trigonometry.cos
    tan = trigonometry.tan
    asin = arcsin = trigonometry.asin
    acos = arccos = trigonometry.acos
    atan = arctan = trigonometry.atan
    atan2 = arctan2 = trigonometry.atan2
    sinh = trigonometry.sinh
    cosh = trigonometry.cosh
    asinh = arcsinh = trigonometry.asinh
    acosh = arccosh = trigonometry.acosh
    atanh = arctanh = trigonometry.atanh
    abs = absolute = parts.abs
    sign = parts.sign
    sgn = parts.sgn
    conj = conj_physical = parts.conj
    resolve_conj = parts.resolve_conj
    resolve_neg = parts.resolve_neg
    angle = parts.angle
    floor = rounding.floor
    ceil = rounding.ceil
    trunc = fix = rounding.trunc
    round = rounding.round
    frac = rounding.frac
    clamp = selection.clamp
    clip = selection.clip
    clamp_min = selection.clamp_min
    clamp_max = selection.clamp_max
    maximum = comparison.maximum
    minimum = comparison.minimum
    where = operators.where
    nan_to_num = nonfinite.nan_to_num
    lerp = combination.lerp
    addcmul = combination.addcmul
    addcdiv = combination.addcdiv
    eq = comparison.eq
    ne = not_equal = comparison.ne
    lt = less = comparison.lt
    le = less_equal = comparison.le
    gt = greater = comparison.gt
    ge = greater_equal = comparison.ge
    isnan = nonfinite.isnan
    isinf = nonfinite.isinf
    isfinite = nonfinite.isfinite
    isposinf = nonfinite.isposinf
    isneginf = nonfinite.isneginf
    isreal = nonfinite.isreal
    signbit = nonfinite.signbit
    copysign = arithmetic.copysign
    nextafter = arithmetic.nextafter
    gcd = division.gcd
    lcm = division.lcm
    float_power = power.float_power
    ldexp = power.ldexp
    frexp = power.frexp
    logaddexp2 = exponential.logaddexp2
    xlogy = exponential.xlogy
    logit = exponential.logit
    hypot = trigonometry.hypot
    sinc = trigonometry.sinc
    deg2rad = trigonometry.deg2rad
    rad2deg = trigonometry.rad2deg
    fmax = comparison.fmax
    fmin = comparison.fmin
    heaviside = comparison.heaviside
    isclose = closeness.isclose
    allclose = closeness.allclose
    equal = closeness.equal
    logical_and = logic.logical_and
    logical_or = logic.logical_or
    logical_xor = logic.logical_xor
    logical_not = logic.logical_not
    bitwise_and = logic.bitwise_and
    bitwise_or = logic.bitwise_or
    bitwise_xor = logic.bitwise_xor
    bitwise_not = logic.bitwise_not
    bitwise_left_shift = logic.bitwise_left_shift
    bitwise_right_shift = logic.bitwise_right_shift

    relu = activation.relu
    hardshrink = hard.hardshrink
    prelu = prelu.prelu
    tanh = sigmoid.tanh
    sigmoid = sigmoid.sigmoid
    erf = special.erf
    erfc = special.erfc
    erfinv = special.erfinv
    lgamma = special.lgamma
    digamma = special.digamma
    polygamma = operators.polygamma
    mvlgamma = special.mvlgamma
    i0 = special.i0

    # ---- reductions ----

    sum = sums.sum
    nansum = sums.nansum
    mean = sums.mean
    any = sums.any
    all = sums.all
    count_nonzero = sums.count_nonzero
    prod = cumulative.prod
    cumsum = cumulative.cumsum
    cumprod = cumulative.cumprod
    max = extremes.max
    min = extremes.min
    amax = extremes.amax
    amin = extremes.amin
    argmax = extremes.argmax
    argmin = extremes.argmin
    var = statistics.var
    std = statistics.std
    median = statistics.median
    aminmax = extremes.aminmax
    nanmean = sums.nanmean
    nanmedian = ranks.nanmedian
    quantile = ranks.quantile
    nanquantile = ranks.nanquantile
    kthvalue = ranks.kthvalue
    mode = ranks.mode
    cummax = running.cummax
    cummin = running.cummin
    logcumsumexp = running.logcumsumexp
    diff = differences.diff
    cov = covariance.cov
    corrcoef = covariance.corrcoef
    renorm = covariance.renorm
    norm = norms.norm
    logsumexp = norms.logsumexp
    log_softmax = softmax.log_softmax
    softmax = softmax.softmax

    sort = sorting.sort
    argsort = sorting.argsort
    topk = sorting.topk
    unique = sorting.unique
    bincount = sorting.bincount
    msort = ranks.msort
    unique_consecutive = membership.unique_consecutive
    histc = membership.histc
    multinomial = sampling.multinomial
    bernoulli = sampling.bernoulli

    # ---- products ----

    matmul = linalg.matmul
    dist = distances.dist
    mm = linalg.mm
    bmm = linalg.bmm
    mv = linalg.mv
    dot = linalg.dot
    outer = ger = linalg.outer
    vdot = composed.vdot
    cross = composed.cross
    kron = composed.kron
    trace = composed.trace
    matrix_power = chains.matrix_power
    adjoint = composed.adjoint
    addmv = composed.addmv
    addr = composed.addr
    addbmm = composed.addbmm
    inner = einsum.inner
    det = inverses.det
    inverse = inverses.inv
    logdet = older.logdet
    slogdet = inverses.slogdet
    cholesky = triangular.cholesky
    cholesky_inverse = triangular.cholesky_inverse
    cholesky_solve = triangular.cholesky_solve
    lu_solve = older.lu_solve
    qr = older.qr
    geqrf = orthogonal.geqrf
    orgqr = orthogonal.householder_product
    ormqr = orthogonal.ormqr
    svd = older.svd
    pinverse = older.pinverse
    matrix_exp = matrix_exp.matrix_exp
    baddbmm = addmm.baddbmm
    addmm = addmm.addmm

    # ---- transforms ----

    stft = short_time.stft
    istft = short_time.istft

    # ---- shapes ----

    reshape = shape.reshape
    view = shape.view
    view_as = shape.view_as
    reshape_as = shape.reshape_as
    flatten = shape.flatten
    unflatten = shape.unflatten
    ravel = shape.ravel
    squeeze = shape.squeeze
    unsqueeze = shape.unsqueeze
    contiguous = shape.contiguous
    clone = shape.clone
    permute = axes.permute
    transpose = swapdims = axes.transpose
    swapaxes = axes.swapaxes
    t = axes.t
    movedim = moveaxis = axes.movedim
    flip = axes.flip
    fliplr = axes.fliplr
    flipud = axes.flipud
    roll = axes.roll
    rot90 = axes.rot90
    expand = broadcasting.expand
    expand_as = broadcasting.expand_as
    broadcast_to = broadcasting.broadcast_to
    sum_to_size = broadcasting.sum_to_size
    split = unsafe_split = splitting.split
    split_with_sizes = unsafe_split_with_sizes = splitting.split_with_sizes
    chunk = unsafe_chunk = splitting.chunk
    hsplit = splitting.hsplit
    vsplit = splitting.vsplit
    dsplit = splitting.dsplit
    tensor_split = splitting.tensor_split
    unbind = splitting.unbind
    repeat = repeating.repeat
    repeat_interleave = repeating.repeat_interleave
    tile = repeating.tile
    tril = diagonal.tril
    triu = diagonal.triu
    diag = diagonal.diag
    diag_embed = diagonal.diag_embed
    diagonal = diagonal.diagonal

    # ---- elements by index ----

    gather = gathering.gather
    scatter = scattering.scatter
    scatter_add = scattering.scatter_add
    take = gathering.take
    take_along_dim = gathering.take_along_dim
    select = picking.select
    narrow = picking.narrow
    unfold = picking.unfold
    as_strided = strided.as_strided
    index_put = indexing.index_put
    put = placing.put
    scatter_reduce = reducing.scatter_reduce
    index_reduce = reducing.index_reduce
    select_scatter = placing.select_scatter
    slice_scatter = placing.slice_scatter
    diagonal_scatter = placing.diagonal_scatter
    as_strided_scatter = placing.as_strided_scatter
    index_select = slices.index_select
    index_add = slices.index_add
    index_copy = slices.index_copy
    index_fill = slices.index_fill
    masked_fill = masking.masked_fill
    masked_select = masking.masked_select
    masked_scatter = masking.masked_scatter
    nonzero = masking.nonzero
    argwhere = masking.argwhere
