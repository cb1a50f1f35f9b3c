#include "execution/signals.h"

#include <ucontext.h>

#include <cstdint>
#include <string>

#include "execution/fiber.h"
#include "execution/launch.h"

namespace lucid_simulator {

namespace {

thread_local bool launching = false;
// Where signals are handled: what has used up its stack has no room for that. One launch runs at a time.
unsigned char handlers_stack[64 << 10];
struct sigaction before_segmentation;

// The length of the signed division that begins there; 0 for any other instruction.
size_t length_of_division(const uint8_t* at) {
    size_t length = 0;
    if (at[length] == 0x66) ++length;           // of 16 bits
    if ((at[length] & 0xF0) == 0x40) ++length;  // REX
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
    const size_t length = launching ? length_of_division((const uint8_t*)registers[REG_RIP]) : 0;
    if (!length) {
        signal(SIGFPE, SIG_DFL);  // it is met again
        return;
    }
    registers[REG_RIP] += (greg_t)length;
    registers[REG_RDX] = 0;
}

// Where a thread goes on that has used up its stack: at the top of it, since nothing there is needed any more.
[[noreturn]] void stack_used_up() {
    stop("recursion that does not end, or local arrays of more than " + std::to_string(stack_size >> 10) +
         " KiB in a thread");
}

void segmentation(int, siginfo_t* signal, void* context) {
    const uintptr_t address = (uintptr_t)signal->si_addr;
    if (!launching || !in_stacks(address)) {
        sigaction(SIGSEGV, &before_segmentation, nullptr);  // it is met again
        return;
    }
    constexpr size_t each = stack_size + guard_size;
    greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
    const uintptr_t top = (uintptr_t)stacks() + ((address - (uintptr_t)stacks()) / each + 1) * each;
    registers[REG_RSP] = (greg_t)((top & ~(uintptr_t)15) - 8);
    registers[REG_RIP] = (greg_t)stack_used_up;
}

}  // namespace

Signals::Signals() {
    stack_t stack{};
    stack.ss_sp = handlers_stack;
    stack.ss_size = sizeof handlers_stack;
    sigaltstack(&stack, &before_stack);
    struct sigaction action {};
    action.sa_sigaction = divide;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGFPE, &action, &before_division);
    action.sa_sigaction = segmentation;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &before_segmentation);
    launching = true;
}
Signals::~Signals() {
    launching = false;
    sigaction(SIGSEGV, &before_segmentation, nullptr);
    sigaction(SIGFPE, &before_division, nullptr);
    sigaltstack(&before_stack, nullptr);
}

}  // namespace lucid_simulator
