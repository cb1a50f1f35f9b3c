"""Layers that declare their settings: the constructor follows from the annotations of the class."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest

import lucid
from lucid import nn
from lucid.errors import SettingError
from lucid.nn.layers.layer import Layer, declared
from lucid.settings.ranges import SHARE

if TYPE_CHECKING:
    from dataclasses import InitVar

LAYERS = Path(nn.__file__).parent / "layers"
# Constructors that only store, but are written.
WRITTEN = {
    "ConstantPad": "its attribute `padding` is a tuple, which the parameter need not be",
    "GaussianNLLLoss": "its parameters have names only",
    "MaybeInPlace": "its subclasses have settings of their own before its own",
}


def classes():
    """Yield the name of the module of each class in the files of layers, and its tree."""
    for path in sorted(LAYERS.rglob("*.py")):
        name = ".".join(path.relative_to(LAYERS.parents[2]).with_suffix("").parts)
        yield from ((name, node) for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef))


def is_declared(tree):
    return any(isinstance(each, ast.Name) and each.id == "declared" for each in tree.decorator_list)


def only_stores(init):
    """Return whether a constructor stores parameters under their names, and else calls that of the base with others."""
    names = {each.arg for each in init.args.args + init.args.kwonlyargs}
    stored = 0
    for line in init.body:
        match line:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.Name(id=value)):
                if name != value or name not in names:
                    return False
                stored += 1
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="__init__"), args=args, keywords=keywords)):
                if not all(isinstance(each, ast.Name) for each in [*args, *(each.value for each in keywords)]):
                    return False
            case _:
                return False
    return stored > 0


def test_a_constructor_that_only_stores_is_declared():
    """Settings are written once: what a constructor only stores, the class declares."""
    written = {
        tree.name
        for _, tree in classes()
        for init in tree.body
        if isinstance(init, ast.FunctionDef) and init.name == "__init__" and only_stores(init)
    }
    assert written == set(WRITTEN), "a constructor that only stores: declare its parameters in the class, by @declared"


def test_the_order_of_parameters_is_that_of_type_checkers():
    """A class that declares settings has no base that does, whose settings a type checker would put first."""
    kinds = [getattr(importlib.import_module(name), tree.name) for name, tree in classes() if is_declared(tree)]
    assert len(kinds) > 30
    below = [kind.__name__ for kind in kinds if set(kind.__mro__[1:]) & set(kinds)]
    assert not below, f"{below} are @declared, and so is a base: write the base's constructor out"


class Base(nn.Module):
    """A base with a constructor that changes what it stores."""

    def __init__(self, first=None, last="z"):
        super().__init__()
        self.last = last * 2
        self.register_buffer("first", first)


@declared
class Blend(Base):
    """Settings before, between and behind those of the base."""

    _ranges: ClassVar = {"p": SHARE}
    axes = 2
    p: float
    first: InitVar[lucid.Tensor | None] = None
    dim: int = 1
    last: str = "a"
    scale: InitVar[float] = 2.0
    keep: bool = False

    def __post_init__(self, first, scale):
        self.scaled = self.p * scale if first is None else first
        if self.dim == self.p:
            raise SettingError(f"expected another dim than p, got {self.dim}")


@declared
class Shown(Layer):
    """Settings that are shown as they are declared."""

    size: int
    word: str = "x"


def test_the_constructor_is_as_if_it_were_written():
    """Its signature, names and defaults are those of the class, which has no attributes of its own for them."""
    wanted = (
        "(p: 'float', first: 'lucid.Tensor | None' = None, dim: 'int' = 1, last: 'str' = 'a', "
        "scale: 'float' = 2.0, keep: 'bool' = False) -> 'None'"
    )
    assert str(inspect.signature(Blend)) == wanted
    assert (Blend.__init__.__qualname__, Blend.__init__.__module__) == ("Blend.__init__", __name__)
    assert not any(hasattr(Blend, name) for name in ("p", "first", "dim", "last", "scale", "keep"))
    assert Blend.axes == 2
    assert inspect.getsource(Blend.__init__).splitlines()[1:] == [
        "        super().__init__(first, last)",
        "        self.p = p",
        "        self.dim = dim",
        "        self.keep = keep",
        "        __class__.__post_init__(self, first, scale)",
    ]


def test_parameters_go_to_the_base_or_to_attributes_or_to_the_end():
    """The base gets what its constructor takes; of the others those that are no attributes go to `__post_init__`."""
    made = Blend(0.5, keep=True)
    settings = {name: value for name, value in vars(made).items() if not name.startswith("_")}
    assert settings == {"training": True, "last": "aa", "p": 0.5, "dim": 1, "keep": True, "scaled": 1.0}
    made = Blend(0.5, lucid.ones(2))
    assert made.first is made.scaled
    assert made.state_dict().keys() == {"first"}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (Blend, TypeError, r"^Blend\.__init__\(\) missing 1 required positional argument: 'p'$"),
        (lambda: Blend(0.5, q=1), TypeError, r"^Blend\.__init__\(\) got an unexpected keyword argument 'q'$"),
        (lambda: Blend("0.5"), TypeError, r"^Blend: p: expected a number, got str '0.5'$"),
        (lambda: Blend(0.5, None, "1"), TypeError, "^Blend: dim: expected an int, got str '1'$"),
        (lambda: Blend(2.0), SettingError, r"^Blend: p: expected a number in \[0, 1\], got float 2.0$"),
        (lambda: Blend(1.0), SettingError, "^expected another dim than p, got 1$"),
        (lambda: nn.RReLU(0.5, 0.25), SettingError, "lower <= upper, got 0.5 and 0.25"),
    ],
)
def test_a_refused_call_names_the_class(call, error, message):
    """Errors are those of a constructor that is written: of the call, of types, of ranges and of its own check."""
    with pytest.raises(error, match=message):
        call()


def test_a_warning_is_of_the_line_that_makes_the_layer():
    """The frame of the constructor is one of lucid's, as that of one that is written."""
    with pytest.warns(UserWarning, match="dropout=0.5 drops nothing") as warned:
        nn.GRU(2, 3, dropout=0.5)
    assert [each.filename for each in warned] == [__file__]


def test_settings_are_shown_in_the_order_of_the_signature():
    """The repr of a layer that says nothing else shows what it stores."""
    assert repr(Shown(3)) == "Shown(size=3, word='x')"
    assert repr(nn.Fold(4, 2, stride=2)) == "Fold(output_size=4, kernel_size=2, dilation=1, padding=0, stride=2)"


class Descendant(nn.LeakyReLU):
    """A subclass as users write them, with attributes before and after the constructor, and a method of any name."""

    def __init__(self, slope):
        self.before = 1
        super().__init__(slope, inplace=True)
        self.after = self.negative_slope

    def __post_init__(self):
        raise AssertionError

    def extra_repr(self):
        return f"mine, {super().extra_repr()}"


class Both(nn.Dropout, nn.Softmax):
    """Two layers in one."""

    @property
    def p(self):
        return self.half * 2

    @p.setter
    def p(self, value):
        self.half = value / 2


def test_subclasses_are_as_of_any_class():
    """Constructors run along the order of classes and set attributes as an assignment does; no method runs unasked."""
    made = Descendant(0.25)
    assert repr(made) == "Descendant(mine, negative_slope=0.25, inplace=True)"
    assert (made.before, made.after) == (1, 0.25)
    both = Both(0.5)
    assert (both.p, both.half, both.dim) == (0.5, 0.25, None)
    assert [*nn.Threshold(nn.Parameter(lucid.ones(()), requires_grad=False), 0.0)._parameters] == ["threshold"]


def test_the_class_may_lose_its_name(monkeypatch):
    """What stands in the place of a class may be made of it, as for any class; nor need it have a name at all."""

    class Instead(Blend):
        """A class that somebody puts in the place of another."""

    monkeypatch.setitem(globals(), "Blend", Instead)
    assert [type(made).__name__ for made in (Instead(0.5), Instead.__base__(0.5))] == ["Instead", "Blend"]

    @declared
    class Inner(Layer):
        """A class that its module does not know."""

        size: int

        def __post_init__(self):
            self.size += 1

    assert repr(Inner(3)) == "Inner(size=4)"
    assert Inner.__init__.__qualname__ == f"{Inner.__qualname__}.__init__"


class Later(nn.Module):
    """A base with a setting that only it knows, in front of others, and a keyword."""

    _shown = ("word",)

    def __init__(self, own=1, word="w", *, mark=0):
        super().__init__()
        self.sent = own, word, mark
        self.word = word


def test_settings_behind_one_that_is_not_declared_go_by_name():
    """What the base takes goes to it wherever it stands there; settings that are shown by name stay those."""

    @declared
    class Named(Later):
        """Settings of a base whose first one is not among them."""

        size: int
        mark: int = 5
        word: str = "x"

    assert Named(3).sent == (1, "x", 5)
    assert Named(3, 6, "y").sent == Named(word="y", size=3, mark=6).sent == (1, "y", 6)
    assert Named._shown == ("word",)
    assert vars(Named(3))["size"] == 3
    assert "mark" not in vars(Named(3))
