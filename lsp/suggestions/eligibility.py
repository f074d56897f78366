"""The reasons to suggest nothing, in the order in which they are asked.

The whole document: settings, ignore rules, secrets. Then, for suggestions that nobody asked for: a
place where one would be in the way, and the user's habit never to accept such ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from codespec.config import CompletionSettings, Settings
from codespec.daemon.wire import StateChanged
from codespec.requests import Eagerness
from codespec.restraint import NO_RESTRAINT
from codespec.rules.exclusion import Exclusion, ExclusionRule
from codespec.rules.open_files import OpenFileRules
from codespec.syntax.unasked import why_not_here
from codespec.system.power import PowerSource
from codespec.usage.suppression import PlaceKind, kind_of_place

from ..documents import Snapshot
from .answers import Ask
from .offers import Offers
from .suggestion import Suggestion

_OF_PATTERNS = (ExclusionRule.IGNORED, ExclusionRule.EXCLUDED)
NO_LOG_PROBS = "The model gives no probabilities: completion.eagerness goes by length and habits"
"""Hint beside the state of a model that decodes by itself."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A document under the settings. why: why it gets no suggestions, whoever asks; "" where it
    does. limits: the settings, less what its workspace asks for."""

    why: str
    limits: CompletionSettings


class Eligibility:
    """The reasons under one version of the settings."""

    def __init__(self, settings: Settings, offers: Offers) -> None:
        self._limits = settings.completion
        self._rules = OpenFileRules(settings.index.exclude)
        self._offers = offers
        self._power = PowerSource(settings.daemon.power)

    def why_paused(self, uri: str, path: str, workspace: str, language_id: str) -> str:
        """Why this document gets no suggestions, whoever asks; "" where it does."""
        return self._scope(uri, path, workspace, language_id).why

    def _scope(self, uri: str, path: str, workspace: str, language_id: str) -> Scope:
        limits = self._limits
        if not limits.enabled:
            return Scope("switched off in the settings", limits)
        if language_id in limits.disabled_languages:
            return Scope(f"switched off for {language_id} in the settings", limits)
        ruling = self._rules.ruling(path or uri.rpartition("/")[2], workspace, language_id)
        why, by = _words_of(ruling.exclusion), ruling.restraint
        return Scope(why, limits if by is NO_RESTRAINT else limits.restrained(by))

    def scope_of(self, ask: Ask) -> Scope:
        """The scope of a request's document."""
        now = ask.snapshot
        return self._scope(now.uri, ask.path, ask.workspace, now.language_id)

    def why_unasked(self, ask: Ask, limits: CompletionSettings) -> str:
        """Why nothing is suggested here unasked; "" where something is. A request counts for the
        habit, which lets some through.

        limits: of `scope_of`.
        """
        now = ask.snapshot
        return _why_not_here(ask, limits) or self.why_habit(now, kind_of(now))

    def early_limits(self, ask: Ask) -> CompletionSettings | None:
        """The settings to begin with here before anybody asks; None where the model is not to.
        Counts nothing."""
        if self._power.saves:
            return None
        now, scope = ask.snapshot, self.scope_of(ask)
        limits = scope.limits
        if scope.why or limits.idle_ms or _why_not_here(ask, limits):
            return None
        is_hopeless = self._offers.is_hopeless(now.language_id, kind_of(now))
        return None if limits.adaptive and is_hopeless else limits

    @property
    def may_work_ahead(self) -> bool:
        """True if prompts may be read, and suggestions be made, before anybody asks."""
        return self._limits.prefetch and not self._power.saves

    @property
    def saves_power(self) -> bool:
        """True if nothing is done now that may be thrown away."""
        return self._power.saves

    @property
    def linger_ms(self) -> float:
        """Milliseconds that a generation may go on beyond its deadline."""
        return 0.0 if self._power.saves else self._limits.linger_ms

    def why_habit(self, now: Snapshot, kind: PlaceKind) -> str:
        """The habit against suggestions of this kind; "" for none. A request counts."""
        return self._offers.why_not(now.language_id, kind) if self._limits.adaptive else ""

    def eagerness(self, suggestion: Suggestion, limits: CompletionSettings) -> Eagerness | None:
        """Certainty that this suggestion has to have, which nobody asked for; None: any. Lines that
        are shown already stay.

        limits: of `scope_of`.
        """
        at = suggestion.base
        found = self._offers.eagerness(limits.eagerness, at.language_id, kind_of(at))
        if found is None or suggestion.lines is None:
            return found
        return replace(found, n_shown=suggestion.lines.text.count("\n") + 1)

    def remarked(self, change: StateChanged) -> StateChanged:
        """The daemon's state, with what a setting cannot do there."""
        is_blind = change.state == "ready" and not change.has_log_probs
        if not is_blind or self._limits.eagerness == "high":
            return change
        return msgspec.structs.replace(change, hint=NO_LOG_PROBS)


def _words_of(found: Exclusion | None) -> str:
    """An exclusion in words for a status; "" for none."""
    if found is None:
        return ""
    return f"file {found.text}" if found.rule in _OF_PATTERNS else found.text


def _why_not_here(ask: Ask, limits: CompletionSettings) -> str:
    """The text of the setting or rule against an unasked suggestion at this place; "" for none."""
    now = ask.snapshot
    path = ask.path or now.uri.rpartition("/")[2]
    why = why_not_here(
        limits, now.prefix, now.suffix, path, now.language_id, after_deletion=now.after_deletion
    )
    return why.text if why is not None else ""


def kind_of(now: Snapshot) -> PlaceKind:
    """The kind of the place, by which habits are counted."""
    return kind_of_place(now.prefix, now.suffix)
