// Running sums, products and extremes of lines that are dense, and sums at indices, one element after the other in the
// order of NumPy's path. `step` is 1, or -1 from the ends of lines on.

#include "cpu.h"

namespace lucid {

// ROWS_AT_ONCE of lucid/ops/base/rows.py: groups, groups of groups and so on have so many terms, added one by one.
constexpr int GROUP = 32, MOST_LEVELS = 13, AT_ONCE = 4;

// The sums of the groups of one level, and what lies before the present one.
template <class T> struct Level {
    T sum, before;
    int count;
    bool first;
};
template <class T> static void clear(Level<T>* level_l) {
    for (int l = 0; l < MOST_LEVELS; ++l) level_l[l] = {T(0), T(0), 0, true};
}
// The sum of all terms of a level up to this one.
template <class T> static T pushed(Level<T>* level, T term) {
    level->sum = level->count ? level->sum + term : term;
    const T total = level->first ? level->sum : level->sum + level->before;
    if (++level->count == GROUP) {
        level->before = pushed(level + 1, level->sum);
        level->first = false;
        level->count = 0;
    }
    return total;
}

template <typename T>
__global__ void running_sums(T* __restrict__ out_n, const T* __restrict__ x_n, long long lines, long long length,
                             long long step) {
    Level<T> level_l[MOST_LEVELS];
    for (long long line = 0; line < lines; ++line, out_n += length, x_n += length) {
        const long long start = step > 0 ? 0 : length - 1, whole = length - length % GROUP;
        clear(level_l);
        T before = T(0);
        bool first = true;
        for (long long n = 0; n < length; n += GROUP * AT_ONCE) {
            const T* x = x_n + start + n * step;
            T* out = out_n + start + n * step;
            T sum_g[AT_ONCE];
            if (n + GROUP * AT_ONCE <= length) {
                // several groups at a time, as each addition waits for the one before
                for (int g = 0; g < AT_ONCE; ++g) sum_g[g] = out[g * GROUP * step] = x[g * GROUP * step];
                for (int i = 1; i < GROUP; ++i)
                    for (int g = 0; g < AT_ONCE; ++g)
                        out[(g * GROUP + i) * step] = sum_g[g] += x[(g * GROUP + i) * step];
            } else
                for (int g = 0; n + g * GROUP < length; ++g)
                    for (int i = 0; i < GROUP && n + g * GROUP + i < length; ++i) {
                        const T value = x[(g * GROUP + i) * step];
                        sum_g[g] = i ? sum_g[g] + value : value;
                        out[(g * GROUP + i) * step] = sum_g[g];
                    }
            for (int g = 0; g < AT_ONCE && n + g * GROUP < length; ++g) {
                const long long rest = length - n - g * GROUP;
                const int count = rest < GROUP ? rest : GROUP;
                T* group = out + g * GROUP * step - (step > 0 ? 0 : count - 1);
                if (!first)
                    for (int i = 0; i < count; ++i) group[i] += before;
                if (n + g * GROUP < whole) before = pushed(level_l, sum_g[g]);
                first = false;
            }
        }
    }
}

// In double, as later factors may bring back what has left the range of float.
template <typename T>
__global__ void running_products(T* __restrict__ out_n, const T* __restrict__ x_n, long long lines, long long length,
                                 long long step) {
    for (long long line = 0; line < lines; ++line, out_n += length, x_n += length) {
        const long long start = step > 0 ? 0 : length - 1;
        double product = length ? (double)x_n[start] : 1.0;
        for (long long n = 0; n < length; ++n) {
            if (n) product *= (double)x_n[start + n * step];
            out_n[start + n * step] = (T)product;
        }
    }
}

template <bool largest, class T>
static void places(long long* __restrict__ out_n, const T* __restrict__ x_n, long long length) {
    T extreme = length ? x_n[0] : T(0);
    long long place = 0;
    for (long long n = 0; n < length; ++n) {
        const T x = x_n[n];
        // a branch, as it is rarely taken, and the next element does not wait for it
        if (__builtin_expect((largest ? x >= extreme : x <= extreme) || x != x, 0)) {
            extreme = x;
            place = n;
        }
        out_n[n] = place;
    }
}
// The index of the extreme so far: the last of equal ones, and of NaN if there is one.
template <typename T>
__global__ void running_places(long long* __restrict__ out_n, const T* __restrict__ x_n, long long lines,
                               long long length, bool largest) {
    for (long long line = 0; line < lines; ++line, out_n += length, x_n += length)
        if (largest)
            places<true>(out_n, x_n, length);
        else
            places<false>(out_n, x_n, length);
}

template <typename T>
__global__ void take(T* __restrict__ out_n, const T* __restrict__ x, const long long* __restrict__ index_n,
                     long long n) {
    for (long long i = 0; i < n; ++i) out_n[i] = x[index_n[i]];
}

// Adds rows to those that begin at `place_r`; their elements lie `within_w` behind, or one after the other without it.
template <typename T>
__global__ void add_rows(T* out, const long long* __restrict__ place_r, const long long* __restrict__ within_w,
                         const T* __restrict__ value_rw, long long rows, long long width) {
    if (width == 1 && !within_w)
        for (long long r = 0; r < rows; ++r) out[place_r[r]] += value_rw[r];
    else
        for (long long r = 0; r < rows; ++r, value_rw += width) {
            T* __restrict__ row = out + place_r[r];
            if (within_w)
                for (long long w = 0; w < width; ++w) row[within_w[w]] += value_rw[w];
            else
                for (long long w = 0; w < width; ++w) row[w] += value_rw[w];
        }
}

}  // namespace lucid
