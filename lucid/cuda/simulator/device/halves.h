// The half types. Their arithmetic is float arithmetic rounded once, as on the device.
#pragma once

namespace lucid_simulator {
inline unsigned short bfloat16_bits(float value) {
    const unsigned word = bits<unsigned>(value);
    if (value != value) return 0x7fff;
    return (unsigned short)((word + 0x7fff + (word >> 16 & 1)) >> 16);
}
inline float bfloat16_value(unsigned short word) { return bits<float>((unsigned)word << 16); }

// Odd rounding keeps the second rounding, to bfloat16, correct.
inline unsigned short bfloat16_bits(double value) {
    float rounded = (float)value;
    unsigned word = bits<unsigned>(rounded);
    if (rounded == rounded && (double)rounded != value && (word & 1) == 0) {
        const bool outwards = (value < 0 ? -(double)rounded : (double)rounded) < (value < 0 ? -value : value);
        rounded = bits<float>(outwards ? word + 1 : word - 1);
    }
    return bfloat16_bits(rounded);
}
// A double for a whole number: what does not fit is kept in its last bit.
inline double oddly(__int128 x) {
    int shift = 0;
    while (x >> 52 > 0 || x >> 52 < -1) x = x >> 1 | (x & 1), ++shift;
    return __builtin_ldexp((double)x, shift);
}
// The negative zero is less than the other.
inline float least(float a, float b) { return a == b ? (__builtin_signbit(a) ? a : b) : __builtin_fminf(a, b); }
}  // namespace lucid_simulator

struct __half_raw {
    unsigned short x;
};

struct __half {
    _Float16 value;
    __half() = default;
    __half(__half_raw raw) : value(lucid_simulator::bits<_Float16>(raw.x)) {}
    operator __half_raw() const { return {lucid_simulator::bits<unsigned short>(value)}; }
    template <class T, class = typename lucid_simulator::Arithmetic<T>::type>
    __half(T from) : value((_Float16)from) {}
    operator float() const { return (float)value; }
};

struct __nv_bfloat16 {
    unsigned short word;
    __nv_bfloat16() = default;
    template <class T, class = typename lucid_simulator::Arithmetic<T>::type>
    __nv_bfloat16(T from) : word(lucid_simulator::bfloat16_bits(lucid_simulator::oddly((__int128)from))) {}
    __nv_bfloat16(float from) : word(lucid_simulator::bfloat16_bits(from)) {}
    __nv_bfloat16(double from) : word(lucid_simulator::bfloat16_bits(from)) {}
    operator float() const { return lucid_simulator::bfloat16_value(word); }
};

typedef __half half;
typedef __nv_bfloat16 nv_bfloat16;
#define LUCID_PAIR(T, Pair)                          \
    struct alignas(4) Pair {                         \
        T x, y;                                      \
        Pair() = default;                            \
        Pair(T low, T high) : x(low), y(high) {}     \
    };
LUCID_PAIR(__half, __half2)
LUCID_PAIR(__nv_bfloat16, __nv_bfloat162)
#undef LUCID_PAIR
typedef __half2 half2;
typedef __nv_bfloat162 nv_bfloat162;

#define LUCID_HALF_ARITHMETIC(T, Pair, name, name2, sign)                                            \
    inline T operator sign(T a, T b) { return T((float)a sign (float)b); }                           \
    inline T& operator sign##=(T& a, T b) { return a = a sign b; }                                   \
    inline T name(T a, T b) { return a sign b; }                                                     \
    inline Pair name2(Pair a, Pair b) { return {a.x sign b.x, a.y sign b.y}; }                       \
    inline Pair operator sign(Pair a, Pair b) { return name2(a, b); }                                \
    inline Pair& operator sign##=(Pair& a, Pair b) { return a = a sign b; }
// Comparisons; of pairs: 1 or 0 for each part, and whether it holds for both
#define LUCID_HALF_COMPARED(T, Pair, name, sign)                                                     \
    inline bool operator sign(T a, T b) { return (float)a sign (float)b; }                           \
    inline bool __h##name(T a, T b) { return a sign b; }                                             \
    inline Pair __h##name##2(Pair a, Pair b) { return {T(float(a.x sign b.x)), T(float(a.y sign b.y))}; } \
    inline bool __hb##name##2(Pair a, Pair b) { return a.x sign b.x && a.y sign b.y; }               \
    inline bool operator sign(Pair a, Pair b) { return __hb##name##2(a, b); }
#define LUCID_HALF_OPERATORS(T, Pair)                                                                \
    LUCID_HALF_ARITHMETIC(T, Pair, __hadd, __hadd2, +)                                               \
    LUCID_HALF_ARITHMETIC(T, Pair, __hsub, __hsub2, -)                                               \
    LUCID_HALF_ARITHMETIC(T, Pair, __hmul, __hmul2, *)                                               \
    LUCID_HALF_ARITHMETIC(T, Pair, __hdiv, __h2div, /)                                               \
    LUCID_HALF_COMPARED(T, Pair, eq, ==)                                                             \
    LUCID_HALF_COMPARED(T, Pair, ne, !=)                                                             \
    LUCID_HALF_COMPARED(T, Pair, lt, <)                                                              \
    LUCID_HALF_COMPARED(T, Pair, le, <=)                                                             \
    LUCID_HALF_COMPARED(T, Pair, gt, >)                                                              \
    LUCID_HALF_COMPARED(T, Pair, ge, >=)                                                             \
    inline T operator-(T a) { return T(-(float)a); }                                                 \
    inline T operator+(T a) { return a; }                                                            \
    inline T& operator++(T& a) { return a = a + T(1.0f); }                                           \
    inline T& operator--(T& a) { return a = a - T(1.0f); }                                           \
    inline T operator++(T& a, int) { const T before = a; ++a; return before; }                       \
    inline T operator--(T& a, int) { const T before = a; --a; return before; }                       \
    inline Pair operator-(Pair a) { return {-a.x, -a.y}; }                                           \
    inline Pair operator+(Pair a) { return a; }                                                      \
    inline T __hneg(T a) { return -a; }                                                              \
    inline Pair __hneg2(Pair a) { return -a; }                                                       \
    inline T __habs(T a) { return T(__builtin_fabsf((float)a)); }                                    \
    inline Pair __habs2(Pair a) { return {__habs(a.x), __habs(a.y)}; }                               \
    inline T __hmin(T a, T b) { return T(lucid_simulator::least((float)a, (float)b)); }              \
    inline Pair __hmin2(Pair a, Pair b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }             \
    inline T __hmax(T a, T b) { return T(-lucid_simulator::least(-(float)a, -(float)b)); }           \
    inline Pair __hmax2(Pair a, Pair b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }             \
    inline T __hfma(T a, T b, T c) { return T((double)(float)a * (float)b + (float)c); }             \
    inline Pair __hfma2(Pair a, Pair b, Pair c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
    inline bool __hisnan(T a) { return (float)a != (float)a; }                                       \
    inline int __hisinf(T a) { return __builtin_isinf_sign((float)a); }
LUCID_HALF_OPERATORS(__half, __half2)
LUCID_HALF_OPERATORS(__nv_bfloat16, __nv_bfloat162)
#undef LUCID_HALF_OPERATORS
#undef LUCID_HALF_COMPARED
#undef LUCID_HALF_ARITHMETIC

#define LUCID_HALF_FUNCTION(T, Pair, name, result)                                          \
    inline T h##name(T a) { const float x = (float)a; return T(result); }                    \
    inline Pair h2##name(Pair a) { return {h##name(a.x), h##name(a.y)}; }
#define LUCID_HALF_FUNCTIONS(T, Pair)                                    \
    LUCID_HALF_FUNCTION(T, Pair, sqrt, __builtin_sqrtf(x))               \
    LUCID_HALF_FUNCTION(T, Pair, rsqrt, 1.0 / __builtin_sqrt((double)x)) \
    LUCID_HALF_FUNCTION(T, Pair, rcp, 1.0f / x)                          \
    LUCID_HALF_FUNCTION(T, Pair, exp, __builtin_expf(x))                 \
    LUCID_HALF_FUNCTION(T, Pair, exp2, __builtin_exp2f(x))               \
    LUCID_HALF_FUNCTION(T, Pair, exp10, exp10((double)x))                \
    LUCID_HALF_FUNCTION(T, Pair, log, __builtin_logf(x))                 \
    LUCID_HALF_FUNCTION(T, Pair, log2, __builtin_log2f(x))               \
    LUCID_HALF_FUNCTION(T, Pair, log10, __builtin_log10f(x))             \
    LUCID_HALF_FUNCTION(T, Pair, sin, __builtin_sinf(x))                 \
    LUCID_HALF_FUNCTION(T, Pair, cos, __builtin_cosf(x))                 \
    LUCID_HALF_FUNCTION(T, Pair, tanh, __builtin_tanhf(x))               \
    LUCID_HALF_FUNCTION(T, Pair, ceil, __builtin_ceilf(x))               \
    LUCID_HALF_FUNCTION(T, Pair, floor, __builtin_floorf(x))             \
    LUCID_HALF_FUNCTION(T, Pair, rint, __builtin_rintf(x))               \
    LUCID_HALF_FUNCTION(T, Pair, trunc, __builtin_truncf(x))
LUCID_HALF_FUNCTIONS(__half, __half2)
LUCID_HALF_FUNCTIONS(__nv_bfloat16, __nv_bfloat162)
#undef LUCID_HALF_FUNCTIONS
#undef LUCID_HALF_FUNCTION

#define LUCID_HALF_CONVERSIONS(half, T, Pair)                                                        \
    inline float __##half##2float(T a) { return (float)a; }                                          \
    inline T __float2##half(float a) { return T(a); }                                                \
    inline T __float2##half##_rn(float a) { return T(a); }                                           \
    inline T __double2##half(double a) { return T(a); }                                              \
    inline unsigned short __##half##_as_ushort(T a) { return lucid_simulator::bits<unsigned short>(a); } \
    inline T __ushort_as_##half(unsigned short a) { return lucid_simulator::bits<T>(a); }            \
    inline short __##half##_as_short(T a) { return lucid_simulator::bits<short>(a); }                \
    inline T __short_as_##half(short a) { return lucid_simulator::bits<T>(a); }                      \
    inline Pair __##half##2##half##2(T a) { return {a, a}; }                                         \
    inline Pair __halves2##half##2(T a, T b) { return {a, b}; }                                      \
    inline Pair __float2##half##2_rn(float a) { return {T(a), T(a)}; }                               \
    inline Pair __floats2##half##2_rn(float a, float b) { return {T(a), T(b)}; }                     \
    inline Pair __float22##half##2_rn(float2 a) { return {T(a.x), T(a.y)}; }                         \
    inline float2 __##half##22float2(Pair a) { return {(float)a.x, (float)a.y}; }                    \
    inline auto __low2##half(Pair a) { return a.x; }                                                 \
    inline auto __high2##half(Pair a) { return a.y; }                                                \
    inline float __low2float(Pair a) { return (float)a.x; }                                          \
    inline float __high2float(Pair a) { return (float)a.y; }                                         \
    inline Pair __low2##half##2(Pair a) { return {a.x, a.x}; }                                       \
    inline Pair __high2##half##2(Pair a) { return {a.y, a.y}; }                                      \
    inline Pair __lows2##half##2(Pair a, Pair b) { return {a.x, b.x}; }                              \
    inline Pair __highs2##half##2(Pair a, Pair b) { return {a.y, b.y}; }                             \
    inline Pair __lowhigh2highlow(Pair a) { return {a.y, a.x}; }
LUCID_HALF_CONVERSIONS(half, __half, __half2)
LUCID_HALF_CONVERSIONS(bfloat16, __nv_bfloat16, __nv_bfloat162)
#undef LUCID_HALF_CONVERSIONS
inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }

// Conversions between a half type and integers, of four roundings; to integers they saturate.
#define LUCID_HALF_AND_INTEGER(half, T, name, Integer)                                                   \
    inline T __##name##2##half##_rn(Integer x) { return T(x); }                                          \
    inline Integer __##half##2##name##_rn(T x) { return (Integer)__float2##name##_rn((float)x); }        \
    inline Integer __##half##2##name##_rz(T x) { return (Integer)__float2##name##_rz((float)x); }        \
    inline Integer __##half##2##name##_rd(T x) { return (Integer)__float2##name##_rd((float)x); }        \
    inline Integer __##half##2##name##_ru(T x) { return (Integer)__float2##name##_ru((float)x); }
LUCID_HALF_AND_INTEGER(half, __half, int, int)
LUCID_HALF_AND_INTEGER(half, __half, uint, unsigned)
LUCID_HALF_AND_INTEGER(half, __half, ll, long long)
LUCID_HALF_AND_INTEGER(half, __half, ull, unsigned long long)
LUCID_HALF_AND_INTEGER(bfloat16, __nv_bfloat16, int, int)
LUCID_HALF_AND_INTEGER(bfloat16, __nv_bfloat16, uint, unsigned)
LUCID_HALF_AND_INTEGER(bfloat16, __nv_bfloat16, ll, long long)
LUCID_HALF_AND_INTEGER(bfloat16, __nv_bfloat16, ull, unsigned long long)
#undef LUCID_HALF_AND_INTEGER
