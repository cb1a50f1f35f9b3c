"""What cannot be, by a value, a size or a dtype: where PyTorch raises, lucid raises what the same ``except`` catches.

Each line is called in both libraries; where PyTorch computes, so does lucid.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid

CALLS = """
diagonal(ones(3))
utils.data.TensorDataset(ones(2), ones(3))
utils.data.ConcatDataset([])
utils.data.default_collate([])
full((2,), 2**64)
full((2,), 2**63)
full((2,), 2**40, dtype=int32)
full((2,), np.zeros((), "V4")[()])
multinomial(zeros(0, 3), 1)
diagonal(ones(3,3), dim1=1, dim2=1)
diag_embed(ones(3), dim1=0, dim2=0)
trace(ones(3))
tril(ones(3))
linalg.cross(ones(4), ones(4))
nn.functional.one_hot(tensor([-1]))
nn.functional.embedding(tensor([5]), ones(3,2))
gather(ones(3), 0, tensor([5]))
index_select(ones(3), 0, tensor([5]))
ones(3).select(0, 5)
ones(3).narrow(0, 2, 5)
split(ones(3), -1)
chunk(ones(3), 0)
unbind(ones(()))
cov(ones(2,3), fweights=tensor([1,-1,2]))
cov(ones(2,3), aweights=tensor([1.,-1.,2.]))
nn.functional.hardtanh(ones(3), 2., 1.)
tensor_split(ones(5), (3, 1))
zeros(0, dtype=int64) // 0
round(ones(3), decimals=400)
list(ones(()))
len(ones(()))
int(ones(2))
bool(ones(2))
topk(ones(3), 5)
kthvalue(ones(3), 0)
ones(3).unfold(0, 5, 1)
randperm(-1)
randint(3, 3, (2,))
arange(float("inf"))
arange(3, 1)
linspace(0, 1, -1)
eye(-1)
tensor([[1],[1,2]])
tensor("a")
tensor(None)
tensor(2**63)
stack([])
cat([])
cat([ones(()), ones(())])
einsum("ij,jk", ones(2,3), ones(2,3))
ones(3).reshape(2, -1)
ones(2,3).permute(0,0)
ones(3).expand(2)
ones(3).squeeze(4)
ones(3).transpose(0, 4)
ones(3).sum(4)
ones(3,3).sum((0,0))
ones(0).max()
ones(0).argmax()
ones(0, 3).argmax(0)
ones(0,3).min(0)
ones(0).median()
quantile(ones(3), 1.5)
nn.functional.dropout(ones(3), 1.5)
nn.functional.nll_loss(zeros(2,3), tensor([0,7]))
nn.functional.cross_entropy(zeros(2,3), tensor([0.,1.]))
nn.functional.binary_cross_entropy(tensor([2.]), tensor([1.]))
nn.functional.binary_cross_entropy(ones(2), ones(3))
nn.functional.conv1d(ones(1,3,5), ones(2,4,3))
nn.Conv1d(3, 4, 1, groups=2)
nn.BatchNorm1d(3)(ones(1,3))
nn.BatchNorm2d(3)(ones(2,3))
nn.functional.layer_norm(ones(2,3), (4,))
nn.GroupNorm(2, 3)
nn.functional.interpolate(ones(1,1,4), size=3, scale_factor=2)
nn.functional.pad(ones(3), (1,))
nn.functional.pad(ones(1,1,3), (3,3), mode="reflect")
nn.functional.pixel_shuffle(ones(1,3,2,2), 2)
optim.SGD([ones(1)], lr=-1)
optim.SGD([ones(1, requires_grad=True)*2], lr=1)
optim.SGD([], lr=1)
optim.Adam([ones(1)], betas=(1.0, 0.5))
nn.Parameter(arange(2))
ones(2).item()
ones(2, requires_grad=True).numpy()
ones(2, requires_grad=True).add_(1)
ones(2, requires_grad=True).mul(1).backward()
ones(1).backward()
autograd.grad(ones(1, requires_grad=True).sum(), ones(1, requires_grad=True))
nn.Linear(2,2).load_state_dict({})
nn.Module().add_module("a.b", nn.Identity())
nn.Module().register_buffer("a.b", ones(1))
nn.Module().register_parameter("a", ones(1))
nn.Module().get_submodule("a")
nn.Module().nope
nn.Sequential()[0]
nn.ModuleDict()["a"]
utils.data.Subset([1], [3])[0]
utils.data.random_split([1,2], [5])
utils.data.DataLoader([1], batch_size=0)
utils.data.DataLoader([1], shuffle=True, sampler=[0])
linalg.cholesky(-eye(2))
linalg.inv(zeros(2,2))
linalg.solve(zeros(2,2), ones(2))
ones(2,3) @ ones(2,3)
ones(2,2) @ ones(2,2, dtype=float64)
ones(3)[tensor([True, False])]
ones(3)[tensor([0.5])]
ones(3)["a"]
ones(3)[0,0]
ones(3)[::-1]
ones(3).masked_fill(tensor([1,0,1]), 0)
ones(3).masked_scatter(tensor([True]*3), ones(1))
where(ones(3), 1, 2)
ones(3) & ones(3)
ones(3) << 1
-tensor([True])
tensor([True]) - tensor([True])
arange(3).div_(2)
arange(3) // zeros(3, dtype=int64)
arange(3) % 0
arange(1, 3) ** -1
ones(1).to("nope")
device("nope")
Generator(device="nope")
manual_seed("a")
tensor_split(ones(3), 0)
roll(ones(3), (1,2), (0,))
flip(ones(3), (0,0))
rot90(ones(3))
bincount(tensor([-1]))
bincount(ones(2))
histc(ones(2), bins=0)
searchsorted(ones(2,3), ones(3,2))
bucketize(ones(2), ones(2,2))
cdist(ones(2,3), ones(2,4))
cov(ones(2,2,2))
ones(3).cumsum(1)
nn.functional.softmax(ones(3), 1)
nn.functional.glu(ones(3))
nn.MultiheadAttention(3, 2)
nn.GRU(3, 2)(ones(2,2,2))
nn.LSTM(3, 2, proj_size=4)
nn.RNN(3, 2, dropout=2)
nn.Embedding(3, 2, padding_idx=5)
nn.EmbeddingBag(3,2)(tensor([1]))
nn.utils.clip_grad_norm_(3, 1)
nn.utils.parametrizations.weight_norm(nn.Linear(2,2), "nope")
optim.lr_scheduler.StepLR(3, 1)
optim.lr_scheduler.OneCycleLR(optim.SGD([ones(1)], lr=1), 1)
distributions.Normal(0., -1.)
distributions.Categorical(tensor([-1., 1.]))
bernoulli(tensor([2.]))
fft.fft(ones(3), n=0)
fft.fft(ones(3), dim=4)
stft(ones(3), 8, return_complex=True)
func.vmap(lambda x: x)(3)
func.vmap(lambda x, y: x)(ones(2), ones(3))
func.grad(lambda x: x)(ones(2))
func.jvp(lambda x: x, ones(2), ones(2))
from_numpy(3)
from_numpy(np.array(["a"]))
frombuffer(b"", dtype=uint8)
as_strided(ones(3), (5,), (1,))
ones(2,3).t().view(6)
ones(3,3).repeat(2)
repeat_interleave(ones(3), tensor([1,2]))
ones(3).scatter(0, tensor([5]), 1.)
ones(3).index_add(0, tensor([5]), ones(1))
ones(3).index_fill(0, tensor([5]), 1.)
ones(3).put_(tensor([5]), ones(1))
take(ones(3), tensor([5]))
"""


class Names(dict):
    """The names of a library, before those that Python has itself."""

    def __init__(self, lib):
        super().__init__(np=np, int=int, bool=bool, float=float)
        self.lib = lib

    def __missing__(self, name):
        try:
            return getattr(self.lib, name)
        except AttributeError:
            raise KeyError(name) from None


def outcome(lib, call):
    """Return the exception that a line raises, or None."""
    try:
        eval(call, {}, Names(lib))  # the lines above
    except Exception as error:  # noqa: BLE001  # whatever it is, is what is looked at
        return error
    return None


@pytest.mark.cpu("kernels look at indices later")
@pytest.mark.filterwarnings("ignore")
def test_same_kind_of_error():
    """Of PyTorch's own exceptions, as that of a singular matrix, it is the builtin that they are."""
    different = {}
    for call in CALLS.strip().splitlines():
        expected, got = outcome(torch, call), outcome(lucid, call)
        kind = next((each for each in type(expected).__mro__ if each.__module__ == "builtins"), None)
        if not isinstance(got, type(None) if expected is None else kind):
            different[call] = expected, got
    assert not different
