// Activation functions made of straight pieces, elu and its kind, and their derivatives: lucid/ops/activation/relu.py,
// elu.py, hard.py, prelu.py. Launched by lucid/cuda/launch/elementwise.py.

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

// By Klambauer and others, 2017: lucid/ops/activation/elu.py has them too.
template <class A> __device__ __forceinline__ A selu_scale() { return A(1.0507009873554804934193349852946); }
template <class A> __device__ __forceinline__ A selu_depth() { return A(1.7580993408473768599402175208123); }

struct Selu {
    template <class A> __device__ A operator()(A x) const {
        return x > 0 ? selu_scale<A>() * x : selu_depth<A>() * expm1(x);
    }
};

struct SeluGrad {
    template <class A> __device__ A operator()(A grad, A x) const {
        return grad * (x <= 0 ? selu_depth<A>() * exp(x) : selu_scale<A>());
    }
};

struct Celu {
    template <class A> __device__ A operator()(A x, A alpha) const { return x > 0 ? x : alpha * expm1(x / alpha); }
};

struct CeluGrad {
    template <class A> __device__ A operator()(A grad, A x, A alpha) const {
        return x <= 0 ? grad * exp(x / alpha) : grad;
    }
};

// The slope below zero is an operand.
struct Prelu {
    template <class A> __device__ A operator()(A x, A slope) const { return x > 0 ? x : slope * x; }
};

struct PreluGradX {
    template <class A> __device__ A operator()(A grad, A x, A slope) const { return x > 0 ? grad : slope * grad; }
};

struct PreluGradSlope {
    template <class A> __device__ A operator()(A grad, A x) const { return x > 0 ? A(0) : grad * x; }
};

struct Hardsigmoid {
    template <class A> __device__ A operator()(A x) const { return smaller(larger(x + 3, A(0)), A(6)) / 6; }
};

struct HardsigmoidGrad {
    template <class A> __device__ A operator()(A grad, A x) const { return x > -3 && x < 3 ? grad / 6 : A(0); }
};

struct Hardswish {
    template <class A> __device__ A operator()(A x) const { return x * smaller(larger(x + 3, A(0)), A(6)) / 6; }
};

struct HardswishGrad {
    template <class A> __device__ A operator()(A grad, A x) const {
        return x <= -3 ? A(0) : x < 3 ? grad * (x / 3 + A(0.5)) : grad;
    }
};

struct Hardshrink {
    template <class A> __device__ A operator()(A x, A lambd) const { return x >= -lambd && x <= lambd ? A(0) : x; }
};

struct ShrinkGrad {
    template <class A> __device__ A operator()(A grad, A x, A lambd) const {
        return x >= -lambd && x <= lambd ? A(0) : grad;
    }
};

struct Softshrink {
    template <class A> __device__ A operator()(A x, A lambd) const {
        return x > lambd ? x - lambd : x < -lambd ? x + lambd : x == x ? A(0) : x;
    }
};

struct Threshold {
    template <class A> __device__ A operator()(A x, A threshold, A value) const { return x <= threshold ? value : x; }
};

struct ThresholdGrad {
    template <class A> __device__ A operator()(A grad, A x, A threshold, A) const {
        return x <= threshold ? A(0) : grad;
    }
};
