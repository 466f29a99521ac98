"""No file of a report is heavier than the limit: what does not fit is in a further file."""

import base64
import json
import re
import zlib
from pathlib import Path

import pytest

from harness.report.cells import paging, report_cell
from harness.report.report_files import write_report
from tests.heavy import heavy_runs, weights

CELLS = 600


def test_small_limits_are_kept_and_every_model_is_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = 36_000
    monkeypatch.setattr(paging, "PART_CHARS", part)
    monkeypatch.setattr(report_cell, "MAX_DETAILS_CHARS", part)
    run, older = heavy_runs(tmp_path, CELLS)
    write_report([run], tmp_path / "site", baseline=older)
    own = {path.name: own_chars(path) for path in (tmp_path / "site").glob("*.html")}
    for page in ("models", "cells", "changes", "faults", "performance"):
        files = {name: chars for name, chars in own.items() if re.fullmatch(rf"{page}(-\d+)?.html", name)}
        assert len(files) > 1, page
        assert max(files.values()) < 1.2 * part, files
    models = [
        model
        for name in own
        if name.startswith("models")
        for model in re.findall(r'<tr><th scope="row">([^<]*)</th>', text_of(tmp_path / "site" / name))
    ]
    assert len(models) == len(set(models)) == CELLS // 10
    # The first file has an index of all of them, and knows where each file begins.
    first = text_of(tmp_path / "site" / "models.html")
    found = re.search(r'id="everywhere" data-files="([\d ]*)">([^<]*)<', first)
    assert found is not None
    index = json.loads(zlib.decompress(base64.b64decode(found[2])))
    assert [model for _, its in index["suites"] for model, _ in its] == sorted(models)
    assert len(found[1].split()) == sum(name.startswith("models") for name in own)


@pytest.mark.long
def test_a_report_of_100_000_cells_has_no_heavy_file(tmp_path: Path) -> None:
    run, older = heavy_runs(tmp_path, 100_000)
    write_report([run], tmp_path / "site", baseline=older)
    heavy = {page: size for page, (_, size) in weights(tmp_path / "site").items() if size > paging.FILE_BYTES}
    assert not heavy


def test_links_between_many_files_stay_few() -> None:
    files = [(f"f-{number}", "") for number in range(1, 1001)]
    for here in (0, 499, 999):
        shown = [number for number, *_ in paging.around(files, files[here][0])]
        assert {1, 1000, here + 1} <= set(shown)
        assert len(shown) <= paging.SHOWN_LINKS
    assert len(paging.around(files[:5], "f-2")) == 5


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def own_chars(path: Path) -> int:
    """Return the size of a page without its head, style, navigation and scripts."""
    main = text_of(path).partition("<main")[2].partition("</main>")[0]
    return len(main)
