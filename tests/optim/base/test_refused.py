"""A step that is refused changes nothing, whether it is the first one or those before have settled."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import optim
from lucid.errors import DeviceError, GraphError, ShapeError
from lucid.optim.base.slots import Slot
from tests.device import DEVICE
from tests.optim.base.test_forms import Training, each_optimizer, first_state
from tests.optimizers import OTHERS, USUAL


def wrong_shape(training):
    """Give the last parameter other sizes than its gradient has."""
    training.params[3].data = lucid.ones(7, device=DEVICE)


def wrong_gradient(training):
    """Give the gradient of the last parameter other sizes."""
    training.params[3].grad.data = lucid.ones(7, device=DEVICE)


def wrong_state(training):
    """Give the state of the last parameter other sizes."""
    if training.optimizer.state[training.params[3]]:
        state, name = first_state(training, 3)
        state[name] = lucid.ones(7, device=DEVICE)
    else:
        wrong_shape(training)


def missing_state(training):
    """Take some of the state of the last parameter away."""
    if len(training.optimizer.state[training.params[3]]) > 1:
        state, name = first_state(training, 3)
        del state[name]
    else:
        wrong_shape(training)


def no_number(training):
    """Set a learning rate that is none."""
    training.optimizer.param_groups[1]["lr"] = "fast"


def inference(training):
    """Put a parameter into the last group that was made in inference mode."""
    with lucid.inference_mode():
        param = lucid.ones(2, device=DEVICE)
        grad = lucid.ones(2, device=DEVICE)
    param.grad = grad
    training.optimizer.param_groups[1]["params"].append(param)


REFUSED = {
    "shape": (wrong_shape, ShapeError),
    "shape of a gradient": (wrong_gradient, ShapeError),
    "shape of state": (wrong_state, ShapeError),
    "state": (missing_state, (KeyError, ShapeError)),
    "number": (no_number, ValueError),
    "inference": (inference, GraphError),
}


def refuses(training, error, match=None):
    """Fail unless a step raises this error, and changes neither values nor versions."""
    before = training.values(), training.versions()
    with pytest.raises(error, match=match):
        training.optimizer.step()
    assert (training.values(), training.versions()) == before


@each_optimizer
@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize(("change", "error"), REFUSED.values(), ids=REFUSED)
def test_a_refused_step_changes_nothing(name, steps, change, error, rng):
    """No parameter, state, count or version, of no group."""
    training = Training(name, rng, steps)
    training.give()
    change(training)
    refuses(training, error)


def of_another_shape(value):
    """Return a tensor of another shape than a state's, and lists of them."""
    if isinstance(value, list):
        return [of_another_shape(each) for each in value]
    return lucid.ones(7, 4, device=DEVICE) if isinstance(value, lucid.Tensor) and value.ndim else value


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("shaped", ["parameter", "gradient", "state"])
def test_steps_that_are_no_formula_are_refused_as_a_whole(kind, steps, shaped, rng):
    """The last parameter has another shape than its gradient or state: the first keeps its values and its state."""
    params = [
        lucid.tensor(rng.standard_normal((3, 2)), dtype=lucid.float32, device=DEVICE, requires_grad=True)
        for _ in range(3)
    ]
    optimizer = getattr(optim, kind)(params, lr=0.1)

    def give():
        for param in params:
            param.grad = lucid.tensor(rng.standard_normal((3, 2)), dtype=lucid.float32, device=DEVICE)
        return (params[0].detach() ** 2).sum()

    for _ in range(steps):
        optimizer.step(give)
    give()
    if shaped == "gradient":
        params[2].grad.data = lucid.ones(7, 4, device=DEVICE)
    elif shaped == "parameter" or not steps:
        params[2].data = lucid.ones(7, 4, device=DEVICE)
    else:
        owner = params[0] if kind == "LBFGS" else params[2]  # which keeps the history of all
        optimizer.state[owner] = {name: of_another_shape(value) for name, value in optimizer.state[owner].items()}
    before = [param.tolist() for param in params], repr(optimizer.state_dict()["state"])
    with pytest.raises(ShapeError, match="set to another shape, clear"):
        optimizer.step(lambda: lucid.tensor(1.0, device=DEVICE))
    assert ([param.tolist() for param in params], repr(optimizer.state_dict()["state"])) == before


@pytest.mark.gpu
@each_optimizer
@pytest.mark.parametrize(("begin", "end"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_state_on_another_device_is_refused(name, begin, end, rng):
    """A parameter that has moved without its state is named, with both devices, and nothing is changed."""
    training = Training(name, rng, steps=0)
    for param in training.params:
        param.data = param.data.to(begin)
    # some of it may have been made with the optimizer
    training.optimizer.load_state_dict(training.optimizer.state_dict())
    training.step()
    _, state = first_state(training, 3)
    training.params[3].data = training.params[3].data.to(end)
    training.give()
    refuses(training, DeviceError, f"of shape .5, 2. lies on {end}.*and its {state} on {begin}")


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [*USUAL, *OTHERS])
@pytest.mark.parametrize(("begin", "end"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_the_remedy_of_a_refusal(kind, begin, end, rng):
    """State that is loaded again lies beside its moved parameter, and training goes on as if it had never moved."""
    arrays = [rng.standard_normal((3, 2)).astype("f") for _ in range(5)]

    def trained(*devices):
        weight = lucid.tensor(arrays[0], device=devices[0], requires_grad=True)
        optimizer = getattr(optim, kind)([weight], lr=0.1, **USUAL.get(kind, {}))

        def closure():
            weight.grad = (weight.detach() * 2 + lucid.tensor(array, device=weight.device)).detach()
            return (weight.detach() ** 2).sum()

        for array, device in zip(arrays[1:], devices, strict=True):
            if weight.device.type != device:
                weight.data, weight.grad = weight.detach().to(device), None
                closure()
                with pytest.raises(DeviceError, match="load the optimizer's state_dict") as refused:
                    optimizer.step(closure)
                assert end in str(refused.value)
                optimizer.load_state_dict(optimizer.state_dict())
            optimizer.step(closure)
        return weight.detach().cpu().numpy()

    expected = trained(begin, begin, begin, begin)
    np.testing.assert_allclose(trained(begin, begin, end, end), expected, rtol=1e-4, atol=1e-5)


@each_optimizer
def test_a_step_without_room_for_its_state_changes_nothing(name, rng, monkeypatch):
    """State of all groups is made before any parameter is changed."""
    training = Training(name, rng, steps=0)
    training.give()
    made = Slot.made

    def scarce(slot, param, group, **more):
        if param is training.params[3]:
            raise MemoryError
        return made(slot, param, group, **more)

    monkeypatch.setattr(Slot, "made", scarce)
    training.optimizer.state.clear()
    refuses(training, MemoryError)


@each_optimizer
def test_a_settled_step_counts_as_an_in_place_change(name, rng):
    """Backward through a value that it has overwritten is an error, each time."""
    training = Training(name, rng)
    for _ in range(2):
        loss = (training.params[0] * training.params[0]).sum()
        versions = training.versions()
        training.step()
        assert training.versions() == [version + 1 for version in versions]
        with pytest.raises(RuntimeError, match="version"):
            loss.backward()
