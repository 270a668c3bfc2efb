"""The Python interface, one module a subject; `import fabrictune as ft` gives every name in it."""
