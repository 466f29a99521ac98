"""Seconds of `ep-harness verify` for a submission of each kind, the start of the process included.

``python -m benchmarks.verify [SUBMISSION...]``; without one, honest ones and attacks are made.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.annex.conformance.profiles.profile import profiles_folder
from tests.annex.conformance.small_profiles import tiny_profile, write_profile
from tests.annex.conformance.submissions import Draft, write_folder, write_zip

GOAL_S = 2.0
ROUNDS = 3


def main(paths: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        kinds = {Path(path).name: Path(path) for path in paths} or made(Path(folder))
        worst = 0.0
        for name, path in kinds.items():
            took = min(seconds(path) for _ in range(ROUNDS))
            worst = max(worst, took)
            print(f"{took:6.2f} s  {name}")
    print(f"worst {worst:.2f} s, goal {GOAL_S:.0f} s")
    return int(worst > GOAL_S)


def seconds(path: Path) -> float:
    began = time.perf_counter()
    script = (
        "import sys, pathlib\n"
        "import harness.annex.conformance.verify.verification as module\n"
        "module.profiles_folder = lambda: pathlib.Path(sys.argv[2])\n"
        "from harness.cli.main import main\n"
        "sys.exit(main(['verify', sys.argv[1]]))\n"
    )
    profiles = path.parent / f"{path.stem}.profiles"
    where = str(profiles) if profiles.is_dir() else str(profiles_folder())
    command = [sys.executable, "-c", script, str(path), where]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def made(folder: Path) -> dict[str, Path]:
    large = Draft(profile=tiny_profile(400)).files()
    bomb = {**large, "logs/run.txt": b"\0" * (60 << 20)}
    for name, cases in {"small": 8, "large": 400, "bomb": 400, "nested": 400}.items():
        write_profile(folder / f"{name}.profiles", tiny_profile(cases))
    nested = {**large, "run.json": b"[" * 1_000_000}
    return {
        "folder of 8 cases": write_folder(Draft().files(), folder / "small"),
        "folder of 400 cases": write_folder(large, folder / "large"),
        "zip of 400 cases": write_zip(large, folder / "large.zip"),
        "zip bomb": write_zip(bomb, folder / "bomb.zip"),
        "nested a million times": write_folder(nested, folder / "nested"),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
