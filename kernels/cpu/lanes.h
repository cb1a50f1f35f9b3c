// Loops over rows of floats, by vectors written out.
//
// A sum is that of a few partial sums of floats, which one vector holds, for each part of a row; parts are added in double.

#ifndef LUCID_LANES_H
#define LUCID_LANES_H

#include "cpu.h"

namespace lucid {

constexpr int LANES = 16, PART = 512;

template <int N> struct Vector {
    typedef float Floats __attribute__((vector_size(4 * N)));
    typedef double Doubles __attribute__((vector_size(8 * N)));
};
typedef Vector<LANES>::Floats Floats;

// What reads N neighbours of a row from an element on, or one.
template <int N> struct Several {
    typedef typename Vector<N>::Floats Lanes;
    long long i;
    __forceinline__ Lanes operator()(const float* x_n) const {
        Lanes lanes;
        std::memcpy(&lanes, x_n + i, sizeof(lanes));
        return lanes;
    }
    __forceinline__ typename Vector<N>::Doubles wide(const float* x_n) const {
        return __builtin_convertvector((*this)(x_n), typename Vector<N>::Doubles);
    }
};
struct One {
    long long i;
    __forceinline__ float operator()(const float* x_n) const { return x_n[i]; }
    __forceinline__ double wide(const float* x_n) const { return x_n[i]; }
};

// Writes value(at) to n elements, where `at` reads some of an array: at(x_n) * at(y_n). One of these may be written to.
template <typename Value> __forceinline__ void write(float* out_n, long long n, Value value) {
    long long i = 0;
    for (; i + LANES <= n; i += LANES) {
        const Floats lanes = value(Several<LANES>{i});
        std::memcpy(out_n + i, &lanes, sizeof(lanes));
    }
    for (; i < n; ++i) out_n[i] = value(One{i});
}

// What several sums are made of, or they themselves.
template <typename T, int K> struct Terms {
    T term_k[K];
    template <typename U> __forceinline__ void operator+=(const Terms<U, K>& other) {
        for (int k = 0; k < K; ++k) term_k[k] += other.term_k[k];
    }
};
template <typename T, typename... Rest> __forceinline__ Terms<T, 1 + sizeof...(Rest)> terms(T first, Rest... rest) {
    return {{first, rest...}};
}

// The sum of N numbers of a vector, halved until it is one.
template <int N, typename T, typename Lanes> __forceinline__ T sum_of_lanes(const Lanes& lanes) {
    if constexpr (N == 1) {
        return lanes[0];
    } else {
        typedef T Half __attribute__((vector_size(sizeof(T) * (N / 2))));
        Half half_h[2];
        std::memcpy(half_h, &lanes, sizeof(lanes));
        return sum_of_lanes<N / 2, T>(half_h[0] + half_h[1]);
    }
}

// The sums of the terms that value(at) has, over n elements: by N partial sums of each for each part of them.
template <int K, int N = LANES, typename Value> __forceinline__ Terms<double, K> sums_of(long long n, Value value) {
    Terms<double, K> total = {};
    for (long long first = 0; first < n; first += PART) {
        const long long end = n - first < PART ? n : first + PART;
        decltype(value(Several<N>{0})) even = {}, odd = {};
        decltype(value(One{0})) rest = {};
        long long i = first;
        for (; i + 2 * N <= end; i += 2 * N) {
            even += value(Several<N>{i});
            odd += value(Several<N>{i + N});
        }
        for (; i + N <= end; i += N) even += value(Several<N>{i});
        for (; i < end; ++i) rest += value(One{i});
        if (n >= N) {
            even += odd;
            for (int k = 0; k < K; ++k) rest.term_k[k] += sum_of_lanes<N, decltype(+rest.term_k[k])>(even.term_k[k]);
        }
        total += rest;
    }
    return total;
}
template <int N = LANES, typename Value> __forceinline__ double sum_of(long long n, Value value) {
    return sums_of<1, N>(n, [=](auto at) { return terms(value(at)); }).term_k[0];
}

}  // namespace lucid

#endif  // LUCID_LANES_H
