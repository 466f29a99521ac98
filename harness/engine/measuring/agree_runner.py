"""Call the function of a matrix that compares answers: a script for a process of its own.

It gets a folder with the request and the values, and leaves ``result.json`` there. It imports nothing of the
harness: modules of the harness must not shadow those of the function.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

REQUEST = "request.json"
RESULT = "result.json"


def main(folder: Path) -> None:
    """Call the function with each data set, and write its results or its error."""
    request = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    sys.path[0] = request["path"]  # replaces the folder of this script
    module, _, name = request["function"].partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
        found = [
            json_value(
                function(
                    *(output_arrays(folder / f"{side}_{index}.npz", names) for side, names in sides.items())
                )
            )
            for index, sides in enumerate(request["sets"])
        ]
        told: dict[str, Any] = {"returned": found}
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may raise anything
        told = {"error": f"{type(error).__name__}: {error}"[:2000]}
    fresh = folder / f"{RESULT}.new"
    fresh.write_text(json.dumps(told), encoding="utf-8")
    fresh.replace(folder / RESULT)


def output_arrays(file: Path, names: list[str]) -> dict[str, Any]:
    """Return arrays by the names of the outputs."""
    with np.load(file, allow_pickle=False) as kept:
        return {name: kept[f"a{index}"] for index, name in enumerate(names)}


def json_value(returned: Any) -> Any:
    """Return the result of a function in a form that JSON can hold; numpy's numbers become Python's."""
    if isinstance(returned, (tuple, list)):
        return [json_value(one) for one in returned]
    if isinstance(returned, np.generic):
        return returned.item()
    if isinstance(returned, (bool, int, float)):
        return returned
    return type(returned).__name__


if __name__ == "__main__":
    main(Path(sys.argv[1]))
