"""The commands `history` and `query`."""

from pathlib import Path

from harness.cli.command_type import Command, CommandGroup
from harness.cli.options import Argument, GivenArguments, Options, RunCommand
from harness.cli.shared_options import ONE_OBJECT, RUN, RUN_FOLDERS, as_json, store_folder


def _database(options: Options) -> Argument[Path]:
    text = "default: history.sqlite"
    return options.value("--db", "FILE", text, Path, Path("history.sqlite"))


def _declare_add(options: Options) -> RunCommand:
    runs = options.many("RUN", RUN, Path)
    database = _database(options)

    def run(given: GivenArguments) -> int:
        from harness.annex.store.command_history import add

        return add(given[runs], given[database])

    return run


def _declare_show(options: Options) -> RunCommand:
    runs = options.one_or("RUNS", f"{RUN_FOLDERS}; default: the database of --db", Path, None)
    which = options.either()
    target = which.value("--target", "GLOB", "only these targets", str)
    cell = which.value("--cell", "ID", "every result of one cell", str)
    how = options.either()
    out = how.path("--out", "DIR", "write a page with charts into this folder")
    json = as_json(how, ONE_OBJECT)
    store = store_folder(options)
    database = _database(options)

    def run(given: GivenArguments) -> int:
        from harness.annex.store.command_history import show_history

        return show_history(
            given[runs],
            database=given[database],
            store=given[store],
            target=given[target],
            cell=given[cell],
            out=given[out],
            as_json=given[json],
        )

    return run


def _declare_query(options: Options) -> RunCommand:
    runs = options.one("RUNS", RUN_FOLDERS, Path)
    text = "one SELECT, in the SQL of DuckDB; views: records, runs, targets, environments"
    sql = options.one("SQL", text, str)
    style = options.choice("--format", ("table", "csv", "json", "parquet"), "default: table", "table")
    out = options.path("--out", "FILE", "write a file instead of printing")
    store = store_folder(options)

    def run(given: GivenArguments) -> int:
        from harness.annex.store.command_query import query

        return query(given[runs], given[sql], style=given[style], out=given[out], store=given[store])

    return run


HISTORY = CommandGroup(
    name="history",
    summary="keep runs in a database; show trends and failing cells",
    aim="compare",
    commands=(
        Command(
            name="add",
            summary="add runs; runs that are already there stay",
            declare=_declare_add,
            exit_codes={
                0: "the runs are there",
                1: "the same, but cells count as not run: parts of a run disagree",
                2: "an argument or a run is wrong",
            },
        ),
        Command(
            name="show",
            summary="show trends, errors near their limit, and failing cells",
            declare=_declare_show,
        ),
    ),
)
QUERY = Command(
    name="query",
    summary="answer an SQL query about the results of many runs",
    aim="compare",
    declare=_declare_query,
)
