#include "execution/launch.h"

thread_local lucid_simulator::Running lucid_running;

namespace lucid_simulator {

Launch launch;

std::string text(uint3 p) {
    return "(" + std::to_string(p.x) + ", " + std::to_string(p.y) + ", " + std::to_string(p.z) + ")";
}

std::string thread_text(unsigned number) { return text(launch.threads[number].index); }

void note(const std::string& what) {
    launch.report = "block " + text(lucid_running.block);
    if (launch.inside) launch.report += ", thread " + text(lucid_running.thread);
    launch.report += ": " + what;
}

void stop(const std::string& what) {
    note(what);
    // The fibers are left where they stand: device code has nothing to unwind.
    switch_fiber(launch.threads[launch.current].fiber, &launch.host);
    __builtin_unreachable();
}

}  // namespace lucid_simulator
