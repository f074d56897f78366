"""Fields that hold an output to a form: a grammar, choices, or JSON of a schema, by the names of
OpenAI, vLLM and llama-server."""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec

from codespec import limits
from codespec.http.body_document import BodyDocument
from codespec.http.field_error import FieldError
from codespec.http.json_schemas import normal_schema
from codespec.limits import Name, NotRead, at_most, is_deeper

_ANY_OBJECT = {"type": "object"}

Choices = Annotated[list[limits.Stop], at_most(limits.CHOICES)]


class _JsonSchema(msgspec.Struct):
    """The part of a `response_format` that OpenAI names so."""

    schema: NotRead = None
    name: Name | None = ""
    strict: bool | None = None


class _ResponseFormat(msgspec.Struct):
    """OpenAI's `response_format`; schema: where llama-server's clients put one."""

    type: Name | None = "text"
    json_schema: _JsonSchema | None = None
    schema: NotRead = None


class _StructuredOutputs(msgspec.Struct):
    """vLLM's `structured_outputs`."""

    json: NotRead = None
    json_object: bool | None = None
    choice: Choices | None = None
    grammar: limits.Grammar | None = None
    regex: NotRead = None
    structural_tag: NotRead = None


class ConstraintFields(BodyDocument, kw_only=True):
    """Fields of a body that constrain its output; one at most is in use."""

    grammar: limits.Grammar = ""
    json_schema: NotRead = None
    guided_grammar: limits.Grammar = ""  # vLLM's names, the older ones
    guided_json: NotRead = None
    guided_choice: Choices | None = None
    structured_outputs: _StructuredOutputs | None = None
    response_format: _ResponseFormat = msgspec.field(default_factory=_ResponseFormat)

    def constraint(self) -> tuple[str, str]:
        """(GBNF grammar, JSON schema in its normal form) that hold the output; "" for none.

        Raises: FieldError.
        """
        asked = [*self._grammars(), *self._schemas()]
        if len(asked) > 1:
            names = f"{asked[0][0]} and {asked[1][0]}"
            raise FieldError(asked[1][0], f"{names} both ask for a form", "Send one of them.")
        for field, grammar, schema in asked:
            return (grammar, "") if grammar else ("", normal_schema(field, schema))
        return "", ""

    def _grammars(self) -> list[tuple[str, str, Any]]:
        outputs = self.structured_outputs or _StructuredOutputs()
        for name in ("regex", "structural_tag"):
            if getattr(outputs, name):
                why = f"structured_outputs: {name} is not supported"
                raise FieldError("structured_outputs", why, "Leave it out.")
        return [
            (field, grammar, None)
            for field, grammar in (
                ("grammar", self.grammar),
                ("guided_grammar", self.guided_grammar),
                ("guided_choice", _grammar_of(self.guided_choice)),
                ("structured_outputs", outputs.grammar),
                ("structured_outputs", _grammar_of(outputs.choice)),
            )
            if grammar
        ]

    def _schemas(self) -> list[tuple[str, str, Any]]:
        outputs, form = self.structured_outputs or _StructuredOutputs(), self.response_format
        kind = form.type or "text"
        if kind not in ("text", "json_object", "json_schema"):
            why = "response_format needs the type text, json_object or json_schema"
            raise FieldError("response_format", why, "Change it, or leave it out.")
        of_form = None
        if kind != "text":
            of_form = form.json_schema.schema if form.json_schema else form.schema
            if of_form is None and kind == "json_schema":
                why = "response_format: json_schema needs a schema"
                raise FieldError("response_format", why, "Send one, or the type json_object.")
            of_form = of_form or _ANY_OBJECT
        found = (
            ("json_schema", self.json_schema),
            ("guided_json", _schema_in("guided_json", self.guided_json)),
            ("structured_outputs", _schema_in("structured_outputs", outputs.json)),
            ("structured_outputs", _ANY_OBJECT if outputs.json_object else None),
            ("response_format", of_form),
        )
        # An empty one of llama-server's asks for nothing.
        return [(field, "", schema) for field, schema in found if schema not in (None, {}, "")]


def _schema_in(field: str, said: object) -> object:
    """A schema that may be given as text."""
    if not isinstance(said, str):
        return said
    try:
        schema = msgspec.json.decode(said) if said else None
    except (msgspec.DecodeError, RecursionError):
        raise FieldError(field, f"{field} needs to be a JSON schema", "Send an object.") from None
    if is_deeper(schema):
        why = f"{field} has more than {limits.DEPTH} levels of lists and objects"
        raise FieldError(field, why, "Ask for a simpler one.")
    return schema


def _grammar_of(choices: list[str] | None) -> str:
    """The grammar of one of these texts."""
    said = (json.dumps(choice, ensure_ascii=False) for choice in choices or [])
    return f"root ::= {' | '.join(said)}" if choices else ""
