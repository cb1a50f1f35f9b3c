// Sigmoid, tanh and the smooth activation functions made of them, and their derivatives: lucid/ops/activation/sigmoid.py,
// mish.py, soft.py, glu.py. Launched by lucid/cuda/launch/elementwise.py.

#include "elementwise.cuh"

template <class A> __device__ __forceinline__ A gate(A x) { return 1 / (1 + exp(-x)); }

struct Sigmoid {
    template <class A> __device__ A operator()(A x) const { return gate(x); }
};

struct SigmoidGrad {
    template <class A> __device__ A operator()(A grad, A out) const { return (1 - out) * out * grad; }
};

struct Tanh {
    template <class A> __device__ A operator()(A x) const { return tanh(x); }
};

struct TanhGrad {
    template <class A> __device__ A operator()(A grad, A out) const { return (1 - out * out) * grad; }
};

struct Silu {
    template <class A> __device__ A operator()(A x) const { return x * gate(x); }
};

// s (1 + x (1 - s))
struct SiluGrad {
    template <class A> __device__ A operator()(A grad, A x) const {
        const A s = gate(x);
        return grad * (s * (1 + x * (1 - s)));
    }
};

// log(1 + exp(beta x)) / beta; x itself above the threshold.
struct Softplus {
    template <class A> __device__ A operator()(A x, A beta, A threshold) const {
        const A scaled = x * beta;
        return scaled > threshold ? x : (log1p(exp(-fabs(scaled))) + larger(scaled, A(0))) / beta;
    }
};

struct SoftplusGrad {
    template <class A> __device__ A operator()(A grad, A x, A beta, A threshold) const {
        const A scaled = x * beta;
        return scaled > threshold ? grad : grad * gate(scaled);
    }
};

struct Logsigmoid {
    template <class A> __device__ A operator()(A x) const { return smaller(x, A(0)) - log1p(exp(-fabs(x))); }
};

struct LogsigmoidGrad {
    template <class A> __device__ A operator()(A grad, A x) const { return grad * gate(-x); }
};

// t = tanh(softplus(x)), and 1 - t, both without cancellation.
template <class A> struct MishGate {
    A t, rest;
    __device__ __forceinline__ explicit MishGate(A x) {
        const A w = exp(-fabs(x));
        const A up = x > 0 ? 1 + 2 * w : w * (2 + w), down = x > 0 ? 2 * w * w : A(2);
        t = up / (up + down);
        rest = down / (up + down);
    }
};

struct Mish {
    template <class A> __device__ A operator()(A x) const { return x * MishGate<A>(x).t; }
};

// t + x s (1 - t^2)
struct MishGrad {
    template <class A> __device__ A operator()(A grad, A x) const {
        const MishGate<A> m(x);
        return grad * (m.t + x * gate(x) * m.rest * (1 + m.t));
    }
};

struct Softsign {
    template <class A> __device__ A operator()(A x) const { return x / (1 + fabs(x)); }
};

struct SoftsignGrad {
    template <class A> __device__ A operator()(A grad, A x) const {
        const A size = 1 + fabs(x);
        return grad / (size * size);
    }
};

struct Tanhshrink {
    template <class A> __device__ A operator()(A x) const { return x - tanh(x); }
};

struct TanhshrinkGrad {
    template <class A> __device__ A operator()(A grad, A x) const {
        const A t = tanh(x);
        return grad * (t * t);
    }
};

struct Glu {
    template <class A> __device__ A operator()(A a, A b) const { return a * gate(b); }
};

struct GluGradA {
    template <class A> __device__ A operator()(A grad, A b) const { return grad * gate(b); }
};

struct GluGradB {
    template <class A> __device__ A operator()(A grad, A a, A b) const {
        const A s = gate(b);
        return grad * (a * ((1 - s) * s));
    }
};
