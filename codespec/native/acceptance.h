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

// The weights move with every outcome (stochastic gradient of the log-loss), and what is left of
// the error is taken out by source and predicted probability. Additive tables: Hastie and
// Tibshirani 1986, Generalized additive models.
class AcceptanceModel {
 public:
  static constexpr int kMaxSources = 32;  // bits of a node of the planner's tree
  static constexpr int kNumClasses = 16;
  static constexpr int kNumTables = 18;
  using Features = std::array<std::uint16_t, kNumTables>;  // one weight of each table

  // n_sources: 1 to kMaxSources. All weights are 0: a source that nobody knows is neutral.
  // learns: weights follow outcomes. recalibrates: what is left of the error is taken out.
  explicit AcceptanceModel(int n_sources, bool learns = true, bool recalibrates = true);

  int n_sources() const { return static_cast<int>(bins_.size()); }
  // Weights that all sources share come first, then a block of each source.
  static std::size_t n_shared();
  static std::size_t n_by_source();
  static std::size_t n_correction();  // numbers of a source's recalibration
  std::size_t n_weights() const;
  Features features(const Evidence& evidence) const;

  float probability(const Features& features, int source) const;
  void learn(const Features& features, int source, bool accepted);

  // Everything learned, as numbers: weights, then the recalibration of each source.
  std::vector<float> state() const;
  std::size_t n_state() const;
  // Weights alone, or a state. Other numbers than finite ones of a sensible size are refused.
  bool load(std::span<const float> state);

 private:
  static constexpr int kNumBins = 20;
  struct Bin {
    float n = 0, n_accepted = 0, sum = 0;  // seen, accepted, and predicted to be
  };

  float logit(const Features& features) const;
  static int bin_of(float logit);

  bool learns_, recalibrates_;
  std::vector<float> weights_;
  std::vector<std::array<Bin, kNumBins>> bins_;  // by source
};

}  // namespace codespec
