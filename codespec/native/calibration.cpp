#include "calibration.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace codespec {

void Experience::note(const Planner& planner, Tokens known) {
  for (const Outcome& outcome : planner.outcomes()) {
    if (examples.size() == kMost) break;
    examples.push_back({outcome.features, outcome.accepted});
  }
  for (const Token token : known) {
    if (kinds.size() == kMost) break;
    kinds.push_back(planner.class_of(token));
  }
}

Calibration::Calibration(Planner::Classes classes, int n_sources, std::span<const float> start)
    : planner_(std::move(classes), n_sources) {
  if (!planner_.model.load(start)) throw std::invalid_argument("not the weights of a planner");
}

Calibration::Begun Calibration::begin() {
  const std::lock_guard lock(mutex_);
  open_.insert(n_begun_);
  return {n_begun_++, planner_};
}

void Calibration::end(std::uint64_t number, Experience experience) {
  const std::lock_guard lock(mutex_);
  if (open_.erase(number) == 0) return;
  waiting_.emplace(number, std::move(experience));
  learn_waiting();
}

void Calibration::learn_waiting() {
  while (!waiting_.empty()) {
    const auto first = waiting_.begin();
    const bool is_next = open_.empty() || first->first < *open_.begin();
    if (!is_next && waiting_.size() <= kMostWaiting) break;
    learn(first->second);
    waiting_.erase(first);
  }
}

void Calibration::learn(const Experience& experience) {
  for (const auto& [features, accepted] : experience.examples) {
    planner_.model.learn(features, accepted);
  }
  // The text went on behind each token but the last; who ended it, and where, is not known.
  for (std::size_t i = 0; i + 1 < experience.kinds.size(); ++i) {
    planner_.ends.learn(experience.kinds[i] == Planner::kLineEnd, i, false);
  }
}

std::vector<float> Calibration::weights() const {
  const std::lock_guard lock(mutex_);
  return planner_.model.state();
}

std::size_t Calibration::n_open() const {
  const std::lock_guard lock(mutex_);
  return open_.size();
}

}  // namespace codespec
