"""Submissions: a file of one, sealed again afterwards or not, as a folder or a zip."""

import json
from pathlib import Path
from typing import Any

from benchmarks.mutation.attempt import Attempt
from benchmarks.mutation.changes import changed_bytes, changed_json
from benchmarks.mutation.commands import Commands
from tests.annex.conformance.small_profiles import tiny_profile, write_profile
from tests.annex.conformance.submissions import Draft, changed, write_folder, write_zip


def another_machine(_: int, record: Any) -> Any:
    """Return a record with other times, so that none is taken for a copy."""
    return changed(record, timings_ms={name: 1.37 * ms + 0.01 for name, ms in record.timings_ms.items()})


class Submissions:
    """One that is changed, verified beside one that is not."""

    def __init__(self, home: Path, commands: Commands) -> None:
        self._env = {
            "EP_HARNESS_CACHE": str(home / "cache"),
            "MUTATION_PROFILES": str(write_profile(home / "profiles", tiny_profile())),
        }
        honest = Draft(another_machine)
        honest.statement = lambda one: changed(one, product=changed(one.product, vendor="Honest works"))
        self._honest = honest.files()
        self._usual: str | None = None

    def attempt(self, made: Attempt) -> None:
        """Change one or two files."""
        rng = made.rng

        def change(files: dict[str, bytes]) -> None:
            for name in rng.sample(sorted(files), rng.choice((1, 1, 2))):
                files[name] = changed_part(files[name], name, rng)

        draft = Draft()
        if rng.random() < 0.7:
            draft.raw = change
        else:
            draft.after = change
        folder = made.folder / "submissions"
        folder.mkdir()
        write_folder(self._honest, folder / "honest")
        if rng.random() < 0.5:
            write_folder(draft.files(), folder / "strange")
        else:
            path = write_zip(draft.files(), folder / "strange.zip")
            if rng.random() < 0.3:
                path.write_bytes(changed_bytes(path.read_bytes(), rng))
        if self._usual is None:
            self._usual = self._outcome(made.run("verify", "submissions/honest", "--json", **self._env).out)
            made.expect(self._usual == "verified", f"the honest one alone is {self._usual}")
        ended = made.run("verify", "submissions", "--json", **self._env)
        outcome = self._outcome(ended.out)
        made.expect(outcome == self._usual, f"the honest one is {outcome}; {ended.err[-200:]}")
        if rng.random() < 0.2:
            made.run("publish", "submissions", "--out", "site", **self._env)
            told = "".join(path.read_text("utf-8") for path in (made.folder / "site").glob("*.html"))
            made.expect("Honest works" in told, "the honest one is not on the site")

    @staticmethod
    def _outcome(text: str) -> str:
        try:
            rows = json.loads(text)
        except ValueError:
            return f"unknown: {text[:100]}"
        rows = rows if isinstance(rows, list) else rows.get("submissions", [rows])
        return next((f"{row.get('outcome')}" for row in rows if "honest" in json.dumps(row)), "not there")


def changed_part(content: bytes, name: str, rng: Any) -> bytes:
    """Return a changed file of JSON, of lines of JSON, or of anything."""
    if name.endswith(".jsonl"):
        lines = content.splitlines()
        at = rng.randrange(len(lines))
        lines[at] = changed_json(lines[at], rng)
        return b"\n".join(lines) + b"\n"
    return changed_json(content, rng) if name.endswith(".json") else changed_bytes(content, rng)
