"""The session of `make team`: a language server and a daemon whose model is on the engine."""

from __future__ import annotations

from codespec_bench.maintainers.team_session import N_KEYS, typed_session
from codespec_bench.places import places_in

from .conftest import REPOSITORY


def test_somebody_types_with_the_engine_as_model(port: int) -> None:
    places = [p for p in places_in(REPOSITORY, 4, ("line",), per_file=1) if len(p.truth) > N_KEYS]
    session = typed_session(REPOSITORY, places, f"http://127.0.0.1:{port}/v1")
    assert session.backend == "vLLM"
    assert (session.n_places, session.n_keys) == (len(places), N_KEYS * len(places))
    assert session.n_suggestions > 0
    assert session.median_ms > 0
