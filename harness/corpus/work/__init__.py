"""The work of one run of a model, estimated from its graph and the shapes of its inputs.

Nothing is run and nothing is timed, so that the figure is the same on every machine.
"""
