"""The script that a node's shell gets on its standard input: the program for python3, else the same reads by sh.

Without python3 the shell prints sections between record separators (0x1e) instead of JSON. It has no limit on a
command's time where the node lacks `timeout`, and reads no environments of processes.
"""

import json
import shlex
from collections.abc import Iterator
from functools import cache
from importlib import resources

from fabrictune.fleet.collect.questions import COMMAND_TIMEOUT_S, MAX_FILE_BYTES, Questions, words_of

RECORD_SEPARATOR = "\x1e"
END_OF_PROGRAM = "FABRICTUNE_END_OF_PROGRAM"
_PLACE = 'json.loads(r"""{}""")'


def node_script(questions: Questions) -> str:
    """Return the script, which changes nothing and leaves nothing."""
    return (
        "if command -v python3 >/dev/null 2>&1; then\n"
        f"exec python3 -I -S - <<'{END_OF_PROGRAM}'\n{node_program(questions)}\n{END_OF_PROGRAM}\n"
        f"else\n{chr(10).join(_shell_lines(questions))}\nfi\n"
    )


def node_program(questions: Questions) -> str:
    """Return the Python program with its questions."""
    source = _source()
    assert source.count(_PLACE) == 1, "one place for the questions"
    return source.replace(_PLACE, f'json.loads(r"""{json.dumps(questions.as_json())}""")')


@cache
def _source() -> str:
    return resources.files("fabrictune.fleet.collect").joinpath("node_program.py").read_text()


def describe_reads(questions: Questions) -> Iterator[str]:
    """Yield every file pattern, link and command that the script reads or runs on a node."""
    yield from (f"read {pattern}" for pattern in questions.files)
    yield from (f"read the link {pattern}" for pattern in questions.links)
    yield from (f"run {command}" for command in questions.commands)
    if questions.environment:
        names = ", ".join(f"{name}*" for name in questions.environment)
        yield f"read of /proc/*/environ the variables {names}"


def _shell_lines(questions: Questions) -> Iterator[str]:
    yield 'PATH="$PATH:/usr/sbin:/sbin:/usr/local/sbin"; LC_ALL=C; export PATH LC_ALL'
    yield "mark() { printf '\\036%s\\n' \"$1\"; }"
    yield 'limited() { if command -v timeout >/dev/null 2>&1; then timeout "$@"; else shift; "$@"; fi; }'
    yield 'mark "node $(hostname 2>/dev/null || uname -n)"'
    for pattern in questions.links:
        yield (f'for path in {pattern}; do if [ -L "$path" ]; then mark "link $path"; readlink -f "$path"; fi; done')
    for pattern in questions.files:
        yield (
            f'for path in {pattern}; do if [ -f "$path" ]; then if [ -r "$path" ]; then mark "file $path"; '
            f'head -c {MAX_FILE_BYTES} "$path" 2>/dev/null; echo; else mark "unread $path"; fi; fi; done'
        )
    yield "netdevs=; [ -e /etc/sonic/config_db.json ] || for path in /sys/class/net/*/device; do"
    yield '[ -e "$path" ] && path=${path%/device} && netdevs="$netdevs ${path##*/}"; done'
    for command in questions.commands:
        yield _shell_command(words_of(command))
    yield "mark end"


def _shell_command(words: list[str]) -> str:
    program, line = words[0], " ".join(words)
    run = shlex.join(words).replace("'{netdev}'", '"$netdev"').replace("{netdev}", '"$netdev"')
    shown = line.replace("{netdev}", "$netdev")
    one = f'mark "command {shown}"; limited {COMMAND_TIMEOUT_S} {run} </dev/null 2>/dev/null; mark "status $?"'
    loop = f"for netdev in $netdevs; do {one}; done" if "{netdev}" in words else one
    return f"if command -v {program} >/dev/null 2>&1; then {loop}; else mark 'missing {program}'; fi"
