"""Figures for users, and energy counters as Linux and NVIDIA's library have them."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from codespec.engine.energy import EnergyMeter
from codespec.engine.measures import compare, measures
from codespec.requests import Completion, CompletionRequest
from codespec.types import SourceStats, Trace

TRACE = Trace(
    n_tokens=9,
    n_target_passes=4,
    n_drafted=6,
    n_accepted=5,
    by_source={"prefix": SourceStats(4, 4), "suffix": SourceStats(2, 1)},
    pass_ms=[4.0, 1.0, 2.0, 3.0],
    pass_depth=[0, 4, 2, 0],
    pass_accepted=[0, 4, 1, 0],
    ms=20.0,
    context_ms=3.0,
    finish_ms=1.0,
    first_token_ms=8.0,
)


def test_the_figures_of_a_trace():
    m = measures(TRACE)
    assert m.time_to_first_token == 11.0
    assert m.time_per_token == 1.0  # 8 ms for the 8 tokens after the first
    assert m.tokens_per_pass == 2.25
    assert m.accepted_at == (1.0, 0.5, 1.0, 1.0)
    assert m.accepted_of == {"prefix": 1.0, "suffix": 0.5}
    assert m.pass_percentiles[0] == 2.5
    assert 3.0 < m.pass_percentiles[1] <= m.pass_percentiles[2] <= 4.0


def test_an_empty_completion_has_figures_too():
    m = measures(Trace())
    assert m.tokens_per_pass == m.time_per_token == 0
    assert m.accepted_at == ()


@pytest.fixture
def rapl(tmp_path):
    folder = tmp_path / "powercap"
    for name in ("intel-rapl:0", "intel-rapl:0:0", "intel-rapl:1"):
        (folder / name).mkdir(parents=True)
        (folder / name / "max_energy_range_uj").write_text("1000000000\n")
        (folder / name / "energy_uj").write_text("900000000\n")
    return folder


def test_energy_of_processors(rapl):
    meter = EnergyMeter(rapl, nvml="none-such")
    assert meter.sources == ("rapl",)
    (rapl / "intel-rapl:0" / "energy_uj").write_text("902500000\n")
    (rapl / "intel-rapl:0:0" / "energy_uj").write_text("999000000\n")  # inside the first
    (rapl / "intel-rapl:1" / "energy_uj").write_text("100000000\n")  # started again at its range
    assert meter.joules() == pytest.approx(2.5 + 200.0)
    meter.start()
    assert meter.joules() == 0


def test_a_counter_of_the_whole_machine_counts_no_processor_twice(rapl):
    for zone, name in ((0, "package-0"), (1, "psys")):
        (rapl / f"intel-rapl:{zone}" / "name").write_text(f"{name}\n")
    meter = EnergyMeter(rapl, nvml="none-such")
    for zone in (0, 1):
        (rapl / f"intel-rapl:{zone}" / "energy_uj").write_text("902500000\n")
    assert meter.joules() == pytest.approx(2.5)


def test_no_counters_no_figure(tmp_path):
    meter = EnergyMeter(tmp_path / "missing", nvml="none-such")
    assert meter.sources == ()
    assert meter.joules() is None


NVML = """
static unsigned long long used = 5000;
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) {
  *h = (void *)(unsigned long)(i + 1); return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *h, unsigned long long *mj) {
  *mj = used += 1000 * (unsigned long)h; return 0; }
"""


@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("cc"), reason="no C compiler")
def test_energy_of_gpus(tmp_path):
    """Against a library with NVML's names and types: every reading adds a joule, and two."""
    (tmp_path / "nvml.c").write_text(NVML)
    library = tmp_path / "libnvml.so"
    command = ["cc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "nvml.c")]
    subprocess.run(command, check=True)
    meter = EnergyMeter(tmp_path / "missing", nvml=str(library))
    assert meter.sources == ("nvml",)
    # A reading is (x + 1) + (x + 1 + 2) joules: the next one is 6 more.
    assert meter.joules() == pytest.approx(6.0)


def test_both_ways_are_run_in_turn():
    asked = []

    def complete(request):
        asked.append(request)
        plain = request.drafters == ()
        return Completion(
            request.insertion("x"), trace=Trace(ms=30.0 if plain else 20.0, n_tokens=3)
        )

    request = CompletionRequest("a", deadline_ms=50, drafters=("lookup",))
    result = compare(complete, request, n_repeats=3, meter=EnergyMeter(nvml="none-such"))
    assert result.speedup == 1.5
    assert result.same_text
    assert [r.drafters for r in asked] == [(), ("lookup",)] * 4
    assert {r.deadline_ms for r in asked} == {0.0}


def test_texts_that_part_are_told():
    def complete(request):
        text = "x" if request.drafters == () else "y"
        return Completion(request.insertion(text), trace=Trace(ms=1.0))

    assert not compare(complete, CompletionRequest("a"), 1).same_text
