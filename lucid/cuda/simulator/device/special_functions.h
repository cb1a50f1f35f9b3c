// CUDA's mathematical functions that the host does not have. Those of floats are those of doubles, rounded.
#pragma once

// f of a double, and of a float under two names
#define LUCID_ALSO_OF_FLOATS(name)                              \
    inline float name##f(float x) { return (float)name((double)x); } \
    inline float name(float x) { return (float)name((double)x); }

// sin and cos of pi x
inline double sinpi(double x) { return __builtin_sin(3.141592653589793 * __builtin_fmod(x, 2.0)); }
inline double cospi(double x) { return __builtin_cos(3.141592653589793 * __builtin_fmod(x, 2.0)); }
LUCID_ALSO_OF_FLOATS(sinpi)
LUCID_ALSO_OF_FLOATS(cospi)
inline void sincosf(float x, float* s, float* c) { *s = __builtin_sinf(x), *c = __builtin_cosf(x); }
inline void sincos(float x, float* s, float* c) { sincosf(x, s, c); }
inline void sincos(double x, double* s, double* c) { *s = __builtin_sin(x), *c = __builtin_cos(x); }
inline void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
inline void sincospi(float x, float* s, float* c) { sincospif(x, s, c); }
inline void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }

// ---- lengths ----

// Scaled, so that no square overflows.
template <class T> inline double norm(int count, const T* p) {
    double largest = 0.0, sum = 0.0;
    bool infinite = false;
    for (int i = 0; i < count; ++i) infinite |= __builtin_isinf((double)p[i]) != 0;
    if (infinite) return __builtin_inf();
    for (int i = 0; i < count; ++i) largest = __builtin_fmax(largest, __builtin_fabs((double)p[i]));
    for (int i = 0; i < count; ++i) {
        const double part = largest > 0.0 ? p[i] / largest : (double)p[i];
        sum += part * part;
    }
    return largest > 0.0 ? largest * __builtin_sqrt(sum) : sum;
}
inline float normf(int count, const float* p) { return (float)norm(count, p); }
inline double rnorm(int count, const double* p) { return 1.0 / norm(count, p); }
inline float rnormf(int count, const float* p) { return (float)(1.0 / norm(count, p)); }
inline double rhypot(double x, double y) { return 1.0 / __builtin_hypot(x, y); }
inline float rhypotf(float x, float y) { return (float)rhypot((double)x, (double)y); }
inline float rhypot(float x, float y) { return rhypotf(x, y); }
#define LUCID_LENGTH(T, end)                                                                       \
    inline T norm3d##end(T x, T y, T z) { const T p[] = {x, y, z}; return (T)norm(3, p); }             \
    inline T norm4d##end(T x, T y, T z, T w) { const T p[] = {x, y, z, w}; return (T)norm(4, p); }     \
    inline T rnorm3d##end(T x, T y, T z) { const T p[] = {x, y, z}; return (T)(1.0 / norm(3, p)); }    \
    inline T rnorm4d##end(T x, T y, T z, T w) { const T p[] = {x, y, z, w}; return (T)(1.0 / norm(4, p)); }
LUCID_LENGTH(double, )
LUCID_LENGTH(float, f)
#undef LUCID_LENGTH

// ---- the error function ----

// exp(x^2) erfc(x): the square as two numbers, since its rounding would be amplified; far out its asymptotic series.
inline double erfcx(double x) {
    if (x < 25.0) {
        const double square = x * x;
        return __builtin_exp(square) * __builtin_erfc(x) * (1.0 + __builtin_fma(x, x, -square));
    }
    const double u = 0.5 / (x * x);
    return 0.5641895835477563 / x * (1.0 - u * (1.0 - 3.0 * u * (1.0 - 5.0 * u * (1.0 - 7.0 * u))));
}
LUCID_ALSO_OF_FLOATS(erfcx)

// Newton's method on erf, or on erfc where erf is flat, from a logarithmic first guess.
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
LUCID_ALSO_OF_FLOATS(erfinv)

// Newton's method on log erfc, which is nearly straight far out.
inline double erfcinv(double p) {
    if (!(p > 0.0 && p < 0.0625)) return erfinv(1.0 - p);
    const double l = __builtin_log(p);
    double y = __builtin_sqrt(-l - 0.5 * __builtin_log(-3.141592653589793 * l));
    for (int i = 0; i < 5; ++i) {
        const double scaled = erfcx(y);
        y += (__builtin_log(scaled) - y * y - l) * scaled * 0.8862269254527580;
    }
    return y;
}
LUCID_ALSO_OF_FLOATS(erfcinv)
inline double normcdf(double x) { return 0.5 * __builtin_erfc(-0.7071067811865476 * x); }
LUCID_ALSO_OF_FLOATS(normcdf)
inline double normcdfinv(double p) { return -1.4142135623730951 * erfcinv(2.0 * p); }
LUCID_ALSO_OF_FLOATS(normcdfinv)

// ---- Bessel functions ----

inline double jn(int n, double x) { return __builtin_jn(n, x); }
inline float jnf(int n, float x) { return __builtin_jnf(n, x); }
inline double yn(int n, double x) { return __builtin_yn(n, x); }
inline float ynf(int n, float x) { return __builtin_ynf(n, x); }

// The modified ones by their power series: all its terms are of one sign.
namespace lucid_simulator {
inline double modified_bessel(double first, double x, int order) {
    const double square = 0.25 * x * x;
    double term = first, sum = first;
    for (int k = 1; __builtin_fabs(term) > 1e-17 * __builtin_fabs(sum); ++k) {
        term *= square / ((double)k * (k + order));
        sum += term;
    }
    return sum;
}
}  // namespace lucid_simulator
inline double cyl_bessel_i0(double x) { return lucid_simulator::modified_bessel(1.0, x, 0); }
inline double cyl_bessel_i1(double x) { return lucid_simulator::modified_bessel(0.5 * x, x, 1); }
LUCID_ALSO_OF_FLOATS(cyl_bessel_i0)
LUCID_ALSO_OF_FLOATS(cyl_bessel_i1)
#undef LUCID_ALSO_OF_FLOATS
