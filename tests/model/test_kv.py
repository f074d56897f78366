"""States kept of a KV cache: other documents' states, quantised ones, models that cannot be cut.

Logits after any history of requests must be those of a fresh cache.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

import gguf
import numpy as np
import pytest

from codespec.backends.base import CancelledError
from codespec.backends.llama import LlamaTarget, load_model
from codespec.backends.llama.states import States
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec.types import NO_DRAFT, Draft

N_CTX = 512


def never():
    return False


def logits(target, tokens):
    """(how many tokens were reused, logits after the last token)."""
    n_reused = target.prefill(tokens, never)
    row = target.decode(tokens[target.n_cached :], NO_DRAFT).row(0).copy()
    target.keep([])
    assert target.cached.tolist() == tokens.tolist()
    return n_reused, row


@pytest.fixture(scope="module")
def base():
    model = load_model(bundled(BUNDLED_TARGET), n_gpu_layers=0)
    yield model
    model.close()


@pytest.fixture(scope="module")
def texts(base):
    """Three documents' tokens."""
    from codespec.backends.llama import LlamaTokenizer

    library = Path(sysconfig.get_paths()["stdlib"])
    tokenizer = LlamaTokenizer(base)
    names = ("argparse.py", "tarfile.py", "statistics.py")
    return [tokenizer.encode((library / name).read_text()[:4000])[:300] for name in names]


@pytest.fixture
def make(base):
    made = []

    def target(model=base, **options):
        made.append(LlamaTarget(model, n_ctx=N_CTX, n_threads=1, **options))
        return made[-1]

    yield target
    for one in made:
        one.close()


def test_documents_take_turns_without_reading_again(make, texts):
    target, fresh = make(), make(max_saved_bytes=0)
    for tokens in texts:
        assert logits(target, tokens)[0] <= 1
    for n in (280, 290, 300):
        for tokens in texts:
            n_reused, row = logits(target, tokens[:n])
            assert n_reused >= 270
            fresh.prefill(np.array([1, 1], np.int32), never)
            np.testing.assert_allclose(row, logits(fresh, tokens[:n])[1], atol=0.3)
            # Compare the choice, too: the widths of the passes differ.
            assert row.argmax() in np.argsort(logits(fresh, tokens[:n])[1])[-2:]


def test_short_documents_take_turns_without_reading_again(make, texts):
    """A file that was begun just now, while others ask for short texts."""
    target = make()
    short = [tokens[:30] for tokens in texts]
    for tokens in short:
        logits(target, tokens[:-1])
    for tokens in short:
        assert logits(target, tokens)[0] == 29


def test_a_restored_state_is_the_state(make, texts):
    target = make()
    first, other = texts[0], texts[1]
    logits(target, first[:-1])
    # The next token, with the cache as it was and as it came back.
    expected = target.decode(first[-1:], NO_DRAFT).row(0).copy()
    target.keep([])
    logits(target, other)
    n_reused, row = logits(target, first)
    assert n_reused == len(first) - 1
    np.testing.assert_array_equal(row, expected)


def test_the_state_wanted_next_may_be_the_oldest_of_a_full_budget(make, texts):
    """Putting the document left aside makes room; what is about to be restored is not the room."""
    target, fresh = make(), make(max_saved_bytes=0)
    first, second, third = texts
    logits(target, first)
    logits(target, second)
    one = target._saved.n_bytes
    target = make(max_saved_bytes=int(2.5 * one))
    for document in (first, second, third, first, second):
        n_reused, row = logits(target, document)
        assert np.array_equal(row, logits(fresh, document)[1])
    assert n_reused == len(second) - 1
    assert 0 < target._saved.n_bytes <= 2.5 * one


def test_no_budget_nothing_kept(make, texts):
    target = make(max_saved_bytes=0)
    for _ in range(2):
        for tokens in texts:
            assert logits(target, tokens)[0] <= 1


def test_what_would_not_be_kept_is_not_copied(make, texts, monkeypatch):
    """A large model's cache is a gigabyte: to copy it for nothing takes memory and a second."""
    target = make(max_saved_bytes=1000)
    monkeypatch.setattr(States, "read", lambda self: pytest.fail("copied"))
    for tokens in texts:
        logits(target, tokens)


def test_a_quantised_cache_is_smaller_and_says_nearly_the_same(make, texts):
    plain, quantised = make(), make(kv_type="q8_0")
    n_same = 0
    sizes = []
    for target in (plain, quantised):
        logits(target, texts[0])
        target._put_aside()
        sizes.append(target._saved.n_bytes)
    assert sizes[1] < 0.65 * sizes[0]
    for n in range(200, 300, 10):
        a, b = (logits(t, texts[0][:n])[1] for t in (plain, quantised))
        n_same += int(a.argmax() == b.argmax())
    assert n_same >= 8


def recurrent_model(path):
    """A tiny Mamba with random weights and the bundled model's vocabulary."""
    rng = np.random.default_rng(3)
    n_embd, n_inner, n_state, n_dt, n_conv, n_layers = 64, 128, 16, 8, 4, 2
    source = gguf.GGUFReader(bundled(BUNDLED_TARGET))
    writer = gguf.GGUFWriter(path, "mamba")
    writer.add_name("tiny-mamba")
    writer.add_context_length(2048)
    writer.add_embedding_length(n_embd)
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_block_count(n_layers)
    writer.add_ssm_conv_kernel(n_conv)
    writer.add_ssm_inner_size(n_inner)
    writer.add_ssm_state_size(n_state)
    writer.add_ssm_time_step_rank(n_dt)
    writer.add_layer_norm_rms_eps(1e-5)
    for name, field in source.fields.items():
        if name.startswith("tokenizer."):
            kinds = field.types
            writer.add_key_value(
                name, field.contents(), kinds[0], kinds[1] if len(kinds) > 1 else None
            )
    n_vocab = len(source.fields["tokenizer.ggml.tokens"].contents())

    def add(name, *shape, scale=0.2, offset=0.0):
        weights = rng.standard_normal(shape) * scale + offset
        writer.add_tensor(name, weights.astype(np.float32))

    add("token_embd.weight", n_vocab, n_embd, scale=1.0)
    add("output_norm.weight", n_embd, scale=0.0, offset=1.0)
    for i in range(n_layers):
        add(f"blk.{i}.attn_norm.weight", n_embd, scale=0.0, offset=1.0)
        add(f"blk.{i}.ssm_in.weight", 2 * n_inner, n_embd)
        add(f"blk.{i}.ssm_conv1d.weight", n_inner, n_conv)
        add(f"blk.{i}.ssm_conv1d.bias", n_inner)
        add(f"blk.{i}.ssm_x.weight", n_dt + 2 * n_state, n_inner)
        add(f"blk.{i}.ssm_dt.weight", n_inner, n_dt)
        add(f"blk.{i}.ssm_dt.bias", n_inner)
        decay = -np.exp(rng.standard_normal((n_inner, n_state)) * 0.3)
        writer.add_tensor(f"blk.{i}.ssm_a", decay.astype(np.float32))
        add(f"blk.{i}.ssm_d", n_inner)
        add(f"blk.{i}.ssm_out.weight", n_embd, n_inner)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def mamba(tmp_path_factory):
    path = tmp_path_factory.mktemp("mamba") / "mamba.gguf"
    recurrent_model(path)
    model = load_model(path, n_gpu_layers=0)
    yield model
    model.close()


def test_a_recurrent_model_types_on_from_its_checkpoints(make, mamba, texts):
    target = make(mamba)
    tokens = texts[0]
    logits(target, tokens[:250])
    rng = np.random.default_rng(5)
    for n in (251, 252, 260, 240, 262, 263):  # keys typed, some taken back
        typed = tokens[:n].copy()
        typed[-1] = rng.integers(10, 5000)  # what was typed is not what was suggested
        n_reused, row = logits(target, typed)
        assert n_reused >= 192
        fresh = make(mamba, max_saved_bytes=0)
        np.testing.assert_allclose(row, logits(fresh, typed)[1], rtol=1e-3, atol=1e-3)


def test_a_recurrent_model_reads_what_was_typed_alone(make, mamba, texts):
    """Whatever was drafted and generated in between."""
    target, tokens = make(mamba), texts[0]
    for n in range(200, 210):
        n_reused, row = logits(target, tokens[:n])
        assert n_reused >= n - 1 or n == 200
        said = tokens[:n]
        for wrong in (5, 6, 7):
            said = np.append(said, np.int32(wrong))
            tail = said[target.n_cached :]
            target.decode(tail, Draft.chain([wrong, wrong, wrong]))
            target.keep([0])
            assert target.n_cached == len(said) - len(tail)
        np.testing.assert_allclose(row, logits(make(mamba), tokens[:n])[1], rtol=1e-3, atol=1e-3)


def test_a_recurrent_model_switches_documents(make, mamba, texts):
    target = make(mamba)
    for tokens in texts:
        logits(target, tokens)
    for tokens in texts:
        assert logits(target, tokens)[0] >= 256


def test_a_cancelled_recurrent_prompt_leaves_nothing_wrong(make, mamba, texts):
    target, fresh = make(mamba, n_batch=64), make(mamba, max_saved_bytes=0, n_batch=64)
    expected = logits(fresh, texts[0])[1]
    for n_calls in (1, 2, 3):
        calls = iter(range(n_calls))
        with pytest.raises(CancelledError):
            target.prefill(texts[0], lambda calls=calls: next(calls, None) is None)
        np.testing.assert_allclose(logits(target, texts[0])[1], expected, rtol=1e-3, atol=1e-3)
        target.prefill(np.array([1, 1], np.int32), never)
        target._saved = type(target._saved)(1 << 20, can_truncate=False)


@pytest.mark.parametrize("options", [{}, {"max_saved_bytes": 0}, {"kv_type": "q8_0"}, "mamba"])
def test_what_is_held_comes_back_to_the_last_digit(make, mamba, texts, options):
    """Whatever others do meanwhile, also with the beginning of the same text, or without budget."""
    target = make(mamba) if options == "mamba" else make(**options)
    first, *others = texts

    def go_on(tokens):
        row = target.decode(tokens, NO_DRAFT).row(0).copy()
        target.keep([])
        return row

    target.prefill(first[:200], never)
    go_on(first[target.n_cached : 200])
    start = target.checkpoint()
    expected = [go_on(first[n : n + 1]) for n in range(200, 230)]
    target.restore(start)
    for n, row in zip(range(200, 230), expected, strict=True):
        held = target.checkpoint()
        for other in (others[n % 2], first[:150]):
            logits(target, other)
        target.restore(held)
        assert target.cached.tolist() == first[:n].tolist()
        assert target.prefill(first[: n + 1], never) == n
        np.testing.assert_array_equal(go_on(first[n : n + 1]), row)


def test_what_is_held_counts_towards_the_budget(make, texts):
    """One of two documents' states is dropped when a third is held; all held states stay."""
    n_bytes = make().checkpoint().n_bytes
    target = make(max_saved_bytes=0)
    logits(target, texts[0])
    one = target.checkpoint().n_bytes
    assert one > 50 * n_bytes
    target = make(max_saved_bytes=int(2.5 * one))
    for tokens in texts:
        logits(target, tokens)
    assert len(target._saved) == 2
    held = target.checkpoint()
    assert [c.tokens.tolist() for c in target._saved] == [texts[1].tolist()]
    for tokens in texts[:2]:  # they are put aside in turn, in what is left
        logits(target, tokens)
        assert target._saved.n_bytes <= 2.5 * one
    also_held = [target.checkpoint(), target.checkpoint()]
    assert len(target._saved) == 0
    target.restore(held)
    assert target.cached.tolist() == texts[2].tolist()
    for state in (held, *also_held):
        target.release(state)
    assert target._saved.n_bytes == 0


def test_an_empty_cache_can_be_held(make, texts):
    target = make()
    held = target.checkpoint()
    logits(target, texts[0])
    target.restore(held)
    assert target.n_cached == 0
    assert np.array_equal(logits(target, texts[1])[1], logits(make(), texts[1])[1])


def test_others_find_their_documents_as_they_left_them(make, texts):
    target = make()
    patient, document = texts[:2]
    logits(target, patient)
    for n in range(280, 300, 4):
        held = target.checkpoint()
        n_reused, _ = logits(target, document[:n])
        assert n == 280 or n_reused == n - 4
        target.restore(held)


def test_what_was_read_ahead_is_reused_and_changes_nothing(base, texts) -> None:
    target = LlamaTarget(base, n_ctx=N_CTX, n_threads=1)
    tokens = texts[0]
    _, expected = logits(target, tokens)
    target.close()
    target = LlamaTarget(base, n_ctx=N_CTX, n_threads=1)
    assert target.read_ms == 0.0
    target.read_ahead(tokens[:200], never)
    assert target.n_cached == 199
    assert target.read_ms == pytest.approx(target.busy_s * 1e3 / 199, rel=0.5)
    n_reused, row = logits(target, tokens)
    assert n_reused == 199
    assert np.abs(row - expected).max() < 0.5
    assert row.argmax() == expected.argmax()
    target.close()


def test_reading_ahead_that_is_cut_short_keeps_what_it_read(base, texts) -> None:
    target = LlamaTarget(base, n_ctx=N_CTX, n_threads=1)
    with pytest.raises(CancelledError):
        # Asked before each part, and again and again within one.
        target.read_ahead(texts[0], lambda: target.n_cached > 0)
    assert 0 < target.n_cached < len(texts[0]) - 1
    n_reused, row = logits(target, texts[0])
    assert n_reused > 0
    fresh = LlamaTarget(base, n_ctx=N_CTX, n_threads=1)
    _, expected = logits(fresh, texts[0])
    assert row.argmax() == expected.argmax()
    target.close()
    fresh.close()


@pytest.mark.parametrize("kind", ["llama", "mamba"])
def test_who_types_on_before_a_part_is_read_has_the_prompt_read_in_shorter_ones(
    make, mamba, texts, kind
) -> None:
    target, fresh = (make(mamba) if kind == "mamba" else make() for _ in range(2))
    tokens = texts[0]
    row = None
    for _ in range(13):
        asked: list[int] = []

        def key(asked: list[int] = asked) -> bool:
            """Comes in any pass over more than 40 tokens, once it has begun."""
            asked.append(1)
            return len(asked) > 1 and int(target._batch.raw.n_tokens) > 40

        try:
            target.prefill(tokens, key)
            row = target.decode(tokens[target.n_cached :], NO_DRAFT).row(0).copy()
            break
        except CancelledError:
            continue
    assert row is not None, target.n_cached
    target.keep([])
    assert row.argmax() == logits(fresh, tokens)[1].argmax()
    # With nobody typing they grow again.
    n_before = target._chunk.n
    logits(target, texts[1])
    assert target._chunk.n == 2 * n_before < 256


def test_the_rest_of_a_prompt_can_be_cut_short(base, texts) -> None:
    target = LlamaTarget(base, n_ctx=N_CTX, n_threads=1)
    asked: list[int] = []

    def late() -> bool:
        asked.append(1)
        return len(asked) > 2

    tokens = texts[0][:200]  # short enough for one pass
    target.prefill(tokens, late)
    with pytest.raises(CancelledError):
        target.decode(tokens[target.n_cached :], NO_DRAFT)
    _, row = logits(target, texts[0])
    assert np.isfinite(row).all()
    target.close()
