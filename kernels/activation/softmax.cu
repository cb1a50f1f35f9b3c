// Softmax and its logarithm along one axis, and their derivatives.
//
//     softmax        y[c] = exp(x[c] - max x) / sum(exp(x - max x))        with `logarithm`: log of that
//     softmax_grad   dx[c] = y[c] * (dy[c] - sum(dy * y))                  with `logarithm`: dy[c] - exp(y[c]) * sum(dy)
//
// *_rows: contiguous rows that a block can hold in registers, HELD elements a thread: one read, one write.
//     block (threads of a row, rows), together a multiple of 32; over 32 threads a row: one row; grid rows / rows of a block
// *_lines: any stride, any length, read twice; where one line's elements lie apart, neighbouring threads take
//     neighbouring lines. Block (lines, parts of a line), powers of two; grid lines / lines of a block; dynamic shared
//     memory: two Total<T> a thread.
// Outputs are in C order: line r begins at (r / inner) * length * inner + r % inner and has stride inner.
// Axes: n = row, c = element of it; kept = the axes of lines, of x or dy.

#include "rows.cuh"

namespace lucid {

template <typename T>
__global__ void __launch_bounds__(MAX_THREADS) softmax_rows(const T* x, T* y_nc, const __grid_constant__ Axes kept,
                                                            long long rows, int length, int vectors, int logarithm) {
    typedef Total<T> R;
    const long long n = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    R x_k[HELD];
    read_row(x + (n < rows ? kept.offset(n) : 0), n < rows, length, vectors, Limits<R>::least(), x_k);
    R peak = Limits<R>::least();
#pragma unroll
    for (int k = 0; k < HELD; ++k) peak = max(peak, x_k[k]);
    peak = merged(Peak<R>(), peak, blockDim.x);
    R mass = 0;
#pragma unroll
    for (int k = 0; k < HELD; ++k) {
        x_k[k] -= peak;
        const R e = exp(x_k[k]);
        mass += e;
        if (!logarithm) x_k[k] = e;
    }
    mass = merged(Adding<R>(), mass, blockDim.x);
    const R scale = logarithm ? log(mass) : 1 / mass;
#pragma unroll
    for (int k = 0; k < HELD; ++k) x_k[k] = logarithm ? x_k[k] - scale : x_k[k] * scale;
    if (n < rows) write_row(y_nc + n * length, length, vectors, x_k);
}

template <typename T>
__global__ void softmax_lines(const T* x, T* y, const __grid_constant__ Axes kept, long long lines, long long length,
                              long long stride, long long inner, int logarithm) {
    typedef Total<T> R;
    DYN_SHARED(Mass<R>, shared);
    const long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const T* x_c = x + (n < lines ? kept.offset(n) : 0);
    const Massing<R> op;
    Mass<R> a = op.identity();
    if (n < lines)
        a = gathered<1, 3, 1>(op, threadIdx.y, length, blockDim.y, [&](Mass<R>& mass, long long c) {
            mass = op.merge(mass, Mass<R>{(R)x_c[c * stride], 1});
        });
    a = merged_down(op, a, shared);
    if (n >= lines) return;
    // infinity less infinity: no element of such a line is known
    if (a.peak - a.peak != 0) a.mass = NAN;
    const R scale = logarithm ? log(a.mass) : 1 / a.mass;
    T* y_c = y + n / inner * length * inner + n % inner;
    for (long long c = threadIdx.y; c < length; c += blockDim.y) {
        const R distance = (R)x_c[c * stride] - a.peak;
        y_c[c * inner] = (T)(logarithm ? distance - scale : exp(distance) * scale);
    }
}

template <typename T>
__global__ void __launch_bounds__(MAX_THREADS)
    softmax_grad_rows(const T* dy, const T* y_nc, T* dx_nc, const __grid_constant__ Axes kept, long long rows,
                      int length, int vectors, int logarithm) {
    typedef Total<T> R;
    const long long n = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    R dy_k[HELD], y_k[HELD];
    read_row(dy + (n < rows ? kept.offset(n) : 0), n < rows, length, vectors, (R)0, dy_k);
    read_row(y_nc + (n < rows ? n * length : 0), n < rows, length, vectors, (R)0, y_k);
    R total = 0;
#pragma unroll
    for (int k = 0; k < HELD; ++k) total += logarithm ? dy_k[k] : dy_k[k] * y_k[k];
    total = merged(Adding<R>(), total, blockDim.x);
#pragma unroll
    for (int k = 0; k < HELD; ++k) dy_k[k] = logarithm ? dy_k[k] - exp(y_k[k]) * total : y_k[k] * (dy_k[k] - total);
    if (n < rows) write_row(dx_nc + n * length, length, vectors, dy_k);
}

template <typename T>
__global__ void softmax_grad_lines(const T* dy, const T* y, T* dx, const __grid_constant__ Axes kept, long long lines,
                                   long long length, long long stride, long long inner, int logarithm) {
    typedef Total<T> R;
    DYN_SHARED(R, shared);
    const long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long first = n / inner * length * inner + n % inner;
    const T* dy_c = dy + (n < lines ? kept.offset(n) : 0);
    R total = 0;
    if (n < lines)
        total = gathered<1, 3, 1>(Adding<R>(), threadIdx.y, length, blockDim.y, [&](R& sum, long long c) {
            sum += (R)dy_c[c * stride] * (logarithm ? (R)1 : (R)y[first + c * inner]);
        });
    total = merged_down(Adding<R>(), total, shared);
    if (n >= lines) return;
    for (long long c = threadIdx.y; c < length; c += blockDim.y) {
        const R slope = (R)dy_c[c * stride], value = (R)y[first + c * inner];
        dx[first + c * inner] = (T)(logarithm ? slope - exp(value) * total : value * (slope - total));
    }
}

}  // namespace lucid
