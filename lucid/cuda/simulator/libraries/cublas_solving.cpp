// Of the simulated cuBLAS: triangular systems, symmetric products, and stacks of small systems by elimination.
#include "libraries/calls.h"
#include "libraries/elimination.h"
#include "libraries/product.h"

namespace lucid_simulator {
namespace {

template <class T> Matrix<T> square(T* data, int n, int line) { return {data, n, n, line}; }

// B = alpha op(A)^-1 B, or alpha B op(A)^-1, of a triangular A
template <class T> struct Triangular {
    int side, fill, operation, diagonal;
    Matrix<const T> a;
    Matrix<T> b;

    void check(Call& call) const {
        call.expect(side == at_left || side == at_right).expect(fill == lower || fill == upper);
        call.expect(diagonal == 0 || diagonal == 1).expect_operation(operation).expect(a).expect(b);
    }

    void solve(const Matrix<const T>& a, const Matrix<T>& b, T alpha) const {
        assign(b, [&](int i, int j) { return alpha == T(0) ? T(0) : alpha * b(i, j); });
        if (alpha == T(0)) return;
        // x op(A) = b is op(A)^T x^T = b^T
        Operand<T> factors(a, operation);
        if (side == at_right) std::swap(factors.down, factors.along);
        const bool from_top = (fill == lower) == ((operation == plain) == (side == at_left));
        if (side == at_left)
            for (int j = 0; j < b.columns; ++j)
                substitute(b.rows, factors, from_top, diagonal, [&](int i) -> T& { return b(i, j); });
        else
            for (int i = 0; i < b.rows; ++i)
                substitute(b.columns, factors, from_top, diagonal, [&](int j) -> T& { return b(i, j); });
    }
};

template <class T> int trsm(Call call, Triangular<T> system, const T* alpha_at) {
    system.check(call);
    const Factor<T> alpha = call.factor(alpha_at);
    if (call.answer() || !system.b.rows || !system.b.columns) return call.answer();
    if (!alpha.surely(0)) call.triangle(system.a, system.fill, false, system.diagonal);
    call.writes(system.b);
    return call.run([=] { system.solve(system.a, system.b, alpha.get()); });
}

template <class T>
int trsm_each(Call call, Triangular<T> system, const T* alpha_at, const T* const* a, T* const* b, int count) {
    system.check(call.expect(count >= 0));
    const Factor<T> alpha = call.factor(alpha_at);
    if (call.answer() || !system.b.rows || !system.b.columns || !count) return call.answer();
    call.reads(Vector{a, count}).reads(Vector{b, count});
    return call.run([=] {
        const T factor = alpha.get();
        for (int i = 0; i < count; ++i) {
            Matrix<const T> left = system.a;
            Matrix<T> right = system.b;
            left.data = a[i], right.data = b[i];
            Ranges found;
            if (!(factor == T(0))) found.triangle(left, system.fill, false, system.diagonal);
            if (!touch(found.writes(right))) return;
            system.solve(left, right, factor);
        }
    });
}

// C = alpha op(A) op(A)^T + beta C, one triangle of it
template <class T>
int syrk(Call call, int fill, int operation, int k, const T* alpha_at, Matrix<const T> a, const T* beta_at,
         Matrix<T> c) {
    const int n = c.rows;
    call.expect(fill == lower || fill == upper).expect_operation(operation).expect(a).expect(c);
    call.expect(operation != adjoint || !is_complex<T>);
    const Factor<T> alpha = call.factor(alpha_at), beta = call.factor(beta_at);
    if (call.answer() || !n) return call.answer();
    if (k && !alpha.surely(0)) call.reads(a);
    call.triangle(c, fill, true);
    return call.run([=] {
        const T first = alpha.get(), second = beta.get();
        const int terms = first == T(0) ? 0 : k;
        const Operand<T> left(a, operation);
        auto store = [&](int i, int j, T sum) {
            if (fill == lower ? i < j : i > j) return;
            const T value = terms ? first * sum : T(0);
            c(i, j) = second == T(0) ? value : value + second * c(i, j);
        };
        product<T>(n, n, terms, left, [&](int p, int j) { return left(j, p); }, store);
    });
}

template <class T> int getrf(Call call, int n, T* const* a, int lda, int* pivots, int* info, int count) {
    call.expect(square<T>(nullptr, n, lda)).expect(count >= 0);
    if (call.answer() || !n || !count) return call.answer();
    call.reads(Vector{a, count}).writes(Vector{info, count});
    if (pivots) call.writes(Matrix{pivots, n, count, n});
    return call.run([=] {
        for (int i = 0; i < count; ++i) {
            const Matrix<T> matrix = square(a[i], n, lda);
            if (!touch(Ranges().writes(matrix))) return;
            info[i] = factorise(matrix, pivots ? pivots + (ptrdiff_t)i * n : nullptr);
        }
    });
}

template <class T>
int getrs(Call call, int operation, int n, int columns, const T* const* a, int lda, const int* pivots, T* const* b,
          int ldb, int* info, int count) {
    call.expect(info);
    if (call.answer()) return call.answer();
    // The place of the first parameter that is wrong, as cuBLAS and LAPACK count them.
    *info = operation < plain || operation > adjoint ? -1
            : n < 0                                  ? -2
            : columns < 0                            ? -3
            : lda < std::max(1, n)                   ? -5
            : ldb < std::max(1, n)                   ? -8
            : count < 0                              ? -10
                                                     : 0;
    call.expect(!*info);
    if (call.answer() || !n || !columns || !count) return call.answer();
    call.reads(Vector{a, count}).reads(Vector{b, count});
    if (pivots) call.reads(Matrix{pivots, n, count, n});
    return call.run([=] {
        for (int i = 0; i < count; ++i) {
            const Matrix<const T> matrix = square(a[i], n, lda);
            const Matrix<T> right{b[i], n, columns, ldb};
            const int* own = pivots ? pivots + (ptrdiff_t)i * n : nullptr;
            if (!touch(Ranges().reads(matrix).writes(right))) return;
            for (int j = 0; are_rows(own, n) && j < columns; ++j)
                solve_factorised(matrix, own, operation, [&](int r) -> T& { return right(r, j); });
        }
    });
}

template <class T>
int getri(Call call, int n, const T* const* a, int lda, const int* pivots, T* const* c, int ldc, int* info, int count) {
    call.expect(square<T>(nullptr, n, lda)).expect(square<T>(nullptr, n, ldc)).expect(count >= 0);
    if (call.answer() || !n || !count) return call.answer();
    call.reads(Vector{a, count}).reads(Vector{c, count}).writes(Vector{info, count});
    if (pivots) call.reads(Matrix{pivots, n, count, n});
    return call.run([=] {
        for (int i = 0; i < count; ++i) {
            const Matrix<const T> matrix = square(a[i], n, lda);
            const Matrix<T> inverse = square(c[i], n, ldc);
            const int* own = pivots ? pivots + (ptrdiff_t)i * n : nullptr;
            if (!touch(Ranges().reads(matrix).writes(inverse))) return;
            info[i] = 0;
            for (int k = n; k > 0; --k)
                if (matrix(k - 1, k - 1) == T(0)) info[i] = k;
            for (int j = 0; !info[i] && are_rows(own, n) && j < n; ++j) {
                for (int r = 0; r < n; ++r) inverse(r, j) = T(r == j);
                solve_factorised(matrix, own, plain, [&](int r) -> T& { return inverse(r, j); });
            }
        }
    });
}

// One triangle of a matrix, from its columns without gaps or to them.
template <class T> int pack(Call call, int fill, T* packed, Matrix<T> matrix, bool packs) {
    const int n = matrix.rows;
    call.expect(fill == lower || fill == upper).expect(matrix);
    if (call.answer() || !n) return call.answer();
    const Vector all{packed, (ptrdiff_t)n * (n + 1) / 2};
    (packs ? call.writes(all) : call.reads(all)).triangle(matrix, fill, !packs);
    return call.run([=] {
        T* next = packed;
        for (int j = 0; j < n; ++j)
            for (int i = fill == lower ? j : 0; i < (fill == lower ? n : j + 1); ++i, ++next)
                packs ? * next = matrix(i, j) : matrix(i, j) = *next;
    });
}

}  // namespace
}  // namespace lucid_simulator

using namespace lucid_simulator;

#define DEFINE(X, T)                                                                                                  \
    LUCID_CUDA int cublas##X##trsm_v2(Handle* handle, int side, int fill, int trans, int diagonal, int m, int n,      \
                                      const T* alpha, const T* a, int lda, T* b, int ldb) {                           \
        return trsm({"cublas" #X "trsm", handle},                                                                     \
                    {side, fill, trans, diagonal, square(a, side == at_left ? m : n, lda), {b, m, n, ldb}}, alpha);   \
    }                                                                                                                 \
    LUCID_CUDA int cublas##X##trsmBatched(Handle* handle, int side, int fill, int trans, int diagonal, int m, int n,  \
                                          const T* alpha, const T* const* a, int lda, T* const* b, int ldb,           \
                                          int count) {                                                                \
        return trsm_each({"cublas" #X "trsmBatched", handle},                                                         \
                         {side,                                                                                       \
                          fill,                                                                                       \
                          trans,                                                                                      \
                          diagonal,                                                                                   \
                          square<const T>(nullptr, side == at_left ? m : n, lda),                                     \
                          {nullptr, m, n, ldb}},                                                                      \
                         alpha, a, b, count);                                                                         \
    }                                                                                                                 \
    LUCID_CUDA int cublas##X##syrk_v2(Handle* handle, int fill, int trans, int n, int k, const T* alpha, const T* a,  \
                                      int lda, const T* beta, T* c, int ldc) {                                        \
        return syrk({"cublas" #X "syrk", handle}, fill, trans, k, alpha, stored(a, trans, n, k, lda), beta,           \
                    square(c, n, ldc));                                                                               \
    }                                                                                                                 \
    LUCID_CUDA int cublas##X##getrfBatched(Handle* handle, int n, T* const* a, int lda, int* pivots, int* info,       \
                                           int count) {                                                               \
        return getrf({"cublas" #X "getrfBatched", handle}, n, a, lda, pivots, info, count);                           \
    }                                                                                                                 \
    LUCID_CUDA int cublas##X##getrsBatched(Handle* handle, int trans, int n, int columns, const T* const* a, int lda, \
                                           const int* pivots, T* const* b, int ldb, int* info, int count) {           \
        return getrs({"cublas" #X "getrsBatched", handle}, trans, n, columns, a, lda, pivots, b, ldb, info, count);   \
    }                                                                                                                 \
    LUCID_CUDA int cublas##X##getriBatched(Handle* handle, int n, const T* const* a, int lda, const int* pivots,      \
                                           T* const* c, int ldc, int* info, int count) {                              \
        return getri({"cublas" #X "getriBatched", handle}, n, a, lda, pivots, c, ldc, info, count);                   \
    }
LUCID_ALL_TYPES(DEFINE)
#undef DEFINE

#define DEFINE(X, T)                                                                                   \
    LUCID_CUDA int cublas##X##tpttr(Handle* handle, int fill, int n, const T* packed, T* a, int lda) { \
        return pack({"cublas" #X "tpttr", handle}, fill, (T*)packed, square(a, n, lda), false);        \
    }                                                                                                  \
    LUCID_CUDA int cublas##X##trttp(Handle* handle, int fill, int n, const T* a, int lda, T* packed) { \
        return pack({"cublas" #X "trttp", handle}, fill, packed, square((T*)a, n, lda), true);         \
    }
LUCID_REAL_TYPES(DEFINE)
#undef DEFINE
