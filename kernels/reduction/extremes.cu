// Where the largest and smallest elements are, how many tie for them, and elements by their places along an axis.
//
//     PlaceOfLargest, PlaceOfSmallest    the first i with that x, int64; the first NaN where there is one
//     ShareOfLargest, ShareOfSmallest    1 / how many x are equal to the largest or smallest, NaN being equal to NaN; with
//                                        flavour 1, |x| to the largest or smallest of these; as the dtype of x
// over axes as in reduction.cuh, which has loops and launch shapes;
//
//     element_at:       out[r] = x[r, place[r]]
//     element_at_grad:  out[o, i, k] = i == place[o, k] ? grad[o, k] : 0       o, k: what lies before and behind the axis
// one thread an element; block of 32 to 256 threads, grid of as many as needed. A place beyond the axis gives 0.

#include "reduction.cuh"

namespace lucid {

template <typename T, bool LARGEST, typename Choice> struct PlaceOf : Told {
    typedef Place<Total<T>> A;
    __device__ A identity() const { return A{Extreme<Total<T>, Choice>::none(), Limits<long long>::greatest()}; }
    __device__ void take(A& a, T value, long long i) const {
        // within a thread i grows, so that equal ones change nothing
        const Total<T> x = (Total<T>)value;
        const bool better = LARGEST ? x > a.value : x < a.value;
        if (better || (x != x && a.value == a.value) || a.index == Limits<long long>::greatest()) a = A{x, i};
    }
    __device__ A merge(A a, A b) const { return First<LARGEST>()(a, b); }
    __device__ void finish(void* out, long long r, A a) const { ((long long*)out)[r] = a.index; }
};
template <typename T> using PlaceOfLargest = PlaceOf<T, true, Max>;
template <typename T> using PlaceOfSmallest = PlaceOf<T, false, Min>;

template <typename R> struct Ties {
    R value, count;
};

template <typename T, typename Choice> struct ShareOf : Told {
    typedef Total<T> R;
    typedef Ties<R> A;
    __device__ A identity() const { return A{Extreme<R, Choice>::none(), 0}; }
    __device__ void take(A& a, T x, long long) const {
        const R value = flavour ? abs((R)x) : (R)x;
        a = merge(a, A{value, 1});
    }
    __device__ A merge(A a, A b) const {
        if (a.value == b.value || (a.value != a.value && b.value != b.value)) return A{a.value, a.count + b.count};
        const R value = Choice()(a.value, b.value);
        return value == a.value || a.value != a.value ? a : b;
    }
    __device__ void finish(void* out, long long r, A a) const { ((T*)out)[r] = (T)(1 / a.count); }
};
template <typename T> using ShareOfLargest = ShareOf<T, Max>;
template <typename T> using ShareOfSmallest = ShareOf<T, Min>;

template <typename T>
__global__ void element_at(const T* x, const long long* place_r, T* out_r, const __grid_constant__ Axes kept,
                           long long rows, long long size, long long stride) {
    const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const long long place = place_r[row];
    out_r[row] = (unsigned long long)place < (unsigned long long)size ? x[kept.offset(row) + place * stride] : (T)0.f;
}

template <typename T>
__global__ void element_at_grad(const T* grad, const long long* place_ok, T* out, const __grid_constant__ Axes kept,
                                long long outer, long long size, long long inner) {
    const long long index = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= outer * size * inner) return;
    const long long slice = index / inner, row = slice / size * inner + index % inner;
    out[index] = slice % size == place_ok[row] ? grad[kept.offset(row)] : (T)0.f;
}

}  // namespace lucid
