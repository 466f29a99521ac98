"""A folder of strangers' models, of mixed quality, and what the CPU provider has to make of each.

    python benchmarks/foreign_models.py FOLDER [--count 1000] [--slow]

Each kind is one way in which a file that somebody else made is good, odd, broken or hostile. A kind's models
differ in sizes and numbers. Prints, as JSON, ``{model: [verdicts that are right on the CPU provider]}``.

``--slow`` adds what takes minutes: a model that never ends, and one with 3 GiB of weights.
"""

import argparse
import itertools
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import foreign_broken  # noqa: F401 - registers its kinds
import foreign_data  # noqa: F401
import foreign_deadly  # noqa: F401
import foreign_good  # noqa: F401
from foreign_making import KINDS, SLOW


def write_models(root: Path, count: int, *, slow: bool = False) -> dict[str, tuple[str, ...]]:
    """Write so many models, one of each kind in turn, and the slow kinds once; model -> right verdicts."""
    kinds = itertools.cycle(KINDS.items())
    numbered = [*itertools.islice(enumerate(kinds), count)]
    chosen = [(number, *entry) for number, entry in numbered]
    chosen += [(number, *entry) for number, entry in enumerate(SLOW.items() if slow else (), count)]
    right: dict[str, tuple[str, ...]] = {}
    for number, name, (write, verdicts) in chosen:
        folder = root / f"{name}-{number:04}"
        folder.mkdir(parents=True)
        write(folder, random.Random(number))  # noqa: S311 - no secret
        right |= {path.relative_to(root).as_posix(): verdicts for path in _models(folder)}
    return right


def _models(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        for name in names:
            if name.lower().endswith(".onnx") and not name.startswith("._"):
                yield Path(parent) / name


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--count", type=int, default=len(KINDS), help="how many models; by default one of each kind"
    )
    parser.add_argument("--slow", action="store_true", help="with those that take minutes")
    asked = parser.parse_args()
    print(json.dumps(write_models(asked.folder, asked.count, slow=asked.slow), indent=1))


if __name__ == "__main__":
    main()
