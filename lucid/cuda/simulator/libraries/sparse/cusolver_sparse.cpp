// Sparse systems of the simulated cuSOLVER: what cupyx.scipy.sparse.linalg.spsolve calls. By elimination in a dense matrix.
#include "libraries/sparse/cusparse.h"
#include "libraries/elimination.h"

namespace lucid_simulator {
namespace {

template <class T>
int solve(const char* name, Handle* handle, int size, int count, const Description* about, const T* values,
          const int* offsets, const int* columns, const T* b, Real<T> tolerance, T* x, int* singular) {
    SparseCall call(name, handle);
    call.expect(size >= 0 && count >= 0 && about && singular);
    if (call.answer()) return answer(call.answer());
    const SparseMatrix a{
        by_rows,       size,        size, count, indices_of(offsets, size + 1), indices_of(columns, count),
        (void*)values, about->base, 0};
    call.reads_matrix<T>(a);
    call.reads(Vector<const T>{b, size, 1});
    call.writes(Vector<T>{x, size, 1});
    return call.tell_host(singular, [=] {
        std::vector<T> dense((size_t)size * size, T(0));
        std::vector<int> pivots(size);
        const Matrix<T> factors{dense.data(), size, size, std::max(1, size)};
        const Target inside{b, sizeof(T), size};
        const bool done = a.each(inside, inside, [&](int64_t row, int64_t column, int64_t place) {
            factors(row, column) = factors(row, column) + values[place];
        });
        if (!done) return -1;
        factorise(factors, pivots.data());
        for (int i = 0; i < size; ++i) x[i] = b[i];
        solve_factorised(Matrix<const T>{dense.data(), size, size, std::max(1, size)}, pivots.data(), plain,
                         [=](int i) -> T& { return x[i]; });
        for (int i = 0; i < size; ++i)
            if (magnitude(factors(i, i)) <= tolerance) return i;
        return -1;
    });
}

}  // namespace
}  // namespace lucid_simulator

using namespace lucid_simulator;

LUCID_CUDA int cusolverSpCreate(Handle** handle) { return answer(make_handle(handle)); }
LUCID_CUDA int cusolverSpDestroy(Handle* handle) { return answer(drop_handle(handle)); }
LUCID_CUDA int cusolverSpSetStream(Handle* handle, void* stream) {
    return with_handle(handle, [&] { return handle->stream = stream, (int)success; });
}
LUCID_CUDA int cusolverSpGetStream(Handle* handle, void** out) {
    return with_handle(handle, [&] { return *out = handle->stream, (int)success; });
}

#define LUCID_SOLVE(X, T)                                                                                            \
    LUCID_CUDA int cusolverSp##X##csrlsvqr(Handle* handle, int size, int count, const Description* about,            \
                                           const T* values, const int* offsets, const int* columns, const T* b,      \
                                           Real<T> tolerance, int, T* x, int* singular) {                            \
        return solve("cusolverSp" #X "csrlsvqr", handle, size, count, about, values, offsets, columns, b, tolerance, \
                     x, singular);                                                                                   \
    }
LUCID_REAL_TYPES(LUCID_SOLVE)
LUCID_COMPLEX_TYPES(LUCID_SOLVE)
