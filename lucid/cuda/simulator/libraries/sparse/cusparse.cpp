// libcusparse of the simulated device, as cupyx.scipy.sparse calls it: handles, descriptions and sorting. What is refused
// is in cusparse_absent.cpp.
//
// What a buffer holds is garbage afterwards. An index that leads out of an operand is reported as the access it makes.
#include "libraries/sparse/cusparse.h"

#include <numeric>

namespace lucid_simulator {
namespace {

template <class T> int drop(const T* made) {
    delete made;
    return success;
}
template <class T> int describe(T** out, const T& made, bool valid) {
    if (!out || !valid) return answer(invalid_value);
    return *out = new T(made), success;
}
template <class T> void put(T* out, T value) {
    if (out) *out = value;
}

// Sorts the elements of vectors that belong together, by `less` of the numbers of two of them.
template <class Less> std::vector<int> order_of(int64_t count, const Less& less) {
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), less);
    return order;
}
void reorder(int* x, const std::vector<int>& order) {
    if (!x) return;
    const std::vector<int> before(x, x + order.size());
    for (size_t i = 0; i < order.size(); ++i) x[i] = before[order[i]];
}

int sort_pairs(const char* name, Handle* handle, int64_t count, int* first, int* second, int* permutation, void* at) {
    SparseCall call(name, handle);
    call.expect(count >= 0).expect(!count || (first && second));
    call.buffer(at);
    for (int* x : {first, second, permutation})
        if (x) call.writes_indices(indices_of(x, count));
    return call.queue([=] {
        const auto order = order_of(
            count, [=](int a, int b) { return first[a] != first[b] ? first[a] < first[b] : second[a] < second[b]; });
        for (int* x : {first, second, permutation}) reorder(x, order);
    });
}

int sort_rows(const char* name, Handle* handle, int rows, int64_t count, const Description* about, const int* offsets,
              int* indices, int* permutation, void* at) {
    SparseCall call(name, handle);
    call.expect(rows >= 0 && count >= 0 && about);
    call.buffer(at).reads_indices(indices_of(offsets, rows + 1)).writes_indices(indices_of(indices, count));
    if (permutation) call.writes_indices(indices_of(permutation, count));
    return call.queue([=] {
        const Target places{indices, sizeof(int), count + 1};
        for (int row = 0; row < rows; ++row) {
            const int begin = offsets[row] - about->base, size = offsets[row + 1] - offsets[row];
            if (!places.has(begin) || !places.has(begin + size) || size < 0) return;
            const auto order = order_of(size, [=](int a, int b) { return indices[begin + a] < indices[begin + b]; });
            reorder(indices + begin, order);
            if (permutation) reorder(permutation + begin, order);
        }
    });
}

}  // namespace
}  // namespace lucid_simulator

using namespace lucid_simulator;

// ---- handles ----

LUCID_CUDA int cusparseCreate(Handle** handle) { return answer(make_handle(handle)); }
LUCID_CUDA int cusparseDestroy(Handle* handle) { return answer(drop_handle(handle)); }
LUCID_CUDA int cusparseGetVersion(const Handle*, int* out) { return *out = LUCID_VERSION, success; }
LUCID_CUDA int cusparseSetStream(Handle* handle, void* stream) {
    return with_handle(handle, [&] { return handle->stream = stream, (int)success; });
}
LUCID_CUDA int cusparseGetStream(Handle* handle, void** out) {
    return with_handle(handle, [&] { return *out = handle->stream, (int)success; });
}
LUCID_CUDA int cusparseSetPointerMode(Handle* handle, int mode) {
    return with_handle(handle, [&] { return handle->pointer_mode = mode, (int)success; });
}
LUCID_CUDA int cusparseGetPointerMode(Handle* handle, int* out) {
    return with_handle(handle, [&] { return *out = handle->pointer_mode, (int)success; });
}

// ---- descriptions ----

LUCID_CUDA int cusparseCreateMatDescr(Description** out) { return describe(out, Description{}, true); }
LUCID_CUDA int cusparseDestroyMatDescr(const Description* made) { return drop(made); }
LUCID_CUDA int cusparseSetMatType(Description* x, int type) { return x->type = type, success; }
LUCID_CUDA int cusparseSetMatFillMode(Description* x, int fill) { return x->fill = fill, success; }
LUCID_CUDA int cusparseSetMatDiagType(Description* x, int diagonal) { return x->diagonal = diagonal, success; }
LUCID_CUDA int cusparseSetMatIndexBase(Description* x, int base) { return x->base = base, success; }

LUCID_CUDA int cusparseCreateSpVec(SparseVector** out, int64_t size, int64_t count, void* indices, void* values,
                                   int index, int base, int type) {
    return describe(out, {size, count, {indices, count, index}, values, base, type},
                    size >= count && count >= 0 && Indices::is_known(index));
}
LUCID_CUDA int cusparseDestroySpVec(const SparseVector* made) { return drop(made); }
LUCID_CUDA int cusparseSpVecGet(const SparseVector* x, int64_t* size, int64_t* count, void** indices, void** values,
                                int* index, int* base, int* type) {
    put(size, x->size), put(count, x->count), put(indices, x->indices.data), put(values, x->values);
    put(index, x->indices.type), put(base, x->base), put(type, x->type);
    return success;
}
LUCID_CUDA int cusparseSpVecGetIndexBase(const SparseVector* x, int* out) { return *out = x->base, success; }
LUCID_CUDA int cusparseSpVecGetValues(const SparseVector* x, void** out) { return *out = x->values, success; }
LUCID_CUDA int cusparseSpVecSetValues(SparseVector* x, void* values) { return x->values = values, success; }
LUCID_CUDA int cusparseCreateDnVec(DenseVector** out, int64_t size, void* values, int type) {
    return describe(out, {size, values, type}, size >= 0);
}
LUCID_CUDA int cusparseDestroyDnVec(const DenseVector* made) { return drop(made); }
LUCID_CUDA int cusparseDnVecGet(const DenseVector* x, int64_t* size, void** values, int* type) {
    put(size, x->size), put(values, x->values), put(type, x->type);
    return success;
}
LUCID_CUDA int cusparseDnVecGetValues(const DenseVector* x, void** out) { return *out = x->values, success; }
LUCID_CUDA int cusparseDnVecSetValues(DenseVector* x, void* values) { return x->values = values, success; }
LUCID_CUDA int cusparseCreateDnMat(DenseMatrix** out, int64_t rows, int64_t columns, int64_t line, void* values,
                                   int type, int order) {
    const DenseMatrix made{rows, columns, line, values, type, order};
    return describe(out, made, made.is_valid());
}
LUCID_CUDA int cusparseDestroyDnMat(const DenseMatrix* made) { return drop(made); }
LUCID_CUDA int cusparseDnMatGet(const DenseMatrix* x, int64_t* rows, int64_t* columns, int64_t* line, void** values,
                                int* type, int* order) {
    put(rows, x->rows), put(columns, x->columns), put(line, x->line), put(values, x->values);
    put(type, x->type), put(order, x->order);
    return success;
}

LUCID_CUDA int cusparseDnMatGetValues(const DenseMatrix* x, void** out) { return *out = x->values, success; }
LUCID_CUDA int cusparseDnMatSetValues(DenseMatrix* x, void* values) { return x->values = values, success; }

static int describe_sparse(SparseMatrix** out, int format, int64_t rows, int64_t columns, int64_t count, void* major,
                           void* minor, void* values, int major_type, int minor_type, int base, int type) {
    const bool valid = rows >= 0 && columns >= 0 && count >= 0 && (base == 0 || base == 1);
    const int64_t majors = SparseMatrix::majors(format, rows, columns, count);
    return describe(
        out,
        {format, rows, columns, count, {major, majors, major_type}, {minor, count, minor_type}, values, base, type},
        valid && Indices::is_known(major_type) && Indices::is_known(minor_type));
}
LUCID_CUDA int cusparseCreateCsr(SparseMatrix** out, int64_t rows, int64_t columns, int64_t count, void* major,
                                 void* minor, void* values, int major_type, int minor_type, int base, int type) {
    return describe_sparse(out, by_rows, rows, columns, count, major, minor, values, major_type, minor_type, base,
                           type);
}
LUCID_CUDA int cusparseCreateCsc(SparseMatrix** out, int64_t rows, int64_t columns, int64_t count, void* major,
                                 void* minor, void* values, int major_type, int minor_type, int base, int type) {
    return describe_sparse(out, by_columns, rows, columns, count, major, minor, values, major_type, minor_type, base,
                           type);
}
LUCID_CUDA int cusparseCreateCoo(SparseMatrix** out, int64_t rows, int64_t columns, int64_t count, void* major,
                                 void* minor, void* values, int index, int base, int type) {
    return describe_sparse(out, by_both, rows, columns, count, major, minor, values, index, index, base, type);
}
LUCID_CUDA int cusparseDestroySpMat(const SparseMatrix* made) { return drop(made); }
LUCID_CUDA int cusparseCsrGet(const SparseMatrix* x, int64_t* rows, int64_t* columns, int64_t* count, void** major,
                              void** minor, void** values, int* major_type, int* minor_type, int* base, int* type) {
    put(rows, x->rows), put(columns, x->columns), put(count, x->count), put(major, x->major.data);
    put(minor, x->minor.data), put(values, x->values), put(major_type, x->major.type);
    put(minor_type, x->minor.type), put(base, x->base), put(type, x->type);
    return success;
}
LUCID_CUDA int cusparseCooGet(const SparseMatrix* x, int64_t* rows, int64_t* columns, int64_t* count, void** major,
                              void** minor, void** values, int* index, int* base, int* type) {
    return cusparseCsrGet(x, rows, columns, count, major, minor, values, index, nullptr, base, type);
}
LUCID_CUDA int cusparseCsrSetPointers(SparseMatrix* x, void* major, void* minor, void* values) {
    x->major.data = major, x->minor.data = minor, x->values = values;
    return success;
}
LUCID_CUDA int cusparseSpMatGetSize(const SparseMatrix* x, int64_t* rows, int64_t* columns, int64_t* count) {
    return put(rows, x->rows), put(columns, x->columns), put(count, x->count), success;
}
LUCID_CUDA int cusparseSpMatGetFormat(const SparseMatrix* x, int* out) { return *out = x->format, success; }
LUCID_CUDA int cusparseSpMatGetIndexBase(const SparseMatrix* x, int* out) { return *out = x->base, success; }
LUCID_CUDA int cusparseSpMatGetValues(const SparseMatrix* x, void** out) { return *out = x->values, success; }
LUCID_CUDA int cusparseSpMatSetValues(SparseMatrix* x, void* values) { return x->values = values, success; }
LUCID_CUDA int cusparseSpMatSetAttribute(SparseMatrix* x, int attribute, const int* value, size_t size) {
    if (size != sizeof(int) || attribute < 0 || attribute > 1) return answer(invalid_value);
    return (attribute ? x->diagonal : x->fill) = *value, success;
}

// ---- sorting ----

LUCID_CUDA int cusparseCreateIdentityPermutation(Handle* handle, int count, int* out) {
    SparseCall call("cusparseCreateIdentityPermutation", handle);
    call.writes_indices(indices_of(out, count));
    return call.queue([=] { std::iota(out, out + count, 0); });
}
LUCID_CUDA int cusparseXcoosort_bufferSizeExt(Handle* handle, int, int, int, const int*, const int*, size_t* size) {
    return buffer_of(handle, size);
}
LUCID_CUDA int cusparseXcoosortByRow(Handle* handle, int, int, int count, int* rows, int* columns, int* permutation,
                                     void* at) {
    return sort_pairs("cusparseXcoosortByRow", handle, count, rows, columns, permutation, at);
}
LUCID_CUDA int cusparseXcoosortByColumn(Handle* handle, int, int, int count, int* rows, int* columns, int* permutation,
                                        void* at) {
    return sort_pairs("cusparseXcoosortByColumn", handle, count, columns, rows, permutation, at);
}
LUCID_CUDA int cusparseXcsrsort_bufferSizeExt(Handle* handle, int, int, int, const int*, const int*, size_t* size) {
    return buffer_of(handle, size);
}
LUCID_CUDA int cusparseXcsrsort(Handle* handle, int rows, int, int count, const Description* about, const int* offsets,
                                int* columns, int* permutation, void* at) {
    return sort_rows("cusparseXcsrsort", handle, rows, count, about, offsets, columns, permutation, at);
}
LUCID_CUDA int cusparseXcscsort_bufferSizeExt(Handle* handle, int, int, int, const int*, const int*, size_t* size) {
    return buffer_of(handle, size);
}
LUCID_CUDA int cusparseXcscsort(Handle* handle, int, int columns, int count, const Description* about,
                                const int* offsets, int* rows, int* permutation, void* at) {
    return sort_rows("cusparseXcscsort", handle, columns, count, about, offsets, rows, permutation, at);
}
LUCID_CUDA int cusparseGather(Handle* handle, const DenseVector* from, const SparseVector* to) {
    if (from->type != to->type) return answer(not_supported);
    return with_values(from->type, [&](auto* null) {
        LUCID_VALUES(T, null);
        SparseCall call("cusparseGather", handle);
        call.reads_indices(to->indices);
        call.reads(Vector<const T>{(const T*)from->values, (ptrdiff_t)from->size, 1});
        call.writes(Vector<T>{(T*)to->values, (ptrdiff_t)to->count, 1});
        return call.queue([=, x = *from, y = *to] {
            const Target values{x.values, sizeof(T), x.size};
            for (int64_t i = 0; i < y.count; ++i)
                if (const int64_t place = y.indices[i] - y.base; values.has(place))
                    ((T*)y.values)[i] = ((const T*)x.values)[place];
        });
    });
}

// ---- conversion ----

LUCID_CUDA int cusparseXcoo2csr(Handle* handle, const int* rows, int count, int number, int* offsets, int base) {
    SparseCall call("cusparseXcoo2csr", handle);
    call.expect(count >= 0 && number >= 0);
    call.reads_indices(indices_of(rows, count)).writes_indices(indices_of(offsets, number + 1));
    return call.queue([=] {
        for (int row = 0; row <= number; ++row)
            offsets[row] = base + (int)(std::lower_bound(rows, rows + count, row + base) - rows);
    });
}
LUCID_CUDA int cusparseXcsr2coo(Handle* handle, const int* offsets, int count, int number, int* rows, int base) {
    SparseCall call("cusparseXcsr2coo", handle);
    call.expect(count >= 0 && number >= 0);
    call.reads_indices(indices_of(offsets, number + 1)).writes_indices(indices_of(rows, count));
    return call.queue([=] {
        const Target places{rows, sizeof(int), count};
        for (int row = 0; row < number; ++row)
            for (int place = offsets[row] - base; place < offsets[row + 1] - base; ++place) {
                if (!places.has(place)) return;
                rows[place] = row + base;
            }
    });
}
