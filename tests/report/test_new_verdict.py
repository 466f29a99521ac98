"""A new verdict takes a word, a rule and two rows of docs, and nothing else."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from harness.core.records.verdict import Family, Verdict
from tests.kit import record, write_run

ROOT = Path(__file__).parents[2]
WORD = '    LATE = "late", Family.FAILED, "the session took more than an hour"\n'
RULE = '''def late(judging: Judging) -> Ruling | None:
    """The session took more than an hour to be made."""
    took_ms = judging.facts.timings_ms.get("create", 0.0)
    return Ruling(Verdict.LATE, f"the session took {took_ms:g} ms") if took_ms > 3_600_000 else None


'''
CHANGES = {
    "core/records/verdict.py": (('    UNSUPPORTED = "unsupported", Family', WORD),),
    "core/verdicts/run_rules.py": (("def right(judging", RULE), ("    right,\n", "    late,\n")),
}
"""File -> pairs of text that is there once, and what is added before it."""
DECIDED = """
from harness.core.verdicts.decide import decide
from harness.core.records.facts import Facts
from harness.core.comparison.policy import Policy
decision = decide(Facts(golden="cpu", timings_ms={"create": 4e6}), Policy())
print(decision.verdict, decision.verdict.family, decision.reason, sep="; ")
"""


def changed_package(home: Path) -> Path:
    """Return a copy of the package with one more verdict, made as CONTRIBUTING.md says."""
    package = home / "harness"
    shutil.copytree(ROOT / "harness", package, ignore=shutil.ignore_patterns("__pycache__", "_data"))
    for folder in ("matrices", "golden", "report_templates"):
        if (ROOT / folder).is_dir():
            (home / folder).symlink_to(ROOT / folder)
    for name, additions in CHANGES.items():
        text = (package / name).read_text(encoding="utf-8")
        for before, added in additions:
            assert text.count(before) == 1, before
            text = text.replace(before, added + before)
        (package / name).write_text(text, encoding="utf-8")
    return package


def test_a_word_and_a_rule_are_enough(tmp_path: Path) -> None:
    home = changed_package(tmp_path / "changed").parent
    env = {**os.environ, "PYTHONPATH": str(home)}

    def python(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    assert python("-c", DECIDED) == "late; failed; the session took 4e+06 ms\n"

    run = write_run(tmp_path / "run", [record("a", verdict=Verdict.ERROR), record("b")])
    records = run / "records.jsonl"
    records.write_bytes(records.read_bytes().replace(b'"verdict":"error"', b'"verdict":"late"'))
    python("-m", "harness", "report", str(run), "--out", "site")
    page = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert re.search(r"\blate\b", page)


def test_the_page_of_records_has_every_verdict_in_its_family() -> None:
    page = (ROOT / "docs" / "reference" / "records.md").read_text("utf-8")
    table = page.partition("\n### Verdicts\n")[2]
    rows = dict(re.findall(r"^\| (\w+) \| ([^|]*) \|", table, re.MULTILINE))
    told = {family: set(re.findall(r"`(\w+)`", rows[family])) for family in Family}
    assert told == {family: {str(each) for each in Verdict if each.family is family} for family in Family}
