"""Reference engine: the compiled engine's model in plain Python, slow, for small cases.

One heap of (time, kind, id), dictionaries and lists, laws interpreted; nothing is arranged for speed. Tests hold the
compiled engine to it, table for table and byte for byte. Where the two differ, this is the one to read first, in this
order: `engine` (the parts, the events, the end), `run` (clock and heap), a packet's way (`ports`, `routes`,
`forwarding`, `buffers` or `priorities`), the hosts (`transfers`, `senders` with `loss_recovery` and `laws`,
`receivers`), and `faults`.
"""
