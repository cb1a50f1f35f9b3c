"""Faults planted in what lucid does with streams, events, memory and capture: `python -m tests.cuda.planted_faults`.

As those of the kernels, which `tests.kernels.planted_faults` plants: each has to be found by the tests beside it.
"""

from __future__ import annotations

import sys

from tests.kernels.planted_faults import Fault, main

STREAMS, GPU = "lucid/autograd/engine/streams.py", "lucid/backend/gpu.py"
ORDER, CAPTURE, HOST = (
    f"tests/cuda/simulator/host/{name}.py" for name in ("memory/test_order", "test_capture", "memory/test_host_memory")
)
FAULTS = [
    Fault("wait of a pass for the stream that it comes from", STREAMS, "stream.wait_event(gpu.mark(before))",
          "gpu.mark(before)", f"{ORDER} -k pass"),
    Fault("wait for the end of a pass", STREAMS, "stream.wait_event(mark)", "pass", f"{ORDER} -k pass"),
    Fault("stream of the event at the end of a pass", STREAMS, "mark = gpu.mark(last)",
          "mark = gpu.mark(next(iter(self._left.values())))", f"{ORDER} -k pass"),
    Fault("stream that is current again", GPU, "            self._before.use()\n", "",
          "tests/autograd/engine/test_streams.py"),
    Fault("wait of a copy for what another device writes", GPU, "taker.wait_event(written)", "pass",
          f"{ORDER} -k devices"),
    Fault("wait before memory of another device goes", GPU, "giver.wait_event(taken)", "pass", f"{ORDER} -k devices"),
    Fault("wait before memory that another stream reads goes", "lucid/cuda/held.py",
          "if all(event.done for event in use.events):", "if True:", f"{ORDER} -k record_stream"),
    Fault("stream of the event before such memory goes", "lucid/cuda/held.py", "return gpu.mark(stream)",
          "return gpu.mark(gpu.current_stream(index))", f"{ORDER} -k record_stream"),
    Fault("wait for a copy to pinned memory", GPU, "return array.get(out=host)",
          "return array.get(out=host, blocking=False)", f"{HOST} -k pinned_copy"),
    Fault("wait for a copy from pinned memory", GPU, "return module.asarray(array, blocking=blocking)",
          "return module.asarray(array)", f"{HOST} -k tensors"),
    Fault("order of two streams", "lucid/cuda/streams.py", "self.wait_event(stream.record_event())",
          "stream.wait_event(self.record_event())", f"{ORDER} -k pass"),
    Fault("stream that is current at a launch", "lucid/cuda/driver.py", "found = self._streams.get(address)",
          "found = next(iter(self._streams.values()), None)", f"{ORDER} -k pass"),
    Fault("launch without a wait", "lucid/cuda/driver.py", "address = self._current_stream().ptr",
          "self._current_stream().synchronize()\n        address = self._current_stream().ptr", f"{CAPTURE} -k step"),
]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], FAULTS))
