from harness.report.runs.environment import environment_table
from harness.report.runs.merged_run import RunEnvironment


def test_environments_are_flattened_side_by_side() -> None:
    table = environment_table(
        [
            RunEnvironment(
                target="npu",
                run="r",
                fingerprint={
                    "python": "3.11",
                    "devices": [{"name": "x"}],
                    "plugin": None,
                    "providers": ["A", "B"],
                },
            ),
            RunEnvironment(
                target="gpu",
                run="r",
                fingerprint={"python": "3.11", "plugin": {"version": 2, "loaded": True}, "env": {}},
            ),
        ]
    )
    assert table.columns == ("npu", "gpu")
    assert [(row.key, row.values, row.same) for row in table.rows] == [
        ("python", ("3.11", "3.11"), True),
        ("devices[0].name", ("x", ""), False),
        ("providers", ("A, B", ""), False),
        ("plugin.version", ("", "2"), False),
        ("plugin.loaded", ("", "yes"), False),
    ]
