"""Text of others as readers see it: what a terminal or a browser would obey is shown as its escape."""


def printable(text: str) -> str:
    """Return text with control, bidirectional and invisible characters as escapes; line ends stay."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else letter.encode("unicode_escape").decode()
        for letter in text
    )
