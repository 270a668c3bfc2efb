"""One trace processor for all tests: it takes most of a second to start."""

from collections.abc import Iterator

import pytest

from tests.observability.timeline.trace_processor import TraceProcessor, trace_processor


@pytest.fixture(scope="session")
def processor() -> Iterator[TraceProcessor]:
    """Give the trace processor."""
    with trace_processor() as process:
        yield process
