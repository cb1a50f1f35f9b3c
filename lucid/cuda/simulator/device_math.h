// CUDA's mathematical functions and intrinsics by the host's. Nothing is included: a kernel builds in a second or two.
#pragma once

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

// name for float and double, and namef as in C
#define LUCID_UNARY(name)                                             \
    inline float name##f(float x) { return __builtin_##name##f(x); }  \
    inline float name(float x) { return __builtin_##name##f(x); }     \
    inline double name(double x) { return __builtin_##name(x); }
#define LUCID_BINARY(name)                                                              \
    inline float name##f(float x, float y) { return __builtin_##name##f(x, y); }        \
    inline float name(float x, float y) { return __builtin_##name##f(x, y); }           \
    inline double name(double x, double y) { return __builtin_##name(x, y); }
LUCID_UNARY(acos) LUCID_UNARY(acosh) LUCID_UNARY(asin) LUCID_UNARY(asinh) LUCID_UNARY(atan) LUCID_UNARY(atanh)
LUCID_UNARY(cbrt) LUCID_UNARY(ceil) LUCID_UNARY(cos) LUCID_UNARY(cosh) LUCID_UNARY(erf) LUCID_UNARY(erfc)
LUCID_UNARY(exp) LUCID_UNARY(exp2) LUCID_UNARY(expm1) LUCID_UNARY(fabs) LUCID_UNARY(floor) LUCID_UNARY(lgamma)
LUCID_UNARY(log) LUCID_UNARY(log10) LUCID_UNARY(log1p) LUCID_UNARY(log2) LUCID_UNARY(logb) LUCID_UNARY(nearbyint)
LUCID_UNARY(rint) LUCID_UNARY(round) LUCID_UNARY(sin) LUCID_UNARY(sinh) LUCID_UNARY(sqrt) LUCID_UNARY(tan)
LUCID_UNARY(tanh) LUCID_UNARY(tgamma) LUCID_UNARY(trunc) LUCID_UNARY(j0) LUCID_UNARY(j1) LUCID_UNARY(y0)
LUCID_BINARY(atan2) LUCID_BINARY(copysign) LUCID_BINARY(fdim) LUCID_BINARY(fmax) LUCID_BINARY(fmin) LUCID_BINARY(fmod)
LUCID_BINARY(hypot) LUCID_BINARY(nextafter) LUCID_BINARY(pow) LUCID_BINARY(remainder)
#undef LUCID_UNARY
#undef LUCID_BINARY

inline float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float ldexpf(float x, int n) { return __builtin_ldexpf(x, n); }
inline float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
inline double ldexp(double x, int n) { return __builtin_ldexp(x, n); }
inline float frexpf(float x, int* n) { return __builtin_frexpf(x, n); }
inline float frexp(float x, int* n) { return __builtin_frexpf(x, n); }
inline double frexp(double x, int* n) { return __builtin_frexp(x, n); }
inline float modff(float x, float* whole) { return __builtin_modff(x, whole); }
inline double modf(double x, double* whole) { return __builtin_modf(x, whole); }
inline int ilogbf(float x) { return __builtin_ilogbf(x); }
inline int ilogb(double x) { return __builtin_ilogb(x); }
inline long lrintf(float x) { return __builtin_lrintf(x); }
inline long long llrint(double x) { return __builtin_llrint(x); }
inline long long llrintf(float x) { return __builtin_llrintf(x); }
inline long long llround(double x) { return __builtin_llround(x); }
inline float pow(float x, int n) { return __builtin_powf(x, (float)n); }
inline double pow(double x, int n) { return __builtin_pow(x, n); }
inline float exp10f(float x) { return __builtin_powf(10.0f, x); }
inline double exp10(double x) { return __builtin_pow(10.0, x); }
inline float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
inline float rcbrtf(float x) { return 1.0f / __builtin_cbrtf(x); }
inline double rcbrt(double x) { return 1.0 / __builtin_cbrt(x); }
inline float sinpif(float x) { return (float)__builtin_sin(3.141592653589793 * __builtin_fmod(x, 2.0)); }
inline double sinpi(double x) { return __builtin_sin(3.141592653589793 * __builtin_fmod(x, 2.0)); }
inline float cospif(float x) { return (float)__builtin_cos(3.141592653589793 * __builtin_fmod(x, 2.0)); }
inline double cospi(double x) { return __builtin_cos(3.141592653589793 * __builtin_fmod(x, 2.0)); }
inline void sincosf(float x, float* s, float* c) { *s = __builtin_sinf(x), *c = __builtin_cosf(x); }
inline void sincos(double x, double* s, double* c) { *s = __builtin_sin(x), *c = __builtin_cos(x); }
inline double normcdf(double x) { return 0.5 * __builtin_erfc(-0.7071067811865476 * x); }
inline float normcdff(float x) { return (float)normcdf((double)x); }

// Newton's method on erf, or on log erfc where erf is flat, from a logarithmic first guess.
inline double erfinv(double x) {
    if (!(x > -1.0 && x < 1.0)) return x == 1.0 ? __builtin_inf() : x == -1.0 ? -__builtin_inf() : __builtin_nan("");
    const double l = __builtin_log1p(-x * x), t = 4.330746750799873 + 0.5 * l;
    double y = __builtin_copysign(__builtin_sqrt(__builtin_sqrt(t * t - l / 0.147) - t), x);
    for (int i = 0; i < 4; ++i) {
        const double difference = x < 0 ? -1.0 - x + __builtin_erfc(-y) : 1.0 - x - __builtin_erfc(y);
        y -= 0.8862269254527580 * difference * __builtin_exp(y * y);
    }
    return y;
}
inline float erfinvf(float x) { return (float)erfinv((double)x); }
inline float erfinv(float x) { return (float)erfinv((double)x); }
inline double normcdfinv(double p) { return 1.4142135623730951 * erfinv(2.0 * p - 1.0); }
inline float normcdfinvf(float p) { return (float)normcdfinv((double)p); }

template <class T> inline bool isnan(T x) { return __builtin_isnan((double)x); }
template <class T> inline bool isinf(T x) { return __builtin_isinf((double)x) != 0; }
template <class T> inline bool isfinite(T x) { return __builtin_isfinite((double)x); }
template <class T> inline bool signbit(T x) { return __builtin_signbit((double)x) != 0; }

inline float nanf(const char*) { return __builtin_nanf(""); }
inline double nan(const char*) { return __builtin_nan(""); }
inline int abs(int x) { return x < 0 ? -x : x; }
inline long labs(long x) { return x < 0 ? -x : x; }
inline long abs(long x) { return x < 0 ? -x : x; }
inline long long abs(long long x) { return x < 0 ? -x : x; }
inline long long llabs(long long x) { return x < 0 ? -x : x; }
inline float abs(float x) { return __builtin_fabsf(x); }
inline double abs(double x) { return __builtin_fabs(x); }

// As in CUDA, min and max of floating values prefer the number to the NaN.
#define LUCID_EXTREMES(T)                                  \
    inline T min(T a, T b) { return b < a ? b : a; }       \
    inline T max(T a, T b) { return a < b ? b : a; }
LUCID_EXTREMES(int)
LUCID_EXTREMES(unsigned int)
LUCID_EXTREMES(long)
LUCID_EXTREMES(unsigned long)
LUCID_EXTREMES(long long)
LUCID_EXTREMES(unsigned long long)
#undef LUCID_EXTREMES
inline unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
inline unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
inline unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
inline unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
inline long long min(long long a, int b) { return min(a, (long long)b); }
inline long long min(int a, long long b) { return min((long long)a, b); }
inline long long max(long long a, int b) { return max(a, (long long)b); }
inline long long max(int a, long long b) { return max((long long)a, b); }
inline float min(float a, float b) { return __builtin_fminf(a, b); }
inline float max(float a, float b) { return __builtin_fmaxf(a, b); }
inline double min(double a, double b) { return __builtin_fmin(a, b); }
inline double max(double a, double b) { return __builtin_fmax(a, b); }
inline double min(float a, double b) { return __builtin_fmin(a, b); }
inline double min(double a, float b) { return __builtin_fmin(a, b); }
inline double max(float a, double b) { return __builtin_fmax(a, b); }
inline double max(double a, float b) { return __builtin_fmax(a, b); }

// ---- intrinsics ----

inline float __expf(float x) { return __builtin_expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return __builtin_logf(x); }
inline float __log2f(float x) { return __builtin_log2f(x); }
inline float __log10f(float x) { return __builtin_log10f(x); }
inline float __powf(float x, float y) { return __builtin_powf(x, y); }
inline float __sinf(float x) { return __builtin_sinf(x); }
inline float __cosf(float x) { return __builtin_cosf(x); }
inline float __tanf(float x) { return __builtin_tanf(x); }
inline float __tanhf(float x) { return __builtin_tanhf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float fdividef(float a, float b) { return a / b; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline float __frsqrt_rn(float x) { return (float)(1.0 / __builtin_sqrt((double)x)); }
#define LUCID_ROUNDED(prefix, T, fused, root)                               \
    inline T __##prefix##add_rn(T a, T b) { return a + b; }                 \
    inline T __##prefix##sub_rn(T a, T b) { return a - b; }                 \
    inline T __##prefix##mul_rn(T a, T b) { return a * b; }                 \
    inline T __##prefix##div_rn(T a, T b) { return a / b; }                 \
    inline T __##prefix##rcp_rn(T a) { return (T)1 / a; }                   \
    inline T __##prefix##sqrt_rn(T a) { return root(a); }                   \
    inline T fused(T a, T b, T c) { return fma(a, b, c); }
LUCID_ROUNDED(f, float, __fmaf_rn, __builtin_sqrtf)
LUCID_ROUNDED(d, double, __fma_rn, __builtin_sqrt)
#undef LUCID_ROUNDED

// Conversions to integers saturate, and take NaN to zero, as on the device.
namespace lucid_simulator {
template <class To> inline To saturated(double x, To low, To high) {
    if (x != x) return 0;
    return x <= (double)low ? low : x >= (double)high ? high : (To)x;
}
}  // namespace lucid_simulator
#define LUCID_CONVERSIONS(from, From, name, To, low, high)                                                        \
    inline To __##from##2##name##_rn(From x) { return lucid_simulator::saturated<To>(__builtin_rint(x), low, high); }  \
    inline To __##from##2##name##_rz(From x) { return lucid_simulator::saturated<To>(__builtin_trunc(x), low, high); } \
    inline To __##from##2##name##_rd(From x) { return lucid_simulator::saturated<To>(__builtin_floor(x), low, high); } \
    inline To __##from##2##name##_ru(From x) { return lucid_simulator::saturated<To>(__builtin_ceil(x), low, high); }
#define LUCID_CONVERSIONS_FROM(from, From)                                                            \
    LUCID_CONVERSIONS(from, From, int, int, -__INT_MAX__ - 1, __INT_MAX__)                            \
    LUCID_CONVERSIONS(from, From, uint, unsigned, 0u, ~0u)                                            \
    LUCID_CONVERSIONS(from, From, ll, long long, -__LONG_LONG_MAX__ - 1, __LONG_LONG_MAX__)           \
    LUCID_CONVERSIONS(from, From, ull, unsigned long long, 0ull, ~0ull)
LUCID_CONVERSIONS_FROM(float, float)
LUCID_CONVERSIONS_FROM(double, double)
#undef LUCID_CONVERSIONS_FROM
#undef LUCID_CONVERSIONS
inline float __int2float_rn(int x) { return (float)x; }
inline float __uint2float_rn(unsigned x) { return (float)x; }
inline float __ll2float_rn(long long x) { return (float)x; }
inline float __ull2float_rn(unsigned long long x) { return (float)x; }
inline double __int2double_rn(int x) { return (double)x; }
inline double __uint2double_rn(unsigned x) { return (double)x; }
inline double __ll2double_rn(long long x) { return (double)x; }
inline double __ull2double_rn(unsigned long long x) { return (double)x; }
inline float __double2float_rn(double x) { return (float)x; }

inline int __float_as_int(float x) { return lucid_simulator::bits<int>(x); }
inline unsigned __float_as_uint(float x) { return lucid_simulator::bits<unsigned>(x); }
inline float __int_as_float(int x) { return lucid_simulator::bits<float>(x); }
inline float __uint_as_float(unsigned x) { return lucid_simulator::bits<float>(x); }
inline long long __double_as_longlong(double x) { return lucid_simulator::bits<long long>(x); }
inline double __longlong_as_double(long long x) { return lucid_simulator::bits<double>(x); }
inline int __double2hiint(double x) { return (int)(lucid_simulator::bits<long long>(x) >> 32); }
inline int __double2loint(double x) { return (int)lucid_simulator::bits<long long>(x); }

inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1u) << (31 - i);
    return reversed;
}
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
