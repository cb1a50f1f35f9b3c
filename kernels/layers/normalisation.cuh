// What all normalisations share: packs of neighbouring elements, and mean and variance that lose nothing to large means.
//
// Device functions only. Moments are merged by the rule of Chan, Golub and LeVeque:
//     delta = mean_b - mean_a,   mean = mean_a + delta * n_b / n,   m2 = m2_a + m2_b + delta^2 * n_a * n_b / n
// where n = n_a + n_b and m2 is the sum of squared deviations from the mean. A mean is held as one of the numbers, `shift`,
// and what it is more than that, so that it has the digits of their differences, however large it is.
//
// Chan, Golub, LeVeque: Algorithms for computing the sample variance. The American Statistician 37 (1983), 242-247.

#ifndef LUCID_NORMALISATION_CUH
#define LUCID_NORMALISATION_CUH

#include "lucid.cuh"

namespace lucid {

// Elements of a row that a thread keeps.
template <typename T> constexpr int items_of_thread = 64 / (int)sizeof(Real<T>);

// Reads VEC neighbours; `from` is aligned as a pack is.
template <typename T, int VEC> __device__ __forceinline__ void read_pack(const T* from, Real<T> (&value_k)[VEC]) {
    const Pack<T, VEC> pack = *(const Pack<T, VEC>*)from;
#pragma unroll
    for (int k = 0; k < VEC; ++k) value_k[k] = to_real(pack.value_k[k]);
}

template <typename T, int VEC> __device__ __forceinline__ void write_pack(T* to, const Real<T> (&value_k)[VEC]) {
    Pack<T, VEC> pack;
#pragma unroll
    for (int k = 0; k < VEC; ++k) pack.value_k[k] = from_real<T>(value_k[k]);
    *(Pack<T, VEC>*)to = pack;
}

__device__ __forceinline__ float inverse_root(float x) { return 1.0f / sqrtf(x); }
__device__ __forceinline__ double inverse_root(double x) { return 1.0 / sqrt(x); }

// The sum of squared distances from the mean, of the squares and the sum of `count` distances from a number near it:
//     sum (x - mean)^2 = sum (x - c)^2 - (sum (x - c))^2 / count
// A mean that was rounded may be further from the mean than the numbers are.
template <typename R> __device__ __forceinline__ R about_the_mean(R squares, R drift, R count) {
    // infinite ones stay infinite
    return squares - squares == 0 ? Max()(squares - drift / count * drift, (R)0) : squares;
}

template <typename R> struct Moments {
    R count, shift, rest, m2;

    __device__ __forceinline__ R mean() const { return shift + rest; }

    __device__ __forceinline__ void merge(const Moments& other) {
        if (other.count == 0) return;
        // the distance from no mean says nothing, and its square may be infinite
        if (count == 0) {
            *this = other;
            return;
        }
        const R total = count + other.count, share = other.count / total;
        const R delta = (other.shift - shift) + (other.rest - rest);
        rest += delta * share;
        m2 += other.m2 + delta * delta * count * share;
        count = total;
    }

    // Takes the first `have` of VALUES numbers: their own two passes, then one merge.
    template <int VALUES> __device__ __forceinline__ void push(const R (&value_k)[VALUES], int have) {
        if (count == 0) shift = value_k[0];
        R sum = 0, squares = 0;
#pragma unroll
        for (int k = 0; k < VALUES; ++k) sum += k < have ? value_k[k] - shift : (R)0;
        const R middle = sum / (R)have;
#pragma unroll
        for (int k = 0; k < VALUES; ++k) {
            const R delta = k < have ? (value_k[k] - shift) - middle : (R)0;
            squares += delta * delta;
        }
        merge(Moments{(R)have, shift, middle, squares});
    }
};

// An op as of `gathered`.
template <typename R> struct Merging {
    typedef Moments<R> A;
    __device__ __forceinline__ A identity() const { return A{0, 0, 0, 0}; }
    __device__ __forceinline__ A merge(A a, const A& b) const {
        a.merge(b);
        return a;
    }
};

// Two sums at once.
template <typename R> struct Sums {
    R bias, weight;
};

template <typename R> struct AddingBoth {
    typedef Sums<R> A;
    __device__ __forceinline__ A identity() const { return A{0, 0}; }
    __device__ __forceinline__ A merge(A a, const A& b) const { return A{a.bias + b.bias, a.weight + b.weight}; }
};

}  // namespace lucid

#endif
