// Hyperbolic functions, their inverses and derivatives: lucid/ops/elementwise/trigonometry.py. Launched by lucid/cuda/launch/elementwise.py.

#include "elementwise.cuh"

struct Sinh {
    template <class A> __device__ A operator()(A x) const { return sinh(x); }
};

struct SinhGrad {
    template <class A> __device__ A operator()(A grad, A x) const { return grad * cosh(x); }
};

struct Cosh {
    template <class A> __device__ A operator()(A x) const { return cosh(x); }
};

struct CoshGrad {
    template <class A> __device__ A operator()(A grad, A x) const { return grad * sinh(x); }
};

struct Asinh {
    template <class A> __device__ A operator()(A x) const { return asinh(x); }
};

struct AsinhGrad {
    template <class A> __device__ A operator()(A grad, A x) const { return grad / sqrt(x * x + 1); }
};

struct Acosh {
    template <class A> __device__ A operator()(A x) const { return acosh(x); }
};

// 1 / sqrt(x * x - 1), also where the function is not a number; in two roots: x * x would overflow.
struct AcoshGrad {
    template <class A> __device__ A operator()(A grad, A x) const {
        return grad / sqrt(fabs(x) - 1) / sqrt(fabs(x) + 1);
    }
};

struct Atanh {
    template <class A> __device__ A operator()(A x) const { return atanh(x); }
};

struct AtanhGrad {
    template <class A> __device__ A operator()(A grad, A x) const { return grad / (1 - x * x); }
};
