"""What holds for all functions that make tensors of no tensor's elements."""

from __future__ import annotations

import inspect

import pytest

import lucid
from lucid.errors import DtypeError
from lucid.public import written_in
from tests.device import DEVICE

MAKERS = {
    "arange": (5,), "as_tensor": ([1, 2],), "asarray": ([1, 2],), "bartlett_window": (4,), "blackman_window": (4,),
    "empty": (2,), "empty_like": (lucid.ones(2, device="cpu"),), "eye": (2,), "frombuffer": (bytearray(64),),
    "full": ((2,), 1), "full_like": (lucid.ones(2, device="cpu"), 1), "hamming_window": (4,), "hann_window": (4,),
    "kaiser_window": (4,), "linspace": (0, 1, 3), "logspace": (0, 1, 3), "normal": (0.0, 1.0, (2,)), "ones": (2,),
    "ones_like": (lucid.ones(2, device="cpu"),), "rand": (2,), "rand_like": (lucid.ones(2, device="cpu"),),
    "randint": (3, (2,)), "randint_like": (lucid.ones(2, device="cpu"), 3), "randn": (2,),
    "randn_like": (lucid.ones(2, device="cpu"),), "randperm": (3,), "scalar_tensor": (1,), "tensor": ([1, 2],),
    "tril_indices": (2, 3), "triu_indices": (2, 3), "zeros": (2,), "zeros_like": (lucid.ones(2, device="cpu"),),
}  # fmt: skip
OF_FRACTIONS = {"normal", "rand", "rand_like", "randn", "randn_like"} | {name for name in MAKERS if "window" in name}


def test_every_maker_is_tried():
    """Each public function of `lucid.ops.creation` with a dtype has a row."""
    found = {
        name
        for name in lucid.__all__
        if inspect.isfunction(getattr(lucid, name))
        and written_in(inspect.unwrap(getattr(lucid, name))).startswith("lucid.ops.creation")
        and "dtype" in inspect.signature(getattr(lucid, name)).parameters
    }
    assert found == set(MAKERS)


@pytest.mark.parametrize("name", MAKERS)
def test_the_dtype_that_is_asked_for(name):
    """What is made is of it, be it wider or narrower, whole or not, than what is made without."""
    make, wanted = getattr(lucid, name), [lucid.float16, lucid.bfloat16, lucid.float64]
    for dtype in wanted if name in OF_FRACTIONS else [*wanted, lucid.int16, lucid.int32, lucid.int64]:
        assert make(*MAKERS[name], dtype=dtype).dtype is dtype


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_made_requires_grad_where_it_is_said(name):
    """And not where it is not; what is made of fractions is a leaf then, and what is not is refused."""
    make = getattr(lucid, name)
    if "requires_grad" not in inspect.signature(make).parameters:
        return
    assert not make(*MAKERS[name], dtype=lucid.float32).requires_grad
    made = make(*MAKERS[name], dtype=lucid.float32, requires_grad=True)
    assert (made.requires_grad, made.is_leaf) == (True, True)
    if name not in OF_FRACTIONS:
        with pytest.raises(DtypeError, match="require gradients"):
            make(*MAKERS[name], dtype=lucid.int64, requires_grad=True)


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("name", [name for name in MAKERS if "window" in name])
def test_a_window_of_few_samples(name, periodic):
    """One of no samples is empty, and one of one sample is 1, whether it is periodic or not."""
    for count in (0, 1):
        assert getattr(lucid, name)(count, periodic, device=DEVICE).tolist() == [1.0] * count


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "bfloat16", "float64", "complex128"])
def test_a_number_in_a_tensor_has_its_dtype(dtype):
    """What `full` is filled with from a tensor of no dimension keeps the dtype of that tensor."""
    kind = getattr(lucid, dtype)
    out = lucid.full((2,), lucid.tensor(1, dtype=kind))
    assert out.dtype is kind
    assert out.tolist() == [1, 1]
