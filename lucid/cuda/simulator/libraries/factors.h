// Factors of one matrix: of Cholesky, by reflections, and by Jacobi's rotations.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "libraries/calls.h"

namespace lucid_simulator {

template <class T> T real_part(T x) { return x; }
template <class R> R real_part(Complex<R> x) { return x.real; }
template <class T> T imaginary_part(T) { return 0; }
template <class R> R imaginary_part(Complex<R> x) { return x.imaginary; }
template <class T> Real<T> size_of(T x) { return std::hypot(real_part(x), imaginary_part(x)); }
template <class T> T times(T x, Real<T> factor) { return x * T(factor); }

template <class T> constexpr Real<T> not_a_number = std::numeric_limits<Real<T>>::quiet_NaN();

// One triangle of A = L L^H, or U^H U, in place. Gives the first leading minor that is not positive, or 0.
template <class T> int cholesky(const Matrix<T>& a, int fill) {
    auto at = [&](int i, int j) -> T { return fill == lower ? a(i, j) : conjugate(a(j, i)); };
    auto store = [&](int i, int j, T x) { fill == lower ? a(i, j) = x : a(j, i) = conjugate(x); };
    for (int j = 0; j < a.rows; ++j) {
        for (int i = j; i < a.rows; ++i) {
            T sum = at(i, j);
            for (int k = 0; k < j; ++k) sum = sum - at(i, k) * conjugate(at(j, k));
            if (i == j) {
                if (!(real_part(sum) > 0)) return j + 1;
                store(j, j, T(std::sqrt(real_part(sum))));
            } else {
                store(i, j, times(sum, 1 / real_part(at(j, j))));
            }
        }
    }
    return 0;
}

// Takes from columns, from one on, what factor * v v^H gives of them; v is 1 at row k, and column k of `vectors` below.
template <class T> void reflect(const Matrix<const T>& vectors, int k, T factor, const Matrix<T>& x, int first_column) {
    auto v = [&](int i) { return i == k ? T(1) : vectors(i, k); };
    for (int j = first_column; j < x.columns; ++j) {
        T along = 0;
        for (int i = k; i < x.rows; ++i) along = along + conjugate(v(i)) * x(i, j);
        along = along * factor;
        for (int i = k; i < x.rows; ++i) x(i, j) = x(i, j) - v(i) * along;
    }
}

// R above the diagonal, in place, and below it the vectors of reflections I - tau v v^H, of which Q is the product.
template <class T> void reflections(const Matrix<T>& a, T* tau) {
    const Matrix<const T> vectors{a.data, a.rows, a.columns, a.line};
    for (int k = 0; k < std::min(a.rows, a.columns); ++k) {
        Real<T> rest = 0;
        for (int i = k + 1; i < a.rows; ++i) rest = std::hypot(rest, size_of(a(i, k)));
        const T top = a(k, k);
        tau[k] = 0;
        if (rest == 0 && imaginary_part(top) == 0) continue;
        const Real<T> beta = -std::copysign(std::hypot(size_of(top), rest), real_part(top));
        tau[k] = times(T(beta) - top, 1 / beta);
        for (int i = k + 1; i < a.rows; ++i) a(i, k) = a(i, k) / (top - T(beta));
        a(k, k) = T(beta);
        reflect(vectors, k, conjugate(tau[k]), a, k + 1);
    }
}

// The first columns of the product of `count` reflections, in place of their vectors.
template <class T> void multiply_reflections(const Matrix<T>& a, int count, const T* tau) {
    std::vector<T> kept;
    for (int j = 0; j < count; ++j)
        for (int i = 0; i < a.rows; ++i) kept.push_back(a(i, j));
    for (int j = 0; j < a.columns; ++j)
        for (int i = 0; i < a.rows; ++i) a(i, j) = T(i == j);
    const Matrix<const T> vectors{kept.data(), a.rows, count, a.rows};
    for (int k = count - 1; k >= 0; --k) reflect(vectors, k, tau[k], a, 0);
}

// Turns two columns so that the product of the first's conjugates and the second's elements, `along`, becomes 0, for
// columns of squares `first` and `second`, or so with the elements of a Hermitian matrix.
template <class T> struct Rotation {
    T phase;
    Real<T> cosine, sine;

    Rotation(T along, Real<T> first, Real<T> second) {
        const Real<T> size = size_of(along), zeta = (second - first) / (2 * size);
        const Real<T> tangent = std::copysign(1 / (std::fabs(zeta) + std::hypot(Real<T>(1), zeta)), zeta);
        phase = times(conjugate(along), 1 / size);
        cosine = 1 / std::hypot(Real<T>(1), tangent);
        sine = cosine * tangent;
    }
    void turn(const Matrix<T>& x, int p, int q) const {
        for (int i = 0; i < x.rows; ++i) {
            const T one = x(i, p), other = x(i, q) * phase;
            x(i, p) = times(one, cosine) - times(other, sine);
            x(i, q) = times(one, sine) + times(other, cosine);
        }
    }
    void turn_rows(const Matrix<T>& x, int p, int q) const {
        for (int j = 0; j < x.columns; ++j) {
            const T one = x(p, j), other = x(q, j) * conjugate(phase);
            x(p, j) = times(one, cosine) - times(other, sine);
            x(q, j) = times(one, sine) + times(other, cosine);
        }
    }
};

constexpr int most_sweeps = 60;

template <class T> Matrix<T> identity(std::vector<T>& memory, int n) {
    memory.assign((size_t)n * n, T(0));
    for (int i = 0; i < n; ++i) memory[(size_t)i * n + i] = T(1);
    return {memory.data(), n, n, n};
}

// The eigenvalues of a Hermitian matrix in ascending order, of which one triangle is read; `vectors` gets their
// columns. Gives 0, or what is left if the sweeps do not suffice.
template <class T> int hermitian(const Matrix<T>& a, int fill, Real<T>* values, std::vector<T>& vectors) {
    const int n = a.rows;
    std::vector<T> whole((size_t)n * n), turned;
    const Matrix<T> x{whole.data(), n, n, n}, v = identity(turned, n);
    Real<T> total = 0;
    for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i) {
            const bool read = fill == lower ? i >= j : i <= j;
            x(i, j) = i == j ? T(real_part(a(i, i))) : read ? a(i, j) : conjugate(a(j, i));
            total = std::hypot(total, size_of(x(i, j)));
        }
    const Real<T> limit = total * std::numeric_limits<Real<T>>::epsilon() / std::max(n, 1);
    int left = 1;
    for (int sweep = 0; left && sweep < most_sweeps; ++sweep) {
        left = 0;
        for (int p = 0; p < n; ++p)
            for (int q = p + 1; q < n; ++q) {
                if (size_of(x(p, q)) <= limit) continue;
                ++left;
                const Rotation<T> rotation(x(p, q), real_part(x(p, p)), real_part(x(q, q)));
                rotation.turn(x, p, q);
                rotation.turn_rows(x, p, q);
                rotation.turn(v, p, q);
            }
    }
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int i, int j) { return real_part(x(i, i)) < real_part(x(j, j)); });
    vectors.clear();
    for (int j = 0; j < n; ++j) {
        values[j] = real_part(x(order[j], order[j]));
        for (int i = 0; i < n; ++i) vectors.push_back(v(i, order[j]));
    }
    return std::isfinite(total) ? left : n;
}

// Adds orthonormal columns to the first `count` of a square matrix.
template <class T> void complete(const Matrix<T>& u, int count) {
    for (int j = count, unit = 0; j < u.columns && unit < u.rows; ++unit) {
        for (int i = 0; i < u.rows; ++i) u(i, j) = T(i == unit);
        Real<T> size = 0;
        for (int pass = 0; pass < 2; ++pass) {  // the second takes what rounding left in the first
            for (int k = 0; k < j; ++k) {
                T along = 0;
                for (int i = 0; i < u.rows; ++i) along = along + conjugate(u(i, k)) * u(i, j);
                for (int i = 0; i < u.rows; ++i) u(i, j) = u(i, j) - u(i, k) * along;
            }
            size = 0;
            for (int i = 0; i < u.rows; ++i) size = std::hypot(size, size_of(u(i, j)));
            // nearly within the others: the next unit vector is farther away
            if (size * size * (2 * u.rows) < 1) break;
            for (int i = 0; i < u.rows; ++i) u(i, j) = times(u(i, j), 1 / size);
        }
        if (size * size * (2 * u.rows) >= 1) ++j;
    }
}

template <class T> struct Singular {
    std::vector<T> u, v;  // square, of as many rows as the matrix has rows and columns
    std::vector<Real<T>> values;
    int left = 0;  // what is left if the sweeps do not suffice

    // Of a matrix of at least as many rows as columns, which has the elements at(i, j).
    template <class At> Singular(int rows, int columns, const At& at) : u((size_t)rows * rows), values(columns) {
        std::vector<T> memory((size_t)rows * columns), turned;
        const Matrix<T> x{memory.data(), rows, columns, rows}, w = identity(turned, columns);
        for (int j = 0; j < columns; ++j)
            for (int i = 0; i < rows; ++i) x(i, j) = at(i, j);
        const int scale = scaled(x);
        turn(x, w);
        std::vector<int> order(columns);
        std::iota(order.begin(), order.end(), 0);
        std::vector<Real<T>> sizes(columns);
        for (int j = 0; j < columns; ++j) sizes[j] = length(x, j);
        std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return sizes[i] > sizes[j]; });
        const Matrix<T> out{u.data(), rows, rows, rows};
        int rank = 0;
        for (int j = 0; j < columns; ++j) {
            values[j] = sizes[order[j]];
            for (int i = 0; i < columns; ++i) v.push_back(w(i, order[j]));
            if (j > 0 && values[j] <= values[0] * std::numeric_limits<Real<T>>::epsilon() * rows) continue;
            if (values[j] == 0) continue;
            for (int i = 0; i < rows; ++i) out(i, j) = times(x(i, order[j]), 1 / values[j]);
            rank = j + 1;
        }
        complete(out, rank);
        for (Real<T>& value : values) {
            value = std::ldexp(value, scale);
            if (!std::isfinite(value)) left = columns;
        }
    }

 private:
    // Brings elements near 1 by a power of two, which rounds nothing, so that products of columns stay numbers.
    static int scaled(const Matrix<T>& x) {
        Real<T> largest = 0;
        for (int j = 0; j < x.columns; ++j)
            for (int i = 0; i < x.rows; ++i) largest = std::max(largest, size_of(x(i, j)));
        if (!(largest > 0 && std::isfinite(largest))) return 0;
        const int scale = std::clamp(std::ilogb(largest), -120, 120);
        for (int j = 0; j < x.columns; ++j)
            for (int i = 0; i < x.rows; ++i) x(i, j) = times(x(i, j), std::ldexp(Real<T>(1), -scale));
        return scale;
    }
    static Real<T> length(const Matrix<T>& x, int j) {
        Real<T> size = 0;
        for (int i = 0; i < x.rows; ++i) size = std::hypot(size, size_of(x(i, j)));
        return size;
    }
    // Makes all columns of x orthogonal to each other, and turns those of w likewise.
    void turn(const Matrix<T>& x, const Matrix<T>& w) {
        const Real<T> limit = std::numeric_limits<Real<T>>::epsilon();
        Real<T> total = 0;
        for (int j = 0; j < x.columns; ++j) total = std::hypot(total, length(x, j));
        left = 1;
        for (int sweep = 0; left && sweep < most_sweeps; ++sweep) {
            left = 0;
            for (int p = 0; p < x.columns; ++p)
                for (int q = p + 1; q < x.columns; ++q) {
                    const Real<T> first = length(x, p), second = length(x, q);
                    // what rounding left of a column of zeros has any direction
                    if (std::min(first, second) <= limit * total) continue;
                    T along = 0;
                    for (int i = 0; i < x.rows; ++i) along = along + conjugate(x(i, p)) * x(i, q);
                    if (size_of(along) <= limit * first * second * x.rows) continue;
                    ++left;
                    const Rotation<T> rotation(along, first * first, second * second);
                    rotation.turn(x, p, q);
                    rotation.turn(w, p, q);
                }
        }
    }
};

}  // namespace lucid_simulator
