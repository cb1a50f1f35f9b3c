// Random numbers from Philox4x32-10: the device twin of lucid/base/random/philox.py, random.py and inverse_normal.py.
//
// Word i of the stream of `seed` at `offset`, with c = (offset + i / 4) mod 2^64:
//     block_l = philox4x32_10(counter = (c mod 2^32, c / 2^32, 0, 0), key = (seed mod 2^32, seed / 2^32))
//     word(i) = block_l[i mod 4]
// Value i of a draw with one word a value (float32, half types, bernoulli) takes word i; with two words a value
// (float64, integers) it takes words 2i and 2i + 1, the first being the low half: word64_at. A draw of n values with w
// words each advances the generator's offset by ceil(w * n / 4), whatever the launch shape; a thread that makes four
// values from one philox_block makes the same ones as four threads with word_at.
//
// Bitwise equal to the array code: every floating-point operation is a single IEEE one, written with the _rn
// intrinsics so that none is contracted into a fused multiply-add, in the same order as there. Change both together.
//
// Device functions only: no launch, no shared memory. Axes: l = lane of a block (4), k = coefficient (8), lowest first.
//
// Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3. SC 2011.
// Wichura: Algorithm AS 241: the percentage points of the normal distribution. Applied Statistics 37 (1988), 477-484.

#ifndef LUCID_PHILOX_CUH
#define LUCID_PHILOX_CUH

namespace lucid {

typedef unsigned int Word;
typedef unsigned long long Word64;

struct PhiloxBlock {
    Word lane_l[4];
};

// ---- bits ----

__device__ __forceinline__ PhiloxBlock philox4x32_10(PhiloxBlock counter, Word64 seed) {
    Word c0 = counter.lane_l[0], c1 = counter.lane_l[1], c2 = counter.lane_l[2], c3 = counter.lane_l[3];
    Word key0 = (Word)seed, key1 = (Word)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const Word upper0 = __umulhi(0xD2511F53u, c0), lower0 = 0xD2511F53u * c0;
        const Word upper1 = __umulhi(0xCD9E8D57u, c2), lower1 = 0xCD9E8D57u * c2;
        c0 = upper1 ^ c1 ^ key0;
        c1 = lower1;
        c2 = upper0 ^ c3 ^ key1;
        c3 = lower0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return PhiloxBlock{{c0, c1, c2, c3}};
}

// The four words of the block at `offset`.
__device__ __forceinline__ PhiloxBlock philox_block(Word64 seed, Word64 offset) {
    return philox4x32_10(PhiloxBlock{{(Word)offset, (Word)(offset >> 32), 0u, 0u}}, seed);
}

__device__ __forceinline__ Word word_at(Word64 seed, Word64 offset, Word64 i) {
    const PhiloxBlock block = philox_block(seed, offset + i / 4);
    // Selected rather than indexed: an index known only at run time would put the block into local memory.
    const Word even = i & 2 ? block.lane_l[2] : block.lane_l[0];
    const Word odd = i & 2 ? block.lane_l[3] : block.lane_l[1];
    return i & 1 ? odd : even;
}

// 64-bit word i of a block, i being 0 or 1: its words 2i (low half) and 2i + 1.
__device__ __forceinline__ Word64 word64_of(PhiloxBlock block, int i) {
    const Word low = i ? block.lane_l[2] : block.lane_l[0];
    const Word high = i ? block.lane_l[3] : block.lane_l[1];
    return (Word64)high << 32 | low;
}

__device__ __forceinline__ Word64 word64_at(Word64 seed, Word64 offset, Word64 i) {
    return word64_of(philox_block(seed, offset + i / 2), (int)(i & 1));
}

// ---- uniform: start + k / 2^bits * span, never above last ----
// k / 2^bits is exact, span = high - low; last = the largest value of the output dtype below high.

// bits: 24 for float32, 11 for float16, 8 for bfloat16; half types are rounded from this result.
__device__ __forceinline__ float uniform_float(Word word, int bits, float start, float span, float last) {
    const float share = __fmul_rn((float)(word >> (32 - bits)), 1.0f / (float)(1 << bits));
    const float value = __fadd_rn(__fmul_rn(share, span), start);
    return value < last ? value : last;
}

__device__ __forceinline__ double uniform_double(Word64 word, double start, double span, double last) {
    const double share = __dmul_rn((double)(word >> 11), 1.0 / 9007199254740992.0);
    const double value = __dadd_rn(__dmul_rn(share, span), start);
    return value < last ? value : last;
}

// True with probability threshold / 2^32, threshold = round(p * 2^32) in [0, 2^32].
__device__ __forceinline__ bool bernoulli(Word word, Word64 threshold) { return word < threshold; }

// low + floor(word * count / 2^64), count = high - low, with 0 standing for 2^64.
__device__ __forceinline__ long long random_integer(Word64 word, long long low, Word64 count) {
    return (long long)((Word64)low + (count ? __umul64hi(word, count) : word));
}

// ---- normal and exponential, in float64 ----

// u - 1/2, exact, for u = (k + 1/2) / 2^32.
__device__ __forceinline__ double centred(Word word) {
    return __dmul_rn(__dadd_rn((double)word, 0.5 - 2147483648.0), 1.0 / 4294967296.0);
}

// u - 1/2, exact, for u = (k + 1/2) / 2^52, k the upper bits.
__device__ __forceinline__ double centred(Word64 word) {
    return __dmul_rn(__dadd_rn((double)(word >> 12), 0.5 - 2251799813685248.0), 1.0 / 4503599627370496.0);
}

__device__ __forceinline__ double horner(double x, const double* coefficient_k, int count) {
    double value = __dmul_rn(x, coefficient_k[count - 1]);
#pragma unroll
    for (int k = count - 2; k > 0; --k) value = __dmul_rn(__dadd_rn(value, coefficient_k[k]), x);
    return __dadd_rn(value, coefficient_k[0]);
}

__device__ __forceinline__ double rational(double x, const double* numerator_k, const double* denominator_k) {
    return __ddiv_rn(horner(x, numerator_k, 8), horner(x, denominator_k, 8));
}

// -log(x) for normal positive x: x = 2^k z, z in [sqrt(1/2), sqrt(2)), log z = 2 atanh(s), s = (z - 1) / (z + 1).
__device__ __forceinline__ double minus_log(double x) {
    const double series_k[10] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                                 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
    const long long bits = __double_as_longlong(x);
    const long long exponent = (bits - 0x3FE6A09E667F3BCDLL) >> 52;  // bits of sqrt(1/2)
    const double f = __dadd_rn(__longlong_as_double(bits - exponent * (1LL << 52)), -1.0);
    const double k = (double)exponent;
    const double s = __ddiv_rn(f, __dadd_rn(f, 2.0));
    const double square = __dmul_rn(s, s);
    double value = __dmul_rn(__dmul_rn(horner(square, series_k, 10), square), s);
    value = __dadd_rn(value, __dmul_rn(k, 5.497923018708371e-14));  // log 2 = the sum of these two constants
    value = __dadd_rn(value, __dadd_rn(s, s));
    value = __dadd_rn(value, __dmul_rn(k, 0.6931471805598903));
    return -value;
}

// The quantile of the normal distribution at 1/2 + q, q not 0: PPND16 of AS 241, of |q| up to `CENTRAL` and beyond.

constexpr double CENTRAL = 0.425;

__device__ __forceinline__ double inverse_normal_central(double q) {
    const double central_numerator_k[8] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                                           1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                                           3.3430575583588128105e4, 2.5090809287301226727e3};
    const double central_denominator_k[8] = {1.0,
                                             4.2313330701600911252e1,
                                             6.8718700749205790830e2,
                                             5.3941960214247511077e3,
                                             2.1213794301586595867e4,
                                             3.9307895800092710610e4,
                                             2.8729085735721942674e4,
                                             5.2264952788528545610e3};
    const double r = __dadd_rn(0.180625, -__dmul_rn(q, q));
    return __dmul_rn(rational(r, central_numerator_k, central_denominator_k), q);
}

// FAR: whether q may be nearer to 1/2 than exp(-25), as of no word of 32 bits.
template <bool FAR = true> __device__ __forceinline__ double inverse_normal_tail(double q) {
    const double tail_numerator_k[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                        3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                        2.27238449892691845833e-2, 7.74545014278341407640e-4};
    const double tail_denominator_k[8] = {1.0,
                                          2.05319162663775882187e0,
                                          1.67638483018380384940e0,
                                          6.89767334985100004550e-1,
                                          1.48103976427480074590e-1,
                                          1.51986665636164571966e-2,
                                          5.47593808499534494600e-4,
                                          1.05075007164441684324e-9};
    const double far_numerator_k[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                       2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                       2.71155556874348757815e-5, 2.01033439929228813265e-7};
    const double far_denominator_k[8] = {1.0,
                                         5.99832206555887937690e-1,
                                         1.36929880922735805310e-1,
                                         1.48753612908506148525e-2,
                                         7.86869131145613259100e-4,
                                         1.84631831751005468180e-5,
                                         1.42151175831644588870e-7,
                                         2.04426310338993978564e-15};
    const double distance = q < 0.0 ? -q : q;
    const double r = __dsqrt_rn(minus_log(__dadd_rn(0.5, -distance)));
    const double value = FAR && r > 5.0 ? rational(__dadd_rn(r, -5.0), far_numerator_k, far_denominator_k)
                                        : rational(__dadd_rn(r, -1.6), tail_numerator_k, tail_denominator_k);
    return q < 0.0 ? -value : value;
}

__device__ __forceinline__ bool is_central(double q) { return q <= CENTRAL && q >= -CENTRAL; }

// Z with P(normal <= Z) = 1/2 + q, for q in (-1/2, 1/2) not 0.
__device__ __forceinline__ double inverse_normal(double q) {
    return is_central(q) ? inverse_normal_central(q) : inverse_normal_tail(q);
}

// Of a word of either size. float32 outputs are the result rounded once; half types are rounded from that float32.

template <typename AnyWord> __device__ __forceinline__ double normal(AnyWord word, double mean, double std) {
    return __dadd_rn(__dmul_rn(inverse_normal(centred(word)), std), mean);
}

template <typename AnyWord> __device__ __forceinline__ double exponential(AnyWord word, double rate) {
    return __ddiv_rn(minus_log(__dadd_rn(centred(word), 0.5)), rate);
}

}  // namespace lucid

#endif  // LUCID_PHILOX_CUH
