"""The methods of a tensor that are functions of `lucid.ops` and return a new tensor or a view."""

from __future__ import annotations

from typing import TYPE_CHECKING

# imports, of tests/namespaces/ops.txt by `python -m tests.namespaces.exports`
from lucid.ops.activation import hard, prelu, relu, sigmoid, softmax
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
from lucid.ops.index import gather, index_select, indexing, masked_select, placing, scatter, scatter_reduce, select
from lucid.ops.linalg import addmm, composed, distances, einsum, products
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
from lucid.ops.shape import axes, broadcasting, diagonal, repeating, reshape, splitting
from lucid.tensor import operators
from lucid.tensor.attributes import Attributes

if TYPE_CHECKING:
    # later imports, of tests/namespaces/ops.txt by `python -m tests.namespaces.exports`
    from lucid.ops.decomposition import chains, inverses, matrix_exp, older, orthogonal, triangular
    from lucid.ops.fft import short_time
else:
    # later modules, of tests/namespaces/ops.txt by `python -m tests.namespaces.exports`
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

    positive = operators.itself
    where = operators.where
    polygamma = operators.polygamma

    # methods, of tests/namespaces/ops.txt by `python -m tests.namespaces.exports`
    # activation
    hardshrink = hard.hardshrink
    prelu = prelu.prelu
    relu = relu.relu
    tanh = sigmoid.tanh
    sigmoid = sigmoid.sigmoid
    log_softmax = softmax.log_softmax
    softmax = softmax.softmax
    # base
    as_strided = strided.as_strided
    # creation
    bernoulli = sampling.bernoulli
    multinomial = sampling.multinomial
    # decomposition
    matrix_power = chains.matrix_power
    det = inverses.det
    inverse = inverses.inv
    slogdet = inverses.slogdet
    matrix_exp = matrix_exp.matrix_exp
    logdet = older.logdet
    lu_solve = older.lu_solve
    pinverse = older.pinverse
    qr = older.qr
    svd = older.svd
    geqrf = orthogonal.geqrf
    orgqr = orthogonal.householder_product
    ormqr = orthogonal.ormqr
    cholesky = triangular.cholesky
    cholesky_inverse = triangular.cholesky_inverse
    cholesky_solve = triangular.cholesky_solve
    # elementwise
    add = arithmetic.add
    copysign = arithmetic.copysign
    mul = multiply = arithmetic.mul
    neg = negative = arithmetic.neg
    nextafter = arithmetic.nextafter
    sub = subtract = arithmetic.sub
    addcdiv = combination.addcdiv
    addcmul = combination.addcmul
    lerp = combination.lerp
    eq = comparison.eq
    fmax = comparison.fmax
    fmin = comparison.fmin
    ge = greater_equal = comparison.ge
    gt = greater = comparison.gt
    heaviside = comparison.heaviside
    le = less_equal = comparison.le
    lt = less = comparison.lt
    maximum = comparison.maximum
    minimum = comparison.minimum
    ne = not_equal = comparison.ne
    abs = absolute = parts.abs
    angle = parts.angle
    conj = conj_physical = parts.conj
    resolve_conj = parts.resolve_conj
    resolve_neg = parts.resolve_neg
    sgn = parts.sgn
    sign = parts.sign
    div = divide = true_divide = division.div
    floor_divide = division.floor_divide
    fmod = division.fmod
    gcd = division.gcd
    lcm = division.lcm
    reciprocal = division.reciprocal
    remainder = division.remainder
    exp = exponential.exp
    exp2 = exponential.exp2
    expm1 = exponential.expm1
    log = exponential.log
    log1p = exponential.log1p
    log2 = exponential.log2
    log10 = exponential.log10
    logaddexp = exponential.logaddexp
    logaddexp2 = exponential.logaddexp2
    logit = exponential.logit
    xlogy = exponential.xlogy
    bitwise_and = logic.bitwise_and
    bitwise_left_shift = logic.bitwise_left_shift
    bitwise_not = logic.bitwise_not
    bitwise_or = logic.bitwise_or
    bitwise_right_shift = logic.bitwise_right_shift
    bitwise_xor = logic.bitwise_xor
    logical_and = logic.logical_and
    logical_not = logic.logical_not
    logical_or = logic.logical_or
    logical_xor = logic.logical_xor
    isfinite = nonfinite.isfinite
    isinf = nonfinite.isinf
    isnan = nonfinite.isnan
    isneginf = nonfinite.isneginf
    isposinf = nonfinite.isposinf
    isreal = nonfinite.isreal
    nan_to_num = nonfinite.nan_to_num
    signbit = nonfinite.signbit
    float_power = power.float_power
    frexp = power.frexp
    ldexp = power.ldexp
    pow = power.pow
    rsqrt = power.rsqrt
    sqrt = power.sqrt
    square = power.square
    ceil = rounding.ceil
    floor = rounding.floor
    frac = rounding.frac
    round = rounding.round
    trunc = fix = rounding.trunc
    clamp = selection.clamp
    clamp_max = selection.clamp_max
    clamp_min = selection.clamp_min
    clip = selection.clip
    digamma = special.digamma
    erf = special.erf
    erfc = special.erfc
    erfinv = special.erfinv
    i0 = special.i0
    lgamma = special.lgamma
    mvlgamma = special.mvlgamma
    acos = arccos = trigonometry.acos
    acosh = arccosh = trigonometry.acosh
    asin = arcsin = trigonometry.asin
    asinh = arcsinh = trigonometry.asinh
    atan = arctan = trigonometry.atan
    atan2 = arctan2 = trigonometry.atan2
    atanh = arctanh = trigonometry.atanh
    cos = trigonometry.cos
    cosh = trigonometry.cosh
    deg2rad = trigonometry.deg2rad
    hypot = trigonometry.hypot
    rad2deg = trigonometry.rad2deg
    sin = trigonometry.sin
    sinc = trigonometry.sinc
    sinh = trigonometry.sinh
    tan = trigonometry.tan
    # fft
    istft = short_time.istft
    stft = short_time.stft
    # index
    take = gather.take
    take_along_dim = gather.take_along_dim
    gather = gather.gather
    index_add = index_select.index_add
    index_copy = index_select.index_copy
    index_fill = index_select.index_fill
    index_select = index_select.index_select
    index_put = indexing.index_put
    argwhere = masked_select.argwhere
    masked_fill = masked_select.masked_fill
    masked_scatter = masked_select.masked_scatter
    nonzero = masked_select.nonzero
    masked_select = masked_select.masked_select
    as_strided_scatter = placing.as_strided_scatter
    diagonal_scatter = placing.diagonal_scatter
    put = placing.put
    select_scatter = placing.select_scatter
    slice_scatter = placing.slice_scatter
    scatter_add = scatter.scatter_add
    scatter = scatter.scatter
    index_reduce = scatter_reduce.index_reduce
    scatter_reduce = scatter_reduce.scatter_reduce
    narrow = select.narrow
    unfold = select.unfold
    select = select.select
    # linalg
    baddbmm = addmm.baddbmm
    addmm = addmm.addmm
    addbmm = composed.addbmm
    addmv = composed.addmv
    addr = composed.addr
    adjoint = composed.adjoint
    cross = composed.cross
    kron = composed.kron
    trace = composed.trace
    vdot = composed.vdot
    dist = distances.dist
    inner = einsum.inner
    bmm = products.bmm
    dot = products.dot
    matmul = products.matmul
    mm = products.mm
    mv = products.mv
    outer = ger = products.outer
    # reduction
    allclose = closeness.allclose
    equal = closeness.equal
    isclose = closeness.isclose
    corrcoef = covariance.corrcoef
    cov = covariance.cov
    renorm = covariance.renorm
    cumprod = cumulative.cumprod
    cumsum = cumulative.cumsum
    prod = cumulative.prod
    diff = differences.diff
    amax = extremes.amax
    amin = extremes.amin
    aminmax = extremes.aminmax
    argmax = extremes.argmax
    argmin = extremes.argmin
    max = extremes.max
    min = extremes.min
    histc = membership.histc
    unique_consecutive = membership.unique_consecutive
    logsumexp = norms.logsumexp
    norm = norms.norm
    kthvalue = ranks.kthvalue
    mode = ranks.mode
    msort = ranks.msort
    nanmedian = ranks.nanmedian
    nanquantile = ranks.nanquantile
    quantile = ranks.quantile
    cummax = running.cummax
    cummin = running.cummin
    logcumsumexp = running.logcumsumexp
    argsort = sorting.argsort
    bincount = sorting.bincount
    sort = sorting.sort
    topk = sorting.topk
    unique = sorting.unique
    median = statistics.median
    std = statistics.std
    var = statistics.var
    all = sums.all
    any = sums.any
    count_nonzero = sums.count_nonzero
    mean = sums.mean
    nanmean = sums.nanmean
    nansum = sums.nansum
    sum = sums.sum
    # shape
    flip = axes.flip
    fliplr = axes.fliplr
    flipud = axes.flipud
    movedim = moveaxis = axes.movedim
    permute = axes.permute
    roll = axes.roll
    rot90 = axes.rot90
    swapaxes = axes.swapaxes
    t = axes.t
    transpose = swapdims = axes.transpose
    broadcast_to = broadcasting.broadcast_to
    expand = broadcasting.expand
    expand_as = broadcasting.expand_as
    sum_to_size = broadcasting.sum_to_size
    diag = diagonal.diag
    diag_embed = diagonal.diag_embed
    tril = diagonal.tril
    triu = diagonal.triu
    diagonal = diagonal.diagonal
    repeat = repeating.repeat
    repeat_interleave = repeating.repeat_interleave
    tile = repeating.tile
    clone = reshape.clone
    contiguous = reshape.contiguous
    flatten = reshape.flatten
    ravel = reshape.ravel
    reshape_as = reshape.reshape_as
    squeeze = reshape.squeeze
    unflatten = reshape.unflatten
    unsqueeze = reshape.unsqueeze
    view = reshape.view
    view_as = reshape.view_as
    reshape = reshape.reshape
    chunk = unsafe_chunk = splitting.chunk
    dsplit = splitting.dsplit
    hsplit = splitting.hsplit
    split = unsafe_split = splitting.split
    split_with_sizes = unsafe_split_with_sizes = splitting.split_with_sizes
    tensor_split = splitting.tensor_split
    unbind = splitting.unbind
    vsplit = splitting.vsplit
