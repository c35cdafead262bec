"""The supervisor of one job: launch, socket, output tails, samplers, recorder, discovery."""
