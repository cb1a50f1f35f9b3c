"""The main function of a worker process: it reads the requested batches until the pipe ends."""

from __future__ import annotations

import faulthandler
import os
import pickle
import random
import resource
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.base.random.generator import manual_seed
from lucid.base.sharing import Block
from lucid.errors import ArgumentError, LucidError, OutOfMemoryError
from lucid.utils.data.randomness import SampleStreams
from lucid.utils.data.reading import Failure, Job, Parts, Pass, WorkerInfo, reader_of, set_worker_info
from lucid.utils.data.workers.sharing import Message, Writer, unpack, why_not_picklable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.connection import Connection

    from lucid.utils.data.reading import Reader


class Setup(NamedTuple):
    """The setup of a worker before the first batch.

    Attributes
    ----------
    parts : Parts
        The dataset, and how batches are made of it.
    worker_init_fn : callable or None
        Called with the worker's id.
    """

    parts: Parts
    worker_init_fn: Callable[[int], Any] | None


class Request(NamedTuple):
    """A batch to be read, in a pass, the slot of memory that it may fill, and slots that are no longer needed."""

    pass_number: int
    job: Job
    slot: int
    dropped: list[int]


class Reply(NamedTuple):
    """The answer to a request.

    Attributes
    ----------
    pass_number, number, slot : int
        Of the request; all -1 of a worker that failed while it was starting.
    message : Message
        Holds a Result, or a Failure.
    fresh : bool
        Whether the slot has new memory, whose descriptor follows.
    peak : int
        The most memory that the process has had so far, in bytes.
    """

    pass_number: int
    number: int
    slot: int
    message: Message
    fresh: bool
    peak: int


def run(
    pipe: Connection[Any, Any],
    stacks: Connection[Any, Any],
    number: int,
    count: int,
    seed: int,
    inherited: Setup | None,
    others: Sequence[Connection[Any, Any]],
) -> None:
    """Do the work of worker `number` of `count`; a forked one inherits its setup, and `others`, pipes to close."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: it is the parent's to handle
    faulthandler.register(signal.SIGUSR1, stacks.fileno(), all_threads=True)
    for other in others:
        other.close()
    writer = Writer()
    try:
        setup = _received(pipe) if inherited is None else inherited
        set_worker_info(WorkerInfo(number, count, seed, setup.parts.dataset))
        random.seed(seed)
        np.random.seed(seed & 0xFFFFFFFF)  # noqa: NPY002  the stream that users draw from
        manual_seed(seed)
        if setup.worker_init_fn is not None:
            setup.worker_init_fn(number)
        reader = reader_of(setup.parts, SampleStreams(restored=False))
    except EOFError:
        return
    except BaseException as error:  # noqa: BLE001  told to the training process, whatever it is
        message = _packed_failure(writer, error, None)
        _send(pipe, Reply(-1, -1, -1, message, writer.block is not None, _peak()), writer.block)
        return
    reader.memory = writer.empty
    _serve(pipe, reader, writer)


def _received(pipe: Connection[Any, Any]) -> Setup:
    from multiprocessing.reduction import recv_handle  # noqa: PLC0415

    message, follows, files = pipe.recv()
    # what a worker writes into its dataset is its own, as after a fork
    lent = np.frombuffer(Block.of(recv_handle(pipe), private=True), np.uint8) if follows else None
    descriptors = [recv_handle(pipe) for _ in range(files)]
    try:
        return unpack(message, lent, descriptors)
    except (AttributeError, ImportError) as error:
        raise ArgumentError(
            f"a worker cannot import what the dataset is made of: {error}. Put its classes and functions into a file "
            "that can be imported (a notebook or a prompt is none), or use worker='thread', or "
            "multiprocessing_context='fork' before a CUDA device is used"
        ) from error


def _serve(pipe: Connection[Any, Any], reader: Reader, writer: Writer) -> None:
    blocks: dict[int, Block] = {}
    beginning: Pass | None = None
    while True:
        try:
            request = pipe.recv()
        except (EOFError, ConnectionResetError):
            return
        if isinstance(request, Pass):
            beginning = request
            continue
        for slot in request.dropped:
            blocks.pop(slot, None)
        block = blocks.get(request.slot)
        writer.start(block)
        try:
            if beginning is not None:
                reader.begin(beginning)
                beginning = None
            message = _packed(writer, reader.read(request.job))
        except BaseException as error:  # noqa: BLE001  as above
            message = _packed_failure(writer, error, reader.at)
        fresh = writer.block is not block
        if writer.block is not None and fresh:
            blocks[request.slot] = writer.block
        reply = Reply(request.pass_number, request.job.number, request.slot, message, fresh, _peak())
        if not _send(pipe, reply, writer.block):
            return


def _packed(writer: Writer, result: Any) -> Message:
    try:
        return writer.pack(result)
    except LucidError:
        raise
    except Exception as error:
        reason = why_not_picklable(result.batch, "batch") or str(error)
        raise ArgumentError(
            f"the batch cannot be sent to the training process: {reason}; have collate_fn return tensors, arrays, "
            "numbers, strings, and containers of them, or use worker='thread'"
        ) from error


def _send(pipe: Connection[Any, Any], reply: Reply, block: Block | None) -> bool:
    """Send a reply, and after it the descriptor of new memory; return whether somebody is there."""
    from multiprocessing.reduction import send_handle  # noqa: PLC0415

    try:
        pipe.send(reply)
        if reply.fresh and block is not None:
            send_handle(pipe, block.descriptor, os.getppid())
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


def _packed_failure(writer: Writer, error: BaseException, at: Any) -> Message:
    failure = _failure(error, at)
    try:
        return writer.pack(failure)
    except OutOfMemoryError:  # it may be what has failed
        return Message(pickle.dumps(failure), b"")


def _failure(error: BaseException, at: Any) -> Failure:
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001  whatever its class raises
        error = _stand_in(error)
    try:
        pickle.dumps(at)
    except Exception:  # noqa: BLE001
        at = repr(at)
    return Failure(error, at, text)


def _stand_in(error: BaseException) -> BaseException:
    """Return an exception of the class of one that cannot be pickled, with its text; or a RuntimeError."""
    kind = type(error)
    try:
        stand_in = kind.__new__(kind)
        stand_in.args = (str(error),)
        pickle.loads(pickle.dumps(stand_in))
    except Exception:  # noqa: BLE001  a class without a name, or with a constructor of its own
        return RuntimeError(f"{kind.__qualname__}: {error}")
    return stand_in


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
