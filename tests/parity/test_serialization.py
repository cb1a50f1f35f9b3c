"""PyTorch's files are loaded, without running anything that they could name."""

from __future__ import annotations

import contextlib
import io
import zipfile

import numpy as np
import pytest
import torch

import lucid
from lucid.errors import CheckpointError
from tests.device import DEVICE
from tests.parity import checkpoints
from tests.serialization.test_pytorch import archive


def values():
    """Return what a training script saves, with all dtypes, views of one storage, and values of all plain kinds."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    whole = torch.randn(3, 4)
    kinds = (
        "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
        "complex128",
    )  # fmt: skip
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "parameter": model[0].weight,
        "frozen": torch.nn.Parameter(torch.ones(2), requires_grad=False),
        "dtypes": {kind: torch.tensor([[1.0, 0.0], [3.0, 4.0]]).to(getattr(torch, kind)) for kind in kinds},
        "views": (whole.t(), whole[1:, ::2], whole),
        "empty": torch.zeros(0, 3),
        "number": torch.tensor(2.5),
        "plain": [1, 2.5, -(2**70), True, None, "\u00e4", b"\x00\xff", 1 - 2j, {1, 2}, (), {}, {3: "x", None: []}],
        "size": whole.shape,
        "dtype": torch.float16,
        "device": torch.device("cpu"),
    }


def same(ours, theirs):
    """Tell whether an object is PyTorch's, tensors to the last bit."""
    if isinstance(theirs, torch.Tensor):
        kind = {torch.bfloat16: torch.float32}.get(theirs.dtype, theirs.dtype)
        array = ours.detach().cpu()
        array = array.float() if theirs.dtype == torch.bfloat16 else array
        return (
            str(ours.dtype).partition(".")[2] == str(theirs.dtype).partition(".")[2]
            and ours.requires_grad == theirs.requires_grad
            and type(ours).__name__ == type(theirs).__name__
            and np.array_equal(array.numpy(), theirs.detach().to(kind).numpy())
            and tuple(ours.shape) == tuple(theirs.shape)
        )
    if isinstance(theirs, dict):
        return (
            type(ours) is type(theirs) and list(ours) == list(theirs) and all(same(ours[k], theirs[k]) for k in theirs)
        )
    if isinstance(theirs, list | tuple):
        if type(ours).__name__ != type(theirs).__name__:
            return False
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, torch.dtype | torch.device):
        return str(ours).partition(".")[2] == str(theirs).partition(".")[2]
    return ours == theirs and type(ours) is type(theirs)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "old"])
def test_what_pytorch_saves_is_loaded(tmp_path, zipped):
    """Each tensor and value of a checkpoint, in either form, from a path and from where a file stands."""
    torch.manual_seed(0)
    saved = values()
    torch.save(saved, tmp_path / "model.pt", _use_new_zipfile_serialization=zipped)
    found = lucid.load(tmp_path / "model.pt", map_location=DEVICE)
    assert same(found, saved)
    assert found["model"]._metadata == saved["model"]._metadata
    assert isinstance(found["parameter"], lucid.nn.Parameter)
    file = io.BytesIO(b"before" + (tmp_path / "model.pt").read_bytes())
    file.seek(6)
    assert same(lucid.load(file, map_location=DEVICE), saved)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "old"])
def test_memory_is_shared_as_it_was(tmp_path, zipped):
    """Tensors of one storage share memory, and what was one tensor is one."""
    whole = torch.arange(12.0).reshape(3, 4)
    saved = [whole, whole.t(), whole[1:, ::2], whole]
    torch.save(saved, tmp_path / "views.pt", _use_new_zipfile_serialization=zipped)
    first, turned, part, again = lucid.load(tmp_path / "views.pt", map_location=DEVICE)
    assert again is first
    first[1, 2] = 99.0
    assert turned[2, 1].item() == part[0, 1].item() == 99.0
    assert part.tolist() == [[4.0, 99.0], [8.0, 10.0]]


def test_a_module_loads_what_pytorch_saved(tmp_path, rng):
    """A state dict and an optimizer's go from PyTorch's file into lucid's objects: one more step is the same."""
    theirs = torch.nn.Linear(3, 2, dtype=torch.float64)
    their_optimizer = torch.optim.Adam(theirs.parameters(), lr=0.1)
    x = rng.standard_normal((4, 3))

    def step(library, module, optimizer, inputs):
        optimizer.zero_grad()
        (module(inputs) ** 2).sum().backward()
        optimizer.step()

    step(torch, theirs, their_optimizer, torch.from_numpy(x))
    torch.save({"model": theirs.state_dict(), "optimizer": their_optimizer.state_dict()}, tmp_path / "step.pt")
    module = lucid.nn.Linear(3, 2, dtype=lucid.float64)
    optimizer = lucid.optim.Adam(module.parameters(), lr=0.1)
    state = lucid.load(tmp_path / "step.pt", map_location=DEVICE)
    module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    step(lucid, module, optimizer, lucid.tensor(x))
    step(torch, theirs, their_optimizer, torch.from_numpy(x))
    for ours, expected in zip(module.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(ours.detach().cpu().numpy(), expected.detach().numpy(), rtol=1e-9)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "old"])
@pytest.mark.parametrize("untyped", [True, False])
@pytest.mark.parametrize("bit", ["conj", "neg"])
def test_views_that_are_conjugated_when_they_are_read(tmp_path, bit, untyped, zipped, monkeypatch):
    """PyTorch writes the numbers before conjugation or negation: such a view is refused, with what to save instead.

    As a dtype of its newer ones it is written beside a storage of bytes, with the same bits.
    """
    monkeypatch.setattr(torch.storage, "_new_dtypes", lambda: {torch.complex64, torch.float32} if untyped else set())
    view = torch.tensor([1 + 2j, 3 - 1j]).conj()
    view = view if bit == "conj" else view.imag
    torch.save({"value": view}, tmp_path / "view.pt", _use_new_zipfile_serialization=zipped)
    with pytest.raises(CheckpointError, match=rf"holds a {bit} view: save its resolve_{bit}\(\)"):
        lucid.load(tmp_path / "view.pt")
    torch.save(getattr(view, f"resolve_{bit}")(), tmp_path / "view.pt", _use_new_zipfile_serialization=zipped)
    np.testing.assert_array_equal(lucid.load(tmp_path / "view.pt").numpy(), view.resolve_conj().resolve_neg().numpy())


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "old"])
def test_schedules_load_what_pytorch_saved(tmp_path, zipped):
    """The state of a schedule whose milestones are a Counter goes on from PyTorch's file."""
    schedules = []
    for library in (torch, lucid):
        optimizer = library.optim.SGD([library.zeros(1, requires_grad=True)], lr=1.0)
        schedules.append((optimizer, library.optim.lr_scheduler.MultiStepLR(optimizer, [2, 2, 5])))
    (their_optimizer, theirs), (our_optimizer, ours) = schedules
    for _ in range(3):
        their_optimizer.step()
        theirs.step()
    saved = {"optimizer": their_optimizer.state_dict(), "schedule": theirs.state_dict()}
    torch.save(saved, tmp_path / "schedule.pt", _use_new_zipfile_serialization=zipped)
    state = lucid.load(tmp_path / "schedule.pt")
    our_optimizer.load_state_dict(state["optimizer"])
    ours.load_state_dict(state["schedule"])
    for _ in range(4):
        for optimizer, schedule in schedules:
            optimizer.step()
            schedule.step()
        assert ours.get_last_lr() == pytest.approx(theirs.get_last_lr(), rel=1e-12)


class Named:
    """A class that a script defines."""


def test_what_is_not_loaded_is_named(tmp_path):
    """Modules, and objects of a script's own classes, are refused by name; so are quantised and sparse tensors."""
    for value, name in [
        (torch.nn.Linear(1, 1), r"torch\.nn\.modules\.linear\.Linear"),
        (Named(), r"test_serialization\.Named"),
        (torch.eye(2).to_sparse(), r"torch\._utils\._rebuild_sparse_tensor"),
        (torch.tensor([1], dtype=torch.uint16), r"torch\.uint16"),
    ]:
        torch.save({"value": value}, tmp_path / "other.pt")
        with pytest.raises(CheckpointError, match=f"holds a .*{name}, which is not loaded: .*state_dict"):
            lucid.load(tmp_path / "other.pt")


def test_each_cut_and_each_changed_byte_loads_or_is_refused(rng):
    """A file that is cut or changed anywhere gives a value or a CheckpointError: nothing else, and nothing runs."""
    for zipped in (True, False):
        file = io.BytesIO()
        saved = {"a": torch.arange(6.0).reshape(2, 3), "b": [torch.ones(2, dtype=torch.bool), "x", 3]}
        torch.save(saved, file, _use_new_zipfile_serialization=zipped)
        data = file.getvalue()
        changed = [data[:length] for length in range(0, len(data), 7)]
        for _ in range(600):
            mutant = bytearray(data)
            for place in rng.integers(0, len(data), rng.integers(1, 4)):
                mutant[place] = rng.integers(256)
            changed.append(bytes(mutant))
        for mutant in changed:
            with contextlib.suppress(CheckpointError):
                lucid.load(io.BytesIO(mutant), map_location="cpu")


def test_file_objects_end_where_pytorchs_do():
    """Both write from where a file stands, and neither closes it."""
    for package in (torch, lucid):
        file = io.BytesIO()
        package.save({"x": package.ones(2)}, file)
        assert file.tell() == len(file.getvalue())
        file.seek(0)
        assert package.load(file)["x"].tolist() == [1, 1]
        assert not file.closed


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "old"])
def test_each_protocol_of_pickle(tmp_path, zipped, protocol):
    """Files of each protocol that PyTorch is told to use are loaded, with keys of all plain kinds."""
    saved = values() | {("a", 1): b"", 2.5: bytearray(b"x"), b"k": {(1, (2, None)), 3}, torch.float32: torch.arange(3)}
    saved |= {1j: 0, True: 1, None: torch.device("cuda", 1)}
    path = tmp_path / "model.pt"
    torch.save(saved, path, _use_new_zipfile_serialization=zipped, pickle_protocol=protocol)
    found = lucid.load(path, map_location=DEVICE)
    found[torch.float32] = found.pop(lucid.float32)
    found[None], saved[None] = str(found[None]), str(saved[None])
    order = [key for key in saved if key in found]
    assert same({key: found[key] for key in order}, saved)


def test_an_archive_without_checksums(tmp_path):
    """PyTorch can be told to compute none, and its file is whole for it."""
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"x": torch.arange(3.0)}, tmp_path / "x.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    assert lucid.load(tmp_path / "x.pt")["x"].tolist() == [0, 1, 2]


def test_no_name_that_pytorch_allows_is_called_damage():
    """Of each name that it loads with weights_only=True a file is loaded, or refused by what it holds."""
    allowed = torch._weights_only_unpickler._get_allowed_globals()
    assert len(allowed) > 50
    for text in allowed:
        module, _, name = text.rpartition(".")
        named = f"c{module}\n{name}\n".encode()
        for opcodes in (named, named + b")R", named + b")\x81", b"}" + named + b"K\1s"):
            try:
                torch.load(with_version(archive(opcodes)), weights_only=True)
            except Exception:  # noqa: BLE001  what it refuses may be called anything
                continue
            assert is_no_damage(outcome(opcodes)), (text, opcodes)


def outcome(opcodes):
    """Return what an archive of these opcodes gives, a value or an error."""
    try:
        return lucid.load(archive(opcodes))
    except CheckpointError as error:
        return error


def is_no_damage(found):
    """Tell whether something was loaded, or refused by what it is."""
    return not isinstance(found, CheckpointError) or "which is not loaded" in str(found)


def with_version(file):
    """Return an archive with what PyTorch asks each for."""
    with zipfile.ZipFile(file, "a") as out:
        out.writestr("a/version", "3\n")
    file.seek(0)
    return file


@pytest.mark.parametrize(
    "opcodes",
    [
        b"}K\1K\2\x86K\3s",
        b"]q\0h\0a",
        b"]" * 150 + b"a" * 149,
        b"ccollections\nOrderedDict\n](K\1K\2\x86e\x85R",
        b"ccollections\nOrderedDict\n}K\1K\2s\x85R",
        b"ccollections\nOrderedDict\n)R}U\1aK\1sb",
        b"c__builtin__\nset\n(K\1K\2t\x85R",
        b"ccollections\nCounter\n}U\1aK\1s\x85R",
        b"}ctorch\nSize\nK\1\x85\x85RK\1s",
        b"NN",
    ],
)
def test_nothing_that_pytorch_loads_is_called_damage(opcodes):
    """What PyTorch loads with weights_only=True is loaded with the same value, or refused by what it holds."""
    expected = torch.load(with_version(archive(opcodes)), weights_only=True)
    found = outcome(opcodes)
    assert is_no_damage(found)
    assert isinstance(found, CheckpointError) or found == expected


def test_the_command_that_compares_real_files(tmp_path):
    """It looks into wheels, finds what is not the same, and names what neither loads."""
    torch.save({"a": torch.arange(3.0), "b": [1, torch.float16]}, tmp_path / "one.pt")
    torch.save(torch.nn.Linear(1, 1), tmp_path / "module.pth")
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        wheel.write(tmp_path / "one.pt", "x/two.pt")
    counts = checkpoints.run(tmp_path)
    assert (counts.files, counts.leaves, counts.faults) == (3, 6, [])
    assert ["module.pth" in line for line in counts.refused] == [True]
    ours, theirs = lucid.load(tmp_path / "one.pt"), torch.load(tmp_path / "one.pt")
    for changed in (
        {"a": lucid.arange(4.0)},
        {"a": ours["a"] + 1},
        {"a": ours["a"].double()},
        {"b": [2, ours["b"][1]]},
    ):
        assert [*checkpoints.differences(ours | changed, theirs)]
