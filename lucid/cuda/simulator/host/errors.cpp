// Errors under CUDA's names and with CUDA's words.
#include <cstring>

#include "host/state.h"

namespace lucid_simulator {

namespace {

struct Error {
    int code;
    const char *runtime, *driver, *words;
};

constexpr Error errors[] = {
    {0, "cudaSuccess", "CUDA_SUCCESS", "no error"},
    {1, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "cudaErrorInvalidKernelImage", "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "cudaErrorDeviceUninitialized", "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {301, "cudaErrorFileNotFound", "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {400, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {401, "cudaErrorIllegalState", "CUDA_ERROR_ILLEGAL_STATE",
     "the operation cannot be performed in the present state"},
    {500, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {702, "cudaErrorLaunchTimeout", "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {704, "cudaErrorPeerAccessAlreadyEnabled", "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {705, "cudaErrorPeerAccessNotEnabled", "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
    {710, "cudaErrorAssert", "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {716, "cudaErrorMisalignedAddress", "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {719, "cudaErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "cudaErrorStreamCaptureUnsupported", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {901, "cudaErrorStreamCaptureInvalidated", "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {902, "cudaErrorStreamCaptureMerge", "CUDA_ERROR_STREAM_CAPTURE_MERGE",
     "operation would result in a merge of separate capture sequences"},
    {903, "cudaErrorStreamCaptureUnmatched", "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not ended in the same stream as it began"},
    {904, "cudaErrorStreamCaptureUnjoined", "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {905, "cudaErrorStreamCaptureIsolation", "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {906, "cudaErrorStreamCaptureImplicit", "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {907, "cudaErrorCapturedEvent", "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {908, "cudaErrorStreamCaptureWrongThread", "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {999, "cudaErrorUnknown", "CUDA_ERROR_UNKNOWN", "unknown error"},
};

thread_local int last = success;
// The words of the last failure that had some, and its code.
thread_local std::string told;
thread_local int told_code = success;

// Null if no function here answers it.
const Error* error_of(int code) {
    for (const Error& error : errors)
        if (error.code == code) return &error;
    return nullptr;
}

const char* words_of(int code) {
    if (code && code == told_code) return told.c_str();
    const Error* error = error_of(code);
    return error ? error->words : nullptr;
}

constexpr char unrecognized[] = "unrecognized error code";

}  // namespace

int fail(int code, const std::string& words) {
    if (!code) return success;
    last = code;
    told_code = words.empty() ? success : code;
    told = words;
    return code;
}

int fail_with(int code, const std::string& what) {
    return fail(code, std::string(error_of(code)->words) + ": " + what);
}

void fail_more(const std::string& words, const std::string& where) {
    const std::string known = words_of(last);
    fail(last, known.find(where) == std::string::npos ? known + words + where : known);
}

int fail_as(int code) {
    if (told_code) told_code = code;
    return last = code;
}

int code_of_fault(const std::string& report) {
    auto says = [&](const char* words) { return report.find(words) != std::string::npos; };
    if (says("out-of-range")) return illegal_address;
    if (says("misaligned")) return misaligned;
    if (says("assert(")) return assertion;
    if (says("deadlock")) return timed_out;
    return launch_failed;
}

}  // namespace lucid_simulator

using namespace lucid_simulator;

LUCID_CUDA const char* cudaGetErrorName(int code) {
    const Error* error = error_of(code);
    return error ? error->runtime : unrecognized;
}
LUCID_CUDA const char* cudaGetErrorString(int code) {
    const char* words = words_of(code);
    return words ? words : unrecognized;
}
LUCID_CUDA int cudaPeekAtLastError() { return last; }
LUCID_CUDA int cudaGetLastError() {
    const int code = last;
    last = success;
    return code;
}
// These keep no error: they are asked about one.
LUCID_CUDA int cuGetErrorName(int code, const char** name) {
    const Error* error = error_of(code);
    return (*name = error ? error->driver : nullptr) ? success : invalid_value;
}
LUCID_CUDA int cuGetErrorString(int code, const char** words) {
    return (*words = words_of(code)) ? success : invalid_value;
}
