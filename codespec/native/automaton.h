// The live index of an open document: an online suffix automaton with exact counts, which can be
// rolled back token by token.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "edges.h"
#include "tokens.h"

namespace codespec {

// A stack of small integers in a variable-length encoding: mostly one or two bytes each.
class UndoLog {
 public:
  void push(std::uint32_t n) {
    const std::size_t begin = bytes_.size();
    for (; n >= 0x80; n >>= 7) bytes_.push_back(static_cast<std::uint8_t>(n | 0x80));
    bytes_.push_back(static_cast<std::uint8_t>(n));
    std::reverse(bytes_.begin() + static_cast<std::ptrdiff_t>(begin), bytes_.end());
  }
  std::uint32_t pop() {
    std::uint32_t n = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint32_t byte = bytes_.back();
      bytes_.pop_back();
      n |= (byte & 0x7f) << shift;
      if (byte < 0x80) return n;
    }
  }
  void reserve_for_more(std::size_t n) { reserve_for(bytes_, n * kMaxBytes); }
  std::size_t n_bytes() const { return bytes_.capacity(); }

 private:
  static constexpr std::size_t kMaxBytes = 5;
  std::vector<std::uint8_t> bytes_;
};

// A state stands for all strings that end at the same set of places of the text. They are the
// suffixes of one another, of lengths length(link) + 1 to length, where the link is the state of
// the next shorter suffix. State 0 is the empty string.
//
// Source: Blumer et al. 1985, The smallest automaton recognizing the subwords of a text. Texts
// separated by breaks: Mohri, Moreno, Weinstein 2009, General suffix automaton construction
// algorithm and space bounds.
class SuffixAutomaton {
 public:
  static constexpr std::size_t kMaxSize = std::size_t{1} << 30;

  explicit SuffixAutomaton(int max_depth);

  void extend(Tokens tokens);
  void truncate(std::size_t n);
  // Makes the text equal these tokens, by both. The common prefix stays.
  void assign(Tokens tokens);
  // Number of `tokens` that equal the text from position `start` on.
  std::size_t n_same(Tokens tokens, std::size_t start = 0) const;

  std::size_t size() const { return text_.size(); }
  Tokens text() const { return text_; }
  int max_depth() const { return max_depth_; }
  std::size_t n_states() const { return states_.size(); }
  std::size_t n_bytes() const;

  // All three expect arguments that the bindings have checked: strings of at most max_depth tokens.
  std::int32_t count(Tokens string) const;
  int match(Tokens context) const { return find(context).length; }
  Proposal draft(Tokens context, int n_max, int min_length, const Allowed& allowed) const;
  Proposal draft_tail(int n_max, int min_length, const Allowed& allowed) const;
  // A string of the text: the suffix of this length of a state's strings.
  struct Match {
    StateId state = 0;
    std::int32_t length = 0;
  };
  // The longest suffix of `context` that occurs in the text; and that of a context followed by
  // `token`, where `m` is the longest suffix of the context.
  Match find(Tokens context) const;
  Match grow(Match m, Token token) const;
  Proposal follow(Match m, int n_max, int min_length, const Allowed& allowed) const;
  // Matches stay valid until this number changes.
  std::uint64_t n_changes() const { return n_changes_; }

  // Tokens that follow `string` with their counts, most frequent first.
  std::vector<std::pair<Token, std::int32_t>> followers(Tokens string) const;

 private:
  struct State {
    std::int32_t length = 0;
    StateId link = kNoState;
    std::int32_t count = 0;      // exact while length(link) <= max_depth, see count_suffixes
    std::int32_t last_end = -1;  // likewise; always the index of the last token of an occurrence
    EdgeSet edges;
  };

  // Changes that one token made, for the rollback.
  struct Growth {
    bool fresh : 1;    // added a state: the whole text since the break is new
    bool cloned : 1;   // split a state in two
    bool repeats : 1;  // its cursor is in cursors_; else it is the fresh state
  };
  // States of the end of the text.
  struct Ends {
    StateId whole = 0;   // state of the whole text since the break
    StateId cursor = 0;  // state of its suffix of at most max_depth + 1 tokens
  };

  State& at(StateId s) { return states_[static_cast<std::size_t>(s)]; }
  const State& at(StateId s) const { return states_[static_cast<std::size_t>(s)]; }
  StateId target(StateId s, Token token) const { return edges_.find(at(s).edges, token); }

  void push(Token token);
  void pop();
  StateId add_state(std::int32_t length, StateId link);
  StateId clone(StateId parent, Token token, StateId original);
  void unclone(StateId parent, Token token, StateId copy);
  void count_suffixes(StateId cursor, std::int32_t end);
  void uncount_suffixes(StateId cursor, std::int32_t end);
  void clear();

  Ends ends(Growth later = {}) const;
  Match cursor() const;
  Match advance(Match m, Token token, std::int32_t depth) const;
  Election vote(StateId s, const Allowed& allowed) const;

  int max_depth_;
  std::uint64_t n_changes_ = 0;
  std::vector<Token> text_;
  std::vector<State> states_;
  EdgePool edges_;

  std::vector<Growth> growth_;      // one per token or break
  std::vector<StateId> wholes_;     // Ends::whole, one per token without a fresh state
  std::vector<StateId> cursors_;    // Ends::cursor, one per token that repeats
  std::vector<StateId> originals_;  // one per clone: the state it was split from
  UndoLog last_ends_;               // overwritten values, as runs of equal ones
};

}  // namespace codespec
