// Normalisation and its gradient on the CPU: of rows with a weight for each number (layer norm), of planes with a weight for
// each channel (batch, group and instance norm), and of columns (batch norm of features).
//
// Squares are summed about one of the values, in double: the error is no more than some n * 2^-53 of the variance, whatever
// the mean, as the variance is at least the square of that value's distance from the mean by n.

#include "lanes.h"

namespace lucid {

constexpr int ROWS = 16, TILE = 64;

// Mean, what it lacks as a float, and variance.
struct Moments {
    float mean, rest, variance;
};
__forceinline__ double about_of(float any, bool center) { return center && std::fabs(any) <= 3.4028235e38f ? any : 0; }
__forceinline__ Moments moments_of(double about, double sum, double squares, long long n, bool center) {
    const double drift = center ? sum / n : 0, mean = about + drift, spread = squares - drift * sum;
    const float near = (float)mean;
    // rounding may leave less than 0; NaN stays
    return {near, (float)(mean - near), (float)((spread < 0 ? 0 : spread) / n)};
}
static Moments moments_of_row(const float* x_c, long long columns, bool center) {
    const double about = about_of(x_c[0], center);
    const auto sums = sums_of<2, 8>(columns, [=](auto at) {
        const auto centred = at.wide(x_c) - about;
        return terms(centred, centred * centred);
    });
    return moments_of(about, sums.term_k[0], sums.term_k[1], columns, center);
}
__forceinline__ float inverse_of(float variance, double eps) { return 1 / std::sqrt(variance + (float)eps); }

// The gradient of x is (x - mean) * slope + h * r - share, with h = grad * weight and r = 1 / sqrt(variance + eps), of the
// sums of x - mean, h and h * (x - mean) over what is normalised together. That of x - mean is what the mean, a float, is off.
struct Slopes {
    double off;
    float slope, share;
};
__forceinline__ Slopes slopes_of(double centred, double total, double products, float r, long long n, bool center) {
    const double off = center ? centred / n : 0, slope = -(products - off * total) * r * r / n;
    return {off, (float)(slope * r), center ? (float)((total / n + slope * off) * r) : 0};
}

// Adds sums of a few rows to those of all, and begins them again.
static void flush(double* __restrict__ sum_c, float* __restrict__ part_c, long long columns) {
    for (long long c = 0; c < columns; ++c) {
        sum_c[c] += part_c[c];
        part_c[c] = 0;
    }
}

// (x - mean) / sqrt(variance + eps) * weight + bias; weight and bias may be null. They have `features` numbers: as many as a
// row, or as several rows together (groups of single pixels), and begin again after these.
__global__ void normalise_rows(const float* x_rc, const float* weight_f, const float* bias_f, float* out_rc,
                               float* mean_r, float* variance_r, long long rows, long long columns, long long features,
                               double eps, bool center) {
    for (long long r = 0; r < rows; ++r) {
        const float* x_c = x_rc + r * columns;
        float* out_c = out_rc + r * columns;
        const Moments moments = moments_of_row(x_c, columns, center);
        const float near = mean_r[r] = moments.mean, rest = moments.rest;
        const float scale = inverse_of(variance_r[r] = moments.variance, eps);
        const float* weight_c = weight_f ? weight_f + r * columns % features : nullptr;
        const float* bias_c = bias_f ? bias_f + r * columns % features : nullptr;
        if (weight_c && bias_c)
            write(out_c, columns, [=](auto at) { return (at(x_c) - near - rest) * scale * at(weight_c) + at(bias_c); });
        else if (weight_c)
            write(out_c, columns, [=](auto at) { return (at(x_c) - near - rest) * scale * at(weight_c); });
        else if (bias_c)
            write(out_c, columns, [=](auto at) { return (at(x_c) - near - rest) * scale + at(bias_c); });
        else
            write(out_c, columns, [=](auto at) { return (at(x_c) - near - rest) * scale; });
    }
}

// The gradients of `normalise_rows`; of those that are not wanted the address is null. There is room for a row and twice the
// features, of zeros.
__global__ void normalise_rows_grad(const float* grad_rc, const float* x_rc, const float* weight_f, const float* mean_r,
                                    const float* variance_r, float* to_x_rc, double* to_weight_f, double* to_bias_f,
                                    float* room_cff, long long rows, long long columns, long long features, double eps,
                                    bool center) {
    float *h_c = room_cff, *weight_part_f = room_cff + columns, *bias_part_f = weight_part_f + features;
    const long long often = ROWS * (features / columns);
    for (long long r = 0; r < rows; ++r) {
        const float *grad_c = grad_rc + r * columns, *x_c = x_rc + r * columns;
        const float scale = inverse_of(variance_r[r], eps), near = mean_r[r];
        const long long first = r * columns % features;
        const float* weight_c = weight_f ? weight_f + first : nullptr;
        float *weight_part_c = weight_part_f + first, *bias_part_c = bias_part_f + first;
        if (weight_c) write(h_c, columns, [=](auto at) { return at(grad_c) * at(weight_c); });
        const float* own_c = weight_c ? h_c : grad_c;
        const auto sums = sums_of<3>(columns, [=](auto at) {
            const auto centred = at(x_c) - near;
            return terms(centred, at(own_c), at(own_c) * centred);
        });
        const Slopes slopes = slopes_of(sums.term_k[0], sums.term_k[1], sums.term_k[2], scale, columns, center);
        const float slope = slopes.slope, share = slopes.share, rest = (float)slopes.off;
        if (to_weight_f)
            write(weight_part_c, columns,
                  [=](auto at) { return at(weight_part_c) + (at(x_c) - near - rest) * scale * at(grad_c); });
        if (to_bias_f) write(bias_part_c, columns, [=](auto at) { return at(bias_part_c) + at(grad_c); });
        if (r % often == often - 1 || r == rows - 1) {
            if (to_weight_f) flush(to_weight_f, weight_part_f, features);
            if (to_bias_f) flush(to_bias_f, bias_part_f, features);
        }
        if (to_x_rc)
            write(to_x_rc + r * columns, columns,
                  [=](auto at) { return (at(x_c) - near) * slope + (at(own_c) * scale - share); });
    }
}

// Channels of a batch, (N, C, P): planes of P neighbours. What is normalised together is a set of `count` planes `step`
// apart, and sets lie `apart` from each other: for batch norm (N, C, 1), for groups of K channels (K, 1, K).
__global__ void normalise_planes(const float* x_qp, const float* weight_c, const float* bias_c, float* out_qp,
                                 float* mean_s, float* variance_s, long long sets, long long count, long long step,
                                 long long apart, long long channels, long long pixels, double eps, bool center) {
    for (long long s = 0; s < sets; ++s) {
        const long long first = s * apart, last = first + count * step;
        const double about = about_of(x_qp[first * pixels], center);
        Terms<double, 2> sums = {};
        for (long long q = first; q < last; q += step) {
            const float* x_p = x_qp + q * pixels;
            sums += sums_of<2, 8>(pixels, [=](auto at) {
                const auto centred = at.wide(x_p) - about;
                return terms(centred, centred * centred);
            });
        }
        const Moments moments = moments_of(about, sums.term_k[0], sums.term_k[1], count * pixels, center);
        const float near = mean_s[s] = moments.mean, rest = moments.rest;
        const float inverse = inverse_of(variance_s[s] = moments.variance, eps);
        for (long long q = first; q < last; q += step) {
            const float* x_p = x_qp + q * pixels;
            const float scale = weight_c ? inverse * weight_c[q % channels] : inverse;
            const float bias = bias_c ? bias_c[q % channels] : 0;
            write(out_qp + q * pixels, pixels, [=](auto at) { return (at(x_p) - near - rest) * scale + bias; });
        }
    }
}

// The gradients of `normalise_planes`; of those that are not wanted the address is null. There is room for two sums of each
// plane of a set.
__global__ void normalise_planes_grad(const float* grad_qp, const float* x_qp, const float* weight_c,
                                      const float* mean_s, const float* variance_s, float* to_x_qp, double* to_weight_c,
                                      double* to_bias_c, double* sum_2n, long long sets, long long count,
                                      long long step, long long apart, long long channels, long long pixels, double eps,
                                      bool center) {
    for (long long s = 0; s < sets; ++s) {
        const float near = mean_s[s], inverse = inverse_of(variance_s[s], eps);
        double off = 0, total = 0, products = 0;
        for (long long n = 0; n < count; ++n) {
            const long long q = s * apart + n * step;
            const float *grad_p = grad_qp + q * pixels, *x_p = x_qp + q * pixels;
            const auto sums = sums_of<3>(pixels, [=](auto at) {
                const auto centred = at(x_p) - near;
                return terms(centred, at(grad_p), at(grad_p) * centred);
            });
            const double weight = weight_c ? weight_c[q % channels] : 1;
            off += sums.term_k[0];
            total += weight * (sum_2n[2 * n] = sums.term_k[1]);
            products += weight * (sum_2n[2 * n + 1] = sums.term_k[2]);
        }
        const Slopes slopes = slopes_of(off, total, products, inverse, count * pixels, center);
        const float slope = slopes.slope, share = slopes.share;
        for (long long n = 0; n < count; ++n) {
            const long long q = s * apart + n * step, c = q % channels;
            if (to_weight_c) to_weight_c[c] += (sum_2n[2 * n + 1] - slopes.off * sum_2n[2 * n]) * inverse;
            if (to_bias_c) to_bias_c[c] += sum_2n[2 * n];
            if (!to_x_qp) continue;
            const float *grad_p = grad_qp + q * pixels, *x_p = x_qp + q * pixels;
            const float scale = weight_c ? inverse * weight_c[c] : inverse;
            write(to_x_qp + q * pixels, pixels,
                  [=](auto at) { return (at(x_p) - near) * slope + (at(grad_p) * scale - share); });
        }
    }
}

// Calls tile_of(first, count) for as many neighbouring columns at a time as there is room for.
template <typename TileOf> __forceinline__ void by_tiles(long long columns, TileOf tile_of) {
    for (long long first = 0; first < columns; first += TILE)
        tile_of(first, columns - first < TILE ? columns - first : TILE);
}

__global__ void normalise_columns(const float* x_rc, const float* weight_c, const float* bias_c, float* out_rc,
                                  float* mean_c, float* variance_c, long long rows, long long columns, double eps,
                                  bool center) {
    by_tiles(columns, [=](long long first, long long count) {
        double about_t[TILE], sum_t[TILE] = {}, squares_t[TILE] = {};
        float near_t[TILE], rest_t[TILE], scale_t[TILE], bias_t[TILE];
        for (long long t = 0; t < count; ++t) about_t[t] = about_of(x_rc[first + t], center);
        for (long long r = 0; r < rows; ++r) {
            const float* x_t = x_rc + r * columns + first;
            for (long long t = 0; t < count; ++t) {
                const double centred = x_t[t] - about_t[t];
                sum_t[t] += centred;
                squares_t[t] += centred * centred;
            }
        }
        for (long long t = 0; t < count; ++t) {
            const long long c = first + t;
            const Moments moments = moments_of(about_t[t], sum_t[t], squares_t[t], rows, center);
            near_t[t] = mean_c[c] = moments.mean;
            rest_t[t] = moments.rest;
            const float inverse = inverse_of(variance_c[c] = moments.variance, eps);
            scale_t[t] = weight_c ? inverse * weight_c[c] : inverse;
            bias_t[t] = bias_c ? bias_c[c] : 0;
        }
        const float *near = near_t, *rest = rest_t, *scale = scale_t, *bias = bias_t;
        for (long long r = 0; r < rows; ++r) {
            const float* x_t = x_rc + r * columns + first;
            write(out_rc + r * columns + first, count,
                  [=](auto at) { return (at(x_t) - at(near) - at(rest)) * at(scale) + at(bias); });
        }
    });
}

// The gradients of `normalise_columns`; of those that are not wanted the address is null.
__global__ void normalise_columns_grad(const float* grad_rc, const float* x_rc, const float* weight_c,
                                       const float* mean_c, const float* variance_c, float* to_x_rc,
                                       double* to_weight_c, double* to_bias_c, double* room_0, long long rows,
                                       long long columns, double eps, bool center) {
    by_tiles(columns, [=](long long first, long long count) {
        double off_t[TILE] = {}, total_t[TILE] = {}, products_t[TILE] = {};
        float slope_t[TILE], share_t[TILE], scale_t[TILE];
        for (long long r = 0; r < rows; ++r) {
            const float *grad_t = grad_rc + r * columns + first, *x_t = x_rc + r * columns + first;
            for (long long t = 0; t < count; ++t) {
                const double centred = (double)x_t[t] - mean_c[first + t], grad = grad_t[t];
                off_t[t] += centred;
                total_t[t] += grad;
                products_t[t] += grad * centred;
            }
        }
        for (long long t = 0; t < count; ++t) {
            const long long c = first + t;
            const float inverse = inverse_of(variance_c[c], eps), weight = weight_c ? weight_c[c] : 1;
            const Slopes slopes =
                slopes_of(off_t[t], weight * total_t[t], weight * products_t[t], inverse, rows, center);
            if (to_weight_c) to_weight_c[c] = (products_t[t] - slopes.off * total_t[t]) * inverse;
            if (to_bias_c) to_bias_c[c] = total_t[t];
            slope_t[t] = slopes.slope;
            share_t[t] = slopes.share;
            scale_t[t] = inverse * weight;
        }
        if (!to_x_rc) return;
        const float *near = mean_c + first, *slope = slope_t, *share = share_t, *scale = scale_t;
        for (long long r = 0; r < rows; ++r) {
            const float *grad_t = grad_rc + r * columns + first, *x_t = x_rc + r * columns + first;
            write(to_x_rc + r * columns + first, count,
                  [=](auto at) { return (at(x_t) - at(near)) * at(slope) + (at(grad_t) * at(scale) - at(share)); });
        }
    });
}

// x * scale + shift for each channel.
__global__ void rescale_planes(const float* x_qp, const float* scale_c, const float* shift_c, float* out_qp,
                               long long planes, long long channels, long long pixels) {
    if (pixels == 1) {
        for (long long q = 0; q < planes; q += channels) {
            const float* x_c = x_qp + q;
            write(out_qp + q, channels, [=](auto at) { return at(x_c) * at(scale_c) + at(shift_c); });
        }
        return;
    }
    for (long long q = 0; q < planes; ++q) {
        const float* x_p = x_qp + q * pixels;
        const float scale = scale_c[q % channels], shift = shift_c[q % channels];
        write(out_qp + q * pixels, pixels, [=](auto at) { return at(x_p) * scale + shift; });
    }
}

}  // namespace lucid
