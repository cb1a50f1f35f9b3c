"""backward, grad, modes and anomaly detection."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import lucid
from lucid import hooks
from lucid.errors import HookTypeError, ShapeError
from tests.pieces import in_threads, leaf

contract = pytest.mark.contract


@contract("2.5")
@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)])
def test_one_element_of_any_shape_needs_no_gradient(shape: tuple[int, ...]) -> None:
    """backward() of a tensor with one element begins with one."""
    x = lucid.full(shape, 3.0, dtype=lucid.float64, requires_grad=True)
    (x * x).backward()
    assert x.grad.shape == shape
    assert x.grad.item() == 6.0


@contract("2.5")
def test_more_elements_need_a_gradient_of_their_shape() -> None:
    """The error says which shape is needed; another shape is refused; nothing is accumulated."""
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"only for scalar outputs.*shape \(2,\)"):
        (x * x).backward()
    with pytest.raises(RuntimeError, match=r"gradient 0 has shape \(3,\) and its tensor has shape \(2,\)"):
        (x * x).backward(lucid.ones(3, dtype=lucid.float64))
    with pytest.raises(TypeError, match="expected a Tensor or None, got float"):
        (x * x).backward(1.0)
    with pytest.raises(RuntimeError, match="got 1 tensors and 2 gradients"):
        lucid.autograd.backward([x * x], [lucid.ones(2), lucid.ones(2)])
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        lucid.ones(1).backward()
    assert x.grad is None


def turned_hook(x, turned):
    x.register_hook(lambda grad: turned)
    x.sum().backward()


def turned_prehook(x, turned):
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (turned,))
    y.sum().backward()


def cube(x):
    return (x**3).sum()


# By what takes a gradient or a direction: a call of it with one of as many elements in another shape.
TURNED = {
    "backward": lambda x, turned: (x * 2).backward(turned),
    "autograd.backward": lambda x, turned: lucid.autograd.backward([x * 2], [turned]),
    "autograd.grad": lambda x, turned: lucid.autograd.grad(x * 2, x, turned),
    ".grad": lambda x, turned: setattr(x, "grad", turned),
    "a hook": turned_hook,
    "a prehook": turned_prehook,
    "vjp": lambda x, turned: lucid.autograd.functional.vjp(lambda x: x * 2, x, turned),
    "jvp": lambda x, turned: lucid.autograd.functional.jvp(lambda x: x * 2, x, turned),
    "vhp": lambda x, turned: lucid.autograd.functional.vhp(cube, x, turned),
    "hvp": lambda x, turned: lucid.autograd.functional.hvp(cube, x, turned),
    "func.vjp": lambda x, turned: lucid.func.vjp(lambda x: x * 2, x)[1](turned),
    "func.jvp": lambda x, turned: lucid.func.jvp(cube, (x,), (turned,)),
}


@pytest.mark.parametrize("way", TURNED)
@pytest.mark.parametrize("shape", [(3, 2), (6,), (1, 2, 3), (2, 3, 1)])
def test_as_many_elements_are_not_the_same_shape(way, shape) -> None:
    """What has the elements of a gradient in another shape is refused, with both shapes, and nothing is accumulated."""
    x = lucid.ones(2, 3, dtype=lucid.float64, requires_grad=True)
    with pytest.raises(RuntimeError) as caught:
        TURNED[way](x, lucid.ones(shape, dtype=lucid.float64))
    said = str(caught.value).replace("[", "(").replace("]", ")")
    assert "(2, 3)" in said
    assert str(shape) in said
    assert x.grad is None


def test_inputs_limit_what_is_accumulated() -> None:
    """Only the named leaves and intermediates get a .grad."""
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    (y * y).backward(inputs=[x, y])
    assert x.grad.item() == 36.0
    assert y.grad.item() == 12.0
    assert w.grad is None
    with pytest.raises(RuntimeError, match="inputs is empty"):
        (x * w).backward(inputs=[])


@pytest.mark.parametrize("nothing", [[], ()])
def test_grad_by_nothing(nothing) -> None:
    """Without anything to differentiate by, an error says so, and no hook fires."""
    x = leaf(2.0)
    y = x * x
    y.register_hook(lambda grad: 1 / 0)
    with pytest.raises(RuntimeError, match="inputs is empty: expected at least one tensor"):
        lucid.autograd.grad(y, nothing)
    with pytest.raises(RuntimeError, match="inputs is empty"):
        lucid.autograd.grad(y, nothing, materialize_grads=True)


def test_grad_of_unused_inputs() -> None:
    """An error, None with allow_unused, zeros with materialize_grads."""
    x, w = leaf(2.0), leaf(3.0)
    with pytest.raises(RuntimeError, match="element 1 of inputs was not used"):
        lucid.autograd.grad(x * 2, (x, w))
    assert lucid.autograd.grad(x * 2, (x, w), allow_unused=True)[1] is None
    assert lucid.autograd.grad(x * 2, (x, w), materialize_grads=True)[1].item() == 0.0
    with pytest.raises(RuntimeError, match="does not require grad"):
        lucid.autograd.grad(x * 2, lucid.ones(1))
    with pytest.raises(TypeError, match="expected a Tensor"):
        lucid.autograd.grad(x * 2, 3.0)


def test_grad_of_the_root_of_one_input_twice_and_of_both_leaf_and_intermediate() -> None:
    """Captures at any depth, also of the root itself, and the same input may be asked for twice."""
    x = leaf(2.0)
    y = x * 3
    z = y * y
    grads = lucid.autograd.grad(z, (x, y, z, x))
    assert [g.item() for g in grads] == [36.0, 12.0, 1.0, 36.0]
    assert x.grad is None


def test_batched_gradients() -> None:
    """is_grads_batched gives one row for each gradient: a Jacobian from an identity."""
    x = leaf(1.0, 2.0, 3.0)
    (jacobian,) = lucid.autograd.grad(x * x, x, lucid.eye(3, dtype=lucid.float64), is_grads_batched=True)
    np.testing.assert_array_equal(jacobian.cpu().numpy(), np.diag([2.0, 4.0, 6.0]))
    with pytest.raises(ShapeError, match="is_grads_batched needs grad_outputs of one gradient or more"):
        lucid.autograd.grad(x * x, x, lucid.zeros(0, 3, dtype=lucid.float64), is_grads_batched=True)


def test_batched_gradients_are_taken_one_by_one() -> None:
    """A row is taken just before its pass: the error of an earlier one, and the order of function hooks, tell."""
    x = leaf(1.0, 2.0, 3.0)
    y, z = x * x, x * 3
    with pytest.raises(HookTypeError, match="grad: gradient 1: expected a Tensor or None, got int"):
        lucid.autograd.grad((y, z), x, (lucid.eye(3, dtype=lucid.float64), [1, 2]), is_grads_batched=True)
    names: list[str] = []

    class Names(hooks.FunctionHook):
        def before(self, call: hooks.Call) -> None:
            names.append(call.name)

    with Names():
        lucid.autograd.grad(x * x, x, lucid.eye(3, dtype=lucid.float64)[:2], is_grads_batched=True)
    assert names == ["mul", "getitem", "getitem", "MulBackward0", "getitem", "MulBackward0", "stack"]


@pytest.mark.parametrize("retain_graph", [None, False, True])
def test_batched_gradients_use_the_graph_up(retain_graph: bool | None) -> None:
    """Its rows share one graph, which the last of them frees unless it is to be kept."""
    x = leaf(1.0, 2.0)
    y = x * x
    rows = lucid.eye(2, dtype=lucid.float64)
    lucid.autograd.grad(y, x, rows, retain_graph=retain_graph, is_grads_batched=True)
    if retain_graph:
        assert lucid.autograd.grad(y, x, rows[0])[0].tolist() == [2.0, 0.0]
    else:
        with pytest.raises(RuntimeError, match="through the graph a second time"):
            lucid.autograd.grad(y, x, rows[0])


@pytest.mark.parametrize("way", ["backward", "to inputs", "grad"])
def test_each_kind_of_pass_uses_the_graph_up(way: str) -> None:
    """Whichever runs first frees what the graph keeps, and the next one says so; what is kept may run again."""
    x = leaf(1.0, 2.0)
    run = {
        "backward": lambda y, **keep: y.sum().backward(**keep),
        "to inputs": lambda y, **keep: y.sum().backward(inputs=[x], **keep),
        "grad": lambda y, **keep: lucid.autograd.grad(y.sum(), x, **keep),
    }[way]
    y = x * x
    run(y, retain_graph=True)
    run(y)
    for again in (lambda: run(y), lambda: y.sum().backward(), lambda: lucid.autograd.grad(y.sum(), x)):
        with pytest.raises(RuntimeError, match="through the graph a second time"):
            again()


def test_a_view_is_an_input_as_others_are() -> None:
    """`backward` to a view, of a leaf or of a result, gives the view its gradient, and nothing to its base."""
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    for base in (x, y):
        view = base[1:]
        (view * view).sum().backward(inputs=[view])
        assert view.grad.tolist() == (2 * view).tolist()
        assert x.grad is None


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_first_gradient_belongs_to_its_pass(shape: tuple[int, ...]) -> None:
    """What a pass hands out may be changed, by a hook or later: the next one, of any tensor, begins with 1 again."""
    x, seen = lucid.ones(shape, dtype=lucid.float64, requires_grad=True), []
    for _ in range(2):
        for y in (x.view(shape), x * 1, x + 0, (x + 0).view(shape)):
            (grad,) = lucid.autograd.grad(y, x, retain_graph=True)
            assert grad.item() == 1.0
            grad.mul_(9)
            y.retain_grad()
            y.register_hook(seen.append)
            y.backward()
            assert (y.grad.item(), x.grad.item(), seen[-1].item()) == (1.0, 1.0, 1.0)
            for each in (y.grad, x.grad, seen[-1]):
                each.mul_(7)
            x.grad = None


def test_several_roots_share_one_pass() -> None:
    """Gradients of two roots add up, also where one root lies upstream of the other."""
    x = leaf(2.0)
    y = x * 3
    z = y * y
    hooked = []
    y.register_hook(lambda grad: hooked.append(grad.item()))
    lucid.autograd.backward(
        [z, y], [lucid.tensor([2.0], dtype=lucid.float64), lucid.tensor([5.0], dtype=lucid.float64)]
    )
    assert hooked == [2 * 12.0 + 5.0]
    assert x.grad.item() == 3 * 29.0


def test_roots_in_any_order(rng) -> None:
    """A root waits for what the roots downstream of it give, wherever it stands among them; so does a leaf."""
    seeds = rng.standard_normal(3)
    for order in itertools.permutations(range(3)):
        x = leaf(2.0)
        y = x * 3
        roots = x, y, y * y
        hooked = {}
        for number, root in enumerate(roots):
            root.register_hook(lambda grad, number=number: hooked.setdefault(number, []).append(grad.item()))
        lucid.autograd.backward(
            [roots[k] for k in order], [lucid.tensor([seeds[k]], dtype=lucid.float64) for k in order]
        )
        of_y = 12 * seeds[2] + seeds[1]
        of_x = 3 * of_y + seeds[0]
        for number, expected in enumerate((of_x, of_y, seeds[2])):
            np.testing.assert_allclose(hooked[number], [expected], rtol=1e-12)
        np.testing.assert_allclose(x.grad.item(), of_x, rtol=1e-12)


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_root_that_is_given_twice(create_graph: bool) -> None:
    """Its gradients add up before its hooks see them, at a leaf and at one of several outputs, too."""
    x = leaf(3.0, 5.0)
    for root in (x, x * 2, x.unbind()[1]):
        seen: list[float] = []
        root.register_hook(lambda grad, seen=seen: seen.append(grad.sum().item()))
        gradients = [lucid.full_like(root, number).detach() for number in (1.0, 10.0)]
        lucid.autograd.backward([root, root], gradients, create_graph=create_graph)
        assert seen == [11.0 * root.array.size]


def test_leaves_run_in_the_order_of_their_use() -> None:
    """Leaves whose gradients are complete run one after the other, also one without a hook behind one that has one."""
    a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)
    seen = []
    for name, tensor in (("a", a), ("c", c)):
        tensor.register_hook(lambda grad, name=name: seen.append((name, [t.grad is not None for t in (a, b, c)])))
    lucid.cat([a, b, c]).sum().backward()
    assert seen == [("a", [False, False, False]), ("c", [True, True, False])]


def test_leaves_as_roots_run_in_the_order_given() -> None:
    """Each permutation of them."""
    for order in itertools.permutations("abc"):
        tensors = {name: leaf(1.0) for name in "abc"}
        seen: list[str] = []
        for name, tensor in tensors.items():
            tensor.register_hook(lambda grad, name=name, seen=seen: seen.append(name))
        lucid.autograd.backward([tensors[name] for name in order])
        assert seen == [*order]


def test_create_graph_gives_higher_derivatives() -> None:
    """The third derivative of x ** 4 through backward and grad."""
    x = leaf(2.0)
    y = x * x * x * x
    for expected in (32.0, 48.0, 48.0):
        (y,) = lucid.autograd.grad(y, x, create_graph=True)
        assert y.item() == expected


def test_a_leaf_as_root() -> None:
    """A leaf's own backward adds its seed."""
    x = leaf(2.0)
    seed = lucid.tensor([3.0], dtype=lucid.float64)
    x.backward(seed)
    x.backward(seed)
    assert x.grad.item() == 6.0
    assert seed.item() == 3.0


def test_backward_from_inside_a_hook() -> None:
    """A pass may start another; the outer one goes on."""
    x, w = leaf(2.0), leaf(5.0)
    x.register_hook(lambda grad: _inner(w))
    (x * 3).backward()
    assert (x.grad.item(), w.grad.item()) == (3.0, 10.0)


def _inner(w: lucid.Tensor) -> None:
    with lucid.enable_grad():
        (w * w).backward()


@contract("10")
def test_concurrent_passes_over_one_leaf_lose_nothing() -> None:
    """8 threads x 200 passes give exactly 1600 hook calls and the exact sum."""
    x = leaf(1.0)
    calls = []
    x.register_hook(lambda grad: calls.append(1))

    def work() -> None:
        for _ in range(200):
            (x * 3).backward()

    in_threads(*[work] * 8)
    assert len(calls) == 1600
    assert x.grad.item() == 4800.0


@contract("10")
def test_modes_belong_to_the_thread() -> None:
    """no_grad on one thread does not reach another."""
    seen = []
    with lucid.no_grad():
        in_threads(lambda: seen.append(lucid.is_grad_enabled()))
    assert seen == [True]


def test_modes_nest_restore_and_decorate() -> None:
    """Context managers restore what stood before, also after exceptions; decorators hold during the call."""

    @lucid.no_grad()
    def off() -> bool:
        return lucid.is_grad_enabled()

    @lucid.no_grad
    def also_off() -> bool:
        return lucid.is_grad_enabled()

    @lucid.set_grad_enabled(False)
    def set_off() -> bool:
        return lucid.is_grad_enabled()

    assert [off(), also_off(), set_off(), lucid.is_grad_enabled()] == [False, False, False, True]
    with pytest.raises(KeyError), lucid.no_grad():
        with lucid.enable_grad():
            assert lucid.is_grad_enabled()
        assert not lucid.is_grad_enabled()
        raise KeyError
    assert lucid.is_grad_enabled()
    lucid.set_grad_enabled(False)
    try:
        assert not (leaf(1.0) * 2).requires_grad
    finally:
        lucid.set_grad_enabled(True)
    with lucid.set_grad_enabled(False):
        assert not lucid.is_grad_enabled()
    assert lucid.is_grad_enabled()


def test_inference_mode() -> None:
    """Results are inference tensors: no version, never saved, not changed in place outside."""
    with lucid.inference_mode():
        assert lucid.is_inference_mode_enabled()
        y = lucid.ones(2, dtype=lucid.float64) * 2
        y.add_(1)
    assert y.is_inference()
    with pytest.raises(RuntimeError, match="inference tensors"):
        _ = y._version
    with pytest.raises(RuntimeError, match="cannot be saved for backward"):
        leaf(1.0, 2.0) * y
    with pytest.raises(RuntimeError, match="inference tensors"):
        y.add_(1)
    assert (leaf(1.0, 2.0) + y).requires_grad


def test_infinities_come_without_warnings() -> None:
    """As in PyTorch: inf and nan are silent, whatever the user's NumPy error state is."""
    with np.errstate(all="raise"):
        x = leaf(0.0, 1.0, np.inf)
        y = (1.0 / x) + (x - x) * np.inf + x.log()
        y.sum().backward()
        # of one operand alone
        (by_one,) = lucid.autograd.grad(x / leaf(0.0), x, lucid.ones(3, dtype=lucid.float64))
    assert np.isnan(x.grad.cpu().numpy()).any()
    assert np.isinf(by_one.cpu().numpy()).all()


def test_gradients_have_the_dtype_of_their_tensor() -> None:
    """Mixed dtypes: each leaf gets its own dtype, and so do hooks."""
    a = lucid.ones(2, dtype=lucid.float16, requires_grad=True)
    b = lucid.ones(2, dtype=lucid.float64, requires_grad=True)
    c = lucid.ones(2, dtype=lucid.bfloat16, requires_grad=True)
    seen = []
    c.register_hook(lambda grad: seen.append(grad.dtype))
    (a * b + (c * 3.0) * 0.5).sum().backward()
    assert (a.grad.dtype, b.grad.dtype, c.grad.dtype) == (lucid.float16, lucid.float64, lucid.bfloat16)
    assert seen == [lucid.bfloat16]


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_gradient_computed_in_a_wider_dtype_comes_in_that_of_its_tensor(create_graph: bool) -> None:
    """The one of a bfloat16 mean is computed in float32; hooks, `.grad` and `autograd.grad` give bfloat16."""
    x = lucid.ones(3, dtype=lucid.bfloat16, requires_grad=True)
    y = x * 1.0
    (by_grad,) = lucid.autograd.grad(y.mean(), y, retain_graph=True, create_graph=create_graph)
    seen = []
    y.register_hook(lambda grad: seen.append(grad.dtype))
    x.register_hook(lambda grad: seen.append(grad.dtype))
    y.retain_grad()
    (y.mean() + x.mean()).backward(create_graph=create_graph)
    assert {*seen, by_grad.dtype, y.grad.dtype, x.grad.dtype} == {lucid.bfloat16}
    assert len(seen) == 2


@pytest.mark.parametrize(
    "run",
    [
        lambda y, x: y.backward(),
        lambda y, x: y.backward(inputs=[x]),
        lambda y, x: setattr(x, "grad", lucid.autograd.grad(y, x)[0] + (0 if x.grad is None else x.grad)),
    ],
)
def test_a_hook_may_change_the_gradient_that_a_pass_begins_with(run) -> None:
    """The one that stands for a scalar root's gradient is made anew for each pass."""
    x = leaf(2.0)
    for _ in range(2):
        y = (x * 3).sum()
        handle = y.register_hook(lambda grad: grad.mul_(5.0) and None)
        run(y, x)
        handle.remove()
    run((x * 3).sum(), x)
    assert x.grad.item() == 15.0 + 15.0 + 3.0


def test_inputs_of_backward_that_others_depend_on(rng) -> None:
    """A pass limited to an intermediate ends there: the leaf behind it is not reached, nor is its graph used up."""
    x = leaf(2.0)
    y = x * x
    z = y * y
    seed = lucid.tensor(rng.standard_normal(1), dtype=lucid.float64)
    z.backward(seed, inputs=[y])
    np.testing.assert_allclose(y.grad.item(), 8.0 * seed.item())
    assert x.grad is None
    y.backward(seed)
    np.testing.assert_allclose(x.grad.item(), 4.0 * seed.item())


def test_changed_operand_of_a_narrowed_pass() -> None:
    """Also a pass that leaves out some operands refuses one that was changed since, whichever it was."""
    for changed in range(2):
        x, y = leaf(2.0), leaf(3.0)
        a, b = x * 1, y * 1
        z = a * b
        (a, b)[changed].mul_(2.0)
        for run in (lambda: lucid.autograd.grad(z, x, retain_graph=True), lambda: z.backward(retain_graph=True)):
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                run()


def test_a_root_by_itself_alone() -> None:
    """Its gradient is the one that the pass begins with, though nothing else has to run."""
    z = (lucid.ones(2, requires_grad=True) * 2).sum()
    (grad,) = lucid.autograd.grad(z, [z], [lucid.tensor(3.0)], retain_graph=True)
    assert grad.item() == 3.0
    z.retain_grad()
    z.backward(lucid.tensor(4.0), inputs=[z])
    assert z.grad is not None
    assert z.grad.item() == 4.0


@pytest.mark.parametrize(
    ("call", "flag"),
    [(lucid.autograd.grad, flag) for flag in (
        "retain_graph", "create_graph", "is_grads_batched", "materialize_grads", "allow_unused")]
    + [(lucid.autograd.backward, flag) for flag in ("retain_graph", "create_graph")],
)  # fmt: skip
def test_flags_are_bools(call, flag):
    """Each alone is refused where it is none, and the graph is there still."""
    x = lucid.ones(2, requires_grad=True)
    y = (x * x).sum()
    for wrong in ("yes", 3, 1.0):
        with pytest.raises(TypeError, match=f"{flag}: expected a bool"):
            call(y, *([x] if call is lucid.autograd.grad else []), **{flag: wrong})
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0]
