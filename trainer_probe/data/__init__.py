"""Training data: text to token files, samples in an order that can be taken up again, loaders in the background.

None of it imports torch: batches are arrays, which a worker copies to where its model computes.
"""
