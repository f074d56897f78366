// Acceptance probability of a drafted token: the logistic function of a sum of table entries, which
// are learned online.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace codespec {

// Evidence for one drafted token. Lengths and counts are those of its strongest support: of the
// proposals that contain it, the one with the longest match.
struct Evidence {
  int source = 0;
  bool is_runner_up = false;  // second choice of that proposal
  int match_length = 0;
  int total = 0;               // occurrences that voted
  float ratio = 0;             // share of them that voted for it
  float ratio_before = 1;      // that share of the token before it in the proposal
  float ratio_lowest = 1;      // the lowest share on its path, its own included
  std::int64_t distance = -1;  // tokens between that place and the cursor, -1: in another text
  int depth = 0;               // tokens of the draft before it
  int n_emitted = 0;           // tokens of the completion before it
  int in_line = 0;             // tokens of its line before it
  int recency = 0;          // tokens since the document had it; -1: only after the cursor, 0: never
  int n_repeats_right = 0;  // tokens up to here that repeat what stands after the cursor
  int n_supports = 1;       // sources that propose it
  int second_length = 0;    // longest match of another source that proposes it, 0: none does
  int rival_length = 0;     // longest match of those that propose another token, 0: none does
  std::uint8_t token_class = 0, class_before = 0;
  float hit_rate = 0.5f;         // recent acceptance rate of first tokens, over all drafts
  float source_hit_rate = 0.5f;  // and of this source
};

// The weights move with every outcome (stochastic gradient of the log-loss). Additive tables:
// Hastie and Tibshirani 1986, Generalized additive models.
class AcceptanceModel {
 public:
  static constexpr int kMaxSources = 32;  // bits of a node of the planner's tree
  static constexpr int kNumClasses = 16;
  static constexpr int kNumTables = 18;
  using Features = std::array<std::uint16_t, kNumTables>;  // one weight of each table

  // n_sources: 1 to kMaxSources. All weights start at 0, so a new source is neutral.
  explicit AcceptanceModel(int n_sources);

  int n_sources() const { return n_sources_; }
  // Weights that all sources share come first, then a block of each source.
  static std::size_t n_shared();
  static std::size_t n_by_source();
  std::size_t n_weights() const;
  Features features(const Evidence& evidence) const;

  float probability(const Features& features) const;
  void learn(const Features& features, bool accepted);

  // All weights, in that order.
  const std::vector<float>& state() const { return weights_; }
  // Replaces all weights. Returns false, and changes nothing, for numbers that are not finite or
  // absurdly large.
  bool load(std::span<const float> state);

 private:
  float logit(const Features& features) const;

  int n_sources_;
  std::vector<float> weights_;
};

}  // namespace codespec
