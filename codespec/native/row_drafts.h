// Drafts for all rows of an engine's step in one call: each row a request, several threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "calibration.h"
#include "sources.h"
#include "tokens.h"

namespace codespec {

// One request of an engine that serves many: its text so far, what it drafts from, and what it
// taught. Its workspace learns of it once it ends, see Calibration.
class DraftedRequest {
 public:
  // sources: must outlive it. left, right: its document before and after the cursor.
  DraftedRequest(std::shared_ptr<Calibration> calibration, Sources& sources, Tokens left,
                 Tokens right);
  ~DraftedRequest() { end(); }
  DraftedRequest(const DraftedRequest&) = delete;
  DraftedRequest& operator=(const DraftedRequest&) = delete;

  // Learns from the tokens that were emitted since the last call.
  void read(Tokens fresh);
  // A chain that continues the text, of at most costs.size() - 1 tokens. costs: milliseconds of
  // steps with 0, 1, 2, ... drafted tokens of this row.
  std::vector<Token> draft(std::span<const double> costs);
  void end();

  struct Count {
    std::int64_t n_drafted = 0, n_accepted = 0;
  };
  std::span<const Count> by_source() const { return by_source_; }

  // Held by the one thread that drafts: a caller may give the same request twice.
  std::mutex turn;

 private:
  std::shared_ptr<Calibration> calibration_;
  Calibration::Begun begun_;
  Sources& sources_;
  std::vector<Token> emitted_;
  Draft last_;
  Experience experience_;
  std::vector<Count> by_source_;
  bool is_over_ = false;
};

// Threads that wait for work; they need no GIL. One caller at a time.
class RowThreads {
 public:
  // n: threads, the caller's included.
  explicit RowThreads(std::size_t n);
  ~RowThreads();
  RowThreads(const RowThreads&) = delete;
  RowThreads& operator=(const RowThreads&) = delete;

  std::size_t size() const { return threads_.size() + 1; }
  // Calls work(i) for all i below n, in any order, on at most `most` threads. `work` must not
  // throw.
  void run(std::size_t n, std::size_t most, const std::function<void(std::size_t)>& work);

 private:
  void wait_for_work();
  void take_all();

  std::vector<std::thread> threads_;
  std::mutex calls_, mutex_;
  std::condition_variable has_work_, is_done_;
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::size_t n_ = 0, n_wanted_ = 0, n_working_ = 0;
  std::atomic<std::size_t> next_ = 0;
  bool ends_ = false;
};

}  // namespace codespec
