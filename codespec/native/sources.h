// All texts that one request drafts from, looked up together (prompt lookup).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "bindings.h"
#include "matcher.h"
#include "planner.h"
#include "segment.h"

namespace codespec {

std::vector<Step> steps_of(const Proposal& proposal);

inline int checked_source(int source) {
  if (source < 0 || source >= AcceptanceModel::kMaxSources) {
    throw nb::value_error("a source must be 0 to 31");
  }
  return source;
}

// The text before the cursor. Its automaton is extended with the context, so that its own tail is
// the match.
class BeforeCursor {
 public:
  explicit BeforeCursor(AutomatonRef automaton) : automaton_(std::move(automaton)) {}

  // base: the same in all calls.
  Proposal draft(Tokens base, Tokens tail, int n_max, const Allowed& allowed);
  // A draft after any context, without extending the automaton.
  Proposal draft_anywhere(Tokens context, int n_max, const Allowed& allowed);
  std::int64_t distance(std::int64_t position) const { return n_tokens_ - position; }

 private:
  AutomatonRef automaton_;
  std::uint64_t n_changes_ = ~std::uint64_t{0};  // equal while nobody else changed the automaton
  std::int64_t n_tokens_ = 0;
};

// Automata of one source, of other texts or of the text after the cursor: the one with the longest
// match proposes.
struct Automata {
  Matcher matcher;
  bool is_after = false;
};

// Segments of one source.
class Files {
 public:
  struct Part {
    nb::object owner;
    const Segment* segment;  // null once it turned out to be damaged
    std::optional<AnyVector> dead;
  };
  explicit Files(std::vector<Part> parts) : parts_(std::move(parts)) {}

  // The proposal with the longest match of any segment, of equal ones that with the most votes. A
  // segment that turns out to be damaged is skipped from then on.
  Proposal draft(Tokens context, int n_max, const Allowed& allowed);

 private:
  std::vector<Part> parts_;
};

// Some microseconds a source, with the GIL or without (see is_without_gil). One thread at a time.
class Sources {
 public:
  using Kind = std::variant<BeforeCursor, Automata, Files>;

  explicit Sources(TokenArray base);

  void add(int source, Kind kind) {
    members_.push_back({source, std::move(kind)});
    n_sources_ = std::max(n_sources_, source + 1);
  }
  // One more than the largest source: the number that a planner's tables must be made for.
  int n_sources() const { return n_sources_; }
  std::size_t size() const { return members_.size(); }

  // Proposal of one source after base and `tail`; and all proposals that are not empty.
  Proposal draft(std::size_t i, Tokens tail, int n_max, const Allowed& allowed);
  std::vector<std::pair<std::size_t, Proposal>> draft_all(Tokens tail, int n_max,
                                                          const Allowed& allowed);

  // Looks up base and `tail` in all sources; proposals become offers that follow `path`. ask_last:
  // with the last token of the last tail alone as context. Returns the number of offers.
  std::size_t ask(Tokens tail, Tokens path, int n_max);
  std::size_t ask_last(int n_max);

  void clear() { offers_.clear(); }
  void offer(std::size_t i, std::int64_t position, std::vector<Step> steps, Tokens path);
  std::span<const Offer> offers() const { return offers_; }

 private:
  struct Member {
    int source;
    Kind kind;
  };

  void recent(Tokens tail);
  Proposal draft(Member& member, Tokens tail, int n_max, const Allowed& allowed);

  std::vector<Member> members_;
  int n_sources_ = 0;
  TokenArray base_;
  // The last tokens of the base, as many as a match can have, and the last tail.
  std::vector<Token> recent_;
  std::size_t n_recent_base_;
  std::vector<Offer> offers_;
};

// Throws ValueError where a planner has no tables for one of the sources.
inline void check_fits(const Sources& sources, const Planner& planner) {
  if (sources.n_sources() > planner.model.n_sources()) {
    throw nb::value_error("the planner was made for fewer sources");
  }
}

}  // namespace codespec
