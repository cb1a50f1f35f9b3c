// libcusolver of the simulated device: the functions that cupy.linalg calls. All others are refused in
// cusolver_absent.cpp.
//
// What is destroyed in place, such as the matrix of which singular values were asked for, is NaN afterwards, and so is
// the workspace. Signs of vectors are not those of cuSOLVER, which are not defined.
#include "libraries/calls.h"
#include "libraries/elimination.h"
#include "libraries/factors.h"

namespace lucid_simulator {

const int invalid_value = 3, execution_failed = 6, not_supported = 9;

namespace {

enum { without_vectors = 0, with_vectors = 1 };
// CuPy and cuSOLVER know one number of elements for each call: here as many as the matrix has, which nothing needs.
int workspace_of(int* size, long long elements) {
    if (!size || elements < 0 || elements > std::numeric_limits<int>::max()) return invalid_value;
    return *size = (int)std::max(1LL, elements), success;
}

template <class T> void destroy(const Matrix<T>& x) {
    assign(x, [](int, int) { return T(not_a_number<T>); });
}

template <class T> int getrf(Call call, Matrix<T> a, T* work, int* pivots, int* info) {
    const int size = std::max(1, a.rows * a.columns);
    call.expect(a).scratch(work, size, size).tells(info).writes(a);
    if (pivots) call.writes(Vector{pivots, std::min(a.rows, a.columns)});
    return call.run([=] { *info = factorise(a, pivots); });
}

template <class T> int getrs(Call call, int operation, Matrix<const T> a, const int* pivots, Matrix<T> b, int* info) {
    call.expect_operation(operation).expect(a).expect(b).tells(info).reads(a).writes(b);
    if (pivots) call.reads(Vector{pivots, a.rows});
    return call.run([=] {
        *info = 0;
        for (int j = 0; are_rows(pivots, a.rows) && j < b.columns; ++j)
            solve_factorised(a, pivots, operation, [&](int r) -> T& { return b(r, j); });
    });
}

template <class T> int potrf(Call call, int fill, Matrix<T> a, T* work, int size, int* info) {
    call.expect(fill == lower || fill == upper).expect(a).scratch(work, std::max(1, a.rows), size).tells(info);
    call.triangle(a, fill, true);
    return call.run([=] { *info = cholesky(a, fill); });
}

template <class T> int potrf_each(Call call, int fill, int n, T* const* a, int lda, int* info, int count) {
    call.expect(fill == lower || fill == upper).expect(Matrix<T>{nullptr, n, n, lda}).tells(info, count);
    if (call.answer() || !count) return call.answer();
    call.reads(Vector{a, count});
    return call.run([=] {
        for (int i = 0; i < count; ++i) {
            const Matrix<T> matrix{a[i], n, n, lda};
            if (!touch(Ranges().triangle(matrix, fill, true))) return;
            info[i] = cholesky(matrix, fill);
        }
    });
}

template <class T> int geqrf(Call call, Matrix<T> a, T* tau, T* work, int size, int* info) {
    call.expect(a).scratch(work, std::max(1, a.columns), size).tells(info).writes(a);
    call.writes(Vector{tau, std::min(a.rows, a.columns)});
    return call.run([=] {
        reflections(a, tau);
        *info = 0;
    });
}

template <class T>
int orgqr(Call call, int m, int n, int k, T* a_at, int lda, const T* tau, T* work, int size, int* info) {
    const Matrix<T> a{a_at, m, n, lda};
    call.expect(a).expect(m >= n && n >= k && k >= 0);
    // of the columns behind those of vectors nothing is read
    call.scratch(work, std::max(1, n), size).tells(info).reads(Matrix{a_at, m, k, lda}).writes(a);
    call.reads(Vector{tau, k});
    return call.run([=] {
        multiply_reflections(a, k, tau);
        *info = 0;
    });
}

// jobs: 'A' all columns of U, or rows of V^H, 'S' the first of them, 'O' these in place of A, 'N' none
template <class T>
int gesvd(Call call, char of_u, char of_v, int m, int n, T* a_at, int lda, Real<T>* values, T* u_at, int ldu, T* v_at,
          int ldv, T* work, int size, int* info) {
    const Matrix<T> a{a_at, m, n, lda};
    const auto known = [](char job) { return job == 'A' || job == 'S' || job == 'O' || job == 'N'; };
    const auto apart = [](char job) { return job == 'A' || job == 'S'; };
    const Matrix<T> u{u_at, m, of_u == 'A' ? m : n, ldu}, v{v_at, n, n, ldv};
    call.expect(a).expect(m >= n && known(of_u) && known(of_v) && !(of_u == 'O' && of_v == 'O'));
    if (apart(of_u)) call.expect(u).writes(u);
    if (apart(of_v)) call.expect(v).writes(v);
    call.scratch(work, std::max(1, m * n), size).tells(info).writes(a).writes(Vector{values, n});
    return call.run([=] {
        const Singular<T> parts(m, n, [&](int i, int j) { return a(i, j); });
        destroy(a);
        std::copy_n(parts.values.data(), n, values);
        const Matrix<T> left = of_u == 'O' ? a : u, right = of_v == 'O' ? Matrix<T>{a_at, n, n, lda} : v;
        if (of_u != 'N') assign(left, [&](int i, int j) { return parts.u[(size_t)j * m + i]; });
        if (of_v != 'N') assign(right, [&](int i, int j) { return conjugate(parts.v[(size_t)i * n + j]); });
        *info = parts.left;
    });
}

template <class T>
int gesvd_each(Call call, int vectors, int m, int n, T* a_at, int lda, Real<T>* values, T* u_at, int ldu, T* v_at,
               int ldv, T* work, int size, int* info, int count) {
    const int k = std::min(m, n);
    const Matrix<T> a{a_at, m, n, lda, (long long)lda * n};
    const Matrix<T> u{u_at, m, m, ldu, (long long)ldu * m}, v{v_at, n, n, ldv, (long long)ldv * n};
    call.expect(vectors == without_vectors || vectors == with_vectors).expect(a).expect(m <= 32 && n <= 32);
    if (vectors) call.expect(u).expect(v);
    call.scratch(work, std::max(1, m * n), size).tells(info, count);
    if (call.answer() || !count) return call.answer();
    call.writes(a, count).writes(Vector{values, (ptrdiff_t)k * count});
    if (vectors) call.writes(u, count).writes(v, count);
    return call.run([=] {
        for (int place = 0; place < count; ++place) {
            const Matrix<T> one = a.at(place);
            // of a wide matrix the adjoint, whose vectors are the others
            const bool wide = m < n;
            const Singular<T> parts(std::max(m, n), k,
                                    [&](int i, int j) { return wide ? conjugate(one(j, i)) : one(i, j); });
            destroy(one);
            std::copy_n(parts.values.data(), k, values + (ptrdiff_t)place * k);
            const std::vector<T>&left = wide ? parts.v : parts.u, &right = wide ? parts.u : parts.v;
            if (vectors) assign(u.at(place), [&](int i, int j) { return left[(size_t)j * m + i]; });
            if (vectors) assign(v.at(place), [&](int i, int j) { return right[(size_t)j * n + i]; });
            info[place] = parts.left;
        }
    });
}

template <class T>
int eigenvalues(Call call, int vectors, int fill, int n, T* a_at, int lda, Real<T>* values, T* work, long long size,
                int* info, int count) {
    const Matrix<T> a{a_at, n, n, lda, (long long)lda * n};
    call.expect(vectors == without_vectors || vectors == with_vectors).expect(fill == lower || fill == upper);
    call.expect(a).scratch(work, std::max(1, n * n), size).tells(info, count);
    if (call.answer() || !count) return call.answer();
    call.writes(a, count).writes(Vector{values, (ptrdiff_t)n * count});
    return call.run([=] {
        std::vector<T> found;
        for (int place = 0; place < count; ++place) {
            const Matrix<T> one = a.at(place);
            info[place] = hermitian(one, fill, values + (ptrdiff_t)place * n, found);
            destroy(one);
            if (vectors) assign(one, [&](int i, int j) { return found[(size_t)j * n + i]; });
        }
    });
}

// As with_type, of a matrix whose eigenvalues and sums have the types that belong to it.
template <class Run> int with_types(int type, int type_of_values, int type_of_sums, const Run& run) {
    const bool complex = type == C_32F || type == C_64F, real = type == R_32F || type == R_64F;
    if ((!real && !complex) || type_of_values != (complex ? type - C_32F : type) || type_of_sums != type)
        return invalid_value;
    return with_type(type, run);
}

// What settings of Jacobi's iteration and parameters of the 64-bit functions are kept in: there is nothing to keep.
int make_settings(void** settings) { return settings ? (*settings = new char, success) : invalid_value; }
int drop_settings(void* settings) { return delete (char*)settings, success; }

}  // namespace
}  // namespace lucid_simulator

using namespace lucid_simulator;

LUCID_CUDA int cusolverDnCreate(Handle** handle) { return make_handle(handle); }
LUCID_CUDA int cusolverDnDestroy(Handle* handle) { return drop_handle(handle); }
LUCID_CUDA int cusolverDnSetStream(Handle* handle, void* stream) { return set(handle, &Handle::stream, stream); }
LUCID_CUDA int cusolverDnGetStream(Handle* handle, void** stream) { return get(handle, &Handle::stream, stream); }
LUCID_CUDA int cusolverGetProperty(int part, int* value) {
    static const int version[] = {LUCID_VERSION / 1000, LUCID_VERSION / 100 % 10, LUCID_VERSION % 100};
    return value && part >= 0 && part < 3 ? (*value = version[part], success) : invalid_value;
}
LUCID_CUDA int cusolverDnCreateParams(void** settings) { return make_settings(settings); }
LUCID_CUDA int cusolverDnDestroyParams(void* settings) { return drop_settings(settings); }
LUCID_CUDA int cusolverDnCreateGesvdjInfo(void** settings) { return make_settings(settings); }
LUCID_CUDA int cusolverDnDestroyGesvdjInfo(void* settings) { return drop_settings(settings); }
LUCID_CUDA int cusolverDnCreateSyevjInfo(void** settings) { return make_settings(settings); }
LUCID_CUDA int cusolverDnDestroySyevjInfo(void* settings) { return drop_settings(settings); }

// A function that tells how many elements of scratch memory another takes.
#define LUCID_WORKSPACE(NAME, PARAMETERS, ELEMENTS) \
    LUCID_CUDA int NAME##_bufferSize PARAMETERS { return workspace_of(size, ELEMENTS); }

#define DEFINE(X, T)                                                                                                  \
    LUCID_WORKSPACE(cusolverDn##X##getrf, (Handle*, int m, int n, T*, int, int* size), 1LL * m * n)                   \
    LUCID_CUDA int cusolverDn##X##getrf(Handle* handle, int m, int n, T* a, int lda, T* work, int* pivots,            \
                                        int* info) {                                                                  \
        return getrf({"cusolverDn" #X "getrf", handle}, Matrix{a, m, n, lda}, work, pivots, info);                    \
    }                                                                                                                 \
    LUCID_CUDA int cusolverDn##X##getrs(Handle* handle, int trans, int n, int columns, const T* a, int lda,           \
                                        const int* pivots, T* b, int ldb, int* info) {                                \
        return getrs({"cusolverDn" #X "getrs", handle}, trans, Matrix{a, n, n, lda}, pivots,                          \
                     Matrix{b, n, columns, ldb}, info);                                                               \
    }                                                                                                                 \
    LUCID_WORKSPACE(cusolverDn##X##potrf, (Handle*, int, int n, T*, int, int* size), n)                               \
    LUCID_CUDA int cusolverDn##X##potrf(Handle* handle, int fill, int n, T* a, int lda, T* work, int size,            \
                                        int* info) {                                                                  \
        return potrf({"cusolverDn" #X "potrf", handle}, fill, Matrix{a, n, n, lda}, work, size, info);                \
    }                                                                                                                 \
    LUCID_CUDA int cusolverDn##X##potrfBatched(Handle* handle, int fill, int n, T** a, int lda, int* info,            \
                                               int count) {                                                           \
        return potrf_each<T>({"cusolverDn" #X "potrfBatched", handle}, fill, n, a, lda, info, count);                 \
    }                                                                                                                 \
    LUCID_WORKSPACE(cusolverDn##X##geqrf, (Handle*, int, int n, T*, int, int* size), n)                               \
    LUCID_CUDA int cusolverDn##X##geqrf(Handle* handle, int m, int n, T* a, int lda, T* tau, T* work, int size,       \
                                        int* info) {                                                                  \
        return geqrf({"cusolverDn" #X "geqrf", handle}, Matrix{a, m, n, lda}, tau, work, size, info);                 \
    }                                                                                                                 \
    LUCID_WORKSPACE(cusolverDn##X##gesvd, (Handle*, int m, int n, int* size), 1LL * m * n)                            \
    LUCID_CUDA int cusolverDn##X##gesvd(Handle* handle, signed char of_u, signed char of_v, int m, int n, T* a,       \
                                        int lda, Real<T>* values, T* u, int ldu, T* v, int ldv, T* work, int size,    \
                                        Real<T>*, int* info) {                                                        \
        return gesvd({"cusolverDn" #X "gesvd", handle}, of_u, of_v, m, n, a, lda, values, u, ldu, v, ldv, work, size, \
                     info);                                                                                           \
    }                                                                                                                 \
    LUCID_WORKSPACE(cusolverDn##X##gesvdjBatched,                                                                     \
                    (Handle*, int, int m, int n, const T*, int, const Real<T>*, const T*, int, const T*, int,         \
                     int* size, void*, int),                                                                          \
                    1LL * m * n)                                                                                      \
    LUCID_CUDA int cusolverDn##X##gesvdjBatched(Handle* handle, int vectors, int m, int n, T* a, int lda,             \
                                                Real<T>* values, T* u, int ldu, T* v, int ldv, T* work, int size,     \
                                                int* info, void*, int count) {                                        \
        return gesvd_each({"cusolverDn" #X "gesvdjBatched", handle}, vectors, m, n, a, lda, values, u, ldu, v, ldv,   \
                          work, size, info, count);                                                                   \
    }
LUCID_ALL_TYPES(DEFINE)
#undef DEFINE

#define DEFINE_AS(X, T, ORGQR, SYEVJ)                                                                                \
    LUCID_WORKSPACE(cusolverDn##X##ORGQR, (Handle*, int, int n, int, const T*, int, const T*, int* size), n)         \
    LUCID_CUDA int cusolverDn##X##ORGQR(Handle* handle, int m, int n, int k, T* a, int lda, const T* tau, T* work,   \
                                        int size, int* info) {                                                       \
        return orgqr({"cusolverDn" #X #ORGQR, handle}, m, n, k, a, lda, tau, work, size, info);                      \
    }                                                                                                                \
    LUCID_WORKSPACE(cusolverDn##X##SYEVJ##Batched,                                                                   \
                    (Handle*, int, int, int n, const T*, int, const Real<T>*, int* size, void*, int), 1LL * n * n)   \
    LUCID_CUDA int cusolverDn##X##SYEVJ##Batched(Handle* handle, int vectors, int fill, int n, T* a, int lda,        \
                                                 Real<T>* values, T* work, int size, int* info, void*, int count) {  \
        return eigenvalues({"cusolverDn" #X #SYEVJ "Batched", handle}, vectors, fill, n, a, lda, values, work, size, \
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
    if (!of_device || !of_host || n < 0) return invalid_value;
    return with_types(type, type_of_values, type_of_sums, [&](auto zero) {
        return *of_device = std::max<int64_t>(1, n * n) * sizeof zero, *of_host = 0, success;
    });
}
LUCID_CUDA int cusolverDnXsyevd(Handle* handle, void*, int vectors, int fill, int64_t n, int type, void* a, int64_t lda,
                                int type_of_values, void* values, int type_of_sums, void* work, size_t size, void*,
                                size_t, int* info) {
    return with_types(type, type_of_values, type_of_sums, [&](auto zero) {
        using T = decltype(zero);
        return eigenvalues({"cusolverDnXsyevd", handle}, vectors, fill, (int)n, (T*)a, (int)lda, (Real<T>*)values,
                           (T*)work, (long long)(size / sizeof(T)), info, 1);
    });
}
