"""Pure log reading: lines of mori, DeepEP and torchrun -> events."""
