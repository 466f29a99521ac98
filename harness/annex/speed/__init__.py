"""Is a new build slower? Both builds interleaved in one job, with a promised rate of errors."""
