"""A law of the user's own: its mistakes are told with their lines, and it is compared with the others fairly."""

from tests.first_hour.pages import first_block
from tests.first_hour.session import Session

LAW = first_block("add-a-law", "python")
SCENARIO = first_block("add-a-law", "yaml")


def changed(old: str, new: str) -> str:
    """Return the law with one mistake."""
    assert LAW.count(old) == 1
    return LAW.replace(old, new)


def test_a_law_is_written_mended_and_compared(session: Session) -> None:
    """A misspelt field, an endless loop and a division by zero end at once with the line; then the law runs."""
    session.write("my_incast.yaml", SCENARIO)
    run = "fabrictune sim run my_incast.yaml --trust-code --quiet"
    session.write("my_law.py", changed("        flow.num_marked = 0\n", "        flow.num_marcked = 0\n"))
    misspelt = session.command(run, exit_code=2)
    assert "my_law.py:" in misspelt
    assert "num_marcked" in misspelt
    session.write(
        "my_law.py",
        changed("    flow.num_marked += is_ecn_marked\n", "    while flow.num_marked < 10:\n        pass\n"),
    )
    endless = session.command(run, exit_code=2)
    assert "my_law.py:21" in endless
    session.write("my_law.py", changed("flow.num_marked += is_ecn_marked", "flow.num_marked = 0 // is_ecn_marked"))
    divided = session.command(run, exit_code=2)
    assert "my_law.py:21" in divided
    session.write("my_law.py", LAW)
    assert "record: runs/my-incast" in session.command(run)
    compared = session.command(
        'fabrictune sim sweep my_incast.yaml --vary "law=./my_law.py;dcqcn;dcqcn_firmware;swift"'
        " --objective makespan --objective queue.max --objective fairness --seeds 2 --trust-code"
    )
    for law in ("./my_law.py", "dcqcn", "dcqcn_firmware", "swift"):
        assert f" {law} " in compared
    assert "the paper's of 2015; NICs run another form, dcqcn_firmware" in compared
    assert "that of ConnectX firmware; the paper's of 2015 is dcqcn" in compared
