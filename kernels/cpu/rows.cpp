// Softmax, its logarithm and their gradients on the CPU: row by row, each while it lies in the nearest cache.

#include "lanes.h"
#include "mathematics.h"

namespace lucid {

constexpr int BLOCK = 4096;
constexpr float RAISED = 18446744073709551616.0f;

// exp(x) * 2^64 of x up to 0, with the error of `exp`: no product with a share of it is less exact where it is subnormal,
// and one power of two is enough. NaN stays.
__forceinline__ float exp_raised(float x) {
    // 2^23 * 1.5 + 64, of whose sum with a whole number the lowest bits are that number and 64
    const float shift = 12582976.0f;
    const float least = x < -120.0f ? -120.0f : x, sum = least * 1.4426950409f + shift, k = sum - shift;
    const float r = (least - k * 0.693359375f) + k * 2.12194440e-4f;
    return (1.0f + (r + exponential_rest(r))) * bits_as<float>((bits_as<int>(sum) + 127) << 23);
}

// The largest number of a row, past NaN: that is in the sum of exponentials in any case.
__forceinline__ float largest(const float* x_n, long long n) {
    Floats even = Floats{} - INFINITY, odd = even;
    float most = -INFINITY;
    long long i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const Floats one = Several<LANES>{i}(x_n), two = Several<LANES>{i + LANES}(x_n);
        even = one > even ? one : even;
        odd = two > odd ? two : odd;
    }
    for (; i < n; ++i) most = x_n[i] > most ? x_n[i] : most;
    even = odd > even ? odd : even;
    for (int l = 0; l < LANES; ++l) most = even[l] > most ? even[l] : most;
    return most;
}

// Calls rows_of(first, count) for as many rows at a time as stay in the nearest cache: exponentials of short rows are made
// of several at once.
template <typename RowsOf> __forceinline__ void by_blocks(long long rows, long long columns, RowsOf rows_of) {
    const long long each = columns < BLOCK ? BLOCK / columns : 1;
    for (long long first = 0; first < rows; first += each) rows_of(first, rows - first < each ? rows - first : each);
}

// exp(x - largest) * 2^64 of each row, and the largest number.
static void exponentials_of_rows(const float* x_rc, float* out_rc, float* most_r, long long rows, long long columns) {
    for (long long r = 0; r < rows; ++r) {
        const float* __restrict__ x_c = x_rc + r * columns;
        float* __restrict__ out_c = out_rc + r * columns;
        const float most = most_r[r] = largest(x_c, columns);
        write(out_c, columns, [=](auto at) { return at(x_c) - most; });
    }
    for (long long i = 0; i < rows * columns; ++i) out_rc[i] = exp_raised(out_rc[i]);
}

__global__ void softmax(const float* x_rc, float* out_rc, long long rows, long long columns) {
    by_blocks(rows, columns, [=](long long first, long long count) {
        float most_r[BLOCK];
        exponentials_of_rows(x_rc + first * columns, out_rc + first * columns, most_r, count, columns);
        for (long long r = first; r < first + count; ++r) {
            float* out_c = out_rc + r * columns;
            const float share = (float)(1 / sum_of(columns, [=](auto at) { return at(out_c); }));
            write(out_c, columns, [=](auto at) { return at(out_c) * share; });
        }
    });
}

__global__ void log_softmax(const float* x_rc, float* out_rc, long long rows, long long columns) {
    by_blocks(rows, columns, [=](long long first, long long count) {
        float most_r[BLOCK];
        exponentials_of_rows(x_rc + first * columns, out_rc + first * columns, most_r, count, columns);
        for (long long r = first; r < first + count; ++r) {
            const float most = most_r[r - first];
            const float* __restrict__ x_c = x_rc + r * columns;
            float* __restrict__ out_c = out_rc + r * columns;
            const float size = (float)std::log(sum_of(columns, [=](auto at) { return at(out_c); }) / RAISED);
            write(out_c, columns, [=](auto at) { return at(x_c) - most - size; });
        }
    });
}

__global__ void softmax_grad(const float* grad_rc, const float* y_rc, float* out_rc, long long rows,
                             long long columns) {
    for (long long r = 0; r < rows; ++r) {
        const float *grad_c = grad_rc + r * columns, *y_c = y_rc + r * columns;
        float* __restrict__ out_c = out_rc + r * columns;
        const float total = (float)sum_of(columns, [=](auto at) { return at(grad_c) * at(y_c); });
        write(out_c, columns, [=](auto at) { return (at(grad_c) - total) * at(y_c); });
    }
}

__global__ void log_softmax_grad(const float* grad_rc, const float* y_rc, float* out_rc, long long rows,
                                 long long columns) {
    by_blocks(rows, columns, [=](long long first, long long count) {
        const float* __restrict__ y_n = y_rc + first * columns;
        float* __restrict__ out_n = out_rc + first * columns;
        for (long long i = 0; i < count * columns; ++i) out_n[i] = exp_raised(y_n[i]);
        for (long long r = first; r < first + count; ++r) {
            const float* __restrict__ grad_c = grad_rc + r * columns;
            float* __restrict__ out_c = out_rc + r * columns;
            const float total = (float)(sum_of(columns, [=](auto at) { return at(grad_c); }) / RAISED);
            write(out_c, columns, [=](auto at) { return at(grad_c) - at(out_c) * total; });
        }
    });
}

}  // namespace lucid
