// Activation functions made of straight pieces, and elu, and their derivatives: lucid/ops/activation/relu.py. Launched by
// lucid/cuda/launch/elementwise.py.

#include "elementwise.cuh"

struct Relu {
    template <class A> __device__ A operator()(A x) const { return x < 0 ? A(0) : x; }
};

struct ReluGrad {
    template <class A> __device__ A operator()(A grad, A out) const { return out <= 0 ? A(0) : grad; }
};

struct LeakyRelu {
    template <class A> __device__ A operator()(A x, A slope) const { return x > 0 ? x : slope * x; }
};

struct LeakyReluGrad {
    template <class A> __device__ A operator()(A grad, A x, A slope) const { return x > 0 ? grad : slope * grad; }
};

struct Elu {
    template <class A> __device__ A operator()(A x, A alpha) const { return x > 0 ? x : alpha * expm1(x); }
};

struct EluGrad {
    template <class A> __device__ A operator()(A grad, A x, A alpha) const {
        return x <= 0 ? grad * (alpha * exp(x)) : grad;
    }
};

// On the bounds it is zero.
struct HardtanhGrad {
    template <class A> __device__ A operator()(A grad, A x, A low, A high) const {
        return x <= low || x >= high ? A(0) : grad;
    }
};
