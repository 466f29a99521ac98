"""From a crash of the agent in C to the start of the next session, with a spare process ready.

Both moments are noted in the agent's processes, by a library of a few lines that stands before the wheel's
libonnxruntime: it notes when a session begins, and dies at the models that are to crash. The spare has loaded
the runtime; it still gets its configuration, opens the provider and makes the probe's session.

Exit code 1: the median is more than 20 ms.
"""

import argparse
import importlib.util
import itertools
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import onnx
from fake import MODEL
from processes import UNEXPECTED, heading, row, timed, verdict

from harness.runtimes.native_agent import build_agent

SHIM = r"""
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
typedef void (*Function)(void);
typedef struct { const Function *(*get)(uint32_t); const char *(*version)(void); } Base;
typedef void *(*Create)(const void *, const char *, const void *, void **);
enum { CREATE_SESSION = 7, PLACES = 424 };
static Base real, own;
static Function places[PLACES];
static Create create_really;
static void note(const char *what) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    FILE *file = fopen(getenv("NOTES"), "a");
    fprintf(file, "%s %ld.%09ld\n", what, (long)now.tv_sec, now.tv_nsec);
    fclose(file);
}
static void *create(const void *env, const char *path, const void *options, void **session) {
    struct timespec pause = {.tv_nsec = 700000000};
    note("start");
    if (strstr(path, "pause")) nanosleep(&pause, NULL);
    if (strstr(path, "segv")) note("segv"), raise(SIGSEGV);
    return create_really(env, path, options, session);
}
static const Function *get(uint32_t version) {
    const Function *all = real.get(version);
    memcpy(places, all, sizeof places);
    create_really = (Create)all[CREATE_SESSION];
    places[CREATE_SESSION] = (Function)create;
    return places;
}
const Base *OrtGetApiBase(void) {
    void *library = dlopen(getenv("REAL"), RTLD_NOW);
    real = *((const Base *(*)(void))dlsym(library, "OrtGetApiBase"))();
    own = (Base){get, real.version};
    return &own;
}
"""
MATRIX = """
schema = 1
[models]
folders = ["models"]
[[target]]
name = "c"
provider = "CPUExecutionProvider"
runtime = {{ agent = ["{agent}", "--library", "{shim}"] }}
env = {{ REAL = "{real}", NOTES = "{notes}" }}
"""
MOST_MS = 20


def main() -> int:
    """Measure and print; 1 if the figure is not what it should be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("times", type=int, nargs="?", default=20)
    times = parser.parse_args().times
    heading("next session starts", "median", "fastest", "slowest")
    with tempfile.TemporaryDirectory() as name:
        took_ms = measure(Path(name), times)
    row("after a crash of the agent in C, spare ready", *(f"{one:.1f} ms" for one in figures(took_ms)))
    return 0 if verdict("ms from a crash to the next session", median(took_ms), MOST_MS) else 1


def figures(took_ms: list[float]) -> tuple[float, float, float]:
    """Return the median, the least and the largest."""
    return median(took_ms), min(took_ms), max(took_ms)


def measure(folder: Path, times: int) -> list[float]:
    """Return the milliseconds of each crash but the first, which makes the harness keep a spare."""
    (folder / "models").mkdir()
    for number, kind in enumerate(["segv", "ok", "pause"] * (times + 1) + ["ok"]):
        model = onnx.parser.parse_model(MODEL)
        model.doc_string = str(number)  # each is another model
        onnx.save(model, folder / "models" / f"{number:03}_{kind}.onnx")
    (folder / "shim.c").write_text("#define _GNU_SOURCE\n" + SHIM, encoding="utf-8")
    words = ["cc", "-shared", "-fPIC", "-o", str(folder / "shim.so"), str(folder / "shim.c"), "-ldl"]
    subprocess.run(words, check=True)
    capi = Path(str(importlib.util.find_spec("onnxruntime").origin)).parent / "capi"  # type: ignore[union-attr]
    paths = {
        "agent": build_agent(folder / "agent").path,
        "shim": folder / "shim.so",
        "notes": folder / "notes",
    }
    real = next(capi.glob("libonnxruntime.so.1.*"))
    (folder / "m.toml").write_text(MATRIX.format(real=real, **paths), encoding="utf-8")
    command = [sys.executable, "-m", "harness", "run", folder / "m.toml", "--no-report", "--out", "run"]
    timed(command, env={"EP_HARNESS_CACHE": str(folder / "cache")}, codes=(UNEXPECTED,))
    notes = [line.split() for line in (folder / "notes").read_text(encoding="utf-8").splitlines()]
    pairs = itertools.pairwise(notes)
    return [1000 * (float(after) - float(at)) for (kind, at), (_, after) in pairs if kind == "segv"][1:]


if __name__ == "__main__":
    sys.exit(main())
