"""What has to be entered in a list when something public is added: each test says what is missing, and where."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.public import written_in
from lucid.tensor.numpy_calls.ufuncs import UFUNCS
from tests import contract, schedulers
from tests.laws import test_layers, test_luck, test_wrong_types
from tests.laws.public import parameters_of, public_names, released
from tests.layers import LAYERS, LOSSES
from tests.optim import test_formulas
from tests.optimizers import COUNTED_ROWS, NAMES, OTHERS, SETTINGS, USUAL

ROOT = Path(__file__).parents[2]
PYTORCH = json.loads((ROOT / "lucid" / "compat" / "names.json").read_text(encoding="utf-8"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
PICTURE = (ROOT / "examples" / "hooks_order.py").read_text(encoding="utf-8")
HOOKS = (ROOT / "docs" / "users" / "hooks.md").read_text(encoding="utf-8")
BROKEN = (ROOT / "tests" / "nn" / "hooking" / "test_hook_errors.py").read_text(encoding="utf-8")


# ---- optimizers ----


@pytest.mark.parametrize("name", NAMES)
def test_every_optimizer_has_its_rows(name):
    """A public optimizer has settings for every test of optimizers, and its formula in NumPy."""
    rows = {
        "USUAL in tests/optimizers.py: settings with which it keeps state": USUAL,
        "SETTINGS in tests/optimizers.py: a row for each of its settings": {kind for kind, _ in SETTINGS.values()},
        "FORMULAS in tests/optim/test_formulas.py: its formula in NumPy": test_formulas.FORMULAS,
    }
    kind = getattr(lucid.optim, name)
    if kind.scalars:
        counted = {SETTINGS[row][0] for row in COUNTED_ROWS}
        rows["COUNTED_ROWS in tests/optimizers.py: a row of it, as it counts steps"] = counted
    given = {setting for each, settings in SETTINGS.values() if each == name for setting in settings}
    settings = kind.ranges.keys() & inspect.signature(kind).parameters.keys()
    untried = sorted(settings - given - {"lr", kind.counted_by})
    assert not untried, f"no row of optim.{name} in SETTINGS, tests/optimizers.py, gives {untried}"
    missing = [place for place, names in rows.items() if name not in names]
    assert not missing, f"optim.{name} is not tested: add it to {', and to '.join(missing)}"


def test_every_other_optimizer_names_its_tests():
    """A public optimizer that is no formula on elements says in which file its own tests are, which is there."""
    kinds = {name for name in lucid.optim.__all__ if isinstance(getattr(lucid.optim, name), type)}
    differ = sorted((kinds - {*NAMES, "Optimizer"}) ^ OTHERS.keys())
    assert not differ, f"OTHERS in tests/optimizers.py: {differ} of lucid.optim stands in one of them alone"
    lost = [place for place in OTHERS.values() if not (ROOT / place).exists()]
    assert not lost, f"OTHERS in tests/optimizers.py names files that are not there: {lost}"


# ---- schedules ----


@pytest.mark.parametrize("name", sorted({*schedulers.NAMES} - {"LRScheduler", "ReduceLROnPlateau"}))
def test_every_schedule_has_a_row(name):
    """A public schedule has settings for every test of schedules."""
    kinds = {type(schedulers.made(row)[1]).__name__ for row in schedulers.SCHEDULES}
    assert name in kinds, f"{name} is not tested: add a row to SCHEDULES in tests/schedulers.py"


# ---- layers ----

# What has no values of its own.
WITHOUT_VALUES = {
    "Module": "the base of all",
    "AdaptiveLogSoftmaxWithLoss": "a loss with parameters: tests/nn/layers/losses/test_adaptive.py",
    "MultiheadAttention": "takes three inputs: tests/nn/layers/attention/test_multihead.py",
    "Transformer": "takes two inputs: tests/nn/layers/attention/test_transformer.py",
    "TransformerDecoder": "takes two inputs: tests/nn/layers/attention/test_transformer.py",
    "TransformerDecoderLayer": "takes two inputs: tests/nn/layers/attention/test_transformer.py",
    "Bilinear": "takes two inputs: tests/nn/layers/test_linear.py",
    **dict.fromkeys(
        ["GRU", "LSTM", "RNN", "RNNBase"],
        "take sequences, and give states too: tests/nn/layers/recurrent/test_layers.py",
    ),
    **dict.fromkeys(
        ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"], "take states: tests/nn/layers/recurrent/test_cells.py"
    ),
    "SyncBatchNorm": "has no form on PyTorch's CPU: tests/nn/layers/normalisation/test_synchronised.py",
    "ParameterList": "a container: tests/nn/layers/test_parameter_containers.py",
    "ParameterDict": "a container: tests/nn/layers/test_parameter_containers.py",
}
PUBLIC_LAYERS = sorted(
    name
    for name in nn.__all__
    if isinstance(getattr(nn, name), type)
    and issubclass(getattr(nn, name), nn.Module)
    and name not in WITHOUT_VALUES
    # becomes another one: tests/nn/test_lazy.py
    and not issubclass(getattr(nn, name), nn.modules.lazy.LazyModuleMixin)
)


@pytest.mark.parametrize("name", PUBLIC_LAYERS)
def test_every_layer_has_a_row(name):
    """A public layer or loss has a row on which its values, gradients, state and repr are compared."""
    made = {type(module) for make in LAYERS.values() for module in make(nn).modules()}
    assert getattr(nn, name) in made or name in LOSSES, (
        f"the values of nn.{name} are not tested: add a row to LAYERS or LOSSES in tests/layers.py; or, if no row can "
        "call it, the file of its own test to WITHOUT_VALUES in tests/laws/test_lists.py"
    )


# ---- kinds of hooks ----

NO_KINDS = {"HookError", "HookTypeError", "HookTable", "hooks"}
# What a `Join` block asks of those in it, and what there is for that.
NO_KINDS |= {"join_hook"}
# What is there to be handed over to `register_comm_hook` is a hook, and registers none.
HANDED_OVER = "lucid.distributed.algorithms."
HEADING = "## Where each kind is registered"


def kinds_of_hooks():
    """Return what hooks are registered by, as docs/users/hooks.md names it: a function or class, or Class.method."""
    found = set()
    for name in public_names():
        *_, owner, last = name.split(".")
        if name.startswith(HANDED_OVER):
            continue
        if re.search("hook|callback", last, re.IGNORECASE) and last not in NO_KINDS:
            found.add(f"{owner}.{last}" if owner[0].isupper() else last)
    return found


def rows_of_hooks():
    """Return the first and last cell of each row of the table in docs/users/hooks.md."""
    section = HOOKS.partition(HEADING)[2].partition("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| `")
    ]
    return [(re.findall(r"`(.+?)`", first), last) for first, _, last in cells]


@pytest.mark.parametrize("kind", sorted(kinds_of_hooks()))
def test_every_kind_of_hook_is_explained(kind):
    """The table in docs/users/hooks.md says of each kind when it fires, and its line of the contract, or why none."""
    places = [last for kinds, last in rows_of_hooks() if kind in kinds]
    assert places, (
        f'{kind} registers hooks, and docs/users/hooks.md does not name it: add a row to "{HEADING}", with the line '
        "that you add to docs/dev/contract.md, or the reason why the contract has none"
    )
    (place,) = places
    line = re.match(r"[\d.]+", place)
    assert place, f"users/hooks.md, row of {kind}: name its line of dev/contract.md, or the reason why it has none"
    assert not line or line[0] in contract.LINES, f"users/hooks.md, row of {kind}: the contract has no line {place}"


@pytest.mark.parametrize("kind", sorted(kinds_of_hooks()))
def test_every_kind_of_hook_is_in_the_picture(kind):
    """Each is drawn in the order of one training step, or docs/users/hooks.md says below the tables why it is not."""
    beside = HOOKS.partition("Not in the tables")[2].partition("\n## ")[0]
    assert re.search(rf"\b{kind.rpartition('.')[2]}\b", PICTURE + beside), (
        f"{kind} is not in the picture of users/hooks.md: add it to KINDS and to the run in examples/hooks_order.py, "
        'and write both anew by it, or say in the paragraph "Not in the tables" why it is not in them'
    )


@pytest.mark.parametrize("kind", sorted(kind for kind in kinds_of_hooks() if kind.startswith("Module.")))
def test_every_kind_of_a_module_is_broken(kind):
    """Of each kind that a module registers, a hook that raises, or is called otherwise than it expects, is tried."""
    name = kind.removeprefix("Module.")
    assert f'"{name}"' in BROKEN or f".{name}(" in BROKEN, (
        f"no test has a {name} that raises: add a row to ROWS in tests/nn/hooking/test_hook_errors.py, or to "
        "STATE_ROWS there if it fires where a state dict is made or loaded, or, if it fires elsewhere, a test there"
    )


def test_no_row_of_a_kind_that_is_none():
    """What the table in docs/users/hooks.md names is there."""
    gone = {kind for kinds, _ in rows_of_hooks() for kind in kinds} - kinds_of_hooks()
    assert not gone, f'docs/users/hooks.md, "{HEADING}": {sorted(gone)} register no hooks, or are not public'


# ---- ops ----


def test_every_function_of_a_tensor_is_a_method():
    """What `lucid` does with a tensor, the tensor does too, but for what PyTorch has as a function alone."""
    alone = {*PYTORCH["torch"]} - {*PYTORCH["torch.Tensor"]}
    functions = {name: getattr(lucid, name) for name in lucid.__all__ if name.rstrip("_") not in alone}
    missing = [
        name
        for name, function in functions.items()
        if inspect.isfunction(function)
        and written_in(inspect.unwrap(function)).startswith("lucid.ops.")
        and next(iter(inspect.signature(function).parameters), "") == "input"
        and not hasattr(lucid.Tensor, name)
    ]
    assert not missing, (
        f"{missing}: say `method` of them in tests/namespaces/ops.txt, and run python -m tests.namespaces.exports"
    )


def test_numpys_functions_of_the_same_name_are_recorded():
    """A ufunc of NumPy that lucid has under the same name is recorded when it is called with a tensor."""
    ufuncs = {name: getattr(np, name, None) for name in lucid.__all__}
    missing = [name for name, ufunc in ufuncs.items() if isinstance(ufunc, np.ufunc) and ufunc.__name__ not in UFUNCS]
    assert not missing, (
        f"{missing}: say `numpy` of them in tests/namespaces/ops.txt, and run python -m tests.namespaces.exports; or, "
        "if the op is not all that the ufunc is, add a function to UFUNCS in lucid/tensor/numpy_calls/ufuncs.py"
    )


# ---- the changelog ----


def test_new_names_are_in_the_changelog():
    """What is public now and was not in the last release, or the other way round, is named to users."""
    newest = CHANGELOG.split("\n## ")[1]
    changed = [
        name
        for name in sorted(public_names() ^ released().keys())
        if not re.search(rf"`[^`\n]*\b{re.escape(name.rpartition('.')[2].rstrip('_'))}_?\b[^`\n]*`", newest)
    ]
    assert not changed, (
        f"public and new since the last release, or gone: {', '.join(changed)}; CHANGELOG.md does not say so: write a "
        "sentence for users under its newest heading, with the name in backticks; what is not public has an underscore"
    )


def test_new_parameters_are_in_the_changelog():
    """So is a parameter that something public has now and did not have in the last release, or has no more."""
    newest = CHANGELOG.split("\n## ")[1]
    public = public_names()
    changed = [
        f"{name}({parameter})"
        for name, before in released().items()
        if name in public
        for parameter in sorted({*before} ^ {*parameters_of(name)})
        if not re.search(rf"`[^`\n]*\b{re.escape(parameter)}\b[^`\n]*`", newest)
    ]
    assert not changed, (
        f"parameters that are new since the last release, or gone: {', '.join(changed)}; CHANGELOG.md does not say so: "
        "write a sentence for users under its newest heading, with the parameter in backticks, as `name(parameter=)`"
    )


def test_the_changelog_is_grouped():
    """Under one heading for each release stand what was added, changed and fixed, in lines that fit a page."""
    for release in CHANGELOG.split("\n## ")[1:]:
        assert not set(re.findall(r"^### (.*)$", release, re.MULTILINE)) - {"Added", "Changed", "Fixed"}
        loose = release.split("\n### ")[0].partition("\n")[2]
        assert not loose.strip(), f"CHANGELOG.md: {loose.strip()[:80]!r} stands under none of Added, Changed, Fixed"
    assert not [line for line in CHANGELOG.splitlines() if len(line) > 120]


# ---- the lists of laws ----


def entries_of(node):
    """Yield the constants that stand in a set, or are keys of a dict, and in tuples and texts that go into it."""
    match node:
        case ast.Constant(value=value):
            yield value
        case ast.Starred(value=ast.Tuple(elts=elements) | ast.List(elts=elements)):
            for each in elements:
                yield from entries_of(each)
        case ast.Starred(value=ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="split"))):
            yield from text.split()
        case ast.Set(elts=elements):
            for each in elements:
                yield from entries_of(each)
        case ast.Dict(keys=keys):
            for each in filter(None, keys):
                yield from entries_of(each)


def repeated_in(tree):
    """Return what stands twice in a set or a dict of a file, by line."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Set | ast.Dict):
            counts = Counter((type(entry), entry) for entry in entries_of(node))
            if twice := [entry for (_, entry), n in counts.items() if n > 1]:
                found[node.lineno] = twice
    return found


def test_no_entry_stands_twice():
    """Of two equal entries of a list one says nothing, and whoever takes one off has changed nothing."""
    text = "{1, 'a', *('a', 'b'), *'c d c'.split()}\n{'x': 1, 'y': 2, 'x': 3}\n{1, True, 1.5, (1, 1)}"
    assert repeated_in(ast.parse(text)) == {1: ["a", "c"], 2: ["x"]}
    found = {
        f"{path.relative_to(ROOT)}:{line}": twice
        for folder in ("tests", "tests/laws", "tests/namespaces", "tests/compat", "lucid/compat")
        for path in sorted((ROOT / folder).glob("*.py"))
        for line, twice in repeated_in(ast.parse(path.read_text(encoding="utf-8"))).items()
    }
    assert not found, f"entries that stand twice in a list: leave one of each: {found}"


def parts():
    """Return the folders and files of lucid."""
    return {path.stem for path in Path(lucid.__file__).parent.iterdir() if path.suffix == ".py" or path.is_dir()}


def imported_lazily():
    """Return the packages that functions of lucid import."""
    return {each.name.partition(".")[0] for *_, each in test_layers.every_import() if each.inside_function}


def clock_readers():
    """Return those of the files that may read a clock which do."""
    return {
        name
        for name in test_luck.MAY_READ_CLOCKS
        if (ROOT / name).exists() and test_luck.clocks_in(ast.parse((ROOT / name).read_text(encoding="utf-8")))
    }


def layers():
    """Return the classes of `lucid.nn`."""
    return {name for name in nn.__all__ if isinstance(getattr(nn, name), type)}


def last_names():
    """Return the names of all that can be called, without where they stand."""
    short = {name.rpartition(".")[2] for name in test_wrong_types.PUBLIC}
    return short | {name.rstrip("_") for name in short}


def parameters():
    """Return the names of the parameters of all that can be called."""
    return {each.name for name in test_wrong_types.PUBLIC for each in test_wrong_types.parameters_of_any(name)}


NEEDED = {
    "WITHOUT_VALUES of tests/laws/test_lists.py": (WITHOUT_VALUES, layers),
    "LAYERS of tests/laws/test_layers.py": (test_layers.RANK, lambda: parts() | {"lucid"}),
    "LAZY of tests/laws/test_layers.py": (test_layers.LAZY, imported_lazily),
    "MAY_READ_CLOCKS of tests/laws/test_luck.py": (test_luck.MAY_READ_CLOCKS, clock_readers),
    "VALUES of tests/laws/test_wrong_types.py": (test_wrong_types.VALUES, last_names),
    "BY_NAME of tests/laws/test_wrong_types.py": (test_wrong_types.BY_NAME, parameters),
}


@pytest.mark.parametrize("listed", NEEDED)
def test_no_entry_is_needless(listed):
    """What a list exempts or explains exists, and is of the kind that the list is for."""
    entries, existing = NEEDED[listed]
    needless = sorted(set(entries) - existing())
    assert not needless, f"{listed}: nothing needs {needless}: take them off"
