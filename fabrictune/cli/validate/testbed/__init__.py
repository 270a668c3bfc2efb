"""`fabrictune validate testbed`: a miniature cluster in network namespaces of this machine."""
