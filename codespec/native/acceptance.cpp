#include "acceptance.h"

#include <algorithm>
#include <cmath>

namespace codespec {
namespace {

constexpr float kRate = 0.02f;  // of learning; 0.005 to 0.04 decode within 1 % of it
constexpr float kMaxWeight = 30.0f;

// Index of the first end that is not below the value.
template <typename T, std::size_t n>
constexpr int bucket(T value, const std::array<T, n>& ends) {
  int i = 0;
  for (const T end : ends) i += value > end;
  return i;
}

constexpr std::array kLengths{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48};  // 12 buckets
constexpr std::array kFewLengths{0, 1, 2, 4, 8, 16, 32};              // all others 8
constexpr std::array kRatios{.1f, .2f, .35f, .5f, .65f, .8f, .95f};
constexpr std::array kTotals{1, 2, 3, 5, 9, 17, 40};
constexpr std::array kDepths{0, 1, 2, 4, 7, 11, 15};
constexpr std::array kEmitted{0, 1, 3, 7, 15, 31, 79};
constexpr std::array<std::int64_t, 7> kDistances{-1, 32, 100, 300, 1000, 3000, 10000};
constexpr std::array kRepeats{0, 1, 2, 4, 8, 16, 32};
constexpr std::array kRecencies{-1, 0, 8, 32, 100, 400, 2000};
constexpr std::array kHits{.2f, .35f, .45f, .55f, .65f, .75f, .85f};

// Sizes of the tables that all sources share, and of those that each source has, in the order of
// the cells below.
constexpr std::array kShared{16 * 16, 16 * 12, 8 * 8 * 8, 8 * 12, 8 * 8,
                             8 * 8,   8 * 8,   16 * 8,    16 * 8, 8 * 16};
constexpr std::array kBySource{2 * 12 * 8, 8 * 8, 8 * 2, 8, 8, 8 * 8, 8 * 8, 8 * 16};
static_assert(kShared.size() + kBySource.size() == AcceptanceModel::kNumTables);

template <std::size_t n>
constexpr std::array<int, n + 1> offsets_of(const std::array<int, n>& sizes) {
  std::array<int, n + 1> offsets{};
  for (std::size_t i = 0; i < n; ++i) offsets[i + 1] = offsets[i] + sizes[i];
  return offsets;
}

constexpr auto kSharedOffsets = offsets_of(kShared);
constexpr auto kSourceOffsets = offsets_of(kBySource);
static_assert(kSharedOffsets.back() + AcceptanceModel::kMaxSources * kSourceOffsets.back() <=
              1 << 16);

float logistic(float x) { return 1.0f / (1.0f + std::exp(-x)); }

}  // namespace

AcceptanceModel::AcceptanceModel(int n_sources) : n_sources_(n_sources) {
  weights_.resize(n_weights());
}

std::size_t AcceptanceModel::n_shared() { return kSharedOffsets.back(); }

std::size_t AcceptanceModel::n_by_source() { return kSourceOffsets.back(); }

std::size_t AcceptanceModel::n_weights() const {
  return n_shared() + static_cast<std::size_t>(n_sources_) * n_by_source();
}

AcceptanceModel::Features AcceptanceModel::features(const Evidence& e) const {
  const int length = bucket(e.match_length, kLengths);
  const int few = bucket(e.match_length, kFewLengths);
  const int second = bucket(e.second_length, kFewLengths);
  const int rival = bucket(e.rival_length, kFewLengths);
  const int ratio = bucket(e.ratio, kRatios);
  const int depth = bucket(e.depth, kDepths);
  const int emitted = bucket(e.n_emitted, kEmitted);
  const std::array shared{
      e.token_class * kNumClasses + e.class_before,
      e.token_class * 12 + length,
      (few * 8 + second) * 8 + rival,
      emitted * 12 + length,
      bucket(e.total, kTotals) * 8 + ratio,
      bucket(e.hit_rate, kHits) * 8 + depth,
      bucket(e.ratio_before, kRatios) * 8 + ratio,
      e.token_class * 8 + ratio,
      e.class_before * 8 + depth,
      bucket(e.in_line, kEmitted) * kNumClasses + e.token_class,
  };
  const std::array by_source{
      ((e.is_runner_up ? 12 : 0) + length) * 8 + ratio,
      bucket(e.ratio_lowest, kRatios) * 8 + depth,
      bucket(e.distance, kDistances) * 2 + (e.total > 1),
      bucket(e.n_repeats_right, kRepeats),
      std::min(e.n_supports, 7),
      emitted * 8 + few,
      bucket(e.source_hit_rate, kHits) * 8 + few,
      bucket(e.recency, kRecencies) * kNumClasses + e.token_class,
  };
  Features out;
  auto cell = out.begin();
  for (std::size_t i = 0; i < shared.size(); ++i) {
    *cell++ = static_cast<std::uint16_t>(kSharedOffsets[i] + shared[i]);
  }
  const int start = kSharedOffsets.back() + e.source * kSourceOffsets.back();
  for (std::size_t i = 0; i < by_source.size(); ++i) {
    *cell++ = static_cast<std::uint16_t>(start + kSourceOffsets[i] + by_source[i]);
  }
  return out;
}

float AcceptanceModel::logit(const Features& features) const {
  float sum = 0;
  for (const auto i : features) sum += weights_[i];
  return sum;
}

float AcceptanceModel::probability(const Features& features) const {
  return std::clamp(logistic(logit(features)), 0.001f, 0.999f);
}

void AcceptanceModel::learn(const Features& features, bool accepted) {
  const float step = kRate * ((accepted ? 1.0f : 0.0f) - logistic(logit(features)));
  for (const auto i : features) weights_[i] += step;
}

bool AcceptanceModel::load(std::span<const float> state) {
  const auto is_sound = [](float w) { return std::abs(w) <= kMaxWeight; };
  if (state.size() != n_weights() || !std::ranges::all_of(state, is_sound)) return false;
  weights_.assign(state.begin(), state.end());
  return true;
}

}  // namespace codespec
