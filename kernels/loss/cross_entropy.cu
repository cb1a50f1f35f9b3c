// Cross entropy from logits x (N, C), the negative log-likelihood from log-probabilities, and their derivatives.
//
// With t the class of row n, w[t] its weight (1 without weights), s the smoothing; a row whose t is ignore_index counts
// for nothing, and one whose t is no class is NaN:
//     loss[n] = (1 - s) * w[t] * (lse - x[t]) + s / C * (lse * sum(w) - sum(w * x)),    lse = log(sum(exp(x)))
//     nll[n]  = -w[t] * x[t]
//     loss    = sum(loss[n]), divided by total = sum of w[t] for the mean
//     dx[c]   = dy * (every * softmax(x)[c] - hard * (c == t) - smooth * w[c])
//                 hard = (1 - s) * w[t], smooth = s / C, every = hard + smooth * sum(w), divided by total for the mean
//
// cross_entropy, cross_entropy_grad: block (threads of a row, rows), a multiple of 32 together; over 32 threads a row:
//     one row; grid rows / rows of a block. `vectors`: rows are contiguous and aligned to 16 bytes.
// nll_rows: a thread a row. nll_grad: a thread an element. loss_total: one block of a multiple of 32 threads.
// Axes: n = row, c = class.

#include "rows.cuh"

namespace lucid {

template <typename R> struct Crossed {
    Mass<R> mass;
    R product, weights;  // sum(w * (x - shift)), sum(w)
};

template <typename R> struct Crossing {
    typedef Crossed<R> A;
    __device__ A identity() const { return A{Massing<R>().identity(), 0, 0}; }
    __device__ A merge(A a, A b) const {
        return A{Massing<R>().merge(a.mass, b.mass), a.product + b.product, a.weights + b.weights};
    }
};

// Whether class t counts, and its weight: NaN if it is no class.
template <typename T> struct Counted {
    bool valid, known;
    Total<T> weight;
    __device__ __forceinline__ Counted(long long t, const T* weight_c, long long classes, long long ignore_index) {
        valid = t != ignore_index;
        known = t >= 0 && t < classes;
        weight = !valid ? 0 : !known ? (Total<T>)NAN : weight_c ? (Total<T>)weight_c[t] : 1;
    }
};

// Losses in Total<T> for loss_total to sum, or `final` ones in T.
template <typename T> __device__ __forceinline__ void store_loss(void* loss_n, long long n, Total<T> loss, int final) {
    if (final)
        ((T*)loss_n)[n] = (T)loss;
    else
        ((Total<T>*)loss_n)[n] = loss;
}

template <typename T>
__global__ void cross_entropy(const T* x_nc, const long long* target_n, const T* weight_c, Total<T>* peak_n,
                              Total<T>* mass_n, void* loss_n, Total<T>* weight_n, long long rows, long long classes,
                              long long row_step, long long class_step, int vectors, int final, long long ignore_index,
                              double smoothing) {
    typedef Total<T> R;
    constexpr int V = Pack<T>::WIDTH;
    const long long n = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    const Crossing<R> op;
    typedef Crossed<R> A;
    A a = op.identity();
    const T* x_c = x_nc + n * row_step;
    const bool smooth = smoothing != 0;
    // what logits have in common would take the digits of their differences
    R shift = smooth && n < rows ? (R)x_c[0] : 0;
    if (!(shift - shift == 0)) shift = 0;
    const auto take = [&](A& a, long long c, R x) {
        a.mass = Massing<R>().merge(a.mass, Mass<R>{x, 1});
        if (smooth) {
            const R weight = weight_c ? (R)weight_c[c] : (R)1;
            a.product += weight * (x - shift);
            a.weights += weight;
        }
    };
    if (n < rows) {
        if (vectors) {
            a = gathered<V, 2, 1>(op, threadIdx.x * V, classes, blockDim.x * V, [&](A& a, long long c) {
                const Pack<T> v = *(const Pack<T>*)(x_c + c);
#pragma unroll
                for (int k = 0; k < V; ++k) take(a, c + k, (R)v.value_k[k]);
            });
        } else {
            a = gathered<1, 2, 1>(op, threadIdx.x, classes, blockDim.x,
                                  [&](A& a, long long c) { take(a, c, (R)x_c[c * class_step]); });
        }
    }
    a = merged(op, a, blockDim.x);
    if (n >= rows || threadIdx.x != 0) return;
    // infinity less infinity
    if (a.mass.peak - a.mass.peak != 0) a.mass.mass = NAN;
    const Counted<T> own(target_n[n], weight_c, classes, ignore_index);
    R loss = 0;
    if (own.valid) {
        const R log_mass = log(a.mass.mass);
        const R x = own.known ? (R)x_c[target_n[n] * class_step] : 0;
        loss = own.weight * (R)(1 - smoothing) * (log_mass + (a.mass.peak - x));
        if (smooth) loss += (R)(smoothing / classes) * ((log_mass + (a.mass.peak - shift)) * a.weights - a.product);
    }
    peak_n[n] = a.mass.peak;
    mass_n[n] = a.mass.mass;
    weight_n[n] = own.weight;
    store_loss<T>(loss_n, n, loss, final);
}

template <typename T>
__global__ void cross_entropy_grad(const T* dy_n, long long dy_step, double factor, const T* x_nc,
                                   const long long* target_n, const T* weight_c, const Total<T>* peak_n,
                                   const Total<T>* mass_n, const Total<T>* total, const Total<T>* weights, T* dx_nc,
                                   long long rows, long long classes, long long row_step, long long class_step,
                                   int vectors, int mean, long long ignore_index, double smoothing) {
    typedef Total<T> R;
    constexpr int V = Pack<T>::WIDTH;
    const long long n = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    if (n >= rows) return;
    const long long t = target_n[n];
    const Counted<T> own(t, weight_c, classes, ignore_index);
    const R dy = dy_n ? (R)dy_n[n * dy_step] : (R)factor;
    // a row that does not count has no gradient, even where none counts
    const R share = own.valid ? (mean ? 1 / *total : 1) * dy : 0;
    const R hard = own.weight * (R)(1 - smoothing) * share;
    const R smooth = (R)(smoothing / classes) * share;
    const R every = hard + smooth * (smoothing != 0 && weights ? *weights : (R)classes);
    const R peak = peak_n[n], scale = every / mass_n[n];
    const T* x_c = x_nc + n * row_step;
    T* dx_c = dx_nc + n * classes;
    const auto slope = [&](long long c, R x) {
        R value = exp(x - peak) * scale;
        if (c == t) value -= hard;
        if (smoothing != 0) value -= smooth * (weight_c ? (R)weight_c[c] : (R)1);
        return (T)value;
    };
    if (vectors) {
        for (long long c = threadIdx.x * V; c < classes; c += blockDim.x * V) {
            const Pack<T> v = *(const Pack<T>*)(x_c + c);
            Pack<T> out;
#pragma unroll
            for (int k = 0; k < V; ++k) out.value_k[k] = slope(c + k, (R)v.value_k[k]);
            *(Pack<T>*)(dx_c + c) = out;
        }
    } else {
        for (long long c = threadIdx.x; c < classes; c += blockDim.x) dx_c[c] = slope(c, (R)x_c[c * class_step]);
    }
}

template <typename T>
__global__ void nll_rows(const T* x_nc, const long long* target_n, const T* weight_c, void* loss_n, Total<T>* weight_n,
                         long long rows, long long classes, long long row_step, long long class_step, int final,
                         long long ignore_index) {
    const long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= rows) return;
    const long long t = target_n[n];
    const Counted<T> own(t, weight_c, classes, ignore_index);
    const Total<T> x = own.valid && own.known ? (Total<T>)x_nc[n * row_step + t * class_step] : 0;
    weight_n[n] = own.weight;
    store_loss<T>(loss_n, n, own.valid ? -x * own.weight : 0, final);
}

template <typename T>
__global__ void nll_grad(const T* dy_n, long long dy_step, const long long* target_n, const T* weight_c,
                         const Total<T>* total, T* dx_nc, long long rows, long long classes, int mean,
                         long long ignore_index) {
    typedef Total<T> R;
    const long long index = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= rows * classes) return;
    const long long n = index / classes, t = target_n[n];
    R value = 0;
    if (index % classes == (t == ignore_index ? 0 : t)) {
        const Counted<T> own(t, weight_c, classes, ignore_index);
        if (own.valid) value = -own.weight * (mean ? 1 / *total : 1) * (R)dy_n[n * dy_step];
    }
    dx_nc[index] = (T)value;
}

// The sum of the weights, and the sum of the losses or their weighted mean; neither if they are final.
template <typename T>
__global__ void loss_total(const Total<T>* loss_n, const Total<T>* weight_n, T* loss, Total<T>* total, long long rows,
                           int final, int mean) {
    typedef Total<T> R;
    const Adding<R> op;
    const auto sum_of = [&](const R* value_n) {
        return merged(op, gathered(op, threadIdx.x, rows, blockDim.x, [&](R& sum, long long n) { sum += value_n[n]; }),
                      blockDim.x);
    };
    const R weights = sum_of(weight_n), losses = final ? (R)0 : sum_of(loss_n);
    if (threadIdx.x != 0) return;
    *total = weights;
    if (!final) *loss = (T)(mean ? losses / weights : losses);
}

}  // namespace lucid
