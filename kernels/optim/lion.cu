// Lion of many parameters at once, in place.
//
//     g = ±g                                         (minus: maximize)
//     p = shrink * p - lr * sign(m + (1 - beta1) * (g - m))
//     m = m + (1 - beta2) * (g - m)                  shrink = 1 - lr * weight_decay, sign(NaN) = NaN
//
// Rows of the table: gradient g, parameter p, m. Numbers come by value, or from numbers_t (of each row its own), which
// lion_numbers makes; where `found` is set, nothing changes. Launch: one block for each chunk of the table, see
// tensors.cuh, and numbers.cuh.

#include "numbers.cuh"
#include "tensors.cuh"

namespace lucid {

struct LionNumbers {
    double lr, beta1, beta2, shrink;
};

template <typename T, int DEPTH>
__global__ void lion(Tensors<DEPTH> tensors, int rows, int chunk, const float* found, const LionNumbers* numbers_t,
                     LionNumbers numbers, int maximize) {
    typedef Real<T> R;
    if (found && *found != 0) return;
    if (numbers_t) numbers = numbers_t[chunk_of_block(tensors, rows, chunk).row];
    const R lr = (R)numbers.lr, fresh1 = (R)(1 - numbers.beta1), fresh2 = (R)(1 - numbers.beta2);
    const R shrink = (R)numbers.shrink;
    for_each_in_chunk<T, DEPTH, 1>(tensors, rows, chunk, [&](R(&value_d)[DEPTH]) {
        const R gradient = maximize ? -value_d[0] : value_d[0], mean = value_d[2];
        const R direction = mean + fresh1 * (gradient - mean);
        const R sign = direction > 0 ? (R)1 : direction < 0 ? (R)-1 : direction;
        value_d[1] = shrink * value_d[1] - lr * sign;
        value_d[2] = mean + fresh2 * (gradient - mean);
    });
}

struct LionSettings {
    double lr, beta1, beta2, weight_decay, maximize;
};

__global__ void lion_numbers(Scalars<1> state, int rows, const float* found, const LionSettings* settings,
                             LionNumbers* numbers_t) {
    const LionSettings s = *settings;
    LUCID_FOR(t, rows) {
        counted(state.scalar_kt[0][t], found);
        numbers_t[t] = LionNumbers{s.lr, s.beta1, s.beta2, 1 - s.lr * s.weight_decay};
    }
}

}  // namespace lucid
