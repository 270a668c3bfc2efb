"""One end of a measurement on a real RDMA device: what runs on the host that has it.

Needs Python, `foundation/errors.py` and the distribution's pyverbs only, so that it runs under the system's Python,
where the rest of the project cannot be imported.
"""
