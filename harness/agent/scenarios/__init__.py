"""Scenarios, one module each, found by name: the job names the module.

A module has a function ``play``, which takes a ``JobRun``. It fills the job's result as a plain run does, and
reports its observations in ``facts``.
"""
