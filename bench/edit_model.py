"""The next-edit model as a proposer, asked as the daemon asks it: alone, or where lookups find
nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from functools import lru_cache

import msgspec

from codespec.backends.registry import open_vocabulary, target_of
from codespec.config import Settings
from codespec.documents.edit_history import LineChange
from codespec.edits.base import CursorLine, LineEdit, Proposer, Texts
from codespec.edits.dismissals import AnyDismissed
from codespec.edits.formats.base import NextEditFormat
from codespec.engine.editable_texts import WorkspaceTexts
from codespec.engine.known_people import KnownPeople
from codespec.engine.local import LocalEngine
from codespec.engine.model_edits import model_edits
from codespec.engine.next_edit_model import form_of_model, format_of
from codespec.engine.next_edits import EditMoment
from codespec.engine.turns import in_one_turn
from codespec.errors import InputError
from codespec.languages.registry import language_of
from codespec.next_edit import NextEditRequest, NextEdits
from codespec.requests import CompletionRequest

from .parent_texts import SessionTexts

_STEP = "Give the file of a next-edit model: codespec models recommend."


def check(settings: Settings) -> None:
    """Check that the model that settings name is a next-edit model. Raises: InputError;
    ModelError, ConfigError for one that cannot be read."""
    with closing(open_vocabulary(target_of(settings.model))) as model:
        form = form_of_model(model.info, model.special_tokens)
        if not isinstance(form, NextEditFormat):
            raise InputError(f"{model.info.name} is no next-edit model that is known here", _STEP)


@lru_cache(1)
def loaded(settings: Settings) -> LocalEngine:
    """The engine over the next-edit model that settings name as their target, its passes measured;
    the same one for the same settings. Raises: ModelError, ConfigError."""
    edits = msgspec.structs.replace(settings.edits, model=settings.model.target)
    engine = LocalEngine(msgspec.structs.replace(settings, edits=edits))
    engine.settle()
    return engine


class ModelProposer:
    """Proposes what a next-edit model writes about the lines around the cursor, which is behind the
    line of the last change. No deadline ends an answer.

    Raises: InputError for the engine of another model.
    """

    def __init__(self, engine: LocalEngine) -> None:
        form = format_of(engine)
        if form is None:
            raise InputError(f"{engine.info.name} is no next-edit model that is known here", _STEP)
        self._engine, self._form = engine, form

    def propose(
        self,
        changes: Sequence[LineChange],
        texts: Texts,
        cursor: CursorLine,
        dismissed: Collection[AnyDismissed] = (),
    ) -> list[LineEdit]:
        """See `Proposer.propose`; edits of the cursor's document alone."""
        text = texts.open.get(cursor.path)
        if text is None or not changes:
            return []
        behind = sum(len(line) + 1 for line in text.split("\n")[: cursor.line + 1]) - 1
        root, language = SessionTexts.ROOT, language_of(cursor.path)
        request = NextEditRequest(text, behind, cursor.path, root, language, bar=0.0)
        opened = WorkspaceTexts(texts.open, cursor.path, None, lambda path: "")
        moment = EditMoment(request, changes, opened, cursor, dismissed)
        newest = dict.fromkeys(change.path for change in reversed(changes))
        others = [(path, texts.open[path]) for path in newest if path in texts.open]
        others = [(path, text) for path, text in others if path != cursor.path]
        document = CompletionRequest(text, path=cursor.path, workspace=root)
        knows = KnownPeople(document, self._engine.tokenizer, lambda: [text for _, text in others])
        found: list[LineEdit] = []

        def kept(moment: EditMoment, edits: Sequence[LineEdit]) -> NextEdits:
            found.extend(edits)
            return NextEdits()

        asking = model_edits(
            self._engine,
            self._form,
            moment,
            others,
            knows,
            kept,
            lambda: False,
            lambda has_progressed: False,
        )
        in_one_turn(asking)
        return [edit for edit in found if (edit.path, edit.old, edit.new) not in dismissed]


class RepeatsThenModel:
    """Proposes as editors are answered: what lookups find, and where none of that is likely enough
    to be shown, what a next-edit model writes.

    bar: least chance of what is shown.
    """

    def __init__(self, repeats: Proposer, model: Proposer, bar: float) -> None:
        self._repeats, self._model, self._bar = repeats, model, bar

    def propose(
        self,
        changes: Sequence[LineChange],
        texts: Texts,
        cursor: CursorLine,
        dismissed: Collection[AnyDismissed] = (),
    ) -> list[LineEdit]:
        """See `Proposer.propose`."""
        asked = changes, texts, cursor, dismissed
        found = self._repeats.propose(*asked)
        if any(
            edit.chance >= self._bar and (edit.path, edit.old, edit.new) not in dismissed
            for edit in found
        ):
            return found
        return self._model.propose(*asked)
