"""Storms against real servers: what was counted is what the closed forms say."""

import pytest

from fabrictune.collectives.startup.operation_count import count_operations
from fabrictune.collectives.startup.storm.experiment import StormSpec, run_storms
from fabrictune.collectives.startup.storm.patterns import PATTERNS, Pattern, all_steps
from fabrictune.foundation.errors import InputError

SPEC = StormSpec(num_ranks=(32, 48), tp=4, pp=2)


@pytest.fixture(params=PATTERNS, ids=lambda pattern: str(pattern.name))
def pattern(request: pytest.FixtureRequest) -> Pattern:
    """Each pattern in turn."""
    found: Pattern = request.param
    return found


@pytest.mark.parametrize("num_ranks", SPEC.num_ranks)
def test_the_closed_form_is_what_is_counted_in_memory(pattern: Pattern, num_ranks: int) -> None:
    """Where ranks ask again and again, or several see the full count, there may be more, and never less."""
    plan = SPEC.plan(num_ranks)
    counted, expected = count_operations(all_steps(pattern, plan)), pattern.operations(plan)
    if pattern.is_exact:
        assert counted == expected
    else:
        assert all(counted[name] >= number for name, number in expected.items())


def test_requests_on_real_connections_are_those_of_the_closed_form(pattern: Pattern, has_redis: None) -> None:
    """Every emulated rank ends, and the requests that went out are the operations of the pattern."""
    (result,) = run_storms(StormSpec(num_ranks=(32,), tp=4, pp=2, patterns=(pattern,)))
    if pattern.is_exact:
        assert result.num_requests == result.num_requests_expected
    else:
        assert result.num_requests >= result.num_requests_expected
    assert result.server_cpu_s > 0


def test_the_requests_of_a_known_job_worked_out_by_hand() -> None:
    """2,048 ranks, TP 8, PP 8, DP 32: 832 groups, and so 833 barriers of 2,048 ranks, of two requests each.

    A pipeline has two groups, one for each way. The exchange: 833 identifiers written, and read by 2,047 + 256 * 7 +
    2 * 256 * 7 + 64 * 31 = 9,407 ranks.
    """
    plan = StormSpec().plan(2048)
    legacy = PATTERNS[0].operations(plan)
    assert (legacy["Add"], legacy["Set"], legacy["Get"]) == (833 * 2048 * 2, 833, 9407)


def test_sizes_that_are_no_job_are_refused() -> None:
    """TP 8 and PP 8 divide into 256 ranks, and not into 100."""
    with pytest.raises(InputError) as error:
        StormSpec(num_ranks=(256, 100, 0))
    assert [mistake.found for mistake in error.value.mistakes] == ["100 ranks", "0 ranks"]
    assert error.value.mistakes[0].allowed == "multiples of 64 (TP 8, PP 8)"
