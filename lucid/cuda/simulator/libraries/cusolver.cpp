// libcusolver of the simulated device: the functions that cupy.linalg calls. All others are refused in
// cusolver_absent.cpp.
//
// What is destroyed in place, such as the matrix of which singular values were asked for, is NaN afterwards, and so is
// the workspace. Signs of vectors are not those of cuSOLVER, which are not defined.
#include "libraries/calls.h"
#include "libraries/elimination.h"
#include "libraries/factors.h"

namespace lucid_simulator {
namespace {

// cusolverStatus_t
int answer(int status) {
    switch (status) {
        case invalid_value:
            return 3;
        case execution_failed:
            return 6;
        default:
            return status;
    }
}

enum { without_vectors = 0, with_vectors = 1 };
// CuPy and cuSOLVER know one number of elements for each call: here as many as the matrix has, which nothing needs.
int workspace_of(int* size, long long elements) {
    if (!size || elements < 0 || elements > std::numeric_limits<int>::max()) return answer(invalid_value);
    return *size = (int)std::max(1LL, elements), success;
}

template <class T> void destroy(const Matrix<T>& x) {
    for (int j = 0; j < x.columns; ++j)
        for (int i = 0; i < x.rows; ++i) x(i, j) = T(not_a_number<T>);
}
template <class T> void destroy(T* work, ptrdiff_t size) { std::fill_n(work, size, T(not_a_number<T>)); }

// A call whose workspace has at least the elements that were asked for, and that tells how it went in `info`.
struct Solver : Call {
    using Call::Call;
    template <class T> Solver& with(T* work, long long needed, long long given, int* info, int count = 1) {
        expect(info && count >= 0);
        expect(!needed || (work && given >= needed));
        if (!answer() && needed) writes(Vector<T>{work, (ptrdiff_t)needed, 1});
        if (!answer() && count) writes(Vector<int>{info, count, 1});
        return *this;
    }
};

template <class T>
int getrf(const char* name, Handle* handle, int m, int n, T* a_at, int lda, T* work, int* pivots, int* info) {
    Solver call(name, handle);
    const Matrix<T> a{a_at, m, n, lda};
    call.expect(a);
    call.with(work, std::max(1, m * n), std::max(1, m * n), info);
    if (call.answer()) return answer(call.answer());
    call.writes(a);
    if (pivots) call.writes(Vector<int>{pivots, std::min(m, n), 1});
    return answer(call.run([=] {
        destroy(work, std::max(1, m * n));
        *info = factorise(a, pivots);
    }));
}

template <class T>
int getrs(const char* name, Handle* handle, int operation, int n, int columns, const T* a_at, int lda,
          const int* pivots, T* b_at, int ldb, int* info) {
    Solver call(name, handle);
    const Matrix<const T> a{a_at, n, n, lda};
    const Matrix<T> b{b_at, n, columns, ldb};
    call.expect_operation(operation).expect(a).expect(b);
    call.with((T*)nullptr, 0, 0, info);
    if (call.answer()) return answer(call.answer());
    call.reads(a);
    if (pivots) call.reads(Vector<const int>{pivots, n, 1});
    call.writes(b);
    return answer(call.run([=] {
        *info = 0;
        for (int j = 0; are_rows(pivots, n) && j < columns; ++j)
            solve_factorised(a, pivots, operation, [&](int r) -> T& { return b(r, j); });
    }));
}

template <class T>
int potrf(const char* name, Handle* handle, int fill, int n, T* a_at, int lda, T* work, int size, int* info) {
    Solver call(name, handle);
    const Matrix<T> a{a_at, n, n, lda};
    call.expect(fill == lower || fill == upper).expect(a);
    call.with(work, std::max(1, n), size, info);
    if (call.answer()) return answer(call.answer());
    call.triangle(a, fill, true);
    return answer(call.run([=] {
        destroy(work, std::max(1, n));
        *info = cholesky(a, fill);
    }));
}

template <class T>
int potrf_each(const char* name, Handle* handle, int fill, int n, T* const* a, int lda, int* info, int count) {
    Solver call(name, handle);
    call.expect(fill == lower || fill == upper).expect(Matrix<T>{nullptr, n, n, lda});
    call.with((T*)nullptr, 0, 0, info, count);
    if (call.answer() || !count) return answer(call.answer());
    call.reads(Vector<T* const>{a, count, 1});
    return answer(call.run([=] {
        for (int i = 0; i < count; ++i) {
            const Matrix<T> matrix{a[i], n, n, lda};
            Ranges found;
            found.triangle(matrix, fill, true);
            if (!touch(found.list())) return;
            info[i] = cholesky(matrix, fill);
        }
    }));
}

template <class T>
int geqrf(const char* name, Handle* handle, int m, int n, T* a_at, int lda, T* tau, T* work, int size, int* info) {
    Solver call(name, handle);
    const Matrix<T> a{a_at, m, n, lda};
    call.expect(a);
    call.with(work, std::max(1, n), size, info);
    if (call.answer()) return answer(call.answer());
    call.writes(a);
    call.writes(Vector<T>{tau, std::min(m, n), 1});
    return answer(call.run([=] {
        destroy(work, std::max(1, n));
        reflections(a, tau);
        *info = 0;
    }));
}

template <class T>
int orgqr(const char* name, Handle* handle, int m, int n, int k, T* a_at, int lda, const T* tau, T* work, int size,
          int* info) {
    Solver call(name, handle);
    const Matrix<T> a{a_at, m, n, lda};
    call.expect(a).expect(m >= n && n >= k && k >= 0);
    call.with(work, std::max(1, n), size, info);
    if (call.answer()) return answer(call.answer());
    // of the columns behind those of vectors nothing is read
    call.reads(Matrix<const T>{a_at, m, k, lda});
    call.writes(a);
    call.reads(Vector<const T>{tau, k, 1});
    return answer(call.run([=] {
        destroy(work, std::max(1, n));
        multiply_reflections(a, k, tau);
        *info = 0;
    }));
}

// jobs: 'A' all columns of U, or rows of V^H, 'S' the first of them, 'O' these in place of A, 'N' none
template <class T>
int gesvd(const char* name, Handle* handle, char of_u, char of_v, int m, int n, T* a_at, int lda, Real<T>* values,
          T* u_at, int ldu, T* v_at, int ldv, T* work, int size, int* info) {
    Solver call(name, handle);
    const Matrix<T> a{a_at, m, n, lda};
    const auto known = [](char job) { return job == 'A' || job == 'S' || job == 'O' || job == 'N'; };
    const auto apart = [](char job) { return job == 'A' || job == 'S'; };
    const Matrix<T> u{u_at, m, of_u == 'A' ? m : n, ldu}, v{v_at, n, n, ldv};
    call.expect(a).expect(m >= n && known(of_u) && known(of_v) && !(of_u == 'O' && of_v == 'O'));
    if (apart(of_u)) call.expect(u);
    if (apart(of_v)) call.expect(v);
    call.with(work, std::max(1, m * n), size, info);
    if (call.answer()) return answer(call.answer());
    call.writes(a);
    call.writes(Vector<Real<T>>{values, n, 1});
    if (apart(of_u)) call.writes(u);
    if (apart(of_v)) call.writes(v);
    return answer(call.run([=] {
        const Singular<T> parts(m, n, [&](int i, int j) { return a(i, j); });
        destroy(work, std::max(1, m * n));
        destroy(a);
        std::copy_n(parts.values.data(), n, values);
        const Matrix<T> left = of_u == 'O' ? a : u, right = of_v == 'O' ? Matrix<T>{a_at, n, n, lda} : v;
        for (int j = 0; of_u != 'N' && j < left.columns; ++j)
            for (int i = 0; i < m; ++i) left(i, j) = parts.u[(size_t)j * m + i];
        for (int j = 0; of_v != 'N' && j < n; ++j)
            for (int i = 0; i < n; ++i) right(i, j) = conjugate(parts.v[(size_t)i * n + j]);
        *info = parts.left;
    }));
}

template <class T>
int gesvd_each(const char* name, Handle* handle, int vectors, int m, int n, T* a_at, int lda, Real<T>* values, T* u_at,
               int ldu, T* v_at, int ldv, T* work, int size, int* info, int count) {
    Solver call(name, handle);
    const int k = std::min(m, n);
    const Matrix<T> a{a_at, m, n, lda, (long long)lda * n};
    const Matrix<T> u{u_at, m, m, ldu, (long long)ldu * m}, v{v_at, n, n, ldv, (long long)ldv * n};
    call.expect(vectors == without_vectors || vectors == with_vectors).expect(a).expect(m <= 32 && n <= 32);
    if (vectors) call.expect(u).expect(v);
    call.with(work, std::max(1, m * n), size, info, count);
    if (call.answer() || !count) return answer(call.answer());
    call.writes(a, count);
    call.writes(Vector<Real<T>>{values, (ptrdiff_t)k * count, 1});
    if (vectors) call.writes(u, count), call.writes(v, count);
    return answer(call.run([=] {
        destroy(work, std::max(1, m * n));
        for (int place = 0; place < count; ++place) {
            const Matrix<T> one = a.at(place);
            // of a wide matrix the adjoint, whose vectors are the others
            const bool wide = m < n;
            const Singular<T> parts(std::max(m, n), k,
                                    [&](int i, int j) { return wide ? conjugate(one(j, i)) : one(i, j); });
            destroy(one);
            std::copy_n(parts.values.data(), k, values + (ptrdiff_t)place * k);
            const std::vector<T>&left = wide ? parts.v : parts.u, &right = wide ? parts.u : parts.v;
            for (int j = 0; vectors && j < m; ++j)
                for (int i = 0; i < m; ++i) u.at(place)(i, j) = left[(size_t)j * m + i];
            for (int j = 0; vectors && j < n; ++j)
                for (int i = 0; i < n; ++i) v.at(place)(i, j) = right[(size_t)j * n + i];
            info[place] = parts.left;
        }
    }));
}

template <class T>
int eigenvalues(const char* name, Handle* handle, int vectors, int fill, int n, T* a_at, int lda, Real<T>* values,
                T* work, long long size, int* info, int count) {
    Solver call(name, handle);
    const Matrix<T> a{a_at, n, n, lda, (long long)lda * n};
    call.expect(vectors == without_vectors || vectors == with_vectors).expect(fill == lower || fill == upper);
    call.expect(a);
    call.with(work, std::max(1, n * n), size, info, count);
    if (call.answer() || !count) return answer(call.answer());
    call.writes(a, count);
    call.writes(Vector<Real<T>>{values, (ptrdiff_t)n * count, 1});
    return answer(call.run([=] {
        destroy(work, std::max(1, n * n));
        std::vector<T> found;
        for (int place = 0; place < count; ++place) {
            const Matrix<T> one = a.at(place);
            info[place] = hermitian(one, fill, values + (ptrdiff_t)place * n, found);
            destroy(one);
            for (int j = 0; vectors && j < n; ++j)
                for (int i = 0; i < n; ++i) one(i, j) = found[(size_t)j * n + i];
        }
    }));
}

// cudaDataType, as in cublasGemmEx
enum Type { R_32F = 0, R_64F = 1, C_32F = 4, C_64F = 5 };

template <class Run> int with_type(int type, int type_of_values, int type_of_sums, const Run& run) {
    const bool wide = type == R_64F || type == C_64F;
    if (type_of_values != (wide ? R_64F : R_32F) || type_of_sums != type) return answer(invalid_value);
    switch (type) {
        case R_32F:
            return run(float());
        case R_64F:
            return run(double());
        case C_32F:
            return run(Complex<float>());
        case C_64F:
            return run(Complex<double>());
        default:
            return answer(invalid_value);
    }
}

// What settings of Jacobi's iteration and parameters of the 64-bit functions are kept in: there is nothing to keep.
int make_settings(void** settings) { return settings ? (*settings = new char, success) : answer(invalid_value); }
int drop_settings(void* settings) { return delete (char*)settings, success; }

}  // namespace
}  // namespace lucid_simulator

using namespace lucid_simulator;

LUCID_CUDA int cusolverDnCreate(Handle** handle) { return answer(make_handle(handle)); }
LUCID_CUDA int cusolverDnDestroy(Handle* handle) { return answer(drop_handle(handle)); }
LUCID_CUDA int cusolverDnSetStream(Handle* handle, void* stream) {
    return answer(with_handle(handle, [&] { return handle->stream = stream, success; }));
}
LUCID_CUDA int cusolverDnGetStream(Handle* handle, void** stream) {
    return answer(with_handle(handle, [&] { return stream ? (*stream = handle->stream, success) : invalid_value; }));
}
LUCID_CUDA int cusolverGetProperty(int part, int* value) {
    static const int version[] = {LUCID_VERSION / 1000, LUCID_VERSION / 100 % 10, LUCID_VERSION % 100};
    return value && part >= 0 && part < 3 ? (*value = version[part], success) : answer(invalid_value);
}
LUCID_CUDA int cusolverDnCreateParams(void** settings) { return make_settings(settings); }
LUCID_CUDA int cusolverDnDestroyParams(void* settings) { return drop_settings(settings); }
LUCID_CUDA int cusolverDnCreateGesvdjInfo(void** settings) { return make_settings(settings); }
LUCID_CUDA int cusolverDnDestroyGesvdjInfo(void* settings) { return drop_settings(settings); }
LUCID_CUDA int cusolverDnCreateSyevjInfo(void** settings) { return make_settings(settings); }
LUCID_CUDA int cusolverDnDestroySyevjInfo(void* settings) { return drop_settings(settings); }

#define DEFINE(X, T)                                                                                                  \
    LUCID_CUDA int cusolverDn##X##getrf_bufferSize(Handle*, int m, int n, T*, int, int* size) {                       \
        return workspace_of(size, (long long)m * n);                                                                  \
    }                                                                                                                 \
    LUCID_CUDA int cusolverDn##X##getrf(Handle* handle, int m, int n, T* a, int lda, T* work, int* pivots,            \
                                        int* info) {                                                                  \
        return getrf("cusolverDn" #X "getrf", handle, m, n, a, lda, work, pivots, info);                              \
    }                                                                                                                 \
    LUCID_CUDA int cusolverDn##X##getrs(Handle* handle, int trans, int n, int columns, const T* a, int lda,           \
                                        const int* pivots, T* b, int ldb, int* info) {                                \
        return getrs("cusolverDn" #X "getrs", handle, trans, n, columns, a, lda, pivots, b, ldb, info);               \
    }                                                                                                                 \
    LUCID_CUDA int cusolverDn##X##potrf_bufferSize(Handle*, int, int n, T*, int, int* size) {                         \
        return workspace_of(size, n);                                                                                 \
    }                                                                                                                 \
    LUCID_CUDA int cusolverDn##X##potrf(Handle* handle, int fill, int n, T* a, int lda, T* work, int size,            \
                                        int* info) {                                                                  \
        return potrf("cusolverDn" #X "potrf", handle, fill, n, a, lda, work, size, info);                             \
    }                                                                                                                 \
    LUCID_CUDA int cusolverDn##X##potrfBatched(Handle* handle, int fill, int n, T** a, int lda, int* info,            \
                                               int count) {                                                           \
        return potrf_each<T>("cusolverDn" #X "potrfBatched", handle, fill, n, a, lda, info, count);                   \
    }                                                                                                                 \
    LUCID_CUDA int cusolverDn##X##geqrf_bufferSize(Handle*, int, int n, T*, int, int* size) {                         \
        return workspace_of(size, n);                                                                                 \
    }                                                                                                                 \
    LUCID_CUDA int cusolverDn##X##geqrf(Handle* handle, int m, int n, T* a, int lda, T* tau, T* work, int size,       \
                                        int* info) {                                                                  \
        return geqrf("cusolverDn" #X "geqrf", handle, m, n, a, lda, tau, work, size, info);                           \
    }                                                                                                                 \
    LUCID_CUDA int cusolverDn##X##gesvd_bufferSize(Handle*, int m, int n, int* size) {                                \
        return workspace_of(size, (long long)m * n);                                                                  \
    }                                                                                                                 \
    LUCID_CUDA int cusolverDn##X##gesvd(Handle* handle, signed char of_u, signed char of_v, int m, int n, T* a,       \
                                        int lda, Real<T>* values, T* u, int ldu, T* v, int ldv, T* work, int size,    \
                                        Real<T>*, int* info) {                                                        \
        return gesvd("cusolverDn" #X "gesvd", handle, of_u, of_v, m, n, a, lda, values, u, ldu, v, ldv, work, size,   \
                     info);                                                                                           \
    }                                                                                                                 \
    LUCID_CUDA int cusolverDn##X##gesvdjBatched_bufferSize(Handle*, int, int m, int n, const T*, int, const Real<T>*, \
                                                           const T*, int, const T*, int, int* size, void*, int) {     \
        return workspace_of(size, (long long)m * n);                                                                  \
    }                                                                                                                 \
    LUCID_CUDA int cusolverDn##X##gesvdjBatched(Handle* handle, int vectors, int m, int n, T* a, int lda,             \
                                                Real<T>* values, T* u, int ldu, T* v, int ldv, T* work, int size,     \
                                                int* info, void*, int count) {                                        \
        return gesvd_each("cusolverDn" #X "gesvdjBatched", handle, vectors, m, n, a, lda, values, u, ldu, v, ldv,     \
                          work, size, info, count);                                                                   \
    }
LUCID_ALL_TYPES(DEFINE)
#undef DEFINE

#define DEFINE_AS(X, T, ORGQR, SYEVJ)                                                                                \
    LUCID_CUDA int cusolverDn##X##ORGQR##_bufferSize(Handle*, int, int n, int, const T*, int, const T*, int* size) { \
        return workspace_of(size, n);                                                                                \
    }                                                                                                                \
    LUCID_CUDA int cusolverDn##X##ORGQR(Handle* handle, int m, int n, int k, T* a, int lda, const T* tau, T* work,   \
                                        int size, int* info) {                                                       \
        return orgqr("cusolverDn" #X #ORGQR, handle, m, n, k, a, lda, tau, work, size, info);                        \
    }                                                                                                                \
    LUCID_CUDA int cusolverDn##X##SYEVJ##Batched_bufferSize(Handle*, int, int, int n, const T*, int, const Real<T>*, \
                                                            int* size, void*, int) {                                 \
        return workspace_of(size, (long long)n * n);                                                                 \
    }                                                                                                                \
    LUCID_CUDA int cusolverDn##X##SYEVJ##Batched(Handle* handle, int vectors, int fill, int n, T* a, int lda,        \
                                                 Real<T>* values, T* work, int size, int* info, void*, int count) {  \
        return eigenvalues("cusolverDn" #X #SYEVJ "Batched", handle, vectors, fill, n, a, lda, values, work, size,   \
                           info, count);                                                                             \
    }
#define DEFINE(X, T) DEFINE_AS(X, T, orgqr, syevj)
LUCID_REAL_TYPES(DEFINE)
#undef DEFINE
#define DEFINE(X, T) DEFINE_AS(X, T, ungqr, heevj)
LUCID_COMPLEX_TYPES(DEFINE)
#undef DEFINE

LUCID_CUDA int cusolverDnXsyevd_bufferSize(Handle*, void*, int, int, int64_t n, int type, const void*, int64_t,
                                           int type_of_values, const void*, int type_of_sums, size_t* of_device,
                                           size_t* of_host) {
    if (!of_device || !of_host || n < 0) return answer(invalid_value);
    return with_type(type, type_of_values, type_of_sums, [&](auto zero) {
        return *of_device = std::max<int64_t>(1, n * n) * sizeof zero, *of_host = 0, (int)success;
    });
}
LUCID_CUDA int cusolverDnXsyevd(Handle* handle, void*, int vectors, int fill, int64_t n, int type, void* a, int64_t lda,
                                int type_of_values, void* values, int type_of_sums, void* work, size_t size, void*,
                                size_t, int* info) {
    return with_type(type, type_of_values, type_of_sums, [&](auto zero) {
        using T = decltype(zero);
        return eigenvalues("cusolverDnXsyevd", handle, vectors, fill, (int)n, (T*)a, (int)lda, (Real<T>*)values,
                           (T*)work, (long long)(size / sizeof(T)), info, 1);
    });
}
