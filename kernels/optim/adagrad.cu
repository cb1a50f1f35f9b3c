// Adagrad of many parameters at once, in place.
//
//     g = ±g + weight_decay * p                      (minus: maximize)
//     s = s + g^2
//     p = p - size * g / (sqrt(s) + eps)             size = lr / (1 + (t - 1) * lr_decay) at step t
//
// Rows of the table: gradient g, parameter p, s. Numbers come by value, or from numbers_t (of each row its own), which
// adagrad_numbers makes; where `found` is set, nothing changes. Launch: one block for each chunk of the table, see
// tensors.cuh, and numbers.cuh.

#include "numbers.cuh"
#include "tensors.cuh"

namespace lucid {

struct AdagradNumbers {
    double size, eps, weight_decay;
};

template <typename T, int DEPTH>
__global__ void adagrad(Tensors<DEPTH> tensors, int rows, int chunk, const float* found,
                        const AdagradNumbers* numbers_t, AdagradNumbers numbers, int maximize) {
    typedef Real<T> R;
    if (found && *found != 0) return;
    if (numbers_t) numbers = numbers_t[chunk_of_block(tensors, rows, chunk).row];
    const R size = (R)numbers.size, eps = (R)numbers.eps, weight_decay = (R)numbers.weight_decay;
    for_each_in_chunk<T, DEPTH, 1>(tensors, rows, chunk, [&](R(&value_d)[DEPTH]) {
        const R gradient = descent(value_d[0], value_d[1], weight_decay, maximize);
        const R total = value_d[2] + gradient * gradient;
        value_d[2] = total;
        value_d[1] -= size * (gradient / (sqrt(total) + eps));
    });
}

struct AdagradSettings {
    double lr, lr_decay, eps, weight_decay, initial_accumulator_value, maximize, fused;
};

__global__ void adagrad_numbers(Scalars<1> state, int rows, const float* found, const AdagradSettings* settings,
                                AdagradNumbers* numbers_t) {
    const AdagradSettings s = *settings;
    LUCID_FOR(t, rows) {
        const double step = counted(state.scalar_kt[0][t], found);
        numbers_t[t] = AdagradNumbers{s.lr / (1 + (step - 1) * s.lr_decay), s.eps, s.weight_decay};
    }
}

}  // namespace lucid
