"""Files beside a model: test data, tolerances, settings, descriptions for other programs."""
