// CUDA's mathematical functions by the host's. Nothing is included: a kernel builds in a second or two.
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
LUCID_UNARY(y1)
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
inline float scalbnf(float x, int n) { return __builtin_ldexpf(x, n); }
inline float scalbn(float x, int n) { return __builtin_ldexpf(x, n); }
inline double scalbn(double x, int n) { return __builtin_ldexp(x, n); }
inline float scalblnf(float x, long n) { return __builtin_scalblnf(x, n); }
inline float scalbln(float x, long n) { return __builtin_scalblnf(x, n); }
inline double scalbln(double x, long n) { return __builtin_scalbln(x, n); }
inline float remquof(float x, float y, int* n) { return __builtin_remquof(x, y, n); }
inline float remquo(float x, float y, int* n) { return __builtin_remquof(x, y, n); }
inline double remquo(double x, double y, int* n) { return __builtin_remquo(x, y, n); }
#define LUCID_WHOLE(T, name)                                        \
    inline T name##f(float x) { return __builtin_##name##f(x); }    \
    inline T name(float x) { return __builtin_##name##f(x); }       \
    inline T name(double x) { return __builtin_##name(x); }
LUCID_WHOLE(int, ilogb)
LUCID_WHOLE(long, lrint)
LUCID_WHOLE(long, lround)
LUCID_WHOLE(long long, llrint)
LUCID_WHOLE(long long, llround)
#undef LUCID_WHOLE
inline float pow(float x, int n) { return __builtin_powf(x, (float)n); }
inline double pow(double x, int n) { return __builtin_pow(x, n); }
inline float exp10f(float x) { return __builtin_powf(10.0f, x); }
inline double exp10(double x) { return __builtin_pow(10.0, x); }
inline float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
inline float rcbrtf(float x) { return 1.0f / __builtin_cbrtf(x); }
inline double rcbrt(double x) { return 1.0 / __builtin_cbrt(x); }
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
inline unsigned umin(unsigned a, unsigned b) { return min(a, b); }
inline unsigned umax(unsigned a, unsigned b) { return max(a, b); }
inline long long llmin(long long a, long long b) { return min(a, b); }
inline long long llmax(long long a, long long b) { return max(a, b); }
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }
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

// ---- fast forms ----

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
inline void __sincosf(float x, float* s, float* c) { *s = __builtin_sinf(x), *c = __builtin_cosf(x); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
