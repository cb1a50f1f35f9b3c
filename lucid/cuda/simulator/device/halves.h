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
struct alignas(4) __half2 {
    __half x, y;
    __half2() = default;
    __half2(__half low, __half high) : x(low), y(high) {}
};
struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
    __nv_bfloat162() = default;
    __nv_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) : x(low), y(high) {}
};
typedef __half2 half2;
typedef __nv_bfloat162 nv_bfloat162;

#define LUCID_HALF_OPERATORS(T)                                                             \
    inline T operator+(T a, T b) { return T((float)a + (float)b); }                         \
    inline T operator-(T a, T b) { return T((float)a - (float)b); }                         \
    inline T operator*(T a, T b) { return T((float)a * (float)b); }                         \
    inline T operator/(T a, T b) { return T((float)a / (float)b); }                         \
    inline T operator-(T a) { return T(-(float)a); }                                        \
    inline T operator+(T a) { return a; }                                                   \
    inline T& operator+=(T& a, T b) { return a = a + b; }                                   \
    inline T& operator-=(T& a, T b) { return a = a - b; }                                   \
    inline T& operator*=(T& a, T b) { return a = a * b; }                                   \
    inline T& operator/=(T& a, T b) { return a = a / b; }                                   \
    inline T& operator++(T& a) { return a = a + T(1.0f); }                                  \
    inline T& operator--(T& a) { return a = a - T(1.0f); }                                  \
    inline T operator++(T& a, int) { const T before = a; ++a; return before; }              \
    inline T operator--(T& a, int) { const T before = a; --a; return before; }              \
    inline bool operator==(T a, T b) { return (float)a == (float)b; }                       \
    inline bool operator!=(T a, T b) { return (float)a != (float)b; }                       \
    inline bool operator<(T a, T b) { return (float)a < (float)b; }                         \
    inline bool operator>(T a, T b) { return (float)a > (float)b; }                         \
    inline bool operator<=(T a, T b) { return (float)a <= (float)b; }                       \
    inline bool operator>=(T a, T b) { return (float)a >= (float)b; }                       \
    inline T __hadd(T a, T b) { return a + b; }                                             \
    inline T __hsub(T a, T b) { return a - b; }                                             \
    inline T __hmul(T a, T b) { return a * b; }                                             \
    inline T __hdiv(T a, T b) { return a / b; }                                             \
    inline T __hneg(T a) { return -a; }                                                     \
    inline T __habs(T a) { return T(__builtin_fabsf((float)a)); }                           \
    inline T __hfma(T a, T b, T c) { return T((double)(float)a * (float)b + (float)c); }    \
    inline bool __heq(T a, T b) { return a == b; }                                          \
    inline bool __hne(T a, T b) { return a != b; }                                          \
    inline bool __hlt(T a, T b) { return a < b; }                                           \
    inline bool __hle(T a, T b) { return a <= b; }                                          \
    inline bool __hgt(T a, T b) { return a > b; }                                           \
    inline bool __hge(T a, T b) { return a >= b; }                                          \
    inline T __hmin(T a, T b) { return T(lucid_simulator::least((float)a, (float)b)); }          \
    inline T __hmax(T a, T b) { return T(-lucid_simulator::least(-(float)a, -(float)b)); }          \
    inline bool __hisnan(T a) { return (float)a != (float)a; }                              \
    inline int __hisinf(T a) { return __builtin_isinf_sign((float)a); }                     \
    inline T hsqrt(T a) { return T(__builtin_sqrtf((float)a)); }                            \
    inline T hrsqrt(T a) { return T(1.0 / __builtin_sqrt((double)(float)a)); }              \
    inline T hrcp(T a) { return T(1.0f / (float)a); }                                       \
    inline T hexp(T a) { return T(__builtin_expf((float)a)); }                              \
    inline T hexp2(T a) { return T(__builtin_exp2f((float)a)); }                            \
    inline T hexp10(T a) { return T(exp10((double)(float)a)); }                             \
    inline T hlog(T a) { return T(__builtin_logf((float)a)); }                              \
    inline T hlog2(T a) { return T(__builtin_log2f((float)a)); }                            \
    inline T hlog10(T a) { return T(__builtin_log10f((float)a)); }                          \
    inline T hsin(T a) { return T(__builtin_sinf((float)a)); }                              \
    inline T hcos(T a) { return T(__builtin_cosf((float)a)); }                              \
    inline T htanh(T a) { return T(__builtin_tanhf((float)a)); }                            \
    inline T hceil(T a) { return T(__builtin_ceilf((float)a)); }                            \
    inline T hfloor(T a) { return T(__builtin_floorf((float)a)); }                          \
    inline T hrint(T a) { return T(__builtin_rintf((float)a)); }                            \
    inline T htrunc(T a) { return T(__builtin_truncf((float)a)); }
LUCID_HALF_OPERATORS(__half)
LUCID_HALF_OPERATORS(__nv_bfloat16)
#undef LUCID_HALF_OPERATORS

inline float __half2float(__half a) { return (float)a; }
inline __half __float2half(float a) { return __half(a); }
inline __half __float2half_rn(float a) { return __half(a); }
inline __half __double2half(double a) { return __half(a); }
inline float2 __half22float2(__half2 a) { return {(float)a.x, (float)a.y}; }
inline __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
inline unsigned short __half_as_ushort(__half a) { return lucid_simulator::bits<unsigned short>(a); }
inline __half __ushort_as_half(unsigned short a) { return lucid_simulator::bits<__half>(a); }
inline float __bfloat162float(__nv_bfloat16 a) { return (float)a; }
inline __nv_bfloat16 __float2bfloat16(float a) { return __nv_bfloat16(a); }
inline __nv_bfloat16 __float2bfloat16_rn(float a) { return __nv_bfloat16(a); }
inline __nv_bfloat16 __double2bfloat16(double a) { return __nv_bfloat16(a); }
inline float2 __bfloat1622float2(__nv_bfloat162 a) { return {(float)a.x, (float)a.y}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return {__nv_bfloat16(a), __nv_bfloat16(b)}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) { return a.word; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short a) { return lucid_simulator::bits<__nv_bfloat16>(a); }

inline __half2 __half2half2(__half a) { return {a, a}; }
inline __half2 __halves2half2(__half a, __half b) { return {a, b}; }
inline __half2 __float2half2_rn(float a) { return {__half(a), __half(a)}; }
inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return {a, a}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
inline __nv_bfloat162 __float2bfloat162_rn(float a) { return {__nv_bfloat16(a), __nv_bfloat16(a)}; }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }

inline __half2 __float22half2_rn(float2 a) { return {__half(a.x), __half(a.y)}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 a) { return {__nv_bfloat16(a.x), __nv_bfloat16(a.y)}; }
inline short __half_as_short(__half a) { return (short)__half_as_ushort(a); }
inline __half __short_as_half(short a) { return __ushort_as_half((unsigned short)a); }
inline short __bfloat16_as_short(__nv_bfloat16 a) { return (short)a.word; }
inline __nv_bfloat16 __short_as_bfloat16(short a) { return __ushort_as_bfloat16((unsigned short)a); }

// Of pairs: of their parts.
#define LUCID_OF_PAIR(Pair, name) \
    inline Pair name##2(Pair a) { return {name(a.x), name(a.y)}; }
#define LUCID_OF_PAIRS(Pair, name) \
    inline Pair name##2(Pair a, Pair b) { return {name(a.x, b.x), name(a.y, b.y)}; }
#define LUCID_EACH(Pair, name) \
    inline Pair h2##name(Pair a) { return {h##name(a.x), h##name(a.y)}; }
// Comparisons: 1 or 0 for each part, and whether it holds for both
#define LUCID_COMPARED(T, Pair, name, sign)                                                                 \
    inline Pair __h##name##2(Pair a, Pair b) { return {T(float(a.x sign b.x)), T(float(a.y sign b.y))}; }   \
    inline bool __hb##name##2(Pair a, Pair b) { return a.x sign b.x && a.y sign b.y; }                      \
    inline bool operator sign(Pair a, Pair b) { return __hb##name##2(a, b); }
#define LUCID_OF_EITHER_PAIR(T, Pair)                                                                \
    LUCID_OF_PAIRS(Pair, __hadd)                                                                     \
    LUCID_OF_PAIRS(Pair, __hsub)                                                                     \
    LUCID_OF_PAIRS(Pair, __hmul)                                                                     \
    LUCID_OF_PAIRS(Pair, __hmin)                                                                     \
    LUCID_OF_PAIRS(Pair, __hmax)                                                                     \
    LUCID_OF_PAIR(Pair, __hneg)                                                                      \
    LUCID_OF_PAIR(Pair, __habs)                                                                      \
    inline Pair __h2div(Pair a, Pair b) { return {a.x / b.x, a.y / b.y}; }                           \
    inline Pair __hfma2(Pair a, Pair b, Pair c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
    inline Pair operator+(Pair a, Pair b) { return __hadd2(a, b); }                                  \
    inline Pair operator-(Pair a, Pair b) { return __hsub2(a, b); }                                  \
    inline Pair operator*(Pair a, Pair b) { return __hmul2(a, b); }                                  \
    inline Pair operator/(Pair a, Pair b) { return __h2div(a, b); }                                  \
    inline Pair operator-(Pair a) { return __hneg2(a); }                                             \
    inline Pair operator+(Pair a) { return a; }                                                      \
    inline Pair& operator/=(Pair& a, Pair b) { return a = a / b; }                                   \
    inline Pair& operator+=(Pair& a, Pair b) { return a = a + b; }                                   \
    inline Pair& operator-=(Pair& a, Pair b) { return a = a - b; }                                   \
    inline Pair& operator*=(Pair& a, Pair b) { return a = a * b; }                                   \
    LUCID_EACH(Pair, exp)                                                                            \
    LUCID_EACH(Pair, exp2)                                                                           \
    LUCID_EACH(Pair, exp10)                                                                          \
    LUCID_EACH(Pair, log)                                                                            \
    LUCID_EACH(Pair, log2)                                                                           \
    LUCID_EACH(Pair, log10)                                                                          \
    LUCID_EACH(Pair, sqrt)                                                                           \
    LUCID_EACH(Pair, rsqrt)                                                                          \
    LUCID_EACH(Pair, rcp)                                                                            \
    LUCID_EACH(Pair, sin)                                                                            \
    LUCID_EACH(Pair, cos)                                                                            \
    LUCID_EACH(Pair, tanh)                                                                           \
    LUCID_EACH(Pair, ceil)                                                                           \
    LUCID_EACH(Pair, floor)                                                                          \
    LUCID_EACH(Pair, rint)                                                                           \
    LUCID_EACH(Pair, trunc)                                                                          \
    inline auto __low2##T(Pair a) { return a.x; }                                                    \
    inline auto __high2##T(Pair a) { return a.y; }                                                   \
    inline float __low2float(Pair a) { return (float)a.x; }                                          \
    inline float __high2float(Pair a) { return (float)a.y; }                                         \
    inline Pair __low2##T##2(Pair a) { return {a.x, a.x}; }                                          \
    inline Pair __high2##T##2(Pair a) { return {a.y, a.y}; }                                         \
    inline Pair __lows2##T##2(Pair a, Pair b) { return {a.x, b.x}; }                                 \
    inline Pair __highs2##T##2(Pair a, Pair b) { return {a.y, b.y}; }                                \
    inline Pair __lowhigh2highlow(Pair a) { return {a.y, a.x}; }
LUCID_OF_EITHER_PAIR(half, __half2)
LUCID_OF_EITHER_PAIR(bfloat16, __nv_bfloat162)
LUCID_COMPARED(__half, __half2, eq, ==)
LUCID_COMPARED(__half, __half2, ne, !=)
LUCID_COMPARED(__half, __half2, lt, <)
LUCID_COMPARED(__half, __half2, le, <=)
LUCID_COMPARED(__half, __half2, gt, >)
LUCID_COMPARED(__half, __half2, ge, >=)
LUCID_COMPARED(__nv_bfloat16, __nv_bfloat162, eq, ==)
LUCID_COMPARED(__nv_bfloat16, __nv_bfloat162, ne, !=)
LUCID_COMPARED(__nv_bfloat16, __nv_bfloat162, lt, <)
LUCID_COMPARED(__nv_bfloat16, __nv_bfloat162, le, <=)
LUCID_COMPARED(__nv_bfloat16, __nv_bfloat162, gt, >)
LUCID_COMPARED(__nv_bfloat16, __nv_bfloat162, ge, >=)
#undef LUCID_COMPARED
#undef LUCID_EACH
#undef LUCID_OF_EITHER_PAIR
#undef LUCID_OF_PAIRS
#undef LUCID_OF_PAIR

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
