// The sorts that are compiled into CuPy's thrust module, which calls these in their place: names and parameters are its
// own (cupy/cuda/cupy_thrust.h). NaN comes last, whatever its sign, as on a GPU, where no arithmetic gives a negative
// one; on x86 it does. What Thrust takes as scratch from `memory`, CuPy's pool, is not needed here.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "libraries/numbers.h"
#include "host/queue.h"

using namespace lucid_simulator;

namespace {

template <class T> bool is_less(T a, T b) { return b != b ? a == a : a < b; }
// R + Ri, R + NaNi, NaN + Ri, NaN + NaNi; within each by what are numbers.
template <class R> bool is_less(Complex<R> a, Complex<R> b) {
    auto rank = [](Complex<R> x) { return 2 * std::isnan(x.real) + std::isnan(x.imaginary); };
    const int left = rank(a), right = rank(b);
    if (left != right) return left < right;
    if (left < 2 && a.real != b.real) return a.real < b.real;
    return left % 2 == 0 && a.imaginary < b.imaginary;
}

// Calls run with a null pointer of the type that has that number in cupy/type_dispatcher.cuh.
template <class Run> void with_type(int number, const Run& run) {
    switch (number) {
        case 0:
            return run((int8_t*)nullptr);
        case 1:
            return run((uint8_t*)nullptr);
        case 2:
            return run((int16_t*)nullptr);
        case 3:
            return run((uint16_t*)nullptr);
        case 4:
            return run((int32_t*)nullptr);
        case 5:
            return run((uint32_t*)nullptr);
        case 6:
            return run((int64_t*)nullptr);
        case 7:
            return run((uint64_t*)nullptr);
        case 8:
            return run((Half*)nullptr);
        case 9:
            return run((float*)nullptr);
        case 10:
            return run((double*)nullptr);
        case 11:
            return run((Complex<float>*)nullptr);
        case 12:
            return run((Complex<double>*)nullptr);
        case 13:
            return run((bool*)nullptr);
        default:
            throw std::runtime_error("Unsupported dtype ID");
    }
}

template <class T> constexpr auto in_order = [](T a, T b) { return is_less(a, b); };

template <class T> Touched range(T* data, size_t count, bool stores) {
    return {(uintptr_t)data, count * sizeof(T), stores};
}

void queue(intptr_t stream, const std::string& name, const std::vector<Touched>& touched,
           const std::function<void()>& work) {
    if (const int error = queue_work((void*)stream, name, touched, work))
        throw std::runtime_error(name + ": CUDA error " + std::to_string(error));
}

// Rows along the last dimension. Thrust sorts all of them at once by the number of the row and then by the element; the
// numbers of the rows are its keys, scratch that CuPy makes where there are several dimensions.
struct Rows {
    size_t size, length;
    bool numbered;

    explicit Rows(const std::vector<ptrdiff_t>& shape)
        : size(std::accumulate(shape.begin(), shape.end(), size_t(1), std::multiplies<size_t>())),
          length((size_t)shape.back()),
          numbered(shape.size() > 1) {}

    template <class Sort> void each(size_t* keys, const Sort& sort) const {
        for (size_t begin = 0; begin < size; begin += length) {
            sort(begin);
            if (numbered) std::fill_n(keys + begin, length, begin / length);
        }
    }
};

}  // namespace

#pragma GCC visibility push(default)

void thrust_sort(int type, void* data, size_t* keys, const std::vector<ptrdiff_t>& shape, intptr_t stream,
                 void* /*memory*/) {
    with_type(type, [&](auto* null) {
        using T = std::remove_pointer_t<decltype(null)>;
        T* values = (T*)data;
        const Rows rows(shape);
        std::vector<Touched> touched{range(values, rows.size, true)};
        if (rows.numbered) touched.push_back(range(keys, rows.size, true));
        queue(stream, "thrust::stable_sort", touched, [=] {
            rows.each(keys, [&](size_t begin) {
                std::stable_sort(values + begin, values + begin + rows.length, in_order<T>);
            });
        });
    });
}

// The elements are sorted with the indices.
void thrust_argsort(int type, size_t* indices, void* data, void* keys, const std::vector<ptrdiff_t>& shape,
                    intptr_t stream, void* /*memory*/) {
    with_type(type, [&](auto* null) {
        using T = std::remove_pointer_t<decltype(null)>;
        T* values = (T*)data;
        const Rows rows(shape);
        std::vector<Touched> touched{range(indices, rows.size, true), range(values, rows.size, true)};
        if (rows.numbered) touched.push_back(range((size_t*)keys, rows.size, true));
        queue(stream, "thrust::stable_sort_by_key", touched, [=] {
            rows.each((size_t*)keys, [&](size_t begin) {
                const std::vector<T> row(values + begin, values + begin + rows.length);
                size_t* order = indices + begin;
                std::iota(order, order + rows.length, 0);
                std::stable_sort(order, order + rows.length,
                                 [&](size_t a, size_t b) { return in_order<T>(row[a], row[b]); });
                for (size_t i = 0; i < rows.length; ++i) values[begin + i] = row[order[i]];
            });
        });
    });
}

// By the last of the keys, and by the ones before where that is equal.
void thrust_lexsort(int type, size_t* indices, void* keys, size_t count, size_t length, intptr_t stream,
                    void* /*memory*/) {
    with_type(type, [&](auto* null) {
        using T = std::remove_pointer_t<decltype(null)>;
        const T* values = (const T*)keys;
        queue(stream, "thrust::stable_sort", {range(indices, length, true), range(values, count * length, false)}, [=] {
            std::iota(indices, indices + length, 0);
            for (size_t k = 0; k < count; ++k) {
                const T* key = values + k * length;
                std::stable_sort(indices, indices + length,
                                 [=](size_t a, size_t b) { return in_order<T>(key[a], key[b]); });
            }
        });
    });
}

#pragma GCC visibility pop
