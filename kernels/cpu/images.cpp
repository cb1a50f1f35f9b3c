// Pooling, and columns of windows, on the CPU: bit for bit what lucid/ops/layers and lucid/ops/pooling make by NumPy.
//
// Positions of a window are taken in their order, each for all windows of a row. `axis_d` are the windows along rows and
// columns; steps are in elements.

#include <vector>

#include "windows.h"

namespace lucid {

// An integer as wide as a number, so that both fill vectors alike.
template <typename T> struct WideOf {
    typedef int type;
};
template <> struct WideOf<double> {
    typedef long long type;
};

// Calls row(values, y) for each row of windows of each plane, in order.
template <typename T, typename Row>
static void each_row(const T* x, Int images, Int channels, Int step_n, Int step_c, Int rows, Row row) {
    for (Int n = 0; n < images; ++n)
        for (Int c = 0; c < channels; ++c)
            for (Int y = 0; y < rows; ++y) row(x + n * step_n + c * step_c, y);
}

// The largest element of each window and the number of its first position; of windows with a NaN that of the last one.
template <typename T, typename N>
__global__ void max_pool(const T* x, T* value_n, N* which_n, long long images, long long channels, long long step_n,
                         long long step_c, long long step_y, long long step_x, const Axis* axis_d) {
    typedef typename WideOf<T>::type Wide;
    const Axis v = axis_d[0], h = axis_d[1];
    std::vector<T> best_x(h.out);
    std::vector<Wide> number_x(h.out), first_x(h.out);
    for (Int i = 0; i < h.out; ++i) first_x[i] = (Wide)h.first_position(i);
    each_row(x, images, channels, step_n, step_c, v.out, [&](const T* plane, Int y) {
        T* __restrict__ best = best_x.data();
        Wide* __restrict__ number = number_x.data();
        const Int begin = y * v.stride - v.before, first = v.first_position(y);
        for (Int i = 0; i < h.out; ++i) {
            best[i] = (T)-INFINITY;
            number[i] = (Wide)(first * h.kernel) + first_x[i];
        }
        for (Int p = first; p < v.kernel; ++p) {
            const Int above = begin + p * v.dilation;
            if (above >= v.size) break;
            for (Int q = 0; q < h.kernel; ++q) {
                const Int offset = h.offset(q), from = h.first(offset), to = h.end(offset);
                const T* __restrict__ row = plane + above * step_y + offset * step_x;
                const Wide tap = (Wide)(p * h.kernel + q);
                with_step(h.stride * step_x, [&](auto at) {
                    for (Int i = from; i < to; ++i) {
                        const T value = row[at(i)], old = best[i];
                        const bool taken = (value > old) | (value != value);
                        best[i] = taken ? value : old;
                        number[i] = taken ? tap : number[i];
                    }
                });
            }
        }
        for (Int i = 0; i < h.out; ++i) value_n[i] = best[i];
        for (Int i = 0; i < h.out; ++i) which_n[i] = (N)number[i];
        value_n += h.out;
        which_n += h.out;
    });
}

// Calls visit(window, element) with the offsets in their planes of each window of a plane, in the order of ranges, and of
// the element at the position that `which_n` names, if it is one.
template <typename N> struct Chosen {
    const Axis v, h;
    const Int step_y, step_x;
    std::vector<Int> down_k, along_k;

    Chosen(const Axis* axis_d, Int step_y, Int step_x) : v(axis_d[0]), h(axis_d[1]), step_y(step_y), step_x(step_x) {
        for (Int p = 0; p < v.kernel; ++p)
            for (Int q = 0; q < h.kernel; ++q) {
                down_k.push_back(v.offset(p));
                along_k.push_back(h.offset(q));
            }
    }
    template <typename Visit> void operator()(const N* which_n, Int window, Int y, Int x, Visit visit) const {
        const Int number = (Int)which_n[window];
        if (number >= (Int)down_k.size()) return;
        const Int row = y * v.stride + down_k[number], column = x * h.stride + along_k[number];
        if ((unsigned long long)row < (unsigned long long)v.size && (unsigned long long)column < (unsigned long long)h.size)
            visit(row * step_y + column * step_x);
    }
};

// Each element of `g` added at the position that `which_n` names. Windows are taken from the last to the first, so that
// to each element the positions are added in their order.
template <typename T, typename N>
__global__ void max_pool_grad(const T* g, const N* which_n, T* dx, long long images, long long channels,
                              long long step_n, long long step_c, long long step_y, long long step_x,
                              const Axis* axis_d) {
    const Axis v = axis_d[0], h = axis_d[1];
    const Chosen<N> chosen(axis_d, h.size, 1);
    for (Int n = 0; n < images; ++n)
        for (Int c = 0; c < channels; ++c) {
            const T* plane = g + n * step_n + c * step_c;
            std::memset(dx, 0, sizeof(T) * v.size * h.size);
            for (Int y = v.out - 1; y >= 0; --y)
                for (Int x = h.out - 1; x >= 0; --x)
                    chosen(which_n, y * h.out + x, y, x, [&](Int at) { dx[at] += plane[y * step_y + x * step_x]; });
            dx += v.size * h.size;
            which_n += v.out * h.out;
        }
}

// For each window the element at the position that `which_n` names.
template <typename T, typename N>
__global__ void max_pool_select(const T* x, const N* which_n, T* value_n, long long images, long long channels,
                                long long step_n, long long step_c, long long step_y, long long step_x,
                                const Axis* axis_d) {
    const Axis h = axis_d[1];
    const Chosen<N> chosen(axis_d, step_y, step_x);
    each_row(x, images, channels, step_n, step_c, axis_d[0].out, [&](const T* plane, Int y) {
        for (Int i = 0; i < h.out; ++i) {
            value_n[i] = 0;
            chosen(which_n, i, y, i, [&](Int at) { value_n[i] = plane[at]; });
        }
        value_n += h.out;
        which_n += h.out;
    });
}

// The sum of each window; of windows of more than `most` positions in groups of as many.
template <typename T>
__global__ void sum_pool(const T* x, T* total_n, long long images, long long channels, long long step_n,
                         long long step_c, long long step_y, long long step_x, const Axis* axis_d, long long most) {
    const Axis v = axis_d[0], h = axis_d[1];
    const bool large = v.kernel * h.kernel > most;
    std::vector<T> part_x(large ? h.out : 0);
    // positions without an element in any window are in no group
    std::vector<Int> down_p, along_q;
    for (Int p = 0; p < v.kernel; ++p)
        if (v.first(v.offset(p)) < v.end(v.offset(p))) down_p.push_back(v.offset(p));
    for (Int q = 0; q < h.kernel; ++q)
        if (h.first(h.offset(q)) < h.end(h.offset(q))) along_q.push_back(h.offset(q));
    each_row(x, images, channels, step_n, step_c, v.out, [&](const T* plane, Int y) {
        T* __restrict__ sum = large ? part_x.data() : total_n;
        const auto flush = [&] {
            for (Int i = 0; i < h.out; ++i) total_n[i] += sum[i];
            for (Int i = 0; i < h.out; ++i) sum[i] = 0;
        };
        for (Int i = 0; i < h.out; ++i) total_n[i] = sum[i] = 0;
        Int taken = 0;
        for (const Int down : down_p) {
            const Int above = y * v.stride + down;
            const bool inside = above >= 0 && above < v.size;
            for (const Int offset : along_q) {
                if (large && taken && taken % most == 0) flush();
                ++taken;
                if (!inside) continue;
                const T* __restrict__ row = plane + above * step_y + offset * step_x;
                const Int from = h.first(offset), to = h.end(offset);
                with_step(h.stride * step_x, [&](auto at) {
                    for (Int i = from; i < to; ++i) sum[i] += row[at(i)];
                });
            }
        }
        if (large) flush();
        total_n += h.out;
    });
}

// Each element of `g`, which may differ between positions of its window, added to the elements of the window.
template <typename T>
__global__ void spread(const T* g, T* dx, long long images, long long channels, long long step_n, long long step_c,
                       long long step_k, long long step_y, long long step_x, const Axis* axis_d) {
    const Axis v = axis_d[0], h = axis_d[1];
    each_row(g, images, channels, step_n, step_c, 1, [&](const T* plane, Int) {
        std::memset(dx, 0, sizeof(T) * v.size * h.size);
        for (Int p = 0; p < v.kernel; ++p)
            for (Int q = 0; q < h.kernel; ++q) {
                const Int down = v.offset(p), offset = h.offset(q), from = h.first(offset), to = h.end(offset);
                const T* tap = plane + (p * h.kernel + q) * step_k;
                for (Int y = v.first(down); y < v.end(down); ++y) {
                    const T* __restrict__ row = tap + y * step_y;
                    T* __restrict__ target = dx + (y * v.stride + down) * h.size + offset;
                    with_step(step_x, [&](auto at) {
                        with_step(h.stride, [&](auto to_at) {
                            for (Int i = from; i < to; ++i) target[to_at(i)] += row[at(i)];
                        });
                    });
                }
            }
        dx += v.size * h.size;
    });
}

// The columns of windows, (products, channels, positions, images, windows), with zeros of the padding.
template <typename T>
__global__ void im2col(const T* x, T* column_n, long long products, long long images, long long channels, long long step_n,
                       long long step_c, long long step_y, long long step_x, const Axis* axis_d) {
    const Axis v = axis_d[0], h = axis_d[1];
    for (Int block = 0; block < products; ++block, x += images * step_n)
        for (Int c = 0; c < channels; ++c)
            for (Int p = 0; p < v.kernel; ++p)
                for (Int q = 0; q < h.kernel; ++q) {
                    const Int down = v.offset(p), top = v.first(down), bottom = v.end(down);
                    const Int offset = h.offset(q), left = h.first(offset), right = h.end(offset);
                    const Int from = left < h.out ? left : h.out, to = right > from ? right : from;
                    for (Int n = 0; n < images; ++n)
                        for (Int y = 0; y < v.out; ++y, column_n += h.out) {
                            T* __restrict__ target = column_n;
                            if (y < top || y >= bottom) {
                                for (Int i = 0; i < h.out; ++i) target[i] = 0;
                                continue;
                            }
                            const T* __restrict__ row =
                                x + n * step_n + c * step_c + (y * v.stride + down) * step_y + offset * step_x;
                            for (Int i = 0; i < from; ++i) target[i] = 0;
                            with_step(h.stride * step_x, [&](auto at) {
                                for (Int i = from; i < to; ++i) target[i] = row[at(i)];
                            });
                            for (Int i = to; i < h.out; ++i) target[i] = 0;
                        }
                }
}

}  // namespace lucid
