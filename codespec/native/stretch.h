// Greedy speculative decoding in native code, for several passes in a row: texts draft, the target
// verifies. As one step of engine/step.py, without Python between the passes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "boundary.h"
#include "planner.h"
#include "sources.h"
#include "tokens.h"

namespace codespec {

// llama_batch, as llama.h declares it.
struct LlamaBatch {
  std::int32_t n_tokens;
  Token* token;
  float* embd;
  std::int32_t* pos;
  std::int32_t* n_seq_id;
  std::int32_t** seq_id;
  std::int8_t* logits;
};

// A context of llama.cpp, and the functions that are called with it.
struct LlamaContext {
  std::int32_t (*decode)(void* context, LlamaBatch batch);
  float* (*logits)(void* context);
  bool (*remove)(void* memory, std::int32_t sequence, std::int32_t from, std::int32_t to);
  void* context;
  void* memory;
  LlamaBatch* batch;  // room for the widest pass, all of it in sequence 0
  std::size_t n_vocab, n_ctx;
};

// Inputs of drafting: lookups after base and output. Without sources nothing is drafted.
struct Drafting {
  Sources* sources = nullptr;
  Boundary* boundary = nullptr;  // the cursor's, or null where it is between two tokens
  Planner* planner = nullptr;
  // Milliseconds of passes that draft 0, 1, 2, ... tokens: after a wide pass, and after one over
  // one token.
  std::array<std::span<const double>, 2> costs;
  bool is_back = true;    // true if the next pass follows one over one token
  std::size_t width = 1;  // passes over fewer tokens are padded to this
};

struct StretchLimits {
  enum End : std::uint8_t { kGoesOn, kEndsStretch, kEndsText };

  std::size_t n_tokens;  // most emitted tokens
  std::size_t n_passes;
  std::size_t n_draft;  // most drafted tokens of a pass, fewer than costs
  bool is_scored;       // true for the log-probabilities of the emitted tokens
  double ms;            // no pass begins after so many milliseconds
  // By token: kEndsStretch if its pass is the last of a stretch, kEndsText for end of generation.
  std::span<const std::uint8_t> ends;
  // Polled before a pass that begins so long after the last poll: true ends the stretch.
  std::function<bool()> interrupted;
  static constexpr double kAskMs = 10.0;
};

// The result of a stretch.
struct Stretch {
  std::vector<Token> tokens;
  std::vector<double> log_probs;                            // by token, where they were asked for
  std::vector<std::int32_t> widths, n_drafted, n_accepted;  // by pass
  std::vector<double> draft_ms, pass_ms;                    // by pass
  struct Count {
    std::int32_t n_drafted = 0, n_accepted = 0;
  };
  std::vector<Count> by_source;
  bool is_damaged = false;  // drafting failed, and the rest was decoded without drafts
  std::int32_t code = 0;    // llama.cpp's status of a failed pass, which ends the stretch
};

// Decodes greedily from the committed token `last` on. emitted: the output so far, `last` included
// if it is part of that. The KV cache holds the `n_cached` tokens before it, and in the end all but
// the last emitted one.
Stretch decode_stretch(const LlamaContext& target, Drafting drafting, const StretchLimits& limits,
                       std::vector<Token> emitted, Token last, std::int32_t n_cached);

}  // namespace codespec
