"""`python -m fabrictune` is the command `fabrictune`.

Python itself looks for this package in the current directory first; nothing after it is imported from there.
"""

from fabrictune.foundation.children import forget_current_directory

forget_current_directory()

from fabrictune.cli.main import main  # noqa: E402  # the search path is safe now

main()
