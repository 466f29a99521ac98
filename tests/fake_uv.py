"""A uv that builds nothing, and fails on demand; a fixture makes it a program of its own.

Its first argument is a log. What a requirement is called decides what comes of it.
"""

import os
import sys
import time
from pathlib import Path

NO_SOLUTION = """Using Python 3.11.7 environment at: x
error: No solution found when resolving dependencies
  cause: Because there is no version of nosuch==1 and you require nosuch==1, we can conclude that your
         requirements are unsatisfiable.

hint: Ask somebody else.
"""


def main(log: str, command: str, *arguments: str) -> int:
    with Path(log).open("a", encoding="utf-8") as file:
        file.write(f"{' '.join([command, *arguments])}\n")
    if command == "venv":
        venv, own = Path(arguments[-1]), Path(sys.executable)
        (venv / "bin").mkdir(parents=True)
        (venv / "bin" / "python").symlink_to(own)
        # It finds what the tests' own environment has, numpy above all; the base interpreter may lack it.
        (venv / "pyvenv.cfg").write_text(f"home = {own.resolve().parent}\n", encoding="utf-8")
        packages = Path("lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")
        (venv / packages).mkdir(parents=True)
        (venv / packages / "tests.pth").write_text(f"{own.parents[1] / packages}\n", encoding="utf-8")
    elif arguments[0] == "freeze":
        sys.stdout.write("onnxruntime==1.0\nnumpy==2.0\n")
    else:
        asked = arguments[arguments.index("--") + 1 :]
        if "slow" in asked:
            time.sleep(1.0)
        if "hang" in asked:
            Path(f"{log}.pid").write_text(str(os.getpid()), encoding="utf-8")
            time.sleep(60)
        if "nosuch" in asked:
            sys.stderr.write(NO_SOLUTION)
            return 1
        if "mute" in asked:
            return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
