"""A law: what lucid raises where PyTorch raises too is caught by ``except`` clauses that were written for PyTorch.

Everything public that PyTorch has under the same name is called with nonsense for each of its parameters in turn, as
in tests/laws/test_wrong_types.py, of which the valid arguments are.
"""

from __future__ import annotations

import operator

import pytest
import torch

import lucid
from lucid import nn
from lucid.errors import CudaUnavailableError, LucidError
from tests.laws.test_wrong_types import (
    PUBLIC,
    Wrong,
    arguments,
    called,
    has_arguments,
    parameters_of,
    settings,  # noqa: F401  # a fixture: it takes back what the calls set
)

NONSENSE = (Wrong(), "a", None, [], (1, 2, 3, 4, 5, 6, 7), -3, 0.5, float("nan"), 1j)

# What PyTorch raises for mistakes of users. Its other errors come out of code that an argument of the wrong type gets
# into: there an attribute or a key is missed, an assertion fails, or a conversion in C overflows.
MEANT = (TypeError, ValueError, RuntimeError, NotImplementedError)

# What of the public names is not called, and why.
STATE = "sets what holds for the whole process, in PyTorch as well"
NOT_CALLED = {"lucid.set_": STATE, "lucid.use_deterministic_algorithms": STATE, "lucid.cuda.": STATE}

# Where lucid raises another class, and why; a row that is no longer true fails.
IN_A_KERNEL = "PyTorch takes complex numbers, until a kernel has none"
OF_THE_USER = "the error is that of the user's function, which gets the arguments as they are"
ITS_PURPOSE = "raises AssertionError, which is what it is for"
OTHERWISE = {
    "lucid.nn.functional.affine_grid.size": "PyTorch has not implemented other sizes; there are none",
    "lucid.nn.utils.spectral_norm.eps": IN_A_KERNEL,
    "lucid.nn.utils.parametrizations.spectral_norm.eps": IN_A_KERNEL,
    "lucid.autograd.gradcheck.nondet_tol": IN_A_KERNEL,
    "lucid.autograd.gradgradcheck.nondet_tol": IN_A_KERNEL,
    "lucid.nn.utils.stateless.functional_call.args": OF_THE_USER,
    "lucid.func.linearize.primals": OF_THE_USER,
    "lucid.func.vjp.primals": OF_THE_USER,
    "lucid.testing.assert_close.actual": ITS_PURPOSE,
    "lucid.testing.assert_close.expected": ITS_PURPOSE,
    "lucid.testing.assert_allclose.actual": ITS_PURPOSE,
    "lucid.testing.assert_allclose.expected": ITS_PURPOSE,
}


def in_pytorch(name):
    """Return what PyTorch has under a name of lucid's; None if nothing."""
    try:
        return operator.attrgetter(name.removeprefix("lucid."))(torch)
    except AttributeError:
        return None


NAMES = [name for name in PUBLIC if has_arguments(name) and in_pytorch(name) and not name.startswith((*NOT_CALLED,))]


def schedule():
    """Return PyTorch's form of the schedule of the valid arguments."""
    return torch.optim.lr_scheduler.ExponentialLR(optimizer(), 0.9)


def optimizer():
    """Return PyTorch's form of the optimizer of the valid arguments."""
    return torch.optim.SGD([torch.nn.Parameter(torch.ones(3))], lr=0.1, momentum=0.9)


MADE = {
    nn.Linear: lambda layer: torch.nn.Linear(layer.in_features, layer.out_features),
    nn.TransformerEncoderLayer: lambda _: torch.nn.TransformerEncoderLayer(2, 1, 2),
    nn.TransformerDecoderLayer: lambda _: torch.nn.TransformerDecoderLayer(2, 1, 2),
    lucid.optim.SGD: lambda _: optimizer(),
    lucid.optim.lr_scheduler.ExponentialLR: lambda _: schedule(),
    nn.Parameter: lambda value: torch.nn.Parameter(torch.tensor(value.detach().cpu().numpy())),
    lucid.Tensor: lambda value: torch.tensor(value.detach().cpu().numpy()).requires_grad_(value.requires_grad),
    lucid.dtype: lambda value: getattr(torch, str(value).removeprefix("lucid.")),
    list: lambda value: list(map(to_pytorch, value)),
    tuple: lambda value: tuple(map(to_pytorch, value)),
    dict: lambda value: {key: to_pytorch(each) for key, each in value.items()},
}


pytestmark = pytest.mark.cpu("a number on another device is refused before its value is looked at")


def to_pytorch(value):
    """Return an argument as PyTorch takes it; raise LookupError for what only lucid has."""
    if type(value) in MADE:
        return MADE[type(value)](value)
    if type(value).__module__.startswith("lucid"):
        raise LookupError(value)
    return value


def error_of(function, *args, **kwargs):
    """Return what a call raises; None if nothing."""
    try:
        made = function(*args, **kwargs)
        if type(made).__name__.endswith("Handle"):
            made.remove()
    except Exception as error:  # noqa: BLE001  # which classes are raised is what is looked at
        return error
    return None


def builtin_of(error):
    """Return the builtin class that an error is of."""
    return next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")


def difference(name, parameters, parameter, value):
    """Return how the errors of a call with a wrong value differ; None if they do not, or a library takes it."""
    try:
        args, kwargs = map(to_pytorch, arguments(name, parameters, parameter, value))
    except (LookupError, CudaUnavailableError):
        return None
    theirs = error_of(in_pytorch(name), *args, **kwargs)
    ours = theirs and error_of(called, name, parameters, parameter, value)
    if ours is None:
        return None
    # what the system refuses, as a file that is not there, is the system's error in both
    own, kind = isinstance(ours, LucidError | OSError), builtin_of(theirs)
    if own and (kind not in MEANT or isinstance(ours, kind)):
        return None
    return (
        f"{name} with {parameter}={value!r}: PyTorch raises {theirs!r}, lucid{'' if own else ', not its own'} {ours!r}"
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_an_error_is_of_the_class_that_pytorch_raises(name, monkeypatch, tmp_path):
    """It is lucid's own, and the builtin that PyTorch's is."""
    monkeypatch.chdir(tmp_path)  # "a" is a name of a file, too
    # which kind of global backward hooks there are PyTorch remembers after the last one is removed
    monkeypatch.setattr(torch.nn.modules.module, "_global_is_full_backward_hook", None)
    parameters = parameters_of(name)
    for parameter in [each.name for each in parameters[name.startswith("Tensor.") :]]:
        found = [text for value in NONSENSE if (text := difference(name, parameters, parameter, value))]
        if f"{name}.{parameter}" in OTHERWISE:
            assert found, f"{name}.{parameter}: the exception from the law is no longer needed"
        else:
            assert not found, "\n".join(found)


def test_what_is_excepted_is_looked_at():
    """Each exception is one of a parameter of something that is called."""
    known = {f"{name}.{parameter.name}" for name in NAMES for parameter in parameters_of(name)}
    assert set(OTHERWISE) - known == set()
