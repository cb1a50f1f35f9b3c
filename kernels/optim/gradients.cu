// What is done with all gradients of a model at once: their norm, clipping by norm and by value, and taking a loss
// scale off again.
//
// Norm in two stages, always added in the same order: norm_partial gives one float64 number per chunk of the tables,
//     ORDER 1: sum |x|      ORDER 2: sum x^2      ORDER 0: max |x|, the norm of order infinity
// and norm_total, launched as one block, makes sum, root of the sum, or maximum of all of them in the output's dtype.
//
//     clip_by_norm: x = x * min(max_norm / (total + 1e-6), 1)        total stays on the device
//     clip_by_value: x = min(max(x, -limit), limit); NaN stays
//     unscale: x = x / scale, and found = 1 if any x then is infinite or NaN
//     update_scale, launched as one thread: the scale shrinks where that was found, down to `least`, and grows after an
//     interval without, up to `most`
//
// Scales are in device memory: of a scale on the host unscale is given the factor instead, and no pointer.
//
// Launch: one block for each chunk of the table, see tensors.cuh.

#include "tensors.cuh"

namespace lucid {

template <int ORDER, typename R> __device__ __forceinline__ R joined(R a, R b) {
    if constexpr (ORDER != 0) return a + b;
    return a > b || a != a ? a : b;  // a NaN stays
}

template <int ORDER, typename R> __device__ __forceinline__ R joined_by_block(R mine) {
    return block_reduce(mine, (R)0, [](R a, R b) { return joined<ORDER>(a, b); });
}

template <typename T, int ORDER>
__global__ void norm_partial(Tensors<1> tensors, int rows, int chunk, double* partial_b) {
    typedef Real<T> R;
    R mine = 0;
    for_each_in_chunk<T, 1, 1>(tensors, rows, chunk, [&](R(&value_d)[1]) {
        const R size = value_d[0] < 0 ? -value_d[0] : value_d[0];
        mine = joined<ORDER>(mine, ORDER == 2 ? size * size : size);
    });
    mine = joined_by_block<ORDER>(mine);
    if (threadIdx.x == 0) partial_b[blockIdx.x] = (double)mine;
}

template <typename T, int ORDER> __global__ void norm_total(const double* partial_b, T* out, long long count) {
    double mine = 0;
    for (long long b = threadIdx.x; b < count; b += blockDim.x) mine = joined<ORDER>(mine, partial_b[b]);
    mine = joined_by_block<ORDER>(mine);
    if (threadIdx.x == 0) *out = from_real<T>((Real<T>)(ORDER == 2 ? sqrt(mine) : mine));
}

template <typename T, typename Total>
__global__ void clip_by_norm(Tensors<1> tensors, int rows, int chunk, const Total* total, double max_norm) {
    typedef Real<T> R;
    const R factor = (R)max_norm / ((R)to_real(*total) + (R)1e-6);
    if (factor >= 1) return;  // a NaN goes on
    for_each_in_chunk<T, 1, 0>(tensors, rows, chunk, [&](R(&value_d)[1]) { value_d[0] *= factor; });
}

template <typename T> __global__ void clip_by_value(Tensors<1> tensors, int rows, int chunk, double limit_) {
    typedef Real<T> R;
    const R limit = (R)limit_;
    for_each_in_chunk<T, 1, 0>(tensors, rows, chunk, [&](R(&value_d)[1]) {
        if (value_d[0] < -limit) value_d[0] = -limit;
        if (value_d[0] > limit) value_d[0] = limit;
    });
}

template <typename T>
__global__ void unscale(Tensors<1> tensors, int rows, int chunk, double factor_, const double* scale, float* found) {
    typedef Real<T> R;
    const R factor = (R)(scale ? 1 / *scale : factor_);
    bool bad = false;
    for_each_in_chunk<T, 1, 0>(tensors, rows, chunk, [&](R(&value_d)[1]) {
        value_d[0] = to_real(from_real<T>(value_d[0] * factor));
        bad = bad || !(value_d[0] - value_d[0] == 0);
    });
    if (bad) *found = 1;  // every writer writes the same
}

__global__ void update_scale(double* scale, float* narrow, double* tracker, const float* found, int bad, double growth,
                             double backoff, double interval, double least, double most) {
    if (bad || (found && *found != 0)) {
        *scale = fmax(*scale * backoff, least);
        *tracker = 0;
    } else if (++*tracker >= interval) {
        if (*scale * growth <= most) *scale *= growth;
        *tracker = 0;
    }
    *narrow = (float)*scale;
}

}  // namespace lucid
