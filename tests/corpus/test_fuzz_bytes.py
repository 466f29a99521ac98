"""A number of a fuzz suite stands for the same files on every machine, with every Python and numpy."""

import hashlib
from pathlib import Path

from harness.annex.made.fuzz_suite import fuzz_maker, fuzz_name

MODELS = 60
OF_A_TEST = "variant-of-operator-test"
"""These are made of the operator tests, which take a minute to unpack."""


def _no_tests() -> Path:
    raise AssertionError("no operator test is asked for")


def test_files_of_a_suite_are_the_same_on_every_machine(tmp_path: Path) -> None:
    """Another digest means that numbers stand for other models: raise the version of the generator.

    All 300 models of ``fuzz:1:300`` were the same with Python 3.11 (numpy 2.4.6, protobuf 7.36.2), 3.12
    (2.0.2, 6.31.1) and 3.13 (2.5.5, 7.36.2), and onnx 1.23.2.
    """
    make = fuzz_maker(1, _no_tests)
    digest = hashlib.sha256()
    made = 0
    for number in range(MODELS):
        name = fuzz_name(1, number)
        if name.endswith(OF_A_TEST):
            continue
        made += 1
        folder = tmp_path / name
        folder.mkdir()
        make(name, folder)
        for file in [*sorted(folder.rglob("*.pb")), folder / "model.onnx"]:
            digest.update(f"{file.relative_to(tmp_path).as_posix()}\n".encode() + file.read_bytes())
    assert made > MODELS // 2
    assert digest.hexdigest() == "8b2f21ee2e304b5173deac146a12ad2835d223cf35d16423f1a1a8893771ec31"
