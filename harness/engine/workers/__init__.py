"""Workers and their queues: which process may start, what it gets, and how long it may take."""
