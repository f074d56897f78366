// A cache of words and their tokens, and pre-tokenisation: splitting text into words.
#pragma once

#include <array>
#include <cstdint>
#include <shared_mutex>
#include <span>
#include <string_view>
#include <vector>

#include "tokens.h"

namespace codespec {

// The published pre-tokenisation expressions of BPE tokenizers, for ASCII text.
enum class Splitting : std::uint8_t { kQwen2, kLlama3, kGpt2 };
inline constexpr int kNumSplittings = 3;

// End of the word that begins at `at`, a place within the text; beyond `at`.
std::size_t word_end(std::string_view text, std::size_t at, Splitting splitting);

// All methods may run at the same time. Words are never dropped; a full table learns no more.
class WordTable {
 public:
  struct Span {
    std::int64_t begin, end;
  };
  struct Encoded {
    std::vector<Token> tokens;  // of a text; -1 - i stands for those of unknown[i]
    std::vector<Span> unknown;  // words that are not in the table, each once, and opaque spans
  };

  WordTable(Splitting splitting, std::size_t max_words);

  // opaque: ascending, disjoint and not empty: not looked into, and words end there.
  Encoded encode(std::string_view text, std::span<const Span> opaque) const;

  // Words text[begin:end] with `lengths` tokens each, one after the other in `tokens`. Those longer
  // than kMaxWordBytes are seldom met again, and are left out, as is what is beyond ASCII.
  void learn(std::string_view text, std::span<const Span> words, Tokens tokens,
             std::span<const std::int64_t> lengths);

  std::size_t size() const;

  static constexpr std::size_t kMaxWordBytes = 40;

 private:
  struct Entry {
    std::uint32_t hash;
    std::uint32_t word;   // offset in words_
    std::uint32_t value;  // the only token, or the offset of several in tokens_
    std::uint16_t n_bytes;
    std::uint16_t n_tokens;
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t hash(std::string_view word) const;
  const Entry* find(std::string_view word, std::uint32_t hash) const;
  void insert(std::uint32_t index);
  void append(const Entry& entry, std::vector<Token>& out) const;

  const Splitting splitting_;
  const std::size_t max_words_;
  const std::uint64_t seed_;  // a repository must not be able to choose words that collide
  mutable std::shared_mutex mutex_;
  std::vector<std::uint32_t> slots_;  // places in entries_, by hash; half of them empty
  std::vector<Entry> entries_;
  std::vector<char> words_;
  std::vector<Token> tokens_;
};

}  // namespace codespec
