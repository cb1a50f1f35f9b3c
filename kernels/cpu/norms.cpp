// Normalisation and its gradient on the CPU: of rows with a weight for each column (layer norm), and of planes with a
// weight for each channel (batch, group and instance norm).

#include "lanes.h"

namespace lucid {

constexpr int ROWS = 16;

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
__global__ void normalise_rows(const float* x_rc, const float* weight_c, const float* bias_c, float* out_rc,
                               float* mean_r, float* variance_r, long long rows, long long columns, double eps,
                               bool center) {
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
        if (weight_c)
            write(out_c, columns, [=](auto at) { return at(out_c) * at(weight_c); });
        if (bias_c)
            write(out_c, columns, [=](auto at) { return at(out_c) + at(bias_c); });
    }
}

// The gradients of `normalise_rows`; of those that are not wanted the address is null. That of x is
// r * (h - sum(h) / n - (x - mean) * r^2 * sum(h * (x - mean)) / n), with h = grad * weight and r = 1 / sqrt(variance + eps).
// The mean is taken again, as in float it may lie further off than the numbers do. There is room for four rows, of zeros.
__global__ void normalise_rows_grad(const float* grad_rc, const float* x_rc, const float* weight_c, const float* mean_r,
                                    const float* variance_r, float* to_x_rc, double* to_weight_c, double* to_bias_c,
                                    float* room_4c, long long rows, long long columns, double eps, bool center) {
    float *centred_c = room_4c, *h_c = room_4c + columns, *weight_part_c = h_c + columns, *bias_part_c = weight_part_c + columns;
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

// Channels of a batch, (N, C, P): planes of P neighbours. Values that are normalised together are a set of `count` planes
// `step` apart, and sets lie `apart` from each other: for batch norm (N, C, 1), for groups of K channels (K, 1, K).
//
// Sums are about one value of the set: in double their error is no more than some n * 2^-53 of the variance, whatever the
// mean, as the variance is at least the square of that value's distance from the mean by n.
__global__ void normalise_planes(const float* x_qp, const float* weight_c, const float* bias_c, float* out_qp,
                                 float* mean_s, float* variance_s, long long sets, long long count, long long step,
                                 long long apart, long long channels, long long pixels, double eps,
                                 bool center) {
    for (long long s = 0; s < sets; ++s) {
        const long long last = s * apart + count * step;
        const float any = x_qp[s * apart * pixels];
        const double about = center && std::fabs(any) <= 3.4028235e38f ? any : 0;
        Terms<double, 2> total = {};
        for (long long q = s * apart; q < last; q += step) {
            const float* x_p = x_qp + q * pixels;
            total += sums_of<2, 8>(pixels, [=](auto at) {
                const auto centred = at.wide(x_p) - about;
                return terms(centred, centred * centred);
            });
        }
        const double drift = center ? total.term_k[0] / (count * pixels) : 0, mean = about + drift;
        const double squares = total.term_k[1] - drift * total.term_k[0];
        // rounding may leave less than 0; NaN stays
        mean_s[s] = (float)mean;
        variance_s[s] = (float)((squares < 0 ? 0 : squares) / (count * pixels));
        const float inverse = 1 / std::sqrt(variance_s[s] + (float)eps), near = mean_s[s], rest = (float)(mean - near);
        for (long long q = s * apart; q < last; q += step) {
            const float* x_p = x_qp + q * pixels;
            const float scale = weight_c ? inverse * weight_c[q % channels] : inverse;
            const float bias = bias_c ? bias_c[q % channels] : 0;
            write(out_qp + q * pixels, pixels, [=](auto at) { return (at(x_p) - near - rest) * scale + bias; });
        }
    }
}

// The gradients of `normalise_planes`, of those that are not wanted the address is null. `sum_2n` has room for two sums of
// each plane of a set. The mean is a float, and off by what the values less it have for theirs.
__global__ void normalise_planes_grad(const float* grad_qp, const float* x_qp, const float* weight_c,
                                      const float* mean_s, const float* variance_s, float* to_x_qp, double* to_weight_c,
                                      double* to_bias_c, double* sum_2n, long long sets, long long count,
                                      long long step, long long apart, long long channels, long long pixels,
                                      double eps, bool center) {
    for (long long s = 0; s < sets; ++s) {
        const float near = mean_s[s], inverse = 1 / std::sqrt(variance_s[s] + (float)eps);
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
        off = center ? off / (count * pixels) : 0;
        products -= off * total;
        for (long long n = 0; n < count; ++n) {
            const long long c = (s * apart + n * step) % channels;
            if (to_weight_c) to_weight_c[c] += (sum_2n[2 * n + 1] - off * sum_2n[2 * n]) * inverse;
            if (to_bias_c) to_bias_c[c] += sum_2n[2 * n];
        }
        if (!to_x_qp) continue;
        const double slope = -products * inverse * inverse / (count * pixels);
        const float slope_of_x = (float)(slope * inverse);
        const float share = center ? (float)((total / (count * pixels) + slope * off) * inverse) : 0;
        for (long long n = 0; n < count; ++n) {
            const long long q = s * apart + n * step;
            const float *grad_p = grad_qp + q * pixels, *x_p = x_qp + q * pixels;
            const float scale = weight_c ? inverse * weight_c[q % channels] : inverse;
            write(to_x_qp + q * pixels, pixels,
                  [=](auto at) { return (at(x_p) - near) * slope_of_x + (at(grad_p) * scale - share); });
        }
    }
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
