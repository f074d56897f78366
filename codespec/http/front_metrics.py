"""Metrics of the HTTP front for Prometheus, with llama-server's names where it has the same figure.

Labels come from lists of the operator's or ours: routes, outcomes, names of keys, numbers of
workspaces, sources of drafts. No client makes a new one, and none has a path or text. Sources:
https://prometheus.io/docs/instrumenting/exposition_formats/ and llama.cpp, tools/server/README.md.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.openmetrics import exposition as open_metrics
from prometheus_client.registry import Collector

from codespec import __version__
from codespec.daemon.wire import StatusReport
from codespec.http.served_request import ServedRequest
from codespec.types import Source, Trace

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_TOKEN_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_TOKENS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
_OPEN_METRICS = "application/openmetrics-text"
_SANE_SOURCE = re.compile(r"[a-z0-9 _-]{1,32}")


class FrontMetrics:
    """Counts since the front's start, and the daemon's figures as they are when asked for."""

    def __init__(self) -> None:
        disable_created_metrics()  # a second series for each, which nobody here looks at
        # A registry of its own: the default one also tells of the process and of Python.
        self._registry = CollectorRegistry()
        counter = partial(Counter, registry=self._registry)
        gauge = partial(Gauge, registry=self._registry)
        histogram = partial(Histogram, registry=self._registry)
        self._read = counter("llamacpp:prompt_tokens", "Prompt tokens read, without cached ones")
        self._cached = counter("codespec_prompt_tokens_cached", "Prompt tokens that were cached")
        self._read_s = counter("llamacpp:prompt_seconds", "Seconds of reading prompts")
        self._written = counter("llamacpp:tokens_predicted", "Tokens written")
        self._written_s = counter("llamacpp:tokens_predicted_seconds", "Seconds of writing")
        self._read_rate = gauge(
            "llamacpp:prompt_tokens_seconds", "Prompt tokens read a second of reading, on average"
        )
        self._written_rate = gauge(
            "llamacpp:predicted_tokens_seconds", "Tokens written a second of writing, on average"
        )
        self._longest = gauge(
            "llamacpp:n_tokens_max", "Most tokens that a request had in the model's context"
        )
        self._n_drafts = counter(
            "llamacpp:spec_decode_num_drafts", "Passes of the target that verified a draft"
        )
        self._n_drafted = counter("llamacpp:spec_decode_num_draft_tokens", "Tokens drafted")
        self._n_accepted = counter(
            "llamacpp:spec_decode_num_accepted_tokens", "Drafted tokens that were accepted"
        )
        self._drafted = counter("codespec_drafted_tokens", "Tokens drafted, by source", ("source",))
        self._accepted = counter(
            "codespec_accepted_tokens", "Drafted tokens that were accepted, by source", ("source",)
        )
        self._passes = counter("codespec_target_passes", "Passes of the target that emitted tokens")
        self._per_pass = histogram(
            "codespec_tokens_per_pass", "Tokens that a pass of the target emitted", buckets=_TOKENS
        )
        self._queued_s = histogram(
            "codespec_queue_seconds",
            "Seconds that a text waited for the model, the way there and back included",
            buckets=_SECONDS,
        )
        self._first_s = histogram(
            "codespec_first_token_seconds", "Seconds to the first token, the wait included",
            buckets=_SECONDS,
        )  # fmt: skip
        self._token_s = histogram(
            "codespec_token_seconds",
            "Seconds a token, of those after the first pass; mean of each text",
            buckets=_TOKEN_SECONDS,
        )
        self._request_s = histogram(
            "codespec_request_seconds", "Seconds from a request for text to the end of its answer",
            buckets=_SECONDS,
        )  # fmt: skip
        self._requests = counter(
            "codespec_requests", "Requests, by route and outcome", ("route", "outcome")
        )
        self._requests_of = counter(
            "codespec_key_requests",
            "Requests with a key that fits, by its name, workspace and outcome",
            ("key", "workspace", "outcome"),
        )
        self._tokens_of = counter(
            "codespec_key_tokens_written", "Tokens written, by the name of the key", ("key",)
        )
        self._sources = set[str]()
        self._n_most = 0
        self._daemon = _DaemonFigures()
        self._registry.register(self._daemon)

    def text(self, trace: Trace, waited_s: float) -> None:
        """Count a text that was made. waited_s: seconds that are not in the trace."""
        n_read = trace.n_prompt_tokens - trace.n_prompt_cached
        written_ms = trace.ms - trace.context_ms - trace.first_token_ms
        self._read.inc(max(0, n_read))
        self._cached.inc(max(0, trace.n_prompt_cached))
        self._read_s.inc(max(0.0, trace.first_token_ms) / 1e3)
        self._written.inc(max(0, trace.n_tokens))
        self._written_s.inc(max(0.0, written_ms) / 1e3)
        self._n_most = max(self._n_most, trace.n_prompt_tokens + trace.n_tokens)
        self._n_drafts.inc(sum(depth > 0 for depth in trace.pass_depth))
        self._n_drafted.inc(max(0, trace.n_drafted))
        self._n_accepted.inc(max(0, trace.n_accepted))
        for source, stats in trace.by_source.items():
            name = self._source(source)
            self._drafted.labels(name).inc(max(0, stats.n_drafted))
            self._accepted.labels(name).inc(max(0, stats.n_accepted))
        self._passes.inc(max(0, trace.n_target_passes))
        for n_accepted in trace.pass_accepted:
            self._per_pass.observe(n_accepted + 1)
        self._queued_s.observe(max(0.0, waited_s))
        if trace.n_tokens:
            self._first_s.observe(first_token_s(trace, waited_s))
        n_first = trace.pass_accepted[0] + 1 if trace.pass_accepted else 1
        n_later = trace.n_tokens - n_first
        later_ms = written_ms - trace.finish_ms - trace.paused_ms
        if n_later > 0:
            self._token_s.observe(max(0.0, later_ms) / 1e3 / n_later)

    def _source(self, label: str) -> str:
        """The label of a source: as a model elsewhere may name any, a bounded number of them."""
        if label not in self._sources:
            if len(self._sources) >= Source.MOST or not _SANE_SOURCE.fullmatch(label):
                return Source.OTHER.label
            self._sources.add(label)
        return label

    def request(self, served: ServedRequest, *, writes: bool) -> None:
        """Count a request that is over. writes: its route is to text. Senders without a key that
        fits count by route and outcome alone."""
        self._requests.labels(served.route, served.outcome).inc()
        if served.is_known:
            if writes:
                self._request_s.observe(served.ms / 1e3)
            self._requests_of.labels(served.key, served.workspace, served.outcome).inc()
            self._tokens_of.labels(served.key).inc(served.n_written)

    def shown(self, accept: str, report: StatusReport | None) -> tuple[bytes, str]:
        """All of them in the format that is asked for, and its media type.

        accept: the request's header: OpenMetrics where it names that, else Prometheus' text.
        report: the daemon's, None where none is connected.
        """
        self._longest.set(self._n_most)
        for rate, tokens, seconds in (
            (self._read_rate, self._read, self._read_s),
            (self._written_rate, self._written, self._written_s),
        ):
            spent_s = _total(seconds)
            rate.set(_total(tokens) / spent_s if spent_s else 0.0)
        self._daemon.report = report
        kinds = {kind.partition(";")[0].strip().lower() for kind in accept.split(",")}
        if _OPEN_METRICS not in kinds:
            return generate_latest(self._registry), "text/plain; version=0.0.4; charset=utf-8"
        # All names suit each version as they are; by default colons are taken out of some.
        shown = open_metrics.generate_latest(self._registry, escaping=open_metrics.ALLOWUTF8)
        return shown, f"{_OPEN_METRICS}; version=1.0.0; charset=utf-8"

    def rows(self) -> list[tuple[str, str, str]]:
        """(name as it is shown, type, meaning) of each metric, in their order."""
        return [
            (f"{family.name}_total" if family.type == "counter" else family.name,
             family.type, family.documentation)
            for family in self._registry.collect()
        ]  # fmt: skip


def first_token_s(trace: Trace, waited_s: float) -> float:
    """Seconds from the question to the first token. waited_s: those that are not in the trace."""
    return max(0.0, waited_s) + max(0.0, trace.context_ms + trace.first_token_ms) / 1e3


def _total(counter: Counter) -> float:
    return sum(s.value for family in counter.collect() for s in family.samples)


class _DaemonFigures(Collector):
    """Figures of the daemon, which serves editors, too; zeros where none is connected."""

    def __init__(self) -> None:
        self.report: StatusReport | None = None

    def collect(self) -> Generator[Metric]:
        report = self.report or StatusReport(id=0, state="stopping")
        edits = report.next_edits
        gauges: Iterable[tuple[str, str, float]] = (
            ("llamacpp:requests_processing", "Requests at work in the daemon", report.n_running),
            ("llamacpp:requests_deferred", "Requests that wait in the daemon", report.n_waiting),
            ("codespec_ready", "1 while the daemon has its model", report.state == "ready"),
            ("codespec_daemon_clients", "Editors and fronts beside this one", report.n_clients),
            ("codespec_worker_memory_bytes", "Memory of the model's process", report.memory_bytes),
        )
        counters: Iterable[tuple[str, str, float]] = (
            (
                "codespec_daemon_requests",
                "Completions asked for, of editors, too",
                report.n_requests,
            ),
            ("codespec_worker_restarts", "Times that the model's process ended", report.n_respawns),
            ("codespec_next_edits_asked", "Questions for next edits, by editors", edits.n_asked),
            ("codespec_next_edits_proposed", "Answers with a next edit", edits.n_proposed),
            ("codespec_next_edits_made", "Next edits that their users made", edits.n_made),
            ("codespec_next_edits_dismissed", "Next edits that were dismissed", edits.n_dismissed),
        )
        for name, meaning, value in gauges:
            yield GaugeMetricFamily(name, meaning, float(value))
        for name, meaning, value in counters:
            yield CounterMetricFamily(name, meaning, float(value))
        info = GaugeMetricFamily("codespec_info", "1, with the version", labels=("version",))
        info.add_metric((__version__,), 1.0)
        yield info
