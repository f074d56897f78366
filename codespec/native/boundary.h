// Lookups at a cursor that may stand inside a token (token healing for prompt lookup).
//
// Before the cursor `foo(` ends in a token `(`, where a file that goes on has `(self`: around the
// cursor, files with the same text have other tokens than the prompt. So a lookup there goes back
// to the last token on which both agree, keeps matches that start with the text since then, and
// proposes what follows the prompt's end, in tokens that the model would emit there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sources.h"
#include "vocabulary.h"

namespace codespec {

// One lookup.
struct Query {
  std::vector<Token> tail;  // tokens to match, after the boundary's base
  std::string wanted;       // bytes that a continuation must start with
  std::size_t n_given = 0;  // bytes of `wanted` that the model has read or emitted already
};

// The cursor of one request. One thread only.
class Boundary {
 public:
  // The model's tokenizer, for any bytes.
  using Encode = std::function<std::vector<Token>(std::string_view)>;

  // left: the prompt's tokens before the cursor, without the bytes that token healing held back.
  // healed: those bytes, which the output must start with. The vocabulary must outlive this.
  Boundary(Tokens left, std::string healed, Vocabulary& vocabulary, Encode encode);

  // Number of tokens before the cursor on which prompt and files agree: the base of lookups.
  std::size_t n_base() const { return n_base_; }

  Query query(Tokens emitted);

  // Looks up these tokens in the sources; proposals of at most n_max tokens become offers that
  // follow `path`, see `Sources::ask`. Returns the number of offers.
  std::size_t ask(Tokens emitted, Tokens path, int n_max, Sources& sources);

 private:
  struct Continuation {
    std::vector<Step> steps;
    std::int64_t position = -1;
  };
  // The common start of every query whose tokens begin with `by`, its first `n` tokens included.
  struct Settled {
    std::vector<Token> by;
    std::size_t n;
    Query begin;
  };

  std::size_t n_open(Tokens left) const;
  std::size_t n_unsettled(Tokens emitted) const;
  Query begin(Tokens emitted) const;
  // Proposals of at most n_max tokens for a query with wanted bytes, by the number of the source.
  // One lookup for all of them, a second for sources without a match, and some more for those whose
  // tokens spell the wanted bytes piece by piece.
  std::map<std::size_t, Continuation> find(const Query& query, int n_max, Sources& sources);
  void find(Tokens tail, std::string_view missing, std::size_t n_given, int n_max, Sources& sources,
            std::map<std::size_t, Continuation>& found);
  std::optional<std::vector<Step>> spelling(std::size_t i, Proposal proposed, Tokens tail,
                                            std::string_view missing, int n_max, Sources& sources);
  std::size_t spelled(Tokens tokens, std::string_view& missing) const;
  std::vector<Step> beyond(std::vector<Step> steps, std::size_t n_given, int n_max) const;

  Vocabulary& vocabulary_;
  Encode encode_;
  std::string healed_;
  std::size_t n_base_;
  std::vector<Token> kept_;  // the tokens after the base
  std::string open_;         // and their text
  std::optional<Settled> settled_;
};

}  // namespace codespec
