// Derivatives of reductions: what the gradient of a result gives to each element that went into it. Gradient, result
// and what else there is of each row are broadcast against the elements. Launched by lucid/cuda/launch/elementwise.py.

#include "elementwise.cuh"

using namespace lucid;

// of log(sum(exp(x))), which is out
struct LogSumExpGrad {
    template <class A> __device__ A operator()(A grad, A x, A out) const { return grad * exp(x - out); }
};

// NaN being equal to NaN
template <class A> __device__ __forceinline__ bool same(A x, A y) { return x == y || (x != x && y != y); }

// of the largest or smallest x, which is out; share = 1 / how many x are the same
struct ExtremeGrad {
    template <class A> __device__ A operator()(A grad, A x, A out, A share) const {
        return grad * (same(x, out) ? share : A(0));
    }
};

// of sum((x - mean)^2) / (2 / slope)
struct VarianceGrad {
    template <class A> __device__ A operator()(A grad, A x, A mean, A slope) const { return grad * slope * (x - mean); }
};

// of sqrt(sum((x - mean)^2)), which is out; 0 where that is 0
struct DeviationGrad {
    template <class A> __device__ A operator()(A grad, A x, A mean, A out) const {
        return grad * (out == A(0) ? out : (x - mean) / out);
    }
};

struct ReciprocalOrZero {
    template <class A> __device__ A operator()(A x) const { return x == A(0) ? x : A(1) / x; }
};

template <class A> __device__ __forceinline__ A sign_of(A x) { return x > A(0) ? A(1) : x < A(0) ? A(-1) : A(0); }

// of sum(|x|), sqrt(sum(x^2)), max |x| or min |x|, and (sum(|x|^p))^(1/p), which is out

struct SumOfSizesGrad {
    template <class A> __device__ A operator()(A grad, A x) const { return grad * sign_of(x); }
};

struct LengthGrad {
    template <class A> __device__ A operator()(A grad, A x, A out) const {
        return out == A(0) ? x * grad * out : x * (grad / out);
    }
};

struct ExtremeSizeGrad {
    template <class A> __device__ A operator()(A grad, A x, A out, A share) const {
        return grad * sign_of(x) * (same(abs(x), out) ? share : A(0));
    }
};

struct PowerNormGrad {
    template <class A> __device__ A operator()(A grad, A x, A out, A p) const {
        // of x = 0 a power below 0 is infinite, and the gradient 0
        const A size = out == A(0) ? A(0) : abs(x) / out;
        const A slope = p > A(1) ? pow(size, p - A(1)) : size == A(0) ? A(0) : pow(A(1) / size, A(1) - p);
        return grad * sign_of(x) * slope;
    }
};
