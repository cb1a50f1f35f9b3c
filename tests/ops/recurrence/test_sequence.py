"""A sequence as one op gives values and derivatives of its steps, and is recorded, hooked and kept as one op."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest

import lucid
from lucid import hooks, nn
from lucid.autograd.grad_mode import no_grad
from lucid.autograd.gradcheck import gradcheck
from lucid.errors import InplaceError, ShapeError
from lucid.nn.utils.rnn import pack_sequence
from lucid.ops.recurrence import arrays, runs
from lucid.ops.recurrence.kinds import KINDS
from lucid.ops.recurrence.sequence import recurrence
from lucid.ops.recurrence.steps import GATES, by_steps

BATCHES = {"padded": (3, 3, 3, 3), "packed": (4, 4, 2, 2, 2, 1), "one step": (2,), "one row": (1, 1, 1)}


def drawn(rng, mode, batch_sizes, *, width=4, inputs=3, bias=True, projected=0, dtype=np.float64):
    """Return leaves by name: inputs, first states and weights of a layer and direction."""
    out, rows = projected or width, GATES[mode] * width
    shapes = {
        "x": (sum(batch_sizes), inputs),
        "w_ih": (rows, inputs),
        "w_hh": (rows, out),
        "h_0": (batch_sizes[0], out),
    }
    if mode == "LSTM":
        shapes["c_0"] = (batch_sizes[0], width)
    if bias:
        shapes |= {"b_ih": (rows,), "b_hh": (rows,)}
    if projected:
        shapes["w_hr"] = (projected, width)
    # greater weights make a long sequence chaotic
    scales = {"w_hh": width**-0.5}
    return {
        name: lucid.tensor(
            (rng.standard_normal(shape) * scales.get(name, 1)).astype(dtype), device="cpu", requires_grad=True
        )
        for name, shape in shapes.items()
    }


def called(function, mode, batch_sizes, leaves, *, backwards=False):
    """Return the output and the last states of a sequence."""
    output, last = function(
        mode, leaves["x"], batch_sizes, tuple(leaves[name] for name in ("h_0", "c_0") if name in leaves),
        (leaves["w_ih"], leaves["w_hh"]), (leaves.get("b_ih"), leaves.get("b_hh")), leaves.get("w_hr"),
        backwards=backwards,
    )  # fmt: skip
    return [output, *last]


def upstream(rng, outs):
    return [
        lucid.tensor(rng.standard_normal(tuple(out.shape)).astype(out.numpy(force=True).dtype), device="cpu")
        for out in outs
    ]


def close(got, expected, rtol=1e-10, atol=1e-12):
    for a, b in zip(got, expected, strict=True):
        if b is None:
            # the op does not say of what an output alone does not hang
            assert (a.numpy(force=True) == 0).all()
            continue
        np.testing.assert_allclose(a.numpy(force=True), b.numpy(force=True), rtol=rtol, atol=atol)


def ops_of(run):
    """Return the names of the ops that function hooks see."""
    seen = []

    class Names(hooks.FunctionHook):
        def before(self, call):
            seen.append(call.name)

    with Names():
        run()
    return seen


CASES = [
    (mode, batch, settings, backwards)
    for mode, batch, settings, backwards in itertools.product(
        KINDS, BATCHES, ({}, {"bias": False}, {"projected": 2}, {"projected": 2, "bias": False}), (False, True)
    )
    if mode == "LSTM" or "projected" not in settings
]


@pytest.mark.parametrize(("mode", "batch", "settings", "backwards"), CASES)
def test_values_and_gradients_are_those_of_the_steps(mode, batch, settings, backwards, rng):
    """Of all operands, from gradients of the output and of the last states, and from each of these alone."""
    sizes = BATCHES[batch]
    leaves = drawn(rng, mode, sizes, **settings)
    whole, steps = (called(f, mode, sizes, leaves, backwards=backwards) for f in (recurrence, by_steps))
    close(whole, steps)
    grads = upstream(rng, whole)
    for part in (slice(None), *(slice(k, k + 1) for k in range(len(whole)))):
        expected = lucid.autograd.grad(
            steps[part], list(leaves.values()), grads[part], retain_graph=True, allow_unused=True
        )
        got = lucid.autograd.grad(whole[part], list(leaves.values()), grads[part], retain_graph=True)
        close(got, expected)


@pytest.mark.parametrize("width", [5, 64, 96, 128])
@pytest.mark.parametrize("mode", KINDS)
def test_blocks_of_columns_and_many_runs(mode, width, rng, monkeypatch):
    """However products are cut, and a sequence is, values and gradients are those of the steps."""
    monkeypatch.setattr(runs, "BLOCK", 2 * 20 * width)
    monkeypatch.setattr(runs, "UNPACKED", 20 * 4 * width * 32)
    sizes = (20,) * 5 + (3,) * 4
    for backwards in (False, True):
        leaves = drawn(rng, mode, sizes, width=width)
        whole, steps = (called(f, mode, sizes, leaves, backwards=backwards) for f in (recurrence, by_steps))
        close(whole, steps, 1e-9, 1e-10)
        grads = upstream(rng, whole)
        close(
            lucid.autograd.grad(whole, list(leaves.values()), grads),
            lucid.autograd.grad(steps, list(leaves.values()), grads),
            1e-8,
            1e-9,
        )


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("mode", KINDS)
def test_finite_differences(mode, backwards, rng):
    """Gradients of all operands are those of differences, of a packed sequence."""
    sizes = (2, 2, 1)
    leaves = drawn(rng, mode, sizes, width=2, inputs=2, projected=1 if mode == "LSTM" else 0)

    def function(*operands):
        return tuple(called(recurrence, mode, sizes, dict(zip(leaves, operands, strict=True)), backwards=backwards))

    assert gradcheck(function, tuple(leaves.values()))


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("mode", KINDS)
def test_second_derivatives_are_those_of_the_steps(mode, backwards, rng):
    """What a pass on the graph gives has the values of a plain pass, and derivatives by operands and upstream."""
    sizes = (3, 2, 2)
    leaves = drawn(rng, mode, sizes)
    names = [name for name in leaves if name != "b_hh"]
    wanted = [leaves[name] for name in names]
    results = []
    first = upstream(rng, called(recurrence, mode, sizes, leaves))
    second = None
    for function in (recurrence, by_steps):
        outs = called(function, mode, sizes, leaves, backwards=backwards)
        grads = [grad.detach().requires_grad_() for grad in first]
        plain = lucid.autograd.grad(outs, wanted, grads, retain_graph=True)
        once = lucid.autograd.grad(outs, wanted, grads, create_graph=True)
        close(plain, once)
        second = second or upstream(rng, once)
        results.append([*once, *lucid.autograd.grad(once, [*wanted, leaves.get("b_hh"), *grads], second)])
    close(*results)


@pytest.mark.parametrize("mode", KINDS)
def test_only_wanted_gradients_are_computed(mode, rng, monkeypatch):
    """An operand that needs no gradient gets none, and costs no product."""
    leaves = drawn(rng, mode, (2, 2), projected=2 if mode == "LSTM" else 0)
    products = []
    product = arrays.product
    monkeypatch.setattr(arrays, "product", lambda *args: products.append(1) or product(*args))
    counts = {"x": 1, "w_ih": 1, "w_hh": 1, "h_0": 0, "c_0": 0, "b_ih": 0, "b_hh": 0}
    if mode == "LSTM":
        # the outputs are projected anew
        counts |= {"w_hh": 3, "w_hr": 3}
    for name, leaf in leaves.items():
        alone = {other: value.detach() for other, value in leaves.items()} | {name: leaf}
        out = called(recurrence, mode, (2, 2), alone)[0]
        products.clear()
        (grad,) = lucid.autograd.grad(out.sum(), [leaf])
        assert (grad.shape, len(products)) == (leaf.shape, counts[name])


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_one_op_and_one_node(kind, rng):
    """A layer and direction is one op for function hooks and one node, whatever the number of steps."""
    layer = getattr(nn, kind)(3, 4, 2, bidirectional=True, device="cpu")
    name = {"RNN": "rnn_tanh"}.get(kind, kind.lower())
    counts = []
    for steps in (2, 20):
        x = lucid.tensor(rng.standard_normal((steps, 2, 3)).astype(np.float32), device="cpu")
        seen = ops_of(lambda x=x: layer(x)[0].sum().backward())
        assert seen.count(name) == 4
        assert sum("rnn" in each.lower() or kind.lower() in each.lower() for each in seen) == 8
        counts.append(len(seen))
    assert counts[0] == counts[1]


def test_what_goes_by_steps(rng):
    """Half types, mixed dtypes, and what autocast makes half go by the steps, with their dtypes."""
    leaves = drawn(rng, "LSTM", (2, 2), dtype=np.float32)
    for dtype in (lucid.float16, lucid.bfloat16):
        halves = {name: leaf.detach().to(dtype) for name, leaf in leaves.items()}
        assert "lstm" not in ops_of(lambda halves=halves: called(recurrence, "LSTM", (2, 2), halves))
    mixed = leaves | {"c_0": leaves["c_0"].detach().double(), "x": leaves["x"].detach()[:2]}
    assert called(recurrence, "LSTM", (2,), mixed)[2].dtype == lucid.float64
    with lucid.autocast("cpu", dtype=lucid.bfloat16):
        assert "lstm" not in ops_of(lambda: called(recurrence, "LSTM", (2, 2), leaves))
        wide = {name: leaf.detach().double() for name, leaf in leaves.items()}
        assert ops_of(lambda: called(recurrence, "LSTM", (2, 2), wide)) == ["lstm"]


def test_shapes_that_do_not_fit(rng):
    """Biases broadcast as in the steps, one may be missing, and other shapes are refused by the product at fault."""
    for mode in KINDS:
        for bias in (lucid.ones(1, device="cpu", dtype=lucid.float64), None):
            leaves = drawn(rng, mode, (2, 2)) | {"b_hh": bias and bias.requires_grad_()}
            whole, steps = (called(f, mode, (2, 2), leaves) for f in (recurrence, by_steps))
            close(whole, steps)
            if bias is not None:
                (grad,) = lucid.autograd.grad(whole[0].sum(), [bias])
                assert grad.shape == (1,)
        rows = 4 * GATES[mode]
        for name, shape in (("w_hh", (rows, 5)), ("w_hh", (rows + 1, 4)), ("w_ih", (rows, 2)), ("b_ih", (rows + 1,))):
            leaves = drawn(rng, mode, (2, 2)) | {name: lucid.ones(*shape, device="cpu", dtype=lucid.float64)}
            with pytest.raises(ShapeError, match="linear: expected"):
                called(recurrence, mode, (2, 2), leaves)
        for sizes, drawn_for in (((2, 1), (2, 2)), ((2, 2, 2), (2, 2)), ((2, 3), (2, 3)), ((1, 3), (1, 3))):
            for backwards in (False, True):
                with pytest.raises(ShapeError):
                    called(recurrence, mode, sizes, drawn(rng, mode, drawn_for), backwards=backwards)
        leaves = drawn(rng, mode, (3, 1))
        close(*(called(f, mode, (2, 2), leaves) for f in (recurrence, by_steps)))


def test_hooks_of_parameters_fire_in_order(rng):
    """The hooks of a layer's parameters fire in the order of PyTorch's steps, those of the last ones first."""
    leaves = drawn(rng, "LSTM", (2, 2), projected=2)
    log = []
    for name, leaf in leaves.items():
        leaf.register_hook(lambda _, name=name: log.append(name))
    called(recurrence, "LSTM", (2, 2), leaves)[0].sum().backward()
    assert log == ["w_hr", "b_hh", "w_hh", "b_ih", "w_ih", "c_0", "h_0", "x"]


@pytest.mark.parametrize("mode", KINDS)
def test_changes_in_place(mode, rng):
    """Outputs may be changed in place, as their values are not needed again; weights may not. Gradients are apart."""
    leaves = drawn(rng, mode, (2, 2))
    outs = called(recurrence, mode, (2, 2), leaves)
    expected = lucid.autograd.grad(sum(out.sum() for out in outs), list(leaves.values()), retain_graph=True)
    for out in outs:
        out.mul_(2)
    got = lucid.autograd.grad(sum(out.sum() for out in outs), list(leaves.values()), retain_graph=True)
    close(got, [2 * each for each in expected])
    grads = {name: grad.numpy(force=True) for name, grad in zip(leaves, got, strict=True)}
    for a, b in itertools.combinations(grads, 2):
        assert not np.shares_memory(grads[a], grads[b]), (a, b)
    with no_grad():
        leaves["w_hh"].mul_(2)
    with pytest.raises(InplaceError, match="(?i)" + mode.replace("_", "")):
        outs[0].sum().backward()


@pytest.mark.parametrize("mode", KINDS)
def test_odd_memory(mode, rng):
    """Operands and gradients may lie anyhow in memory: transposed, reversed, broadcast, and not to be written to."""
    sizes = (3, 3, 2)
    leaves = drawn(rng, mode, sizes)
    outs = called(recurrence, mode, sizes, leaves)
    grads = upstream(rng, outs)
    expected = lucid.autograd.grad(outs, list(leaves.values()), grads, retain_graph=True)

    def transposed(value):
        return np.asfortranarray(value)

    def reversed_rows(value):
        return value[::-1].copy()[::-1]

    def every_other(value):
        return np.repeat(value, 2, -1)[..., ::2]

    def read_only(value):
        value = value.copy()
        value.flags.writeable = False
        return value

    for place in (transposed, reversed_rows, every_other, read_only):
        # from an array lucid copies: what lies oddly is put under the tensor
        odd = {name: leaf.detach() for name, leaf in leaves.items()}
        odd_grads = [grad.detach() for grad in grads]
        for tensor in (*odd.values(), *odd_grads):
            tensor.array = place(tensor.numpy(force=True))
        odd = {name: leaf.requires_grad_() for name, leaf in odd.items()}
        again = called(recurrence, mode, sizes, odd)
        close(again, outs)
        close(lucid.autograd.grad(again, list(odd.values()), odd_grads), expected)
    ones = [out.sum() for out in outs]
    close(
        lucid.autograd.grad(sum(ones), list(leaves.values()), retain_graph=True),
        lucid.autograd.grad(outs, list(leaves.values()), [lucid.ones_like(out) for out in outs], retain_graph=True),
    )


@pytest.mark.parametrize("mode", KINDS)
def test_nothing_to_do(mode, rng):
    """No rows give no outputs, and zero gradients of weights."""
    leaves = drawn(rng, mode, (0, 0))
    outs = called(recurrence, mode, (0, 0), leaves)
    assert [out.shape[0] for out in outs] == [0] * len(outs)
    for name, grad in zip(leaves, lucid.autograd.grad(outs[0].sum(), list(leaves.values())), strict=True):
        assert grad.shape == leaves[name].shape
        assert (grad.numpy(force=True) == 0).all()


def test_digits_of_nearly_closed_gates(rng):
    """A gate that is nearly closed keeps its digits: a cell that f leaves through alone is sigmoid(f) times it."""
    leaves = drawn(rng, "LSTM", (1,), width=1, inputs=1, bias=False, dtype=np.float32)
    for name, values in (("w_hh", [0, 0, 0, 0]), ("w_ih", [-200, -60, 0, 100])):
        leaves[name] = lucid.tensor(np.array(values, np.float32)[:, None], device="cpu")
    leaves["x"] = lucid.ones(1, 1, device="cpu")
    cell = called(recurrence, "LSTM", (1,), leaves)[2]
    np.testing.assert_allclose(cell.numpy(force=True), leaves["c_0"].numpy(force=True) / (1 + np.exp(60.0)), rtol=1e-6)


@pytest.mark.parametrize("mode", KINDS)
def test_odd_values(mode, rng):
    """NaN and infinities come out, forward and backward, where they do of the steps; closed units stop gradients."""
    sizes = (2, 2, 2)
    for value, place in itertools.product((np.nan, np.inf, -np.inf, -0.0, 1e200), ("x", "h_0", "w_hh", "upstream")):
        leaves = drawn(rng, mode, sizes)
        if place != "upstream":
            leaves[place].array[0, 0] = value
        whole, steps = (called(f, mode, sizes, leaves) for f in (recurrence, by_steps))
        for a, b in zip(whole, steps, strict=True):
            np.testing.assert_allclose(a.numpy(force=True), b.numpy(force=True), rtol=1e-10, atol=1e-12)
        grads = upstream(rng, whole)
        if place == "upstream":
            grads[0].array[1, 0] = value
        for a, b in zip(
            *(lucid.autograd.grad(outs, list(leaves.values()), grads) for outs in (whole, steps)), strict=True
        ):
            a, b = a.numpy(force=True), b.numpy(force=True)
            if mode == "GRU" and place == "upstream":
                # (1 - z) times infinity is infinite, of the steps infinity less z times infinity is NaN
                b = np.where(np.isinf(a) & np.isnan(b), a, b)
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


def test_memory(rng):
    """A node keeps five arrays of the size of the output, of an RNN one; without recording nothing is kept."""
    sizes, width = (8,) * 64, 32
    size = 8 * 64 * width * 8
    for mode, most in (("LSTM", 5), ("GRU", 5), ("RNN_TANH", 1)):
        leaves = drawn(rng, mode, sizes, width=width)
        held = {leaf.array.ctypes.data for leaf in leaves.values()}
        outs = called(recurrence, mode, sizes, leaves)
        _, saved, *_ = outs[0].grad_fn.kept
        assert (
            sum(array.nbytes for array in saved if array is not None and array.ctypes.data not in held) == most * size
        )
        peaks = []
        for recording in (True, False):
            tracemalloc.start()
            with lucid.set_grad_enabled(recording):
                called(recurrence, mode, sizes, leaves)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert peaks[0] - peaks[1] > 0.9 * most * size
        assert peaks[1] < (GATES[mode] + 2) * size


def packed_call(layer, x):
    return layer(pack_sequence([x[:, 0], x[:2, 0]]))[0].data


@pytest.mark.parametrize("call", [lambda layer, x: layer(x)[0], packed_call])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_modes_and_transforms(kind, call, rng):
    """Checkpoints, hooks of saved tensors, anomaly mode, `vmap`, `jvp` and retained graphs see one op like another."""
    layer = getattr(nn, kind)(3, 4, bidirectional=True, device="cpu").double()
    x, v = (lucid.tensor(rng.standard_normal((3, 2, 3)), device="cpu", requires_grad=True) for _ in range(2))
    out = call(layer, x)
    wanted = [x, *layer.parameters()]
    expected = lucid.autograd.grad(out.sum(), wanted, retain_graph=True)
    close(lucid.autograd.grad(out.sum(), wanted), expected)
    again = lucid.utils.checkpoint.checkpoint(lambda x: call(layer, x), x, use_reentrant=False)
    close(lucid.autograd.grad(again.sum(), wanted), expected)
    with lucid.autograd.graph.saved_tensors_hooks(
        lambda t: t.numpy(force=True).copy(), lambda a: lucid.tensor(a, device="cpu")
    ):
        packed = call(layer, x)
    close(lucid.autograd.grad(packed.sum(), wanted), expected)
    with lucid.autograd.set_detect_anomaly(True):
        name = "rnn" if kind == "RNN" else kind.lower()
        wrong = lucid.where(x == x[0, 0, 0], np.nan, x.detach())
        with pytest.warns(UserWarning, match="Error"), pytest.raises(RuntimeError, match=f"(?i){name}.*nan"):
            call(layer, wrong).sum().backward()
    value, slope = lucid.func.jvp(lambda x: call(layer, x), (x.detach(),), (v.detach(),))
    close([value], [out])
    step = 1e-6
    with no_grad():
        difference = (call(layer, x + step * v) - call(layer, x - step * v)) / (2 * step)
    close([slope], [difference], 1e-6, 1e-8)
    rows = lucid.func.vmap(lambda x: call(layer, x))(lucid.stack([x, v]).detach())
    close(rows, [out, call(layer, v)])
