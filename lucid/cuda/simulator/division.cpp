#include "division.h"

#include <ucontext.h>

#include <cstdint>

namespace lucid_simulator {

namespace {

thread_local bool dividing = false;

// The length of the signed division that begins there; 0 for any other instruction.
size_t length_of_division(const uint8_t* at) {
    size_t length = 0;
    if (at[length] == 0x66) ++length;              // of 16 bits
    if ((at[length] & 0xF0) == 0x40) ++length;     // REX
    if (at[length++] != 0xF7) return 0;
    const uint8_t operand = at[length++], mode = operand >> 6, base = operand & 7;
    if ((operand >> 3 & 7) != 7) return 0;
    if (mode == 3) return length;
    const bool absolute = mode == 0 && (base == 4 ? (at[length] & 7) == 5 : base == 5);
    if (base == 4) ++length;
    return length + (mode == 1 ? 1 : mode == 2 || absolute ? 4 : 0);
}

// The dividend, which is the quotient too, lies where that belongs.
void divide(int, siginfo_t*, void* context) {
    greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
    const size_t length = dividing ? length_of_division((const uint8_t*)registers[REG_RIP]) : 0;
    if (!length) {
        signal(SIGFPE, SIG_DFL);  // it is met again
        return;
    }
    registers[REG_RIP] += (greg_t)length;
    registers[REG_RDX] = 0;
}

}  // namespace

Dividing::Dividing() {
    struct sigaction action {};
    action.sa_sigaction = divide;
    action.sa_flags = SA_SIGINFO;
    dividing = sigaction(SIGFPE, &action, &before) == 0;
}
Dividing::~Dividing() {
    dividing = false;
    sigaction(SIGFPE, &before, nullptr);
}

}  // namespace lucid_simulator
