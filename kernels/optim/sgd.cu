// Stochastic gradient descent of many parameters at once, in place.
//
//     d = ±g + weight_decay * p                      (minus: maximize)
//     b = momentum * b + fresh * d                   (with a buffer)
//     p = p - lr * (b, or d without a buffer, or d + momentum * b: nesterov)
//
// Rows of the table: gradient g, parameter p, and the buffer b of momentum (DEPTH = 3) or none (DEPTH = 2).
// Launch: one block for each chunk of the table, see tensors.cuh.

#include "tensors.cuh"

namespace lucid {

template <typename T, int DEPTH>
__global__ void sgd(Tensors<DEPTH> tensors, int rows, int chunk, double lr_, double weight_decay_, double momentum_,
                    double fresh_, int nesterov, int maximize) {
    typedef Real<T> R;
    const R lr = (R)lr_, weight_decay = (R)weight_decay_, momentum = (R)momentum_, fresh = (R)fresh_;
    for_each_in_chunk<T, DEPTH, 1>(tensors, rows, chunk, [&](R(&value_d)[DEPTH]) {
        R direction = maximize ? -value_d[0] : value_d[0];
        if (weight_decay != 0) direction += weight_decay * value_d[1];  // 0 times infinity would be NaN
        if constexpr (DEPTH == 3) {
            const R buffer = momentum * value_d[2] + fresh * direction;
            value_d[2] = buffer;
            direction = nesterov ? direction + momentum * buffer : buffer;
        }
        value_d[1] -= lr * direction;
    });
}

}  // namespace lucid
