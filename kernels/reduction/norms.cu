// Norms and the logarithm of a sum of exponentials over any axes; loops and launch shapes in reduction.cuh.
//
//     LogSumExp                     log(sum(exp(x))) without overflow
//     Norm                          flavour 0: count of x that are not 0; 1: sum |x|; 2: sqrt(sum x^2);
//                                   3: (sum |x|^setting)^(1 / setting)
//     LargestSize, SmallestSize     of |x|, NaN where one is NaN
// each as the dtype of x.

#include "rows.cuh"

namespace lucid {

template <typename T> struct LogSumExp : Massing<Total<T>> {
    typedef Mass<Total<T>> A;
    __device__ LogSumExp(double, int) {}
    __device__ void take(A& a, T x, long long) const { a = this->merge(a, A{(Total<T>)x, 1}); }
    __device__ void finish(void* out, long long r, A a) const { ((T*)out)[r] = (T)(log(a.mass) + a.peak); }
};

template <typename T> struct Norm : Told {
    typedef Total<T> A;
    __device__ A identity() const { return 0; }
    __device__ void take(A& a, T value, long long) const {
        const A x = (A)value;
        if (flavour == 0)
            a += x != 0;
        else if (flavour == 1)
            a += abs(x);
        else if (flavour == 2)
            a += x * x;
        else
            a += pow(abs(x), (A)setting);
    }
    __device__ A merge(A a, A b) const { return a + b; }
    __device__ void finish(void* out, long long r, A a) const {
        ((T*)out)[r] = (T)(flavour == 2 ? sqrt(a) : flavour == 3 ? pow(a, (A)(1 / setting)) : a);
    }
};

template <typename T, typename Choice> struct ExtremeSize : Told {
    typedef Total<T> A;
    __device__ A identity() const { return Extreme<A, Choice>::none(); }
    __device__ void take(A& a, T x, long long) const { a = merge(a, abs((A)x)); }
    __device__ A merge(A a, A b) const { return Choice()(a, b); }
    __device__ void finish(void* out, long long r, A a) const { ((T*)out)[r] = (T)a; }
};
template <typename T> using LargestSize = ExtremeSize<T, Max>;
template <typename T> using SmallestSize = ExtremeSize<T, Min>;

}  // namespace lucid
