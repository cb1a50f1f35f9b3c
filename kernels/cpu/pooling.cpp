// Pooling on the CPU: bit for bit what lucid/ops/pooling makes by NumPy.
//
// Positions of a window are taken in their order, each for all windows of a row. `axis_d`: the windows along rows and
// columns; steps are in elements.

#include "windows.h"

namespace lucid {

// Calls row(values, y) for each row of windows of each plane, in order.
template <typename T, typename Row>
static void each_row(const T* x, Int images, Int channels, Int step_n, Int step_c, Int rows, Row row) {
    for (Int n = 0; n < images; ++n)
        for (Int c = 0; c < channels; ++c)
            for (Int y = 0; y < rows; ++y) row(x + n * step_n + c * step_c, y);
}

template <int STEP, typename T>
static void add_row(T* __restrict__ target, Int step, const T* __restrict__ row, Int row_step, Int count) {
    if (row_step == 1)
        for (Int i = 0; i < count; ++i) target[times<STEP>(i, step)] += row[i];
    else
        for (Int i = 0; i < count; ++i) target[times<STEP>(i, step)] += row[i * row_step];
}

// Writes the first elements of a vector; more if there is room, which later rows overwrite.
template <typename T, typename Vector> __forceinline__ void store(T* target, const Vector& value, Int count, Int room) {
    std::memcpy(target, &value, room * (Int)sizeof(T) >= (Int)sizeof(Vector) ? sizeof(Vector) : sizeof(T) * count);
}

// The largest element of each window and the number of its first position; of windows with a NaN that of the last one.
template <typename T, typename N>
__global__ void max_pool(const T* x, T* value_n, N* which_n, long long images, long long channels, long long step_n,
                         long long step_c, long long step_y, long long step_x, const Axis* axis_d) {
    typedef typename WideOf<T>::type Wide;
    typedef N Numbers __attribute__((vector_size(sizeof(N) * VectorOf<T>::LANES)));
    constexpr Int LANES = VectorOf<T>::LANES;
    const Axis v = axis_d[0], h = axis_d[1];
    const std::vector<Tap> down_p = taps_along(v), along_q = taps_along(h);
    Rows<T> rows(axis_d, 1, (T)-INFINITY);
    std::vector<Wide> first_x(rounded_up(h.out, LANES));
    for (Int i = 0; i < h.out; ++i) first_x[i] = (Wide)h.first_position(i);
    Int room = images * channels * v.out * h.out;
    each_row(x, images, channels, step_n, step_c, v.out, [&](const T* plane, Int y) {
        if (y == 0) rows.read(0, plane, step_y, step_x);
        const Wide first = (Wide)(v.first_position(y) * h.kernel);
        for (Int i = 0; i < h.out; i += LANES) {
            typename VectorOf<T>::type best = (T)-INFINITY - typename VectorOf<T>::type{};
            typename VectorOf<T>::wide number;
            std::memcpy(&number, first_x.data() + i, VECTOR_BYTES);
            number += first;
            for (const Tap& down : down_p) {
                const T* row = rows.row(0, y, down.position) + i;
                for (const Tap& along : along_q) {
                    const auto value = load(row + rows.start_q[along.position]);
                    const auto taken = (value > best) | (value != value);
                    best = taken ? value : best;
                    const Wide tap = (Wide)(down.position * h.kernel + along.position);
                    number = taken ? tap - typename VectorOf<T>::wide{} : number;
                }
            }
            const Int count = std::min(LANES, h.out - i);
            store(value_n, best, count, room);
            store(which_n, __builtin_convertvector(number, Numbers), count, room);
            value_n += count;
            which_n += count;
            room -= count;
        }
    });
}

// Calls visit with the offset of the element at a position of a window, by its number, if it is one of the plane.
struct Chosen {
    const Axis v, h;
    const Int step_y, step_x;
    std::vector<Int> down_k, along_k;

    Chosen(const Axis* axis_d, Int step_y, Int step_x) : v(axis_d[0]), h(axis_d[1]), step_y(step_y), step_x(step_x) {
        for (Int k = 0; k < v.kernel * h.kernel; ++k) {
            down_k.push_back(k / h.kernel * v.dilation - v.before);
            along_k.push_back(k % h.kernel * h.dilation - h.before);
        }
    }
    template <typename Visit> void operator()(size_t number, Int y, Int x, Visit visit) const {
        if (number >= down_k.size()) return;
        const Int row = y * v.stride + down_k[number], column = x * h.stride + along_k[number];
        if ((size_t)row < (size_t)v.size && (size_t)column < (size_t)h.size) visit(row * step_y + column * step_x);
    }
};

// Each element of `g` added at the position that `which_n` names. Windows are taken from the last to the first, so that
// to each element the positions are added in their order.
template <typename T, typename N>
__global__ void max_pool_grad(const T* g, const N* which_n, T* dx, long long images, long long channels,
                              long long step_n, long long step_c, long long step_y, long long step_x,
                              const Axis* axis_d) {
    const Axis v = axis_d[0], h = axis_d[1];
    const Chosen chosen(axis_d, h.size, 1);
    const bool apart = v.stride > (v.kernel - 1) * v.dilation && h.stride > (h.kernel - 1) * h.dilation;
    each_row(g, images, channels, step_n, step_c, 1, [&](const T* plane, Int) {
        std::memset(dx, 0, sizeof(T) * v.size * h.size);
        for (Int y = v.out - 1; y >= 0; --y)
            for (Int i = h.out - 1; i >= 0; --i)
                chosen(which_n[y * h.out + i], y, i, [&](Int at) {
                    const T value = plane[y * step_y + i * step_x];
                    dx[at] = apart ? value : dx[at] + value;
                });
        dx += v.size * h.size;
        which_n += v.out * h.out;
    });
}

// For each window the element at the position that `which_n` names.
template <typename T, typename N>
__global__ void max_pool_select(const T* x, const N* which_n, T* value_n, long long images, long long channels,
                                long long step_n, long long step_c, long long step_y, long long step_x,
                                const Axis* axis_d) {
    const Int count = axis_d[1].out;
    const Chosen chosen(axis_d, step_y, step_x);
    each_row(x, images, channels, step_n, step_c, axis_d[0].out, [&](const T* plane, Int y) {
        for (Int i = 0; i < count; ++i) {
            value_n[i] = 0;
            chosen(which_n[i], y, i, [&](Int at) { value_n[i] = plane[at]; });
        }
        value_n += count;
        which_n += count;
    });
}

// The sum of each window; of windows of more than `most` positions in groups of as many.
template <typename T>
__global__ void sum_pool(const T* x, T* total_n, long long images, long long channels, long long step_n,
                         long long step_c, long long step_y, long long step_x, const Axis* axis_d, long long most) {
    typedef typename VectorOf<T>::type Vector;
    constexpr Int LANES = VectorOf<T>::LANES;
    const Axis v = axis_d[0], h = axis_d[1];
    const std::vector<Tap> down_p = taps_along(v), along_q = taps_along(h);
    Rows<T> rows(axis_d, 1, 0);
    if (v.kernel * h.kernel <= most) most = v.kernel * h.kernel;
    Int room = images * channels * v.out * h.out;
    each_row(x, images, channels, step_n, step_c, v.out, [&](const T* plane, Int y) {
        if (y == 0) rows.read(0, plane, step_y, step_x);
        for (Int i = 0; i < h.out; i += LANES) {
            Vector total{}, part{};
            Int left = most;
            for (const Tap& down : down_p) {
                const T* row = rows.row(0, y, down.position) + i;
                for (const Tap& along : along_q) {
                    part += load(row + rows.start_q[along.position]);
                    if (--left == 0) {
                        total += part;
                        part = Vector{};
                        left = most;
                    }
                }
            }
            total += part;
            const Int count = std::min(LANES, h.out - i);
            store(total_n, total, count, room);
            total_n += count;
            room -= count;
        }
    });
}

// Each element of `g` added to each element of its window.
template <typename T>
__global__ void spread(const T* g, T* dx, long long images, long long channels, long long step_n, long long step_c,
                       long long step_y, long long step_x, const Axis* axis_d) {
    const Axis v = axis_d[0], h = axis_d[1];
    const std::vector<Tap> down_p = taps_along(v), along_q = taps_along(h);
    each_row(g, images, channels, step_n, step_c, 1, [&](const T* plane, Int) {
        std::memset(dx, 0, sizeof(T) * v.size * h.size);
        for (const Tap& down : down_p)
            for (const Tap& along : along_q)
                for (Int y = down.first; y < down.end; ++y) {
                    const T* row = plane + y * step_y + along.first * step_x;
                    T* target = dx + (y * v.stride + down.offset) * h.size + along.offset + along.first * h.stride;
                    LUCID_WITH_STEP(h.stride, add_row, target, h.stride, row, step_x, along.end - along.first);
                }
        dx += v.size * h.size;
    });
}

}  // namespace lucid
