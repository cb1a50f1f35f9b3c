"""What is read of kernels' parameters, as assertions that a compiler checks: g++, and NVRTC in test_nvrtc.py."""

from __future__ import annotations

from lucid.cuda.source.signature import NUMBERS, declared, source
from tests.kernels.declared import KERNELS

PRELUDE = """
#ifdef __EDG__
#define OFFSET(member, ...) __INTADDR__(&((__VA_ARGS__*)0)->member)
#else
#define OFFSET(member, ...) __builtin_offsetof(__VA_ARGS__, member)
#endif
namespace lucid_assertions {
using namespace lucid;
template <class A, class B> struct IsSame { static constexpr bool value = false; };
template <class A> struct IsSame<A, A> { static constexpr bool value = true; };
template <class A> struct Known { typedef A type; };
template <class A> struct Known<A*> { typedef void* type; };
template <class A> struct Element { typedef typename Known<A>::type type; };
template <class A> struct Element<const A> { typedef typename Known<A>::type type; };
template <class A, unsigned N> struct Element<A[N]> { typedef typename Element<A>::type type; };
template <class> struct Parameters;
template <class... P> struct Parameters<void (*)(P...)> { typedef void type(typename Known<P>::type...); };
"""


def of_struct(read, kind, done):
    """Yield the conditions of a struct and of those inside it: what it consists of, and where."""
    if kind in NUMBERS or kind in done:
        return
    done.add(kind)
    layout = read.layout(kind)
    yield f"sizeof({kind}) == {layout.size} && alignof({kind}) == {layout.alignment}"
    end = 0
    for member in read.members(kind):
        _, size, alignment = read.field(member)
        begin = end + -end % alignment
        end = begin + size
        inner = "void*" if member.stars else read.resolved(member.type)
        yield f"OFFSET({member.name}, {kind}) == {begin} && sizeof({kind}::{member.name}) == {size}"
        yield f"IsSame<typename Element<decltype({kind}::{member.name})>::type, {inner}>::value"
        if not member.stars:
            yield from of_struct(read, inner, done)


def of_kernels(stem, group):
    """Yield the conditions of the kernels of a file, of those for one dtype if it is given."""
    read, done = source(f"{stem}.cu"), set()
    for kernel in KERNELS:
        for instance in kernel.instances if kernel.stem == stem else ():
            texts = read.parameters(kernel.name.rpartition("::")[2], instance)
            if (kernel.name, *texts) in done or (group is not None and instance[:1] != (group,)):
                continue
            done.add((kernel.name, *texts))
            parameters = [parameter for text in texts for parameter in declared(text)]
            types = ["void*" if each.stars else read.resolved(each.type) for each in parameters]
            yield (
                f"IsSame<typename Parameters<decltype(&{kernel.expression(instance)})>::type, "
                f"void({', '.join(types)})>::value"
            )
            for kind in types:
                if kind != "void*":
                    yield from of_struct(read, kind, done)


def asserted(conditions):
    """Return C++ that compiles if the conditions hold."""
    return "\n".join([PRELUDE, *[f'static_assert({each}, "{each}");' for each in conditions], "}"])


def assertions(stem, group=None):
    """Return C++ that compiles behind the text of a file if its kernels are as they are read."""
    return asserted(of_kernels(stem, group))
