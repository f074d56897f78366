// From what all sources propose to the draft that is worth its pass.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "acceptance.h"
#include "text_ends.h"
#include "tokens.h"

namespace codespec {

// One source's proposal for what follows the context and `path`, tokens that are in the tree.
struct Offer {
  int source = 0;
  std::int64_t distance = -1;  // see Evidence
  std::vector<Token> path;
  std::vector<Step> steps;
};

// A tree of tokens, parents before their children.
struct Draft {
  std::vector<Token> tokens;
  std::vector<std::int32_t> parents;
  std::vector<float> probs;
  std::vector<std::int8_t> sources;
  std::vector<std::uint8_t> ends;  // whether no source said what follows
};

// What became of one token that was weighed.
struct Outcome {
  std::int8_t source;
  bool accepted;
  std::int32_t match_length;
  float prob;
  AcceptanceModel::Features features;
};

// Merges proposals into one tree, weighs its tokens, and takes the part that maximises expected
// tokens per millisecond. One thread only.
class Planner {
 public:
  // classes: of each token of the vocabulary, below kNumClasses; kLineEnd for one that ends a line.
  // n_sources: tables are made for so many, 1 to AcceptanceModel::kMaxSources.
  Planner(std::vector<std::uint8_t> classes, int n_sources)
      : model(n_sources),
        classes_(std::move(classes)),
        last_seen_(classes_.size(), kNever),
        source_hit_rates_(static_cast<std::size_t>(n_sources), 0.5f),
        said_(static_cast<std::size_t>(n_sources), kBreak) {}
  static constexpr std::uint8_t kLineEnd = 1;

  struct Limits {
    int n_max = 0;                  // tokens
    int max_leaves = 1;             // 1: a chain
    std::span<const double> costs;  // of passes that draft 0, 1, 2, ... tokens
    // Where a draft that is not wholly right has committed tokens read again with the next pass:
    // the cost of each, and how many this pass reads.
    double again = 0;
    int n_tail = 1;
  };

  // A new completion between these texts.
  void begin(Tokens before, Tokens after);
  Draft plan(std::span<const Offer> offers, const Limits& limits);
  // These tokens follow where the last plan began; the first n_emitted are part of the text now,
  // unless `ended` says that it ended before.
  void learn(Tokens known, std::size_t n_emitted);
  // The text ended of itself behind so many tokens.
  void ended(std::size_t n_emitted);

  // Of the tokens whose place the last `learn` reached.
  const std::vector<Outcome>& outcomes() const { return outcomes_; }

  AcceptanceModel model;

 private:
  using Index = std::int32_t;
  struct Node {
    Token token = kBreak;
    Index parent = -1, first_child = -1, next_sibling = -1;
    Evidence evidence;
    unsigned sources = 0;  // bits of those that say so
    AcceptanceModel::Features features{};
    float prob = 0;       // given the parent
    float path_prob = 0;  // given the context: it is accepted, and the text goes on after it
    float expected = 0;   // such tokens on the way to here, this one included
  };

  Node& at(Index i) { return nodes_[static_cast<std::size_t>(i)]; }
  const Node& at(Index i) const { return nodes_[static_cast<std::size_t>(i)]; }
  static constexpr Index kRoot = -1, kNowhere = -2;
  Index first_child(Index i) const { return i < 0 ? first_root_ : at(i).first_child; }
  Index child(Index parent, Token token);
  Index find(Tokens path) const;
  void clear();
  std::uint8_t class_of(Token token) const;
  int recency(Token token) const;
  void see(Token token);
  float goes_on(const Evidence& evidence) const;

  void insert(const Offer& offer, Index root, int depth, int n_max, bool with_runner_ups);
  void support(Node& node, Evidence evidence);
  void weigh();
  double n_again(const Node& end, int n_tail) const;
  void complete(Index i, const Node* parent);
  void share(Index first);
  std::vector<Index> best_chain(const Limits& limits, double& rate) const;
  std::vector<Index> best_tree(const Limits& limits, double& rate) const;
  Draft draft(const std::vector<Index>& chosen) const;

  std::vector<std::uint8_t> classes_;
  std::vector<Node> nodes_;  // parents before their children
  Index first_root_ = -1;
  std::vector<Outcome> outcomes_;

  std::vector<Token> after_;
  std::vector<std::int32_t> last_seen_;  // by token: when in the document, or one of these
  static constexpr std::int32_t kNever = 0, kAfterOnly = -1;
  std::int32_t n_seen_ = 0;
  int n_emitted_ = 0, in_line_ = 0;
  TextEnds ends_;
  std::vector<std::uint8_t> unended_;  // classes of the last tokens, which may be behind the end
  Token last_ = kBreak;
  float hit_rate_ = 0.5f;
  // By source: recent share of right first tokens, and first tokens of the last proposals.
  std::vector<float> source_hit_rates_;
  std::vector<Token> said_;
};

}  // namespace codespec
