"""A thousand strangers' models on the CPU provider: whether each gets the verdict that is right for it.

The models are those of foreign_models.py, the slow ones included: one that never ends, and one with 3 GiB of
weights. The run has a cache of its own, so every golden is computed. Exit code 1: a verdict is wrong.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

from foreign_models import write_models
from processes import UNEXPECTED, heading, progress, row, timed, verdict

from harness.corpus.caches.cache import ENVIRONMENT

MATRIX = """
schema = 1
[models]
folders = ["models"]
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
workers = 2
timeouts_s = { run = 10 }
"""


def main(count: int) -> bool:
    """Print how many models got which verdict, in what time; whether one is wrong."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        right = write_models(folder / "models", count, slow=True)
        progress(f"{len(right)} models are written")
        (folder / "m.toml").write_text(MATRIX, encoding="utf-8")
        command = [sys.executable, "-m", "harness", "run", folder / "m.toml", "--out", folder / "run"]
        env = {ENVIRONMENT: str(folder / "cache")}
        took_s = timed(command, env=env, codes=(0, UNEXPECTED)).seconds
        lines = (folder / "run" / "records.jsonl").read_text(encoding="utf-8").splitlines()
    found = {record["model"]: record["verdict"] for record in map(json.loads, lines)}
    wrong = {model: found.get(model) for model in right if found.get(model) not in right[model]}
    print(f"{len(found)} models in {took_s:.0f} s, with the limits of one that never ends and the report")
    heading("verdict", "models")
    for given, models in Counter(found.values()).most_common():
        row(given, models)
    for model, given in wrong.items():
        print(f"WRONG: {model} is {given}, and should be {' or '.join(right[model])}")
    return not verdict(f"of {len(found):,} strangers' models, those with another verdict", len(wrong), 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=1000, help="models besides the slow ones")
    sys.exit(main(parser.parse_args().count))
