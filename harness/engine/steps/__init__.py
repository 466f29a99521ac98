"""What a cell does after its facts: comparison without options, fixed sizes, further tries."""
