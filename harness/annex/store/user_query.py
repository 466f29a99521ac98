"""One SELECT of a user on an open store: rows as they come, or a Parquet file."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.annex.store.schema import VIEWS
from harness.annex.store.store import Store
from harness.core.text.errors import UsageError, one_line

if TYPE_CHECKING:
    from duckdb import Statement

_FETCHED = 5_000
_SHOWN = 300


class QueryResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a query: names of its columns, all different, and their SQL types.

    The rows are computed while they are read.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]


def ask(store: Store, sql: str) -> QueryResult:
    """Run one SELECT.

    Raises:
        UsageError: It is not a single SELECT, it is wrong, or it needs too much memory; the last two are also
            raised while rows are read.
    """
    with _asking():
        result = store.database.execute(_only_select(store, sql))
        about = result.description or []
    return QueryResult(
        names=_apart([column[0] for column in about]),
        kinds=tuple(str(column[1]) for column in about),
        rows=_rows(store),
    )


def write_parquet(store: Store, sql: str, out: Path) -> None:
    """Write the rows of one SELECT into a Parquet file.

    ``partial_file(out)`` is written first; the store must have been opened with permission to write it.

    Raises:
        UsageError: As ``ask``; or the file cannot be written.
    """
    fresh = partial_file(out)
    try:
        with _asking(out):
            store.database.sql(_only_select(store, sql)).write_parquet(
                str(fresh.absolute()), compression="zstd"
            )
            fresh.replace(out)
    finally:
        fresh.unlink(missing_ok=True)


def partial_file(out: Path) -> Path:
    """Return the file that is renamed to ``out`` when it is complete."""
    return out.with_name(f"{out.name}.new")


def _only_select(store: Store, sql: str) -> "Statement":
    import duckdb

    statements = store.database.extract_statements(sql)
    if len(statements) != 1 or statements[0].type is not duckdb.StatementType.SELECT:
        found = f"{len(statements)} statements" if len(statements) != 1 else statements[0].type.name
        raise UsageError.at("query", f"one SELECT is wanted, not {found}", _hint())
    return statements[0]


def _rows(store: Store) -> Iterator[tuple[Any, ...]]:
    while True:
        with _asking():
            some = store.database.fetchmany(_FETCHED)
        if not some:
            return
        yield from some


@contextlib.contextmanager
def _asking(out: Path | None = None) -> Iterator[None]:
    """Turn errors about a query into two lines."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        hint = "ask for fewer rows or columns, or sum them up: GROUP BY"
        raise UsageError.at("query", _first_line(error), hint) from error
    except duckdb.PermissionException as error:
        raise UsageError.at("query", "a query reads the views of the store, and no file", _hint()) from error
    except duckdb.IOException as error:
        hint = "free some space, or choose another file"
        raise UsageError.at(out or "query", _first_line(error), hint) from error
    except duckdb.Error as error:
        raise UsageError.at("query", _first_line(error), _hint(str(error))) from error
    except OSError as error:
        what = f"the file cannot be written: {error.strerror or error}"
        raise UsageError.at(out or "query", what, "choose another --out") from error


def _first_line(error: Exception) -> str:
    return one_line(str(error).partition("\n")[0], _SHOWN)


def _hint(told: str = "") -> str:
    """Return DuckDB's suggestion, if any, and what is valid."""
    lines = [one_line(line, _SHOWN) for line in told.splitlines()[1:]]
    suggested = [line for line in lines if line.lower().startswith(("did you mean", "candidate bindings"))]
    views = ", ".join(view.name for view in VIEWS)
    return " ".join([*suggested[:1], f"views: {views}; columns: DESCRIBE records"])


def _apart(names: list[str]) -> tuple[str, ...]:
    """Return names that are all different: a second ``n`` becomes ``n_2``."""
    taken: dict[str, None] = {}  # in order
    for name in names:
        count, shown = 1, name
        while shown in taken:
            count += 1
            shown = f"{name}_{count}"
        taken[shown] = None
    return tuple(taken)
