// libcublas of the simulated device: handles, and products of matrices.
//
// What cuBLAS refuses is refused, with its codes. Sums of float16 and bfloat16 are made in float32 and rounded once,
// whatever the math mode; cuBLAS may round parts of them to 16 bits, unless it is
// CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION. TF32 and the other fast types compute in full float32.
// CUBLAS_COMPUTE_16F rounds to float16 every 16 terms. As in BLAS, what a factor of zero would multiply is not read.
#include "libraries/calls.h"

#include <cstring>

#include "libraries/product.h"

namespace lucid_simulator {
namespace {

// C = alpha op(A) op(B) + beta C
template <class S, class T, class C> struct Product {
    using A = decltype(widen(S()));  // what sums are made in

    int left_operation, right_operation, depth;
    Matrix<const T> left, right;
    Matrix<C> out;

    Product(int left_operation, int right_operation, int rows, int columns, int depth, const T* a, int a_line,
            long long a_step, const T* b, int b_line, long long b_step, C* c, int c_line, long long c_step)
        : left_operation(left_operation),
          right_operation(right_operation),
          depth(depth),
          left(left_operation ? Matrix<const T>{a, depth, rows, a_line, a_step}
                              : Matrix<const T>{a, rows, depth, a_line, a_step}),
          right(right_operation ? Matrix<const T>{b, columns, depth, b_line, b_step}
                                : Matrix<const T>{b, depth, columns, b_line, b_step}),
          out{c, rows, columns, c_line, c_step} {}

    void check(Call& call, int count) const {
        call.expect_operation(left_operation).expect_operation(right_operation).expect(count >= 0);
        call.expect(left).expect(right).expect(out);
    }
    bool nothing(int count) const { return !out.rows || !out.columns || !count; }

    void compute(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<C>& c, A alpha, A beta) const {
        const int terms = alpha == A(0) ? 0 : depth;
        auto store = [&](int i, int j, A sum) {
            A value = terms ? alpha * sum : A(0);
            if (!(beta == A(0))) value = value + beta * widen(c(i, j));
            narrow(c(i, j), value);
        };
        product<A>(c.rows, c.columns, terms, Operand<T>(a, left_operation), Operand<T>(b, right_operation), store,
                   std::is_same<S, Half>::value);
    }

    // Of a stack of matrices. Those of the result may not overlap, which cuBLAS leaves undefined: it is refused here.
    int queue(const char* name, const Handle* handle, const S* alpha_at, const S* beta_at, int count) const {
        Call call(name, handle);
        check(call, count);
        const Factor<S> alpha = call.factor(alpha_at), beta = call.factor(beta_at);
        if (call.answer() || nothing(count)) return call.answer();
        if (depth && !alpha.surely(0)) {
            call.reads(left, count);
            call.reads(right, count);
        }
        if (!beta.surely(0)) call.reads(out, count);
        call.expect(call.writes(out, count));
        call.works();
        Handle settings{};
        find_handle(handle, settings);
        return call.run([=, *this] {
            if (settings.workspace_bytes)
                std::memset(settings.workspace, 0xFF, std::min(settings.workspace_bytes, garbage_bytes));
            const A first = widen(alpha.get()), second = widen(beta.get());
            for (int i = 0; i < count; ++i) compute(left.at(i), right.at(i), out.at(i), first, second);
        });
    }

    // Of matrices whose addresses lie in memory of the device.
    int queue_each(const char* name, const Handle* handle, const S* alpha_at, const T* const* lefts,
                   const T* const* rights, const S* beta_at, C* const* outs, int count) const {
        Call call(name, handle);
        check(call, count);
        const Factor<S> alpha = call.factor(alpha_at), beta = call.factor(beta_at);
        if (call.answer() || nothing(count)) return call.answer();
        const bool multiplies = depth && !alpha.surely(0);
        if (multiplies) {
            call.reads(Vector<const T* const>{lefts, count, 1});
            call.reads(Vector<const T* const>{rights, count, 1});
        }
        call.reads(Vector<C* const>{outs, count, 1});
        return call.run([=, *this] {
            const A first = widen(alpha.get()), second = widen(beta.get());
            for (int i = 0; i < count; ++i) {
                Matrix<const T> a = left, b = right;
                Matrix<C> c = out;
                Ranges found;
                if (multiplies) {
                    a.data = lefts[i], b.data = rights[i];
                    found.reads(a);
                    found.reads(b);
                }
                c.data = outs[i];
                if (!(second == A(0))) found.reads(c);
                found.writes(c);
                if (!touch(found.list())) return;
                compute(a, b, c, first, second);
            }
        });
    }
};

// Numbers of cudaDataType and of cublasComputeType_t.
enum Type { R_32F = 0, R_64F = 1, R_16F = 2, C_32F = 4, C_64F = 5, R_16BF = 14 };
enum Compute {
    COMPUTE_16F = 64,
    COMPUTE_16F_PEDANTIC = 65,
    COMPUTE_32F = 68,
    COMPUTE_32F_PEDANTIC = 69,
    COMPUTE_64F = 70,
    COMPUTE_64F_PEDANTIC = 71,
    COMPUTE_32F_FAST_16F = 74,
    COMPUTE_32F_FAST_16BF = 75,
    COMPUTE_32F_FAST_TF32 = 77
};

template <class S, class T, class C> struct Types {
    using Factor = S;
    using In = T;
    using Out = C;
};

// Calls run with the types of the factors, the operands and the result, of what the documentation of cublasGemmEx lists
// without the 8-bit types.
template <class Run> int with_types(int a, int b, int c, int compute, const Run& run) {
    const bool half = compute == COMPUTE_16F || compute == COMPUTE_16F_PEDANTIC;
    const bool single = compute == COMPUTE_32F || compute == COMPUTE_32F_PEDANTIC;
    const bool fast =
        compute == COMPUTE_32F_FAST_16F || compute == COMPUTE_32F_FAST_16BF || compute == COMPUTE_32F_FAST_TF32;
    const bool twice = compute == COMPUTE_64F || compute == COMPUTE_64F_PEDANTIC;
    if (a != b) return not_supported;
    if (half && a == R_16F && c == R_16F) return run(Types<Half, Half, Half>());
    if (single && a == R_16F && c == R_16F) return run(Types<float, Half, Half>());
    if (single && a == R_16F && c == R_32F) return run(Types<float, Half, float>());
    if (single && a == R_16BF && c == R_16BF) return run(Types<float, Bfloat16, Bfloat16>());
    if (single && a == R_16BF && c == R_32F) return run(Types<float, Bfloat16, float>());
    if ((single || fast) && a == R_32F && c == R_32F) return run(Types<float, float, float>());
    if ((single || fast) && a == C_32F && c == C_32F)
        return run(Types<Complex<float>, Complex<float>, Complex<float>>());
    if (twice && a == R_64F && c == R_64F) return run(Types<double, double, double>());
    if (twice && a == C_64F && c == C_64F) return run(Types<Complex<double>, Complex<double>, Complex<double>>());
    return not_supported;
}

int multiply(const char* name, const Handle* handle, int left_operation, int right_operation, int rows, int columns,
             int depth, const void* alpha, const void* a, int a_type, int a_line, long long a_step, const void* b,
             int b_type, int b_line, long long b_step, const void* beta, void* c, int c_type, int c_line,
             long long c_step, int count, int compute) {
    Handle settings;
    if (!find_handle(handle, settings)) return not_initialized;
    return with_types(a_type, b_type, c_type, compute, [&](auto types) {
        using S = typename decltype(types)::Factor;
        using T = typename decltype(types)::In;
        using C = typename decltype(types)::Out;
        return Product<S, T, C>(left_operation, right_operation, rows, columns, depth, (const T*)a, a_line, a_step,
                                (const T*)b, b_line, b_step, (C*)c, c_line, c_step)
            .queue(name, handle, (const S*)alpha, (const S*)beta, count);
    });
}

// cublasGemmAlgo_t: which of its kernels cuBLAS takes.
bool is_algorithm(int number) { return (number >= -1 && number <= 23) || (number >= 99 && number <= 115); }

}  // namespace
}  // namespace lucid_simulator

using namespace lucid_simulator;

LUCID_CUDA int cublasCreate_v2(Handle** handle) { return make_handle(handle); }
LUCID_CUDA int cublasDestroy_v2(Handle* handle) { return drop_handle(handle); }
LUCID_CUDA int cublasGetVersion_v2(Handle* handle, int* version) {
    return with_handle(handle, [&] { return version ? (*version = LUCID_VERSION, success) : invalid_value; });
}
LUCID_CUDA int cublasSetStream_v2(Handle* handle, void* stream) {
    // the workspace is the default one again
    return with_handle(handle, [&] { return handle->stream = stream, handle->workspace_bytes = 0, success; });
}
LUCID_CUDA int cublasSetWorkspace_v2(Handle* handle, void* workspace, size_t bytes) {
    return with_handle(handle, [&] {
        if ((uintptr_t)workspace % 256) return invalid_value;
        return handle->workspace = (char*)workspace, handle->workspace_bytes = workspace ? bytes : 0, success;
    });
}
LUCID_CUDA int cublasGetStream_v2(Handle* handle, void** stream) {
    return with_handle(handle, [&] { return stream ? (*stream = handle->stream, success) : invalid_value; });
}
LUCID_CUDA int cublasSetPointerMode_v2(Handle* handle, int mode) {
    return with_handle(handle,
                       [&] { return mode == 0 || mode == 1 ? (handle->pointer_mode = mode, success) : invalid_value; });
}
LUCID_CUDA int cublasGetPointerMode_v2(Handle* handle, int* mode) {
    return with_handle(handle, [&] { return mode ? (*mode = handle->pointer_mode, success) : invalid_value; });
}
// One of four modes, and 16 for CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION.
LUCID_CUDA int cublasSetMathMode(Handle* handle, int mode) {
    return with_handle(handle, [&] {
        return (mode & ~16) >= 0 && (mode & ~16) <= 3 ? (handle->math_mode = mode, success) : invalid_value;
    });
}
LUCID_CUDA int cublasGetMathMode(Handle* handle, int* mode) {
    return with_handle(handle, [&] { return mode ? (*mode = handle->math_mode, success) : invalid_value; });
}

LUCID_CUDA int cublasGemmEx(Handle* handle, int transa, int transb, int m, int n, int k, const void* alpha,
                            const void* a, int a_type, int lda, const void* b, int b_type, int ldb, const void* beta,
                            void* c, int c_type, int ldc, int compute, int algorithm) {
    if (!is_algorithm(algorithm)) return not_supported;
    return multiply("cublasGemmEx", handle, transa, transb, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta,
                    c, c_type, ldc, 0, 1, compute);
}
LUCID_CUDA int cublasGemmStridedBatchedEx(Handle* handle, int transa, int transb, int m, int n, int k,
                                          const void* alpha, const void* a, int a_type, int lda, long long a_step,
                                          const void* b, int b_type, int ldb, long long b_step, const void* beta,
                                          void* c, int c_type, int ldc, long long c_step, int count, int compute,
                                          int algorithm) {
    if (!is_algorithm(algorithm)) return not_supported;
    return multiply("cublasGemmStridedBatchedEx", handle, transa, transb, m, n, k, alpha, a, a_type, lda, a_step, b,
                    b_type, ldb, b_step, beta, c, c_type, ldc, c_step, count, compute);
}
LUCID_CUDA int cublasSgemmEx(Handle* handle, int transa, int transb, int m, int n, int k, const float* alpha,
                             const void* a, int a_type, int lda, const void* b, int b_type, int ldb, const float* beta,
                             void* c, int c_type, int ldc) {
    const bool real = a_type != C_32F;
    return multiply("cublasSgemmEx", handle, transa, transb, m, n, k, alpha, a, real ? a_type : -1, lda, 0, b, b_type,
                    ldb, 0, beta, c, c_type, ldc, 0, 1, COMPUTE_32F);
}

#define DEFINE(X, T)                                                                                                   \
    LUCID_CUDA int cublas##X##gemm_v2(Handle* handle, int transa, int transb, int m, int n, int k, const T* alpha,     \
                                      const T* a, int lda, const T* b, int ldb, const T* beta, T* c, int ldc) {        \
        return Product<T, T, T>(transa, transb, m, n, k, a, lda, 0, b, ldb, 0, c, ldc, 0)                              \
            .queue("cublas" #X "gemm", handle, alpha, beta, 1);                                                        \
    }                                                                                                                  \
    LUCID_CUDA int cublas##X##gemmStridedBatched(Handle* handle, int transa, int transb, int m, int n, int k,          \
                                                 const T* alpha, const T* a, int lda, long long a_step, const T* b,    \
                                                 int ldb, long long b_step, const T* beta, T* c, int ldc,              \
                                                 long long c_step, int count) {                                        \
        return Product<T, T, T>(transa, transb, m, n, k, a, lda, a_step, b, ldb, b_step, c, ldc, c_step)               \
            .queue("cublas" #X "gemmStridedBatched", handle, alpha, beta, count);                                      \
    }                                                                                                                  \
    LUCID_CUDA int cublas##X##gemmBatched(Handle* handle, int transa, int transb, int m, int n, int k, const T* alpha, \
                                          const T* const* a, int lda, const T* const* b, int ldb, const T* beta,       \
                                          T* const* c, int ldc, int count) {                                           \
        return Product<T, T, T>(transa, transb, m, n, k, nullptr, lda, 0, nullptr, ldb, 0, nullptr, ldc, 0)            \
            .queue_each("cublas" #X "gemmBatched", handle, alpha, a, b, beta, c, count);                               \
    }
LUCID_ALL_TYPES(DEFINE)
#undef DEFINE
