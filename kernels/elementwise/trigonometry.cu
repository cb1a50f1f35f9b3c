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

struct Hypot {
    template <class A> __device__ A operator()(A a, A b) const { return hypot(a, b); }
};
