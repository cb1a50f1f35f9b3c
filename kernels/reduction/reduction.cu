// Sums, products, largest and smallest elements, and tests, over any axes; loops and launch shapes in reduction.cuh.
//
//     SumOver        sum of x / setting, setting being 1 for integers      as the dtype of number `flavour`
//     ProductOver    product of x                                          as the dtype of number `flavour`
//     LargestOver, SmallestOver    of x, NaN where one is NaN              as the dtype of number `flavour`
//     NonzeroOver    how many x are not 0, int64 (flavour 0); whether any is (1), or all `setting` are (2), bool

#include "reduction.cuh"

namespace lucid {

template <typename T> struct SumOver : Told {
    typedef Total<T> A;
    __device__ A identity() const { return 0; }
    __device__ void take(A& a, T x, long long) const { a = Sum()(a, (A)x); }
    __device__ A merge(A a, A b) const { return Sum()(a, b); }
    __device__ void finish(void* out, long long r, A a) const { store_as(out, r, (A)(a / (A)setting), flavour); }
};

template <typename T> struct ProductOver : Told {
    typedef Total<T> A;
    __device__ A identity() const { return 1; }
    __device__ void take(A& a, T x, long long) const { a = Product()(a, (A)x); }
    __device__ A merge(A a, A b) const { return Product()(a, b); }
    __device__ void finish(void* out, long long r, A a) const { store_as(out, r, a, flavour); }
};

// The greater or smaller of two, by Max or Min.
template <typename T, typename Choice> struct ExtremeOver : Told {
    typedef Total<T> A;
    __device__ A identity() const { return Extreme<A, Choice>::none(); }
    __device__ void take(A& a, T x, long long) const { a = merge(a, (A)x); }
    __device__ A merge(A a, A b) const { return Choice()(a, b); }
    __device__ void finish(void* out, long long r, A a) const { store_as(out, r, a, flavour); }
};
template <typename T> using LargestOver = ExtremeOver<T, Max>;
template <typename T> using SmallestOver = ExtremeOver<T, Min>;

template <typename T> struct NonzeroOver : Told {
    typedef long long A;
    __device__ A identity() const { return 0; }
    __device__ void take(A& a, T x, long long) const { a += (Total<T>)x != 0; }
    __device__ A merge(A a, A b) const { return a + b; }
    __device__ void finish(void* out, long long r, A a) const {
        if (flavour == 0)
            ((long long*)out)[r] = a;
        else
            ((bool*)out)[r] = flavour == 1 ? a > 0 : a == (long long)setting;
    }
};

}  // namespace lucid
