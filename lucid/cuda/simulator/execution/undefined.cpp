// What g++'s undefined-behaviour sanitizer calls: each of these stops the launch with the line of the source.
//
// Misaligned pointers, bad indices and integer divisions by zero always come here, the rest where kernels are built
// under LUCID_SIMULATOR_SANITIZE.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "execution/runtime.h"

namespace {

struct Site {
    const char* file;
    unsigned line, column;
};

struct TypeName {
    unsigned short kind, info;  // kind 0 is an integer, whose lowest bit of info says whether it is signed; 1 is real
    char name[1];
};

struct OfType {
    Site site;
    const TypeName* type;
};

struct OfTwoTypes {
    Site site;
    const TypeName *first, *second;
};

struct Mismatch {
    Site site;
    const TypeName* type;
    unsigned char log_alignment, kind;
};

[[noreturn]] void stop(const Site& site, const std::string& what) {
    lucid_stop(what.c_str(), site.file, (int)site.line);
}

std::string hexadecimal(uintptr_t value) {
    char number[32];
    snprintf(number, sizeof number, "0x%llx", (unsigned long long)value);
    return number;
}

// A value of up to 8 bytes, as its bits arrive.
std::string number(const TypeName* type, uintptr_t bits) {
    const int width = type->kind == 1 ? type->info : 1 << (type->info >> 1);
    if (type->kind == 1) {
        float narrow;
        double wide;
        memcpy(&narrow, &bits, sizeof narrow);
        memcpy(&wide, &bits, sizeof wide);
        char words[32];
        snprintf(words, sizeof words, "%.9g", width == 32 ? (double)narrow : wide);
        return width == 32 || width == 64 ? words : "a number";
    }
    if (type->kind != 0 || width > 64) return "a number";
    const int unused = 64 - width;
    return type->info & 1 ? std::to_string((int64_t)((uint64_t)bits << unused) >> unused)
                          : std::to_string((uint64_t)bits << unused >> unused);
}

[[noreturn]] void overflow(const OfType* data, uintptr_t a, const char* sign, uintptr_t b) {
    const std::string type = data->type->name;
    stop(data->site, number(data->type, a) + sign + number(data->type, b) + " overflows " + type);
}

}  // namespace

#define LUCID_HANDLER extern "C" __attribute__((visibility("default"))) void

LUCID_HANDLER __ubsan_handle_type_mismatch_v1(const Mismatch* data, uintptr_t address) {
    const std::string access = std::string("access to ") + data->type->name, at = " at " + hexadecimal(address);
    const uintptr_t alignment = (uintptr_t)1 << data->log_alignment;
    if (address == 0) stop(data->site, access + " by a null pointer");
    if (address % alignment)
        stop(data->site, "misaligned " + access + at + ", which is no multiple of " + std::to_string(alignment));
    stop(data->site, access + at + " over the end of its object");
}

LUCID_HANDLER __ubsan_handle_out_of_bounds(const OfTwoTypes* data, uintptr_t index) {
    stop(data->site, "index " + number(data->second, index) + " is out of range for " + data->first->name);
}

LUCID_HANDLER __ubsan_handle_divrem_overflow(const OfType* data, uintptr_t a, uintptr_t b) {
    if (number(data->type, b) == "0") stop(data->site, "integer division by zero");
    overflow(data, a, " / ", b);
}
LUCID_HANDLER __ubsan_handle_add_overflow(const OfType* data, uintptr_t a, uintptr_t b) { overflow(data, a, " + ", b); }
LUCID_HANDLER __ubsan_handle_sub_overflow(const OfType* data, uintptr_t a, uintptr_t b) { overflow(data, a, " - ", b); }
LUCID_HANDLER __ubsan_handle_mul_overflow(const OfType* data, uintptr_t a, uintptr_t b) { overflow(data, a, " * ", b); }
LUCID_HANDLER __ubsan_handle_negate_overflow(const OfType* data, uintptr_t a) { overflow(data, 0, " - ", a); }

LUCID_HANDLER __ubsan_handle_shift_out_of_bounds(const OfTwoTypes* data, uintptr_t a, uintptr_t by) {
    const std::string type = data->first->name;
    stop(data->site, "shift of " + number(data->first, a) + " of " + type + " by " + number(data->second, by));
}

LUCID_HANDLER __ubsan_handle_float_cast_overflow(const OfTwoTypes* data, uintptr_t value) {
    stop(data->site, number(data->first, value) + " is out of range for " + data->second->name);
}

LUCID_HANDLER __ubsan_handle_load_invalid_value(const OfType* data, uintptr_t value) {
    stop(data->site, number(data->type, value) + " is no value of " + data->type->name);
}

LUCID_HANDLER __ubsan_handle_pointer_overflow(const Site* site, uintptr_t base, uintptr_t result) {
    stop(*site, "pointer arithmetic from " + hexadecimal(base) + " to " + hexadecimal(result) + " overflows");
}

LUCID_HANDLER __ubsan_handle_invalid_builtin(const Site* site) { stop(*site, "zero has no leading or trailing bit"); }
LUCID_HANDLER __ubsan_handle_nonnull_arg(const Site* site) { stop(*site, "a null pointer for an argument"); }
LUCID_HANDLER __ubsan_handle_vla_bound_not_positive(const Site* site) { stop(*site, "an array of no positive size"); }
LUCID_HANDLER __ubsan_handle_builtin_unreachable(const Site* site) { stop(*site, "code that cannot be reached"); }
LUCID_HANDLER __ubsan_handle_missing_return(const Site* site) { stop(*site, "a function that ends without a result"); }
