// Losses of each element, and their derivatives: lucid/ops/loss/regression.py, probability_loss.py. Launched by
// lucid/cuda/launch/elementwise.py. Reductions to a mean or sum are those of reduction.cu.

#include "elementwise.cuh"

using namespace lucid;

// ---- numbers: a predicted, b true, or the other way round ----

struct SquaredDifference {
    template <class A> __device__ A operator()(A a, A b) const { return (a - b) * (a - b); }
};

struct SquaredDifferenceGrad {
    template <class A> __device__ A operator()(A grad, A a, A b) const { return (a - b) * grad * A(2); }
};

// |d| - beta / 2, below beta d^2 / (2 beta)
struct SmoothDifference {
    template <class A> __device__ A operator()(A a, A b, A beta) const {
        const A size = abs(a - b);
        if (beta == A(0)) return size;
        const A small = Min()(size, beta);
        return (size - small / A(2)) * (small / beta);
    }
};

struct SmoothDifferenceGrad {
    template <class A> __device__ A operator()(A grad, A a, A b, A beta) const {
        const A difference = a - b;
        if (beta == A(0)) return grad * (difference > A(0) ? A(1) : difference < A(0) ? A(-1) : A(0));
        return grad * Max()(Min()(difference / beta, A(1)), A(-1));
    }
};

struct SmoothDifferenceBend {
    template <class A> __device__ A operator()(A a, A b, A beta) const {
        return abs(a - b) < beta ? A(1) / beta : A(0);
    }
};

// ---- probabilities x, or their logits, and true ones t ----

// -(t log(x) + (1 - t) log(1 - x)), logarithms of -100 at least
struct BinaryCrossEntropy {
    template <class A> __device__ A operator()(A x, A t) const {
        const A one = Max()(log(x), A(-100)), other = Max()(log1p(-x), A(-100));
        return (other - one) * t - other;
    }
};

struct BinaryCrossEntropyGradX {
    template <class A> __device__ A operator()(A grad, A x, A t) const {
        return grad * (x - t) / Max()((A(1) - x) * x, A(1e-12));
    }
};

struct BinaryCrossEntropyGradT {
    template <class A> __device__ A operator()(A grad, A x) const { return grad * (log1p(-x) - log(x)); }
};

// log(1 + exp(-x)), which is -log(sigmoid(x))
template <class A> __device__ __forceinline__ A softplus_of_minus(A x) { return log1p(exp(-abs(x))) - Min()(x, A(0)); }

template <class A> __device__ __forceinline__ A sigmoid_of(A x) {
    const A e = exp(-abs(x));
    return (x >= A(0) ? A(1) : e) / (A(1) + e);
}

struct LogitsCrossEntropy {
    template <class A> __device__ A operator()(A x, A t) const { return softplus_of_minus(x) + (A(1) - t) * x; }
};

struct LogitsCrossEntropyGradX {
    template <class A> __device__ A operator()(A grad, A x, A t) const { return grad * (sigmoid_of(x) - t); }
};

struct LogitsCrossEntropyGradT {
    template <class A> __device__ A operator()(A grad, A x) const { return -(grad * x); }
};

// with a factor for what t counts for

struct WeighedCrossEntropy {
    template <class A> __device__ A operator()(A x, A t, A positive) const {
        return softplus_of_minus(x) * ((positive - A(1)) * t + A(1)) + (A(1) - t) * x;
    }
};

struct WeighedCrossEntropyGradX {
    template <class A> __device__ A operator()(A grad, A x, A t, A positive) const {
        const A hit = positive * t;
        return grad * ((hit + A(1) - t) * sigmoid_of(x) - hit);
    }
};

struct WeighedCrossEntropyGradT {
    template <class A> __device__ A operator()(A grad, A x, A positive) const {
        return grad * (positive * softplus_of_minus(x) - softplus_of_minus(-x));
    }
};

struct WeighedCrossEntropyGradPositive {
    template <class A> __device__ A operator()(A grad, A x, A t) const { return grad * t * softplus_of_minus(x); }
};

// ---- divergence of log-probabilities x from t, or from exp(t) ----

struct Divergence {
    template <class A> __device__ A operator()(A x, A t) const { return (log(t == A(0) ? A(1) : t) - x) * t; }
};

struct DivergenceGradX {
    template <class A> __device__ A operator()(A grad, A t) const { return -(grad * t); }
};

struct DivergenceGradT {
    template <class A> __device__ A operator()(A grad, A x, A t) const { return grad * (log(t) - x + A(1)); }
};

struct LogDivergence {
    template <class A> __device__ A operator()(A x, A t) const { return (t - x) * exp(t); }
};

struct LogDivergenceGradX {
    template <class A> __device__ A operator()(A grad, A t) const { return -(grad * exp(t)); }
};

struct LogDivergenceGradT {
    template <class A> __device__ A operator()(A grad, A x, A t) const { return grad * (exp(t) * (t - x + A(1))); }
};
