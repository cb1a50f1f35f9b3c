// Variance and standard deviation over any axes; loops and launch shapes in reduction.cuh.
//
//     Moments   sum of (x - mean)^2 / setting, its root with flavour 1; as the dtype of x
// in one pass and without cancellation: means and squares of parts are merged (Welford; Chan, Golub and LeVeque).
//
// Welford: Note on a method for calculating corrected sums of squares and products. Technometrics 4 (1962), 419-420.
// Chan, Golub, LeVeque: Algorithms for computing the sample variance. The American Statistician 37 (1983), 242-247.

#include "reduction.cuh"

namespace lucid {

template <typename R>
struct MomentsOf {
    R count, mean, squares;
};

template <typename T>
struct Moments {
    typedef Total<T> R;
    typedef MomentsOf<R> A;
    double setting;
    int flavour;
    __device__ A identity() const { return A{0, 0, 0}; }
    __device__ void take(A& a, T x, long long) const {
        const R distance = (R)x - a.mean;
        a.count += 1;
        a.mean += distance / a.count;
        a.squares += distance * ((R)x - a.mean);
    }
    __device__ A merge(A a, A b) const {
        const R count = a.count + b.count;
        const R share = count > 0 ? b.count / count : 0;
        const R distance = b.mean - a.mean;
        return A{count, a.mean + distance * share, a.squares + b.squares + distance * distance * a.count * share};
    }
    __device__ void finish(void* out, long long r, A a) const {
        const R variance = a.squares / (R)setting;
        ((T*)out)[r] = (T)(flavour ? sqrt(variance) : variance);
    }
};

}  // namespace lucid
