"""The page: whole, safe, self-contained, the same bytes each time, and of bounded size."""

import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from defusedxml import ElementTree

from fabrictune.foundation.errors import InputError, RecordError
from fabrictune.foundation.records import Columns, Finding, RunRecord, Severity
from fabrictune.foundation.visible_text import printable
from fabrictune.reports.page import TEMPLATES, build_page, write_page
from fabrictune.reports.record_view import READ_IN_PART

MakeRecord = Callable[..., RunRecord]
MakeFinding = Callable[..., Finding]

GOLDEN = Path(__file__).parents[1] / "golden" / "reports" / "two_flows.txt"
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Checker(HTMLParser):
    """Follows tags in and out, and keeps what the tests ask about."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.misplaced: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.misplaced.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def tags(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.seen if tag == name]


def read_page(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    return checker


def test_every_tag_is_closed_in_its_turn(record: RunRecord) -> None:
    """Browsers mend broken pages each in its own way; this one needs no mending."""
    checker = read_page(build_page([record, record], title="two"))
    assert (checker.misplaced, checker.open) == ([], [])


def test_every_drawing_is_well_formed_and_named(record: RunRecord) -> None:
    """Fabric, two load profiles, completion times, throughput and queues: six drawings, each with its text."""
    html = build_page([record], title="one")
    drawings = re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)
    assert len(drawings) == 6
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        assert root.get("role") == "img"
        assert root.get("aria-label")


def test_nothing_is_fetched(record: RunRecord) -> None:
    """No address, no external source, and a content security policy that forbids the rest."""
    html = build_page([record], title="one")
    checker = read_page(html)
    assert not re.search(r"https?://|//[a-z]|@import|url\(", html.replace("// Sort a table", ""))
    assert not [tag for tag, attributes in checker.seen if "src" in attributes]
    assert all(str(link["href"]).startswith("#") for link in checker.tags("a"))
    assert any(str(meta.get("content")).startswith("default-src 'none';") for meta in checker.tags("meta"))


def test_only_the_pages_own_script_and_style_may_act(record: RunRecord) -> None:
    """One script element, no handlers or styles in attributes: the hashes in the policy cover all there is."""
    checker = read_page(build_page([record], title="one"))
    assert len(checker.tags("script")) == 1
    assert not [
        name for _, attributes in checker.seen for name in attributes if name.startswith("on") or name == "style"
    ]


def test_names_from_a_record_cannot_become_markup(make_record: MakeRecord, make_finding: MakeFinding) -> None:
    """A node, a scenario, a finding, a label and a title that try to open a script stay text, also inside drawings."""
    attack = '"><script>alert(1)</script>'
    fabric = {**make_record().tables["fabric"]}
    fabric["node_name"] = np.array([attack + str(name) for name in fabric["node_name"]])
    finding = make_finding(entity=attack, evidence=(attack,), next_step=attack)
    hostile = make_record(tables={"fabric": fabric}, run={"scenario": attack, attack: attack}, findings=(finding,))
    html = build_page([hostile, hostile], title=attack, labels=[attack, attack])
    checker = read_page(html)
    assert len(checker.tags("script")) == 1
    assert (checker.misplaced, checker.open) == ([], [])
    assert "<script>alert" not in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 20


def test_names_that_turn_or_hide_text_are_shown_as_escapes(make_record: MakeRecord, make_finding: MakeFinding) -> None:
    """A name with U+202E turns its whole row round, ESC and C1 do worse: the page shows them as the terminal does."""
    attack = "\u202egnp.exe\x1b[2J\x07\x85\u2066"
    fabric = {**make_record().tables["fabric"]}
    fabric["node_name"] = np.array([attack + str(name) for name in fabric["node_name"]])
    finding = make_finding(entity=attack, evidence=(attack,), next_step=attack)
    hostile = make_record(tables={"fabric": fabric}, run={"scenario": attack, attack: attack}, findings=(finding,))
    html = build_page([hostile, hostile], title=attack, labels=[attack, attack])
    assert {letter for letter in html if not letter.isprintable()} == {"\n"}
    assert html.count(printable(attack)) > 20


def test_line_ends_and_tabs_of_a_scenario_stay_what_they_are(make_record: MakeRecord) -> None:
    """A file from Windows is text, not an attack."""
    html = build_page([make_record(run={"scenario": "seed: 1\r\n#\tlast\r\n"})], title="one")
    assert "<pre>seed: 1\n#       last\n</pre>" in html


def test_the_policy_forbids_other_bases_and_forms(record: RunRecord) -> None:
    """default-src covers neither."""
    (policy,) = [str(meta["content"]) for meta in read_page(build_page([record], title="one")).tags("meta")[1:2]]
    assert policy.endswith("; base-uri 'none'; form-action 'none'")


def test_text_for_screen_readers_does_not_widen_the_page() -> None:
    """A wide table scrolls in its frame; what is positioned in it must be so against the frame, not the page."""
    style = (TEMPLATES / "page.css").read_text()
    (scroll,) = re.findall(r"^\.scroll \{(.*?)\}", style, flags=re.M)
    assert "position: relative" in scroll


def test_long_lines_wrap_on_a_narrow_screen() -> None:
    """A summary as wide as its words is wider than a telephone; so is a device's name in a heading."""
    style = (TEMPLATES / "page.css").read_text()
    (summary,) = re.findall(r"^summary \{(.*?)\}", style, flags=re.M)
    (body,) = re.findall(r"^body \{(.*?)\}", style, flags=re.M)
    assert "width: fit-content" in summary, "no wider than there is room"
    assert "overflow-wrap: break-word" in body


def test_indicators_are_not_sorted_across_units(record: RunRecord) -> None:
    """9 Gbps, 7 ms and 5 ppm have no order: the table of indicators is not sorted, and the script leaves it so."""
    html = build_page([record], title="one")
    (table,) = re.findall(r'<section id="kpis">.*?(<table[^>]*>)', html, flags=re.DOTALL)
    assert table == '<table class="fixed">'
    assert 'document.querySelectorAll("main table:not(.fixed)")' in html


def test_a_question_that_runs_share_is_asked_once(make_record: MakeRecord) -> None:
    """Eight laws under one question: the sentence stands there once."""
    records = [make_record(run={"question": "Which law?"}) for _ in range(8)]
    other = make_record(run={"question": "Another?"})
    assert build_page(records, title="laws").count("Which law?") == 1
    html = build_page([*records, other], title="laws", labels=list("abcdefghi"))
    assert "<b>a, b, c, d and 4 more</b> Which law?" in html
    assert "<b>i</b> Another?" in html


def test_captions_hold_in_both_themes() -> None:
    """The dark theme turns the ramp of colours round: a caption that says "dark" or "pale" is wrong in one of them."""
    for module in TEMPLATES.parent.glob("*.py"):
        assert not re.search(r"[\"' ](Dark|dark|darker|darkest|light|pale)[:;,. ]", _captions(module)), module.name


def _captions(module: Path) -> str:
    """Return the text in which a module speaks to readers: without docstrings and comments."""
    code = re.sub(r'"""(.|\n)*?"""', "", module.read_text())
    return "\n".join(line.split("  # ")[0] for line in code.splitlines())


def test_the_same_record_gives_the_same_bytes(record: RunRecord) -> None:
    """No dates, no random ids, no order of hashing."""
    assert build_page([record], title="one") == build_page([record], title="one")


def test_the_text_of_two_flows_is_the_golden_one(record: RunRecord, tmp_path: Path) -> None:
    """What the page says, word for word, drawings included; style and script left out."""
    html = build_page([record], title="Two flows, one link")
    shown = read_page(re.sub(r"<(style|script)>.*?</\1>", "", html, flags=re.DOTALL)).text
    lines = (line.strip() for line in "\n".join(shown).splitlines())
    actual = tmp_path / GOLDEN.name
    actual.write_text("\n".join(line for line in lines if line) + "\n", encoding="utf-8")
    is_golden = actual.read_text(encoding="utf-8") == GOLDEN.read_text(encoding="utf-8")
    assert is_golden, f"see what changed, and keep it if it was meant: diff {GOLDEN} {actual}"


def test_findings_stand_first_and_the_worst_at_their_head(make_record: MakeRecord, make_finding: MakeFinding) -> None:
    """The reader has ten seconds: info after error after critical, whatever the order in the record."""
    findings = tuple(make_finding(severity, id=severity.value) for severity in Severity)
    text = "".join(read_page(build_page([make_record(findings=findings)], title="one")).text)
    places = [text.index(f"{severity.value} tor0:swp3") for severity in reversed(Severity)]
    assert places == sorted(places)
    assert places[-1] < text.rindex("Key performance indicators")
    assert "1 critical finding, 1 error finding, 1 warning finding, 1 info finding." in text


def test_findings_of_one_rule_are_gathered(make_record: MakeRecord, make_finding: MakeFinding) -> None:
    """Of 192 overloaded links one is told in full, 50 are listed and 141 are counted: 1 + 50 + 141 = 192."""
    findings = tuple(make_finding(entity=f"link {index}") for index in range(192))
    checker = read_page(build_page([make_record(findings=findings)], title="one"))
    text = "".join(checker.text)
    assert sum("finding" in str(one.get("class")).split() for one in checker.tags("article")) == 1
    assert "191 more of this rule" in text
    assert "141 more in findings.jsonl" in text


def test_several_runs_stand_side_by_side_with_their_ratio(make_record: MakeRecord) -> None:
    """The second run takes 100 us instead of 200: half the time, and the opening sentence says so."""
    transfers = {**make_record().tables["transfers"], "finish_ps": np.full(2, 100_000_000)}
    html = build_page(
        [make_record(), make_record(tables={"transfers": transfers})], title="two", labels=["bad", "good"]
    )
    assert "bad takes 2.00 times as long as good." in html
    ratio = r"<td[^>]*><span class=.better.>0\.50<"
    assert re.search(rf"<th scope=.row.>JCT</th><td[^>]*>200 us</td><td[^>]*>100 us</td>{ratio}", html)


def test_unfinished_transfers_are_the_first_thing_said(make_record: MakeRecord) -> None:
    """One of two transfers never finished: the page must not look as if all was well."""
    transfers = {**make_record().tables["transfers"], "finish_ps": np.array([100_000_000, -1])}
    html = build_page([make_record(tables={"transfers": transfers})], title="one")
    assert '<p class="verdict critical">two flows: 1 transfer never completed. This record does not say' in html


def test_records_of_one_name_are_told_apart(record: RunRecord) -> None:
    """Both are called "two flows" by their scenario; the second gets a number."""
    assert "two flows (2)" in build_page([record, record], title="two")


def test_missing_tables_omit_their_sections(make_record: MakeRecord) -> None:
    """An analysis without an engine has no flows and no queues; a head alone still makes a page."""
    analysis = make_record(tables={"transfers": None, "ports": None, "samples": None})
    sections = [str(section.get("id")) for section in read_page(build_page([analysis], title="one")).tags("section")]
    assert sections == ["findings", "kpis", "fabric", "loads", "collisions", "provenance"]
    bare = read_page(build_page([RunRecord(kind="sim run", run={})], title="bare"))
    assert [section.get("id") for section in bare.tags("section")] == ["findings", "provenance"]


def test_empty_tables_are_no_mistake(make_record: MakeRecord) -> None:
    """A run without transfers, samples or collisions writes tables of no rows: the page shows what is left."""
    whole = make_record().tables
    empty = {name: {key: column[:0] for key, column in whole[name].items()} for name in whole if name != "fabric"}
    checker = read_page(build_page([make_record(tables=empty)], title="empty"))
    assert (checker.misplaced, checker.open) == ([], [])
    assert "two flows: no oversubscribed links." in "".join(checker.text)


def test_measured_stands_beside_simulated() -> None:
    """Five readings of 100 to 500 us: median 300, middle half 200 to 400; simulated 150; the median ratio is 0.5."""
    comparison = {
        "operation": np.array(["all_reduce"] * 5),
        "bytes": np.full(5, 1_000_000),
        "measured_ps": np.array([5, 1, 3, 2, 4]) * 100_000_000,
        "simulated_ps": np.full(5, 150_000_000),
        "ratio": 1.5 / np.array([5, 1, 3, 2, 4]),
    }
    html = build_page([RunRecord(kind="validate local", run={}, tables={"comparison": comparison})], title="one")
    wanted = ("all_reduce", "1 MB", "5", "300 us", "200 us", "400 us", "150 us", "0.5")
    assert re.search("".join(rf"<t[dh][^>]*>{re.escape(cell)}</t[dh]>" for cell in wanted), html)


def test_write_page_puts_the_page_into_the_first_record(whole_record: RunRecord, tmp_path: Path) -> None:
    """Its default place is report.html beside run.json, and the folders' names are the runs' names."""
    folders = [whole_record.write(tmp_path / name) for name in ("badly", "well")]
    path = write_page(folders)
    assert path == tmp_path / "badly" / "report.html"
    html = path.read_text(encoding="utf-8")
    assert "<title>two flows</title>" in html
    assert re.search(r">badly</th><th[^>]*>well</th>", html)
    assert write_page(folders, tmp_path / "new" / "both.html") == tmp_path / "new" / "both.html"


def test_write_page_refuses_a_folder_without_a_record(tmp_path: Path) -> None:
    """The error is the reader's own, with its next step; no page is left behind."""
    with pytest.raises(RecordError, match=r"no run\.json, so no run record"):
        write_page([tmp_path])
    with pytest.raises(RecordError, match="no run record"):
        write_page([])
    assert list(tmp_path.iterdir()) == []


def test_write_page_says_where_it_cannot_write(whole_record: RunRecord, tmp_path: Path) -> None:
    """A folder stands where the file should go."""
    folder = whole_record.write(tmp_path / "run")
    with pytest.raises(InputError, match=rf"^{re.escape(str(tmp_path))}: cannot be written \(Is a directory\)$"):
        write_page([folder], tmp_path)


def test_a_page_reads_no_column_that_it_does_not_show(whole_record: RunRecord, tmp_path: Path) -> None:
    """A million transfers have six columns more than the page looks at; without them it is the same page."""
    folder = whole_record.write(tmp_path / "run")
    whole, part = RunRecord.read(folder), RunRecord.read(folder, columns=READ_IN_PART)
    assert set(whole.tables["transfers"]) - set(part.tables["transfers"]) >= {
        "start_ps",
        "operation",
        "acknowledged_ps",
    }
    assert build_page([part], title="one") == build_page([whole], title="one")


def test_writing_a_page_imports_no_pandas(whole_record: RunRecord, tmp_path: Path) -> None:
    """Arrow imports it where it is installed, for conversions that need none of it: 40 MB and half a second."""
    folder = whole_record.write(tmp_path / "run")
    code = "import sys; from pathlib import Path; from fabrictune.reports.page import write_page\n"
    code += "write_page([Path(sys.argv[1])]); print('pandas' in sys.modules)"
    root = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True, cwd=root)
    assert ran.stdout.strip() == "False"


def test_importing_reports_loads_no_plotting_and_no_torch() -> None:
    """Drawings are written as SVG by hand: the page needs neither matplotlib nor pandas."""
    heavy = {"matplotlib", "pandas", "torch", "numba"}
    code = f"import sys, fabrictune.reports.page; print(sorted({heavy} & set(sys.modules)))"
    root = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert ran.stdout.strip() == "[]"


def large_fabric(num_sets: int = 24, hosts_a_set: int = 64, rails: int = 8, planes: int = 32) -> Columns:
    """Return 12,288 NICs (24 sets, 64 hosts, 8 rails) and their ToRs, each linked to every spine of its rail."""
    num_hosts = num_sets * hosts_a_set
    nic = np.arange(num_hosts * rails)
    host, rail = nic // rails, nic % rails
    tor = num_hosts + host // hosts_a_set * rails + rail
    uplink = np.arange(num_sets * rails * planes)
    leaf = num_hosts + uplink // planes
    spine = num_hosts + num_sets * rails + leaf % rails * planes + uplink % planes
    ends = np.concatenate([np.stack([host, tor], 1), np.stack([leaf, spine], 1)])
    node, is_nic = ends.reshape(-1), np.zeros(ends.size, bool)
    is_nic[: 2 * len(nic) : 2] = True
    tier = np.where(node < num_hosts, 0, np.where(node < num_hosts + num_sets * rails, 1, 2))
    group = np.where(tier == 0, node // hosts_a_set, np.where(tier == 1, (node - num_hosts) // rails, -1))
    port = np.arange(ends.size)
    return {
        "port": port,
        "node": node,
        "node_name": np.array([f"node{one}" for one in node]),
        "node_kind": np.where(tier == 0, "host", "switch"),
        "tier": tier,
        "group": group,
        "port_name": np.array([f"eth{one}" for one in port]),
        "peer_port": port ^ 1,
        "rate_bps": np.full(len(port), 200 * 10**9),
        "nic": np.where(is_nic, port // 2, -1),
        "rail": np.where(is_nic, port // 2 % rails, -1),
    }


def test_no_summary_is_empty(record: RunRecord) -> None:
    """The numbers behind a figure were folded twice, the second time under a line without words."""
    curves = {
        "operation": np.array(["all_reduce"]),
        "is_in_place": np.ones(1, np.int64),
        "num_ranks": np.full(1, 16),
        "size_bytes": np.full(1, 8),
        "bus_bandwidth_bps": np.full(1, 8e9),
    }
    storm = {name: np.ones(1, np.int64) for name in ("ranks", "requests", "wall_ns", "server_cpu_ns")}
    storm["pattern"] = np.array(["legacy"])
    other = RunRecord(kind="coll bench", run={}, tables={"measurements": curves, "storms": storm})
    assert "<summary></summary>" not in build_page([record, other], title="page")


def test_runs_of_other_traffic_are_not_compared_without_a_word(make_record: MakeRecord) -> None:
    """200 us for 2 MB and 100 us for 200 KB: "twice as long" alone would blame the wrong thing."""
    small = {
        **make_record().tables["transfers"],
        "finish_ps": np.full(2, 100_000_000),
        "bytes": np.full(2, 100_000),
    }
    html = build_page([make_record(), make_record(tables={"transfers": small})], title="two", labels=["a", "b"])
    sentence = "a takes 2.00 times as long as b, but the traffic is not the same: 2 MB and 200 KB."
    assert sentence in html


def test_a_distribution_that_ends_early_says_why(make_record: MakeRecord) -> None:
    """One of two transfers never finished: the curve ends at 50 %."""
    transfers = {**make_record().tables["transfers"], "finish_ps": np.array([100_000_000, -1])}
    html = build_page([make_record(tables={"transfers": transfers})], title="one", labels=["a"])
    assert "all runs on one scale. Circles: p50. a: 1 of 2 transfers never finished.</figcaption>" in html


def test_a_run_in_which_nothing_finished_is_not_left_out(make_record: MakeRecord) -> None:
    """Beside a run that finished, its completion times are none, and the section says so."""
    transfers = {**make_record().tables["transfers"], "finish_ps": np.full(2, -1)}
    html = build_page([make_record(), make_record(tables={"transfers": transfers})], title="two", labels=["a", "b"])
    assert "<p>b: no transfer over the fabric finished.</p>" in html


def test_a_table_without_rows_ends_in_one_stop() -> None:
    """A caption that is a sentence already."""
    flaps = {name: np.zeros(0, np.int64) for name in ("down_ns", "tcp_resumes_ns", "stall_ns")}
    html = build_page([RunRecord(kind="rdma flap-job", run={"name": "job"}, tables={"flaps": flaps})], title="one")
    assert "<p>job: flaps of a real job&#39;s link.</p>" in html


def test_a_fabric_of_12288_nics_makes_a_small_page(make_record: MakeRecord) -> None:
    """36,864 ports, 100,000 flows, 200,000 samples: under a megabyte of page and 200 MB of memory at the peak."""
    fabric = large_fabric()
    num_ports, num_flows, num_samples = len(fabric["port"]), 100_000, 200_000
    assert (num_ports, int(fabric["nic"].max()) + 1) == (36_864, 12_288)
    flow, sample, port = np.arange(num_flows), np.arange(num_samples), np.arange(num_ports)
    tables = {
        "fabric": fabric,
        "transfers": {
            **dict.fromkeys(("bytes", "packets_sent"), np.full(num_flows, 1000)),
            **dict.fromkeys(("packets_retransmitted", "cnps", "ready_ps"), np.zeros(num_flows, np.int64)),
            "transfer": flow,
            "qp": flow,
            "source": flow % 12_288,
            "destination": (flow + 8) % 12_288,
            "finish_ps": 1_000_000 + flow * 7919 % 999_983,
        },
        "ports": {
            **dict.fromkeys(("dropped_packets", "ecn_marked_packets"), np.zeros(num_ports, np.int64)),
            "port": port,
            "tx_bytes": port % 4096,
            "pauses": port % 3,
            "paused_ps": port % 977,
            "max_queue_bytes": port % 9973,
        },
        "samples": {
            "time_ps": sample // 100 * 1000,
            "port": sample % 100,
            "queue_bytes": sample * 7919 % 99_991,
            "tx_bytes": sample // 100 * (sample % 100),
            "paused": sample % 2,
        },
        "loads": {
            "port": port,
            "flows": port % 5,
            "demand_bps": port % 5 * 10**11,
            "rate_bps": fabric["rate_bps"],
        },
        "collisions": {"port": flow % num_ports, "qp": flow},
    }
    record = make_record(tables=tables)
    tracemalloc.start()
    html = build_page([record, record], title="large")
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(html.encode()) < 1_000_000
    assert peak_bytes < 200_000_000


def test_a_finding_explains_its_rule(make_record: MakeRecord, make_finding: MakeFinding) -> None:
    """Meaning, evidence and thresholds on the page itself; a rule of another version has none."""
    known = build_page([make_record(findings=(make_finding(),))], title="one")
    text = "".join(read_page(known).text)
    assert "Oversubscribed link" in text
    assert "The hash puts more flows on a link than it can carry" in text
    assert "Threshold load, by default 100 %: offered load over the rate of the link above which" in text
    assert "See docs/reference/findings.md#ecmp.link-overloaded, or fabrictune rules ecmp.link-overloaded." in text
    unknown = build_page([make_record(findings=(make_finding(id="next.version"),))], title="one")
    assert "<dt>Rule</dt><dd><code>next.version</code></dd>" in unknown


def test_a_page_says_which_site_file_applied(make_record: MakeRecord) -> None:
    """A rule that is off would else look like one that found nothing; what is no site file is not shown."""
    site = {"file": "site.yaml", "sha256": "", "off": ["fabric.partition"], "severities": {}, "thresholds": {}}
    html = build_page([make_record(run={"rules": site})], title="one")
    assert "Rules of findings as set by site.yaml: fabric.partition is off." in html
    assert "Rules of findings" not in build_page([make_record(run={"rules": ["x"]})], title="one")
