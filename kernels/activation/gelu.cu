// Gaussian error linear units and their derivatives: lucid/ops/activation/gelu.py. Launched by lucid/cuda/launch/elementwise.py.
//
// gelu(x) = x P(normal <= x) = max(x, 0) - |x| Q(|x|), with the upper tail Q(y) = erfc(y / sqrt(2)) / 2: no digits are
// lost below zero. Beyond |x| = 40 the tail is zero in every dtype.

#include "elementwise.cuh"

template <class A> __device__ __forceinline__ A size_of(A x) { return fmin(fabs(x), A(40)); }

template <class A> __device__ __forceinline__ A tail(A size) { return A(0.5) * erfc(size * A(0.7071067811865476)); }

struct Gelu {
    template <class A> __device__ A operator()(A x) const {
        const A size = size_of(x);
        return larger(x, A(-0.0)) - size * tail(size);
    }
};

// 1/2 + sign(x) (1/2 - Q(|x|) + |x| density(x))
struct GeluGrad {
    template <class A> __device__ A operator()(A grad, A x) const {
        const A size = size_of(x);
        const A density = A(0.3989422804014327) * exp(A(-0.5) * size * size);
        const A rise = A(0.5) - tail(size) + size * density;
        return grad * (A(0.5) + (x > 0 ? rise : x < 0 ? -rise : x));
    }
};

// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)) with u = sqrt(2 / pi) (x + 0.044715 x^3): no digits lost below zero.
template <class A> __device__ __forceinline__ A tanh_gate(A x) {
    return 1 / (1 + exp(x * (A(-1.5957691216057308) + A(-0.07135481627260025) * (x * x))));
}

struct GeluTanh {
    template <class A> __device__ A operator()(A x) const { return x * tanh_gate(x); }
};

// s (1 + x (1 - s) 2 u') with the gate s
struct GeluTanhGrad {
    template <class A> __device__ A operator()(A grad, A x) const {
        const A s = tanh_gate(x);
        const A rise = A(1.5957691216057308) + A(0.21406444881780076) * (x * x);
        return grad * (s * (1 + x * rise * (1 - s)));
    }
};
