"""What is published: cells, facts, verdicts, records, runs, faults and traces."""
