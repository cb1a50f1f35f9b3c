// exp for loops of vectors: of floats, by a polynomial in double, so that nearly every result is the float next to it.

#ifndef LUCID_EXPONENTIAL_H
#define LUCID_EXPONENTIAL_H

#include "cpu.h"

namespace lucid {

// a * b + c, rounded once where the processor can
inline double fused(double a, double b, double c) {
#ifdef __FMA__
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

// exp(x) = 2^k exp(r) with |r| <= log(2)/2: infinite, 0 and NaN as of exp.
__forceinline__ float exp_of(float x) {
    // beyond these every result is infinite, or 0; NaN stays
    const float below = x > 89.0f ? 89.0f : x;
    const double d = below < -104.0f ? -104.0f : below;
    // adding 1.5 * 2^52 rounds to a whole number, in the last bits
    const double shifted = fused(d, 1.4426950408889634, 6755399441055744.0);
    const double r = fused(shifted - 6755399441055744.0, -0.6931471805599453, d);
    // minimax on that range, off by 4e-11
    double sum = 0.00019775172844511637;
    sum = fused(sum, r, 0.001394818343277658);
    sum = fused(sum, r, 0.0083335610882659);
    sum = fused(sum, r, 0.04166622542396302);
    sum = fused(sum, r, 0.16666665126144442);
    sum = fused(sum, r, 0.5000000104536754);
    sum = fused(sum, r, 1.0000000002430964);
    sum = fused(sum, r, 0.9999999999616817);
    // to the exponent, which of NaN stays as it is: its last bits are 0
    return (float)bits_as<double>(bits_as<unsigned long long>(sum) + (bits_as<unsigned long long>(shifted) << 52));
}

}  // namespace lucid

#endif  // LUCID_EXPONENTIAL_H
