// All texts that one request is drafted from, asked together.
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

// The text before the cursor, which is made to read the context: its own tail is the match.
class BeforeCursor {
 public:
  explicit BeforeCursor(AutomatonRef automaton) : automaton_(std::move(automaton)) {}

  // base: the same in all calls.
  Proposal draft(Tokens base, Tokens tail, int n_max, const Allowed& allowed);
  // After a context wherever it stands, without reading it.
  Proposal draft_anywhere(Tokens context, int n_max, const Allowed& allowed);
  std::int64_t distance(std::int64_t position) const { return n_tokens_ - position; }

 private:
  AutomatonRef automaton_;
  std::uint64_t n_changes_ = ~std::uint64_t{0};  // as long as it reads what we made it read
  std::int64_t n_tokens_ = 0;
};

// Texts of one kind, elsewhere or after the cursor: the one with the longest match speaks.
struct Automata {
  Matcher matcher;
  bool is_after = false;
};

// Frozen files.
class Files {
 public:
  struct Part {
    nb::object owner;
    const Segment* segment;
    std::optional<AnyVector> dead;
  };
  explicit Files(std::vector<Part> parts) : parts_(std::move(parts)) {}

  // The longest match of any segment, of equal ones that with the most votes. A segment that turns
  // out to be damaged is asked no more.
  Proposal draft(Tokens context, int n_max, const Allowed& allowed);

 private:
  std::vector<Part> parts_;
};

// Holds the GIL: some microseconds a source. One thread only.
class Sources {
 public:
  using Kind = std::variant<BeforeCursor, Automata, Files>;

  explicit Sources(TokenArray base);

  void add(int source, Kind kind) {
    members_.push_back({source, std::move(kind)});
    n_sources_ = std::max(n_sources_, source + 1);
  }
  // Above the largest source: a planner's tables have to be made for so many.
  int n_sources() const { return n_sources_; }
  std::size_t size() const { return members_.size(); }

  // What one says after the base and `tail`, and what each says that has anything to say.
  Proposal draft(std::size_t i, Tokens tail, int n_max, const Allowed& allowed);
  std::vector<std::pair<std::size_t, Proposal>> draft_all(Tokens tail, int n_max,
                                                          const Allowed& allowed);

  // The same without limits becomes offers that follow `path`; or what they say after the last
  // token of that alone. How many do.
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
  // The end of the base, as much as matches can be long, and the last tail.
  std::vector<Token> recent_;
  std::size_t n_recent_base_;
  std::vector<Offer> offers_;
};

// Raises ValueError where a planner has no tables for one of the sources.
inline void check_fits(const Sources& sources, const Planner& planner) {
  if (sources.n_sources() > planner.model.n_sources()) {
    throw nb::value_error("the planner was made for fewer sources");
  }
}

}  // namespace codespec
