"""The table that `check --api` prints of selection policies: one line for each policy."""

from collections.abc import Iterator

from harness.cli.output import wrapped
from harness.core.records.selection_study import SelectionStudy


def selection_lines(study: SelectionStudy) -> Iterator[str]:
    """Yield lines of at most 80 columns; libraries that take no part come last."""
    names = [name for name, why in study.libraries.items() if not why]
    title = f"selection policies with {', '.join(names) or 'no plugin'}"
    yield from wrapped(f"{title}: {study.declined}" if study.declined else title)
    width = max((len(answer.policy) for answer in study.answers), default=0)
    for answer in study.answers:
        wrong = study.wrong(answer)
        word = "wrong" if wrong else "untested" if answer.is_idle else "ok"
        words = "; ".join(filter(None, (answer.choice, wrong)))
        yield from wrapped(words, f"{word:9} {answer.policy:{width}} ")
    for name, why in study.libraries.items():
        if why:
            yield from wrapped(f"{name} takes no part: {why}")
