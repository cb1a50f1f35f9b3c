// Adadelta of many parameters at once, in place.
//
//     g = ±g + weight_decay * p                      (minus: maximize)
//     v = rho * v + (1 - rho) * g^2
//     d = sqrt(u + eps) / sqrt(v + eps) * g
//     u = rho * u + (1 - rho) * d^2
//     p = p - lr * d
//
// Rows of the table: gradient g, parameter p, v, u. Numbers come by value, or from numbers_t (of each row its own),
// which adadelta_numbers makes; where `found` is set, nothing changes. Launch: one block for each chunk of the table,
// see tensors.cuh, and numbers.cuh.

#include "numbers.cuh"
#include "tensors.cuh"

namespace lucid {

struct AdadeltaNumbers {
    double lr, rho, eps, weight_decay;
};

template <typename T, int DEPTH>
__global__ void adadelta(Tensors<DEPTH> tensors, int rows, int chunk, const float* found,
                         const AdadeltaNumbers* numbers_t, AdadeltaNumbers numbers, int maximize) {
    typedef Real<T> R;
    if (found && *found != 0) return;
    if (numbers_t) numbers = numbers_t[chunk_of_block(tensors, rows, chunk).row];
    const R lr = (R)numbers.lr, rho = (R)numbers.rho, fresh = (R)(1 - numbers.rho), eps = (R)numbers.eps;
    const R weight_decay = (R)numbers.weight_decay;
    for_each_in_chunk<T, DEPTH, 1>(tensors, rows, chunk, [&](R(&value_d)[DEPTH]) {
        const R gradient = descent(value_d[0], value_d[1], weight_decay, maximize);
        const R square = rho * value_d[2] + fresh * gradient * gradient;
        const R step = gradient / sqrt(square + eps) * sqrt(value_d[3] + eps);
        value_d[2] = square;
        value_d[3] = rho * value_d[3] + fresh * step * step;
        value_d[1] -= lr * step;
    });
}

struct AdadeltaSettings {
    double lr, rho, eps, weight_decay, maximize, capturable;
};

__global__ void adadelta_numbers(Scalars<1> state, int rows, const float* found, const AdadeltaSettings* settings,
                                 AdadeltaNumbers* numbers_t) {
    const AdadeltaSettings s = *settings;
    LUCID_FOR(t, rows) {
        counted(state.scalar_kt[0][t], found);
        numbers_t[t] = AdadeltaNumbers{s.lr, s.rho, s.eps, s.weight_decay};
    }
}

}  // namespace lucid
