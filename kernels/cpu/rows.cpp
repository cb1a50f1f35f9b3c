// Softmax, layer norm and their gradients on the CPU: row by row, each while it lies in the nearest cache.
//
// A sum is that of a few partial sums of floats, which one vector holds, for each part of a row; parts are added in double.

#include "cpu.h"
#include "exponential.h"

namespace lucid {

constexpr int LANES = 16, PART = 512, BLOCK = 4096, ROWS = 16;

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

// The sum of value(at) over n elements, by N partial sums for each part of them.
template <int N = LANES, typename Value> __forceinline__ double sum_of(long long n, Value value) {
    double total = 0;
    for (long long first = 0; first < n; first += PART) {
        const long long end = n - first < PART ? n : first + PART;
        decltype(value(Several<N>{0})) even = {}, odd = {};
        double rest = 0;
        long long i = first;
        for (; i + 2 * N <= end; i += 2 * N) {
            even += value(Several<N>{i});
            odd += value(Several<N>{i + N});
        }
        for (; i + N <= end; i += N) even += value(Several<N>{i});
        for (; i < end; ++i) rest += value(One{i});
        even += odd;
        for (int l = 0; l < N; l += 4) rest += (even[l] + even[l + 1]) + (even[l + 2] + even[l + 3]);
        total += rest;
    }
    return total;
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

// exp(x - largest) of each row, and that number.
static void exponentials_of_rows(const float* x_rc, float* out_rc, float* most_r, long long rows, long long columns) {
    for (long long r = 0; r < rows; ++r) {
        const float* __restrict__ x_c = x_rc + r * columns;
        float* __restrict__ out_c = out_rc + r * columns;
        const float most = most_r[r] = largest(x_c, columns);
        write(out_c, columns, [=](auto at) { return at(x_c) - most; });
    }
    for (long long i = 0; i < rows * columns; ++i) out_rc[i] = exp_of(out_rc[i]);
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
            const float size = (float)std::log(sum_of(columns, [=](auto at) { return at(out_c); }));
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
        for (long long i = 0; i < count * columns; ++i) out_n[i] = exp_of(y_n[i]);
        for (long long r = first; r < first + count; ++r) {
            const float* __restrict__ grad_c = grad_rc + r * columns;
            float* __restrict__ out_c = out_rc + r * columns;
            const float total = (float)sum_of(columns, [=](auto at) { return at(grad_c); });
            write(out_c, columns, [=](auto at) { return at(grad_c) - at(out_c) * total; });
        }
    });
}

static double mean_of(const float* x_c, long long columns) {
    return sum_of<8>(columns, [=](auto at) { return at.wide(x_c); }) / columns;
}

static void centre(float* __restrict__ out_c, const float* __restrict__ x_c, double mean, long long columns) {
    for (long long c = 0; c < columns; ++c) out_c[c] = (float)(x_c[c] - mean);
}

// Adds sums of a few rows to those of all, and begins them again.
static void flush(double* __restrict__ sum_c, float* __restrict__ part_c, long long columns) {
    for (long long c = 0; c < columns; ++c) {
        sum_c[c] += part_c[c];
        part_c[c] = 0;
    }
}

// (x - mean) / sqrt(variance + eps) * weight + bias; weight and bias may be null. Centred numbers are squared in double:
// those that lie close together far from 0 keep their variance.
__global__ void normalise(const float* x_rc, const float* weight_c, const float* bias_c, float* out_rc, float* mean_r,
                          float* variance_r, long long rows, long long columns, double eps, bool center) {
    for (long long r = 0; r < rows; ++r) {
        const float* x_c = x_rc + r * columns;
        float* out_c = out_rc + r * columns;
        const double mean = center ? mean_of(x_c, columns) : 0;
        const double squares = sum_of<8>(columns, [=](auto at) {
            const auto centred = at.wide(x_c) - mean;
            return centred * centred;
        });
        mean_r[r] = (float)mean;
        variance_r[r] = (float)(squares / columns);
        const float scale = 1 / std::sqrt(variance_r[r] + (float)eps);
        centre(out_c, x_c, mean, columns);
        write(out_c, columns, [=](auto at) { return at(out_c) * scale; });
        if (weight_c) write(out_c, columns, [=](auto at) { return at(out_c) * at(weight_c); });
        if (bias_c) write(out_c, columns, [=](auto at) { return at(out_c) + at(bias_c); });
    }
}

// The gradients of `normalise`; of those that are not wanted the address is null. That of x is
// r * (h - sum(h) / n - (x - mean) * r^2 * sum(h * (x - mean)) / n), with h = grad * weight and r = 1 / sqrt(variance + eps).
// The mean is taken again, as in float it may lie further off than the numbers do. There is room for four rows, of zeros.
__global__ void normalise_grad(const float* grad_rc, const float* x_rc, const float* weight_c, const float* variance_r,
                               float* to_x_rc, double* to_weight_c, double* to_bias_c, float* room_4c, long long rows,
                               long long columns, double eps, bool center) {
    float *centred_c = room_4c, *h_c = room_4c + columns, *weight_part_c = h_c + columns,
          *bias_part_c = weight_part_c + columns;
    for (long long r = 0; r < rows; ++r) {
        const float *grad_c = grad_rc + r * columns, *x_c = x_rc + r * columns;
        const float scale = 1 / std::sqrt(variance_r[r] + (float)eps);
        centre(centred_c, x_c, center ? mean_of(x_c, columns) : 0, columns);
        if (to_weight_c)
            write(weight_part_c, columns,
                  [=](auto at) { return at(weight_part_c) + at(centred_c) * scale * at(grad_c); });
        if (to_bias_c) write(bias_part_c, columns, [=](auto at) { return at(bias_part_c) + at(grad_c); });
        if (r % ROWS == ROWS - 1 || r == rows - 1) {
            if (to_weight_c) flush(to_weight_c, weight_part_c, columns);
            if (to_bias_c) flush(to_bias_c, bias_part_c, columns);
        }
        if (!to_x_rc) continue;
        if (weight_c) write(h_c, columns, [=](auto at) { return at(grad_c) * at(weight_c); });
        const float* own_c = weight_c ? h_c : grad_c;
        const double total = center ? sum_of(columns, [=](auto at) { return at(own_c); }) : 0;
        const double products = sum_of(columns, [=](auto at) { return at(own_c) * at(centred_c); });
        const float slope = (float)products * (scale * scale / -(float)columns), share = (float)(total / columns);
        write(to_x_rc + r * columns, columns,
              [=](auto at) { return (at(centred_c) * slope + at(own_c) - share) * scale; });
    }
}

// The results of `exp_of`, for its test.
__global__ void exponentials(const float* x_n, float* out_n, long long n) {
    for (long long i = 0; i < n; ++i) out_n[i] = exp_of(x_n[i]);
}

}  // namespace lucid
