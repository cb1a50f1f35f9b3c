// The connectionist temporal classification of sequences: lucid/ops/loss/ctc.py. (Graves, Fernandez, Gomez, Schmidhuber,
// Connectionist temporal classification, 2006.)
//
// The states of an example are its labels with a blank before, between and after them: L = 2 * length + 1. A path stays,
// goes one state on, or two where that is another label than its own; it begins in the first two and ends in the last two.
//     alpha_ntl = log of the sum over paths from the beginning to state l at time t, with x of time t
//     beta_ntl  = the same from there to the end, without x of time t
//     nll_n     = -log of the sum over all paths
//     dx_tnc    = dy_n * (exp(x_tnc) - sum over the states of label c of exp(alpha + beta + nll)), 0 from the end on
// A label that is no class makes NaN.
//
// ctc_alpha, ctc_beta: a block an example, whose threads share the states. ctc_grad: a block an example and time.
// Axes: n = example, t = time, c = class, l = state.

#include "lucid.cuh"

namespace lucid {

// One example: where its labels are, how long it is.
struct Example {
    const long long* label_k;
    long long time, states;
    int blank;
    __device__ __forceinline__ Example(const long long* target, const long long* offset_n, const long long* time_n,
                                       const long long* length_n, long long n, int blank)
        : label_k(target + offset_n[n]), time(time_n[n]), states(2 * length_n[n] + 1), blank(blank) {}
    __device__ __forceinline__ long long label(long long l) const { return l % 2 ? label_k[l / 2] : blank; }
};

template <typename R> __device__ __forceinline__ R log_sum(R a, R b, R c) {
    const R peak = max(max(a, b), c);
    // all of them nothing, or NaN
    if (!(peak > Limits<R>::least())) return a + b + c;
    return log(exp(a - peak) + exp(b - peak) + exp(c - peak)) + peak;
}

template <typename T> __device__ __forceinline__ Real<T> chance(const T* x_c, long long label, int classes) {
    return label >= 0 && label < classes ? to_real(x_c[label]) : (Real<T>)NAN;
}

template <typename T>
__global__ void ctc_alpha(const T* x_tnc, const long long* target, const long long* offset_n, const long long* time_n,
                          const long long* length_n, Real<T>* alpha_ntl, Real<T>* nll_n, T* loss_n, int steps,
                          int classes, int longest, int blank, int zero_infinity) {
    typedef Real<T> R;
    const R nothing = Limits<R>::least();
    const long long n = blockIdx.x, batch = gridDim.x;
    const Example example(target, offset_n, time_n, length_n, n, blank);
    R* alpha_tl = alpha_ntl + n * steps * longest;
    for (long long t = 0; t < example.time; ++t) {
        const T* x_c = x_tnc + (t * batch + n) * classes;
        const R* last_l = alpha_tl + (t - 1) * longest;
        for (long long l = threadIdx.x; l < example.states; l += blockDim.x) {
            const long long label = example.label(l);
            R a = t || l > 1 ? nothing : (R)0, b = nothing, c = nothing;
            if (t) {
                a = last_l[l];
                if (l > 0) b = last_l[l - 1];
                if (l > 1 && example.label(l - 2) != label) c = last_l[l - 2];
            }
            alpha_tl[t * longest + l] = log_sum(a, b, c) + chance(x_c, label, classes);
        }
        __syncthreads();
    }
    if (threadIdx.x) return;
    R total = example.states > 1 ? nothing : (R)0;
    if (example.time) {
        const R* end_l = alpha_tl + (example.time - 1) * longest + example.states;
        total = log_sum(end_l[-1], example.states > 1 ? end_l[-2] : nothing, nothing);
    }
    nll_n[n] = -total;
    loss_n[n] = from_real<T>(zero_infinity && total == nothing ? (R)0 : -total);
}

template <typename T>
__global__ void ctc_beta(const T* x_tnc, const long long* target, const long long* offset_n, const long long* time_n,
                         const long long* length_n, Real<T>* beta_ntl, int steps, int classes, int longest, int blank) {
    typedef Real<T> R;
    const R nothing = Limits<R>::least();
    const long long n = blockIdx.x, batch = gridDim.x;
    const Example example(target, offset_n, time_n, length_n, n, blank);
    R* beta_tl = beta_ntl + n * steps * longest;
    for (long long t = example.time - 1; t >= 0; --t) {
        const bool end = t + 1 == example.time;
        const T* x_c = x_tnc + ((t + 1) * batch + n) * classes;
        const R* next_l = beta_tl + (t + 1) * longest;
        for (long long l = threadIdx.x; l < example.states; l += blockDim.x) {
            R a = end && l + 2 >= example.states ? (R)0 : nothing, b = nothing, c = nothing;
            if (!end) {
                const long long label = example.label(l);
                a = next_l[l] + chance(x_c, label, classes);
                if (l + 1 < example.states) b = next_l[l + 1] + chance(x_c, example.label(l + 1), classes);
                if (l + 2 < example.states && example.label(l + 2) != label)
                    c = next_l[l + 2] + chance(x_c, example.label(l + 2), classes);
            }
            beta_tl[t * longest + l] = log_sum(a, b, c);
        }
        __syncthreads();
    }
}

template <typename T>
__global__ void ctc_grad(const T* dy_n, const T* x_tnc, const long long* target, const long long* offset_n,
                         const long long* time_n, const long long* length_n, const Real<T>* alpha_ntl,
                         const Real<T>* beta_ntl, const Real<T>* nll_n, T* dx_tnc, int steps, int batch, int classes,
                         int longest, int blank, int zero_infinity) {
    typedef Real<T> R;
    const long long n = blockIdx.x % (unsigned)batch, t = blockIdx.x / (unsigned)batch;
    const Example example(target, offset_n, time_n, length_n, n, blank);
    const R nll = nll_n[n];
    const bool lost = nll == Limits<R>::greatest();
    const R dy = t < example.time && !(lost && zero_infinity) ? to_real(dy_n[n]) : (R)0;
    const T* x_c = x_tnc + (t * batch + n) * classes;
    T* dx_c = dx_tnc + (t * batch + n) * classes;
    const bool counts = t < example.time && !lost;
    const long long first = (n * steps + t) * longest;
    const auto share = [&](long long l) { return exp(alpha_ntl[first + l] + beta_ntl[first + l] + nll); };
    R blanks = 0;
    if (counts)
        for (long long l = 2 * threadIdx.x; l < example.states; l += 2 * blockDim.x) blanks += share(l);
    blanks = block_sum(blanks);
    for (int c = (int)threadIdx.x; c < classes; c += (int)blockDim.x) {
        R slope = 0;
        if (t < example.time && !(lost && zero_infinity)) slope = lost ? (R)NAN : exp(to_real(x_c[c]));
        if (counts) {
            R own = c == blank ? blanks : (R)0;
            for (long long l = 1; l < example.states; l += 2)
                if (example.label(l) == c) own += share(l);
            slope -= own;
        }
        dx_c[c] = from_real<T>(dy * slope);
    }
}

}  // namespace lucid
