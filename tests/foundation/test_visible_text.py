"""Text of others is shown and never obeyed."""

from fabrictune.foundation.visible_text import printable


def test_what_a_reader_would_obey_is_escaped() -> None:
    """Escape sequences, C1, bidirectional overrides and isolates, invisible characters; line ends and words stay."""
    assert printable("a\x1b[2J\x07") == "a\\x1b[2J\\x07"
    assert printable("\x85\u202e\u2066\u200b\ufeff") == "\\x85\\u202e\\u2066\\u200b\\ufeff"
    assert printable("Köln → 東京, é\nnext") == "Köln → 東京, é\nnext"
