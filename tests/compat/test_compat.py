"""`python -m lucid.compat`: which of PyTorch's names are there, and why others are not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import lucid
from lucid.compat import coverage, is_present, standing_in
from lucid.compat.__main__ import main
from lucid.compat.present import REFUSED, reason
from lucid.compat.standing_in import stand_in
from lucid.errors import LucidError


def test_presence_is_asked_of_lucid():
    """A name is present where lucid has it, in a module that its package does not import, too."""
    assert is_present("torch.nn.Linear")
    assert is_present("torch.Tensor.backward")
    assert is_present("torch.optim.optimizer.Optimizer")
    assert not is_present("torch.nn.Linearly")
    assert not is_present("torch.nowhere.Linear")
    with pytest.raises(ValueError, match=r"torch\.nn\.Linear, got 'numpy\.sum'"):
        is_present("numpy.sum")


def test_what_only_refuses_is_absent():
    """A name that is there to say what to use instead does not count, and has a reason."""
    for path in REFUSED:
        assert not is_present(path)
        assert reason(path)


def test_each_absent_name_has_a_reason_and_the_most_used_stand_first():
    """Rows are ordered by use; of what is there no reason is given."""
    for names in coverage().values():
        assert [each.use for each in names] == sorted((each.use for each in names), reverse=True)
        assert all(bool(each.reason) != each.present for each in names)


def test_prints_shares_of_names_and_of_uses(capsys):
    """The table has a row for each namespace; those of the command line are listed, others refused."""
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert all(f" {namespace} " in printed for namespace in coverage())
    assert main(["torch.distributed"]) == 0
    printed = capsys.readouterr().out
    assert "TCPStore" in printed
    assert "no store is needed" in " ".join(printed.replace("│", " ").split())
    with pytest.raises(SystemExit):
        main(["torch.nothing"])
    assert "got torch.nothing" in capsys.readouterr().err


SCRIPT = """
import sys
from importlib.metadata import version
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.distributed._composable.fsdp import FSDPModule
from torch.utils.data._utils.collate import default_collate

from helper import double

model = nn.Linear(2, 1)
F.mse_loss(double(model(torch.ones(3, 2))), torch.zeros(3, 1)).backward()
clip_grad_norm_(model.parameters(), 1.0)
assert __name__ == "__main__"
assert torch is sys.modules["lucid"] and nn.__name__ == "lucid.nn" and nn.__spec__.name == "lucid.nn"
assert isinstance(model.weight, torch.Tensor)
assert FSDPModule is torch.distributed.fsdp.FSDPModule
assert default_collate is torch.utils.data.default_collate
assert version("torch") == torch.__version__.split("+")[0] == "2.13.0"
assert (2, 13) <= torch.__version__ < (2, 14) and torch.__version__.startswith("2.13.0+lucid0.")
try:
    import torch.no_such_module
except ModuleNotFoundError as error:
    print(error)
print(sys.argv[1:], round(float(model.weight.grad.norm() + model.bias.grad.norm()), 3) > 0)
"""


def run(folder, *arguments, **variables):
    """Run lucid.compat in a process of its own, which the names of modules are changed in."""
    command = [sys.executable, "-m", "lucid.compat", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(lucid.__file__).parents[1]), **variables}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)


def test_a_script_for_pytorch_runs_on_lucid(tmp_path):
    """`--run` gives a script lucid's modules under PyTorch's names, its own arguments and its own folder."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "helper.py").write_text(
        "import torch\n\ndef double(x):\n    return torch.mul(x, 2)\n", encoding="utf-8"
    )
    (tmp_path / "sub" / "script.py").write_text(SCRIPT, encoding="utf-8")
    ran = run(tmp_path, "--run", "sub/script.py", "--lr", "3")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["No module named 'torch.no_such_module'", "['--lr', '3'] True"]


LOADING = """
import torch
from torch.utils.data import DataLoader, Dataset

class Names(Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return torch.full((2,), index), torch.__name__, isinstance(torch.ones(1), torch.Tensor)

def main(**settings):
    for values, names, own in DataLoader(Names(), batch_size=3, num_workers=1, **settings):
        print(values.tolist(), names, own.tolist())
"""


@pytest.mark.parametrize(
    "call",
    [
        "main()",
        "if __name__ == '__main__':\n    main(multiprocessing_context='forkserver')",
        "if __name__ == '__main__':\n    main(multiprocessing_context='spawn')",
    ],
    ids=["as there", "forkserver", "spawn"],
)
def test_workers_of_a_script_have_lucid_too(tmp_path, call):
    """In worker processes `torch` is lucid, however they start; by default as PyTorch's: no script must be guarded."""
    (tmp_path / "script.py").write_text(f"{LOADING}\n{call}\n", encoding="utf-8")
    ran = run(tmp_path, "--run", "script.py")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["[[0, 0], [1, 1], [2, 2]] ['lucid', 'lucid', 'lucid'] [True, True, True]"]


def test_workers_start_anew_once_a_device_was_used(tmp_path):
    """Where a device was used after the loader was made, workers do not inherit it."""
    pytest.importorskip("cupy", reason="the simulated device is below it")
    (tmp_path / "script.py").write_text(
        "import torch\nfrom torch.utils.data import DataLoader\n\nif __name__ == '__main__':\n"
        "    loader = DataLoader(range(2), batch_size=2, num_workers=1)\n"
        "    print(loader.multiprocessing_context.get_start_method())\n"
        "    torch.ones(1, device='cuda')\n"
        "    print([batch.tolist() for batch in loader], loader.multiprocessing_context.get_start_method())\n",
        encoding="utf-8",
    )
    ran = run(tmp_path, "--run", "script.py", LUCID_CUDA_SIMULATOR="1")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["fork", "[[0, 1]] forkserver"]


@pytest.mark.parametrize(("arguments", "got"), [([], "nothing"), (["nowhere.py"], "nowhere.py")])
def test_a_script_that_is_not_there_is_refused(tmp_path, arguments, got):
    """What cannot be run is named, and ends with the status of a wrong argument."""
    ran = run(tmp_path, "--run", *arguments)
    assert ran.returncode == 2
    assert f"--run: expected a script's path, got {got}" in ran.stderr


def test_pytorch_that_is_there_is_not_replaced(monkeypatch):
    """What was imported before is not replaced: half of a process would have the other's tensors."""
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    with pytest.raises(LucidError, match="expected a process without PyTorch"):
        stand_in()
    assert not any(isinstance(finder, standing_in._Finder) for finder in sys.meta_path)


MODULES = ("torch.nn", "torch.nn.functional", "torch.optim", "torch.optim.lr_scheduler")
GOALS = {**dict.fromkeys(MODULES, 89), "torch.Tensor": 75}


@pytest.mark.parametrize("namespace", GOALS)
def test_most_names_are_there(namespace):
    """At least this share of the names that scripts look for first, in percent, is there and stays there."""
    names = coverage()[namespace]
    assert 100 * sum(each.present for each in names) / len(names) >= GOALS[namespace]
