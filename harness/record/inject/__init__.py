"""The folder that `ep-harness record` puts on PYTHONPATH of the application."""
