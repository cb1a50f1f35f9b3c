"""Text that means no good, or is none: `compile` ends soon, says what is wrong, and stays in the folder of headers."""

from __future__ import annotations

import signal
import subprocess
from collections import defaultdict

import pytest

import lucid
from lucid.cuda.compiler import Module
from lucid.cuda.simulator.compilation import source_for_host
from lucid.cuda.source import sources
from lucid.cuda.source.signature import source
from lucid.cuda.source.sources import joined, made, make
from lucid.errors import KernelError
from tests.cuda.simulator.launching import launcher, refused
from tests.pieces import raising

KERNEL = '\nextern "C" __global__ void f(float* x, int n) { x[0] = n; }\n'
N = 20_000


@pytest.fixture
def seconds():
    """Stop what computes for longer than ten seconds: also regular expressions look for signals."""
    before = signal.signal(signal.SIGVTALRM, raising(TimeoutError))
    signal.setitimer(signal.ITIMER_VIRTUAL, 10)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


# Nothing in them is closed, so that each `/*`, `<`, `(`, `[` and `;` is sought to the end of the text, or words and
# spaces can be divided in many ways.
OPEN = {
    "template": "template<" * N + KERNEL,
    "kernel": KERNEL + "__global__ void f(" * N,
    "bounds": "__global__ __launch_bounds__(" * N + KERNEL,
    "include": "#include <cuda_fp16.h>\n" * N + KERNEL,
    "blank lines": "\n" * (50 * N) + KERNEL,
    "lines": "// line\n" * (50 * N) + KERNEL,
    "shared": "__shared__ int x" * N + KERNEL,
    "extents": "__shared__ int x[" * N + ";" + KERNEL,
    "variables": "__shared__ int " + "a, " * N + "b;" + KERNEL,
    "dynamic": "extern __shared__ float" + " " * N + "x" + KERNEL,
    "dynamic words": "extern __shared__ " + "float " * N + ";" + KERNEL,
    "device": "__device__ int x\n" * N + KERNEL,
    "static": "static " * N + KERNEL,
    "brackets": "(" * N + "{" * N + KERNEL,
}
REFUSED = {
    "comment": ("/* " * N + KERNEL, "declares no kernel"),
    "header": ("#include <\n" * N + KERNEL, "names no header"),
    "header of ours": ('#include "\n' * N + KERNEL, "names no header"),
    "nothing but a kernel": ("__global__ void f(" * N, "declares no kernel"),
    "spaces": ("__global__ void f(int" + " " * N + "!)", "is no number and no pointer"),
    "words": ("__global__ void f(" + "a " * N + "!)", "is no number and no pointer"),
    "word": ("__global__ void f(" + "a" * N + "!)", "is no number and no pointer"),
    "NUL": (KERNEL + "\0", r"source holds the character '\\x00', at 6"),
    "half a character": (KERNEL + "\ud800", r"source holds the character '\\ud800'"),
}


@pytest.mark.parametrize("name", OPEN)
def test_long_texts_are_read(name, seconds):
    """The time to read a text grows with its length, not with its square, whatever is left open in it."""
    module = Module(OPEN[name], "mine.cu")
    assert list(module) == ["f"]
    source_for_host(module._source, [])


@pytest.mark.parametrize("name", REFUSED)
def test_texts_that_are_refused(name, seconds):
    """What is no text, or declares nothing that can be called, is refused soon and in few words."""
    text, words = REFUSED[name]
    with pytest.raises(KernelError, match=words) as raised:
        Module(text, "mine.cu")
    assert len(str(raised.value)) < 300
    source_for_host(text, [])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"source": KERNEL.encode()}, "compile: source is a str, got bytes"),
        ({"source": None}, "compile: source is a str, got NoneType"),
        ({"source": KERNEL, "name": None}, "compile: name is a str, got NoneType"),
        ({"source": KERNEL, "name": 3}, "compile: name is a str, got int"),
    ],
)
def test_arguments_that_are_no_text(arguments, words):
    """Another type than str is a TypeError that names the parameter."""
    with pytest.raises(TypeError, match=words):
        lucid.cuda.compile(**arguments)


@pytest.fixture
def headers(tmp_path, monkeypatch):
    """Keep headers in a folder, beside which lies a secret."""
    (tmp_path / "kernels" / "folder").mkdir(parents=True)
    (tmp_path / "kernels" / "mine.cuh").write_text("// mine\n")
    (tmp_path / "secret").write_text("secret 1234\n")
    monkeypatch.setattr(sources, "folder", lambda: tmp_path / "kernels")
    return tmp_path / "kernels"


@pytest.mark.parametrize(
    "line",
    [
        '#include "../secret"',
        '#include "mine.cuh/../../secret"',
        '#include "folder"',
        '#include ".."',
        '#include "{folder}/../secret"',
        "#include <{folder}/../secret>",
        "#include <../../../../../../../../../../../../../../etc/passwd>",
        "  #  include <folder/../../secret>",
        "#include_next <../secret>",
        "#include SECRET",
        "#import <../secret>",
        '#include "' + "x" * 300 + '"',
    ],
)
def test_headers_stay_in_their_folder(headers, line):
    """A path in place of a header's name is refused by it, and nothing of what lies there is told."""
    line = line.format(folder=headers)
    with pytest.raises(KernelError) as raised:
        Module(line + KERNEL, "mine.cu")
    named = line.split(maxsplit=1)[1] if line.startswith("#") else "<folder/../../secret>"
    assert named in str(raised.value)
    assert "1234" not in str(raised.value)
    assert "mine" in Module('#include "mine.cuh"' + KERNEL, "mine.cu")._source


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["x" * 300, "\N{GREEK SMALL LETTER XI}" * 300, "../../x", "a b", ""])
def test_any_name(name):
    """A name is for messages: neither its length nor its characters matter to the disk."""
    assert list(lucid.cuda.compile(KERNEL, name=name)) == ["f"]


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("launch", "words"),
    [
        ({"grid": (1, 1, 1, 7)}, r"f: grid is an int or up to three of them, got \(1, 1, 1, 7\)"),
        ({"grid": 1.5}, r"f: grid is an int or up to three of them, got 1\.5"),
        ({"grid": (1, 1.0)}, "f: grid is"),
        ({"grid": ()}, "f: grid is"),
        ({"grid": None}, "f: grid is"),
        ({"block": "abc"}, "f: block is an int or up to three of them, got 'abc'"),
        ({"block": (1, 1, 1, 1)}, "f: block is"),
        ({"shared_mem": 1.5}, r"f: shared_mem is a number of bytes, got 1\.5"),
        ({"shared_mem": -1}, "f: shared_mem is a number of bytes, got -1"),
    ],
)
def test_launches_that_are_none(launch, words):
    """What is no grid, block or size is refused by the parameter's name, before anything runs."""
    x = lucid.zeros(1, device="cuda")
    function = lucid.cuda.compile(KERNEL)["f"]
    with pytest.raises(KernelError, match=words):
        function(**{"grid": 1, "block": 1, "args": (x, 3), **launch})
    assert x.item() == 0
    function([1], (1, 1), (x, 3))
    assert x.item() == 3


@pytest.mark.gpu
def test_templates_by_strange_names():
    """What is written for a template's arguments is taken letter by letter."""
    module = lucid.cuda.compile(
        "template <typename T> __global__ void f(T* x) {}\ntemplate <> __global__ void g(int* x) {}"
    )
    for name in (r"f<\g<0>>", "f<(>", "g<int>"):
        with pytest.raises(KernelError):
            module[name]


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize(
    "text", ["@ # b;\n" * N, "int a = b;\n" * N, "x[0] = " + "(" * N], ids=["stray", "unknown", "deep"]
)
def test_texts_of_errors(text, seconds):
    """g++ ends soon with a text of nothing but errors, and its report is short."""
    told = refused(lambda: launcher(f'extern "C" __global__ void f(float* x) {{\n{text}\n}}', "P"), "test.cu:2")
    assert len(told) < 100_000


@pytest.mark.usefixtures("simulated")
def test_reports_of_g_with_odd_bytes(monkeypatch):
    """What g++ tells in bytes that are no text is told nevertheless."""
    run = subprocess.run

    def odd(command, **settings):
        return run(["sh", "-c", r"printf '\377 odd' >&2; false"], **{**settings, "cwd": None})

    monkeypatch.setattr(subprocess, "run", odd)
    refused(lambda: launcher('extern "C" __global__ void odd(float* x) {}', "P", "odd"), r"\xff odd")


# ---- files that are made ----


def test_a_file_that_is_made(monkeypatch):
    """Its functors stand in the order of their names behind the header of their kernels, and are asked for late."""
    monkeypatch.setattr(sources, "_made", defaultdict(dict))
    asked = []
    for name in ("Second", "First"):
        make("nowhere.cu", name, lambda name=name: asked.append(name) or f"struct {name} {{}};\n")
    assert (made("nowhere.cu"), made("cast.cu"), asked) == (("Second", "First"), (), [])
    text = joined("nowhere.cu")
    assert text.index("__global__ void unary") < text.index("struct First {}") < text.index("struct Second {}")
    assert '"nowhere.cu"' in text
    assert "unary" in source("nowhere.cu").kernels
    assert joined("nowhere.cu") is text
    assert asked == ["First", "Second"]
    make("nowhere.cu", "Third", lambda: "struct Third {};\n")
    assert "struct Third {}" in joined("nowhere.cu")
    with pytest.raises(KernelError, match=r"no file 'elsewhere\.cu' in "):
        joined("elsewhere.cu")
