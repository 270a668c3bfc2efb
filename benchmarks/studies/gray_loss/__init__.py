"""Gray loss under spraying: how often a planted lossy link is named, and how often a healthy one."""
