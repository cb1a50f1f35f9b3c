// Error, gamma and Bessel functions: lucid/ops/elementwise/special.py. Launched by lucid/cuda/launch/elementwise.py.

#include "elementwise.cuh"
#include "philox.cuh"

// In double: the inverse of the normal distribution, then two of Newton's steps, from whichever of erf and erfc is small.
struct Erfinv {
    template <class A> __device__ A operator()(A y) const {
        const double size = fabs(static_cast<double>(y));
        if (!(size < 1)) return size == 1 ? y / (1 - A(size)) : A(sqrt(1 - size));
        double x = inverse_normal(size / 2) * 0.7071067811865476;
        for (int step = 0; step < 2; ++step) {
            const double error = size < 0.5 ? size - erf(x) : erfc(x) - (1 - size);
            x += error * exp(x * x) * 0.8862269254527579;
        }
        return static_cast<A>(copysign(x, static_cast<double>(y)));
    }
};

// Bernoulli's numbers of even index, from 2 on.
__device__ const double BERNOULLI[10] = {1.0 / 6,       -1.0 / 30, 1.0 / 42,      -1.0 / 30,     5.0 / 66,
                                         -691.0 / 2730, 7.0 / 6,   -3617.0 / 510, 43867.0 / 798, -174611.0 / 330};

// In double: sums of ten terms, of which some cancel.
struct Digamma {
    template <class A> __device__ A operator()(A value) const {
        double x = value, total = 0;
        if (x < 0) {
            const double part = x - rint(x);
            total = part == 0 ? static_cast<double>(NAN) : -3.141592653589793 / tan(3.141592653589793 * part);
            x = 1 - x;
        }
        for (; x < 10; x += 1) total -= 1 / x;
        const double inverse = 1 / (x * x);
        double power = inverse;
        total += log(x) - 0.5 / x;
        for (int k = 1; k <= 10; ++k, power *= inverse) total -= BERNOULLI[k - 1] / (2 * k) * power;
        return static_cast<A>(total);
    }
};

// The sum of (q + k)^-s over all k from 0 on, for q >= 0: Euler's and Maclaurin's formula.
// A call, since each pack has two of it for each of its elements.
__device__ __noinline__ double zeta(double s, double q) {
    double total = 0;
    for (; q < 10 + s; q += 1) total += pow(q, -s);
    double term = pow(q, -s);
    total += pow(q, 1 - s) / (s - 1) + term / 2;
    term *= s / q / 2;
    for (int k = 1; k <= 10; ++k) {
        total += BERNOULLI[k - 1] * term;
        term *= (s + 2 * k - 1) * (s + 2 * k) / (2 * k + 1) / (2 * k + 2) / q / q;
    }
    return total;
}

// (-1)^(n + 1) n! zeta(n + 1, x); below zero from the sum over all whole k, which repeats itself.
struct Polygamma {
    template <class A> __device__ A operator()(A value, A n) const {
        const double x = value, s = static_cast<double>(n) + 1;
        const double sign = fmod(s, 2.0) == 0 ? 1 : -1;
        double total;
        if (x <= 0) {
            const double part = x - rint(x), size = fabs(part);
            total = (part < 0 ? sign : 1.0) * (zeta(s, size) + sign * zeta(s, 1 - size)) - sign * zeta(s, 1 - x);
            if (size == 0) total = INFINITY;
        } else {
            total = zeta(s, x);
        }
        return static_cast<A>(sign * tgamma(s) * total);
    }
};

struct BesselI0 {
    __device__ float operator()(float x) const { return cyl_bessel_i0f(x); }
    __device__ double operator()(double x) const { return cyl_bessel_i0(x); }
};

struct BesselI1 {
    __device__ float operator()(float x) const { return cyl_bessel_i1f(x); }
    __device__ double operator()(double x) const { return cyl_bessel_i1(x); }
};
