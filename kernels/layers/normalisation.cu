// Normalisation of rows: layer norm, RMS norm, group norm, instance norm.
//
//     mean = sum_l x / L,   variance = sum_l (x - mean)^2 / L,   r = 1 / sqrt(variance + eps),   y = (x - mean) * r
//     out = y * weight + bias
//     to_x = r * (h - mean_l(h) - y * mean_l(h * y)),   h = grad * weight
//     to_weight = sum over rows of grad * y,   to_bias = sum over rows of grad
// Without `center` mean is 0 and mean_l(h) is left out.
//
// Axes: row = n * groups + g; l = element of a row, of `length`; a = g * channels + l / inner, the weight of an element:
//     layer norm: groups = inner = 1    group norm: channels of a group, inner = pixels    instance norm: channels = 1
// Inputs have a stride for each of n, g, l; outputs are contiguous. With VEC > 1, l has stride 1, and rows, weights and
// length are multiples of a pack.
//
// rows_*: a row stays in the registers of its threads, so that it is read once: length <= items_of_thread * blockDim.x
//     block (threads of a row, a power of two; rows), a multiple of 32 together
//     rows_forward: grid = rows / rows of a block, at most MAX_THREADS. rows_backward: any grid;
//     with COLUMNS (groups = inner = 1) block b also adds up the gradients of weight and bias over its rows, which
//     takes dynamic shared memory for VEC numbers of each thread; merge_sums of batch_normalisation.cu does the rest
// long_rows_*: block (threads), grid = rows; a row is read twice.

#include "normalisation.cuh"

namespace lucid {

constexpr int MAX_THREADS = 512;
// Blocks of that many threads that a processor holds, so that one reads while the other waits.
template <typename T> constexpr int blocks_held = sizeof(T) < 8 ? 2 : 1;

struct RowShape {
    long long rows;
    int length, groups, channels, inner;
};

struct RowStrides {
    long long n, g, l;
};

template <typename T>
__device__ __forceinline__ const T* row_of(const T* x, long long row, RowShape shape, RowStrides strides) {
    const long long n = shape.groups == 1 ? row : quotient(row, shape.groups);
    return x + n * strides.n + (row - n * shape.groups) * strides.g;
}

// The first element of pack p of this thread.
template <int VEC> __device__ __forceinline__ int place_of(int p) {
    return (p * (int)blockDim.x + (int)threadIdx.x) * VEC;
}

// Reads this thread's packs of a row, with zeros behind its end: all at once, so that the reads overlap.
template <typename T, int PACKS, int VEC>
__device__ __forceinline__ void read_row(const T* x_l, long long stride, int length, Real<T> (&x_pk)[PACKS][VEC]) {
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
        const int l = place_of<VEC>(p);
#pragma unroll
        for (int k = 0; k < VEC; ++k) x_pk[p][k] = 0;
        if (l < length) read_pack<T, VEC>(x_l + l * stride, x_pk[p]);
    }
}

// Weight of the VEC elements from l on of a row whose weights begin at `first`.
template <typename W, int VEC, typename R>
__device__ __forceinline__ void read_affine(const W* value_a, R missing, int first, int l, int inner,
                                            R (&value_k)[VEC]) {
    if (!value_a) {
#pragma unroll
        for (int k = 0; k < VEC; ++k) value_k[k] = missing;
    } else if (inner == 1) {
        read_pack<W, VEC>(value_a + first + l, value_k);
    } else {
#pragma unroll
        for (int k = 0; k < VEC; ++k) value_k[k] = to_real(value_a[first + (l + k) / inner]);
    }
}

// Sums over the threads of a row, in each of them; all threads of the block must come here.
template <int COUNT, typename R> __device__ __forceinline__ void row_sums(R (&sum_k)[COUNT]) {
    __shared__ R part_wk[32][COUNT];
    const int lanes = blockDim.x < 32 ? (int)blockDim.x : 32;
    for (int offset = lanes / 2; offset; offset /= 2)
#pragma unroll
        for (int k = 0; k < COUNT; ++k) sum_k[k] += shuffle_xor(sum_k[k], offset);
    if (blockDim.x <= 32) return;
    const int warp = thread_of_block() / 32, warps = blockDim.x / 32;
    __syncthreads();  // the sums before these have been read
    if (threadIdx.x % 32 == 0)
#pragma unroll
        for (int k = 0; k < COUNT; ++k) part_wk[warp][k] = sum_k[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < COUNT; ++k) sum_k[k] = 0;
    for (int w = threadIdx.y * warps; w < (threadIdx.y + 1) * warps; ++w)
#pragma unroll
        for (int k = 0; k < COUNT; ++k) sum_k[k] += part_wk[w][k];
}

// Those of the whole block, the same for each of its threads.
template <typename R> __device__ __forceinline__ Moments<R> block_moments(Moments<R> mine) {
    __shared__ Moments<R> part_w[32];
    mine = warp_reduce(mine, [](const Moments<R>& a, const Moments<R>& b) { return Merging<R>().merge(a, b); });
    if (threadIdx.x % 32 == 0) part_w[threadIdx.x / 32] = mine;
    __syncthreads();
    Moments<R> all = part_w[0];
    for (int w = 1; w < (int)blockDim.x / 32; ++w) all.merge(part_w[w]);
    return all;
}

// ---- forward ----

template <typename T, typename W, int VEC>
__device__ __forceinline__ void write_pack_of_row(T* out_l, const Real<T> (&x_k)[VEC], const W* weight_a,
                                                  const W* bias_a, int first, int l, int inner, Real<T> mean,
                                                  Real<T> scale) {
    Real<T> weight_k[VEC], bias_k[VEC], y_k[VEC];
    read_affine<W, VEC>(weight_a, (Real<T>)1, first, l, inner, weight_k);
    read_affine<W, VEC>(bias_a, (Real<T>)0, first, l, inner, bias_k);
#pragma unroll
    for (int k = 0; k < VEC; ++k) y_k[k] = (x_k[k] - mean) * scale * weight_k[k] + bias_k[k];
    write_pack<T, VEC>(out_l + l, y_k);
}

template <typename T, typename W, int VEC>
__global__ void __launch_bounds__(MAX_THREADS)
    rows_forward(const T* x, const W* weight_a, const W* bias_a, T* out_rl, Real<T>* mean_r, Real<T>* variance_r,
                 RowShape shape, RowStrides strides, double eps, int center) {
    typedef Real<T> R;
    constexpr int PACKS = items_of_thread<T> / VEC;
    const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    const int length = row < shape.rows ? shape.length : 0;
    const T* x_l = row_of(x, row < shape.rows ? row : 0, shape, strides);
    R x_pk[PACKS][VEC];
    read_row(x_l, strides.l, length, x_pk);
    R total_k[1] = {0}, mean = 0;
    if (center) {
#pragma unroll
        for (int p = 0; p < PACKS; ++p)
#pragma unroll
            for (int k = 0; k < VEC; ++k) total_k[0] += x_pk[p][k];
        row_sums(total_k);
        mean = total_k[0] / (R)shape.length;
    }
    R sum_k[2] = {0, 0};
#pragma unroll
    for (int p = 0; p < PACKS; ++p)
        if (place_of<VEC>(p) < length)
#pragma unroll
            for (int k = 0; k < VEC; ++k) {
                const R distance = x_pk[p][k] - mean;
                sum_k[0] += distance * distance;
                sum_k[1] += distance;
            }
    row_sums(sum_k);
    const R count = (R)shape.length;
    const R variance = (center ? about_the_mean(sum_k[0], sum_k[1], count) : sum_k[0]) / count;
    // of equal numbers the sum may be rounded, and the root of eps makes of that more than they are apart
    if (center) mean += sum_k[1] / count;
    const R scale = inverse_root(variance + (R)eps);
    const int first = (int)(row % shape.groups) * shape.channels;
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
        const int l = place_of<VEC>(p);
        if (l < length)
            write_pack_of_row<T, W, VEC>(out_rl + row * length, x_pk[p], weight_a, bias_a, first, l, shape.inner, mean,
                                         scale);
    }
    if (threadIdx.x == 0 && length) {
        mean_r[row] = mean;
        variance_r[row] = variance;
    }
}

template <typename T, typename W, int VEC>
__global__ void __launch_bounds__(MAX_THREADS, blocks_held<T>)
    long_rows_forward(const T* x, const W* weight_a, const W* bias_a, T* out_rl, Real<T>* mean_r, Real<T>* variance_r,
                      RowShape shape, RowStrides strides, double eps, int center) {
    typedef Real<T> R;
    const long long row = blockIdx.x;
    const T* x_l = row_of(x, row, shape, strides);
    const int first = (int)(row % shape.groups) * shape.channels, step = blockDim.x * VEC;
    R x_k[VEC];
    const auto push = [&](Moments<R>& moments, long long l) {
        read_pack<T, VEC>(x_l + l * strides.l, x_k);
        moments.push(x_k, VEC);
    };
    const Moments<R> all =
        block_moments(gathered<VEC, 3, 1>(Merging<R>(), threadIdx.x * VEC, shape.length, step, push));
    // the mean square is the variance and the square of the mean
    const R variance = all.m2 / (R)shape.length + (center ? (R)0 : all.mean() * all.mean());
    const R mean = center ? all.mean() : (R)0, scale = inverse_root(variance + (R)eps);
    for (long long l = threadIdx.x * VEC; l < shape.length; l += step) {
        read_pack<T, VEC>(x_l + l * strides.l, x_k);
        write_pack_of_row<T, W, VEC>(out_rl + row * shape.length, x_k, weight_a, bias_a, first, (int)l, shape.inner,
                                     mean, scale);
    }
    if (threadIdx.x == 0) {
        mean_r[row] = mean;
        variance_r[row] = variance;
    }
}

// ---- backward ----

template <typename T, int VEC>
__device__ __forceinline__ void write_to_x(T* to_x, const Real<T> (&h_k)[VEC], const Real<T> (&y_k)[VEC],
                                           const Real<T> (&mean_k)[2], Real<T> scale) {
    Real<T> g_k[VEC];
#pragma unroll
    for (int k = 0; k < VEC; ++k) g_k[k] = (h_k[k] - mean_k[0] - y_k[k] * mean_k[1]) * scale;
    write_pack<T, VEC>(to_x, g_k);
}

// Adds up over the rows of a block what its threads hold by columns, in a fixed order.
template <typename R, int PACKS, int VEC>
__device__ __forceinline__ void write_part(const R (&sum_pk)[PACKS][VEC], int length, R* part_bl) {
    DYN_SHARED(R, of_thread);
    if (!part_bl) return;
    const int place = (threadIdx.y * blockDim.x + threadIdx.x) * VEC;
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
        const int l = place_of<VEC>(p);
#pragma unroll
        for (int k = 0; k < VEC; ++k) of_thread[place + k] = sum_pk[p][k];
        __syncthreads();
        // pairs, and pairs of these
        for (unsigned apart = 1; apart < blockDim.y; apart *= 2) {
            if (threadIdx.y % (2 * apart) == 0)
#pragma unroll
                for (int k = 0; k < VEC; ++k) of_thread[place + k] += of_thread[place + apart * blockDim.x * VEC + k];
            __syncthreads();
        }
        if (threadIdx.y == 0 && l < length)
#pragma unroll
            for (int k = 0; k < VEC; ++k) part_bl[(long long)blockIdx.x * length + l + k] = of_thread[place + k];
        __syncthreads();
    }
}

template <typename T, typename W, int VEC, bool COLUMNS>
__global__ void __launch_bounds__(MAX_THREADS)
    rows_backward(const T* grad, const T* x, const W* weight_a, const Real<T>* mean_r, const Real<T>* variance_r,
                  T* to_x_rl, Real<T>* weight_bl, Real<T>* bias_bl, RowShape shape, RowStrides grad_strides,
                  RowStrides strides, double eps, int center) {
    typedef Real<T> R;
    constexpr int PACKS = items_of_thread<T> / VEC;
    R to_weight_pk[PACKS][VEC] = {}, to_bias_pk[PACKS][VEC] = {};
    for (long long tile = blockIdx.x; tile * blockDim.y < shape.rows; tile += gridDim.x) {
        const long long row = tile * blockDim.y + threadIdx.y;
        const bool live = row < shape.rows;
        const int length = live ? shape.length : 0, first = (int)(row % shape.groups) * shape.channels;
        const T* grad_l = row_of(grad, live ? row : 0, shape, grad_strides);
        const T* x_l = row_of(x, live ? row : 0, shape, strides);
        const R mean = live ? mean_r[row] : (R)0, scale = live ? inverse_root(variance_r[row] + (R)eps) : (R)0;
        R h_pk[PACKS][VEC], y_pk[PACKS][VEC], sum_k[2] = {0, 0};
        read_row(grad_l, grad_strides.l, length, h_pk);
        read_row(x_l, strides.l, length, y_pk);
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            const int l = place_of<VEC>(p);
            if (l >= length) continue;
            R weight_k[VEC];
            read_affine<W, VEC>(weight_a, (R)1, first, l, shape.inner, weight_k);
#pragma unroll
            for (int k = 0; k < VEC; ++k) {
                y_pk[p][k] = (y_pk[p][k] - mean) * scale;
                if constexpr (COLUMNS) {
                    to_weight_pk[p][k] += h_pk[p][k] * y_pk[p][k];
                    to_bias_pk[p][k] += h_pk[p][k];
                }
                h_pk[p][k] *= weight_k[k];
                sum_k[0] += h_pk[p][k];
                sum_k[1] += h_pk[p][k] * y_pk[p][k];
            }
        }
        if (!to_x_rl) continue;
        row_sums(sum_k);
        const R mean_k[2] = {center ? sum_k[0] / (R)shape.length : (R)0, sum_k[1] / (R)shape.length};
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            const int l = place_of<VEC>(p);
            if (l < length) write_to_x<T, VEC>(to_x_rl + row * length + l, h_pk[p], y_pk[p], mean_k, scale);
        }
    }
    if constexpr (COLUMNS) {
        write_part(to_weight_pk, shape.length, weight_bl);
        write_part(to_bias_pk, shape.length, bias_bl);
    }
}

template <typename T, typename W, int VEC>
__global__ void __launch_bounds__(MAX_THREADS, blocks_held<T>)
    long_rows_backward(const T* grad, const T* x, const W* weight_a, const Real<T>* mean_r, const Real<T>* variance_r,
                       T* to_x_rl, RowShape shape, RowStrides grad_strides, RowStrides strides, double eps,
                       int center) {
    typedef Real<T> R;
    const long long row = blockIdx.x;
    const T* grad_l = row_of(grad, row, shape, grad_strides);
    const T* x_l = row_of(x, row, shape, strides);
    const int first = (int)(row % shape.groups) * shape.channels, step = blockDim.x * VEC;
    const R mean = mean_r[row], scale = inverse_root(variance_r[row] + (R)eps);
    R h_k[VEC], y_k[VEC];
    // turns x into y and reads h for one pack, and adds h and h * y up
    const auto take = [&](Sums<R>& sums, long long l) {
        R weight_k[VEC];
        read_pack<T, VEC>(grad_l + l * grad_strides.l, h_k);
        read_pack<T, VEC>(x_l + l * strides.l, y_k);
        read_affine<W, VEC>(weight_a, (R)1, first, (int)l, shape.inner, weight_k);
#pragma unroll
        for (int k = 0; k < VEC; ++k) {
            y_k[k] = (y_k[k] - mean) * scale;
            h_k[k] *= weight_k[k];
            sums.bias += h_k[k];
            sums.weight += h_k[k] * y_k[k];
        }
    };
    const Sums<R> mine = gathered<VEC, 3, 1>(AddingBoth<R>(), threadIdx.x * VEC, shape.length, step, take);
    R sum_k[2] = {mine.bias, mine.weight};
    row_sums(sum_k);
    const R mean_k[2] = {center ? sum_k[0] / (R)shape.length : (R)0, sum_k[1] / (R)shape.length};
    Sums<R> unused = {0, 0};
    for (long long l = threadIdx.x * VEC; l < shape.length; l += step) {
        take(unused, l);
        write_to_x<T, VEC>(to_x_rl + row * shape.length + l, h_k, y_k, mean_k, scale);
    }
}

}  // namespace lucid
