"""What collectives give, in every dtype, operation and layout: compared with NumPy on the numbers of all processes."""

from __future__ import annotations

import contextlib
from functools import reduce

import numpy as np

import lucid
from lucid import distributed as dist
from lucid.base.dtype import DTYPES
from lucid.collectives.memory import Target
from lucid.collectives.reduction import tree_sum
from lucid.collectives.world import world
from lucid.errors import DtypeError, InplaceError, NotDifferentiableError
from tests.collectives.jobs import begin, go_through, host, numbers
from tests.device import DEVICE

ALL = tuple(DTYPES.values())
SHAPES = ((3, 4), (5,), (), (0,), (2, 0, 3))
OPS = dist.ReduceOp


def refused(error, call, *words):
    """Call what has to raise, with these words in its message."""
    try:
        call()
    except error as raised:
        assert all(word in str(raised) for word in words), str(raised)
        return
    raise AssertionError(f"not refused: {words}")


def made(rank, dtype, shape):
    """Return the numbers of a process as a tensor."""
    return lucid.tensor(np.asarray(numbers(rank, dtype, shape))).to(dtype)


def array_of(tensor):
    """Return the elements of a tensor so that arrays of all dtypes can be compared."""
    array = host(tensor)
    return array.astype(np.float32) if tensor.dtype is lucid.bfloat16 else array


def layouts(tensor):
    """Yield a tensor's elements in one piece, as a column of a wider one, and in the order of its transpose."""
    yield tensor.clone()
    wide = lucid.zeros((*tensor.shape, 2), dtype=tensor.dtype)
    column = wide[..., 1]
    column.copy_(tensor)
    yield column
    if tensor.dim() == 2:
        yield tensor.t().clone(memory_format=lucid.contiguous_format).t()


def everyone(size, dtype, shape):
    """Return the numbers of all processes, in the dtype in which they are reduced."""
    wide = np.float32 if dtype in {lucid.float16, lucid.bfloat16} else dtype.numpy
    return [np.asarray(numbers(rank, dtype, shape)).astype(wide) for rank in range(size)]


NUMBERS = {
    OPS.SUM: np.add, OPS.PRODUCT: np.multiply, OPS.MIN: np.minimum, OPS.MAX: np.maximum, OPS.AVG: np.add,
    OPS.BAND: np.bitwise_and, OPS.BOR: np.bitwise_or, OPS.BXOR: np.bitwise_xor,
}  # fmt: skip
BOOLS = {
    **NUMBERS,
    OPS.SUM: np.logical_or,
    OPS.PRODUCT: np.logical_and,
    OPS.MIN: np.logical_and,
    OPS.MAX: np.logical_or,
}


def is_defined(op, dtype):
    """Tell whether an operation is defined for a dtype."""
    floating = dtype.is_floating_point or dtype.is_complex
    if DEVICE == "cuda" and (op in {OPS.BAND, OPS.BOR, OPS.BXOR} or (op is OPS.PRODUCT and dtype.is_complex)):
        return False  # which NCCL has not
    if op in {OPS.BAND, OPS.BOR, OPS.BXOR}:
        return not floating
    if op in {OPS.MIN, OPS.MAX}:
        return not dtype.is_complex
    return op is not OPS.AVG or floating


def together(op, size, dtype, shape):
    """Return what the numbers of all processes become."""
    function = (BOOLS if dtype is lucid.bool else NUMBERS)[op]
    value = reduce(function, everyone(size, dtype, shape))
    if op is OPS.AVG:
        value = value / value.dtype.type(size)
    return array_of(lucid.tensor(value).to(dtype))


def check_equal(tensor, expected):
    """Compare elements, shape and dtype."""
    got = array_of(tensor)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
    assert np.array_equal(got, expected), (tensor.dtype, got, expected)


def all_reduce_in_every_dtype_operation_and_layout(rank, size):
    """Each operation where it is defined; elsewhere a DtypeError, alike in all processes."""
    for dtype in ALL:
        for op in OPS:
            if not is_defined(op, dtype):
                refused(DtypeError, lambda op=op, dtype=dtype: dist.all_reduce(made(rank, dtype, (2,)), op), op.name)
                continue
            for shape in SHAPES:
                for tensor in layouts(made(rank, dtype, shape)):
                    assert dist.all_reduce(tensor, op) is None
                    check_equal(tensor, together(op, size, dtype, shape))


def reduce_and_reduce_scatter(rank, size):
    """One process gets all, or each its part; the others' tensors, and the inputs, stay."""
    for dtype in ALL:
        products = (OPS.PRODUCT,) if is_defined(OPS.PRODUCT, dtype) else ()
        for op in (OPS.SUM, *products, *((OPS.AVG,) if is_defined(OPS.AVG, dtype) else (OPS.MAX,))):
            for root in (0, size - 1):
                for tensor in layouts(made(rank, dtype, (3, 4))):
                    dist.reduce(tensor, root, op)
                    alone = array_of(made(rank, dtype, (3, 4)))
                    check_equal(tensor, together(op, size, dtype, (3, 4)) if rank == root else alone)
            expected = together(op, size, dtype, (size, 2))[rank]
            inputs = made(rank, dtype, (size, 2))
            for into in layouts(lucid.zeros(2, dtype=dtype)):
                dist.reduce_scatter_tensor(into, inputs, op)
                check_equal(into, expected)
                into.zero_()
                dist.reduce_scatter(into, list(inputs), op)
                check_equal(into, expected)
            check_equal(inputs, array_of(made(rank, dtype, (size, 2))))


def gathered_and_spread(rank, size):
    """Values move in every dtype, bit by bit, also of columns and transposed tensors."""
    for dtype in ALL:
        theirs = [array_of(made(each, dtype, (2, 3))) for each in range(size)]
        for tensor in layouts(made(rank, dtype, (2, 3))):
            lists = [list(layouts(lucid.zeros(2, 3, dtype=dtype)))[each % 3] for each in range(size)]
            dist.all_gather(lists, tensor)
            for into, expected in zip(lists, theirs, strict=True):
                check_equal(into, expected)
            for shape in ((size, 2, 3), (size * 2, 3), (size * 6,)):
                for into in layouts(lucid.zeros(shape, dtype=dtype)):
                    dist.all_gather_into_tensor(into, tensor)
                    check_equal(into, np.stack(theirs).reshape(shape))
            for root in (0, size - 1):
                lists = [lucid.zeros(2, 3, dtype=dtype) for _ in range(size)] if rank == root else None
                dist.gather(tensor, lists, root)
                for into, expected in zip(lists or (), theirs, strict=bool(lists)):
                    check_equal(into, expected)
                into = list(layouts(lucid.zeros(2, 3, dtype=dtype)))[root % 3]
                sent = [made(each, dtype, (2, 3)) for each in range(size)] if rank == root else None
                dist.scatter(into, sent, root)
                check_equal(into, theirs[rank])
                dist.broadcast(tensor, root)
                check_equal(tensor, theirs[root])
                tensor.copy_(made(rank, dtype, (2, 3)))


def all_to_all_of_equal_and_other_parts(rank, size):
    """Process i gets part i of each, of whatever sizes, none among them."""
    for dtype in ALL:
        into, given = lucid.zeros(size, 3, dtype=dtype), made(rank, dtype, (size, 3))
        dist.all_to_all_single(into, given)
        check_equal(into, np.stack([array_of(made(each, dtype, (size, 3)))[rank] for each in range(size)]))
        # process i sends (i + j) % 3 rows to process j
        counts = [[(i + j) % 3 for j in range(size)] for i in range(size)]
        rows = [array_of(made(i, dtype, (sum(counts[i]), 2))) for i in range(size)]
        starts = [sum(counts[i][:rank]) for i in range(size)]
        expected = [rows[i][starts[i] : starts[i] + counts[i][rank]] for i in range(size)]
        received, sent = [counts[i][rank] for i in range(size)], counts[rank]
        given = made(rank, dtype, (sum(sent), 2))
        for into in layouts(lucid.zeros(sum(received), 2, dtype=dtype)):
            dist.all_to_all_single(into, given, received, sent)
            check_equal(into, np.concatenate(expected))
        lists = [lucid.zeros(count, 2, dtype=dtype) for count in received]
        dist.all_to_all(lists, list(given.split(sent)))
        for into, part in zip(lists, expected, strict=True):
            check_equal(into, part)


def in_its_own_memory(rank, size):
    """What is received may be written over what is sent, as scripts do that gather in place."""
    whole = lucid.zeros(size, 3)
    whole[rank] = rank + 1.0
    dist.all_gather_into_tensor(whole, whole[rank])
    assert whole.tolist() == [[each + 1.0] * 3 for each in range(size)]
    dist.reduce_scatter_tensor(whole[rank], whole)
    assert whole[rank].tolist() == [size * (rank + 1.0)] * 3
    square = lucid.arange(size) + size * rank
    dist.all_to_all_single(square, square)
    assert square.tolist() == [rank + size * each for each in range(size)]
    dist.all_gather(list(whole), whole[rank])
    assert whole[0].tolist() == [size * 1.0] * 3


def views_and_versions(rank, size):
    """Views of what is written see it, a saved tensor notices, a leaf that requires grad is written."""
    base = lucid.full((2, 3), float(rank))
    before = base._version
    dist.all_reduce(base[0])
    assert base.tolist() == [[size * (size - 1) / 2] * 3, [rank] * 3]
    assert base._version == before + 1
    dist.broadcast(base, 0)
    assert base._version == before + 1 + (rank != 0), base._version
    x = lucid.ones(3, requires_grad=True)
    y = (x * (saved := lucid.ones(3))).sum()
    dist.all_reduce(saved)
    refused(RuntimeError, y.backward, "inplace")
    dist.all_reduce(x)
    assert x.requires_grad
    assert x.grad_fn is None
    assert x.tolist() == [size] * 3
    with lucid.inference_mode():
        z = lucid.ones(2)
        dist.all_reduce(z)
    assert z.tolist() == [size] * 2


def versions_count_what_is_written(rank, size):
    """Each collective counts one change of what it writes in this process, and none of what it reads."""
    one, other = lucid.ones(2), lucid.ones(2)
    wide, flat = lucid.ones(2 * size), lucid.ones(2 * size)
    many, more = [lucid.ones(2) for _ in range(size)], [lucid.ones(2) for _ in range(size)]
    every = [one, other, wide, flat, *many, *more]
    for root in range(size):
        here = rank == root
        for call, written in (
            (lambda: dist.all_reduce(one), [one]),
            (lambda: dist.broadcast(one, root), [] if here else [one]),
            (lambda: dist.reduce(one, root), [one] if here else []),
            (lambda: dist.all_gather(many, one), many),
            (lambda: dist.all_gather_into_tensor(wide, one), [wide]),
            (lambda: dist.gather(one, many if here else None, root), many if here else []),
            (lambda: dist.scatter(one, many if here else None, root), [one]),
            (lambda: dist.reduce_scatter(one, many), [one]),
            (lambda: dist.reduce_scatter_tensor(one, wide), [one]),
            (lambda: dist.all_to_all(many, more), many),
            (lambda: dist.all_to_all_single(wide, flat), [wide]),
        ):
            before = [each._version for each in every]
            call()
            changed = [each._version - version for each, version in zip(every, before, strict=True)]
            assert changed == [any(each is tensor for tensor in written) for each in every], (root, written)
        recorded = lucid.ones(2, requires_grad=True) * 2  # may be sent, as nothing is written into it
        dist.reduce(recorded if not here else one, root)
        dist.broadcast(recorded if here else one, root)


def what_is_on_the_graph_is_written(rank, size):
    """A loss of a process may become the mean of all, to be shown; backward is of what it was, and raises through it.

    A view of a result passes that on to it, and where nothing is recorded the graph does not follow, as of any change.
    """
    leaf = lucid.full((3,), rank + 1.0, requires_grad=True)
    loss = leaf.square().sum()
    shown = loss.clone()
    dist.all_reduce(shown, OPS.AVG)
    mean = 3 * sum((each + 1) ** 2 for each in range(size)) / size
    assert abs((shown / 2).item() - mean / 2) < 1e-5
    for call in (shown.backward, (shown + loss).backward, lambda: lucid.autograd.grad(shown, leaf, allow_unused=True)):
        refused(NotDifferentiableError, call, "all_reduce has written", "tensor.detach().clone()")
    loss.backward()
    assert leaf.grad.tolist() == [2 * rank + 2.0] * 3
    for root in range(size):
        rows = lucid.stack([leaf * 2, leaf * 3])
        first = rows[0]
        dist.broadcast(first, root)
        assert rows.detach().tolist() == [[2 * root + 2.0] * 3, [3 * rank + 3.0] * 3]
        if rank == root:
            rows.sum().backward()
        else:
            refused(NotDifferentiableError, rows.sum().backward, "broadcast has written")
    loss = (leaf * 2).sum()
    leaf.grad = None
    with lucid.no_grad():
        dist.all_reduce(loss)
    loss.backward()
    assert leaf.grad.tolist() == [2.0] * 3
    with lucid.no_grad():
        part = rows[0]
    refused(InplaceError, lambda: dist.all_reduce(part), "taken in no_grad mode")  # `rows` could not follow
    dist.all_reduce(leaf)  # a leaf that requires grad keeps its place
    assert leaf.is_leaf
    assert leaf.requires_grad


def refused_before_anything_is_sent(rank, size):
    """A view of a leaf that requires grad, memory that cannot be written, arguments that do not fit."""
    refused(RuntimeError, lambda: dist.all_reduce(lucid.ones(3, requires_grad=True).view(3)), "leaf", "in-place")
    frozen = np.ones(3)
    frozen.flags.writeable = False
    refused(RuntimeError, lambda: dist.all_reduce(lucid.from_numpy(frozen)), "read")
    refused(RuntimeError, lambda: dist.broadcast(lucid.ones(1).expand(3), (rank + 1) % size), "expand")
    refused(TypeError, lambda: dist.all_reduce(np.ones(3)), "tensor", "Tensor")
    refused(TypeError, lambda: dist.all_reduce([lucid.ones(3)]), "Tensor", "list")
    refused(TypeError, lambda: dist.all_reduce(lucid.ones(3), "sum"), "ReduceOp", "'sum'")
    refused(TypeError, lambda: dist.all_gather(lucid.ones(3), lucid.ones(3)), "tensor_list")
    short = [lucid.ones(3)] * (size - 1)
    refused(ValueError, lambda: dist.all_gather(short, lucid.ones(3)), "tensor_list", str(size), str(size - 1))
    alike = [lucid.ones(3)] * size
    refused(ValueError, lambda: dist.all_gather(alike, lucid.ones(4)), "all_gather", "(3,)", "(4,)")
    refused(ValueError, lambda: dist.all_gather(alike, lucid.ones(3, dtype=lucid.int32)), "int32")
    refused(TypeError, lambda: dist.gather(lucid.ones(3), None, rank), "gather_list")
    refused(ValueError, lambda: dist.gather(lucid.ones(3), alike, (rank + 1) % size), "gather_list", "None")
    refused(ValueError, lambda: dist.scatter(lucid.ones(3), alike, (rank + 1) % size), "scatter_list", "None")
    refused(ValueError, lambda: dist.all_gather_into_tensor(lucid.ones(3), lucid.ones(4)), "elements")
    refused(TypeError, lambda: dist.all_gather_into_tensor(lucid.ones(size, dtype=lucid.int64), lucid.ones(1)), "dtype")
    refused(ValueError, lambda: dist.reduce_scatter_tensor(lucid.ones(2), lucid.ones(3)), "elements")
    refused(ValueError, lambda: dist.all_to_all_single(lucid.ones(size + 1), lucid.ones(size + 1)), "divides")
    refused(ValueError, lambda: dist.all_to_all_single(lucid.ones(4), lucid.ones(4), [4] * size), "output_split_sizes")
    refused(ValueError, lambda: dist.all_to_all_single(lucid.ones(()), lucid.ones(())), "dimension")
    # what differs from the others in shape or dtype, wherever in a list it stands
    for index in range(size):
        for unlike in (lucid.ones(4), lucid.ones(3, dtype=lucid.int32)):
            mixed = [*alike[:index], unlike, *alike[index + 1 :]]
            refused(ValueError, lambda mixed=mixed: dist.all_gather(mixed, lucid.ones(3)), "alike")
            refused(ValueError, lambda mixed=mixed: dist.gather(lucid.ones(3), mixed, rank), "alike")
            refused(ValueError, lambda mixed=mixed: dist.scatter(lucid.ones(3), mixed, rank), "alike")
            refused(ValueError, lambda mixed=mixed: dist.reduce_scatter(lucid.ones(3), mixed), "alike")
        refused(TypeError, lambda mixed=mixed: dist.all_to_all(mixed, alike), "one dtype")
        refused(TypeError, lambda mixed=mixed: dist.all_to_all(alike, mixed), "one dtype")
    refused(ValueError, lambda: dist.all_to_all_single(lucid.ones(size, 2), lucid.ones(size, 3)), "first dimension")
    refused(ValueError, lambda: dist.all_to_all_single(lucid.ones(size), lucid.ones(size).double()), "one dtype")
    for call in (dist.broadcast, dist.reduce):
        refused(ValueError, lambda call=call: call(lucid.ones(3), size), f"{call.__name__}", str(size))
        refused(ValueError, lambda call=call: call(lucid.ones(3), -1), "-1")
        refused(ValueError, lambda call=call: call(lucid.ones(3)), "group_")
        refused(TypeError, lambda call=call: call(lucid.ones(3), 0.5), "0.5")
    refused(ValueError, lambda: dist.broadcast(lucid.ones(3), group_src=size), "0 ..")
    refused(ValueError, lambda: dist.broadcast(lucid.ones(3), 0, group_src=0), "not both")
    refused(TypeError, lambda: dist.all_reduce(lucid.ones(3), group=3), "ProcessGroup")
    dist.barrier()


def several_under_way(rank, size):
    """Asynchronous collectives are waited for in any order; each has its own results when its `wait` returns."""
    tensors = [lucid.full((each + 1,), float(rank + each)) for each in range(12)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    into = [lucid.zeros(2) for _ in range(size)]
    gathering = dist.all_gather(into, lucid.full((2,), float(rank)), async_op=True)
    order = range(12) if rank % 2 else reversed(range(12))
    for each in order:
        assert works[each].wait()
        assert works[each].is_completed()
        assert tensors[each].tolist() == [size * (size - 1) / 2 + size * each] * (each + 1)
    gathering.wait()
    assert [each.tolist() for each in into] == [[each, each] for each in range(size)]
    work = dist.barrier(async_op=True)
    while not work.is_completed():
        pass
    assert work.wait(timeout=60)
    dropped = lucid.ones(3)
    dist.all_reduce(dropped, async_op=True)  # nobody waits for it, and it ends beside others
    dist.barrier()


def tree(tensor, group=None):
    """Begin the sum in the order of a tree, of which a collective is begun inside of another."""
    chosen = group or world.group
    target = Target(tensor, "tree_all_reduce")
    engine = chosen.engine(tensor.device.type)
    return chosen.begin(engine, "tree_all_reduce", "", lambda: engine.tree_all_reduce(target.buffer), phases=2)


def a_tree_adds_in_its_order(rank, size):
    """The sum over processes has the bits of `tree_sum` over all their values, which those of a chain have not."""
    for dtype in (lucid.float32, lucid.float64, lucid.float16, lucid.bfloat16, lucid.complex64):
        wide = np.float32 if dtype in {lucid.float16, lucid.bfloat16} else dtype.numpy
        for shape in ((1000,), (7, 3), (), (0,)):
            rows = [
                np.asarray(np.random.default_rng([9, each]).normal(size=shape)).astype(wide) for each in range(size)
            ]
            tensors = [lucid.tensor(row).to(dtype) for row in rows]
            tree(tensor := tensors[rank].clone()).wait()
            rounded = [np.asarray(host(each).astype(wide)) for each in tensors]
            expected = array_of(lucid.tensor(tree_sum(rounded)).to(dtype))
            check_equal(tensor, expected)
            assert array_of(tensor).tobytes() == expected.tobytes()


def trees_under_way_in_two_groups(rank, size):
    """Each process waits for another one first, and both have a second step that needs the others to get on."""
    first, second = dist.new_group(), dist.new_group()
    tensors = [lucid.full((5,), float(rank)) for _ in range(6)]
    works = [tree(tensor, (first, second)[each % 2]) for each, tensor in enumerate(tensors)]
    works.insert(3, dist.all_reduce(plain := lucid.ones(2), group=first, async_op=True))
    for work in works if rank % 2 else reversed(works):
        work.wait()
    assert [each.tolist() for each in tensors] == [[size * (size - 1) / 2] * 5] * 6
    assert plain.tolist() == [size, size]


def maxima_of_nan(rank, size):
    """MIN and MAX of floating-point numbers are NaN where one of them is, in all processes."""
    for dtype in (lucid.float16, lucid.bfloat16, lucid.float32, lucid.float64):
        x = lucid.tensor([1.0 + rank, -2.0 - rank, float("nan") if rank == 0 else 3.0, 4.0 if rank == 0 else np.nan])
        for op in (OPS.MIN, OPS.MAX):
            y = x.to(dtype).clone()
            dist.all_reduce(y, op)
            expected = (1.0, -1.0 - size) if op is OPS.MIN else (float(size), -2.0)
            assert y[:2].tolist() == list(expected), y
            assert y.isnan().tolist() == [False, False, True, True], (op, y)


CHECKS = (
    all_reduce_in_every_dtype_operation_and_layout,
    reduce_and_reduce_scatter,
    gathered_and_spread,
    all_to_all_of_equal_and_other_parts,
    in_its_own_memory,
    views_and_versions,
    versions_count_what_is_written,
    what_is_on_the_graph_is_written,
    refused_before_anything_is_sent,
    several_under_way,
    a_tree_adds_in_its_order,
    trees_under_way_in_two_groups,
    maxima_of_nan,
)

if __name__ == "__main__":
    with contextlib.suppress(KeyError):
        np.seterr(over="ignore")
    begin(30, "mpi")
    go_through(CHECKS, dist.get_rank(), dist.get_rank(), dist.get_world_size())
    dist.destroy_process_group()
