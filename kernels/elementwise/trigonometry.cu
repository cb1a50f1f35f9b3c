// Trigonometric functions, their inverses and derivatives: lucid/ops/elementwise/trigonometry.py. Launched by
// lucid/cuda/launch/elementwise.py.

#include "elementwise.cuh"

struct Sin {
    template <class A> __device__ A operator()(A x) const { return sin(x); }
};

struct SinGrad {
    template <class A> __device__ A operator()(A grad, A x) const { return grad * cos(x); }
};

struct Cos {
    template <class A> __device__ A operator()(A x) const { return cos(x); }
};

struct CosGrad {
    template <class A> __device__ A operator()(A grad, A x) const { return -(grad * sin(x)); }
};

struct Tan {
    template <class A> __device__ A operator()(A x) const { return tan(x); }
};

struct TanGrad {
    template <class A> __device__ A operator()(A grad, A out) const { return grad * (out * out + 1); }
};

struct Asin {
    template <class A> __device__ A operator()(A x) const { return asin(x); }
};

struct AsinGrad {
    template <class A> __device__ A operator()(A grad, A x) const { return grad / sqrt(1 - x * x); }
};

struct Acos {
    template <class A> __device__ A operator()(A x) const { return acos(x); }
};

struct AcosGrad {
    template <class A> __device__ A operator()(A grad, A x) const { return -(grad / sqrt(1 - x * x)); }
};

struct Atan {
    template <class A> __device__ A operator()(A x) const { return atan(x); }
};

struct AtanGrad {
    template <class A> __device__ A operator()(A grad, A x) const { return grad / (x * x + 1); }
};

struct Atan2 {
    template <class A> __device__ A operator()(A a, A b) const { return atan2(a, b); }
};

// x / (a^2 + b^2), zero at the origin, where the angle jumps.
template <class A> __device__ __forceinline__ A over_square(A x, A a, A b) {
    const A size = a * a + b * b;
    return size == 0 ? A(0) : x / size;
}

struct Atan2GradA {
    template <class A> __device__ A operator()(A grad, A a, A b) const { return grad * over_square(b, a, b); }
};

struct Atan2GradB {
    template <class A> __device__ A operator()(A grad, A a, A b) const { return -(grad * over_square(a, a, b)); }
};

struct Sinc {
    template <class A> __device__ A operator()(A x) const {
        const A turns = x * A(3.141592653589793);
        return x == 0 ? A(1) : sin(turns) / turns;
    }
};

// Near zero the terms cancel, and overflow: there it is the series of (-1)^k 2k / (2k + 1)! t^(2k - 1).
struct SincGrad {
    template <class A> __device__ A operator()(A grad, A x) const {
        const A turns = x * A(3.141592653589793), square = turns * turns;
        if (fabs(turns) < 1) {
            A series = A(-1 / 6758061133824000.0);
            series = A(1 / 22230464256000.0) + square * series;
            series = A(-1 / 93405312000.0) + square * series;
            series = A(1 / 518918400.0) + square * series;
            series = A(-1 / 3991680.0) + square * series;
            series = A(1 / 45360.0) + square * series;
            series = A(-1 / 840.0) + square * series;
            series = A(1 / 30.0) + square * series;
            series = A(-1 / 3.0) + square * series;
            return grad * A(3.141592653589793) * (series * turns);
        }
        return grad * A(3.141592653589793) * ((cos(turns) - sin(turns) / turns) / turns);
    }
};

struct Hypot {
    template <class A> __device__ A operator()(A a, A b) const { return hypot(a, b); }
};
