"""Environments from package names: what makes one, and what is left when it cannot be made."""

import os
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import filelock
import msgspec
import pytest

from harness.plan.target import Runtime
from harness.runtimes import environments
from harness.runtimes import uv as uv_module
from harness.runtimes.environments import (
    EnvironmentManifest,
    answer_dependencies,
    build,
    built_python,
    is_built,
    kept,
    note_use,
    prune_environments,
)
from harness.runtimes.installer import InstallError
from harness.runtimes.uv import Uv, find_uv
from tests.kit import wait_for

OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
BUILDER = """
import sys
from harness.runtimes import environments, uv
from harness.plan.target import Runtime
uv.find_uv = lambda: sys.argv[1]
print(environments.build(Runtime(packages=tuple(sys.argv[2:]))))
"""


def of(*packages: str, python_version: str | None = None) -> Runtime:
    return Runtime(packages=packages, python_version=python_version)


def home(log: Path) -> Path:
    return log.parent / "cache" / "runtimes"


def leftovers(log: Path) -> list[str]:
    return [one.name for one in home(log).iterdir() if not one.name.endswith(".lock")]


def building(log: Path, *packages: str) -> "subprocess.Popen[str]":
    """Another process that builds."""
    return subprocess.Popen(
        [sys.executable, "-c", BUILDER, str(log.with_name("uv")), *packages],
        env={**os.environ, "PYTHONPATH": str(Path(environments.__file__).parents[2])},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def no_uv(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From here on, whoever asks for uv has lost."""

    def gone() -> str:
        raise InstallError("uv is gone")

    return lambda: monkeypatch.setattr(uv_module, "find_uv", gone)


def test_its_name_is_made_of_everything_that_it_depends_on(
    fake_uv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = built_python(of("a", "b"))
    assert home(fake_uv) in one.parents
    assert one == built_python(of("b", "a", "b"))
    assert one == built_python(of("a", "b", python_version=OWN))
    others = {
        built_python(of("a")),
        built_python(of("a", "b==1")),
        built_python(of("a", "b", python_version="3.5")),
    }
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://me:secret@mirror/simple")
    mirrored = built_python(of("a", "b"))
    others |= {mirrored}
    assert len(others - {one}) == 4
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://me:renewed@mirror/simple")
    assert built_python(of("a", "b")) == mirrored


def test_it_is_built_from_the_requirements_alone(fake_uv: Path) -> None:
    python = build(of("zebra", "onnxruntime==1.0"))
    assert python == built_python(of("zebra", "onnxruntime==1.0"))
    assert python.is_file()
    venv, install, freeze = fake_uv.read_text().splitlines()
    assert venv.startswith("venv --no-project --relocatable --python " + sys.executable)
    assert install.endswith(" -- onnxruntime==1.0 zebra numpy")
    assert freeze.startswith("pip freeze")
    manifest = msgspec.json.decode(
        (python.parents[2] / "manifest.json").read_bytes(), type=EnvironmentManifest
    )
    assert manifest.requirements == ("onnxruntime==1.0", "zebra")
    assert manifest.packages == ("numpy==2.0", "onnxruntime==1.0")
    assert manifest.python.startswith(OWN)
    assert manifest.created


@pytest.mark.parametrize("asked", ["numpy", "numpy<2", "NumPy==1.26", "numpy ; python_version > '3'"])
def test_numpy_is_as_it_was_asked_for(fake_uv: Path, asked: str) -> None:
    build(of("onnxruntime", asked))
    (install,) = [line for line in fake_uv.read_text().splitlines() if line.startswith("pip install")]
    assert install.partition(" -- ")[2].lower().count("numpy") == 1


def test_another_python_is_for_uv_to_find(fake_uv: Path) -> None:
    build(of("a", python_version="3.5"))
    assert " --python 3.5 " in fake_uv.read_text().splitlines()[0]


def test_once_built_it_needs_neither_uv_nor_network(fake_uv: Path, no_uv: Callable[[], None]) -> None:
    runtime = of("a")
    assert not is_built(runtime)
    python = build(runtime)
    no_uv()
    assert is_built(runtime)
    assert build(runtime) == python
    assert len(fake_uv.read_text().splitlines()) == 3


def test_what_needs_no_building_is_built() -> None:
    assert is_built(Runtime())
    assert is_built(Runtime(python="/gone/python"))


def test_what_answers_depend_on_is_known_once_it_is_built(fake_uv: Path) -> None:
    assert fake_uv.exists()
    runtime = of("a")
    assert answer_dependencies(runtime) == {}
    build(runtime)
    key = built_python(runtime).parents[2].name
    assert answer_dependencies(runtime) == {
        "onnxruntime": "1.0",
        "environment": key,
        "packages": "numpy==2.0\nonnxruntime==1.0",
    }
    assert answer_dependencies(Runtime(python="/usr/bin/python3")) == answer_dependencies(Runtime()) == {}


def test_a_failed_one_leaves_nothing_and_says_why(fake_uv: Path) -> None:
    for _ in range(2):
        with pytest.raises(InstallError) as caught:
            build(of("nosuch"))
        assert caught.value.reason == str(caught.value)
        assert caught.value.reason.startswith(
            "No solution found when resolving dependencies: Because there is no version of nosuch==1"
        )
        assert len(caught.value.reason.splitlines()) == 1
        assert "Ask somebody else." in caught.value.printed
        assert not is_built(of("nosuch"))
        assert leftovers(fake_uv) == []


def test_an_exit_without_a_word_is_a_failure_too(fake_uv: Path) -> None:
    with pytest.raises(InstallError, match="uv ended with code 3"):
        build(of("mute"))
    assert leftovers(fake_uv) == []


def test_a_cache_that_cannot_be_written_is_a_failure_in_one_line(fake_uv: Path) -> None:
    fake_uv.with_name("cache").write_text("in the way")
    with pytest.raises(InstallError) as caught:
        build(of("a"))
    assert "cache" in caught.value.reason
    assert "\n" not in caught.value.reason


def test_a_missing_uv_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InstallError, match="pip install uv"):
        find_uv()


def test_uv_is_the_one_that_came_with_the_harness(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    places = [tmp_path / "ours", tmp_path / "theirs"]
    name = "uv.exe" if os.name == "nt" else "uv"
    for place in places:
        place.mkdir()
        (place / name).touch(0o755)
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(places[0]))
    monkeypatch.setenv("PATH", str(places[1]))
    assert Path(find_uv()).parent == places[0]
    (places[0] / name).unlink()
    assert Path(find_uv()).parent == places[1]


def test_processes_that_race_build_once(fake_uv: Path) -> None:
    racing = [building(fake_uv, "slow") for _ in range(3)]
    told = {one.communicate(timeout=30)[0] for one in racing}
    assert [one.returncode for one in racing] == [0, 0, 0]
    assert told == {f"{built_python(of('slow'))}\n"}
    assert [line.split()[0] for line in fake_uv.read_text().splitlines()] == ["venv", "pip", "pip"]


def test_an_interrupted_one_is_not_used_and_its_remains_go(fake_uv: Path) -> None:
    running = Path(f"{fake_uv}.pid")
    victim = building(fake_uv, "hang")
    wait_for(lambda: running.is_file() and bool(running.read_text()))
    victim.kill()
    victim.communicate()
    os.kill(int(running.read_text()), 9)  # what survives it goes on in a folder that nobody will look at
    (remains,) = leftovers(fake_uv)
    assert not is_built(of("hang"))
    assert kept() == ()
    assert list(prune_environments(older_than_s=1e9)) == []
    assert leftovers(fake_uv) == []
    assert remains.startswith(".")


def test_one_whose_python_was_uninstalled_is_built_anew(fake_uv: Path) -> None:
    python = build(of("a"))
    python.unlink()
    python.symlink_to(fake_uv.parent / "uninstalled")
    assert not is_built(of("a"))
    assert build(of("a")).is_file()


def test_a_wheel_of_the_same_name_is_another_input(fake_uv: Path) -> None:
    wheel = fake_uv.with_name("ep-1-py3-none-any.whl")
    with pytest.raises(InstallError, match="No such file"):
        is_built(of(str(wheel)))
    wheel.write_bytes(b"first")
    before = build(of(str(wheel)))
    assert is_built(of(str(wheel)))
    wheel.write_bytes(b"second")
    assert not is_built(of(str(wheel)))
    assert build(of(str(wheel))) != before


def test_a_folder_of_sources_is_refused(fake_uv: Path) -> None:
    with pytest.raises(InstallError, match=r"is a folder.*name a wheel"):
        build(of(str(fake_uv.parent)))


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        (
            "Using Python\nerror: Failed to fetch\n  cause: dns error\n  cause: no name\n",
            "Failed to fetch: dns error: no name",
        ),
        ("error: No interpreter\n\nhint: Get one\n", "No interpreter; hint: Get one"),
        (
            "  \u00d7 No solution found:\n  \u2570\u2500\u25b6 Because a\n      needs b.\n",
            "No solution found:: Because a needs b.",
        ),
        ("warning: 1\nwarning: 2\n\x1b[31m3\x1b[0m\n4\n", "warning: 2 3 4"),
        ("", ""),
    ],
)
def test_the_last_words_are_one_line(printed: str, words: str) -> None:
    assert Uv().reason(printed) == words


@pytest.mark.usefixtures("fake_uv")
def test_what_is_kept_is_listed_by_its_last_use() -> None:
    for name in ("a", "b", "c"):
        build(of(name))
    for age, name in enumerate("cab"):
        path = built_python(of(name)).parents[2] / "manifest.json"
        os.utime(path, (0, 1000 - age))
    assert [one.manifest.requirements for one in kept() if one.manifest] == [("c",), ("a",), ("b",)]
    note_use(of("b"))
    assert [one.manifest.requirements for one in kept() if one.manifest] == [("b",), ("c",), ("a",)]
    (built_python(of("c")).parents[2] / "manifest.json").write_text("{}")
    assert [one.manifest is None for one in kept()] == [False, False, True]


def test_what_was_not_used_for_long_is_pruned(fake_uv: Path) -> None:
    for name in ("new", "old", "damaged"):
        build(of(name))
    os.utime(built_python(of("old")).parents[2] / "manifest.json", (0, time.time() - 100))
    (built_python(of("damaged")).parents[2] / "manifest.json").unlink()
    gone = list(prune_environments(older_than_s=50))
    assert [one.manifest and one.manifest.requirements for one in gone] == [("old",), None]
    assert is_built(of("new"))
    assert not is_built(of("old"))
    assert len(list(prune_environments(older_than_s=0))) == 1
    assert leftovers(fake_uv) == []


@pytest.mark.usefixtures("fake_uv")
def test_what_another_process_builds_is_left_alone() -> None:
    folder = build(of("a")).parents[2]
    with filelock.FileLock(folder.with_name(f"{folder.name}.lock")):
        assert list(prune_environments(older_than_s=0)) == []
    assert is_built(of("a"))


def test_an_empty_cache_has_nothing(fake_uv: Path) -> None:
    assert kept() == ()
    assert list(prune_environments(older_than_s=0)) == []
    assert not home(fake_uv).exists()


def write_wheel(folder: Path, name: str) -> None:
    info = f"{name}-1.0.dist-info"
    contents = {
        f"{name}/__init__.py": "from pathlib import Path\nhere = str(Path(__file__).parent)\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    contents[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*contents, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for path, text in contents.items():
            wheel.writestr(path, text)


def test_uv_itself_builds_one_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tiny", "numpy"):
        write_wheel(tmp_path, name)
    monkeypatch.setenv("EP_HARNESS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "uv.toml").write_text(f"no-index = true\nfind-links = ['{tmp_path}']\n", encoding="utf-8")
    monkeypatch.setenv("UV_CONFIG_FILE", str(tmp_path / "uv.toml"))
    python = build(of("tiny==1.0"))
    ask = [str(python), "-c", "import numpy, tiny; print(tiny.here)"]
    done = subprocess.run(ask, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).is_relative_to(python.parents[2])
    (one,) = kept()
    assert one.manifest
    assert one.manifest.packages == ("numpy==1.0", "tiny==1.0")
    assert one.manifest.nbytes > 0
    by_path = build(of(str(tmp_path / "tiny-1.0-py3-none-any.whl")))
    subprocess.run([str(by_path), "-c", "import tiny"], check=True)
    with pytest.raises(InstallError, match=r"no version of tiny==2|tiny==2"):
        build(of("tiny==2"))
