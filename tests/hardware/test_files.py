"""Hardware profiles from files: bundled ones, bases, round trips, and every mistake at once."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.hardware.files import (
    FOLDER,
    bundled_profile,
    find_profile,
    load_profile,
    profile_names,
    profile_of_device,
    write_profile,
)
from fabrictune.hardware.sources import kind_of


def mistakes_of(path: Path, text: str) -> str:
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        load_profile(path)
    return str(refused.value).replace(f"{path}", path.name)


@pytest.mark.parametrize("name", profile_names())
def test_every_value_of_a_bundled_profile_has_a_source_of_a_kind(name: str) -> None:
    """Each file is a profile of its own name."""
    profile = bundled_profile(name)
    assert profile.name == name
    assert profile.description
    assert all(kind_of(profile.source_of(key)) for key in profile.values())


@pytest.mark.parametrize("name", profile_names())
def test_a_profile_that_is_written_is_read_as_it_was(name: str, tmp_path: Path) -> None:
    """Units are exact: 989.4 TFLOP/s is not rounded to 989."""
    profile, path = bundled_profile(name), tmp_path / "copy.yaml"
    assert load_profile(write_profile(profile, path)) == replace(profile, base="")
    assert path.read_text().startswith(f"name: {name}\ndescription: ")


def test_a_name_is_found_in_any_case() -> None:
    """`--gpu H100` is what users had."""
    assert find_profile("H100") is bundled_profile("h100")


def test_a_device_has_the_profile_with_the_longest_part_of_its_name() -> None:
    """As torch.cuda.get_device_name() has it."""
    for device, name in (
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA GB200", "gb200"),
    ):
        assert profile_of_device(device) is bundled_profile(name)
    assert profile_of_device("NVIDIA A100-SXM4-40GB") is bundled_profile("a100-40gb")
    assert profile_of_device("NVIDIA GeForce RTX 3060") is None


def test_a_base_gives_what_a_file_does_not_set(tmp_path: Path) -> None:
    """And its sources; what is set has the file's."""
    path = tmp_path / "ours.yaml"
    path.write_text(
        "name: ours\nbase: h100\nnetwork: {nic_rate: 200 Gbps}\n"
        "sources: {network.nic_rate: 'measured: our lab'}\nuncertainties: {network: 2 %}\n"
    )
    ours, base = load_profile(path), bundled_profile("h100")
    assert (ours.gpu, ours.nvlink, ours.host) == (base.gpu, base.nvlink, base.host)
    assert ours.network == replace(base.network, nic_rate_bps=200e9)
    assert ours.source_of("network.nic_rate") == "measured: our lab"
    assert ours.source_of("network.latency") == base.source_of("network.latency")
    assert ours.uncertainty_of("network.latency") == 0.02
    assert ours.uncertainty_of("gpu.gemm.best") == 0.05


def test_a_section_s_source_is_that_of_what_the_file_sets_in_it(tmp_path: Path) -> None:
    """The rest of the section keeps its base's."""
    path = tmp_path / "ours.yaml"
    path.write_text("name: ours\nbase: h100\nnetwork: {nic_rate: 200 Gbps}\nsources: {network: 'measured: our lab'}\n")
    ours = load_profile(path)
    assert ours.source_of("network.nic_rate") == "measured: our lab"
    assert ours.source_of("network.latency") == bundled_profile("h100").source_of("network.latency")


def test_a_kind_ends_with_a_colon() -> None:
    """A sentence that begins with the word is none."""
    assert kind_of("measured: here") == "measured"
    assert kind_of("measured") == kind_of("guessed: here") == ""


def test_what_a_file_sets_over_its_base_needs_a_source(tmp_path: Path) -> None:
    """The base's would be a lie."""
    text = "name: ours\nbase: a100\ngpu: {peak: 300 TFLOP/s}\nsources: {}\n"
    assert mistakes_of(tmp_path / "ours.yaml", text) == (
        "ours.yaml:4: sources: no source for gpu.peak\n"
        "  next: add its source, or one of its section: `gpu.peak: 'measured: by whom, where'`"
    )


def test_a_profile_without_a_peak_is_refused(tmp_path: Path) -> None:
    """Its place is the section that lacks it."""
    text = (FOLDER / "a100.yaml").read_text().replace("  peak: 312 TFLOP/s\n", "")
    assert mistakes_of(tmp_path / "ours.yaml", text) == ("ours.yaml:4: gpu.peak: missing\n  next: add the key 'peak'")


def test_a_rate_above_the_peak_is_refused(tmp_path: Path) -> None:
    """And a memory faster than its data sheet."""
    text = "name: ours\nbase: a100\ngpu: {gemm: {best: 400 TFLOP/s}}\nsources: {gpu: 'measured: here'}\n"
    assert mistakes_of(tmp_path / "ours.yaml", text) == (
        "ours.yaml:3: gpu.gemm.best: 400 TFLOP/s\n"
        "  allowed: at most the peak, 312 TFLOP/s\n"
        "  next: give the peak of that GPU"
    )
    text = "name: ours\nbase: a100\ngpu: {memory: {best: 3 TB/s}}\nsources: {gpu: 'measured: here'}\n"
    assert mistakes_of(tmp_path / "ours.yaml", text) == (
        "ours.yaml:3: gpu.memory.best: 3 TB/s\n  allowed: at most 2.039 TB/s, the data sheet's"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("network: {latency: -5 us}", "ours.yaml:3: network.latency: '-5 us': a duration is not negative\n"),
        ("network: {achieved: 120 %}", "ours.yaml:3: network.achieved: '120 %': a share lies between 0 and 1\n"),
        ("gpu: {gemm: {half_depth: -1.0}}", "ours.yaml:3: gpu.gemm.half_depth: -1\n  allowed: 0 or more"),
        ("gpu: {launch: 5}", "ours.yaml:3: gpu.launch: '5': a duration needs its unit\n"),
        ("host: {num_gpus: 0}", "ours.yaml:3: host.num_gpus: 0\n  allowed: above 0"),
        ("gpu: {peek: 1 TFLOP/s}", "ours.yaml:3: gpu.peek: unknown key 'peek'\n  did you mean 'peak'?"),
        ("gpu: {peak: 312}", "ours.yaml:3: gpu.peak: '312': a rate of operations needs its unit\n"),
        ("base: h10", "ours.yaml:3: "),
        ("sources: [a]", "ours.yaml:3: sources: ['a'] where a mapping of keys to values is needed"),
        ("uncertainties: {network: 300 %}", "ours.yaml:3: uncertainties: '300 %': a share lies between 0 and 1\n"),
        ("gpu: 7", "ours.yaml:3: gpu: 7 where a mapping of keys to values is needed"),
    ],
)
def test_a_mistake_has_its_place_and_what_is_allowed(text: str, expected: str, tmp_path: Path) -> None:
    """Each stands in the third line of a file."""
    base = "" if text.startswith("base") else "base: a100"
    assert mistakes_of(tmp_path / "ours.yaml", f"name: ours\n{base}\n{text}\n").startswith(expected)


def test_a_source_has_a_kind_and_a_key(tmp_path: Path) -> None:
    """Both mistakes of one mapping are told."""
    sources = "{network.latency: here, network.latncy: 'measured: here'}"
    told = mistakes_of(tmp_path / "o.yaml", f"name: o\nbase: a100\nnetwork: {{latency: 3 us}}\nsources: {sources}\n")
    assert told == (
        "o.yaml:4: sources: network.latency has 'here'\n"
        "  allowed: a kind, a colon and a text; kinds: data sheet, measured, fitted, derived, assumed\n"
        "o.yaml:4: sources: 'network.latncy' is no key that is set\n"
        "  did you mean 'network.latency'?\n"
        "  allowed: keys and sections of this profile: gpu.peak, gpu.gemm, network"
    )


def test_an_unknown_name_lists_those_that_are_known() -> None:
    """With the nearest."""
    with pytest.raises(InputError) as refused:
        find_profile("h1000", where="--hardware")
    assert str(refused.value).startswith(
        "--hardware: 'h1000': no hardware profile of this name, and no file\n  did you mean 'h100'?\n  allowed: a100,"
    )
