"""What lucid does otherwise than PyTorch at special values, on purpose, and why; users/values.md has it in short."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """What lucid does otherwise than PyTorch: in rows and cases that match, differences of one kind."""

    rows: str
    cases: str
    what: str
    kind: str
    reason: str

    def covers(self, row, found):
        """Tell whether it explains a difference."""
        pairs = ((self.rows, row), (self.cases, found.case), (self.what, found.what), (self.kind, found.kind))
        return all(re.fullmatch(pattern, word) for pattern, word in pairs)


NORMS = "(layer|rms|batch|group|instance)_norm.*"
ATTENTION = "scaled_dot_product_attention.*"
UNBOUNDED = "-?(huge|large|inf) .*|several .*|only -inf .*"
OVERFLOW = "(NaN|infinity) of (PyTorch|lucid)"
DIFFERENCES = (
    Difference(
        "(bias_activation:)?gelu", "all pairs|-?(inf|huge) of .*", "value|gradient", "NaN of PyTorch",
        "gelu(-inf) is 0, and the slope at both infinities 0 and 1: PyTorch multiplies infinity by zero",
    ),
    Difference(
        "(bias_activation:)?gelu(:tanh|_tanh)?", "all pairs|-?large .*", "value|gradient", "number|NaN of PyTorch",
        "far below zero PyTorch's 1 + erf and 1 + tanh lose all digits, and the square of a huge sum overflows",
    ),
    Difference(
        "relu6|hardtanh.*|[sc]?elu.*|hardswish|(hard|soft)shrink", "all pairs", "gradient", "number|NaN of PyTorch",
        "at NaN the gradient passes, as on a GPU; PyTorch's vector code on the CPU gives 0, of elu and hardswish NaN",
    ),
    Difference(
        "softsign", "all pairs|.* of no dimension", "gradient", "NaN of PyTorch|number",
        "the slope at infinity is 0: one quotient, where PyTorch subtracts two",
    ),
    Difference(
        "softshrink", ".*", "value", "sign of zero",
        "what is near zero becomes 0, as in PyTorch's vector code; its other code keeps the sign",
    ),
    Difference(
        "hardsigmoid", ".*", "gradient", "number",
        "PyTorch multiplies by a sixth in float32, in float64 too",
    ),
    Difference(
        "softplus|logsigmoid", "all pairs", "gradient", "number",
        "slopes below the smallest normal number are 0",
    ),
    Difference(
        "(add|sub):alpha|addcmul.*", "all pairs|.* of no dimension", "value",
        "(NaN|infinity) of lucid|sign of zero|number",
        "a product is rounded before it is added, and may overflow or vanish; PyTorch's vector code does not round it",
    ),
    Difference(
        "addcdiv", "all pairs|.* of no dimension", "gradient", OVERFLOW + "|number",
        "PyTorch squares the divisor, which overflows or vanishes, where lucid divides twice",
    ),
    Difference(
        "atan2|acosh|square", "all pairs|.* of no dimension", "gradient", "(NaN|infinity) of PyTorch|number",
        "squares that overflow: PyTorch gives NaN, infinity or 0; lucid 0 for atan2, and else the slope",
    ),
    Difference(
        r"fft\..*", ".*", "value", "sign of zero",
        "a part that is zero has the sign that the order of sums gives it",
    ),
    Difference(
        "special.ndtr", "all pairs", "value", "number",
        "PyTorch's sum with 1 loses the digits of the far tail",
    ),
    Difference(
        "special.i1", "all pairs|-?inf .*|nan .*", "value|gradient", "NaN of (PyTorch|lucid)",
        "Bessel functions of infinity are infinite, where PyTorch divides infinity by infinity; NaN has a slope of NaN",
    ),
    Difference(
        "special.i1", "all pairs|-?(0|subnormal) .*", "value|gradient", "sign of zero|number",
        "odd, with a slope of a half at zero: PyTorch gives 0 for -0, and other slopes at subnormal numbers",
    ),
    Difference(
        "logaddexp2", "all pairs", "value", "sign of zero",
        "a sum that cancels is 0, where PyTorch gives -0",
    ),
    Difference(
        "frexp", "all pairs|-?(large|huge) .*", "gradient", "number",
        "powers of 2 may be beyond the dtype; PyTorch's are of float32, and infinite",
    ),
    Difference(
        "i0", "all pairs|-?inf .*", "value|gradient", "NaN of PyTorch",
        "Bessel functions of infinity are infinite; PyTorch divides infinity by infinity",
    ),
    Difference(
        "polygamma:2", "all pairs|-?inf .*", "value|gradient", OVERFLOW,
        "0 at infinity, and NaN at -infinity, as digamma; PyTorch multiplies infinity by zero, and takes a pole",
    ),
    Difference(
        "polar", "all pairs|.* of no dimension", "gradient", "number|" + OVERFLOW,
        "the slope by the magnitude is exp(1j * angle) everywhere; PyTorch takes the sign of the result, 0 at 0 "
        "and turned around below it",
    ),
    Difference(
        "fmod|remainder", "all pairs|.* of no dimension", "value", "NaN of PyTorch",
        "exact however large the quotient; PyTorch's vector code gives NaN",
    ),
    Difference(
        "remainder", "all pairs|.* of no dimension", "value", "sign of zero",
        "a rest of zero has the sign of the divisor, as other rests, and in Python",
    ),
    Difference(
        "maximum|minimum|clamp:tensors|lerp|(a?max|a?min|aminmax|median|(adaptive_)?max_pool[123]d)(:.*)?",
        "all pairs|.* of no dimension|(several|-?0) .*", "value", "sign of zero",
        "of 0 and -0 either is the larger; PyTorch chooses by dtype. A product of 0 has the sign of its factors",
    ),
    Difference(
        "bias_activation:.*", ".*no dimension.*|size 1 .*|one element.*", "call", "refused",
        "the bias is one number for each element of the last dimension; PyTorch has no such op, and adds",
    ),
    Difference(
        NORMS, UNBOUNDED, "value|gradient", OVERFLOW + "|sign of infinity",
        "huge values and infinite weights meet in another order: lucid centres, scales, and weighs last",
    ),
    Difference(
        NORMS, "-?0 in .*|only .*|" + UNBOUNDED, "value", "sign of zero",
        "a difference that is zero, scaled: PyTorch adds a shift of zero to it",
    ),
    Difference(
        ATTENTION, "(first|last) size 0", "call", "refused",
        "operands that do not broadcast are refused when they are empty, too",
    ),
    Difference(
        "(b?addb?mm|addr|(linalg.)?matrix_power|einsum|linear|conv|cov|corrcoef).*", UNBOUNDED,
        "value|gradient", OVERFLOW + "|sign of infinity",
        "factors and sums near the largest number overflow in one order and not in the other, or to the other side",
    ),
    Difference(
        "cov:weighted", "only subnormal in 2|-?subnormal .*", "value|gradient", "number|NaN of (PyTorch|lucid)",
        "weights of few bits: their sums are rounded in one order and not in the other, and may be nothing",
    ),
    Difference(
        "bilinear.*", UNBOUNDED, "value|gradient", OVERFLOW + "|sign of infinity",
        "products of three factors near the largest number overflow in one order and not in the other",
    ),
    Difference(
        "embedding_bag:(mean|rows)", "-?huge .*", "value", "infinity of PyTorch",
        "the mean of a bag is a sum of shares, which does not overflow",
    ),
    Difference(
        "embedding_bag:max", "(nan|several) .*", "value|gradient", "NaN of lucid|number",
        "NaN is the greatest, as in pooling; in PyTorch where it comes first",
    ),
    Difference(
        "take_along_dim|getitem:mixed", "one element|size 1 of .*", "call", "refused",
        "an index beyond a dimension of size 1 is out of range; PyTorch does not look at it where it broadcasts",
    ),
    Difference(
        "index_put", "(size 1|no dimension) of .*", "value", "number",
        "which of several values for one place stays is not said",
    ),
    Difference(
        "(mse_loss|binary_cross_entropy(_with_logits)?|kl_div).*", "all pairs|-?huge in .*|.* of no dimension",
        "gradient", "infinity of .*",
        "factors of the gradient near the largest number are multiplied in another order",
    ),
    Difference(
        "binary_cross_entropy_with_logits:none", "all pairs|.* of no dimension", "value", "number",
        "a difference of terms as large as the logit, in float32 for halves; PyTorch rounds the terms",
    ),
    Difference(
        "binary_cross_entropy(:.*)?", "all pairs|(several|(only )?-?(0|subnormal)) .*", "gradient", "number",
        "what is divided by is at least 1e-12, which is float32's next number in PyTorch's float64",
    ),
    Difference(
        "(soft_margin|multilabel_soft_margin|gaussian_nll|poisson_nll|cosine_embedding|triplet_margin(_with_distance)?)"
        "_loss.*", ".*", "value|gradient", OVERFLOW + "|number|sign of infinity",
        "powers and exponentials do not overflow on the way, squared lengths do not vanish, and what does not count "
        "has no gradient",
    ),
    Difference(
        "(multi|multilabel)_margin_loss.*", ".*", "value|gradient", "NaN of lucid|number|infinity of .*",
        "NaN stays NaN, where PyTorch passes over what is not positive; the mean of no example is NaN",
    ),
    Difference(
        "kl_div.*", "all pairs|.* of no dimension|(several|(only )?-?(0|inf)) .*", "value|gradient",
        "NaN of PyTorch|sign of zero",
        "the logarithm of 0 and of infinity is taken, and its limits, where PyTorch multiplies them by zero",
    ),
    Difference(
        "prod.*", "-?subnormal in .*", "value|gradient", "number",
        "a product that is subnormal on the way has few digits: it depends on the order of the factors, and PyTorch "
        "divides it by each element for the gradient",
    ),
    Difference(
        "scatter_reduce:prod.*", "-?(huge|large|tiny) in .*", "value|gradient",
        "number|infinity of (lucid|PyTorch)|NaN of (lucid|PyTorch)",
        "a product that is infinite on the way depends on the order of the factors",
    ),
    Difference(
        "(nll_loss|cross_entropy).*", "one element of one dimension", "call", "refused",
        "logits of no rows take a target of no dimension",
    ),
    Difference(
        "(nll_loss|cross_entropy):(.*:)?none|cross_entropy:probabilities.*",
        "one element.*|size 1 of .*|(only )?-?0 .*|(huge|large|several) .*", "value", "sign of zero",
        "a loss that is zero is 0 or -0",
    ),
    Difference(
        "cross_entropy:weight:smoothing.*", "((only )?-?inf|-?huge|several) in 2", "value|gradient",
        OVERFLOW + "|sign of infinity",
        "sums of weights, and of weights times logits, overflow or meet both infinities",
    ),
    Difference(
        "cross_entropy:weight:(.*:)?mean", "(only )?-?(0|subnormal) in 2|several in 2", "value|gradient",
        OVERFLOW + "|sign of infinity|number",
        "the sum of weights vanishes: the loss is divided by it last",
    ),
    Difference(
        "nll_loss:weight:.*mean", "(nan|several|only .*) in 2", "gradient", OVERFLOW,
        "the same of the gradient, which PyTorch divides first",
    ),
    Difference(
        "cross_entropy:probabilities.*", "last size 0", "value", "NaN of PyTorch",
        "a sum over no class is 0",
    ),
    Difference(
        "adaptive_avg_pool[12]d.*", "last size 0", "call", "refused",
        "there is no part of an empty plane",
    ),
    Difference(
        "am(ax|in).*", "(nan|several) .*", "gradient", "NaN of PyTorch",
        "the gradient goes to the NaNs, as that of max() and min()",
    ),
    Difference(
        "(var|std)_mean", "(several|(only )?-?inf) .*", "value", "NaN of PyTorch",
        "the mean of numbers of which one is infinite is infinite",
    ),
    Difference(
        "norm:p=0.5.*", "-?(huge|inf|subnormal) .*|several .*|only .*", "gradient", "(NaN|infinity) of .*|number",
        "the share of an element in the norm overflows or vanishes before its power; of an infinite norm it is 0",
    ),
    Difference(
        "norm:p=3.*|linalg.vector_norm:3", "-?(huge|large) .*|only subnormal .*", "gradient", "NaN of PyTorch",
        "powers of the shares do not overflow or vanish, as powers of the elements do; a subnormal norm has few digits",
    ),
    Difference(
        "(c|p)?dist(:.*)?|pairwise_distance.*", UNBOUNDED + "|.* of no dimension|nan in 0", "value|gradient",
        OVERFLOW + "|number",
        "the same of differences; gradients of a row are summed over its pairs in another order",
    ),
    Difference(
        "(cum)?prod:.*", "(nan|-?huge|several|(only )?-?inf) .*", "gradient", "(NaN|infinity) of .*",
        "gradients are products of the other elements; PyTorch divides by the element, and treats zeros on their own",
    ),
    Difference(
        "scatter_reduce:prod.*", "(only )?-?(inf|huge|large|subnormal) .*|several .*", "gradient", OVERFLOW + "|number",
        "PyTorch divides the product by each element, lucid multiplies the others",
    ),
    Difference(
        "istft", "(only )?-?(huge|large) .*|several .*", "value|gradient", OVERFLOW,
        "sums near the largest number overflow in one order and not in the other",
    ),
    Difference(
        "istft", "(only )?nan .*|several .*", "call", "refused",
        "of a window with NaN it is not known whether its squares vanish",
    ),
    Difference(
        "cumprod:zeros:.*", "(only )?-?subnormal .*", "gradient", "number",
        "the same, where the quotient by a subnormal number loses digits",
    ),
    Difference(
        "prod:.*", "(-?huge|several) .*", "value", "(NaN|infinity) of .*",
        "products that overflow before or after they meet a zero",
    ),
    Difference(
        "cumsum:.*|cumulative_trapezoid|adaptive_avg_pool.*", "several .*|(only )?-0 .*", "value", "sign of zero",
        "sums begin with the first element, PyTorch's with 0",
    ),
    Difference(
        "topk.*|kthvalue", "(several|only|-?0) .*", "value|gradient", "whole number|sign of zero|number",
        "of equal elements the first ones are taken; PyTorch does not say which",
    ),
    Difference(
        "sinc", "all pairs|-?(large|subnormal) of .*", "gradient", "number",
        "PyTorch squares the operand, which overflows or vanishes",
    ),
    Difference(
        "hypot", "all pairs|.* of no dimension", "gradient", "(NaN|infinity) of PyTorch|number",
        "the gradient is multiplied by a share of the length; PyTorch multiplies it by the operand first",
    ),
    Difference(
        "xlogy|special.xlog1py", "all pairs|-?0 of .*", "gradient", "(NaN|infinity) of PyTorch",
        "where 0 times an infinite logarithm is 0, so are the gradients",
    ),
    Difference(
        "logit", "all pairs|.* of no dimension", "gradient", "NaN of PyTorch|sign of infinity",
        "outside of [0, 1] the gradient is that of the formula, as of log; at -0 that of log, too",
    ),
    Difference(
        "logit:eps", "all pairs|nan of .*", "gradient", "NaN of PyTorch",
        "at NaN no gradient passes the limits, as in clamp",
    ),
    Difference(
        "signbit", "all pairs|nan of .*", "value", "whole number",
        "a NaN of bfloat16 keeps its sign, where PyTorch's conversion sets it",
    ),
    Difference(
        "ldexp", "all pairs|.* of no dimension", "gradient", OVERFLOW + "|number",
        "the gradient is that of a product and a power, of which PyTorch multiplies the factors in another order",
    ),
    Difference(
        "(scatter|index)_reduce.*", "(nan|several) .*", "gradient", "NaN of PyTorch",
        "the gradient goes to the NaNs, as in amax",
    ),
    Difference(
        "(scatter|index)_reduce.*", "(several|-0) .*", "value", "sign of zero",
        "of 0 and -0 either is the larger",
    ),
    Difference(
        "adjoint", "no dimension", "call", "refused",
        "a matrix has two dimensions",
    ),
    Difference(
        "trapezoid", "(several|(only )?-?inf) .*", "value", "NaN of PyTorch",
        "areas are summed, where PyTorch takes half of both ends from the sum of all samples",
    ),
    Difference(
        "trapezoid:places", "-?huge .*", "value", "infinity of PyTorch",
        "areas are halved before they are summed",
    ),
    Difference(
        "trapezoid.*", "(first|last) size 0", "call", "refused",
        "the integral over no samples requires grad as others do",
    ),
    Difference(
        "logcumsumexp", "(several|(only )?-?0) .*", "value", "sign of zero",
        "the first element stays as it is",
    ),
    Difference(
        "logcumsumexp", "(several|-?(inf|large|huge)) .*", "gradient", "NaN of PyTorch|number",
        "the gradient is that of each sum of two; PyTorch divides exponentials of sums, which lose the digits of small "
        "elements beside large ones",
    ),
    Difference(
        "renorm", "-?huge in 0", "gradient", "NaN of lucid",
        "the gradient of a huge length overflows, and meets its share, which vanishes",
    ),
    Difference(
        "mode", "(nan|several) .*", "value|gradient", "NaN of PyTorch|whole number|number",
        "NaN is greater than all numbers, as in sort; in PyTorch's mode it is smaller",
    ),
    Difference(
        "nanmedian:.*", "several .*", "value", "sign of zero",
        "which of 0 and -0 is in the middle is not said",
    ),
    Difference(
        "multi_head_attention_forward.*", UNBOUNDED, "value|gradient", OVERFLOW + "|sign of infinity|number",
        "products and sums near the largest number overflow, and lose the digits of others, in one order and not in "
        "the other",
    ),
    Difference(
        "interpolate:.*", "(nan|several|(only )?-?inf) .*", "value", "NaN of PyTorch",
        "elements of weight zero are not looked at",
    ),
    Difference(
        "interpolate:.*", "(several|(only )?-0) .*", "value", "sign of zero",
        "they count as 0, so that a sum of -0 is 0",
    ),
    Difference(
        "ctc_loss.*", "(several|(only )?-inf) .*", "gradient", "NaN of PyTorch",
        "what is on no path has no share",
    ),
    Difference(
        "ctc_loss.*", "-?(large|huge) .*", "gradient", "number",
        "beside a huge number sums keep no digits of the others",
    ),
    Difference(
        "grid_sample.*", "(nan|several|(only )?-?inf) in 0", "value|gradient", "NaN of PyTorch",
        "elements of weight zero are not looked at, as in interpolate",
    ),
    Difference(
        "grid_sample.*", "(only )?(-0|subnormal) .*|several .*", "value", "sign of zero",
        "sums of zeros of both signs, in one order and in the other",
    ),
    Difference(
        "grid_sample.*", "-?(large|huge) in 0", "gradient", OVERFLOW + "|number|sign of infinity",
        "differences of large elements are weighed last, or weights first, and sums of both signs overflow to either",
    ),
)  # fmt: skip

# What only kernels do otherwise.
ON_CUDA = (
    Difference(
        r"fft\..*", "(several|nan|-?inf|only -inf) in .*", "value", "NaN of lucid",
        "factors are complex, and where one of their parts is zero, infinity and NaN spread to both parts of a sum",
    ),
    Difference(
        "frexp.*", "all pairs|-?subnormal of .*", "value|gradient", "(whole )?number|infinity of lucid",
        "the parts are read from the bits, which -ftz=true leaves alone",
    ),
    Difference(
        "xlogy|special.xlog1py", "all pairs|-?subnormal of .*", "gradient", "(NaN|infinity) of PyTorch",
        "a subnormal factor is zero, and where 0 times an infinite logarithm is 0, so are the gradients",
    ),
    Difference(
        ATTENTION, UNBOUNDED, "value|gradient", OVERFLOW + "|number",
        "the gradient of a score is a difference of terms that cancel where one weight is 1; times a huge key it shows",
    ),
    Difference(
        "scaled_dot_product_attention:causal", "(nan|several|-?inf|-?huge) in .*", "value|gradient", "NaN of PyTorch",
        "keys that may not be looked at are not read; PyTorch multiplies them by zero",
    ),
    Difference(
        "(layer|rms|group|instance|batch)_norm.*", "-?subnormal in .*", "value", "sign of zero",
        "a product that vanishes, and a shift of zero",
    ),
    Difference(
        "kl_div.*", "(only )?-?subnormal.*", "gradient", "NaN of PyTorch",
        "a subnormal target is zero, where the target's gradient is the limit",
    ),
    Difference(
        "(arg)?sort.*|topk", "-?subnormal.*", "value", "whole number|number",
        "sorts are compiled by CuPy's makers, without -ftz=true, and see subnormal numbers; to topk they equal zeros, "
        "and which of equal elements it takes is not said",
    ),
    Difference(
        "logsigmoid", ".*", "value", "sign of zero", "its exponential vanishes: subnormal float32 are zeros in kernels",
    ),
    Difference(
        "atan2", ".*", "value", "NaN of lucid",
        "of two subnormal numbers, which are zeros in kernels; the simulator's function is the host's, which sees them",
    ),
)  # fmt: skip
