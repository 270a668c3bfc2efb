"""Examples: laws to begin from. `fabrictune law new` copies one; no scenario can name them."""

from pathlib import Path

from fabrictune.foundation.output_files import write_new_file

EXAMPLE = Path(__file__).with_name("cut_by_a_quarter.py")


def write_example(out: Path) -> None:
    """Write the example to a file that is not there yet; raises InputError."""
    write_new_file(out, EXAMPLE.read_bytes())
