// From the proposals of all sources to the draft with the most expected tokens per millisecond.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "acceptance.h"
#include "text_ends.h"
#include "tokens.h"

namespace codespec {

// One source's proposal after the context and `path`, tokens that are in the draft tree already.
struct Offer {
  int source = 0;
  std::int64_t distance = -1;  // see Evidence
  std::vector<Token> path;
  std::vector<Step> steps;
};

// A draft tree, parents before their children.
struct Draft {
  std::vector<Token> tokens;
  std::vector<std::int32_t> parents;
  std::vector<float> probs;
  std::vector<std::int8_t> sources;
  std::vector<std::uint8_t> ends;  // 1 where no offer continues the token
};

// Verdict on one drafted token, with its estimated probability.
struct Outcome {
  std::int8_t source;
  bool accepted;
  std::int32_t match_length;
  float prob;
  AcceptanceModel::Features features;
};

// Merges proposals into one draft tree, estimates each token's acceptance probability, and chooses
// the part that maximises expected tokens per millisecond of its pass. One thread only.
//
// Source: trees of the likeliest nodes, Li et al. 2024, EAGLE-2.
class Planner {
 public:
  // classes: lexical kind of each token of the vocabulary, below kNumClasses; kLineEnd for one that
  // ends a line. n_sources: 1 to AcceptanceModel::kMaxSources.
  using Classes = std::shared_ptr<const std::vector<std::uint8_t>>;
  Planner(Classes classes, int n_sources)
      : model(n_sources),
        classes_(std::move(classes)),
        source_hit_rates_(static_cast<std::size_t>(n_sources), 0.5f),
        said_(static_cast<std::size_t>(n_sources), kBreak) {}
  static constexpr std::uint8_t kLineEnd = 1;

  struct Limits {
    int n_max = 0;                  // most drafted tokens
    int max_leaves = 1;             // most branches; 1: a chain
    std::span<const double> costs;  // milliseconds of passes that draft 0, 1, 2, ... tokens
    // For a target that does not roll back: milliseconds to recompute a committed token after a
    // rejection, and committed tokens of this pass.
    double again = 0;
    int n_tail = 1;
  };

  // Starts a completion between these texts.
  void begin(Tokens before, Tokens after);
  Draft plan(std::span<const Offer> offers, const Limits& limits);
  // Learns from the tokens that follow the context of the last plan; the first n_emitted are part
  // of the text now, unless `ended` cuts it before.
  void learn(Tokens known, std::size_t n_emitted);
  // Learns that the text was complete after n_emitted tokens.
  void ended(std::size_t n_emitted);

  // Verdicts on the drafted tokens that the last `learn` decided.
  const std::vector<Outcome>& outcomes() const { return outcomes_; }

  std::uint8_t class_of(Token token) const;

  AcceptanceModel model;
  TextEnds ends;

 private:
  using Index = std::int32_t;
  struct Node {
    Token token = kBreak;
    Index parent = -1, first_child = -1, next_sibling = -1;
    Evidence evidence;
    unsigned sources = 0;  // bits of the sources that propose it
    AcceptanceModel::Features features{};
    float prob = 0;       // P(accepted | parent accepted)
    float path_prob = 0;  // P(its path is accepted, and the text does not end before it)
    float expected = 0;   // expected accepted tokens on the path, this one included
  };

  Node& at(Index i) { return nodes_[static_cast<std::size_t>(i)]; }
  const Node& at(Index i) const { return nodes_[static_cast<std::size_t>(i)]; }
  static constexpr Index kRoot = -1, kNowhere = -2;
  Index first_child(Index i) const { return i < 0 ? first_root_ : at(i).first_child; }
  Index child(Index parent, Token token);
  Index find(Tokens path) const;
  void clear();
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

  Classes classes_;
  std::vector<Node> nodes_;  // parents before their children
  Index first_root_ = -1;
  std::vector<Outcome> outcomes_;

  std::vector<Token> after_;
  std::vector<std::int32_t> last_seen_;  // by token: last position in the document, or one of these
  static constexpr std::int32_t kNever = 0, kAfterOnly = -1;
  std::int32_t n_seen_ = 0;
  int n_emitted_ = 0, in_line_ = 0;
  std::vector<std::uint8_t> unended_;  // classes of the last tokens, which may be behind the end
  Token last_ = kBreak;
  float hit_rate_ = 0.5f;
  // By source: recent acceptance rate of first tokens, and first tokens of the last proposals.
  std::vector<float> source_hit_rates_;
  std::vector<Token> said_;
};

}  // namespace codespec
