// Passes in a row between which nobody need be asked: texts draft, the target verifies.
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

// What llama.cpp's functions take, as llama.h has it.
struct LlamaBatch {
  std::int32_t n_tokens;
  Token* token;
  float* embd;
  std::int32_t* pos;
  std::int32_t* n_seq_id;
  std::int32_t** seq_id;
  std::int8_t* logits;
};

// A context of llama.cpp, and what is called for it.
struct LlamaContext {
  std::int32_t (*decode)(void* context, LlamaBatch batch);
  float* (*logits)(void* context);
  bool (*remove)(void* memory, std::int32_t sequence, std::int32_t from, std::int32_t to);
  void* context;
  void* memory;
  LlamaBatch* batch;  // room for the widest pass, all of it in sequence 0
  std::size_t n_vocab, n_ctx;
};

// Who drafts: what the sources say after their base and what was emitted. Nobody without sources.
struct Drafting {
  Sources* sources = nullptr;
  Boundary* boundary = nullptr;  // the cursor's, or null where it is between two tokens
  Planner* planner = nullptr;
  // Of passes that draft 0, 1, 2, ... tokens: after a wide pass, and after one over one token.
  std::array<std::span<const double>, 2> costs;
  bool is_back = true;    // which of them the next pass is
  std::size_t width = 1;  // passes over fewer tokens are filled up to this
};

struct StretchLimits {
  enum End : std::uint8_t { kGoesOn, kEndsStretch, kEndsText };

  std::size_t n_tokens;  // emitted
  std::size_t n_passes;
  std::size_t n_draft;  // tokens of one pass, fewer than costs
  double ms;            // no pass begins later
  // By token: whether the stretch ends with its pass, or all there is with the token itself.
  std::span<const std::uint8_t> ends;
  // Whether to leave off, asked before a pass that begins so long after the last time.
  std::function<bool()> interrupted;
  static constexpr double kAskMs = 10.0;
};

// What was done.
struct Stretch {
  std::vector<Token> tokens;
  std::vector<std::int32_t> widths, n_drafted, n_accepted;  // by pass
  std::vector<double> draft_ms, pass_ms;                    // by pass
  struct Count {
    std::int32_t n_drafted = 0, n_accepted = 0;
  };
  std::vector<Count> by_source;
  bool is_damaged = false;  // whether drafting failed: the rest was done without
  std::int32_t code = 0;    // llama.cpp's; that of a pass that was not done ends the stretch
};

// From the committed token `last` on, greedily. emitted: so far, `last` included, if it was. The
// cache holds the `n_cached` tokens before it, and in the end all but the last one emitted.
Stretch decode_stretch(const LlamaContext& target, Drafting drafting, const StretchLimits& limits,
                       std::vector<Token> emitted, Token last, std::int32_t n_cached);

}  // namespace codespec
