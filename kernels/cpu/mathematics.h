// Functions of float for loops of vectors, on any processor with the same bits. No branches: what is chosen from is computed
// both ways. NaN stays NaN, zeros keep their sign, and nothing that is a subnormal number becomes 0.
//
// Each says its largest error in units in the last place; tests/cpu/test_mathematics.py measures them.

#ifndef LUCID_MATHEMATICS_H
#define LUCID_MATHEMATICS_H

#include "cpu.h"

namespace lucid {

__forceinline__ float within(float x, float least, float most) {
    x = x < least ? least : x;
    return x > most ? most : x;  // NaN is neither
}

// x = k * ln(2) + r with |r| up to ln(2) / 2; the sum with 1.5 * 2^23 has k in its lowest bits. ln(2) in two parts, of
// which the first has zeros at its end, so that its products with k are exact.
struct Reduced {
    float r;
    int k;
};
__forceinline__ Reduced reduced(float x) {
    const float shift = 12582912.0f, sum = x * 1.4426950409f + shift, k = sum - shift;
    return {(x - k * 0.693359375f) + k * 2.12194440e-4f, bits_as<int>(sum) - bits_as<int>(shift)};
}
__forceinline__ float power_of_two(int k) { return bits_as<float>((k + 127) << 23); }

// e^r - 1 - r of |r| up to ln(2) / 2.
__forceinline__ float exponential_rest(float r) {
    const float sum =
        ((((1.9875691e-4f * r + 1.3981999e-3f) * r + 8.3334519e-3f) * r + 4.1665796e-2f) * r + 1.6666665e-1f) * r;
    return (sum + 5.0000001e-1f) * (r * r);
}

// 1.0 units. The power is in two factors, as of large and subnormal results it is no float.
__forceinline__ float exp(float x) {
    const Reduced part = reduced(within(x, -105.0f, 90.0f));
    const int half = part.k >> 1;
    return (1.0f + (part.r + exponential_rest(part.r))) * power_of_two(half) * power_of_two(part.k - half);
}

// e^x - 1 where 2^k is a float.
__forceinline__ float expm1_within(float x) {
    const Reduced part = reduced(x);
    const float power = power_of_two(part.k), rest = part.r + exponential_rest(part.r);
    return (power - 1.0f) + power * rest;
}

// 2 units, and exact above 88.
__forceinline__ float expm1(float x) {
    const float value = expm1_within(within(x, -88.0f, 88.0f));
    return x == 0.0f ? x : x > 88.0f ? exp(x) : value;
}

// 1.6 units; a polynomial near 0, so that nothing is added to what the result is made of.
__forceinline__ float tanh(float x) {
    const float size = within(x < 0.0f ? -x : x, 0.0f, 10.0f), e = expm1_within(2.0f * size), square = size * size;
    const float sum = (((-5.70498872745e-3f * square + 2.06390887954e-2f) * square - 5.37397155531e-2f) * square +
                       1.33314422036e-1f) *
                          square -
                      3.33332819422e-1f;
    const float value = size < 0.625f ? sum * square * size + size : e / (e + 2.0f);
    return x == 0.0f ? x : x < 0.0f ? -value : value;
}

// The logarithm of positive x, as k * ln(2) + log(1 + f), with 1 + f around 1; `lost` is what x lacks of the number that is
// meant, and `near` that number less 1 where k is 0.
__forceinline__ float log_of(float x, float near, float lost) {
    const bool small = x < 1.1754944e-38f;
    const int bits = bits_as<int>(small ? x * 33554432.0f : x), exponent = (bits - 0x3F3504F3) >> 23;
    const float k = (float)(exponent - (small ? 25 : 0));
    const float f = exponent == 0 ? near : bits_as<float>(bits - (exponent << 23)) - 1.0f;
    const float s = f / (f + 2.0f), square = s * s, half = 0.5f * f * f;
    const float sum =
        (((0.24279078841f * square + 0.28498786688f) * square + 0.40000972152f) * square + 0.66666662693f) * square;
    const float rest = exponent == 0 ? 0.0f : lost / x;
    return k * 0.69313812256f - ((half - (s * (half + sum) + (k * 9.0580006145e-6f + rest))) - f);
}
__forceinline__ float logarithm_or_edge(float value, float sum, float x) {
    const bool plain = sum > 0.0f && x <= 3.4028235e38f;
    return plain ? value : x != x ? x : sum == 0.0f ? -INFINITY : sum > 0.0f ? x : NAN;
}

// 1.0 units.
__forceinline__ float log(float x) { return logarithm_or_edge(log_of(x, x - 1.0f, 0.0f), x, x); }

// 1.5 units. What is lost in the sum is that of the smaller operand.
__forceinline__ float log1p(float x) {
    const float sum = 1.0f + x, lost = x > 1.0f ? 1.0f - (sum - x) : x - (sum - 1.0f);
    const float value = logarithm_or_edge(log_of(sum, x, lost), sum, x);
    return x == 0.0f ? x : value;
}

// 5 units. Twice the share above x * sqrt(2) of the normal distribution times exp(x^2) is a rational function, a
// least-maximum fit of relative error 6e-9; the square is that of a part of x, which is exact, and the rest.
__forceinline__ float erfc_above(float size) {
    const float numerator_k[5] = {48.371287570937234f, 42.421246296940694f, 17.741076212967986f, 3.9358347325342566f,
                                  0.39894683696267763f};
    const float denominator_k[5] = {96.74257456331254f, 162.03194037235957f, 116.39318017528724f, 45.455914852557946f,
                                    9.866291714807996f};
    const float x = size * 1.41421356f, part = bits_as<float>(bits_as<int>(size) & ~0xFFF);
    float p = numerator_k[4], q = x + denominator_k[4];
    for (int k = 3; k >= 0; --k) p = p * x + numerator_k[k];
    for (int k = 3; k >= 0; --k) q = q * x + denominator_k[k];
    return 2.0f * p / q * exp((part - size) * (part + size)) * exp(-(part * part));
}
__forceinline__ float erfc(float x) {
    const float above = erfc_above(within(x < 0.0f ? -x : x, 0.0f, 12.0f));
    return x != x ? x : x < 0.0f ? 2.0f - above : above;
}
// 3 units.
__forceinline__ float erf(float x) {
    const float size = within(x < 0.0f ? -x : x, 0.0f, 12.0f), square = size * size;
    float sum = -1.0f / 75600;
    const float inverse_k[7] = {1.0f / 9360, -1.0f / 1320, 1.0f / 216, -1.0f / 42, 1.0f / 10, -1.0f / 3, 1.0f};
    for (int k = 0; k < 7; ++k) sum = sum * square + inverse_k[k];
    const float value = size < 0.5f ? sum * size * 1.1283791670955126f : 1.0f - erfc_above(size);
    return x != x || x == 0.0f ? x : x < 0.0f ? -value : value;
}

__forceinline__ float sqrt(float x) { return __builtin_sqrtf(x); }
__forceinline__ float fabs(float x) { return __builtin_fabsf(x); }
__forceinline__ float floor(float x) { return __builtin_floorf(x); }
__forceinline__ float ceil(float x) { return __builtin_ceilf(x); }
__forceinline__ float trunc(float x) { return __builtin_truncf(x); }
__forceinline__ float rint(float x) { return __builtin_rintf(x); }
__forceinline__ float copysign(float x, float y) { return __builtin_copysignf(x, y); }

// NaN if either is; the first of equal ones.
template <class A> __forceinline__ A larger(A a, A b) { return a >= b || a != a ? a : b; }
template <class A> __forceinline__ A smaller(A a, A b) { return a <= b || a != a ? a : b; }

}  // namespace lucid

#endif  // LUCID_MATHEMATICS_H
