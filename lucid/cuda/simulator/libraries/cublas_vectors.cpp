// Of the simulated cuBLAS: functions of vectors, of a matrix and vectors, and those that combine matrices by elements.
#include "libraries/calls.h"
#include "libraries/product.h"

namespace lucid_simulator {
namespace {

// y += alpha x
template <class T> int axpy(Call call, const T* alpha_at, Vector<const T> x, Vector<T> y) {
    const Factor<T> alpha = call.factor(alpha_at);
    if (call.answer() || y.size <= 0 || alpha.surely(0)) return call.answer();
    call.reads(x).writes(y);
    return call.run([=] {
        const T factor = alpha.get();
        if (factor == T(0)) return;
        for (ptrdiff_t i = 0; i < y.size; ++i) y[i] = y[i] + factor * x[i];
    });
}

// x *= alpha
template <class S, class T> int scal(Call call, const S* alpha_at, Vector<T> x) {
    const Factor<S> alpha = call.factor(alpha_at);
    if (call.answer() || x.size <= 0 || x.step <= 0) return call.answer();
    call.writes(x);
    return call.run([=] {
        const T factor(alpha.get());
        for (ptrdiff_t i = 0; i < x.size; ++i) x[i] = factor * x[i];
    });
}

template <class T> int dot(Call call, Vector<const T> x, Vector<const T> y, T* result, bool conjugated) {
    call.reads(x).reads(y);
    return call.give(result, [=] {
        return pairwise_sum<T>(0, x.size, [&](ptrdiff_t i) { return (conjugated ? conjugate(x[i]) : x[i]) * y[i]; });
    });
}

// Those of one vector give 0 where it has no element, or a step that is not positive.
template <class T> Vector<const T> forwards(const T* x, int n, int step) {
    return {x, step > 0 && n > 0 ? n : 0, step};
}

template <class T> int asum(Call call, Vector<const T> x, Real<T>* result) {
    call.reads(x);
    return call.give(result,
                     [=] { return pairwise_sum<Real<T>>(0, x.size, [&](ptrdiff_t i) { return magnitude(x[i]); }); });
}

// In long double, in which squares leave the range as little as where cuBLAS scales them.
template <class T> int nrm2(Call call, Vector<const T> x, Real<T>* result) {
    call.reads(x);
    return call.give(result, [=] {
        auto square = [&](ptrdiff_t i) {
            const long double real = real_part(x[i]), imaginary = imaginary_part(x[i]);
            return real * real + imaginary * imaginary;
        };
        return (Real<T>)std::sqrt(pairwise_sum<long double>(0, x.size, square));
    });
}

// The first place, counted from 1, of the largest or smallest element.
template <class T> int extreme(Call call, Vector<const T> x, int* result, bool largest) {
    call.reads(x);
    return call.give(result, [=] {
        int found = 0;
        for (int i = 1; i < x.size; ++i) {
            const auto size = magnitude(x[i]), best = magnitude(x[found]);
            if (largest ? size > best : size < best) found = i;
        }
        return x.size ? found + 1 : 0;
    });
}

// y = alpha op(A) x + beta y
template <class T>
int gemv(Call call, int operation, const T* alpha_at, Matrix<const T> a, const T* x_at, int incx, const T* beta_at,
         T* y_at, int incy) {
    const Vector x{x_at, operation ? a.rows : a.columns, incx};
    const Vector y{y_at, operation ? a.columns : a.rows, incy};
    call.expect_operation(operation).expect(a).expect(incx && incy);
    const Factor<T> alpha = call.factor(alpha_at), beta = call.factor(beta_at);
    if (call.answer() || !a.rows || !a.columns) return call.answer();
    if (!alpha.surely(0)) call.reads(a).reads(x);
    call.writes(y);
    return call.run([=] {
        const T first = alpha.get(), second = beta.get();
        auto store = [&](int i, int, T sum) {
            const T value = first == T(0) ? T(0) : first * sum;
            y[i] = second == T(0) ? value : value + second * y[i];
        };
        product<T>(
            y.size, 1, first == T(0) ? 0 : x.size, Operand<T>(a, operation), [&](int p, int) { return x[p]; }, store);
    });
}

// A += alpha x y^T
template <class T>
int ger(Call call, const T* alpha_at, Vector<const T> x, Vector<const T> y, Matrix<T> a, bool conjugated) {
    call.expect(a).expect(x.step && y.step);
    const Factor<T> alpha = call.factor(alpha_at);
    if (call.answer() || !a.rows || !a.columns || alpha.surely(0)) return call.answer();
    call.reads(x).reads(y).writes(a);
    return call.run([=] {
        const T factor = alpha.get();
        if (factor == T(0)) return;
        for (int j = 0; j < a.columns; ++j) {
            const T scaled = factor * (conjugated ? conjugate(y[j]) : y[j]);
            for (int i = 0; i < a.rows; ++i) a(i, j) = a(i, j) + x[i] * scaled;
        }
    });
}

// y = alpha A x + beta y, of a symmetric matrix with k diagonals beside its own; one triangle is stored, by diagonals.
template <class T>
int sbmv(Call call, int fill, int k, const T* alpha_at, Matrix<const T> a, Vector<const T> x, const T* beta_at,
         Vector<T> y) {
    const int n = a.columns;
    call.expect(fill == lower || fill == upper).expect(k >= 0).expect(a).expect(x.step && y.step);
    const Factor<T> alpha = call.factor(alpha_at), beta = call.factor(beta_at);
    if (call.answer() || !n) return call.answer();
    if (!alpha.surely(0))
        call.reads(x).columns(
            a, false, [&](int j) { return fill == upper ? std::max(k - j, 0) : 0; },
            [&](int j) { return fill == upper ? k + 1 : std::min(k, n - 1 - j) + 1; });
    call.writes(y);
    return call.run([=] {
        const T first = alpha.get(), second = beta.get();
        for (int i = 0; i < n; ++i) {
            T sum = 0;
            for (int j = std::max(0, i - k); first != 0 && j <= std::min(n - 1, i + k); ++j) {
                const int row = std::min(i, j), column = std::max(i, j), distance = column - row;
                sum += (fill == upper ? a(k - distance, column) : a(distance, row)) * x[j];
            }
            y[i] = first * sum + (second == 0 ? 0 : second * y[i]);
        }
    });
}

// C = alpha op(A) + beta op(B); C may be A or B where that is not transposed.
template <class T>
int geam(Call call, int left_operation, int right_operation, const T* alpha_at, Matrix<const T> a, const T* beta_at,
         Matrix<const T> b, Matrix<T> c) {
    call.expect_operation(left_operation).expect_operation(right_operation).expect(a).expect(b).expect(c);
    call.expect(c.data != a.data || (!left_operation && a.line == c.line));
    call.expect(c.data != b.data || (!right_operation && b.line == c.line));
    const Factor<T> alpha = call.factor(alpha_at), beta = call.factor(beta_at);
    if (call.answer() || !c.rows || !c.columns) return call.answer();
    if (!alpha.surely(0) && a.data != c.data) call.reads(a);
    if (!beta.surely(0) && b.data != c.data) call.reads(b);
    call.writes(c);
    return call.run([=] {
        const T first = alpha.get(), second = beta.get();
        const Operand<T> left(a, left_operation), right(b, right_operation);
        assign(c, [&](int i, int j) {
            const T value = first == T(0) ? T(0) : first * left(i, j);
            return second == T(0) ? value : value + second * right(i, j);
        });
    });
}

// C = diag(x) A or A diag(x)
template <class T> int dgmm(Call call, int side, Matrix<const T> a, const T* x_at, int incx, Matrix<T> c) {
    const Vector x{x_at, side == at_left ? a.rows : a.columns, incx};
    call.expect(side == at_left || side == at_right).expect(a).expect(c).expect(c.data != a.data || a.line == c.line);
    if (call.answer() || !a.rows || !a.columns) return call.answer();
    if (a.data != c.data) call.reads(a);
    call.reads(x).writes(c);
    return call.run([=] { assign(c, [&](int i, int j) { return a(i, j) * x[side == at_left ? i : j]; }); });
}

}  // namespace
}  // namespace lucid_simulator

using namespace lucid_simulator;

#define DEFINE(X, T)                                                                                                  \
    LUCID_CUDA int cublas##X##axpy_v2(Handle* handle, int n, const T* alpha, const T* x, int incx, T* y, int incy) {  \
        return axpy({"cublas" #X "axpy", handle}, alpha, Vector{x, n, incx}, Vector{y, n, incy});                     \
    }                                                                                                                 \
    LUCID_CUDA int cublas##X##scal_v2(Handle* handle, int n, const T* alpha, T* x, int incx) {                        \
        return scal({"cublas" #X "scal", handle}, alpha, Vector{x, n, incx});                                         \
    }                                                                                                                 \
    LUCID_CUDA int cublas##X##gemv_v2(Handle* handle, int trans, int m, int n, const T* alpha, const T* a, int lda,   \
                                      const T* x, int incx, const T* beta, T* y, int incy) {                          \
        return gemv({"cublas" #X "gemv", handle}, trans, alpha, Matrix{a, m, n, lda}, x, incx, beta, y, incy);        \
    }                                                                                                                 \
    LUCID_CUDA int cublas##X##geam(Handle* handle, int transa, int transb, int m, int n, const T* alpha, const T* a,  \
                                   int lda, const T* beta, const T* b, int ldb, T* c, int ldc) {                      \
        return geam({"cublas" #X "geam", handle}, transa, transb, alpha, stored(a, transa, m, n, lda), beta,          \
                    stored(b, transb, m, n, ldb), Matrix{c, m, n, ldc});                                              \
    }                                                                                                                 \
    LUCID_CUDA int cublas##X##dgmm(Handle* handle, int side, int m, int n, const T* a, int lda, const T* x, int incx, \
                                   T* c, int ldc) {                                                                   \
        return dgmm({"cublas" #X "dgmm", handle}, side, Matrix{a, m, n, lda}, x, incx, Matrix{c, m, n, ldc});         \
    }
LUCID_ALL_TYPES(DEFINE)
#undef DEFINE

#define DEFINE(X, T)                                                                                                  \
    LUCID_CUDA int cublas##X##sbmv_v2(Handle* handle, int fill, int n, int k, const T* alpha, const T* a, int lda,    \
                                      const T* x, int incx, const T* beta, T* y, int incy) {                          \
        return sbmv({"cublas" #X "sbmv", handle}, fill, k, alpha, Matrix{a, k + 1, n, lda}, Vector{x, n, incx}, beta, \
                    Vector{y, n, incy});                                                                              \
    }
LUCID_REAL_TYPES(DEFINE)
#undef DEFINE

// The names of what gives one number have letters of their own.
#define DEFINE(NAME, T)                                                                               \
    LUCID_CUDA int cublasI##NAME##amax_v2(Handle* handle, int n, const T* x, int incx, int* result) { \
        return extreme({"cublasI" #NAME "amax", handle}, forwards(x, n, incx), result, true);         \
    }                                                                                                 \
    LUCID_CUDA int cublasI##NAME##amin_v2(Handle* handle, int n, const T* x, int incx, int* result) { \
        return extreme({"cublasI" #NAME "amin", handle}, forwards(x, n, incx), result, false);        \
    }
DEFINE(s, float)
DEFINE(d, double)
DEFINE(c, Complex<float>)
DEFINE(z, Complex<double>)
#undef DEFINE

#define DEFINE(NAME, T)                                                                                  \
    LUCID_CUDA int cublas##NAME##asum_v2(Handle* handle, int n, const T* x, int incx, Real<T>* result) { \
        return asum({"cublas" #NAME "asum", handle}, forwards(x, n, incx), result);                      \
    }                                                                                                    \
    LUCID_CUDA int cublas##NAME##nrm2_v2(Handle* handle, int n, const T* x, int incx, Real<T>* result) { \
        return nrm2({"cublas" #NAME "nrm2", handle}, forwards(x, n, incx), result);                      \
    }
DEFINE(S, float)
DEFINE(D, double)
DEFINE(Sc, Complex<float>)
DEFINE(Dz, Complex<double>)
#undef DEFINE

#define DEFINE(DOT, GER, T, conjugated)                                                                             \
    LUCID_CUDA int cublas##DOT##_v2(Handle* handle, int n, const T* x, int incx, const T* y, int incy, T* result) { \
        return dot({"cublas" #DOT, handle}, Vector{x, n, incx}, Vector{y, n, incy}, result, conjugated);            \
    }                                                                                                               \
    LUCID_CUDA int cublas##GER##_v2(Handle* handle, int m, int n, const T* alpha, const T* x, int incx, const T* y, \
                                    int incy, T* a, int lda) {                                                      \
        return ger({"cublas" #GER, handle}, alpha, Vector{x, m, incx}, Vector{y, n, incy}, Matrix{a, m, n, lda},    \
                   conjugated);                                                                                     \
    }
DEFINE(Sdot, Sger, float, false)
DEFINE(Ddot, Dger, double, false)
DEFINE(Cdotu, Cgeru, Complex<float>, false)
DEFINE(Cdotc, Cgerc, Complex<float>, true)
DEFINE(Zdotu, Zgeru, Complex<double>, false)
DEFINE(Zdotc, Zgerc, Complex<double>, true)
#undef DEFINE

LUCID_CUDA int cublasCsscal_v2(Handle* handle, int n, const float* alpha, Complex<float>* x, int incx) {
    return scal({"cublasCsscal", handle}, alpha, Vector{x, n, incx});
}
LUCID_CUDA int cublasZdscal_v2(Handle* handle, int n, const double* alpha, Complex<double>* x, int incx) {
    return scal({"cublasZdscal", handle}, alpha, Vector{x, n, incx});
}
