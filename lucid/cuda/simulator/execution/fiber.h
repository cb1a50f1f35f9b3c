// Stacks that take turns on one host thread.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace lucid_simulator {

constexpr size_t stack_size = 1 << 20, guard_size = 4096, most_fibers = 1024;

// One mapping for all stacks, so that one comparison tells whether an address lies in a stack; pages are taken as used.
inline unsigned char* stacks() {
    static unsigned char* const base = [] {
        const size_t size = (stack_size + guard_size) * most_fibers;
        void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) __builtin_trap();
        for (size_t i = 0; i < most_fibers; ++i)
            mprotect((unsigned char*)p + i * (stack_size + guard_size), guard_size, PROT_NONE);
        return (unsigned char*)p;
    }();
    return base;
}

inline bool in_stacks(uintptr_t address) {
    return address - (uintptr_t)stacks() < (stack_size + guard_size) * most_fibers;
}

}  // namespace lucid_simulator

#if defined(__x86_64__) && !defined(LUCID_UCONTEXT)

// ucontext makes two system calls a switch; the ABI needs no more than six registers and the stack pointer.
__asm__(R"(
.pushsection .text
.type lucid_switch,@function
lucid_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size lucid_switch, .-lucid_switch
.popsection
)");
extern "C" void lucid_switch(void** from, void* to) __asm__("lucid_switch") __attribute__((visibility("hidden")));

struct Fiber {
    void* top = nullptr;
    unsigned char* stack = nullptr;
};

inline void switch_fiber(Fiber* from, Fiber* to) { lucid_switch(&from->top, to->top); }

inline void prepare_fiber(Fiber* fiber, void (*entry)()) {
    uintptr_t* top = (uintptr_t*)(fiber->stack + lucid_simulator::stack_size);
    *--top = 0;  // the return address of entry, which never returns
    *--top = (uintptr_t)entry;
    for (int i = 0; i < 6; ++i) *--top = 0;
    fiber->top = top;
}

#else

#include <ucontext.h>

struct Fiber {
    ucontext_t context;
    unsigned char* stack = nullptr;
};

inline void switch_fiber(Fiber* from, Fiber* to) { swapcontext(&from->context, &to->context); }

inline void prepare_fiber(Fiber* fiber, void (*entry)()) {
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = lucid_simulator::stack_size;
    fiber->context.uc_link = nullptr;
    makecontext(&fiber->context, entry, 0);
}

#endif
