// What the requests of one workspace learn together, in the order in which they began.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "acceptance.h"
#include "planner.h"
#include "tokens.h"

namespace codespec {

// What one request taught: all that its planner learned, in order.
struct Experience {
  struct Example {
    AcceptanceModel::Features features;
    bool accepted;
  };
  static constexpr std::size_t kMost = 4096;  // of each kind; what comes later is not remembered

  std::vector<Example> examples;
  std::vector<std::uint8_t> kinds;  // of the tokens of its text

  // Notes what `learn` decided about `known`, which are part of the text now.
  void note(const Planner& planner, Tokens known);
};

// Requests overlap, and each learns at once from its own text. The workspace's weights learn from
// whole requests in the order in which these began, as if one had followed the other. Only drafts
// that were chosen with other weights still tell an order from another. Recent acceptance rates
// are each request's own for that reason. Thread-safe.
class Calibration {
 public:
  // Begun requests that an ended one waits for. Beyond it the oldest is not waited for any longer,
  // as a client may have left it open.
  static constexpr std::size_t kMostWaiting = 64;

  // start: weights of a planner of this many sources; they must fit.
  Calibration(Planner::Classes classes, int n_sources, std::span<const float> start);

  struct Begun {
    std::uint64_t number;
    Planner planner;
  };
  // A planner that starts from what is known by now.
  Begun begin();
  // Takes over what a begun request taught. Each number counts once.
  void end(std::uint64_t number, Experience experience);

  std::vector<float> weights() const;
  std::size_t n_open() const;

 private:
  void learn(const Experience& experience);
  void learn_waiting();

  mutable std::mutex mutex_;
  Planner planner_;  // of no request: the weights that a new one starts from
  std::uint64_t n_begun_ = 0;
  std::set<std::uint64_t> open_;                 // numbers of requests that have not ended
  std::map<std::uint64_t, Experience> waiting_;  // ended ones behind an open one
};

}  // namespace codespec
