// cuRAND's pseudo-random generators as CuPy calls them: numbers of the same distributions, in a sequence of our own.
#include <cmath>
#include <memory>
#include <mutex>
#include <random>
#include <set>

#include "host/queue.h"

namespace {

using namespace lucid_simulator;

// Of curand.h.
enum Answer {
    success = 0,
    not_initialized = 101,
    type_error = 103,
    out_of_range = 104,
    launch_failure = 201,
};
constexpr int first_pseudo = 100, first_quasi = 200;

using Engine = std::mt19937_64;

struct Generator {
    unsigned long long seed = 0;
    void* stream = nullptr;
    // work that is queued has it, too
    std::shared_ptr<Engine> engine = std::make_shared<Engine>();
};

std::mutex lock;
std::set<const Generator*> generators;

bool is_one(const Generator* generator) {
    std::lock_guard<std::mutex> guard(lock);
    return generators.count(generator) > 0;
}

// Above 0 and at most 1, as cuRAND's.
double uniform(Engine& engine) { return (double)((engine() >> 11) + 1) * 0x1p-53; }
float uniform_float(Engine& engine) { return (float)((engine() >> 40) + 1) * 0x1p-24f; }

template <class T, class Draw>
int generate(const char* name, const Generator* generator, T* out, size_t count, Draw draw) {
    if (!is_one(generator)) return not_initialized;
    const auto engine = generator->engine;
    const auto work = [=]() mutable {
        for (size_t i = 0; i < count; ++i) out[i] = draw(*engine);
    };
    const std::vector<Touched> touched{{(uintptr_t)out, count * sizeof(T), true}};
    return queue_work(generator->stream, name, touched, work) ? launch_failure : success;
}

template <class T>
int normal(const char* name, const Generator* generator, T* out, size_t count, T mean, T deviation, bool of_logarithm) {
    return generate(name, generator, out, count, [=](Engine& engine) {
        const double distance = std::sqrt(-2 * std::log(uniform(engine))), turn = 2 * M_PI * uniform(engine);
        const T drawn = mean + deviation * (T)(distance * std::cos(turn));
        return of_logarithm ? std::exp(drawn) : drawn;
    });
}

}  // namespace

LUCID_CUDA int curandGetVersion(int* out) { return *out = LUCID_VERSION, success; }
LUCID_CUDA int curandCreateGenerator(Generator** out, int kind) {
    if (kind < first_pseudo || kind >= first_quasi) return type_error;
    Generator* made = new Generator;
    std::lock_guard<std::mutex> guard(lock);
    generators.insert(made);
    return *out = made, success;
}
LUCID_CUDA int curandDestroyGenerator(Generator* generator) {
    std::lock_guard<std::mutex> guard(lock);
    if (!generators.erase(generator)) return not_initialized;
    return delete generator, success;
}
LUCID_CUDA int curandSetStream(Generator* generator, void* stream) {
    if (!is_one(generator)) return not_initialized;
    return generator->stream = stream, success;
}
LUCID_CUDA int curandSetGeneratorOffset(Generator* generator, unsigned long long offset) {
    if (!is_one(generator)) return not_initialized;
    generator->engine = std::make_shared<Engine>(generator->seed);
    return generator->engine->discard(offset), success;
}
LUCID_CUDA int curandSetPseudoRandomGeneratorSeed(Generator* generator, unsigned long long seed) {
    if (!is_one(generator)) return not_initialized;
    generator->seed = seed;
    return curandSetGeneratorOffset(generator, 0);
}
LUCID_CUDA int curandSetGeneratorOrdering(Generator* generator, int) {
    return is_one(generator) ? success : not_initialized;
}

LUCID_CUDA int curandGenerate(Generator* generator, unsigned* out, size_t count) {
    return generate("curandGenerate", generator, out, count, [](Engine& engine) { return (unsigned)(engine() >> 32); });
}
// Of quasi-random generators of 64 bits only.
LUCID_CUDA int curandGenerateLongLong(Generator*, unsigned long long*, size_t) { return type_error; }
LUCID_CUDA int curandGenerateUniform(Generator* generator, float* out, size_t count) {
    return generate("curandGenerateUniform", generator, out, count, uniform_float);
}
LUCID_CUDA int curandGenerateUniformDouble(Generator* generator, double* out, size_t count) {
    return generate("curandGenerateUniformDouble", generator, out, count, uniform);
}
LUCID_CUDA int curandGenerateNormal(Generator* generator, float* out, size_t count, float mean, float deviation) {
    return normal("curandGenerateNormal", generator, out, count, mean, deviation, false);
}
LUCID_CUDA int curandGenerateNormalDouble(Generator* generator, double* out, size_t count, double mean,
                                          double deviation) {
    return normal("curandGenerateNormalDouble", generator, out, count, mean, deviation, false);
}
LUCID_CUDA int curandGenerateLogNormal(Generator* generator, float* out, size_t count, float mean, float deviation) {
    return normal("curandGenerateLogNormal", generator, out, count, mean, deviation, true);
}
LUCID_CUDA int curandGenerateLogNormalDouble(Generator* generator, double* out, size_t count, double mean,
                                             double deviation) {
    return normal("curandGenerateLogNormalDouble", generator, out, count, mean, deviation, true);
}
LUCID_CUDA int curandGeneratePoisson(Generator* generator, unsigned* out, size_t count, double mean) {
    if (!(mean > 0)) return out_of_range;
    return generate(
        "curandGeneratePoisson", generator, out, count,
        [drawn = std::poisson_distribution<unsigned>(mean)](Engine& engine) mutable { return drawn(engine); });
}
