// Copies that would otherwise take several passes: joining, padding, windows in zeros, elements at a mask.
//
//     join:       out_ol = the parts side by side: part p is length_p elements from start_p on; a missing part is zeros
//     frame:      out_e = x at (coordinate_d - start_d) / step_d where these are whole and exist, fill elsewhere
//     roll:       out_e = x at coordinate_d - start_d, counted around the dimension
//     triangle:   out_mrc = x_mrc where c - r <= diagonal (lower) or >= diagonal (upper), zero elsewhere
//     transpose:  out_brc = x_bcr, for strides of b, c and r in both; r is the innermost of x and c that of out
//     unfold_grad: out_oqi = sum over windows w of grad_owik with w * step + k = q
//     pad_edges:  out_oqi = x at the place that q - before means behind an edge (mirrored, repeated, or the edge itself)
//     pad_edges_grad: the sum of grad over all q that mean a place
//     masked_scatter: out_e = value[rank_e - 1] where mask_e and there are as many values, x_e or zero elsewhere;
//                 rank_e is how often the mask holds up to and with e
//
// Axes: o = outer, l = element of an outer, q = place of a dimension, i = inner, d = dimension, p = part, m = matrix,
// r = row, c = column, k = place in a window.
// U only has the size of an element, or is 16 bytes of several. Outputs are contiguous, and so is what has no strides.
// Launch: one thread an element, any grid; join: blockIdx.y = p; transpose: 32 x 8 threads for a tile of 32 x 32, any
// number of blocks.

#include "indexing.cuh"

namespace lucid {

constexpr int MAX_PARTS = 8;

// ---- joining ----

template <typename U> struct Parts {
    const U* part_p[MAX_PARTS];
    long long start_p[MAX_PARTS], length_p[MAX_PARTS];
};

template <typename U> __global__ void join(U* out_ol, Parts<U> parts, long long outer, long long total) {
    const int p = blockIdx.y;
    const U* part = parts.part_p[p];
    const long long start = parts.start_p[p], length = parts.length_p[p];
    LUCID_FOR(i, outer * length) {
        const long long o = quotient(i, length);
        out_ol[o * total + start + i - o * length] = part ? part[i] : U();
    }
}

// ---- windows ----

struct Frame {
    long long count;  // of dimensions
    long long size_d[MAX_DIMS], start_d[MAX_DIMS], step_d[MAX_DIMS], have_d[MAX_DIMS], stride_d[MAX_DIMS];
};

template <typename U> __global__ void frame(const U* x, U* out_e, Frame frame, Bits fill, long long count) {
    LUCID_FOR(e, count) {
        long long rest = e, offset = 0;
        bool inside = true;
#pragma unroll 1
        for (int d = (int)frame.count - 1; d >= 0 && inside; --d) {
            const long long before = d ? quotient(rest, frame.size_d[d]) : 0, step = frame.step_d[d];
            const long long along = rest - before * frame.size_d[d] - frame.start_d[d];
            const long long place = step == 1 || along < 0 ? along : quotient(along, step);
            inside = along >= 0 && place * step == along && place < frame.have_d[d];
            offset += place * frame.stride_d[d];
            rest = before;
        }
        out_e[e] = inside ? x[offset] : fill.as<U>();
    }
}

template <typename U> __global__ void roll(const U* x, U* out_e, Frame frame, long long count) {
    LUCID_FOR(e, count) {
        long long rest = e, offset = 0;
#pragma unroll 1
        for (int d = (int)frame.count - 1; d >= 0; --d) {
            const long long before = d ? quotient(rest, frame.size_d[d]) : 0;
            const long long place = rest - before * frame.size_d[d] - frame.start_d[d];
            offset += (place < 0 ? place + frame.size_d[d] : place) * frame.stride_d[d];
            rest = before;
        }
        out_e[e] = x[offset];
    }
}

template <typename U>
__global__ void triangle(const U* x_mrc, U* out_mrc, long long rows, long long columns, long long diagonal, int lower,
                         long long count) {
    LUCID_FOR(e, count) {
        const long long mr = quotient(e, columns), r = mr - quotient(mr, rows) * rows, c = e - mr * columns;
        out_mrc[e] = (lower ? c - r <= diagonal : c - r >= diagonal) ? x_mrc[e] : U();
    }
}

// ---- transposition ----

// A tile is read along r and written along c, both side by side; the odd row length keeps its columns in other banks.
template <typename U>
__global__ void transpose(const U* x_bcr, U* out_brc, long long batch, long long rows, long long columns, long long x_b,
                          long long x_c, long long out_b, long long out_r) {
    constexpr int TILE = 32;
    __shared__ U tile_cr[TILE][TILE + 1];
    const long long down = (rows + TILE - 1) / TILE, across = (columns + TILE - 1) / TILE;
    const int lane = (int)threadIdx.x;
    for (long long t = blockIdx.x; t < batch * down * across; t += gridDim.x) {
        const long long bd = quotient(t, across), b = quotient(bd, down);
        const long long first_c = (t - bd * across) * TILE, first_r = (bd - b * down) * TILE;
        for (int k = (int)threadIdx.y; k < TILE; k += (int)blockDim.y)
            if (first_c + k < columns && first_r + lane < rows)
                tile_cr[k][lane] = x_bcr[b * x_b + (first_c + k) * x_c + first_r + lane];
        __syncthreads();
        for (int k = (int)threadIdx.y; k < TILE; k += (int)blockDim.y)
            if (first_r + k < rows && first_c + lane < columns)
                out_brc[b * out_b + (first_r + k) * out_r + first_c + lane] = tile_cr[lane][k];
        __syncthreads();
    }
}

template <typename T>
__global__ void unfold_grad(const T* grad_owik, T* out_oqi, long long outer, long long size, long long inner,
                            long long windows, long long window, long long step) {
    LUCID_FOR(e, outer * size * inner) {
        const long long oq = quotient(e, inner), o = quotient(oq, size), q = oq - o * size, i = e - oq * inner;
        const long long last = quotient(q, step);
        Real<T> sum = 0;
        for (long long w = last < windows ? last : windows - 1; w >= 0 && q - w * step < window; --w)
            sum += to_real(grad_owik[((o * windows + w) * inner + i) * window + q - w * step]);
        out_oqi[e] = from_real<T>(sum);
    }
}

// ---- edges ----

enum Edge { REFLECT, CIRCULAR, REPLICATE };

template <typename U>
__global__ void pad_edges(const U* x, U* out, long long outer, long long size, long long inner, long long before,
                          long long after, int edge) {
    const long long padded = before + size + after;
    LUCID_FOR(e, outer * padded * inner) {
        const long long oq = quotient(e, inner), o = quotient(oq, padded);
        long long q = oq - o * padded - before;
        if (edge == REFLECT)
            q = q < 0 ? -q : q >= size ? 2 * (size - 1) - q : q;
        else if (edge == CIRCULAR)
            q = q < 0 ? q + size : q >= size ? q - size : q;
        else
            q = q < 0 ? 0 : q >= size ? size - 1 : q;
        out[e] = x[(o * size + q) * inner + e - oq * inner];
    }
}

template <typename T>
__global__ void pad_edges_grad(const T* grad, T* out, long long outer, long long size, long long inner,
                               long long before, long long after, int edge) {
    const long long padded = before + size + after;
    LUCID_FOR(e, outer * size * inner) {
        const long long oq = quotient(e, inner), o = quotient(oq, size), q = oq - o * size;
        const T* grad_q = grad + o * padded * inner + e - oq * inner;
        Real<T> sum = to_real(grad_q[(before + q) * inner]);
        if (edge == REFLECT) {
            if (q >= 1 && q <= before) sum += to_real(grad_q[(before - q) * inner]);
            if (q <= size - 2 && size - 1 - q <= after) sum += to_real(grad_q[(before + 2 * (size - 1) - q) * inner]);
        } else if (edge == CIRCULAR) {
            if (q >= size - before) sum += to_real(grad_q[(before + q - size) * inner]);
            if (q < after) sum += to_real(grad_q[(before + q + size) * inner]);
        } else {
            if (q == 0)
                for (long long k = 0; k < before; ++k) sum += to_real(grad_q[k * inner]);
            if (q == size - 1)
                for (long long k = before + size; k < padded; ++k) sum += to_real(grad_q[k * inner]);
        }
        out[e] = from_real<T>(sum);
    }
}

// ---- masks ----

template <typename U>
__global__ void masked_scatter(const U* x, const bool* mask_e, const long long* rank_e, const U* value, U* out_e,
                               long long values, long long count) {
    LUCID_FOR(e, count)
    out_e[e] = mask_e[e] && rank_e[e] <= values ? value[rank_e[e] - 1] : x ? x[e] : U();
}

}  // namespace lucid
