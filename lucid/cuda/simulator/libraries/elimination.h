// Elimination with exchanges of rows, and systems of triangles.
#pragma once

#include <algorithm>

#include "libraries/calls.h"

namespace lucid_simulator {

// Solves op(A) x = x in place; with_ones: the diagonal is taken as ones and not read. By columns of op(A).
template <class T, class X> void substitute(int n, const Operand<T>& a, bool from_top, bool with_ones, const X& x) {
    for (int step = 0; step < n; ++step) {
        const int i = from_top ? step : n - 1 - step;
        if (!with_ones) x(i) = x(i) / a(i, i);
        const T known = x(i);
        for (int r = from_top ? i + 1 : 0; r < (from_top ? n : i); ++r) x(r) = x(r) - a(r, i) * known;
    }
}

// A = P L U in place, with the rows that were swapped, counted from 1. Gives the first place of U's diagonal, counted
// from 1, that is zero, or 0. Without pivots no rows are swapped.
template <class T> int factorise(const Matrix<T>& a, int* pivots) {
    const int n = a.rows, columns = a.columns;
    int zero_at = 0;
    for (int k = 0; k < std::min(n, columns); ++k) {
        int pivot = k;
        for (int i = k + 1; pivots && i < n; ++i)
            if (magnitude(a(i, k)) > magnitude(a(pivot, k))) pivot = i;
        if (pivots) pivots[k] = pivot + 1;
        if (a(pivot, k) == T(0)) {
            if (!zero_at) zero_at = k + 1;
            continue;
        }
        for (int j = 0; pivot != k && j < columns; ++j) std::swap(a(k, j), a(pivot, j));
        for (int i = k + 1; i < n; ++i) a(i, k) = a(i, k) / a(k, k);
        for (int j = k + 1; j < columns; ++j)
            for (int i = k + 1; i < n; ++i) a(i, j) = a(i, j) - a(i, k) * a(k, j);
    }
    return zero_at;
}

// Solves op(P L U) x = x in place.
template <class T, class X>
void solve_factorised(const Matrix<const T>& a, const int* pivots, int operation, const X& x) {
    const int n = a.rows;
    const Operand<T> factors(a, operation);
    if (operation == plain) {
        for (int i = 0; pivots && i < n; ++i) std::swap(x(i), x(pivots[i] - 1));
        substitute(n, factors, true, true, x);
        substitute(n, factors, false, false, x);
    } else {
        substitute(n, factors, true, false, x);
        substitute(n, factors, false, true, x);
        for (int i = n - 1; pivots && i >= 0; --i) std::swap(x(i), x(pivots[i] - 1));
    }
}

// Whether all rows that were swapped are rows; a pivot that is none is what a caller forgot to compute.
inline bool are_rows(const int* pivots, int n) {
    return !pivots || std::all_of(pivots, pivots + n, [&](int row) { return row >= 1 && row <= n; });
}

}  // namespace lucid_simulator
