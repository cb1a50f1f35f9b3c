// Arithmetic and conversions under one of the four roundings: to nearest, to zero, up, down.
#pragma once

namespace lucid_simulator {
// The field of rounding in the processor's control register.
enum Rounding { rn = 0x0000, rd = 0x2000, ru = 0x4000, rz = 0x6000 };

class Rounded {
    const unsigned before = __builtin_ia32_stmxcsr();

   public:
    explicit Rounded(Rounding rounding) { __builtin_ia32_ldmxcsr((before & ~0x6000u) | rounding); }
    ~Rounded() { __builtin_ia32_ldmxcsr(before); }
};
}  // namespace lucid_simulator

// Volatile, because g++ knows nothing of the register, and would compute before it is set.
#define LUCID_UNDER(rounding, T, expression)                                      \
    {                                                                             \
        const lucid_simulator::Rounded rounded(lucid_simulator::rounding);        \
        volatile T result = expression;                                           \
        return result;                                                            \
    }
#define LUCID_ARITHMETIC_UNDER(rounding, T, p, fused, fma, sqrt)                                                         \
    LUCID_FUNCTION T __##p##add_##rounding(volatile T a, volatile T b) LUCID_UNDER(rounding, T, a + b)              \
    LUCID_FUNCTION T __##p##sub_##rounding(volatile T a, volatile T b) LUCID_UNDER(rounding, T, a - b)              \
    LUCID_FUNCTION T __##p##mul_##rounding(volatile T a, volatile T b) LUCID_UNDER(rounding, T, a * b)              \
    LUCID_FUNCTION T __##p##div_##rounding(volatile T a, volatile T b) LUCID_UNDER(rounding, T, a / b)              \
    LUCID_FUNCTION T __##p##rcp_##rounding(volatile T a) LUCID_UNDER(rounding, T, (T)1 / a)                         \
    LUCID_FUNCTION T __##p##sqrt_##rounding(volatile T a) LUCID_UNDER(rounding, T, sqrt(a))                         \
    LUCID_FUNCTION T fused##_##rounding(volatile T a, volatile T b, volatile T c) LUCID_UNDER(rounding, T, fma(a, b, c))
#define LUCID_CONVERSION_UNDER(rounding, From, from, To, to) \
    LUCID_FUNCTION To __##from##2##to##_##rounding(volatile From x) LUCID_UNDER(rounding, To, (To)x)
#define LUCID_ALL_UNDER(rounding)                                                                        \
    LUCID_ARITHMETIC_UNDER(rounding, float, f, __fmaf, __builtin_fmaf, __builtin_sqrtf)                  \
    LUCID_ARITHMETIC_UNDER(rounding, double, d, __fma, __builtin_fma, __builtin_sqrt)                    \
    LUCID_CONVERSION_UNDER(rounding, int, int, float, float)                                             \
    LUCID_CONVERSION_UNDER(rounding, unsigned, uint, float, float)                                       \
    LUCID_CONVERSION_UNDER(rounding, long long, ll, float, float)                                        \
    LUCID_CONVERSION_UNDER(rounding, unsigned long long, ull, float, float)                              \
    LUCID_CONVERSION_UNDER(rounding, long long, ll, double, double)                                      \
    LUCID_CONVERSION_UNDER(rounding, unsigned long long, ull, double, double)                            \
    LUCID_CONVERSION_UNDER(rounding, double, double, float, float)
LUCID_ALL_UNDER(rn)
LUCID_ALL_UNDER(rz)
LUCID_ALL_UNDER(ru)
LUCID_ALL_UNDER(rd)
LUCID_CONVERSION_UNDER(rn, int, int, double, double)
LUCID_CONVERSION_UNDER(rn, unsigned, uint, double, double)
#undef LUCID_ALL_UNDER
#undef LUCID_CONVERSION_UNDER
#undef LUCID_ARITHMETIC_UNDER
#undef LUCID_UNDER
LUCID_FUNCTION float __frsqrt_rn(float x) { return (float)(1.0 / __builtin_sqrt((double)x)); }

// Conversions to integers saturate. They take NaN to zero, but to the highest bit from 64 bits or to them.
namespace lucid_simulator {
template <class To, class From> inline To saturated(From x, To low, To high) {
    if (x != x) return sizeof(To) == 8 || sizeof(From) == 8 ? (To)(1ull << (8 * sizeof(To) - 1)) : 0;
    return x <= (double)low ? low : x >= (double)high ? high : (To)x;
}
}  // namespace lucid_simulator
#define LUCID_CONVERSIONS(from, From, name, To, low, high)                                                        \
    LUCID_FUNCTION To __##from##2##name##_rn(From x) { return lucid_simulator::saturated<To>((From)__builtin_rint(x), low, high); }  \
    LUCID_FUNCTION To __##from##2##name##_rz(From x) { return lucid_simulator::saturated<To>((From)__builtin_trunc(x), low, high); } \
    LUCID_FUNCTION To __##from##2##name##_rd(From x) { return lucid_simulator::saturated<To>((From)__builtin_floor(x), low, high); } \
    LUCID_FUNCTION To __##from##2##name##_ru(From x) { return lucid_simulator::saturated<To>((From)__builtin_ceil(x), low, high); }
#define LUCID_CONVERSIONS_FROM(from, From)                                                            \
    LUCID_CONVERSIONS(from, From, int, int, -__INT_MAX__ - 1, __INT_MAX__)                            \
    LUCID_CONVERSIONS(from, From, uint, unsigned, 0u, ~0u)                                            \
    LUCID_CONVERSIONS(from, From, ll, long long, -__LONG_LONG_MAX__ - 1, __LONG_LONG_MAX__)           \
    LUCID_CONVERSIONS(from, From, ull, unsigned long long, 0ull, ~0ull)
LUCID_CONVERSIONS_FROM(float, float)
LUCID_CONVERSIONS_FROM(double, double)
#undef LUCID_CONVERSIONS_FROM
#undef LUCID_CONVERSIONS

LUCID_FUNCTION int __float_as_int(float x) { return lucid_simulator::bits<int>(x); }
LUCID_FUNCTION unsigned __float_as_uint(float x) { return lucid_simulator::bits<unsigned>(x); }
LUCID_FUNCTION float __int_as_float(int x) { return lucid_simulator::bits<float>(x); }
LUCID_FUNCTION float __uint_as_float(unsigned x) { return lucid_simulator::bits<float>(x); }
LUCID_FUNCTION long long __double_as_longlong(double x) { return lucid_simulator::bits<long long>(x); }
LUCID_FUNCTION double __longlong_as_double(long long x) { return lucid_simulator::bits<double>(x); }
LUCID_FUNCTION int __double2hiint(double x) { return (int)(lucid_simulator::bits<long long>(x) >> 32); }
LUCID_FUNCTION int __double2loint(double x) { return (int)lucid_simulator::bits<long long>(x); }
LUCID_FUNCTION double __hiloint2double(int high, int low) {
    return lucid_simulator::bits<double>((unsigned long long)(unsigned)high << 32 | (unsigned)low);
}
