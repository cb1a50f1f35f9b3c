"""Section 2 of the hooks contract: nodes, their hooks, and hooks over several tensors."""

from __future__ import annotations

import pytest

import lucid
from lucid import hooks
from lucid.autograd.graph import GradientEdge, Node, get_gradient_edge, increment_version, register_multi_grad_hook
from tests.pieces import function_of, leaf

contract = pytest.mark.contract


@contract("2.1")
def test_order_of_events_at_a_node_and_at_a_leaf() -> None:
    """Tensor hooks, retain_grad, prehooks, the node, posthooks; at a leaf accumulation and its hooks between."""
    x = leaf(2.0)
    y = x * 3
    events = []
    y.grad_fn.register_hook(lambda given, received: events.append("node post"))
    y.grad_fn.register_prehook(lambda received: events.append(("node pre", y.grad.item())))
    y.register_hook(lambda grad: events.append("tensor"))
    y.retain_grad()
    node = get_gradient_edge(x).node
    node.register_hook(lambda given, received: events.append("leaf post"))
    node.register_prehook(lambda received: events.append(("leaf pre", x.grad)))
    x.register_post_accumulate_grad_hook(lambda tensor: events.append(("accumulated", x.grad.item())))
    x.register_hook(lambda grad: events.append("leaf tensor"))
    (y * 5).backward()
    assert events == [
        "tensor",
        ("node pre", 5.0),
        "node post",
        "leaf tensor",
        ("leaf pre", None),
        ("accumulated", 15.0),
        "leaf post",
    ]


@contract("2.1")
def test_node_hooks_replace_all_gradients() -> None:
    """A prehook's tuple is what the node gets, a posthook's what goes on."""
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    y.grad_fn.register_prehook(lambda received: (received[0] * 10,))
    y.grad_fn.register_hook(lambda given, received: (given[0] + received[0], None))
    y.backward()
    assert x.grad.item() == 3.0 * 10 + 10
    assert w.grad is None


# The identity, whose derivative passes nothing on.
WithoutGradient = function_of(lambda ctx, x: x.clone(), lambda ctx, grad: None)


@contract("2.1")
@pytest.mark.parametrize("hang", ["nothing", "retain", "tensor hook", "prehook", "posthook"])
@pytest.mark.parametrize("op", ["sort", "max", "unbind", "std_mean", "topk"])
def test_a_node_of_several_outputs_that_receives_nothing_passes_none_on(op: str, hang: str) -> None:
    """Whatever hangs on it: it is not run with a gradient of zeros, and no `.grad` appears."""
    x = lucid.tensor([[2.0, 1.0], [0.0, 3.0]], dtype=lucid.float64, requires_grad=True)
    outputs = {
        "sort": lambda: x.sort(-1),
        "max": lambda: x.max(0),
        "unbind": lambda: x.unbind(0),
        "std_mean": lambda: lucid.std_mean(x, 0),
        "topk": lambda: x.topk(1),
    }[op]()
    y, seen = outputs[0], []
    if hang == "retain":
        y.retain_grad()
    elif hang == "tensor hook":
        y.register_hook(seen.append)
    elif hang == "prehook":
        y.grad_fn.register_prehook(lambda received: seen.extend(received[:1]))
    elif hang == "posthook":
        y.grad_fn.register_hook(lambda given, received: seen.extend((*given[:1], *received[:1])))
    WithoutGradient.apply(y).sum().backward()
    assert x.grad is None
    assert hang != "retain" or y.grad is None
    assert all(grad is None for grad in seen)
    assert len(seen) == {"tensor hook": 1, "prehook": 1, "posthook": 2}.get(hang, 0)


@contract("2.1")
def test_posthooks_get_none_for_inputs_without_a_place_in_the_graph() -> None:
    """Of a base whose view was changed that is the old base, or the new values, where these require no grad."""
    seen = []
    constant, moving = lucid.zeros(3, dtype=lucid.float64), leaf(1.0, 2.0, 3.0) * 1.0
    constant[1:] = leaf(4.0, 5.0)
    moving[1:] = 7.0
    for base in (constant, moving):
        base.grad_fn.register_hook(lambda given, received: seen.append([g is None for g in given]))
        base.sum().backward()
    assert seen == [[True, False], [False, True]]


@contract("2.1")
def test_node_hooks_chain_in_order_of_registration() -> None:
    """Each prehook and each posthook of a node gets what the one before it has returned."""
    x = leaf(2.0)
    y = x * 3
    y.grad_fn.register_prehook(lambda received: (received[0] + 1,))
    y.grad_fn.register_prehook(lambda received: (received[0] * 10,))
    y.grad_fn.register_hook(lambda given, received: (given[0] + 2, *given[1:]))
    y.grad_fn.register_hook(lambda given, received: (given[0] * 100, *given[1:]))
    y.backward(lucid.tensor(5.0, dtype=lucid.float64).reshape(1))
    assert x.grad.item() == ((5 + 1) * 10 * 3 + 2) * 100


@contract("0.3")
@pytest.mark.parametrize("kind", ["register_prehook", "register_hook"])
def test_node_hooks_fire_over_a_snapshot(kind: str) -> None:
    """A hook of a node that another takes off still fires in this pass, one that it hangs on waits for the next."""
    x = leaf(2.0)
    y = x * 3
    register = getattr(y.grad_fn, kind)
    events = []

    def first(*grads: object) -> None:
        events.append("first")
        handles[0].remove()
        handles[1].remove()
        register(lambda *grads: events.append("added"))

    handles = [register(first), register(lambda *grads: events.append("second"))]
    y.backward(retain_graph=True)
    assert events == ["first", "second"]
    y.backward()
    assert events == ["first", "second", "added"]


@contract("2.1")
@pytest.mark.parametrize(
    ("pre", "post", "error", "text"),
    [
        (lambda received: received[0], None, TypeError, "expected None or a tuple"),
        (lambda received: (), None, RuntimeError, "expected a tuple of 1 gradients, got 0"),
        (None, lambda given, received: [given[0], given[1]], TypeError, "expected None or a tuple"),
        (None, lambda given, received: given[:1], RuntimeError, "expected a tuple of 2 gradients, got 1"),
        (None, lambda given, received: (*given, None), RuntimeError, "expected a tuple of 2 gradients, got 3"),
        (None, lambda given, received: (1.0, None), TypeError, "expected None or a Tensor"),
    ],
)
def test_wrong_returns_of_node_hooks(pre: object, post: object, error: type[Exception], text: str) -> None:
    """Something else than a tuple is a TypeError, another length a RuntimeError; nothing is accumulated."""
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    if pre is not None:
        y.grad_fn.register_prehook(pre)
    if post is not None:
        y.grad_fn.register_hook(post)
    with pytest.raises(error, match=text):
        y.backward()
    assert x.grad is None
    assert w.grad is None


@contract("2.2")
def test_what_a_node_tells() -> None:
    """name, next_functions, metadata, _sequence_nr, grad_fn, output_nr, isinstance."""
    x, w = leaf(2.0, 3.0), lucid.ones(2, dtype=lucid.float64)
    y = x * w
    a, b = y.split(1)
    node = y.grad_fn
    assert isinstance(node, Node)
    assert node.name() == "MulBackward0"
    assert node.next_functions[0][0] is get_gradient_edge(x).node
    assert node.next_functions[1] == (None, 0)
    node.metadata["note"] = 7
    assert y.grad_fn.metadata == {"note": 7}
    assert a.grad_fn is b.grad_fn
    assert (a.output_nr, b.output_nr) == (0, 1)
    assert a.grad_fn._sequence_nr() > node._sequence_nr()
    assert x.grad_fn is None


@contract("2.2")
def test_ready_nodes_run_newest_first() -> None:
    """Of several ready nodes the one recorded last runs first; a leaf runs as soon as it is complete."""
    x, y = leaf(1.0), leaf(2.0)
    order = []
    a = x * 2
    b = y * 3
    c = x * 4
    for name, tensor in (("a", a), ("b", b), ("c", c)):
        tensor.grad_fn.register_hook(lambda given, received, name=name: order.append(name))
    for name, tensor in (("x", x), ("y", y)):
        tensor.register_hook(lambda grad, name=name: order.append(name))
    (a + b + c).backward()
    assert order == ["c", "b", "y", "a", "x"]


@contract("2.3")
def test_multi_grad_hook_all() -> None:
    """One list, once per pass, None where this pass computes none; it does not wait for what the pass leaves out."""
    x, y, z = leaf(1.0), leaf(2.0), leaf(3.0)
    seen = []
    with register_multi_grad_hook((x, y, z), seen.append):
        (x * 2 + y * 3).backward()
        lucid.autograd.grad(x * 5 + z * 7, z)
    (x * 2).backward()
    assert [[g if g is None else g.item() for g in grads] for grads in seen] == [[2.0, 3.0, None], [None, None, 7.0]]


@contract("2.3")
def test_multi_grad_hook_any_and_roots() -> None:
    """mode="any" fires once with the first gradient; a root in the list counts."""
    x, y = leaf(1.0), leaf(2.0)
    root = x * y
    every, first = [], []
    register_multi_grad_hook((x, root), lambda grads: every.append([g.item() for g in grads]))
    register_multi_grad_hook((x, y, root), lambda grad: first.append(grad.item()), mode="any")
    for _ in range(2):
        root.backward(retain_graph=True)
    assert every == [[2.0, 1.0]] * 2
    assert first == [1.0, 1.0]


@contract("2.3")
def test_multi_grad_hook_bad_input() -> None:
    """A wrong mode, a non-callable and a tensor without grad are refused and nothing is registered."""
    x = leaf(1.0)
    with pytest.raises(ValueError, match="mode must be"):
        register_multi_grad_hook((x,), print, mode="some")
    with pytest.raises(TypeError, match="expected a callable"):
        register_multi_grad_hook((x,), 3)
    with pytest.raises(RuntimeError, match="does not require grad"):
        register_multi_grad_hook((x, lucid.ones(1)), lambda grads: pytest.fail("registered"))
    (x * 2).backward()


@contract("2.4")
def test_gradient_edges_stand_for_tensors() -> None:
    """Grad takes edges as inputs and, with a gradient, as roots; increment_version counts a change."""
    x = leaf(2.0)
    y = x * 3
    edge = get_gradient_edge(y)
    assert isinstance(edge, GradientEdge)
    z = y * y
    assert lucid.autograd.grad(z, edge, retain_graph=True)[0].item() == 12.0
    (grad,) = lucid.autograd.grad(get_gradient_edge(z), x, lucid.ones(1, dtype=lucid.float64), retain_graph=True)
    assert grad.item() == 36.0
    increment_version(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()
    with pytest.raises(RuntimeError, match="does not require grad"):
        get_gradient_edge(lucid.ones(1))


def test_a_node_can_be_called(rng) -> None:
    """It gives the gradients of its inputs, None for those that need none, by itself for one input; no hook fires."""
    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    w = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    upstream = lucid.tensor(rng.standard_normal(3))
    y = x * w
    y.register_hook(lambda grad: pytest.fail("no pass runs"))
    y.grad_fn.register_hook(lambda given, received: pytest.fail("no pass runs"))
    y.grad_fn.register_prehook(lambda received: pytest.fail("no pass runs"))
    for _ in range(2):
        first, second = y.grad_fn(upstream)
        assert lucid.equal(first, upstream * w.detach())
        assert lucid.equal(second, upstream * x.detach())
    assert y.grad_fn(None) == (None, None)
    (product, nothing) = (x * w.detach()).grad_fn(upstream)
    assert lucid.equal(product, upstream * w.detach())
    assert nothing is None
    assert lucid.allclose(x.exp().grad_fn(upstream), upstream * x.detach().exp())
    parts = x.unbind()
    assert lucid.equal(parts[0].grad_fn(None, upstream[1], None), upstream * lucid.tensor([0.0, 1.0, 0.0]))
    assert parts[0].grad_fn(None, None, None) is None


def test_what_a_called_node_gives_is_recorded_with_grad_mode(rng) -> None:
    """Called with grad mode on the gradients can be differentiated, under no_grad they are in no graph."""
    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    upstream = lucid.tensor(rng.standard_normal(3))
    node = (x * x * x).grad_fn
    assert lucid.autograd.gradcheck(lambda x: (x * x).grad_fn(upstream)[0] * x, x)
    with lucid.no_grad():
        assert not any(grad.requires_grad for grad in node(upstream))
    assert all(grad.requires_grad for grad in node(upstream))


def test_a_called_leaf_accumulates(rng) -> None:
    """The end of the graph adds what it is called with to `.grad`, and gives nothing further."""
    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    upstream = lucid.tensor(rng.standard_normal(3))
    node = get_gradient_edge(x).node
    assert node(upstream) == ()
    assert node(upstream) == node(None) == ()
    assert lucid.equal(x.grad, upstream + upstream)


def test_a_called_function_node(rng) -> None:
    """The node of a Function runs the user's backward, and checks what it gives."""

    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.set_materialize_grads(False)
        return x * scale, x + scale

    def backward(ctx, first, second):
        assert second is None
        return first * ctx.saved_tensors[0], None

    Split = function_of(forward, backward, name="Split")

    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    upstream = lucid.tensor(rng.standard_normal(3))
    node = Split.apply(x, 2.0)[0].grad_fn
    assert lucid.equal(node(upstream, None), upstream * x)
    with pytest.raises(TypeError, match="SplitBackward"):
        node(upstream)


def test_what_a_node_cannot_be_called_with(rng) -> None:
    """Another number of gradients, what is no tensor, and a node that has run are refused with PyTorch's types."""
    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    y = x * x
    for wrong in ((), (x, x), (1.0,)):
        with pytest.raises(TypeError, match="MulBackward0"):
            y.grad_fn(*wrong)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.grad_fn(x)


def test_saved_variables_is_the_old_name_of_saved_tensors(rng) -> None:
    """On the context and on the node of a Function it gives the saved tensors, with a DeprecationWarning."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, grad):
        with pytest.warns(DeprecationWarning, match="saved_tensors"):
            (x,) = ctx.saved_variables
        return 2 * x * grad

    Square = function_of(forward, backward, name="Square")

    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    y = Square.apply(x)
    with pytest.warns(DeprecationWarning, match="saved_tensors"):
        assert y.grad_fn.saved_variables[0] is x
    y.sum().backward()
    assert lucid.equal(x.grad, 2 * x)


def test_only_nodes_of_functions_have_saved_tensors(rng) -> None:
    """Code that walks a graph asks each node whether it has ``saved_tensors``: an op's node has ``_saved_...`` only."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    Cube = function_of(forward, lambda ctx, grad: 3 * ctx.saved_tensors[0] ** 2 * grad, name="Cube")

    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    product = (Cube.apply(x) * x).grad_fn
    assert lucid.equal(product._saved_other, x)
    assert [hasattr(node, "saved_tensors") for node, _ in (*product.next_functions, (product, 0))] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("at", ["leaf", "intermediate"])
@pytest.mark.parametrize("others", [False, True])
def test_hooks_of_other_kinds_hung_on_by_a_tensor_hook_fire_in_the_same_pass(at, others, rng) -> None:
    """The lists of a node are read when their turn comes, whether or not anything else hung on the node before."""
    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    y = x * 2.0
    tensor = x if at == "leaf" else y
    node = lucid.autograd.graph.get_gradient_edge(tensor).node
    fired = []
    if others:
        node.register_hook(lambda *_: fired.append("first"))

    def hook(grad):
        node.register_prehook(lambda grads: fired.append("prehook"))
        node.register_hook(lambda *_: fired.append("posthook"))
        if at == "leaf":
            x.register_post_accumulate_grad_hook(lambda leaf: fired.append("accumulated"))
        else:
            y.retain_grad()
        return 3.0 * grad

    tensor.register_hook(hook)
    upstream = lucid.tensor(rng.standard_normal(3))
    y.backward(upstream)
    accumulated = ["accumulated"] if at == "leaf" else []
    assert fired == ["prehook", *accumulated, *(["first"] if others else []), "posthook"]
    assert lucid.allclose(x.grad, 6.0 * upstream)
    if at == "intermediate":
        assert lucid.equal(y.grad, 3.0 * upstream)


@pytest.mark.parametrize("watched", [False, True])
def test_posthooks_hung_on_a_node_that_runs_wait_for_its_next_run(watched, rng) -> None:
    """What fires after a node hung on it all the time that it ran, and gets the gradients of its outputs."""
    events = []

    def backward(ctx, grad):
        if not events:
            node.register_hook(lambda grad_inputs, grad_outputs: events.append(("late", grad_outputs)))
            gone.remove()
        events.append("derivative")
        return grad * 2.0

    Twice = function_of(lambda ctx, x: x * 2.0, backward, name="Twice")

    y = Twice.apply(lucid.tensor(rng.standard_normal(3), requires_grad=True))
    node = y.grad_fn
    gone = node.register_hook(lambda grad_inputs, grad_outputs: events.append("gone"))
    if watched:
        node.register_hook(lambda grad_inputs, grad_outputs: events.append("early"))
    else:
        gone.remove()
    upstream = lucid.tensor(rng.standard_normal(3))
    y.backward(upstream, retain_graph=True)
    assert events == ["derivative", "early"][: 1 + watched]
    y.backward(upstream)
    assert events[1 + watched : -1] == ["derivative", "early"][: 1 + watched]
    late, (given,) = events[-1]
    assert late == "late"
    assert given.tolist() == upstream.tolist()


def test_a_posthook_that_is_counted_or_switched_while_its_node_runs() -> None:
    """After a node has run, what stands in the places of the posthooks that it began with is called."""
    for change in ("count", "off", "on", "off and on"):
        w = leaf(1.0)
        node = lucid.autograd.graph.get_gradient_edge(w).node
        fired: list[str] = []
        handle = node.register_hook(lambda *_, fired=fired: fired.append("posthook"))
        counting = hooks.counting(w)
        if change == "on":
            handle.enabled = False

        def act(_, change=change, counting=counting, handle=handle):
            if change == "count":
                counting.__enter__()
            else:
                for word in change.split(" and "):
                    handle.enabled = word == "on"

        w.register_post_accumulate_grad_hook(act)
        (w * 2).sum().backward()
        assert fired == ["posthook"] * (change != "off"), change
        if change == "count":
            assert handle.calls == 1
            counting.__exit__()


def test_one_of_two_equal_posthooks_taken_off_while_the_node_runs() -> None:
    """The other one is still there, and is called once."""
    w, fired = leaf(1.0), []
    node = lucid.autograd.graph.get_gradient_edge(w).node

    def posthook(*_):
        fired.append(1)

    handles = [node.register_hook(posthook) for _ in range(2)]
    w.register_post_accumulate_grad_hook(lambda _: handles[0].remove())
    (w * 2).sum().backward()
    assert fired == [1]
