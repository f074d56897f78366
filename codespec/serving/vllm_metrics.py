"""The drafter's counters on vLLM's own page of metrics, /metrics.

The drafter counts in a worker's process, and the page is made in that of the HTTP API. A middleware
asks the worker each time that the page is asked for; where it does not answer in time, the page has
the counters that it gave last.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from codespec.serving.counter_samples import CounterSeries, series_of

log = logging.getLogger("vllm.codespec")

ROUTE = "/metrics"
METHOD = "codespec_stats"
"""Method of the worker extension that gives the counters."""
WAIT_S = 1.0

Ask = Callable[[], Awaitable[Any]]


class DraftCounters:
    """A collector of prometheus_client: the counters as the worker gave them last.

    ask: gives the counters of each worker, None where it has no drafter; None: there is nobody to
    ask yet.
    """

    def __init__(self) -> None:
        self.ask: Ask | None = None
        self._series: list[CounterSeries] = []
        self._is_warned = False

    def show(self, app: Any) -> None:
        """Put the counters on the page of metrics of an application."""
        from prometheus_client import REGISTRY

        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            log.warning(
                "codespec: /metrics lacks the drafter's counters, as several processes serve it:"
                " they are in this log each minute"
            )
            return
        REGISTRY.register(self)  # pyright: ignore[reportArgumentType]
        app.add_middleware(FreshCounters, counters=self)

    async def renew(self) -> None:
        """Ask the worker, for `WAIT_S` at most. Raises nothing that it may raise."""
        if self.ask is None:
            return
        try:
            told = await asyncio.wait_for(self.ask(), WAIT_S)
            # Workers of one engine draft the same; the first one's drafts are taken.
            counted = [stats for stats in told if isinstance(stats, Mapping)]
            self._series = list(series_of(counted[0])) if counted else []
        except Exception as e:
            if not self._is_warned:
                self._is_warned = True
                log.warning(
                    "codespec: /metrics lacks the drafter's counters: %s; vLLM needs"
                    " --worker-extension-cls codespec.serving.vllm_worker.DrafterWorker",
                    type(e).__name__,
                )

    def collect(self) -> Iterable[Any]:
        """The metrics, in prometheus_client's form."""
        from prometheus_client.core import CounterMetricFamily

        for series in self._series:
            family = CounterMetricFamily(series.name, series.help, labels=series.labels)
            for labels, value in series.values.items():
                family.add_metric(labels, value)
            yield family

    def describe(self) -> Iterable[Any]:
        """Nothing: the registry would ask for the counters before there are any."""
        return ()


class FreshCounters:
    """Middleware: renews counters before the page of metrics is made."""

    def __init__(self, app: Any, counters: DraftCounters) -> None:
        self._app = app
        self._counters = counters

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == ROUTE:
            await self._counters.renew()
        await self._app(scope, receive, send)
