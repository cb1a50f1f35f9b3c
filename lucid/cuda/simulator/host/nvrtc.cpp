// NVRTC: collects what CuPy wants compiled, and lets Python build it.
#include <cstring>
#include <string>
#include <vector>

#include "host/state.h"

using namespace lucid_simulator;

namespace {

enum { compilation = 6, no_such_expression = 9, invalid_option = 5 };

struct Program {
    std::string source, log, code;
    std::vector<std::string> names;
};

std::string joined(const std::vector<std::string>& all) {
    std::string text;
    for (const std::string& one : all) text += (text.empty() ? "" : "\x1f") + one;
    return text;
}

}  // namespace

LUCID_CUDA int nvrtcVersion(int* major, int* minor) {
    return *major = LUCID_VERSION / 1000, *minor = LUCID_VERSION % 1000 / 10, 0;
}
LUCID_CUDA const char* nvrtcGetErrorString(int code) {
    switch (code) {
        case 0:
            return "NVRTC_SUCCESS";
        case invalid_option:
            return "NVRTC_ERROR_INVALID_OPTION";
        case compilation:
            return "NVRTC_ERROR_COMPILATION";
        case no_such_expression:
            return "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID";
        default:
            return "NVRTC_ERROR_INTERNAL_ERROR";
    }
}
LUCID_CUDA int nvrtcGetNumSupportedArchs(int* out) { return *out = 1, 0; }
LUCID_CUDA int nvrtcGetSupportedArchs(int* out) { return *out = 90, 0; }

LUCID_CUDA int nvrtcCreateProgram(Program** out, const char* source, const char*, int, const char**, const char**) {
    return *out = new Program{source, "", "", {}}, 0;
}
LUCID_CUDA int nvrtcDestroyProgram(Program** program) { return delete *program, *program = nullptr, 0; }
LUCID_CUDA int nvrtcAddNameExpression(Program* program, const char* name) { return program->names.push_back(name), 0; }
LUCID_CUDA int nvrtcCompileProgram(Program* program, int count, const char** options) {
    const std::vector<std::string> all(options, options + count);
    const Answer made =
        ask([&] { python.compile(program->source.c_str(), joined(program->names).c_str(), joined(all).c_str()); });
    const int code = made.given ? made.number : compilation;
    (code ? program->log : program->code) = made.given ? made.text : "interrupted";
    return code;
}
// The names of kernels are those of the source.
LUCID_CUDA int nvrtcGetLoweredName(Program* program, const char* name, const char** out) {
    for (const std::string& one : program->names)
        if (one == name) return *out = one.c_str(), 0;
    return no_such_expression;
}

LUCID_CUDA int nvrtcGetCUBINSize(Program* program, size_t* out) { return *out = program->code.size() + 1, 0; }
LUCID_CUDA int nvrtcGetCUBIN(Program* program, char* out) {
    return memcpy(out, program->code.c_str(), program->code.size() + 1), 0;
}
LUCID_CUDA int nvrtcGetPTXSize(Program* program, size_t* out) { return nvrtcGetCUBINSize(program, out); }
LUCID_CUDA int nvrtcGetPTX(Program* program, char* out) { return nvrtcGetCUBIN(program, out); }
LUCID_CUDA int nvrtcGetProgramLogSize(Program* program, size_t* out) { return *out = program->log.size() + 1, 0; }
LUCID_CUDA int nvrtcGetProgramLog(Program* program, char* out) {
    return memcpy(out, program->log.c_str(), program->log.size() + 1), 0;
}
LUCID_CUDA int nvrtcGetLTOIRSize(Program*, size_t* out) { return *out = 0, invalid_option; }
LUCID_CUDA int nvrtcGetLTOIR(Program*, char*) { return invalid_option; }
