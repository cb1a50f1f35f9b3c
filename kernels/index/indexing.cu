// Picking elements of a table by index, writing them, adding to them: embedding, gather, take, index_select, x[index],
// scatter, index_copy, index_add and all their gradients. For e, place, offsets see indexing.cuh.
//
//     read_at:   out[e] = table[place]              write_at: table[place] = value[e]
//     add_at:    table[place] += value[e], by atomics: the order of additions, and so the last bits, may change
//     add_sorted, add_carries: the same in a fixed order, for places that are sorted
//     places_of: place[e] = offset of e in the table; several indices are folded into one by their sum
//     keep_last: of several writes to one place, only the last stays
// Types: U only has the size of an element, or is 16 bytes of several; I = int or long long; half types are added up in
// a table of float.
//
// add_sorted: line k names picks order_k of places place_k, ascending, -1 for none; c = column, an element of what is
// picked as a whole. Window w is lines 64 w to 64 w + 63. A place belongs to the window where it begins: this adds its
// first lines to the table; lines that continue an earlier window's place are gathered in carry_wc. add_carries then adds
// these to the window that owns them, in their order.
//
// Launch: one thread an element (a line, a pair of window and column), any one-dimensional grid.

#include "indexing.cuh"

namespace lucid {

constexpr int WINDOW = 64;

template <typename U, typename I>
__global__ void read_at(const U* table, const I* index, U* out_e, Walk walk, Places places, long long count) {
    LUCID_FOR(e, count) {
        const Offsets at = walk(e);
        const long long place = places(index[at.index]);
        out_e[e] = place < 0 ? Bits{0, 0}.as<U>() : table[at.table + place * places.along];
    }
}

// Without an array of values all are `bits`.
template <typename U, typename I>
__global__ void write_at(U* table, const I* index, const U* value, Bits bits, Walk walk, Places places,
                         long long count) {
    LUCID_FOR(e, count) {
        const Offsets at = walk(e);
        const long long place = places(index[at.index]);
        if (place >= 0) table[at.table + place * places.along] = value ? value[at.other] : bits.as<U>();
    }
}

template <typename I>
__global__ void places_of(const I* index, long long* place_e, Walk walk, Places places, int first, long long count) {
    LUCID_FOR(e, count) {
        const Offsets at = walk(e);
        const long long place = places(index[at.index]), before = first ? 0 : place_e[e];
        place_e[e] = place < 0 || before < 0 ? -1 : before + at.table + place * places.along;
    }
}

// ---- sums ----

template <typename R> __device__ __forceinline__ void add(R& to, R value) { to = Sum()(to, value); }

template <typename R> __device__ __forceinline__ void add_atomically(R* to, R value) { atomicAdd(to, value); }
__device__ __forceinline__ void add_atomically(long long* to, long long value) {
    atomicAdd((unsigned long long*)to, (unsigned long long)value);
}

// Uses of place `skipped` do not count; with use_count_i, each of them counts for its share.
template <typename T, typename I>
__global__ void add_at(Real<T>* table, const I* index, const T* value, Bits bits, const long long* use_count_i,
                       long long skipped, Walk walk, Places places, long long count) {
    typedef Real<T> R;
    LUCID_FOR(e, count) {
        const Offsets at = walk(e);
        const long long place = places(index[at.index]);
        if (place < 0 || place == skipped) continue;
        R addend = value ? to_real(value[at.other]) : bits.as<R>();
        if (use_count_i) addend *= (R)1 / (R)use_count_i[place];
        add_atomically(table + at.table + place * places.along, addend);
    }
}

template <typename T>
__global__ void add_sorted(Real<T>* table, const long long* place_k, const long long* order_k, const T* value,
                           Real<T>* carry_wc, const long long* use_count_i, long long skipped, Walk columns,
                           long long column_count, long long value_step, long long along, long long lines) {
    typedef Real<T> R;
    const long long windows = (lines + WINDOW - 1) / WINDOW;
    LUCID_FOR(wc, windows * column_count) {
        const long long w = quotient(wc, column_count), begin = w * WINDOW;
        const long long end = begin + WINDOW < lines ? begin + WINDOW : lines;
        const Offsets at = columns(wc - w * column_count);
        long long here = place_k[begin];
        bool carried = begin && place_k[begin - 1] == here;
        R sum = 0;
        for (long long k = begin; k <= end; ++k) {
            const long long place = k < end ? place_k[k] : -1;
            if (place != here || k == end) {
                if (here >= 0 && here != skipped) {
                    if (use_count_i) sum = sum * ((R)1 / (R)use_count_i[here]);
                    if (carried)
                        carry_wc[wc] = sum;
                    else
                        add(table[at.table + here * along], sum);
                }
                here = place;
                carried = false;
                sum = 0;
            }
            if (k < end && place >= 0) add(sum, to_real(value[order_k[k] * value_step + at.other]));
        }
    }
}

template <typename T>
__global__ void add_carries(Real<T>* table, const long long* place_k, const Real<T>* carry_wc, long long skipped,
                            Walk columns, long long column_count, long long along, long long lines) {
    const long long windows = (lines + WINDOW - 1) / WINDOW;
    LUCID_FOR(wc, windows * column_count) {
        const long long w = quotient(wc, column_count), begin = w * WINDOW, next = begin + WINDOW;
        if (next >= lines) continue;
        const long long here = place_k[next - 1];
        const bool owned = begin == 0 || place_k[begin - 1] != here;
        if (here < 0 || here == skipped || !owned || place_k[next] != here) continue;
        // places are sorted: the first window that begins with another one
        long long first = w + 2, last = windows;
        while (first < last) {
            const long long middle = (first + last) / 2;
            if (place_k[middle * WINDOW] == here)
                first = middle + 1;
            else
                last = middle;
        }
        const Real<T> sum = gathered(Adding<Real<T>>(), w + 1, last, 1, [&](Real<T>& part, long long v) {
            add(part, carry_wc[wc + (v - w) * column_count]);
        });
        add(table[columns(wc - w * column_count).table + here * along], sum);
    }
}

template <typename I>
__global__ void keep_last(const long long* place_k, const I* order_k, long long* place_e, long long lines) {
    LUCID_FOR(k, lines) if (k + 1 < lines && place_k[k] == place_k[k + 1]) place_e[order_k[k]] = -1;
}

}  // namespace lucid
