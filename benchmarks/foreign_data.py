"""Good models with inputs that nobody can make, and with test data or side files that are wrong."""

# ruff: noqa: ARG001 - every kind is called alike

import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
from foreign_good import zoo_archive
from foreign_making import FLOAT, NO_INPUT, info, kind, node_model, save, text
from onnx import helper, numpy_helper


@kind(*NO_INPUT)
def huge_input(folder: Path, rng: random.Random) -> None:
    save(folder, text(f"agraph (float[{1 << rng.randint(31, 62)}] x) => (float[n] y) {{ y = Relu(x) }}"))


@kind(*NO_INPUT)
def huge_inputs_together(folder: Path, rng: random.Random) -> None:
    names = [f"x{index}" for index in range(5)]
    declared = ", ".join(f"float[{1 << 26}] {name}" for name in names)
    save(folder, text(f"agraph ({declared}) => (float[n] y) {{ y = Sum({', '.join(names)}) }}"))


@kind(*NO_INPUT)
def no_rank(folder: Path, rng: random.Random) -> None:
    save(
        folder,
        node_model(
            [helper.make_node("Relu", ["x"], ["y"])], [info("x", FLOAT, None)], [info("y", FLOAT, None)], []
        ),
    )


@kind(*NO_INPUT)
def sparse_input(folder: Path, rng: random.Random) -> None:
    x = helper.make_value_info("x", helper.make_sparse_tensor_type_proto(FLOAT, [2]))
    save(folder, node_model([helper.make_node("Relu", ["x"], ["y"])], [x], [info("y", FLOAT, [2])], []))


def _bad_data(name: str, *verdicts: str, posix: bool = False) -> Callable[[Callable[[Path], None]], None]:
    def register(fill: Callable[[Path], None]) -> None:
        def write(folder: Path, rng: random.Random) -> None:
            save(folder, text("agraph (float[2] x, float[2] z) => (float[2] y) { y = Add(x, z) }"))
            home = folder / "test_data_set_0"
            home.mkdir()
            for index in range(2):
                np.save(home / f"input_{index}.npy", np.ones(2, np.float32))
            fill(home)

        write.__name__ = name
        kind(*(verdicts or NO_INPUT), posix=posix)(write)

    return register


@_bad_data("data_missing")
def _(home: Path) -> None:
    (home / "input_1.npy").unlink()


@_bad_data("data_of_too_many")
def _(home: Path) -> None:
    np.save(home / "input_2.npy", np.ones(2))


@_bad_data("data_twice")
def _(home: Path) -> None:
    (home / "input_1.pb").write_bytes(numpy_helper.from_array(np.ones(2, np.float32)).SerializeToString())


@_bad_data("data_corrupt")
def _(home: Path) -> None:
    (home / "input_1.npy").unlink()
    (home / "input_1.pb").write_bytes(b"\xff\xff\xff")


@_bad_data("data_npy_cut_short")
def _(home: Path) -> None:
    content = (home / "input_1.npy").read_bytes()
    (home / "input_1.npy").write_bytes(content[:-3])


@_bad_data("data_npz_of_nobody")
def _(home: Path) -> None:
    np.savez(home / "inputs.npz", nobody=np.ones(2))


@_bad_data("data_npz_is_none")
def _(home: Path) -> None:
    (home / "inputs.npz").write_bytes(b"PK\x03\x04 not an archive")


@_bad_data("data_pickled")
def _(home: Path) -> None:
    np.save(home / "input_1.npy", np.array([{}], dtype=object), allow_pickle=True)


@_bad_data("data_of_wrong_type")
def _(home: Path) -> None:
    np.save(home / "input_1.npy", np.ones(2, np.int64))


@_bad_data("data_of_wrong_shape")
def _(home: Path) -> None:
    np.save(home / "input_1.npy", np.ones((3, 7), np.float32))


@_bad_data("data_is_a_pipe", posix=True)
def _(home: Path) -> None:
    (home / "input_1.npy").unlink()
    os.mkfifo(home / "input_1.npy")


@_bad_data("data_tolerance_is_none")
def _(home: Path) -> None:
    (home.parent / "data.json").write_text('{"rtol": -1}')


@kind(*NO_INPUT)
def archive_cut_short(folder: Path, rng: random.Random) -> None:
    zoo_archive(folder, rng)
    path = folder / "model" / "net-7.tar.gz"
    path.write_bytes(path.read_bytes()[:60])


def _bad_side_file(name: str, content: str) -> None:
    def write(folder: Path, rng: random.Random) -> None:
        save(folder, text("agraph (float[batch] x) => (float[batch] y) { y = Relu(x) }"))
        (folder / "model.onnx.toml").write_text(content)

    write.__name__ = name
    kind(*NO_INPUT)(write)


_bad_side_file("side_file_is_no_toml", "dimensions = {")
_bad_side_file("side_file_misspelled", "dimension = { batch = 2 }")
_bad_side_file("side_file_of_another_model", "dimensions = { bacth = 2 }")
_bad_side_file("side_file_with_a_wrong_range", "inputs = { x = { low = 2, high = 1 } }")
_bad_side_file("side_file_with_another_rank", "inputs = { x = { shape = [2, 2] } }")
