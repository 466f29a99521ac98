"""Floor 2: targets, processes, scheduling and judging; from a plan to a stream of events.

`Engine` runs cells in agent processes; `CellPipeline` judges each outcome and makes its record.
"""
