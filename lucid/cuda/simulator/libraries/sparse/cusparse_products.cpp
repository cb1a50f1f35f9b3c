// Products and sums of the simulated cuSPARSE, and systems with a triangle. Elements are added in the order in which they
// are stored, in the type of the operands.
#include "libraries/sparse/cusparse.h"

namespace lucid_simulator {
namespace {

// C = alpha op(A) op(B) + beta C, where B and C may be vectors.
template <class T>
int multiply(const char* name, Handle* handle, int left, int right, const T* alpha_at, const SparseMatrix& a,
             const DenseMatrix& b, const T* beta_at, const DenseMatrix& c, void* at) {
    SparseCall call(name, handle);
    const bool turned = left != plain, across = right != plain;
    call.expect_operation(left).expect_operation(right);
    call.expect((turned ? a.columns : a.rows) == c.rows &&
                (turned ? a.rows : a.columns) == (across ? b.columns : b.rows));
    call.expect((across ? b.rows : b.columns) == c.columns);
    call.buffer(at).reads_matrix<T>(a);
    const Factor<T> alpha = call.factor(alpha_at), beta = call.factor(beta_at);
    if (call.answer()) return answer(call.answer());
    call.reads(b.stored<const T>());
    if (!beta.surely(T(0))) call.reads(c.stored<const T>());
    call.writes(c.stored<T>());
    return call.queue([=] {
        const T scale = alpha.get(), kept = beta.get();
        const Seen<const T> from(b, right);
        const Seen<T> to(c, plain);
        const int64_t columns = c.columns;
        std::vector<T> sums((size_t)c.rows * columns, T(0));
        const Target into{sums.data(), sizeof(T), c.rows},
            terms{b.values, sizeof(T) * (size_t)from.down, turned ? a.rows : a.columns};
        // the index that is the column of op(A) leads into B
        const bool inner_is_term = a.is_transposed() == turned;
        const bool done = a.each(inner_is_term ? terms : into, inner_is_term ? into : terms,
                                 [&](int64_t row, int64_t column, int64_t place) {
                                     if (turned) std::swap(row, column);
                                     T value = ((const T*)a.values)[place];
                                     if (left == adjoint) value = conjugate(value);
                                     for (int64_t j = 0; j < columns; ++j) {
                                         T term = from(column, j);
                                         if (right == adjoint) term = conjugate(term);
                                         T& sum = sums[row * columns + j];
                                         sum = sum + value * term;
                                     }
                                 });
        for (int64_t i = 0; done && i < c.rows; ++i)
            for (int64_t j = 0; j < columns; ++j) {
                T value = scale * sums[i * columns + j];
                if (!(kept == T(0))) value = value + kept * to(i, j);
                to(i, j) = value;
            }
    });
}

DenseMatrix column_of(const DenseVector& x) {
    return {x.size, 1, std::max<int64_t>(1, x.size), x.values, x.type, column_major};
}

// op(A) C = alpha op(B), where A has a triangle.
template <class T>
int solve(const char* name, Handle* handle, int left, int right, const T* alpha_at, const SparseMatrix& a,
          const DenseMatrix& b, const DenseMatrix& c) {
    SparseCall call(name, handle);
    const bool across = right != plain;
    call.expect_operation(left).expect_operation(right);
    call.expect(a.rows == a.columns && a.rows == c.rows && c.rows == (across ? b.columns : b.rows));
    call.expect(c.columns == (across ? b.rows : b.columns));
    call.reads_matrix<T>(a);
    const Factor<T> alpha = call.factor(alpha_at);
    if (call.answer()) return answer(call.answer());
    call.reads(b.stored<const T>());
    call.writes(c.stored<T>());
    return call.queue([=] {
        const int64_t size = a.rows;
        std::vector<std::vector<std::pair<int64_t, T>>> rows(size);
        std::vector<T> diagonal(size, T(a.diagonal ? 1 : 0));
        const Target any{c.values, sizeof(T), size};
        const bool done = a.each(any, any, [&](int64_t row, int64_t column, int64_t place) {
            T value = ((const T*)a.values)[place];
            if (row == column && !a.diagonal) diagonal[row] = left == adjoint ? conjugate(value) : value;
            if (row == column || (row > column) != (a.fill == lower)) return;
            if (left != plain) std::swap(row, column);
            rows[row].push_back({column, left == adjoint ? conjugate(value) : value});
        });
        if (!done) return;
        const Seen<const T> from(b, right);
        const Seen<T> to(c, plain);
        const bool forward = (a.fill == lower) == (left == plain);
        for (int64_t j = 0; j < c.columns; ++j)
            for (int64_t step = 0; step < size; ++step) {
                const int64_t i = forward ? step : size - 1 - step;
                T sum = alpha.get() * (right == adjoint ? conjugate(from(i, j)) : from(i, j));
                for (const auto& [column, value] : rows[i]) sum = sum - value * to(column, j);
                to(i, j) = sum / diagonal[i];
            }
    });
}

// A matrix in rows with 32-bit indices, as functions with a letter take it.
template <class T> struct Rows {
    const Description* about;
    int count;
    const T* values;
    const int *offsets, *columns;

    void reads(SparseCall& call, int rows, bool with_values) const {
        call.expect(about && count >= 0);
        call.reads_indices(indices_of(offsets, rows + 1)).reads_indices(indices_of(columns, count));
        if (with_values && !call.answer()) call.reads(Vector<const T>{values, count, 1});
    }
    int begin(int row) const { return offsets[row] - about->base; }
    bool is_inside(int row) const {
        const Target places{columns, sizeof(int), count + 1};
        return places.has(begin(row)) && places.has(begin(row + 1));
    }
};

// Calls run(column, place in A or -1, place in B or -1) for the columns of a row that either matrix has, in their order.
template <class T, class Run> bool each_of_both(const Rows<T>& a, const Rows<T>& b, int row, const Run& run) {
    if (!a.is_inside(row) || !b.is_inside(row)) return false;
    int i = a.begin(row), j = b.begin(row);
    const int last = a.begin(row + 1), end = b.begin(row + 1);
    while (i < last || j < end) {
        const int left = i < last ? a.columns[i] - a.about->base : std::numeric_limits<int>::max();
        const int right = j < end ? b.columns[j] - b.about->base : std::numeric_limits<int>::max();
        run(std::min(left, right), left <= right ? i++ : -1, right <= left ? j++ : -1);
    }
    return true;
}

template <class T>
int add(const char* name, Handle* handle, int rows, const T* alpha_at, const Rows<T>& a, const T* beta_at,
        const Rows<T>& b, const Description* about, T* out, const int* offsets, int* columns, void* at) {
    SparseCall call(name, handle);
    call.expect(rows >= 0 && about);
    call.buffer(at);
    a.reads(call, rows, true), b.reads(call, rows, true);
    const Factor<T> alpha = call.factor(alpha_at), beta = call.factor(beta_at);
    call.reads_indices(indices_of(offsets, rows + 1));
    return call.queue([=] {
        const int count = offsets[rows] - offsets[0];
        Ranges found;
        found.writes(Vector<int>{columns, count, 1});
        found.writes(Vector<T>{out, count, 1});
        if (!touch(found.list())) return;
        int next = 0;
        for (int row = 0; row < rows; ++row) {
            const bool done = each_of_both(a, b, row, [&](int column, int i, int j) {
                if (next == count) return;
                T sum = i < 0 ? T(0) : alpha.get() * a.values[i];
                if (j >= 0) sum = sum + beta.get() * b.values[j];
                columns[next] = column + about->base, out[next++] = sum;
            });
            if (!done) return;
        }
    });
}

// The product of two matrices in rows, between the calls that make it.
struct Product {
    std::vector<int64_t> offsets, columns;
    std::vector<char> values;
};

template <class T> bool compute(const SparseMatrix& a, const SparseMatrix& b, T alpha, Product& made) {
    const Target places{b.minor.data, b.minor.element(), b.count};
    const Target rows{b.major.data, b.major.element(), b.rows}, columns{a.values, sizeof(T), a.rows};
    std::vector<std::vector<std::pair<int64_t, T>>> products(a.rows);
    bool inside = true;
    inside &= a.each(rows, columns, [&](int64_t row, int64_t term, int64_t place) {
        const T value = alpha * ((const T*)a.values)[place];
        for (int64_t other = b.major[term] - b.base; inside && other < b.major[term + 1] - b.base; ++other)
            if ((inside = places.has(other)))
                products[row].push_back({b.minor[other] - b.base, value * ((const T*)b.values)[other]});
    });
    made.offsets.assign(1, 0), made.columns.clear();
    std::vector<T> values;
    for (auto& row : products) {
        std::stable_sort(row.begin(), row.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
        const size_t begin = values.size();
        for (const auto& [column, value] : row) {
            if (values.size() > begin && made.columns.back() == column)
                values.back() = values.back() + value;
            else
                made.columns.push_back(column), values.push_back(value);
        }
        made.offsets.push_back((int64_t)values.size());
    }
    made.values.assign((const char*)values.data(), (const char*)(values.data() + values.size()));
    return inside;
}

}  // namespace
}  // namespace lucid_simulator

using namespace lucid_simulator;

LUCID_CUDA int cusparseSpMV_bufferSize(Handle* handle, int, const void*, const SparseMatrix*, const DenseVector*,
                                       const void*, const DenseVector*, int, int, size_t* size) {
    return buffer_of(handle, size);
}
LUCID_CUDA int cusparseSpMV(Handle* handle, int operation, const void* alpha, const SparseMatrix* a,
                            const DenseVector* x, const void* beta, const DenseVector* y, int type, int, void* at) {
    if (a->type != type || x->type != type || y->type != type) return answer(not_supported);
    return with_values(type, [&](auto* null) {
        LUCID_VALUES(T, null);
        return multiply("cusparseSpMV", handle, operation, plain, (const T*)alpha, *a, column_of(*x), (const T*)beta,
                        column_of(*y), at);
    });
}
LUCID_CUDA int cusparseSpMM_bufferSize(Handle* handle, int, int, const void*, const SparseMatrix*, const DenseMatrix*,
                                       const void*, const DenseMatrix*, int, int, size_t* size) {
    return buffer_of(handle, size);
}
LUCID_CUDA int cusparseSpMM(Handle* handle, int left, int right, const void* alpha, const SparseMatrix* a,
                            const DenseMatrix* b, const void* beta, const DenseMatrix* c, int type, int, void* at) {
    if (a->type != type || b->type != type || c->type != type) return answer(not_supported);
    return with_values(type, [&](auto* null) {
        LUCID_VALUES(T, null);
        return multiply("cusparseSpMM", handle, left, right, (const T*)alpha, *a, *b, (const T*)beta, *c, at);
    });
}

LUCID_CUDA int cusparseSpSM_createDescr(int** out) { return *out = new int(0), success; }
LUCID_CUDA int cusparseSpSM_destroyDescr(const int* made) { return delete made, success; }
LUCID_CUDA int cusparseSpSM_bufferSize(Handle* handle, int, int, const void*, const SparseMatrix*, const DenseMatrix*,
                                       const DenseMatrix*, int, int, const int*, size_t* size) {
    return buffer_of(handle, size);
}
LUCID_CUDA int cusparseSpSM_analysis(Handle* handle, int, int, const void*, const SparseMatrix*, const DenseMatrix*,
                                     const DenseMatrix*, int, int, int* made, void* at) {
    SparseCall call("cusparseSpSM_analysis", handle);
    return *made = 1, call.buffer(at).queue([] {});
}
LUCID_CUDA int cusparseSpSM_solve(Handle* handle, int left, int right, const void* alpha, const SparseMatrix* a,
                                  const DenseMatrix* b, const DenseMatrix* c, int type, int, const int* analysed) {
    if (a->type != type || b->type != type || c->type != type) return answer(not_supported);
    if (!*analysed) return answer(invalid_value);
    return with_values(type, [&](auto* null) {
        LUCID_VALUES(T, null);
        return solve("cusparseSpSM_solve", handle, left, right, (const T*)alpha, *a, *b, *c);
    });
}

LUCID_CUDA int cusparseXcsrgeam2Nnz(Handle* handle, int rows, int, const Description* of_a, int count_a,
                                    const int* offsets_a, const int* columns_a, const Description* of_b, int count_b,
                                    const int* offsets_b, const int* columns_b, const Description* about, int* offsets,
                                    int* count, void* at) {
    SparseCall call("cusparseXcsrgeam2Nnz", handle);
    const Rows<float> a{of_a, count_a, nullptr, offsets_a, columns_a}, b{of_b, count_b, nullptr, offsets_b, columns_b};
    call.expect(rows >= 0 && about);
    call.buffer(at).writes_indices(indices_of(offsets, rows + 1));
    a.reads(call, rows, false), b.reads(call, rows, false);
    return call.tell(count, [=] {
        int all = 0;
        offsets[0] = about->base;
        for (int row = 0; row < rows; ++row) {
            if (!each_of_both(a, b, row, [&](int, int, int) { ++all; })) return 0;
            offsets[row + 1] = all + about->base;
        }
        return all;
    });
}
#define LUCID_ADD(X, T)                                                                                                \
    LUCID_CUDA int cusparse##X##csrgeam2_bufferSizeExt(Handle* handle, int, int, const T*, const Description*, int,    \
                                                       const T*, const int*, const int*, const T*, const Description*, \
                                                       int, const T*, const int*, const int*, const Description*,      \
                                                       const T*, const int*, const int*, size_t* size) {               \
        return buffer_of(handle, size);                                                                                \
    }                                                                                                                  \
    LUCID_CUDA int cusparse##X##csrgeam2(Handle* handle, int rows, int, const T* alpha, const Description* of_a,       \
                                         int count_a, const T* a, const int* offsets_a, const int* columns_a,          \
                                         const T* beta, const Description* of_b, int count_b, const T* b,              \
                                         const int* offsets_b, const int* columns_b, const Description* about, T* out, \
                                         const int* offsets, int* columns, void* at) {                                 \
        return add("cusparse" #X "csrgeam2", handle, rows, alpha, Rows<T>{of_a, count_a, a, offsets_a, columns_a},     \
                   beta, Rows<T>{of_b, count_b, b, offsets_b, columns_b}, about, out, offsets, columns, at);           \
    }
LUCID_REAL_TYPES(LUCID_ADD)
LUCID_COMPLEX_TYPES(LUCID_ADD)

LUCID_CUDA int cusparseSpGEMM_createDescr(Product** out) { return *out = new Product, success; }
LUCID_CUDA int cusparseSpGEMM_destroyDescr(const Product* made) { return delete made, success; }
LUCID_CUDA int cusparseSpGEMM_workEstimation(Handle* handle, int, int, const void*, const SparseMatrix*,
                                             const SparseMatrix*, const void*, const SparseMatrix*, int, int, Product*,
                                             size_t* size, void* at) {
    if (!at) return buffer_of(handle, size);
    SparseCall call("cusparseSpGEMM_workEstimation", handle);
    return call.buffer(at).queue([] {});
}
// The product, of which the host is told the number of elements by the description of C.
LUCID_CUDA int cusparseSpGEMM_compute(Handle* handle, int left, int right, const void* alpha_at, const SparseMatrix* a,
                                      const SparseMatrix* b, const void*, SparseMatrix* c, int type, int, Product* made,
                                      size_t* size, void* at) {
    if (!at) return buffer_of(handle, size);
    if (a->type != type || b->type != type || c->type != type) return answer(not_supported);
    if (left != plain || right != plain || a->format != by_rows || b->format != by_rows) return answer(not_supported);
    return with_values(type, [&](auto* null) {
        LUCID_VALUES(T, null);
        SparseCall call("cusparseSpGEMM_compute", handle);
        call.expect(a->columns == b->rows && a->rows == c->rows && b->columns == c->columns);
        call.buffer(at);
        for (const SparseMatrix* x : {a, b}) call.reads_matrix<T>(*x);
        const Factor<T> alpha = call.factor((const T*)alpha_at);
        c->count = 0;
        return call.tell_host(&c->count, [=, x = *a, y = *b] {
            return compute<T>(x, y, alpha.get(), *made) ? (int64_t)made->columns.size() : 0;
        });
    });
}
LUCID_CUDA int cusparseSpGEMM_copy(Handle* handle, int, int, const void*, const SparseMatrix*, const SparseMatrix*,
                                   const void*, SparseMatrix* c, int type, int, const Product* made) {
    return with_values(type, [&](auto* null) {
        LUCID_VALUES(T, null);
        SparseCall call("cusparseSpGEMM_copy", handle);
        c->minor.count = c->count;
        call.writes_indices(c->major).writes_indices(c->minor);
        if (!call.answer()) call.writes(Vector<T>{(T*)c->values, (ptrdiff_t)c->count, 1});
        return call.queue([=, product = *made, to = *c] {
            for (size_t i = 0; i < product.offsets.size(); ++i) to.major.set(i, product.offsets[i] + to.base);
            for (size_t i = 0; i < product.columns.size(); ++i) to.minor.set(i, product.columns[i] + to.base);
            std::memcpy(to.values, product.values.data(), product.values.size());
        });
    });
}
