"""The recipes in docs/users/data-recipes.md, each run as it is printed where its library is installed."""

from __future__ import annotations

import importlib.util
import io
import os
import tarfile

import numpy as np
import pytest

import lucid
from tests.docs.pages import ROOT, blocks, printed_by_script

PAGE = blocks((ROOT / "docs" / "users" / "data-recipes.md").read_text(encoding="utf-8"))
RECIPES = {block.mark.rpartition(": ")[2]: block.code for block in PAGE}
BEGINNING = RECIPES.pop("beginning")


def write_shards(folder):
    for shard in range(2):
        with tarfile.open(folder / f"train-{shard:03}.tar", "w") as tar:
            for index in range(4):
                image = io.BytesIO()
                np.save(image, np.full((2, 3), index, np.float32))
                for ending, content in (("image.npy", image.getvalue()), ("cls", b"%d" % index)):
                    entry = tarfile.TarInfo(f"{shard}{index}.{ending}")
                    entry.size = len(content)
                    tar.addfile(entry, io.BytesIO(content))


def write_table(folder):
    columns = {"x": np.zeros((10, 2)).tolist(), "y": list(range(10))}
    source = f"import datasets\ndatasets.Dataset.from_dict({columns}).to_parquet('rows.parquet')"
    printed_by_script(source, folder)


def write_images(folder):
    from PIL import Image

    for label in "01":
        (folder / "images" / label).mkdir(parents=True)
        for index in range(4):
            image = Image.fromarray(np.full((20 + index, 30, 3), 10 * index, np.uint8))
            image.save(folder / "images" / label / f"{index}.jpg")


def write_rows(folder):
    for index in range(2):
        np.full((4, 5), index, np.float32).tofile(folder / f"rows-{index}.bin")


# What each recipe finds in its folder, and prints.
CASES = {
    "webdataset": (write_shards, ["(4, 2, 3) (4,)"] * 2),
    "datasets": (write_table, ["(4, 2) (4,)", "(4, 2) (4,)", "(2, 2) (2,)"]),
    "grain": (lambda folder: None, ["(4,) {'next_index': 1}", "(4,) {'next_index': 2}"]),
    "nvidia.dali": (write_images, ["(4, 24, 24, 3) (4, 1)"] * 2),
    "spdl.pipeline": (write_images, ["(4, 24, 24, 3)"] * 2),
    "kvikio": (write_rows, ["(4, 5)"] * 2),
}

NATIVE = {"nvidia.dali", "kvikio"}


def test_every_recipe_has_a_case():
    """The table above names all recipes of the document, and no others."""
    assert [*CASES] == [*RECIPES]


def is_installed(library):
    try:
        return importlib.util.find_spec(library) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False


@pytest.mark.parametrize("library", [*CASES])
def test_recipe(library, tmp_path, monkeypatch):
    """A recipe runs as it is printed, and gives the batches that it says."""
    if not is_installed(library):
        pytest.skip(f"needs {library}")
    if library in NATIVE and os.environ.get("LUCID_CUDA_SIMULATOR"):
        pytest.skip(f"{library} calls a driver below Python, which is not simulated")
    if library == "kvikio" and not lucid.cuda.is_available():
        pytest.skip("kvikio needs NVIDIA's driver")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    write, lines = CASES[library]
    write(tmp_path)
    assert printed_by_script(BEGINNING + RECIPES[library], tmp_path) == lines
