// CUDA's mathematical functions that the host does not have. Those of floats are those of doubles, rounded.
#pragma once

// f of a double, and of a float under two names
#define LUCID_ALSO_OF_FLOATS(name)                              \
    LUCID_FUNCTION float name##f(float x) { return (float)name((double)x); } \
    LUCID_FUNCTION float name(float x) { return (float)name((double)x); }

// sin and cos of pi x: of what is left of x beside a multiple of 1 / 2, so that they are exact where they are zero
LUCID_FUNCTION double sinpi(double x) {
    const double turn = __builtin_fmod(x, 2.0), quarter = __builtin_rint(2.0 * turn);
    const double rest = 3.141592653589793 * (turn - 0.5 * quarter);
    if (quarter == 0.0) return x == 0.0 ? x : __builtin_sin(rest);
    const int which = (int)quarter & 3;
    const double value = which & 1 ? __builtin_cos(rest) : __builtin_sin(rest);
    return which & 2 ? -value : value;
}
LUCID_FUNCTION double cospi(double x) {
    const double turn = __builtin_fmod(__builtin_fabs(x), 2.0), quarter = __builtin_rint(2.0 * turn);
    const double rest = 3.141592653589793 * (turn - 0.5 * quarter);
    const int which = (int)quarter & 3;
    const double value = which & 1 ? __builtin_sin(rest) : __builtin_cos(rest);
    return which == 1 || which == 2 ? 0.0 - value : value;
}
LUCID_ALSO_OF_FLOATS(sinpi)
LUCID_ALSO_OF_FLOATS(cospi)
LUCID_FUNCTION void sincosf(float x, float* s, float* c) { *s = __builtin_sinf(x), *c = __builtin_cosf(x); }
LUCID_FUNCTION void sincos(float x, float* s, float* c) { sincosf(x, s, c); }
LUCID_FUNCTION void sincos(double x, double* s, double* c) { *s = __builtin_sin(x), *c = __builtin_cos(x); }
LUCID_FUNCTION void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
LUCID_FUNCTION void sincospi(float x, float* s, float* c) { sincospif(x, s, c); }
LUCID_FUNCTION void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }

// ---- lengths ----

// Scaled, so that no square overflows.
namespace lucid_simulator {
template <class T> inline double length(int count, const T* p) {
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
}  // namespace lucid_simulator
LUCID_FUNCTION double norm(int count, const double* p) { return lucid_simulator::length(count, p); }
LUCID_FUNCTION float normf(int count, const float* p) { return (float)lucid_simulator::length(count, p); }
LUCID_FUNCTION double rnorm(int count, const double* p) { return 1.0 / lucid_simulator::length(count, p); }
LUCID_FUNCTION float rnormf(int count, const float* p) { return (float)(1.0 / lucid_simulator::length(count, p)); }
LUCID_FUNCTION double rhypot(double x, double y) { return 1.0 / __builtin_hypot(x, y); }
LUCID_FUNCTION float rhypotf(float x, float y) { return (float)rhypot((double)x, (double)y); }
#define LUCID_LENGTH(T, end)                                                                       \
    LUCID_FUNCTION T norm3d##end(T x, T y, T z) { const T p[] = {x, y, z}; return (T)lucid_simulator::length(3, p); }             \
    LUCID_FUNCTION T norm4d##end(T x, T y, T z, T w) { const T p[] = {x, y, z, w}; return (T)lucid_simulator::length(4, p); }     \
    LUCID_FUNCTION T rnorm3d##end(T x, T y, T z) { const T p[] = {x, y, z}; return (T)(1.0 / lucid_simulator::length(3, p)); }    \
    LUCID_FUNCTION T rnorm4d##end(T x, T y, T z, T w) { const T p[] = {x, y, z, w}; return (T)(1.0 / lucid_simulator::length(4, p)); }
LUCID_LENGTH(double, )
LUCID_LENGTH(float, f)
#undef LUCID_LENGTH

// ---- the error function ----

// exp(x^2) erfc(x): the square as two numbers, since its rounding would be amplified; far out its asymptotic series.
LUCID_FUNCTION double erfcx(double x) {
    if (x < -27.0) return __builtin_inf();
    if (x < 25.0) {
        const double square = x * x;
        return __builtin_exp(square) * __builtin_erfc(x) * (1.0 + __builtin_fma(x, x, -square));
    }
    const double u = 0.5 / (x * x);
    return 0.5641895835477563 / x * (1.0 - u * (1.0 - 3.0 * u * (1.0 - 5.0 * u * (1.0 - 7.0 * u))));
}
LUCID_ALSO_OF_FLOATS(erfcx)

// Newton's method on erf near zero, on erfc where erf is flat, from a logarithmic first guess.
LUCID_FUNCTION double erfinv(double x) {
    if (!(x > -1.0 && x < 1.0)) return x == 1.0 ? __builtin_inf() : x == -1.0 ? -__builtin_inf() : __builtin_nan("");
    const double l = __builtin_log1p(-x * x), t = 4.330746750799873 + 0.5 * l;
    double y = __builtin_copysign(__builtin_sqrt(__builtin_sqrt(t * t - l / 0.147) - t), x);
    for (int i = 0; i < 4; ++i) {
        const double difference = __builtin_fabs(x) < 0.5 ? __builtin_erf(y) - x : x < 0 ? -1.0 - x + __builtin_erfc(-y) : 1.0 - x - __builtin_erfc(y);
        y -= 0.8862269254527580 * difference * __builtin_exp(y * y);
    }
    return y;
}
LUCID_ALSO_OF_FLOATS(erfinv)

// Newton's method on log erfc, which is nearly straight far out.
LUCID_FUNCTION double erfcinv(double p) {
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
// With what the argument of erfc loses to rounding, which it would amplify.
LUCID_FUNCTION double normcdf(double x) {
    const double root = -0.7071067811865476, t = root * x;
    const double lost = __builtin_fma(root, x, -t) + 4.833646656726457e-17 * x;
    const double slope = __builtin_isfinite(x) ? 1.1283791670955126 * __builtin_exp(-t * t) * lost : 0.0;
    return 0.5 * (__builtin_erfc(t) - slope);
}
LUCID_ALSO_OF_FLOATS(normcdf)
LUCID_FUNCTION double normcdfinv(double p) { return -1.4142135623730951 * erfcinv(2.0 * p); }
LUCID_ALSO_OF_FLOATS(normcdfinv)

// ---- Bessel functions ----

LUCID_FUNCTION double jn(int n, double x) { return __builtin_jn(n, x); }
LUCID_FUNCTION float jn(int n, float x) { return __builtin_jnf(n, x); }
LUCID_FUNCTION float yn(int n, float x) { return __builtin_ynf(n, x); }
LUCID_FUNCTION float jnf(int n, float x) { return __builtin_jnf(n, x); }
LUCID_FUNCTION double yn(int n, double x) { return __builtin_yn(n, x); }
LUCID_FUNCTION float ynf(int n, float x) { return __builtin_ynf(n, x); }

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
LUCID_FUNCTION double cyl_bessel_i0(double x) { return lucid_simulator::modified_bessel(1.0, x, 0); }
LUCID_FUNCTION double cyl_bessel_i1(double x) { return lucid_simulator::modified_bessel(0.5 * x, x, 1); }
LUCID_ALSO_OF_FLOATS(cyl_bessel_i0)
LUCID_ALSO_OF_FLOATS(cyl_bessel_i1)
#undef LUCID_ALSO_OF_FLOATS
