"""The file of a model and what its graph shows, on which the judging of its results depends."""
