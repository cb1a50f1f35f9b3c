// Conversions of the simulated cuSPARSE: between formats, to and from dense matrices, and without what is near zero.
#include <numeric>

#include "libraries/sparse/cusparse.h"

namespace lucid_simulator {
namespace {

template <class T> bool is_kept(T x, T tolerance) { return !(magnitude(x) <= magnitude(tolerance)); }

template <class T>
int count_kept(const char* name, Handle* handle, int rows, const Description* about, const T* values,
               const int* offsets, int* of_rows, int* count, T tolerance) {
    SparseCall call(name, handle);
    call.expect(rows >= 0 && about);
    call.reads_indices(indices_of(offsets, rows + 1)).writes_indices(indices_of(of_rows, rows));
    return call.tell(count, [=] {
        const int first = rows ? offsets[0] : 0, last = rows ? offsets[rows] : 0, base = about->base;
        Ranges found;
        found.reads(Vector<const T>{values + first - base, last - first, 1});
        if (!touch(found.list())) return 0;
        int all = 0;
        for (int row = 0; row < rows; ++row) {
            of_rows[row] = 0;
            for (int place = offsets[row]; place < offsets[row + 1]; ++place)
                of_rows[row] += is_kept(values[place - base], tolerance);
            all += of_rows[row];
        }
        return all;
    });
}

template <class T>
int keep(const char* name, Handle* handle, int rows, const Description* about, const T* values, const int* indices,
         const int* offsets, int count, const int* of_rows, T* out, int* out_indices, int* out_offsets, T tolerance) {
    SparseCall call(name, handle);
    call.expect(rows >= 0 && count >= 0 && about);
    call.reads_indices(indices_of(offsets, rows + 1)).reads_indices(indices_of(indices, count));
    call.reads_indices(indices_of(of_rows, rows)).writes_indices(indices_of(out_offsets, rows + 1));
    if (!call.answer()) call.reads(Vector<const T>{values, count, 1});
    return call.queue([=] {
        const int base = about->base, kept = std::accumulate(of_rows, of_rows + rows, 0);
        Ranges found;
        found.writes(Vector<int>{out_indices, kept, 1});
        found.writes(Vector<T>{out, kept, 1});
        if (!touch(found.list())) return;
        const Target places{values, sizeof(T), count}, left{out, sizeof(T), kept};
        int next = 0;
        for (int row = 0; row < rows; ++row) {
            out_offsets[row] = next + base;
            for (int place = offsets[row] - base; place < offsets[row + 1] - base; ++place) {
                if (!places.has(place)) return;
                if (!is_kept(values[place], tolerance)) continue;
                if (!left.has(next)) return;
                out[next] = values[place], out_indices[next++] = indices[place];
            }
        }
        out_offsets[rows] = next + base;
    });
}

// Elements of a dense matrix that are not zeros, in the order of the format.
template <class T, class Run> void each_nonzero(const DenseMatrix& x, const SparseMatrix& y, const Run& run) {
    const Seen<const T> at(x, plain);
    const bool turned = y.is_transposed();
    for (int64_t outer = 0; outer < (turned ? x.columns : x.rows); ++outer)
        for (int64_t inner = 0; inner < (turned ? x.rows : x.columns); ++inner) {
            const T value = turned ? at(inner, outer) : at(outer, inner);
            if (!(value == T(0))) run(outer, inner, value);
        }
}

}  // namespace
}  // namespace lucid_simulator

using namespace lucid_simulator;

LUCID_CUDA int cusparseCsr2cscEx2_bufferSize(Handle* handle, int, int, int, const void*, const int*, const int*, void*,
                                             int*, int*, int, int, int, int, size_t* size) {
    return buffer_of(handle, size);
}
LUCID_CUDA int cusparseCsr2cscEx2(Handle* handle, int rows, int columns, int count, const void* values,
                                  const int* offsets, const int* indices, void* out, int* out_offsets, int* out_indices,
                                  int type, int with_them, int base, int, void* at) {
    return with_values(type, [&](auto* null) {
        LUCID_VALUES(T, null);
        SparseCall call("cusparseCsr2cscEx2", handle);
        call.expect(rows >= 0 && columns >= 0 && count >= 0);
        const SparseMatrix x{
            by_rows,       rows, columns, count, indices_of(offsets, rows + 1), indices_of(indices, count),
            (void*)values, base, type};
        call.buffer(at).reads_matrix<T>(x);
        call.writes_indices(indices_of(out_offsets, columns + 1)).writes_indices(indices_of(out_indices, count));
        if (!call.answer() && with_them) call.writes(Vector<T>{(T*)out, count, 1});
        return call.queue([=] {
            const Target into{out_offsets, sizeof(int), columns}, any{nullptr, 1, rows};
            std::vector<int> next(columns + 1);
            if (!x.each(into, any, [&](int64_t, int64_t column, int64_t) { ++next[column + 1]; })) return;
            std::partial_sum(next.begin(), next.end(), next.begin());
            for (int column = 0; column <= columns; ++column) out_offsets[column] = next[column] + base;
            x.each(into, any, [&](int64_t row, int64_t column, int64_t place) {
                const int to = next[column]++;
                out_indices[to] = (int)row + base;
                if (with_them) ((T*)out)[to] = ((const T*)values)[place];
            });
        });
    });
}

#define LUCID_COMPRESS(X, T)                                                                                          \
    LUCID_CUDA int cusparse##X##nnz_compress(Handle* handle, int rows, const Description* about, const T* values,     \
                                             const int* offsets, int* of_rows, int* count, T tolerance) {             \
        return count_kept("cusparse" #X "nnz_compress", handle, rows, about, values, offsets, of_rows, count,         \
                          tolerance);                                                                                 \
    }                                                                                                                 \
    LUCID_CUDA int cusparse##X##csr2csr_compress(                                                                     \
        Handle* handle, int rows, int, const Description* about, const T* values, const int* indices,                 \
        const int* offsets, int count, const int* of_rows, T* out, int* out_indices, int* out_offsets, T tolerance) { \
        return keep("cusparse" #X "csr2csr_compress", handle, rows, about, values, indices, offsets, count, of_rows,  \
                    out, out_indices, out_offsets, tolerance);                                                        \
    }
LUCID_REAL_TYPES(LUCID_COMPRESS)
LUCID_COMPLEX_TYPES(LUCID_COMPRESS)

LUCID_CUDA int cusparseSparseToDense_bufferSize(Handle* handle, const SparseMatrix*, const DenseMatrix*, int,
                                                size_t* size) {
    return buffer_of(handle, size);
}
LUCID_CUDA int cusparseSparseToDense(Handle* handle, const SparseMatrix* from, const DenseMatrix* to, int, void* at) {
    if (from->type != to->type) return answer(not_supported);
    return with_values(from->type, [&](auto* null) {
        LUCID_VALUES(T, null);
        SparseCall call("cusparseSparseToDense", handle);
        call.expect(from->rows == to->rows && from->columns == to->columns);
        call.buffer(at).reads_matrix<T>(*from);
        if (!call.answer()) call.writes(to->stored<T>());
        return call.queue([=, x = *from, y = *to] {
            const Seen<T> out(y, plain);
            for (int64_t j = 0; j < y.columns; ++j)
                for (int64_t i = 0; i < y.rows; ++i) out(i, j) = T(0);
            const bool turned = x.is_transposed();
            const Target rows{y.values, sizeof(T) * (size_t)out.down, x.rows};
            const Target columns{y.values, sizeof(T) * (size_t)out.along, x.columns};
            x.each(turned ? rows : columns, turned ? columns : rows, [&](int64_t row, int64_t column, int64_t place) {
                out(row, column) = out(row, column) + ((const T*)x.values)[place];
            });
        });
    });
}

LUCID_CUDA int cusparseDenseToSparse_bufferSize(Handle* handle, const DenseMatrix*, const SparseMatrix*, int,
                                                size_t* size) {
    return buffer_of(handle, size);
}
// Counts the elements, which the host is told by the description.
LUCID_CUDA int cusparseDenseToSparse_analysis(Handle* handle, const DenseMatrix* from, SparseMatrix* to, int,
                                              void* at) {
    if (from->type != to->type) return answer(not_supported);
    return with_values(from->type, [&](auto* null) {
        LUCID_VALUES(T, null);
        SparseCall call("cusparseDenseToSparse_analysis", handle);
        call.expect(from->rows == to->rows && from->columns == to->columns);
        call.buffer(at);
        if (!call.answer()) call.reads(from->stored<const T>());
        if (to->format != by_both) call.writes_indices(to->major);
        to->count = 0;
        return call.tell_host(&to->count, [=, x = *from, y = *to] {
            int64_t count = 0, outer = 0;
            const bool compressed = y.format != by_both;
            each_nonzero<T>(x, y, [&](int64_t now, int64_t, T) {
                for (; compressed && outer <= now; ++outer) y.major.set(outer, count + y.base);
                ++count;
            });
            for (; compressed && outer < y.major.count; ++outer) y.major.set(outer, count + y.base);
            return count;
        });
    });
}
LUCID_CUDA int cusparseDenseToSparse_convert(Handle* handle, const DenseMatrix* from, const SparseMatrix* to, int,
                                             void* at) {
    if (from->type != to->type) return answer(not_supported);
    return with_values(from->type, [&](auto* null) {
        LUCID_VALUES(T, null);
        SparseCall call("cusparseDenseToSparse_convert", handle);
        call.expect(from->rows == to->rows && from->columns == to->columns);
        call.buffer(at).writes_indices(to->minor);
        if (to->format == by_both) call.writes_indices(to->major);
        if (!call.answer()) call.reads(from->stored<const T>());
        if (!call.answer()) call.writes(Vector<T>{(T*)to->values, (ptrdiff_t)to->count, 1});
        return call.queue([=, x = *from, y = *to] {
            int64_t next = 0;
            each_nonzero<T>(x, y, [&](int64_t outer, int64_t inner, T value) {
                if (next == y.count) return;
                if (y.format == by_both) y.major.set(next, outer + y.base);
                y.minor.set(next, inner + y.base);
                ((T*)y.values)[next++] = value;
            });
        });
    });
}
