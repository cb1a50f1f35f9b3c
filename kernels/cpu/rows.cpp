// Softmax, layer norm and their gradients on the CPU: row by row, each while it lies in the nearest cache.
//
// A sum is that of a few partial sums of floats, which one vector holds, for each part of a row; parts are added in double.

#include "cpu.h"
#include "exponential.h"

namespace lucid {

constexpr int LANES = 32, PART = 512;

// The sum of value(i) of type T for i below n.
template <typename T, typename Value> __forceinline__ double sum_of(long long n, Value value) {
    double total = 0;
    for (long long first = 0; first < n; first += PART) {
        const long long end = n - first < PART ? n : first + PART;
        T lane_l[LANES] = {};
        long long i = first;
        for (; i + LANES <= end; i += LANES)
            for (int l = 0; l < LANES; ++l) lane_l[l] += value(i + l);
        for (int l = 0; i < end; ++l, ++i) lane_l[l] += value(i);
        for (int half = LANES / 2; half; half /= 2)
            for (int l = 0; l < half; ++l) lane_l[l] += lane_l[l + half];
        total += lane_l[0];
    }
    return total;
}

// The largest number of a row, past NaN: that is in the sum of exponentials in any case.
__forceinline__ float largest(const float* x_n, long long n) {
    float lane_l[LANES];
    for (int l = 0; l < LANES; ++l) lane_l[l] = -INFINITY;
    long long i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; ++l) lane_l[l] = x_n[i + l] > lane_l[l] ? x_n[i + l] : lane_l[l];
    for (int l = 0; i < n; ++l, ++i) lane_l[l] = x_n[i] > lane_l[l] ? x_n[i] : lane_l[l];
    for (int half = LANES / 2; half; half /= 2)
        for (int l = 0; l < half; ++l) lane_l[l] = lane_l[l + half] > lane_l[l] ? lane_l[l + half] : lane_l[l];
    return lane_l[0];
}

__global__ void softmax(const float* x_rc, float* out_rc, long long rows, long long columns) {
    for (long long r = 0; r < rows; ++r) {
        const float* __restrict__ x_c = x_rc + r * columns;
        float* __restrict__ out_c = out_rc + r * columns;
        const float most = largest(x_c, columns);
        for (long long c = 0; c < columns; ++c) out_c[c] = exp_of(x_c[c] - most);
        const float share = (float)(1 / sum_of<float>(columns, [=](long long c) { return out_c[c]; }));
        for (long long c = 0; c < columns; ++c) out_c[c] *= share;
    }
}

__global__ void log_softmax(const float* x_rc, float* out_rc, long long rows, long long columns) {
    for (long long r = 0; r < rows; ++r) {
        const float* __restrict__ x_c = x_rc + r * columns;
        float* __restrict__ out_c = out_rc + r * columns;
        const float most = largest(x_c, columns);
        for (long long c = 0; c < columns; ++c) out_c[c] = exp_of(x_c[c] - most);
        const float size = (float)std::log(sum_of<float>(columns, [=](long long c) { return out_c[c]; }));
        for (long long c = 0; c < columns; ++c) out_c[c] = x_c[c] - most - size;
    }
}

__global__ void softmax_grad(const float* grad_rc, const float* y_rc, float* out_rc, long long rows, long long columns) {
    for (long long r = 0; r < rows; ++r) {
        const float *grad_c = grad_rc + r * columns, *y_c = y_rc + r * columns;
        float* __restrict__ out_c = out_rc + r * columns;
        const float total = (float)sum_of<float>(columns, [=](long long c) { return grad_c[c] * y_c[c]; });
        for (long long c = 0; c < columns; ++c) out_c[c] = (grad_c[c] - total) * y_c[c];
    }
}

__global__ void log_softmax_grad(const float* grad_rc, const float* y_rc, float* out_rc, long long rows,
                                 long long columns) {
    for (long long r = 0; r < rows; ++r) {
        const float *grad_c = grad_rc + r * columns, *y_c = y_rc + r * columns;
        float* __restrict__ out_c = out_rc + r * columns;
        const float total = (float)sum_of<float>(columns, [=](long long c) { return grad_c[c]; });
        for (long long c = 0; c < columns; ++c) out_c[c] = grad_c[c] - exp_of(y_c[c]) * total;
    }
}

// (x - mean) / sqrt(variance + eps) * weight + bias; weight and bias may be null. Centred numbers are squared in double:
// those that lie close together far from 0 keep their variance.
__global__ void normalise(const float* x_rc, const float* weight_c, const float* bias_c, float* out_rc, float* mean_r,
                          float* variance_r, long long rows, long long columns, double eps, bool center) {
    for (long long r = 0; r < rows; ++r) {
        const float* __restrict__ x_c = x_rc + r * columns;
        float* __restrict__ out_c = out_rc + r * columns;
        double mean = 0;
        if (center) mean = sum_of<double>(columns, [=](long long c) { return (double)x_c[c]; }) / columns;
        const double squares = sum_of<double>(columns, [=](long long c) {
            const double centred = x_c[c] - mean;
            return centred * centred;
        });
        mean_r[r] = (float)mean;
        variance_r[r] = (float)(squares / columns);
        const float scale = 1 / std::sqrt(variance_r[r] + (float)eps);
        for (long long c = 0; c < columns; ++c) out_c[c] = (float)(x_c[c] - mean) * scale;
        if (weight_c)
            for (long long c = 0; c < columns; ++c) out_c[c] *= weight_c[c];
        if (bias_c)
            for (long long c = 0; c < columns; ++c) out_c[c] += bias_c[c];
    }
}

// The gradients of `normalise`; of those that are not wanted the address is null. That of x is
// r * (h - sum(h) / n - (x - mean) * r^2 * sum(h * (x - mean)) / n), with h = grad * weight and r = 1 / sqrt(variance + eps).
__global__ void normalise_grad(const float* grad_rc, const float* x_rc, const float* weight_c, const float* mean_r,
                               const float* variance_r, float* to_x_rc, double* to_weight_c, double* to_bias_c,
                               float* room_c, long long rows, long long columns, double eps, bool center) {
    for (long long r = 0; r < rows; ++r) {
        const float *grad_c = grad_rc + r * columns, *x_c = x_rc + r * columns;
        const float mean = mean_r[r], scale = 1 / std::sqrt(variance_r[r] + (float)eps);
        if (to_weight_c) {
            double* __restrict__ sum_c = to_weight_c;
            for (long long c = 0; c < columns; ++c) sum_c[c] += (x_c[c] - mean) * scale * grad_c[c];
        }
        if (to_bias_c) {
            double* __restrict__ sum_c = to_bias_c;
            for (long long c = 0; c < columns; ++c) sum_c[c] += grad_c[c];
        }
        if (!to_x_rc) continue;
        float *__restrict__ out_c = to_x_rc + r * columns, *__restrict__ h_c = room_c;
        if (weight_c)
            for (long long c = 0; c < columns; ++c) h_c[c] = grad_c[c] * weight_c[c];
        else
            std::memcpy(h_c, grad_c, columns * sizeof(float));
        double total = 0;
        if (center) total = sum_of<float>(columns, [=](long long c) { return h_c[c]; });
        const double products = sum_of<float>(columns, [=](long long c) { return h_c[c] * (x_c[c] - mean); });
        const float slope = (float)products * (scale * scale / -(float)columns), share = (float)(total / columns);
        for (long long c = 0; c < columns; ++c) out_c[c] = ((x_c[c] - mean) * slope + h_c[c] - share) * scale;
    }
}

// The results of `exp_of`, for its test.
__global__ void exponentials(const float* x_n, float* out_n, long long n) {
    for (long long i = 0; i < n; ++i) out_n[i] = exp_of(x_n[i]);
}

}  // namespace lucid
