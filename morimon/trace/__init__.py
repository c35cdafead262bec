"""Pure trace analysis: read, pair, iterations, lanes, statistics, merge, write."""
