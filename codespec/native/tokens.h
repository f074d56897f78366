// Types of this folder: tokens, and the proposal that a lookup returns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace codespec {

using Token = std::int32_t;
using Tokens = std::span<const Token>;

// No token: between texts that share an index, and where there is no runner-up. Any negative id
// is read as a break.
inline constexpr Token kBreak = -1;

// Longest context that is matched. Longer matches do not predict better (0.97 of the
// tokens after a match of 33 or more are right), and every bound below follows from this one.
inline constexpr int kMaxDepth = 64;

// Ids that a first token may have, ascending; none: any id.
using Allowed = std::optional<Tokens>;

inline bool allows(const Allowed& allowed, Token token) {
  return !allowed || std::ranges::binary_search(*allowed, token);
}

// Starts loading a cache line that will be read soon. Lookups go all over a text that is larger
// than the caches: waiting for it is most of what they cost.
inline void prefetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(address);
#endif
}

// One drafted token and the votes behind it.
struct Step {
  Token token;
  std::int32_t count;
  std::int32_t total;
  std::int32_t match_length;
  Token alt_token = kBreak;
  std::int32_t alt_count = 0;
};

// A drafted chain. Columns, not rows: each becomes one numpy array without a copy.
class Proposal {
 public:
  enum Column { kTokens, kCounts, kTotals, kMatchLengths, kAltTokens, kAltCounts, kNumColumns };

  explicit Proposal(int n_max)
      : capacity_(std::clamp(n_max, 0, kMaxDraft)),
        cells_(std::make_unique_for_overwrite<std::int32_t[]>(
            static_cast<std::size_t>(capacity_ * kNumColumns))) {}

  void push(const Step& step) {
    const std::int32_t row[kNumColumns] = {step.token,        step.count,     step.total,
                                           step.match_length, step.alt_token, step.alt_count};
    for (int c = 0; c < kNumColumns; ++c) cells_[c * capacity_ + size_] = row[c];
    ++size_;
  }

  int size() const { return size_; }
  int capacity() const { return capacity_; }
  bool full() const { return size_ == capacity_; }
  std::span<const std::int32_t> column(Column c) const {
    return {cells_.get() + c * capacity_, static_cast<std::size_t>(size_)};
  }
  Tokens tokens() const { return column(kTokens); }

  std::int64_t n_matches = 0;  // occurrences of the context that the first step matched
  std::int64_t position = -1;  // of the first token, in an occurrence that voted for it

 private:
  static constexpr int kMaxDraft = 1024;

  int size_ = 0;
  int capacity_;
  std::unique_ptr<std::int32_t[]> cells_;
};

// The vote on one step. Keeps the best and the second: what a tree of drafts would branch into.
struct Election {
  struct Candidate {
    Token token = kBreak;
    std::int32_t count = 0;
    std::int64_t tie_break = 0;  // higher wins among equal counts
    bool operator<(const Candidate& o) const {
      return count != o.count ? count < o.count : tie_break < o.tie_break;
    }
  };

  Candidate best, second;
  std::int32_t total = 0;

  void add(Candidate c) {
    total += c.count;
    if (best < c) {
      second = best;
      best = c;
    } else if (second < c) {
      second = c;
    }
  }

  Step step(std::int32_t match_length) const {
    return {best.token, best.count, total, match_length, second.token, second.count};
  }
};

}  // namespace codespec
