"""The built-in expert-parallel job, run by torchrun; the only room that imports torch."""
