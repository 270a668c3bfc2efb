"""Redaction of secrets in lines of text: what follows a name that sounds like a secret, and what looks like one.

A name that sounds like a secret is one with `password`, `token`, `secret`, `credential` or a kind of key in it; its
value goes up to the next space, comma or quote. Passwords in addresses, signatures in their queries, bearer tokens,
private keys, and keys of well-known makers (AWS, GitHub, Hugging Face, Slack, OpenAI) go wherever they are.

Left out: secrets that look like any other word.
"""

import re

REDACTED = "(redacted)"
_NAME = (
    r"(?:passw(?:or)?d|passphrase|secret|credential|token(?!s|ize|izer|_?id)|api[_-]?key|access[_-]?key|"
    r"auth[_-]?key|private[_-]?key|signature)[\w.-]{0,40}"
)
_PATTERNS = (
    (re.compile(r"(://[^\s/:@]{0,200}:)[^\s/@]{1,500}@"), rf"\1{REDACTED}@"),
    (re.compile(r"(?i)(\b(?:bearer|basic)\s{1,4})[\w.~+/=-]{8,4000}"), rf"\1{REDACTED}"),
    (re.compile(rf"(?i)({_NAME}[\"']?\s{{0,4}}[=:]\s{{0,4}}[\"']?)[^\s,;&\"']{{1,4000}}"), rf"\1{REDACTED}"),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), REDACTED),
    (re.compile(r"\b(?:gh[pousr]_|hf_|xox[abpr]-|sk-|github_pat_)[\w-]{16,255}"), REDACTED),
    (re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\w+/=\s-]{0,8000}"), REDACTED),
)


def redact_secrets(text: str) -> str:
    """Return text with its secrets replaced by `(redacted)`; meant for lines, since its time grows with length."""
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text
