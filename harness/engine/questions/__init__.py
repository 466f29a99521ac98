"""What a judgement lacks: questions to the CPU EP, and the cells that wait for them."""
