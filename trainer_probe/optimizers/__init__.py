"""Optimizers on shards of flat buffers: AdamW and LAMB, clipping across the axes, learning rate, loss scale.

`spec`, `segments` and `schedule` do without torch.
"""
