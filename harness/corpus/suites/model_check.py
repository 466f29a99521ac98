"""The verdict of onnx's checker on a model, in another process: some models crash its native code.

It is asked only about models that the CPU provider refuses, once: answers stay in the row cache.
"""

import atexit
import functools
import json
import threading
from pathlib import Path
from subprocess import Popen
from typing import IO

from harness.core.text.errors import one_line
from harness.corpus.caches.row_cache import open_row_cache
from harness.corpus.suites.helper_process import HelperProcess
from harness.corpus.suites.suite import suites_cache

_CHECKER = HelperProcess(Path(__file__).with_name("check_child.py"))

CHECK_LIMIT_S = 60.0
"""Seconds for one model, including the start of the process; refused models are mostly small."""


@functools.lru_cache(maxsize=1024)
def broken_rule(path: Path, digest: str) -> str:
    """Return what onnx's checker and its type inference find in a model; empty if they accept it.

    A model that crashes the checker, or exceeds its time, counts as accepted: no broken rule is known.

    Args:
        path: The model's file.
        digest: Digest of its content, so that a changed file is checked again.
    """
    kept, name = open_row_cache(suites_cache()), f"broken rule of {digest}"
    if (known := kept.get(name, "")) is not None:
        return known.decode()
    answer = _CHECKER.ask(functools.partial(_exchange, path))
    if answer is None:  # no finding about the model
        return ""
    rule = one_line(answer)
    kept.put(name, "", rule.encode())
    return rule


def end_checker() -> None:
    """End the process; the next question starts another one."""
    _CHECKER.close()


def _exchange(path: Path, process: "Popen[bytes]", questions: IO[bytes], answers: IO[bytes]) -> str:
    timer = threading.Timer(CHECK_LIMIT_S, process.kill)
    timer.daemon = True
    timer.start()
    try:
        questions.write(json.dumps(str(path.absolute())).encode() + b"\n")
        questions.flush()
        return str(json.loads(answers.readline()))
    finally:
        timer.cancel()


atexit.register(end_checker)
