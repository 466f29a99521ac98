"""The cells of a report and their columns: counts, precision, errors, and where each cell stands."""
