// Of the simulated cuBLAS: triangular systems, symmetric products, and stacks of small systems by elimination.
#include "libraries/calls.h"
#include "libraries/elimination.h"
#include "libraries/product.h"

namespace lucid_simulator {
namespace {

// B = alpha op(A)^-1 B, or alpha B op(A)^-1, of a triangular A
template <class T> struct Triangular {
    int side, fill, operation;
    bool with_ones;
    Matrix<const T> a;
    Matrix<T> b;

    Triangular(int side, int fill, int operation, int diagonal, int m, int n, const T* a_at, int lda, T* b_at, int ldb)
        : side(side),
          fill(fill),
          operation(operation),
          with_ones(diagonal),
          a{a_at, side == at_left ? m : n, side == at_left ? m : n, lda},
          b{b_at, m, n, ldb} {}

    void check(Call& call) const {
        call.expect(side == at_left || side == at_right).expect(fill == lower || fill == upper);
        call.expect_operation(operation).expect(a).expect(b);
    }

    void solve(const Matrix<const T>& a, const Matrix<T>& b, T alpha) const {
        for (int j = 0; j < b.columns; ++j)
            for (int i = 0; i < b.rows; ++i) b(i, j) = alpha == T(0) ? T(0) : alpha * b(i, j);
        if (alpha == T(0)) return;
        // x op(A) = b is op(A)^T x^T = b^T
        Operand<T> factors(a, operation);
        if (side == at_right) std::swap(factors.down, factors.along);
        const bool from_top = (fill == lower) == ((operation == plain) == (side == at_left));
        if (side == at_left)
            for (int j = 0; j < b.columns; ++j)
                substitute(b.rows, factors, from_top, with_ones, [&](int i) -> T& { return b(i, j); });
        else
            for (int i = 0; i < b.rows; ++i)
                substitute(b.columns, factors, from_top, with_ones, [&](int j) -> T& { return b(i, j); });
    }
};

template <class T>
int trsm(const char* name, Handle* handle, int side, int fill, int operation, int diagonal, int m, int n,
         const T* alpha_at, const T* a, int lda, T* b, int ldb) {
    Call call(name, handle);
    const Triangular<T> system(side, fill, operation, diagonal, m, n, a, lda, b, ldb);
    call.expect(diagonal == 0 || diagonal == 1);
    system.check(call);
    const Factor<T> alpha = call.factor(alpha_at);
    if (call.answer() || !m || !n) return call.answer();
    if (!alpha.surely(0)) call.triangle(system.a, fill, false, system.with_ones);
    call.writes(system.b);
    return call.run([=] { system.solve(system.a, system.b, alpha.get()); });
}

template <class T>
int trsm_each(const char* name, Handle* handle, int side, int fill, int operation, int diagonal, int m, int n,
              const T* alpha_at, const T* const* a, int lda, T* const* b, int ldb, int count) {
    Call call(name, handle);
    const Triangular<T> system(side, fill, operation, diagonal, m, n, nullptr, lda, nullptr, ldb);
    call.expect(diagonal == 0 || diagonal == 1).expect(count >= 0);
    system.check(call);
    const Factor<T> alpha = call.factor(alpha_at);
    if (call.answer() || !m || !n || !count) return call.answer();
    call.reads(Vector<const T* const>{a, count, 1});
    call.reads(Vector<T* const>{b, count, 1});
    return call.run([=] {
        const T factor = alpha.get();
        for (int i = 0; i < count; ++i) {
            Matrix<const T> left = system.a;
            Matrix<T> right = system.b;
            left.data = a[i], right.data = b[i];
            Ranges found;
            if (!(factor == T(0))) found.triangle(left, fill, false, system.with_ones);
            found.writes(right);
            if (!touch(found.list())) return;
            system.solve(left, right, factor);
        }
    });
}

// C = alpha op(A) op(A)^T + beta C, one triangle of it
template <class T>
int syrk(const char* name, Handle* handle, int fill, int operation, int n, int k, const T* alpha_at, const T* a_at,
         int lda, const T* beta_at, T* c_at, int ldc) {
    Call call(name, handle);
    const Matrix<const T> a{a_at, operation ? k : n, operation ? n : k, lda};
    const Matrix<T> c{c_at, n, n, ldc};
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

template <class T> Matrix<T> square(T* data, int n, int line) { return {data, n, n, line}; }

template <class T>
int getrf(const char* name, Handle* handle, int n, T* const* a, int lda, int* pivots, int* info, int count) {
    Call call(name, handle);
    call.expect(square<T>(nullptr, n, lda)).expect(count >= 0);
    if (call.answer() || !n || !count) return call.answer();
    call.reads(Vector<T* const>{a, count, 1});
    if (pivots) call.writes(Matrix<int>{pivots, n, count, n});
    call.writes(Vector<int>{info, count, 1});
    return call.run([=] {
        for (int i = 0; i < count; ++i) {
            const Matrix<T> matrix = square(a[i], n, lda);
            Ranges found;
            found.writes(matrix);
            if (!touch(found.list())) return;
            info[i] = factorise(matrix, pivots ? pivots + (ptrdiff_t)i * n : nullptr);
        }
    });
}

template <class T>
int getrs(const char* name, Handle* handle, int operation, int n, int columns, const T* const* a, int lda,
          const int* pivots, T* const* b, int ldb, int* info, int count) {
    Call call(name, handle);
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
    call.reads(Vector<const T* const>{a, count, 1});
    call.reads(Vector<T* const>{b, count, 1});
    if (pivots) call.reads(Matrix<const int>{pivots, n, count, n});
    return call.run([=] {
        for (int i = 0; i < count; ++i) {
            const Matrix<const T> matrix = square(a[i], n, lda);
            const Matrix<T> right{b[i], n, columns, ldb};
            const int* own = pivots ? pivots + (ptrdiff_t)i * n : nullptr;
            Ranges found;
            found.reads(matrix);
            found.writes(right);
            if (!touch(found.list())) return;
            for (int j = 0; are_rows(own, n) && j < columns; ++j)
                solve_factorised(matrix, own, operation, [&](int r) -> T& { return right(r, j); });
        }
    });
}

template <class T>
int getri(const char* name, Handle* handle, int n, const T* const* a, int lda, const int* pivots, T* const* c, int ldc,
          int* info, int count) {
    Call call(name, handle);
    call.expect(square<T>(nullptr, n, lda)).expect(square<T>(nullptr, n, ldc)).expect(count >= 0);
    if (call.answer() || !n || !count) return call.answer();
    call.reads(Vector<const T* const>{a, count, 1});
    call.reads(Vector<T* const>{c, count, 1});
    if (pivots) call.reads(Matrix<const int>{pivots, n, count, n});
    call.writes(Vector<int>{info, count, 1});
    return call.run([=] {
        for (int i = 0; i < count; ++i) {
            const Matrix<const T> matrix = square(a[i], n, lda);
            const Matrix<T> inverse = square(c[i], n, ldc);
            const int* own = pivots ? pivots + (ptrdiff_t)i * n : nullptr;
            Ranges found;
            found.reads(matrix);
            found.writes(inverse);
            if (!touch(found.list())) return;
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
template <class T>
int pack(const char* name, Handle* handle, int fill, int n, T* packed, T* matrix_at, int line, bool packs) {
    Call call(name, handle);
    const Matrix<T> matrix = square(matrix_at, n, line);
    call.expect(fill == lower || fill == upper).expect(matrix);
    if (call.answer() || !n) return call.answer();
    const Vector<T> all{packed, (ptrdiff_t)n * (n + 1) / 2, 1};
    packs ? (void)call.writes(all) : call.reads(all);
    call.triangle(matrix, fill, !packs);
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
        return trsm("cublas" #X "trsm", handle, side, fill, trans, diagonal, m, n, alpha, a, lda, b, ldb);            \
    }                                                                                                                 \
    LUCID_CUDA int cublas##X##trsmBatched(Handle* handle, int side, int fill, int trans, int diagonal, int m, int n,  \
                                          const T* alpha, const T* const* a, int lda, T* const* b, int ldb,           \
                                          int count) {                                                                \
        return trsm_each("cublas" #X "trsmBatched", handle, side, fill, trans, diagonal, m, n, alpha, a, lda, b, ldb, \
                         count);                                                                                      \
    }                                                                                                                 \
    LUCID_CUDA int cublas##X##syrk_v2(Handle* handle, int fill, int trans, int n, int k, const T* alpha, const T* a,  \
                                      int lda, const T* beta, T* c, int ldc) {                                        \
        return syrk("cublas" #X "syrk", handle, fill, trans, n, k, alpha, a, lda, beta, c, ldc);                      \
    }                                                                                                                 \
    LUCID_CUDA int cublas##X##getrfBatched(Handle* handle, int n, T* const* a, int lda, int* pivots, int* info,       \
                                           int count) {                                                               \
        return getrf("cublas" #X "getrfBatched", handle, n, a, lda, pivots, info, count);                             \
    }                                                                                                                 \
    LUCID_CUDA int cublas##X##getrsBatched(Handle* handle, int trans, int n, int columns, const T* const* a, int lda, \
                                           const int* pivots, T* const* b, int ldb, int* info, int count) {           \
        return getrs("cublas" #X "getrsBatched", handle, trans, n, columns, a, lda, pivots, b, ldb, info, count);     \
    }                                                                                                                 \
    LUCID_CUDA int cublas##X##getriBatched(Handle* handle, int n, const T* const* a, int lda, const int* pivots,      \
                                           T* const* c, int ldc, int* info, int count) {                              \
        return getri("cublas" #X "getriBatched", handle, n, a, lda, pivots, c, ldc, info, count);                     \
    }
LUCID_ALL_TYPES(DEFINE)
#undef DEFINE

#define DEFINE(X, T)                                                                                   \
    LUCID_CUDA int cublas##X##tpttr(Handle* handle, int fill, int n, const T* packed, T* a, int lda) { \
        return pack("cublas" #X "tpttr", handle, fill, n, (T*)packed, a, lda, false);                  \
    }                                                                                                  \
    LUCID_CUDA int cublas##X##trttp(Handle* handle, int fill, int n, const T* a, int lda, T* packed) { \
        return pack("cublas" #X "trttp", handle, fill, n, packed, (T*)a, lda, true);                   \
    }
LUCID_REAL_TYPES(DEFINE)
#undef DEFINE
