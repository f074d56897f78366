"""Fields of other servers that would change the text or what is told of it, and are not honoured: a
request that asks for one is refused by its name, and none is passed over in silence.

Sources: the OpenAI API reference, https://platform.openai.com/docs/api-reference; vLLM's
OpenAI-compatible server, https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html;
SGLang, https://docs.sglang.ai/basic_usage/sampling_params.html;
llama.cpp, tools/server/README.md. Fields that change no text (`user`, `metadata`, `store`,
`cache_prompt`, `id_slot`, ...) are not named here, and are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from codespec.http.field_error import FieldError

_OFF = (False,)

_HARMLESS: Mapping[str, tuple[object, ...]] = {
    # how many answers
    "n": (1,),
    "best_of": (1,),
    "use_beam_search": _OFF,
    "length_penalty": (1,),
    # told beside the text
    "echo": _OFF,
    "logprobs": _OFF,  # 0 asks for those of what was said
    "top_logprobs": (0,),
    "n_probs": (0,),
    "prompt_logprobs": _OFF,
    "return_tokens": _OFF,
    "return_token_ids": _OFF,
    # which tokens
    "logit_bias": (),
    "allowed_token_ids": (),
    "bad_words": (),
    "logits_processors": (),
    "lora": (),
    "typical_p": (1,),
    "tfs_z": (1,),
    "top_n_sigma": (-1, 0),
    "top_a": (0,),
    "xtc_probability": (0,),
    "dry_multiplier": (0,),
    "mirostat": (0,),
    "mirostat_mode": (0,),
    "dynatemp_range": (0,),
    "adaptive_target": (-1,),
    "min_keep": (0, 1),
    "no_repeat_ngram_size": (0,),
    "guided_regex": (),
    "guided_decoding_backend": ("auto",),
    "guided_whitespace_pattern": (),
    "structural_tag": (),
    "regex": (),  # SGLang's
    "ebnf": (),
    "custom_logit_processor": (),
    "lora_path": (),
    "grammar_lazy": _OFF,
    "grammar_triggers": (),
    "preserved_tokens": (),
    # where it ends
    "min_tokens": (0,),
    "ignore_eos": _OFF,
    "stop_token_ids": (),
    "include_stop_str_in_output": _OFF,
    "stop_regex": (),
    "no_stop_trim": _OFF,
    "skip_special_tokens": (True,),
    # what is read
    "system_prompt": (),
    "safe_prompt": _OFF,
    "prompt_mode": (),
    "session_params": (),
    "prompt_embeds": (),
    "truncate_prompt_tokens": (-1,),
    "image_data": (),
    "multimodal_data": (),
    "images": (),
    "documents": (),
    "tools": (),
    "functions": (),
    "tool_choice": ("auto", "none"),  # between none
    "function_call": ("auto", "none"),
    "chat_template": (),
    "chat_template_kwargs": (),
    "add_generation_prompt": (True,),
    "continue_final_message": _OFF,
    "modalities": (["text"],),
    "audio": (),
    "web_search_options": (),
    "reasoning_effort": ("none",),
    "thinking_token_budget": (),
    "verbosity": ("medium",),
}
"""Field -> the values that ask for nothing, beside null and what is empty."""


def refuse_unsupported(fields: Mapping[str, Any], but: Iterable[str] = ()) -> None:
    """Refuse fields that would not be honoured. but: fields of the body that are.

    Raises: FieldError.
    """
    honoured = set(but)
    for field, harmless in _HARMLESS.items():
        if field not in fields or field in honoured:
            continue
        value = fields[field]
        is_harmless = any(_is(value, other) for other in harmless)
        if not is_harmless and value not in ("", [], {}, None):
            raise FieldError(field, f"{field} is not supported; leave it out")


def _is(value: object, other: object) -> bool:
    """True for the same value; in Python True is 1, in JSON it is not."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)
