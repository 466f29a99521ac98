"""The files of a case in an archive, and their digests."""

import hashlib
import re
from collections.abc import Iterable, Mapping

import msgspec

CASE_MODEL = "model.onnx"
_VALUE = re.compile(r"test_data_set_(\d+)/(input|output)_(\d+)\.pb")
_NOISE = re.compile(r"noise/test_data_set_(\d+)-output_(\d+)\.npy")

_Place = tuple[int, int, str]

FileContents = Mapping[str, bytes]
"""Path relative to the folder of the case -> content."""


class CaseDigests(msgspec.Struct, frozen=True, kw_only=True):
    """SHA-256 of the parts of a case; see ``ProfileCase``."""

    model: str
    inputs: str
    golden: str


def digests_of(files: FileContents) -> CaseDigests:
    """Return the digests of a case's files.

    The digest of several files is that of ``sha256sum``'s output for them, ordered by role and numbers.

    Raises:
        ValueError: A file is missing, or has no place in a case.
    """
    if CASE_MODEL not in files:
        raise ValueError(f"it has no {CASE_MODEL}")
    inputs: list[_Place] = []
    outputs: list[_Place] = []
    noise: list[_Place] = []
    for name in files:
        if name == CASE_MODEL:
            continue
        if match := _VALUE.fullmatch(name):
            place = (int(match[1]), int(match[3]), name)
            (inputs if match[2] == "input" else outputs).append(place)
        elif match := _NOISE.fullmatch(name):
            noise.append((int(match[1]), int(match[2]), name))
        else:
            raise ValueError(f"{name!r} has no place in a case")
    if not outputs:
        raise ValueError("it has no golden")
    return CaseDigests(
        model=hashlib.sha256(files[CASE_MODEL]).hexdigest(),
        inputs=_digest_of(files, sorted(inputs)),
        golden=_digest_of(files, (*sorted(outputs), *sorted(noise))),
    )


def by_case(files: FileContents, cases: Iterable[str]) -> dict[str, dict[str, bytes]]:
    """Return the files of an archive by case.

    Raises:
        ValueError: A file belongs to no case, or a case has no files.
    """
    found: dict[str, dict[str, bytes]] = {name: {} for name in cases}
    for path, content in files.items():
        case = _case_of(path)
        if case not in found:
            raise ValueError(f"{path!r} belongs to no case of the profile")
        found[case][path.removeprefix(f"{case}/")] = content
    if missing := [name for name, content in found.items() if not content]:
        raise ValueError(f"the case {missing[0]!r} is not in the archive")
    return found


def noise_file(data_set: int, leaf: int) -> str:
    """Return the path of the noise of a leaf: its number among all leaves of the outputs of a data set."""
    return f"noise/test_data_set_{data_set}-output_{leaf}.npy"


def _case_of(path: str) -> str:
    """Return the folder of the case that a file of an archive belongs to."""
    parts = path.split("/")
    return "/".join(parts[:-1] if parts[-1] == CASE_MODEL else parts[:-2])


def _digest_of(files: FileContents, places: Iterable[_Place]) -> str:
    lines = (f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for _, _, name in places)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
