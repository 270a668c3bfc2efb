"""Training data: text to token files, samples in a resumable order, loaders in the background.

Without torch: batches are arrays, which a worker copies to its device.
"""
