"""The main job: the README's first command, and what the records of its run must show.

Half a minute on two processors, and the one test that the rest is for. CI comes to its limit of time, so
what is run of the command's matrix is a sixth of the operator tests, by their first letters: with products,
pooling, a crash, and half of the kinds of known faults. The nine image classifiers of the matrix are left
out: on simulators of accelerators they take longer than all the operator tests together.

One figure depends on the processor: with AVX512_BF16, ``openvino-default`` computes products in bfloat16, and
without it in float32, as ``openvino-f32`` does everywhere. Each machine shows one half, and the list of known
failures has to fit both: a test plants the half without bfloat16.
"""

import html
import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.cell import Cell
from harness.core.records.verdict import Verdict
from harness.data_files import data_root
from harness.plan.expectation import is_expected
from harness.plan.matrix import read_matrix
from harness.plan.plan import Plan
from tests.kit import read_rows

pytestmark = pytest.mark.real_ep

README = Path(__file__).parents[2] / "README.md"
MATRIX = data_root() / "matrices" / "local.toml"
SELECTED = (
    *("--model", "onnx-node/test_[gmt]*"),
    *("--model", "onnx-node/test_lstm_*"),
    *("--model", "onnx-node/test_s[p-z]*"),
)
WHOLE = 317
"""Operator tests of these letters."""
TARGETS = ("cpu", "openvino-default", "openvino-f32", "qnn-htp", "webgpu-swiftshader")
CELLS = dict.fromkeys(TARGETS, WHOLE)
WITH_BFLOAT16 = {"amx_bf16", "avx512_bf16"}
Rows = list[dict[str, Any]]


def first_command() -> list[str]:
    """The words of the first `ep-harness` in the README."""
    words = re.search(r"^.*?bin/ep-harness (.+)$", README.read_text("utf-8"), re.MULTILINE)
    assert words
    return shlex.split(words[1])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("local") / "run"
    command = [sys.executable, "-m", "harness", *first_command(), *SELECTED, "--out", str(out)]
    done = subprocess.run(command, cwd=data_root(), capture_output=True, text=True, check=False, timeout=1200)
    (out / "ended").write_text(f"{done.returncode}\n{done.stdout}{done.stderr}", encoding="utf-8")
    return out


def test_the_first_command_of_the_readme_ends_with_0(run: Path) -> None:
    code, _, printed = (run / "ended").read_text("utf-8").partition("\n")
    assert first_command() == ["run", "matrices/local.toml"]
    assert code == "0", printed


def is_target_gone(row: dict[str, Any]) -> bool:
    """A cell that a machine lacks something for, such as a locale, ends while its session is created."""
    return row["verdict"] == "unavailable" and row.get("phase") != "create"


@pytest.fixture(scope="module")
def rows(run: Path, elsewhere: dict[str, str]) -> Rows:
    found = read_rows(run)
    missing = {row["target"]: row["reason"] for row in found if is_target_gone(row)}
    known = {row["target"] for row in found if row["provider"] in elsewhere}
    if missing.keys() - known and not os.environ.get("CI"):
        pytest.skip(f"unavailable here: {missing}")
    assert missing.keys() == known
    return found


def of(rows: Rows, target: str) -> Rows:
    return [row for row in rows if row["target"] == target]


def test_records_hold_exactly_the_planned_cells(run: Path, rows: Rows) -> None:
    listing = [sys.executable, "-m", "harness", "list", str(MATRIX), *SELECTED]
    planned = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split()
    assert Counter(row["cell"] for row in rows) == Counter(planned)
    info = json.loads((run / "run.json").read_text("utf-8"))
    assert (info["cells"], info["complete"], len(info["targets"])) == (len(planned), True, 5)
    assert (run / "report" / "models.html").stat().st_size > 50_000


def test_every_operator_test_is_there_on_every_target(rows: Rows) -> None:
    assert Counter(row["target"] for row in rows if row["suite"] == "onnx-node") == CELLS


def test_no_pass_without_a_node_on_the_provider(rows: Rows) -> None:
    passed = [row for row in rows if row["family"] == "passed"]
    targets = {row["target"] for row in rows if row["verdict"] != "unavailable"}
    assert len(passed) > 0.42 * sum(CELLS[target] for target in targets)
    assert [row["cell"] for row in passed if row["placement"]["ep_nodes"] == 0] == []


@pytest.mark.parametrize("target", ["openvino-default", "openvino-f32", "qnn-htp", "webgpu-swiftshader"])
def test_what_the_cpu_computed_is_fallback(rows: Rows, target: str) -> None:
    if all(row["verdict"] == "unavailable" for row in of(rows, target)):
        pytest.skip(of(rows, target)[0]["reason"])
    fallback = [row for row in of(rows, target) if row["verdict"] == "fallback"]
    fallback = [row for row in fallback if row.get("cause") != "too_little"]
    assert len(fallback) >= 5
    assert all(row["placement"]["ep_nodes"] == 0 < row["placement"]["cpu_nodes"] for row in fallback)


def test_a_segfault_costs_one_cell(rows: Rows) -> None:
    qnn = of(rows, "qnn-htp")
    (stft,) = [row for row in qnn if row["model"] == "test_stft"]
    assert (stft["verdict"], stft["cause"], stft["phase"]) == ("crash", "SIGSEGV", "create")
    after = qnn[qnn.index(stft) + 1 :]
    assert len(after) > 60
    assert sum(row["verdict"] == "pass" for row in after) > 10


def test_no_model_is_newer_than_the_runtime(rows: Rows) -> None:
    # onnxruntime 1.31 did not load the 289 tests that are stamped with opset 27 or 28.
    words = ("Unsupported model IR version", "support for models stamped with official released onnx opset")
    newer = {row["model"] for row in of(rows, "cpu") if any(word in row.get("reason", "") for word in words)}
    assert newer == set()


def test_the_goldens_are_accounted_for(rows: Rows) -> None:
    verdicts = Counter(row["verdict"] for row in of(rows, "cpu") if row["suite"] == "onnx-node")
    with_golden = verdicts["pass"] + verdicts["folded"] + verdicts["reference_disputed"]
    assert with_golden >= 280
    # A locale that this machine lacks is its own fault; of the others the CPU provider lacks something.
    without = ("unsupported", "no_golden", "invalid_model", "unavailable")
    assert with_golden + sum(verdicts[word] for word in without) == WHOLE
    assert verdicts["unsupported"] > verdicts["no_golden"]


def test_known_faults_are_as_the_matrix_expects(rows: Rows) -> None:
    unexpected = [f"{row['verdict']} {row['cell']}" for row in rows if not row["expected"]]
    assert unexpected == []


@pytest.mark.parametrize(
    ("has_bfloat16", "unexpected"), [(False, []), (True, ["onnx-node/test_lstm_with_peepholes"])]
)
def test_known_faults_fit_a_processor_without_bfloat16(
    run: Path,
    rows: Rows,
    has_bfloat16: bool,  # noqa: FBT001
    unexpected: list[str],
) -> None:
    """Real is what openvino-f32 computed. Planted is that openvino-default did, on such a processor.

    Judged as results of a processor with bfloat16 they do not fit, so the list does depend on it.
    """
    if not (f32 := [row for row in of(rows, "openvino-f32") if not is_target_gone(row)]):
        pytest.skip("OpenVINO has no device here")
    plan = Plan(matrix=read_matrix(MATRIX), cells=())
    environment = json.loads((run / "run.json").read_text("utf-8"))["targets"]["openvino-default"]
    seen = environment["processor"]
    features = {*seen["features"]} - WITH_BFLOAT16 | (WITH_BFLOAT16 if has_bfloat16 else set())
    planted = {**environment, "processor": {**seen, "features": sorted(features)}}
    found = []
    for row in f32:
        cell = Cell(
            suite=row["suite"],
            model=row["model"],
            target="openvino-default",
            axes=tuple(sorted(row["axes"].items())),
        )
        expectation, _ = plan.expectation_at(cell, planted, ())
        if not is_expected(expectation, Verdict(row["verdict"])):
            found.append(f"{row['suite']}/{row['model']}")
    assert found == unexpected


def test_the_table_of_operators_is_what_the_records_say(run: Path) -> None:
    # On whatever could be tried: a target that is missing here takes nothing from the others.
    rows = read_rows(run)
    site = run / "report"
    index = (site / "operators.html").read_text("utf-8")
    files = {
        target: file for file, target in re.findall(r'<a href="(operators-\d+\.html)">([^<]*)</a>', index)
    }
    assert files.keys() == {row["target"] for row in rows if row["verdict"] != "unavailable"}
    for target, file in files.items():
        passed: Counter[str] = Counter()
        tried: Counter[str] = Counter()
        on_ep: Counter[str] = Counter()
        placed: Counter[str] = Counter()
        for row in of(rows, target):
            ops = list(row.get("content", {}).get("ops", ()))
            if len(ops) == 1 and row["family"] not in {"skipped", "excluded", "missing"}:
                tried[ops[0]] += 1
                passed[ops[0]] += row["verdict"] == "pass"
            placement = row.get("placement", {"ep_ops": {}, "cpu_ops": {}})
            on_ep.update(placement["ep_ops"])
            placed.update(placement["ep_ops"])
            placed.update(placement["cpu_ops"])
        recount = {
            name: (
                f"{passed[name]} of {tried[name]}" if tried[name] else "not tried alone",
                f"{on_ep[name]} of {placed[name]}" if placed[name] else "not placed",
            )
            for name in tried.keys() | placed.keys()
        }
        assert len(recount) > 20
        assert table_of(site / file) == recount, target


def table_of(page: Path) -> dict[str, tuple[str, str]]:
    """Operator -> what its row says of passed models and of placed nodes."""
    _, _, body = page.read_text("utf-8").partition("<tbody>")
    found = {}
    for row in body.partition("</tbody>")[0].split("</tr>")[:-1]:
        name, passed, nodes, *_ = (
            " ".join(html.unescape(re.sub(r"<[^>]*>", " ", cell)).split())
            for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        )
        figures = re.search(r"[\d,]+ of [\d,]+|not placed", nodes)
        assert figures
        found[name] = (passed.split(" ", 1)[1].replace(",", ""), figures[0].replace(",", ""))
    return found
