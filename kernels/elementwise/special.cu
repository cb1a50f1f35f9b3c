// Error functions and their derivatives: lucid/ops/elementwise/special.py. Launched by lucid/cuda/launch/elementwise.py.

#include "elementwise.cuh"
#include "philox.cuh"

struct Erf {
    template <class A> __device__ A operator()(A x) const { return erf(x); }
};

// 2 / sqrt(pi) exp(-x^2)
struct ErfGrad {
    template <class A> __device__ A operator()(A grad, A x) const {
        return grad * (exp(-(x * x)) * A(1.1283791670955126));
    }
};

struct Erfc {
    template <class A> __device__ A operator()(A x) const { return erfc(x); }
};

struct ErfcGrad {
    template <class A> __device__ A operator()(A grad, A x) const {
        return grad * (exp(-(x * x)) * A(-1.1283791670955126));
    }
};

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

struct ErfinvGrad {
    template <class A> __device__ A operator()(A grad, A out) const {
        return grad * (exp(out * out) * A(0.8862269254527579));
    }
};
