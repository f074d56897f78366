"""The forms of answers over HTTP, for the description of the API at /openapi.json.

Tests hold every answer of the real server against them, and no answer may have more. Fields of
streams are those of whole answers, with less in each event.
"""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import NotRequired, TypedDict


class Drafted(TypedDict):
    """Tokens of one source of drafts."""

    draft_n: int
    draft_n_accepted: int


class TimingsAnswer(TypedDict):
    """Figures by llama.cpp's names, and ours: passes_n, paused_ms and drafts. Times are
    milliseconds."""

    cache_n: int
    prompt_n: int
    prompt_ms: float
    prompt_per_token_ms: float
    prompt_per_second: float
    predicted_n: int
    predicted_ms: float
    predicted_per_token_ms: float
    predicted_per_second: float
    draft_n: int
    draft_n_accepted: int
    passes_n: int
    paused_ms: float
    drafts: dict[str, Drafted]


class Told(TypedDict):
    """Fields that all texts have. reason: for people, where there is no text; reason_key: for
    programs. truncated: True if a part of the prompt was left out."""

    truncated: NotRequired[bool]
    timings: NotRequired[TimingsAnswer]
    reason: NotRequired[str]
    reason_key: NotRequired[str]
    warnings: NotRequired[list[str]]


class PredictedTokens(TypedDict):
    accepted_prediction_tokens: int
    rejected_prediction_tokens: int


class Usage(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    completion_tokens_details: NotRequired[PredictedTokens]


Finish = Literal["stop", "length"]


class TextChoice(Told):
    text: str
    index: int
    logprobs: None
    finish_reason: Finish | None


class AnswerMessage(TypedDict):
    role: Literal["assistant"]
    content: str


class ChatChoice(TypedDict):
    index: int
    message: AnswerMessage
    logprobs: None
    finish_reason: Finish | None


class TextCompletion(Told):
    """OpenAI's answer to a prompt, or to several."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[TextChoice]
    usage: Usage


class ChatCompletion(Told):
    """OpenAI's answer to a chat, and Mistral's to a prompt with a suffix."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage


class TabbyChoice(TypedDict):
    index: int
    text: str


class TabbyAnswer(Told):
    """Tabby's answer to segments."""

    id: str
    choices: list[TabbyChoice]
    mode: str


class ModelMeta(TypedDict):
    """Figures by llama-server's names."""

    n_ctx: int
    n_ctx_train: int
    n_params: int
    size: int


class ModelCapabilities(TypedDict):
    """Abilities of a model by Mistral's names."""

    completion_chat: bool
    completion_fim: bool
    function_calling: bool
    fine_tuning: bool
    vision: bool


class ModelRow(TypedDict):
    """A model that completes, or the next-edit model beside it."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    max_model_len: NotRequired[int]
    meta: NotRequired[ModelMeta]
    type: Literal["base"]
    capabilities: ModelCapabilities
    max_context_length: NotRequired[int]


class ModelList(TypedDict):
    object: Literal["list"]
    data: list[ModelRow]


class GenerationSettings(TypedDict):
    """The settings by which a request is answered."""

    n_ctx: NotRequired[int]
    n_predict: int
    max_tokens: int
    seed: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    frequency_penalty: float
    presence_penalty: float
    samplers: list[str]
    grammar: str
    stop: list[str]
    stream: bool


class LlamaAnswer(Told):
    """llama-server's answer. With `response_fields` it has these alone."""

    index: int
    content: str
    stop: bool
    model: str
    tokens_predicted: int
    tokens_evaluated: int
    tokens_cached: int
    has_new_line: bool
    generation_settings: GenerationSettings
    prompt: str
    stop_type: Literal["word", "limit", "eos"]
    stopping_word: str


class PieceAnswer(TypedDict):
    """A token's text; its bytes where it is no text."""

    id: int
    piece: str | list[int]


class TokensAnswer(TypedDict):
    tokens: list[int | PieceAnswer]


class ContentAnswer(TypedDict):
    content: str


class PromptAnswer(TypedDict):
    prompt: str


class Slot(TypedDict):
    """The one slot there is."""

    id: int
    n_ctx: int
    speculative: bool
    is_processing: bool
    params: GenerationSettings


class Modalities(TypedDict):
    vision: bool
    audio: bool


class PropsAnswer(TypedDict):
    default_generation_settings: Slot
    total_slots: int
    model_alias: str
    model_path: str
    chat_template: str
    modalities: Modalities
    endpoint_slots: bool
    endpoint_props: bool
    endpoint_metrics: bool
    build_info: str
    is_sleeping: bool


class HealthAnswer(TypedDict):
    status: Literal["ok"]
    warning: NotRequired[str]


class TabbyVersion(TypedDict):
    build_date: str
    build_timestamp: str
    git_sha: str
    git_describe: str


class HealthOfBoth(HealthAnswer):
    """llama-server's and Tabby's."""

    model: str
    chat_model: str | None
    device: str
    arch: str
    cpu_info: str
    cpu_count: int
    cuda_devices: list[str]
    version: TabbyVersion


class ServerSetting(TypedDict):
    disable_client_side_telemetry: bool


class Details(TypedDict):
    parent_model: str
    format: str
    family: str
    families: list[str]
    parameter_size: str
    quantization_level: str


class OllamaModel(TypedDict):
    name: str
    model: str
    modified_at: str
    size: int
    digest: str
    details: Details


class OllamaModels(TypedDict):
    models: list[OllamaModel]


class RunningModel(TypedDict):
    name: str
    model: str
    size: int
    digest: str
    details: Details
    expires_at: str
    size_vram: int
    context_length: int


class RunningModels(TypedDict):
    models: list[RunningModel]


class ShownModel(TypedDict):
    parameters: str
    template: str
    details: Details
    model_info: dict[str, Any]
    capabilities: list[Literal["completion", "insert"]]
    modified_at: str


class OllamaVersion(TypedDict):
    version: str


class OllamaAnswer(Told):
    """Fields of Ollama's answers; durations are nanoseconds."""

    model: str
    created_at: str
    done: bool
    done_reason: Literal["stop", "length", "load", "unload"]
    total_duration: NotRequired[int]
    load_duration: NotRequired[int]
    prompt_eval_count: NotRequired[int]
    prompt_eval_duration: NotRequired[int]
    eval_count: NotRequired[int]
    eval_duration: NotRequired[int]


class Generated(OllamaAnswer):
    response: str


class Chatted(OllamaAnswer):
    message: AnswerMessage


class WorkspacesAnswer(TypedDict):
    """Names of the server's workspaces, which requests may name."""

    workspaces: list[str]


class ErrorDetail(TypedDict):
    message: str
    type: str
    param: str | None
    code: int


class Error(TypedDict):
    """An error in OpenAI's form, which is llama-server's, too. param: the field it is about."""

    error: ErrorDetail


class OllamaError(TypedDict):
    error: str


class MistralError(ErrorDetail):
    object: Literal["error"]
    detail: str


class RefusedMessage(TypedDict):
    index: int
    message: AnswerMessage
    finish_reason: Literal["error"]


class ChatError(Error):
    """An error of a chat, which is an answer that says so, too."""

    choices: list[RefusedMessage]
