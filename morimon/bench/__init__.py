"""The built-in EP job: real ranks of torchrun that dispatch and combine tokens, verified and timed round by round.

`python -m torch.distributed.run --standalone --nproc-per-node 8 -m morimon.bench --help`

The only room with torch, except that `morimon.bench.options` needs none: whoever starts the job checks its options
there, before a rank exists.
"""
