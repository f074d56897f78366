// Lookups at any place of a text, not only between tokens.
//
// Before the cursor `foo(` ends in a token `(`, where a file that goes on has `(self`: around the
// cursor, files that hold the same text have other tokens than the prompt. So a lookup there goes
// back to where both agree, takes only what starts with the text since then, and proposes what lies
// beyond the prompt's end, in tokens that the model would say there.
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

// What to look up.
struct Query {
  std::vector<Token> tail;  // what lookups match, after the boundary's base
  std::string wanted;       // what a continuation of that must start with
  std::size_t n_given = 0;  // how many bytes of `wanted` the model has read or emitted already
};

// The cursor of one request. One thread only.
class Boundary {
 public:
  // Tokens of a text, of any bytes.
  using Encode = std::function<std::vector<Token>(std::string_view)>;

  // left: the prompt's tokens before the cursor, without the piece held back. healed: that piece,
  // which the output must start with. The vocabulary has to outlive it.
  Boundary(Tokens left, std::string healed, Vocabulary& vocabulary, Encode encode);

  // How many of the tokens before the cursor prompt and files agree on: the base of lookups.
  std::size_t n_base() const { return n_base_; }

  Query query(Tokens emitted);

  // What sources say after these tokens, at most n_max of them, becomes offers that follow `path`,
  // see `Sources::ask`. How many do.
  std::size_t ask(Tokens emitted, Tokens path, int n_max, Sources& sources);

 private:
  struct Continuation {
    std::vector<Step> steps;
    std::int64_t position = -1;
  };
  // What every query begins with whose tokens begin with `by`, the first `n` of them included.
  struct Settled {
    std::vector<Token> by;
    std::size_t n;
    Query begin;
  };

  std::size_t n_open(Tokens left) const;
  std::size_t n_unsettled(Tokens emitted) const;
  Query begin(Tokens emitted) const;
  // What sources propose, at most n_max tokens, for a query that wants something, by the number of
  // the source. One call for all of them, a second for what the first did not find, and some more
  // for those whose tokens spell piece by piece what is wanted.
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
