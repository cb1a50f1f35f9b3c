"""Faults planted in what lucid does with streams, events, memory and capture: `python -m tests.cuda.planted_faults`.

As those of the kernels, which `tests.kernels.planted_faults` plants: each has to be found by the tests beside it.
"""

from __future__ import annotations

import sys

from tests.kernels.planted_faults import Fault, main

STREAMS, GPU = "lucid/autograd/engine/streams.py", "lucid/base/gpu.py"
DRIVER, BUILD, LOCKS = "lucid/cuda/driver.py", "lucid/cuda/build", "lucid/base/locks.py"
ORDER, CAPTURE, HOST = (
    f"tests/cuda/simulator/host/{name}.py" for name in ("memory/test_order", "test_capture", "memory/test_host_memory")
)
FAULTS = [
    Fault("wait of a pass for the stream that it comes from", STREAMS, "stream.wait_event(gpu.mark(before))",
          "gpu.mark(before)", f"{ORDER} -k pass"),
    Fault("wait for the end of a pass", STREAMS, "stream.wait_event(mark)", "pass", f"{ORDER} -k pass"),
    Fault("stream of the event at the end of a pass", STREAMS, "mark = gpu.mark(last)",
          "mark = gpu.mark(next(iter(self._previous.values())))", f"{ORDER} -k pass"),
    Fault("stream that is current again", GPU, "            self._before.use()\n", "",
          "tests/autograd/engine/test_streams.py"),
    Fault("wait of a copy for what another device writes", GPU, "taker.wait_event(written)", "pass",
          f"{ORDER} -k devices"),
    Fault("wait before memory of another device goes", GPU, "giver.wait_event(taken)", "pass", f"{ORDER} -k devices"),
    Fault("wait before memory that another stream reads goes", "lucid/cuda/held.py",
          "if all(event.done for event in use.events):", "if True:", f"{ORDER} -k record_stream"),
    Fault("stream of the event before such memory goes", "lucid/cuda/held.py", "gpu.mark, each)",
          "gpu.mark, gpu.current_stream(index))", f"{ORDER} -k record_stream"),
    Fault("wait for a copy to pinned memory", GPU, "return array.get(out=host)",
          "return array.get(out=host, blocking=False)", f"{HOST} -k pinned_copy"),
    Fault("wait for a copy from pinned memory", GPU, "return module.asarray(array, blocking=blocking)",
          "return module.asarray(array)", f"{HOST} -k tensors"),
    Fault("order of two streams", "lucid/cuda/streams.py", "self.wait_event(stream.record_event())",
          "stream.wait_event(self.record_event())", f"{ORDER} -k pass"),
    Fault("stream that is current at a launch", DRIVER, "cuda.get_current_stream",
          "lambda: cuda.Stream.null", f"{ORDER} -k pass"),
    Fault("launch without a wait", "lucid/cuda/launch/kernels.py", "            handle = find()\n",
          "            handle = find()\n            driver().stream().synchronize()\n", f"{CAPTURE} -k step"),
    Fault("text that an archive was built from", f"{BUILD}/archive.py", "image.key != key_of(unit)", "False",
          "tests/cuda/test_driver.py -k stale"),
    Fault("generation of the device", f"{BUILD}/image.py", "each[:-1] == capability[:-1] and ", "",
          "tests/cuda/build/test_archive.py -k fits"),
    Fault("options in the key", f"{BUILD}/image.py", "[*OPTIONS, unit.source]", "[unit.stem]",
          "tests/cuda/test_driver.py -k kept"),
    Fault("names in the key of the cache", DRIVER, ", *sorted(unit.signatures)", "",
          "tests/cuda/test_driver.py -k kept"),
    Fault("kernel that an archive lacks", DRIVER, "not unit.signatures.keys() <= opened[1].keys()", "False",
          "tests/cuda/test_driver.py -k built"),
    Fault("users' sources", DRIVER, "if not unit.declared:", "if False:", "tests/cuda/test_driver.py -k users"),
    Fault("lock of what is made once", LOCKS, "self._locks.setdefault(key, new_rlock())", "new_rlock()",
          "tests/base/test_locks.py"),
    Fault("lock for each key", LOCKS, "self._locks.setdefault(key, new_rlock())",
          'self._locks.setdefault("", new_rlock())', "tests/base/test_locks.py"),
    Fault("what is compiled with a kernel", "lucid/cuda/launch/kernels.py", "if runs.whole_units and", "if",
          "tests/cuda/launch/test_kernels.py -k launched"),
]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], FAULTS))
