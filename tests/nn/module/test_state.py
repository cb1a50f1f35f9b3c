"""State dicts: what is saved, loading all or nothing, and their hooks."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import StateDictError
from tests.device import shares_memory
from tests.pieces import raising

contract = pytest.mark.contract


def net():
    return nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1)))


def values(module):
    return {name: value.cpu().numpy().copy() for name, value in module.state_dict().items()}


def unchanged(module, before):
    after = values(module)
    return list(after) == list(before) and all(np.array_equal(after[name], before[name]) for name in before)


def fails_to_load(module, state, error, match=None, **settings):
    """Fail unless a load raises this error, which is returned, and leaves the module as it was."""
    before = values(module)
    with pytest.raises(error, match=match) as caught:
        module.load_state_dict(state, **settings)
    assert unchanged(module, before)
    return caught.value


class Counter(nn.Module):
    """Has extra state."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def get_extra_state(self):
        return {"count": self.count}

    def set_extra_state(self, state):
        self.count = state["count"]


def test_what_is_saved():
    """Parameters and persistent buffers under their names, detached but on the same memory; versions as metadata."""
    module = net()
    state = module.state_dict()
    assert list(state) == [
        "0.weight", "0.bias", "1.0.weight", "1.0.bias", "1.0.running_mean", "1.0.running_var",
        "1.0.num_batches_tracked", "1.1.weight", "1.1.bias",
    ]  # fmt: skip
    assert not state["0.weight"].requires_grad
    assert shares_memory(state["0.weight"], module[0].weight)
    assert state._metadata["1.0"] == {"version": 2}
    assert module.state_dict(keep_vars=True)["0.weight"] is module[0].weight
    assert next(iter(module[0].state_dict(prefix="x."))) == "x.weight"


def test_a_buffer_is_saved_as_was_said_last():
    """A registration says whether it is; a plain tensor that is assigned leaves that as it is, what goes forgets it."""
    ways = {
        "registered to stay": lambda module: module.register_buffer("b", lucid.ones(1)),
        "registered to go": lambda module: module.register_buffer("b", lucid.ones(1), persistent=False),
        "a Buffer to stay": lambda module: setattr(module, "b", nn.Buffer(lucid.ones(1))),
        "a Buffer to go": lambda module: setattr(module, "b", nn.Buffer(lucid.ones(1), persistent=False)),
        "assigned": lambda module: setattr(module, "b", lucid.zeros(1)),
        "nothing": lambda module: setattr(module, "b", None),
        "deleted": lambda module: delattr(module, "b"),
        "deleted and registered": lambda module: (delattr(module, "b"), module.register_buffer("b", lucid.ones(1))),
    }
    for first, begin in list(ways.items())[:4]:
        for second, go_on in ways.items():
            module = nn.Module()
            begin(module)
            assert ("b" in module.state_dict()) == (not first.endswith("go"))
            go_on(module)
            saved = not (first if second in {"assigned", "nothing"} else second).endswith("go")
            there = second not in {"nothing", "deleted"}
            assert ("b" in module.state_dict()) == (saved and there), (first, second)
            assert ("b" in module._non_persistent_buffers_set) == (not saved), (first, second)


def test_round_trip():
    """Loading copies into the module's own tensors; the state dict is not changed."""
    source, target = net(), net()
    state = source.state_dict()
    weight = target[0].weight
    result = target.load_state_dict(state)
    assert (result.missing_keys, result.unexpected_keys) == ([], [])
    assert repr(result) == "<All keys matched successfully>"
    assert target[0].weight is weight
    assert unchanged(target, values(source))
    with lucid.no_grad():
        weight.zero_()
    assert state["0.weight"].any()


@contract("7.5")
def test_one_error_lists_everything():
    """Missing, unexpected and wrongly shaped keys and values of other types are in one error; nothing changes."""
    module = net()
    state = dict(net().state_dict())
    del state["0.bias"]
    state["stray"] = lucid.ones(1)
    state["1.1.weight"] = lucid.ones(1, 4)
    state["1.1.bias"] = "text"
    error = fails_to_load(module, state, StateDictError)
    for part in (
        'Missing key(s) in state_dict: "0.bias"',
        'Unexpected key(s) in state_dict: "stray"',
        "size mismatch for 1.1.weight",
        "(1, 4)",
        "(1, 3)",
        '"1.1.bias"',
        "got str",
        "left unchanged",
    ):
        assert part in str(error)
    assert isinstance(error, RuntimeError)
    assert isinstance(error, KeyError)
    assert "stray" in state


@pytest.mark.parametrize("key", ["weight.", ".weight", "0.", "0.weight."])
def test_a_key_with_a_dot_too_many_is_unexpected(key):
    """A key is a path: what ends or begins in a dot names no entry."""
    module = nn.Sequential(nn.Linear(2, 2))
    with pytest.raises(StateDictError, match="Unexpected"):
        module.load_state_dict({**module.state_dict(), key: lucid.ones(2, 2)})
    with pytest.raises(StateDictError, match="Unexpected"):
        module[0].load_state_dict({**module[0].state_dict(), key: lucid.ones(2, 2)})


def test_not_strict():
    """Missing and unexpected keys are returned; a wrong shape is an error all the same."""
    module = net()
    state = {"0.weight": lucid.ones(3, 2), "stray": lucid.ones(1)}
    result = module.load_state_dict(state, strict=False)
    assert result.unexpected_keys == ["stray"]
    assert "0.bias" in result.missing_keys
    assert module[0].weight.detach().cpu().numpy().all()
    with pytest.raises(StateDictError, match="size mismatch"):
        module.load_state_dict({"0.weight": lucid.ones(2, 2)}, strict=False)


class Tied(nn.Module):
    """A parameter in three places of the tree and a buffer in two."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(3, 2)
        self.layers = nn.Sequential(nn.Linear(2, 3, bias=False), nn.Linear(2, 3))
        for layer in self.layers:
            layer.weight = self.embedding.weight
        self.register_buffer("scale", lucid.ones(2))
        self.layers[0].register_buffer("scale", self.scale)

    def tensors(self):
        return [[self.embedding.weight, *(layer.weight for layer in self.layers)], [self.scale, self.layers[0].scale]]


@pytest.mark.parametrize("keys", ["all", "first", "second", "last"])
@pytest.mark.parametrize("assign", [False, True])
def test_tied_tensors_stay_tied(assign, keys, rng):
    """However many of their names are in the state dict, of which the last decides; also after a load that fails."""
    model = Tied()
    names = {
        "first": ["embedding.weight", "scale"],
        "second": ["layers.0.weight", "layers.0.scale"],
        "last": ["layers.1.weight"],
        "all": list(model.state_dict()),
    }[keys]
    state = {name: lucid.tensor(rng.standard_normal(model.state_dict()[name].shape)) for name in names}
    before = [[id(tensor) for tensor in group] for group in model.tensors()]
    values = copy.deepcopy(model.state_dict())
    handle = model.register_load_state_dict_post_hook(lambda module, keys: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.load_state_dict(state, strict=False, assign=assign)
    assert [[id(tensor) for tensor in group] for group in model.tensors()] == before
    assert all(lucid.equal(value, values[name]) for name, value in model.state_dict().items())
    handle.remove()
    model.load_state_dict(state, strict=False, assign=assign)
    for group, kind in zip(model.tensors(), ("weight", "scale"), strict=True):
        assert len({id(tensor) for tensor in group}) == 1
        last = [name for name in names if name.endswith(kind)][-1:]
        for name in last:
            np.testing.assert_allclose(group[0].detach().cpu().numpy(), state[name].cpu().numpy(), rtol=1e-6)
            assert (group[0].dtype is lucid.float64) == assign
    assert len(list(model.parameters())) == 2


def test_assign():
    """With `assign` the values become the module's tensors, with their dtype; parameters and buffers stay such."""
    module = net()
    state = {name: value.double() for name, value in net().state_dict().items()}
    module[0].bias.requires_grad_(False)
    kinds = {name: type(each) for name, each in module.state_dict(keep_vars=True).items()}
    module.load_state_dict(state, assign=True)
    assert {name: type(each) for name, each in module.state_dict(keep_vars=True).items()} == kinds
    assert {*kinds.values()} == {nn.Parameter, lucid.Tensor}
    assert module[0].weight.dtype == lucid.float64
    assert isinstance(module[0].weight, nn.Parameter)
    assert shares_memory(module[0].weight, state["0.weight"])
    assert (module[0].weight.requires_grad, module[0].bias.requires_grad) == (True, False)


def test_assigned_parameters_are_trained_as_those_before():
    """A Parameter that is given is frozen, or trained, as the one before it was, unless the load fails."""
    module, given = net(), net().state_dict(keep_vars=True)
    module[0].weight.requires_grad_(False)
    given["0.bias"].requires_grad_(False)
    before = dict(module.named_parameters())
    broken = {**given, "1.1.bias": nn.Parameter(given["1.1.bias"].detach().long(), requires_grad=False)}
    handle = module.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.append("more"))
    for state, words in ((given, "more"), (broken, "1.1.bias.*an exception occurred")):
        with pytest.raises(StateDictError, match=words):
            module.load_state_dict(state, assign=True)
        handle.remove()
        assert all(each is before[name] for name, each in module.named_parameters())
        assert [given[name].requires_grad for name in ("0.weight", "0.bias")] == [True, False]
    module.load_state_dict(given, assign=True)
    assert all(each is given[name] for name, each in module.named_parameters())
    assert [name for name, each in module.named_parameters() if not each.requires_grad] == ["0.weight"]


def test_not_a_mapping():
    """Something that is no mapping is a TypeError that says what it got."""
    with pytest.raises(TypeError, match="got list"):
        net().load_state_dict([])


def test_extra_state():
    """A module's extra state is saved and loaded, missing it is an error, and a failed load brings it back."""
    module, other = nn.Sequential(Counter(), nn.Linear(1, 1)), nn.Sequential(Counter(), nn.Linear(1, 1))
    module[0].count = 5
    state = module.state_dict()
    assert state["0._extra_state"] == {"count": 5}
    other.load_state_dict(state)
    assert other[0].count == 5
    state["0._extra_state"] = {"wrong": 1}
    state["1.weight"] = state["1.weight"] + 1
    before = other[1].weight.detach().cpu().numpy().copy()
    with pytest.raises(KeyError):
        other.load_state_dict(state)
    assert other[0].count == 5
    assert np.array_equal(other[1].weight.detach().cpu().numpy(), before)
    del state["0._extra_state"]
    with pytest.raises(StateDictError, match=r'Missing.*"0._extra_state"'):
        other.load_state_dict(state)
    # of a module that has none it is unexpected
    state["1._extra_state"] = state["0._extra_state"] = {"count": 7}
    with pytest.raises(StateDictError, match=r'Unexpected.*"1._extra_state"'):
        other.load_state_dict(state)
    assert other[0].count == 5
    assert other.load_state_dict(state, strict=False).unexpected_keys == ["1._extra_state"]


def test_older_batch_norm():
    """A state dict from before num_batches_tracked was counted loads strictly."""
    state = nn.BatchNorm1d(2).state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    nn.BatchNorm1d(2).load_state_dict(state)


@contract("7.1")
@contract("7.3")
def test_saving_hooks():
    """Pre-hooks fire parent first, hooks children first; a hook may edit the dictionary, the root's may replace it."""
    module = net()
    events = []
    for name, each in module.named_modules():
        each.register_state_dict_pre_hook(lambda m, prefix, keep_vars: events.append(("pre", prefix, keep_vars)))
        each.register_state_dict_hook(
            lambda m, state, prefix, keep_vars, name=name: events.append(("hook", name, prefix, keep_vars))
        )
    handle = module[1].register_state_dict_hook(
        lambda m, state, prefix, keep: state.update({prefix + "note": "custom"})
    )
    state = module.state_dict(keep_vars=True)
    assert state["1.note"] == "custom"
    prefixes = ["", "0.", "1.", "1.0.", "1.1."]
    assert [event[1] for event in events if event[0] == "pre"] == prefixes
    assert [event[2] for event in events if event[0] == "hook"] == ["0.", "1.0.", "1.1.", "1.", ""]
    assert all(event[-1] is True for event in events)
    handle()
    assert "1.note" not in module.state_dict()
    module._register_state_dict_hook(lambda m, state, prefix, metadata: {"only": len(state), **metadata})
    assert dict(module.state_dict()) == {"only": 9, "version": 1}
    other = net()
    other.register_state_dict_post_hook(lambda m, state, prefix, metadata: 3)
    with pytest.raises(TypeError, match="expected None"):
        other.state_dict()


@contract("0.5")
@contract("7.1")
@pytest.mark.parametrize("kind", ["pre_hook", "hook", "post_hook"])
@pytest.mark.parametrize("where", [(), (1,), (1, 1)], ids=["root", "child", "grandchild"])
def test_hook_that_raises_while_saving(kind, where):
    """A destination of the caller's is as it was before: entries, their order and the versions."""
    module = net()
    part = module
    for index in where:
        part = part[index]

    def raising(module, *rest):
        if kind != "pre_hook":
            rest[0].pop("kept")
            rest[0]["of the hook"] = 1
        raise ValueError("planned")

    handle = getattr(part, f"register_state_dict_{kind}")(raising)
    destination = nn.Linear(1, 1).state_dict()
    destination["kept"], destination["0.weight"] = "kept", "old"
    before, versions = list(destination.items()), dict(destination._metadata)
    plain = {"kept": 1}
    with pytest.raises(ValueError, match="planned"):
        module.state_dict(destination=plain)
    assert plain == {"kept": 1}
    with pytest.raises(ValueError, match="planned"):
        module.state_dict(destination=destination, prefix="net.")
    assert [(name, id(value)) for name, value in destination.items()] == [(name, id(value)) for name, value in before]
    assert dict(destination._metadata) == versions
    handle.remove()
    assert module.state_dict(destination=destination) is destination
    assert len(destination) == 2 + 1 + 9
    assert "1.1.weight" in destination


def test_own_saving_method():
    """A module's own `state_dict`, of its class or of itself, is called for its part."""

    class Halved(nn.Linear):
        def state_dict(self, *, destination=None, prefix="", keep_vars=False):
            result = super().state_dict(destination=destination, prefix=prefix, keep_vars=keep_vars)
            result[prefix + "weight"] = result[prefix + "weight"] * 0.5
            return result

    module = nn.Sequential(Halved(2, 1), nn.Linear(1, 1))
    module[1].state_dict = lambda *, destination, prefix, keep_vars: destination.update({prefix + "mine": 1})
    state = module.state_dict()
    assert list(state) == ["0.weight", "0.bias", "1.mine"]
    assert np.array_equal(state["0.weight"].cpu().numpy(), module[0].weight.detach().cpu().numpy() * 0.5)


@contract("7.2")
@contract("7.3")
def test_each_module_is_given_its_own_entries():
    """Names that begin alike are apart, a child's entries are those below it, and what no child has stays above."""
    module = nn.Module()
    for name in ("a", "ab", "a_b"):
        module.add_module(name, nn.Sequential(nn.Linear(1, 1, bias=False)))
    seen = {}
    for path, each in module.named_modules():
        each._register_load_state_dict_pre_hook(
            lambda entries, prefix, *_, path=path: seen.update({path: (prefix, [*entries])})
        )
    state = {**module.state_dict(), "a.1.weight": 0, "b.0": 0, "ab": 0, "": 0}
    keys = module.load_state_dict(state, strict=False)
    assert sorted(keys.unexpected_keys) == ["", "a.1.weight", "ab", "b.0"]
    assert seen == {
        "": ("", [*state]), "a": ("a.", ["a.0.weight", "a.1.weight"]), "ab": ("ab.", ["ab.0.weight"]),
        "a_b": ("a_b.", ["a_b.0.weight"]), "a.0": ("a.0.", ["a.0.weight"]), "ab.0": ("ab.0.", ["ab.0.weight"]),
        "a_b.0": ("a_b.0.", ["a_b.0.weight"]),
    }  # fmt: skip


def test_loading_pre_hooks():
    """A pre-hook gets its module's entries by their own names, PyTorch's form all with a prefix; both may edit."""
    module = net()
    state = dict(net().state_dict())
    state["1.1.legacy"] = lucid.ones(1)
    state["0.kernel"] = state.pop("0.weight")
    given = dict(state)
    seen = []

    def ours(m, entries, strict):
        seen.append((sorted(entries), strict))
        entries.pop("legacy")

    def theirs(m, entries, prefix, metadata, strict, missing, unexpected, errors):
        entries[prefix + "weight"] = entries.pop(prefix + "kernel")

    module[1][1].register_load_state_dict_pre_hook(ours)
    module[0].register_load_state_dict_pre_hook(theirs)
    module.load_state_dict(state)
    assert seen == [(["bias", "legacy", "weight"], True)]
    module.load_state_dict(state, strict=False)
    assert seen.pop()[1] is False
    assert state == given
    module[1][0]._register_load_state_dict_pre_hook(lambda entries, prefix, *rest: seen.append(prefix))
    module[1][0]._register_load_state_dict_pre_hook(lambda m, entries, prefix, *rest: seen.append(m), with_module=True)
    module.load_state_dict(state)
    assert seen[-3:-1] == ["1.0.", module[1][0]]


@pytest.mark.parametrize("assign", [False, True])
def test_what_a_load_tells_of_itself(assign):
    """Hooks and loading methods in PyTorch's form read the layout's version, and whether tensors are assigned."""
    told = []

    class Noting(nn.BatchNorm1d):
        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
            told.append(local_metadata)
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    module = nn.Sequential(Noting(2))
    module[0]._register_load_state_dict_pre_hook(lambda entries, prefix, metadata, *rest: told.append(metadata))
    module.load_state_dict(nn.Sequential(nn.BatchNorm1d(2)).state_dict(), assign=assign)
    assert [(each["version"], each["assign_to_params_buffers"]) for each in told] == [(2, assign)] * 2


def test_loading_hooks_run_in_the_mode_of_the_caller():
    """Only the copies into parameters are not recorded; hooks of a load find grad mode as the caller has it."""
    module = net()
    seen = []
    module[0].register_load_state_dict_pre_hook(lambda m, entries, strict: seen.append(lucid.is_grad_enabled()))
    module[1].register_load_state_dict_post_hook(lambda m, keys: seen.append(lucid.is_grad_enabled()))
    module.load_state_dict(net().state_dict())
    assert seen == [True, True]
    with lucid.no_grad():
        module.load_state_dict(net().state_dict())
    assert seen[2:] == [False, False]
    assert all(p.is_leaf and p.requires_grad for p in module.parameters())


@contract("7.2")
def test_loading_post_hooks():
    """Post-hooks fire also when the load is about to raise, see their own keys, and may avoid the error."""
    module = net()
    state = dict(net().state_dict())
    del state["1.1.bias"]
    seen = []
    module[1][1].register_load_state_dict_post_hook(
        lambda m, missing, unexpected, strict: seen.append((list(missing), list(unexpected), strict))
    )
    fails_to_load(module, state, StateDictError, r"1.1.bias")
    assert seen == [(["bias"], [], True)]
    handle = module.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    module.load_state_dict(state)
    assert np.array_equal(values(module)["0.weight"], state["0.weight"].cpu().numpy())
    handle.remove()
    module.register_load_state_dict_post_hook(lambda m, missing, unexpected, strict: missing.append("more"))
    fails_to_load(module, dict(net().state_dict()), StateDictError, '"more"')


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("broken", ["read-only", "expanded", "inference"])
def test_a_tensor_that_cannot_be_written(broken, strict):
    """It is named with all other misfits, before anything is changed."""
    module = net()
    target = module[1][1].weight
    if broken == "inference":
        with lucid.inference_mode():
            module[1][1].weight = nn.Parameter(lucid.zeros(*target.shape))
    elif broken == "expanded":
        target.data = lucid.zeros(1).expand(*target.shape)
    else:
        target.data = lucid.from_numpy(np.broadcast_to(np.zeros(1, np.float32), tuple(target.shape)))
    state = {key: lucid.ones(*value.shape) for key, value in net().state_dict().items()}
    words = r'While copying the parameter named "1.1.weight", an exception occurred: '
    fails_to_load(module, state, StateDictError, words, strict=strict)
    assert not module[1][1].weight.any()
    module.load_state_dict(state, assign=True)
    assert module[1][1].weight.tolist() == [[1.0] * 3]


def test_post_hooks_see_what_was_loaded():
    """They come when the tensors have their new values."""
    module = net()
    state = {key: lucid.ones(*value.shape) for key, value in net().state_dict().items()}
    seen = []
    module.register_load_state_dict_post_hook(lambda m, keys: seen.append(m[0].weight.tolist()))
    module.load_state_dict(state)
    assert seen == [[[1.0, 1.0]] * 3]


def test_a_failed_load_brings_back_memory_that_a_hook_has_replaced():
    """A tensor whose `data` a hook has set to another shape is as it was, and so are those that follow."""
    module = net()

    def fails(m, keys):
        module[1][1].bias.data = lucid.ones(7)
        raise ZeroDivisionError

    module.register_load_state_dict_post_hook(fails)
    fails_to_load(module, net().state_dict(), ZeroDivisionError)


@contract("7.5")
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_a_load_that_is_stopped_changes_nothing(kind):
    """Whatever a post-hook raises, also what is no Exception."""
    module = net()
    module.register_load_state_dict_post_hook(raising(kind))
    fails_to_load(module, net().state_dict(), kind)


@contract("0.5")
@contract("7.5")
def test_hook_that_raises_while_loading():
    """A post-hook that raises leaves the module unchanged, and the note names it and the module's path."""
    module = net()

    def fails(m, missing, unexpected, strict):
        raise ValueError("no")

    module[1].register_load_state_dict_post_hook(fails)
    note = fails_to_load(module, net().state_dict(), ValueError, "no").__notes__[0]
    assert "fails" in note
    assert "module 1 (Sequential)" in note


@contract("7.5")
def test_a_failed_load_of_a_tensor_with_two_names():
    """A shared parameter for which the state dict has two values is as before."""
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    module[1].weight = module[0].weight
    module.register_load_state_dict_post_hook(lambda m, missing, unexpected, strict: missing.append("0.bias"))
    state = {name: value + number for number, (name, value) in enumerate(module.state_dict().items(), 1)}
    fails_to_load(module, state, StateDictError, "Missing")


@contract("7.4")
def test_forms_are_recognised_at_registration():
    """A hook that takes neither form is refused, and a bare *args gets PyTorch's."""
    module = net()
    with pytest.raises(TypeError, match="3 positional arguments, or of 8"):
        module.register_load_state_dict_pre_hook(lambda a, b: None)
    assert not module._load_state_dict_pre_hooks
    seen = []
    module.register_load_state_dict_pre_hook(lambda *args: seen.append(len(args)))
    module.register_load_state_dict_post_hook(lambda *args: seen.append(len(args)))
    module.load_state_dict(net().state_dict())
    assert seen == [8, 2]

    class Unknown:
        """What Python knows no signature of, such as much that is written in C."""

        __signature__ = "none"

        def __call__(self, *args):
            seen.append(len(args))

    module.register_load_state_dict_post_hook(Unknown())
    module.load_state_dict(net().state_dict())
    assert seen == [8, 2, 8, 2, 2]


def test_own_loading_method():
    """A module that overrides `_load_from_state_dict` in PyTorch's way loads, and a failed load leaves it unchanged."""

    class Renamed(nn.Linear):
        def _load_from_state_dict(self, state_dict, prefix, *rest):
            if prefix + "kernel" in state_dict:
                state_dict[prefix + "weight"] = state_dict.pop(prefix + "kernel")
            super()._load_from_state_dict(state_dict, prefix, *rest)

    module = nn.Sequential(Renamed(2, 2))
    state = dict(module.state_dict())
    state["0.kernel"] = lucid.ones(2, 2)
    del state["0.weight"]
    module.load_state_dict(state)
    assert module[0].weight.detach().cpu().numpy().tolist() == [[1.0, 1.0], [1.0, 1.0]]
    state["0.kernel"] = lucid.zeros(2, 2)
    del state["0.bias"]
    fails_to_load(module, state, StateDictError)
    assert copy.copy(state).keys() == state.keys()


@contract("7.2")
def test_post_hooks_add_unexpected_keys_under_their_path():
    """What a hook of a submodule calls unexpected is reported with the module's path before it."""
    module = net()
    module[1][1].register_load_state_dict_post_hook(lambda m, missing, unexpected, strict: unexpected.append("odd"))
    assert module.load_state_dict(net().state_dict(), strict=False).unexpected_keys == ["1.1.odd"]
    state = net().state_dict()
    for name in ("0.bias", "1.1.bias", "1.0.bias"):
        state["1.1.more" if "1.1" in name else f"{name}.more"] = state.pop(name)
    missing, unexpected = module.load_state_dict(state, strict=False)
    assert sorted(missing) == ["0.bias", "1.0.bias", "1.1.bias"]
    assert sorted(unexpected) == ["0.bias.more", "1.0.bias.more", "1.1.more", "1.1.odd"]


def test_arguments_of_state_dict_by_position():
    """Those left out keep what is given by name."""
    module = nn.Linear(1, 1)
    given = {}
    with pytest.warns(FutureWarning, match="by name"):
        state = module.state_dict(given, prefix="p.", keep_vars=True)
    assert state is given
    assert state["p.weight"] is module.weight
