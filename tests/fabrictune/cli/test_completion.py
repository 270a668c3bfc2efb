"""Completion: real shells complete commands, options and choices with the script that is printed for them."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fabrictune.cli.main import run

PROGRAM = Path(sys.executable).parent / "fabrictune"


def completed(script: str, words: str, shell: str = "bash") -> list[str]:
    """Return what bash's function offers for the last of the words."""
    text = f"""
        {script}
        PATH={shlex.quote(str(PROGRAM.parent))}:$PATH
        COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
        _fabrictune_completion fabrictune
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run([shell, "-c", text], capture_output=True, text=True, check=True)
    assert not done.stderr, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_commands_options_and_choices(capsys: pytest.CaptureFixture[str]) -> None:
    """After a word that is no command there is nothing to complete, and no traceback."""
    assert run(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert completed(script, "fabrictune ecmp ana") == ["analyze"]
    assert completed(script, "fabrictune sim run x.yaml --fail-o") == ["--fail-on"]
    assert completed(script, "fabrictune sim run x.yaml --fail-on cr") == ["critical"]
    assert completed(script, "fabrictune nothing an") == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_scripts_of_other_shells_are_read_by_them(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "_FABRICTUNE_COMPLETE" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_another_shell_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "tcsh"]) == 2
    assert "allowed: bash, zsh, fish" in capsys.readouterr().err
