"""Redaction of secrets in lines."""

import time

import pytest

from fabrictune.foundation.redaction import redact_secrets
from tests.patience import patience


@pytest.mark.parametrize(
    ("line", "redacted"),
    [
        ("redis://me:hunter2@store:6379/0 failed", "redis://me:(redacted)@store:6379/0 failed"),
        ("redis://:hunter2@store", "redis://:(redacted)@store"),
        ("AWS_SECRET_ACCESS_KEY=abc/def+g rest", "AWS_SECRET_ACCESS_KEY=(redacted) rest"),
        ('{"api_key": "s3cr3t", "rank": 3}', '{"api_key": "(redacted)", "rank": 3}'),
        ("password: hunter2", "password: (redacted)"),
        ("Authorization: Bearer abcdefgh.ijkl", "Authorization: Bearer (redacted)"),
        ("GET /x?X-Amz-Signature=00ff&part=1", "GET /x?X-Amz-Signature=(redacted)&part=1"),
        ("key AKIAABCDEFGHIJKLMNOP used", "key (redacted) used"),
        ("hf_abcdefghijklmnopqrstuvwxyz is it", "(redacted) is it"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc", "(redacted)"),
    ],
)
def test_secrets_go(line: str, redacted: str) -> None:
    """The rest of the line stays, so that it still says what happened."""
    assert redact_secrets(line) == redacted


@pytest.mark.parametrize(
    "line",
    [
        "step 12: loss 2.31, 4096 tokens: 1.2e6 tokens/s",
        "token_ids: 17 tokenizer=gpt2",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "connect to tcp://10.0.0.1:29500 failed",
    ],
)
def test_other_lines_stay(line: str) -> None:
    """What a training says of itself is no secret."""
    assert redact_secrets(line) == line


@pytest.mark.parametrize(
    "line", ["a" * 100_000, "password" * 12_500, "://" * 33_000, "token=" * 16_000, "-_." * 33_000]
)
def test_hostile_lines_cost_little(line: str) -> None:
    """100 kB that almost match take less than a second."""
    limit_s, began_s = patience(1), time.process_time()
    redact_secrets(line)
    assert time.process_time() - began_s < limit_s
