// Of the simulated cuBLAS: functions of vectors, of a matrix and vectors, and those that combine matrices by elements.
#include "libraries/calls.h"
#include "libraries/product.h"

namespace lucid_simulator {
namespace {

// y += alpha x
template <class T>
int axpy(const char* name, Handle* handle, int n, const T* alpha_at, const T* x_at, int incx, T* y_at, int incy) {
    Call call(name, handle);
    const Factor<T> alpha = call.factor(alpha_at);
    if (call.answer() || n <= 0 || alpha.surely(0)) return call.answer();
    const Vector<const T> x{x_at, n, incx};
    const Vector<T> y{y_at, n, incy};
    call.reads(x);
    call.writes(y);
    return call.run([=] {
        const T factor = alpha.get();
        if (factor == T(0)) return;
        for (int i = 0; i < n; ++i) y[i] = y[i] + factor * x[i];
    });
}

// x *= alpha
template <class S, class T> int scal(const char* name, Handle* handle, int n, const S* alpha_at, T* x_at, int incx) {
    Call call(name, handle);
    const Factor<S> alpha = call.factor(alpha_at);
    if (call.answer() || n <= 0 || incx <= 0) return call.answer();
    const Vector<T> x{x_at, n, incx};
    call.writes(x);
    return call.run([=] {
        const T factor(alpha.get());
        for (int i = 0; i < n; ++i) x[i] = factor * x[i];
    });
}

template <class T>
int dot(const char* name, Handle* handle, int n, const T* x_at, int incx, const T* y_at, int incy, T* result,
        bool conjugated) {
    Call call(name, handle);
    const Vector<const T> x{x_at, n, incx}, y{y_at, n, incy};
    call.reads(x);
    call.reads(y);
    return call.give(result, [=] {
        return pairwise_sum<T>(0, n, [&](ptrdiff_t i) { return (conjugated ? conjugate(x[i]) : x[i]) * y[i]; });
    });
}

// Those of one vector give 0 where it has no element, or a step that is not positive.
template <class T> Vector<const T> forwards(const T* x, int n, int step) {
    return {x, step > 0 && n > 0 ? n : 0, step};
}

template <class T> int asum(const char* name, Handle* handle, int n, const T* x_at, int incx, Real<T>* result) {
    Call call(name, handle);
    const auto x = forwards(x_at, n, incx);
    call.reads(x);
    return call.give(result,
                     [=] { return pairwise_sum<Real<T>>(0, x.size, [&](ptrdiff_t i) { return magnitude(x[i]); }); });
}

// In long double, in which squares leave the range as little as where cuBLAS scales them.
template <class T> int nrm2(const char* name, Handle* handle, int n, const T* x_at, int incx, Real<T>* result) {
    Call call(name, handle);
    const auto x = forwards(x_at, n, incx);
    call.reads(x);
    return call.give(result, [=] {
        auto square = [&](ptrdiff_t i) -> long double {
            if constexpr (is_complex<T>)
                return (long double)x[i].real * x[i].real + (long double)x[i].imaginary * x[i].imaginary;
            else
                return (long double)x[i] * x[i];
        };
        return (Real<T>)std::sqrt(pairwise_sum<long double>(0, x.size, square));
    });
}

// The first place, counted from 1, of the largest or smallest element.
template <class T>
int extreme(const char* name, Handle* handle, int n, const T* x_at, int incx, int* result, bool largest) {
    Call call(name, handle);
    const auto x = forwards(x_at, n, incx);
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
int gemv(const char* name, Handle* handle, int operation, int m, int n, const T* alpha_at, const T* a_at, int lda,
         const T* x_at, int incx, const T* beta_at, T* y_at, int incy) {
    Call call(name, handle);
    const Matrix<const T> a{a_at, m, n, lda};
    const Vector<const T> x{x_at, operation ? m : n, incx};
    const Vector<T> y{y_at, operation ? n : m, incy};
    call.expect_operation(operation).expect(a).expect(incx && incy);
    const Factor<T> alpha = call.factor(alpha_at), beta = call.factor(beta_at);
    if (call.answer() || !m || !n) return call.answer();
    if (!alpha.surely(0)) {
        call.reads(a);
        call.reads(x);
    }
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
int ger(const char* name, Handle* handle, int m, int n, const T* alpha_at, const T* x_at, int incx, const T* y_at,
        int incy, T* a_at, int lda, bool conjugated) {
    Call call(name, handle);
    const Vector<const T> x{x_at, m, incx}, y{y_at, n, incy};
    const Matrix<T> a{a_at, m, n, lda};
    call.expect(a).expect(incx && incy);
    const Factor<T> alpha = call.factor(alpha_at);
    if (call.answer() || !m || !n || alpha.surely(0)) return call.answer();
    call.reads(x);
    call.reads(y);
    call.writes(a);
    return call.run([=] {
        const T factor = alpha.get();
        if (factor == T(0)) return;
        for (int j = 0; j < n; ++j) {
            const T scaled = factor * (conjugated ? conjugate(y[j]) : y[j]);
            for (int i = 0; i < m; ++i) a(i, j) = a(i, j) + x[i] * scaled;
        }
    });
}

// y = alpha A x + beta y, of a symmetric matrix with k diagonals beside its own; one triangle is stored, by diagonals.
template <class T>
int sbmv(const char* name, Handle* handle, int fill, int n, int k, const T* alpha_at, const T* a_at, int lda,
         const T* x_at, int incx, const T* beta_at, T* y_at, int incy) {
    Call call(name, handle);
    const Matrix<const T> a{a_at, k + 1, n, lda};
    const Vector<const T> x{x_at, n, incx};
    const Vector<T> y{y_at, n, incy};
    call.expect(fill == lower || fill == upper).expect(k >= 0).expect(a).expect(incx && incy);
    const Factor<T> alpha = call.factor(alpha_at), beta = call.factor(beta_at);
    if (call.answer() || !n) return call.answer();
    if (!alpha.surely(0)) {
        call.columns(
            a, false, [&](int j) { return fill == upper ? std::max(k - j, 0) : 0; },
            [&](int j) { return fill == upper ? k + 1 : std::min(k, n - 1 - j) + 1; });
        call.reads(x);
    }
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
int geam(const char* name, Handle* handle, int left_operation, int right_operation, int m, int n, const T* alpha_at,
         const T* a_at, int lda, const T* beta_at, const T* b_at, int ldb, T* c_at, int ldc) {
    Call call(name, handle);
    const Matrix<const T> a{a_at, left_operation ? n : m, left_operation ? m : n, lda};
    const Matrix<const T> b{b_at, right_operation ? n : m, right_operation ? m : n, ldb};
    const Matrix<T> c{c_at, m, n, ldc};
    call.expect_operation(left_operation).expect_operation(right_operation).expect(a).expect(b).expect(c);
    call.expect(c_at != a_at || (!left_operation && lda == ldc));
    call.expect(c_at != b_at || (!right_operation && ldb == ldc));
    const Factor<T> alpha = call.factor(alpha_at), beta = call.factor(beta_at);
    if (call.answer() || !m || !n) return call.answer();
    if (!alpha.surely(0) && a_at != c_at) call.reads(a);
    if (!beta.surely(0) && b_at != c_at) call.reads(b);
    call.writes(c);
    return call.run([=] {
        const T first = alpha.get(), second = beta.get();
        const Operand<T> left(a, left_operation), right(b, right_operation);
        for (int j = 0; j < n; ++j)
            for (int i = 0; i < m; ++i) {
                const T value = first == T(0) ? T(0) : first * left(i, j);
                c(i, j) = second == T(0) ? value : value + second * right(i, j);
            }
    });
}

// C = diag(x) A or A diag(x)
template <class T>
int dgmm(const char* name, Handle* handle, int side, int m, int n, const T* a_at, int lda, const T* x_at, int incx,
         T* c_at, int ldc) {
    Call call(name, handle);
    const Matrix<const T> a{a_at, m, n, lda};
    const Vector<const T> x{x_at, side == at_left ? m : n, incx};
    const Matrix<T> c{c_at, m, n, ldc};
    call.expect(side == at_left || side == at_right).expect(a).expect(c).expect(c_at != a_at || lda == ldc);
    if (call.answer() || !m || !n) return call.answer();
    if (a_at != c_at) call.reads(a);
    call.reads(x);
    call.writes(c);
    return call.run([=] {
        for (int j = 0; j < n; ++j)
            for (int i = 0; i < m; ++i) c(i, j) = a(i, j) * x[side == at_left ? i : j];
    });
}

}  // namespace
}  // namespace lucid_simulator

using namespace lucid_simulator;

#define DEFINE(X, T)                                                                                                  \
    LUCID_CUDA int cublas##X##axpy_v2(Handle* handle, int n, const T* alpha, const T* x, int incx, T* y, int incy) {  \
        return axpy("cublas" #X "axpy", handle, n, alpha, x, incx, y, incy);                                          \
    }                                                                                                                 \
    LUCID_CUDA int cublas##X##scal_v2(Handle* handle, int n, const T* alpha, T* x, int incx) {                        \
        return scal("cublas" #X "scal", handle, n, alpha, x, incx);                                                   \
    }                                                                                                                 \
    LUCID_CUDA int cublas##X##gemv_v2(Handle* handle, int trans, int m, int n, const T* alpha, const T* a, int lda,   \
                                      const T* x, int incx, const T* beta, T* y, int incy) {                          \
        return gemv("cublas" #X "gemv", handle, trans, m, n, alpha, a, lda, x, incx, beta, y, incy);                  \
    }                                                                                                                 \
    LUCID_CUDA int cublas##X##geam(Handle* handle, int transa, int transb, int m, int n, const T* alpha, const T* a,  \
                                   int lda, const T* beta, const T* b, int ldb, T* c, int ldc) {                      \
        return geam("cublas" #X "geam", handle, transa, transb, m, n, alpha, a, lda, beta, b, ldb, c, ldc);           \
    }                                                                                                                 \
    LUCID_CUDA int cublas##X##dgmm(Handle* handle, int side, int m, int n, const T* a, int lda, const T* x, int incx, \
                                   T* c, int ldc) {                                                                   \
        return dgmm("cublas" #X "dgmm", handle, side, m, n, a, lda, x, incx, c, ldc);                                 \
    }
LUCID_ALL_TYPES(DEFINE)
#undef DEFINE

#define DEFINE(X, T)                                                                                               \
    LUCID_CUDA int cublas##X##sbmv_v2(Handle* handle, int fill, int n, int k, const T* alpha, const T* a, int lda, \
                                      const T* x, int incx, const T* beta, T* y, int incy) {                       \
        return sbmv("cublas" #X "sbmv", handle, fill, n, k, alpha, a, lda, x, incx, beta, y, incy);                \
    }
LUCID_REAL_TYPES(DEFINE)
#undef DEFINE

// The names of what gives one number have letters of their own.
#define DEFINE(NAME, T)                                                                               \
    LUCID_CUDA int cublasI##NAME##amax_v2(Handle* handle, int n, const T* x, int incx, int* result) { \
        return extreme("cublasI" #NAME "amax", handle, n, x, incx, result, true);                     \
    }                                                                                                 \
    LUCID_CUDA int cublasI##NAME##amin_v2(Handle* handle, int n, const T* x, int incx, int* result) { \
        return extreme("cublasI" #NAME "amin", handle, n, x, incx, result, false);                    \
    }
DEFINE(s, float)
DEFINE(d, double)
DEFINE(c, Complex<float>)
DEFINE(z, Complex<double>)
#undef DEFINE

#define DEFINE(NAME, T)                                                                                  \
    LUCID_CUDA int cublas##NAME##asum_v2(Handle* handle, int n, const T* x, int incx, Real<T>* result) { \
        return asum("cublas" #NAME "asum", handle, n, x, incx, result);                                  \
    }                                                                                                    \
    LUCID_CUDA int cublas##NAME##nrm2_v2(Handle* handle, int n, const T* x, int incx, Real<T>* result) { \
        return nrm2("cublas" #NAME "nrm2", handle, n, x, incx, result);                                  \
    }
DEFINE(S, float)
DEFINE(D, double)
DEFINE(Sc, Complex<float>)
DEFINE(Dz, Complex<double>)
#undef DEFINE

#define DEFINE(DOT, GER, T, conjugated)                                                                             \
    LUCID_CUDA int cublas##DOT##_v2(Handle* handle, int n, const T* x, int incx, const T* y, int incy, T* result) { \
        return dot("cublas" #DOT, handle, n, x, incx, y, incy, result, conjugated);                                 \
    }                                                                                                               \
    LUCID_CUDA int cublas##GER##_v2(Handle* handle, int m, int n, const T* alpha, const T* x, int incx, const T* y, \
                                    int incy, T* a, int lda) {                                                      \
        return ger("cublas" #GER, handle, m, n, alpha, x, incx, y, incy, a, lda, conjugated);                       \
    }
DEFINE(Sdot, Sger, float, false)
DEFINE(Ddot, Dger, double, false)
DEFINE(Cdotu, Cgeru, Complex<float>, false)
DEFINE(Cdotc, Cgerc, Complex<float>, true)
DEFINE(Zdotu, Zgeru, Complex<double>, false)
DEFINE(Zdotc, Zgerc, Complex<double>, true)
#undef DEFINE

LUCID_CUDA int cublasCsscal_v2(Handle* handle, int n, const float* alpha, Complex<float>* x, int incx) {
    return scal("cublasCsscal", handle, n, alpha, x, incx);
}
LUCID_CUDA int cublasZdscal_v2(Handle* handle, int n, const double* alpha, Complex<double>* x, int incx) {
    return scal("cublasZdscal", handle, n, alpha, x, incx);
}
