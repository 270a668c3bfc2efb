"""One end of a measurement on a real RDMA device: what runs on the host that has it.

Nothing here needs more than Python itself, `foundation.errors` and the distribution's pyverbs, so that it runs under
the system's Python, where the rest of the project cannot be imported.
"""
