// An activation function of a sum, f(x + bias), and the gradient of the sum, grad f'(x + bias):
// lucid/ops/activation/bias_activation.py. Launched by lucid/cuda/launch/elementwise.py. Half types are added in float and rounded once.

#include "activation.cu"
#include "gelu.cu"
#include "sigmoid.cu"

template <class F> struct OfSum {
    template <class A> __device__ A operator()(A x, A bias) const { return F()(x + bias); }
};

template <class Slope> struct SumGrad {
    template <class A> __device__ A operator()(A grad, A x, A bias) const { return Slope()(grad, x + bias); }
};

// Slopes that are kept as functions of the result, of the argument.
struct SigmoidSlope {
    template <class A> __device__ A operator()(A grad, A x) const { return SigmoidGrad()(grad, Sigmoid()(x)); }
};

struct TanhSlope {
    template <class A> __device__ A operator()(A grad, A x) const { return TanhGrad()(grad, Tanh()(x)); }
};
