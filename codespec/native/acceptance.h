// How likely a drafted token is to be accepted: a sum of table entries through the logistic
// function, learning online.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace codespec {

// What is known of one drafted token. Lengths and counts are those of its strongest support: of the
// proposals that contain it, the one with the longest match.
struct Evidence {
  int source = 0;
  bool is_runner_up = false;  // second choice of that proposal
  int match_length = 0;
  int total = 0;               // places asked
  float ratio = 0;             // share of them that say so
  float ratio_before = 1;      // the same of the token before it in the proposal
  float ratio_lowest = 1;      // and the lowest on the way, this one included
  std::int64_t distance = -1;  // tokens between that place and the cursor, -1: in another text
  int depth = 0;               // tokens of the draft before it
  int n_emitted = 0;           // tokens of the completion before it
  int in_line = 0;             // tokens of its line before it
  int recency = 0;  // tokens since the document said it; -1: only after the cursor, 0: never
  int n_repeats_right = 0;  // tokens up to here that repeat what stands after the cursor
  int n_supports = 1;       // sources that say so
  int second_length = 0;    // longest match of another source that says so, 0: none does
  int rival_length = 0;     // longest match of those that say something else, 0: none does
  std::uint8_t token_class = 0, class_before = 0;
  float hit_rate = 0.5f;         // recent share of right first tokens, over all drafts
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

  // n_sources: 1 to kMaxSources. All weights are 0: a source that nobody knows is neutral.
  explicit AcceptanceModel(int n_sources);

  int n_sources() const { return n_sources_; }
  // Weights that all sources share come first, then a block of each source.
  static std::size_t n_shared();
  static std::size_t n_by_source();
  std::size_t n_weights() const;
  Features features(const Evidence& evidence) const;

  float probability(const Features& features) const;
  void learn(const Features& features, bool accepted);

  // All weights.
  const std::vector<float>& state() const { return weights_; }
  // False, and nothing changes, for other numbers than finite ones of a sensible size.
  bool load(std::span<const float> state);

 private:
  float logit(const Features& features) const;

  int n_sources_;
  std::vector<float> weights_;
};

}  // namespace codespec
