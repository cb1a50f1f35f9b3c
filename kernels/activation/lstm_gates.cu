// What a step of an LSTM does to its gates, element by element, and the gradients: lucid/ops/activation/lstm_gates.py.
//
//     c = f * cell + i * g    h = o * tanh(c)    with i, f, o = sigmoid(x + h'), g = tanh(x + h') of their columns
//
// i, f, g and o are kept for the gradients, in float for half types.
// Axes: b = sequence, k = gate and column, the gates i, f, g, o one beside the other, j = column.
// Launch: any one-dimensional grid and block; neighbouring threads have neighbouring columns.

#include "lucid.cuh"

namespace lucid {

template <typename R> __device__ __forceinline__ R sigmoid(R x) { return 1 / (1 + exp(-x)); }

template <typename T>
__global__ void lstm_gates(const T* __restrict__ x_bk, const T* __restrict__ hidden_bk, const T* __restrict__ cell_bj,
                           T* __restrict__ output_bj, T* __restrict__ after_bj, Real<T>* __restrict__ gate_bk,
                           long long count, long long width) {
    typedef Real<T> R;
    LUCID_FOR(n, count) {
        const long long first = n + quotient(n, width) * 3 * width;
        R gate[4];
        for (int k = 0; k < 4; ++k) {
            const R sum = to_real(x_bk[first + k * width]) + to_real(hidden_bk[first + k * width]);
            gate[k] = k == 2 ? tanh(sum) : sigmoid(sum);
            gate_bk[first + k * width] = gate[k];
        }
        const R after = gate[1] * to_real(cell_bj[n]) + gate[0] * gate[2];
        after_bj[n] = from_real<T>(after);
        output_bj[n] = from_real<T>(gate[3] * tanh(after));
    }
}

template <typename T>
__global__ void lstm_gates_grad(const T* __restrict__ to_output_bj, const T* __restrict__ to_after_bj,
                                const Real<T>* __restrict__ gate_bk, const T* __restrict__ cell_bj,
                                const T* __restrict__ after_bj, T* __restrict__ to_gate_bk, T* __restrict__ to_cell_bj,
                                long long count, long long width) {
    typedef Real<T> R;
    LUCID_FOR(n, count) {
        const long long first = n + quotient(n, width) * 3 * width;
        const R i = gate_bk[first], f = gate_bk[first + width], g = gate_bk[first + 2 * width];
        const R o = gate_bk[first + 3 * width], grad = to_real(to_output_bj[n]), t = tanh(to_real(after_bj[n]));
        const R to_after = to_real(to_after_bj[n]) + grad * o * (1 - t * t);
        to_gate_bk[first] = from_real<T>(to_after * g * i * (1 - i));
        to_gate_bk[first + width] = from_real<T>(to_after * to_real(cell_bj[n]) * f * (1 - f));
        to_gate_bk[first + 2 * width] = from_real<T>(to_after * i * (1 - g * g));
        to_gate_bk[first + 3 * width] = from_real<T>(grad * t * o * (1 - o));
        to_cell_bj[n] = from_real<T>(to_after * f);
    }
}

}  // namespace lucid
