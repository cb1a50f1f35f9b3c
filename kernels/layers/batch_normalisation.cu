// Normalisation of channels over a batch: batch norm, with running statistics, and sums by channel for all normalisations.
//
//     mean_c = sum x / n,   variance_c = sum (x - mean_c)^2 / n,   r = 1 / sqrt(variance + eps),   y = (x - mean) * r
//     out = y * weight_c + bias_c
//     to_bias_c = sum grad,   to_weight_c = sum grad * y
//     to_x = weight * r * (grad - to_bias / n - y * to_weight / n)
//
// Axes: n = sample, c = channel, s = pixel, each with a stride; position = (n, s) flattened, in packs of VEC pixels, which
// then have stride 1 and come in whole packs. Outputs are contiguous. p = part of the positions, k = which of two sums.
//
// channel_moments, channel_sums: block (channels, positions), powers of two; grid (channels / block, parts);
//     neighbouring threads take neighbouring channels where these lie side by side, and neighbouring pixels elsewhere
// merge_moments, merge_sums: the parts in a fixed order, so that results repeat; block (channels, parts); grid
//     (channels / block), for sums (channels / block, 2)
// channel_apply, channel_backward: one thread a pack, any grid.    follow: one thread a channel.
// Dynamic shared memory: what a thread gathers, for each thread.

#include "normalisation.cuh"

namespace lucid {

struct ChannelShape {
    long long samples, channels, pixels;  // pixels in packs
};

struct ChannelStrides {
    long long n, c, s;
};

template <int VEC>
__device__ __forceinline__ long long offset_of(long long position, ChannelShape shape, ChannelStrides strides) {
    const long long n = quotient(position, shape.pixels);
    return n * strides.n + (position - n * shape.pixels) * VEC * strides.s;
}

// ---- mean and variance ----

template <typename T, int VEC>
__global__ void channel_moments(const T* x, Moments<Real<T>>* part_pc, ChannelShape shape, ChannelStrides strides) {
    typedef Real<T> R;
    constexpr int LOADS = VEC > 1 ? 1 : 4;
    DYN_SHARED(Moments<R>, of_thread);
    const long long c = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const Part part(shape.samples * shape.pixels, blockIdx.y, gridDim.y);
    const Merging<R> op;
    Moments<R> mine = op.identity();
    const auto push = [&](Moments<R>& moments, long long i) {
        R x_k[LOADS * VEC];
        int have = 0;
#pragma unroll
        for (int load = 0; load < LOADS; ++load) {
            const long long position = i + load * blockDim.y;
            R pack_k[VEC] = {};
            if (position < part.last) {
                read_pack<T, VEC>(x + offset_of<VEC>(position, shape, strides) + c * strides.c, pack_k);
                have += VEC;
            }
#pragma unroll
            for (int k = 0; k < VEC; ++k) x_k[load * VEC + k] = pack_k[k];
        }
        moments.push(x_k, have);
    };
    if (c < shape.channels)
        mine = gathered<LOADS * VEC, 2, 1>(op, part.first + threadIdx.y, part.last, LOADS * blockDim.y, push);
    mine = merged_down(op, mine, of_thread);
    if (threadIdx.y == 0 && c < shape.channels) part_pc[blockIdx.y * shape.channels + c] = mine;
}

template <typename T>
__global__ void merge_moments(const Moments<Real<T>>* part_pc, Real<T>* mean_c, Real<T>* variance_c, long long channels,
                              long long parts) {
    typedef Real<T> R;
    DYN_SHARED(Moments<R>, of_thread);
    const long long c = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const Merging<R> op;
    Moments<R> mine = op.identity();
    if (c < channels)
        for (long long p = threadIdx.y; p < parts; p += blockDim.y) mine.merge(part_pc[p * channels + c]);
    mine = merged_down(op, mine, of_thread);
    if (threadIdx.y == 0 && c < channels) {
        mean_c[c] = mine.mean();
        variance_c[c] = mine.m2 / mine.count;
    }
}

// Moves running statistics towards those of a batch, averaged over its instances i. Where it is told how many batches
// there were before, they stay the mean over all of them, whatever the momentum.
template <typename T>
__global__ void follow(T* running_mean_c, T* running_variance_c, const Real<T>* mean_ic, const Real<T>* variance_ic,
                       const long long* batches, long long instances, long long channels, double momentum,
                       double correction) {
    typedef Real<T> R;
    const long long c = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    if (batches) momentum = 1.0 / ((double)*batches + 1);
    // those of the mean and of the variance
    const auto add = [&](Sums<R>& sums, long long i) {
        sums.bias += mean_ic[i * channels + c];
        sums.weight += variance_ic[i * channels + c];
    };
    const Sums<R> sums = gathered(AddingBoth<R>(), 0, instances, 1, add);
    const R keep = (R)(1 - momentum), take = (R)momentum;
    const R unbiased = sums.weight / (R)instances * (R)correction;
    if (running_mean_c)
        running_mean_c[c] = from_real<T>(to_real(running_mean_c[c]) * keep + sums.bias / (R)instances * take);
    if (running_variance_c)
        running_variance_c[c] = from_real<T>(to_real(running_variance_c[c]) * keep + unbiased * take);
}

// ---- values ----

// A missing mean is 0, so that the gradient of given statistics is the same map.
template <typename T, typename W, int VEC>
__global__ void channel_apply(const T* x, const Real<T>* mean_c, const Real<T>* variance_c, const W* weight_c,
                              const W* bias_c, T* out_ncs, ChannelShape shape, ChannelStrides strides, double eps) {
    typedef Real<T> R;
    LUCID_FOR(i, shape.samples * shape.channels * shape.pixels) {
        const long long nc = quotient(i, shape.pixels), n = quotient(nc, shape.channels), c = nc - n * shape.channels;
        const R mean = mean_c ? mean_c[c] : (R)0, bias = bias_c ? to_real(bias_c[c]) : (R)0;
        const R scale = inverse_root(variance_c[c] + (R)eps) * (weight_c ? to_real(weight_c[c]) : (R)1);
        R x_k[VEC];
        read_pack<T, VEC>(x + n * strides.n + c * strides.c + (i - nc * shape.pixels) * VEC * strides.s, x_k);
#pragma unroll
        for (int k = 0; k < VEC; ++k) x_k[k] = (x_k[k] - mean) * scale + bias;
        write_pack<T, VEC>(out_ncs + i * VEC, x_k);
    }
}

// ---- gradients ----

// The statistic of sample n and channel c is number n * statistics_n + c / group of them.
template <typename T, int VEC>
__global__ void channel_sums(const T* grad, const T* x, const Real<T>* mean_i, const Real<T>* variance_i,
                             Sums<Real<T>>* part_pc, ChannelShape shape, ChannelStrides grad_strides,
                             ChannelStrides strides, long long statistics_n, long long group, double eps) {
    typedef Real<T> R;
    DYN_SHARED(Sums<R>, of_thread);
    const long long c = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const Part part(shape.samples * shape.pixels, blockIdx.y, gridDim.y);
    const AddingBoth<R> op;
    Sums<R> mine = op.identity();
    const auto add = [&](Sums<R>& sums, long long i) {
        const long long statistic = quotient(i, shape.pixels) * statistics_n + c / group;
        const R mean = mean_i[statistic], scale = inverse_root(variance_i[statistic] + (R)eps);
        R grad_k[VEC], x_k[VEC];
        read_pack<T, VEC>(grad + offset_of<VEC>(i, shape, grad_strides) + c * grad_strides.c, grad_k);
        read_pack<T, VEC>(x + offset_of<VEC>(i, shape, strides) + c * strides.c, x_k);
#pragma unroll
        for (int k = 0; k < VEC; ++k) {
            sums.bias += grad_k[k];
            sums.weight += grad_k[k] * ((x_k[k] - mean) * scale);
        }
    };
    if (c < shape.channels) mine = gathered<VEC, 2, 1>(op, part.first + threadIdx.y, part.last, blockDim.y, add);
    mine = merged_down(op, mine, of_thread);
    if (threadIdx.y == 0 && c < shape.channels) part_pc[blockIdx.y * shape.channels + c] = mine;
}

// blockIdx.y == 0 adds up the parts of one sum, 1 those of the other; a part is `step` numbers from the next channel's.
template <typename T>
__global__ void merge_sums(const Real<T>* first_pc, const Real<T>* second_pc, Real<T>* out_first_c,
                           Real<T>* out_second_c, long long channels, long long parts, long long step) {
    typedef Real<T> R;
    DYN_SHARED(R, of_thread);
    const R* part_pc = blockIdx.y ? second_pc : first_pc;
    R* out_c = blockIdx.y ? out_second_c : out_first_c;
    if (!out_c) return;
    const long long c = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const Adding<R> op;
    R mine = 0;
    if (c < channels)
        mine = gathered<1, 2>(op, threadIdx.y, parts, blockDim.y,
                              [&](R& sum, long long p) { sum += part_pc[(p * channels + c) * step]; });
    mine = merged_down(op, mine, of_thread);
    if (threadIdx.y == 0 && c < channels) out_c[c] = mine;
}

template <typename T, typename W, int VEC>
__global__ void channel_backward(const T* grad, const T* x, const Real<T>* mean_c, const Real<T>* variance_c,
                                 const W* weight_c, const Real<T>* to_weight_c, const Real<T>* to_bias_c, T* to_x_ncs,
                                 ChannelShape shape, ChannelStrides grad_strides, ChannelStrides strides, double eps,
                                 double count, int center) {
    typedef Real<T> R;
    LUCID_FOR(i, shape.samples * shape.channels * shape.pixels) {
        const long long nc = quotient(i, shape.pixels), n = quotient(nc, shape.channels), c = nc - n * shape.channels;
        const long long s = (i - nc * shape.pixels) * VEC;
        const R mean = mean_c[c], r = inverse_root(variance_c[c] + (R)eps);
        const R scale = r * (weight_c ? to_real(weight_c[c]) : (R)1);
        const R mean_grad = center ? to_bias_c[c] / (R)count : (R)0, mean_along = to_weight_c[c] / (R)count;
        R grad_k[VEC], x_k[VEC];
        read_pack<T, VEC>(grad + n * grad_strides.n + c * grad_strides.c + s * grad_strides.s, grad_k);
        read_pack<T, VEC>(x + n * strides.n + c * strides.c + s * strides.s, x_k);
#pragma unroll
        for (int k = 0; k < VEC; ++k) x_k[k] = (grad_k[k] - mean_grad - (x_k[k] - mean) * r * mean_along) * scale;
        write_pack<T, VEC>(to_x_ncs + i * VEC, x_k);
    }
}

}  // namespace lucid
