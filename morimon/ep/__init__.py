"""Pure expert-parallel arithmetic: routing, token counts, bandwidths, kernel families."""
