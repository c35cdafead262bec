"""Expert-parallel arithmetic: configuration, routing, token counts, bytes and bandwidths; pure numpy."""
