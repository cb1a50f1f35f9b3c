// Variance and standard deviation over any axes; loops and launch shapes in reduction.cuh.
//
//     Moments   sum of (x - mean)^2 / setting, its root with flavour 1; as the dtype of x
// in one pass and without cancellation: means and squares of parts are merged (Welford; Chan, Golub and LeVeque). A mean
// is held as the first number, `shift`, and what it is more than that, so that it has the digits of the differences: one
// that is large would round all that a number adds to it.
//
// Welford: Note on a method for calculating corrected sums of squares and products. Technometrics 4 (1962), 419-420.
// Chan, Golub, LeVeque: Algorithms for computing the sample variance. The American Statistician 37 (1983), 242-247.

#include "reduction.cuh"

namespace lucid {

// Squares of differences leave the range of float where their root does not.
template <typename R> struct MomentsOf {
    double squares;
    R count, shift, rest;
};

template <typename T> struct Moments : Told {
    typedef Total<T> R;
    typedef MomentsOf<R> A;
    __device__ A identity() const { return A{0, 0, 0, 0}; }
    __device__ void take(A& a, T value, long long) const {
        if (a.count == 0) a.shift = (R)value;
        const R x = (R)value - a.shift, distance = x - a.rest;
        a.count += 1;
        a.rest += distance / a.count;
        a.squares += (double)distance * (double)(x - a.rest);
    }
    __device__ A merge(A a, A b) const {
        // the distance from no mean says nothing
        if (a.count == 0) return b;
        if (b.count == 0) return a;
        const R count = a.count + b.count, share = b.count / count;
        const R distance = (b.shift - a.shift) + (b.rest - a.rest);
        const double between = (double)distance * (double)distance * (double)(a.count * share);
        return A{a.squares + b.squares + between, count, a.shift, a.rest + distance * share};
    }
    __device__ void finish(void* out, long long r, A a) const {
        const double variance = a.squares / setting;
        ((T*)out)[r] = (T)(R)(flavour ? sqrt(variance) : variance);
    }
};

}  // namespace lucid
