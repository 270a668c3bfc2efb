"""The page on audits says what is true: its commands run, on the clean site and on one with a fault."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.fleet.collect.collection import Collection, NodeState, write_collection
from fabrictune.fleet.transport.answer import State
from tests.fleet.site import Site, clean_site

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "audit-a-cluster.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the page's blocks of a language, without the list's indent."""
    found = re.findall(r"^   ```(\w*)\n(.*?)^   ```$", PAGE, re.DOTALL | re.MULTILINE)
    return [re.sub(r"^   ", "", block, flags=re.MULTILINE) for name, block in found if name == language]


def write_site(site: Site, folder: Path) -> None:
    readings = site.readings()
    states = [NodeState(name=reading.name, state=State.COLLECTED) for reading in readings]
    write_collection(Collection(readings=readings, states=states), folder)


def test_its_commands_say_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The dry run asks nobody; the clean site passes, with the site's own rules too; a fault is found and answered."""
    monkeypatch.chdir(tmp_path)
    Path("known_hosts").touch()
    (rules,) = blocks("yaml")
    Path("site.yaml").write_text(rules)
    write_site(clean_site(), Path("site"))
    dry_run, audit, with_rules, timeouts = (shlex.split(command)[1:] for command in blocks("sh"))
    assert run(dry_run) == 0
    out = capsys.readouterr().out
    assert "BatchMode=yes gpu3 sh -s < script" in out
    assert "  run mlnx_qos -i {netdev}\n" in out
    assert run(audit) == 0
    assert "42 checks: 40 passed, 2 not run" in capsys.readouterr().out
    assert run(with_rules) == 0
    assert run(timeouts) == 0
    out = capsys.readouterr().out
    assert "link down for 5 s: the job goes on\nlink down for 300 s: ended by: queue pair fails\n" in out
    faulty = clean_site()
    faulty.replace("gpu2", "mlnx_qos -i eth0", "0   0   0   1", "0   0   0   0")
    write_site(faulty, Path("site"))
    assert run(audit) == 1
    out = capsys.readouterr().out
    assert "error: gpu2 eth0: pfc is none; expected 3 (switch.pfc of leaf1 Ethernet8) [audit.pfc-on-one-side]" in out
    assert "    gpu2: mlnx_qos -i eth0:17\n" in out
    assert "    mlnx_qos -i eth0 --pfc 0,0,0,1,0,0,0,0\n" in out
