// Stochastic gradient descent of many parameters at once, in place.
//
//     d = ±g + weight_decay * p                      (minus: maximize)
//     b = momentum * b + fresh * d                   (with a buffer)
//     p = p - lr * (b, or d without a buffer, or d + momentum * b: nesterov)
//
// Rows of the table: gradient g, parameter p, and the buffer b of momentum (DEPTH = 3) or none (DEPTH = 2).
// Numbers come by value, or from numbers_t (of each row its own), which sgd_numbers makes; where `found` is set,
// nothing changes. Launch: one block for each chunk of the table, see tensors.cuh, and numbers.cuh.

#include "numbers.cuh"
#include "tensors.cuh"

namespace lucid {

struct SgdNumbers {
    double lr, weight_decay, momentum, fresh;
};

template <typename T, int DEPTH>
__global__ void sgd(Tensors<DEPTH> tensors, int rows, int chunk, const float* found, const SgdNumbers* numbers_t,
                    SgdNumbers numbers, int nesterov, int maximize) {
    typedef Real<T> R;
    if (found && *found != 0) return;
    if (numbers_t) numbers = numbers_t[chunk_of_block(tensors, rows, chunk).row];
    const R lr = (R)numbers.lr, weight_decay = (R)numbers.weight_decay;
    const R momentum = (R)numbers.momentum, fresh = (R)numbers.fresh;
    for_each_in_chunk<T, DEPTH, 1>(tensors, rows, chunk, [&](R(&value_d)[DEPTH]) {
        R direction = descent(value_d[0], value_d[1], weight_decay, maximize);
        if constexpr (DEPTH == 3) {
            const R buffer = momentum * value_d[2] + fresh * direction;
            value_d[2] = buffer;
            direction = nesterov ? direction + momentum * buffer : buffer;
        }
        value_d[1] -= lr * direction;
    });
}

struct SgdSettings {
    double lr, momentum, dampening, weight_decay;
};

// Of steps behind the first one, which takes a direction whole: the buffer is there.
__global__ void sgd_numbers(Scalars<1> state, int rows, const float* found, const SgdSettings* settings,
                            SgdNumbers* numbers_t) {
    const SgdSettings s = *settings;
    LUCID_FOR(t, rows) {
        counted(state.scalar_kt[0][t], found);
        numbers_t[t] = SgdNumbers{s.lr, s.weight_decay, s.momentum, 1 - s.dampening};
    }
}

}  // namespace lucid
