"""Trace: the error of a target by depth of a model, made at a node or inherited by it.

The command is ``ep-harness trace``; what it writes is in ``harness.core.records.trace``.
"""
