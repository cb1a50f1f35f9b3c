// CUDA's mathematical functions by the host's. Nothing is included: a kernel builds in a second or two.
#pragma once

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

// name for float and double, and namef as in C
#define LUCID_UNARY(name)                                             \
    LUCID_FUNCTION float name##f(float x) { return __builtin_##name##f(x); }  \
    LUCID_FUNCTION float name(float x) { return __builtin_##name##f(x); }     \
    LUCID_FUNCTION double name(double x) { return __builtin_##name(x); }
#define LUCID_BINARY(name)                                                              \
    LUCID_FUNCTION float name##f(float x, float y) { return __builtin_##name##f(x, y); }        \
    LUCID_FUNCTION float name(float x, float y) { return __builtin_##name##f(x, y); }           \
    LUCID_FUNCTION double name(double x, double y) { return __builtin_##name(x, y); }
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

LUCID_FUNCTION float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
LUCID_FUNCTION float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
LUCID_FUNCTION double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
LUCID_FUNCTION float ldexpf(float x, int n) { return __builtin_ldexpf(x, n); }
LUCID_FUNCTION float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
LUCID_FUNCTION double ldexp(double x, int n) { return __builtin_ldexp(x, n); }
LUCID_FUNCTION float frexpf(float x, int* n) { return __builtin_frexpf(x, n); }
LUCID_FUNCTION float frexp(float x, int* n) { return __builtin_frexpf(x, n); }
LUCID_FUNCTION double frexp(double x, int* n) { return __builtin_frexp(x, n); }
LUCID_FUNCTION float modff(float x, float* whole) { return __builtin_modff(x, whole); }
LUCID_FUNCTION float modf(float x, float* whole) { return __builtin_modff(x, whole); }
LUCID_FUNCTION double modf(double x, double* whole) { return __builtin_modf(x, whole); }
LUCID_FUNCTION float scalbnf(float x, int n) { return __builtin_ldexpf(x, n); }
LUCID_FUNCTION float scalbn(float x, int n) { return __builtin_ldexpf(x, n); }
LUCID_FUNCTION double scalbn(double x, int n) { return __builtin_ldexp(x, n); }
LUCID_FUNCTION float scalblnf(float x, long n) { return __builtin_scalblnf(x, n); }
LUCID_FUNCTION float scalbln(float x, long n) { return __builtin_scalblnf(x, n); }
LUCID_FUNCTION double scalbln(double x, long n) { return __builtin_scalbln(x, n); }
LUCID_FUNCTION float remquof(float x, float y, int* n) { return __builtin_remquof(x, y, n); }
LUCID_FUNCTION float remquo(float x, float y, int* n) { return __builtin_remquof(x, y, n); }
LUCID_FUNCTION double remquo(double x, double y, int* n) { return __builtin_remquo(x, y, n); }
#define LUCID_WHOLE(T, name)                                        \
    LUCID_FUNCTION T name##f(float x) { return __builtin_##name##f(x); }    \
    LUCID_FUNCTION T name(float x) { return __builtin_##name##f(x); }       \
    LUCID_FUNCTION T name(double x) { return __builtin_##name(x); }
LUCID_WHOLE(int, ilogb)
LUCID_WHOLE(long, lrint)
LUCID_WHOLE(long, lround)
LUCID_WHOLE(long long, llrint)
LUCID_WHOLE(long long, llround)
#undef LUCID_WHOLE
LUCID_FUNCTION float pow(float x, int n) { return __builtin_powf(x, (float)n); }
LUCID_FUNCTION double pow(double x, int n) { return __builtin_pow(x, n); }
LUCID_FUNCTION float exp10f(float x) { return __builtin_powf(10.0f, x); }
LUCID_FUNCTION float exp10(float x) { return exp10f(x); }
LUCID_FUNCTION double exp10(double x) { return __builtin_pow(10.0, x); }
LUCID_FUNCTION float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
LUCID_FUNCTION float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
LUCID_FUNCTION double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
LUCID_FUNCTION float rcbrtf(float x) { return 1.0f / __builtin_cbrtf(x); }
LUCID_FUNCTION float rcbrt(float x) { return rcbrtf(x); }
LUCID_FUNCTION double rcbrt(double x) { return 1.0 / __builtin_cbrt(x); }
#define LUCID_ABOUT(T)                                                                 \
    LUCID_FUNCTION bool isnan(T x) { return __builtin_isnan(x); }                      \
    LUCID_FUNCTION bool isinf(T x) { return __builtin_isinf(x) != 0; }                 \
    LUCID_FUNCTION bool isfinite(T x) { return __builtin_isfinite(x); }                \
    LUCID_FUNCTION bool signbit(T x) { return __builtin_signbit(x) != 0; }
LUCID_ABOUT(float)
LUCID_ABOUT(double)
#undef LUCID_ABOUT

#define LUCID_UNDER_ANOTHER_NAME(name, T, as) \
    LUCID_FUNCTION int name(T x) { return as(x); }
LUCID_UNDER_ANOTHER_NAME(__isnanf, float, isnan)
LUCID_UNDER_ANOTHER_NAME(__isnan, double, isnan)
LUCID_UNDER_ANOTHER_NAME(__isinff, float, isinf)
LUCID_UNDER_ANOTHER_NAME(__isinf, double, isinf)
LUCID_UNDER_ANOTHER_NAME(__finitef, float, isfinite)
LUCID_UNDER_ANOTHER_NAME(__finite, double, isfinite)
#undef LUCID_UNDER_ANOTHER_NAME

LUCID_FUNCTION float nanf(const char*) { return __builtin_nanf(""); }
LUCID_FUNCTION double nan(const char*) { return __builtin_nan(""); }
LUCID_FUNCTION int abs(int x) { return x < 0 ? -x : x; }
LUCID_FUNCTION long labs(long x) { return x < 0 ? -x : x; }
LUCID_FUNCTION long abs(long x) { return x < 0 ? -x : x; }
LUCID_FUNCTION long long abs(long long x) { return x < 0 ? -x : x; }
LUCID_FUNCTION long long llabs(long long x) { return x < 0 ? -x : x; }
LUCID_FUNCTION float abs(float x) { return __builtin_fabsf(x); }
LUCID_FUNCTION double abs(double x) { return __builtin_fabs(x); }

// As in CUDA, min and max of floating values prefer the number to the NaN.
#define LUCID_EXTREMES(T)                                  \
    LUCID_FUNCTION T min(T a, T b) { return b < a ? b : a; }       \
    LUCID_FUNCTION T max(T a, T b) { return a < b ? b : a; }
LUCID_EXTREMES(int)
LUCID_EXTREMES(unsigned int)
LUCID_EXTREMES(long)
LUCID_EXTREMES(unsigned long)
LUCID_EXTREMES(long long)
LUCID_EXTREMES(unsigned long long)
#undef LUCID_EXTREMES
LUCID_FUNCTION unsigned umin(unsigned a, unsigned b) { return min(a, b); }
LUCID_FUNCTION unsigned umax(unsigned a, unsigned b) { return max(a, b); }
LUCID_FUNCTION long long llmin(long long a, long long b) { return min(a, b); }
LUCID_FUNCTION long long llmax(long long a, long long b) { return max(a, b); }
LUCID_FUNCTION unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
LUCID_FUNCTION unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }
LUCID_FUNCTION unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
LUCID_FUNCTION unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
LUCID_FUNCTION unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
LUCID_FUNCTION unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
LUCID_FUNCTION long long min(long long a, int b) { return min(a, (long long)b); }
LUCID_FUNCTION long long min(int a, long long b) { return min((long long)a, b); }
LUCID_FUNCTION long long max(long long a, int b) { return max(a, (long long)b); }
LUCID_FUNCTION long long max(int a, long long b) { return max((long long)a, b); }
LUCID_FUNCTION float min(float a, float b) { return __builtin_fminf(a, b); }
LUCID_FUNCTION float max(float a, float b) { return __builtin_fmaxf(a, b); }
LUCID_FUNCTION double min(double a, double b) { return __builtin_fmin(a, b); }
LUCID_FUNCTION double max(double a, double b) { return __builtin_fmax(a, b); }
LUCID_FUNCTION double min(float a, double b) { return __builtin_fmin(a, b); }
LUCID_FUNCTION double min(double a, float b) { return __builtin_fmin(a, b); }
LUCID_FUNCTION double max(float a, double b) { return __builtin_fmax(a, b); }
LUCID_FUNCTION double max(double a, float b) { return __builtin_fmax(a, b); }

// ---- fast forms ----

LUCID_FUNCTION float __expf(float x) { return __builtin_expf(x); }
LUCID_FUNCTION float __exp10f(float x) { return exp10f(x); }
LUCID_FUNCTION float __logf(float x) { return __builtin_logf(x); }
LUCID_FUNCTION float __log2f(float x) { return __builtin_log2f(x); }
LUCID_FUNCTION float __log10f(float x) { return __builtin_log10f(x); }
LUCID_FUNCTION float __powf(float x, float y) { return __builtin_powf(x, y); }
LUCID_FUNCTION float __sinf(float x) { return __builtin_sinf(x); }
LUCID_FUNCTION float __cosf(float x) { return __builtin_cosf(x); }
LUCID_FUNCTION float __tanf(float x) { return __builtin_tanf(x); }
LUCID_FUNCTION float __tanhf(float x) { return __builtin_tanhf(x); }
LUCID_FUNCTION float __fdividef(float a, float b) { return a / b; }
LUCID_FUNCTION float fdividef(float a, float b) { return a / b; }
LUCID_FUNCTION void __sincosf(float x, float* s, float* c) { *s = __builtin_sinf(x), *c = __builtin_cosf(x); }
LUCID_FUNCTION float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
