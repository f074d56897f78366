#include "row_drafts.h"

#include <algorithm>
#include <utility>

namespace codespec {

DraftedRequest::DraftedRequest(std::shared_ptr<Calibration> calibration, Sources& sources,
                               Tokens left, Tokens right)
    : calibration_(std::move(calibration)),
      begun_(calibration_->begin()),
      sources_(sources),
      by_source_(static_cast<std::size_t>(begun_.planner.model.n_sources())) {
  begun_.planner.begin(left, right);
}

void DraftedRequest::read(Tokens fresh) {
  if (fresh.empty()) return;
  const auto right = std::ranges::mismatch(fresh, last_.tokens).in2 - last_.tokens.begin();
  for (std::ptrdiff_t i = 0; i < std::ssize(last_.tokens); ++i) {
    Count& count =
        by_source_.at(static_cast<std::size_t>(last_.sources[static_cast<std::size_t>(i)]));
    ++count.n_drafted;
    if (i < right) ++count.n_accepted;
  }
  last_ = {};
  begun_.planner.learn(fresh, fresh.size());
  experience_.note(begun_.planner, fresh);
  emitted_.insert(emitted_.end(), fresh.begin(), fresh.end());
}

std::vector<Token> DraftedRequest::draft(std::span<const double> costs) {
  const int n_max = static_cast<int>(costs.size()) - 1;
  sources_.clear();
  last_ = {};
  if (n_max <= 0 || is_over_ || sources_.ask(emitted_, {}, n_max) == 0) return {};
  last_ = begun_.planner.plan(sources_.offers(), {n_max, 1, costs});
  return last_.tokens;
}

void DraftedRequest::end() {
  if (std::exchange(is_over_, true)) return;
  calibration_->end(begun_.number, std::move(experience_));
}

RowThreads::RowThreads(std::size_t n) {
  for (std::size_t i = 1; i < n; ++i) {
    threads_.emplace_back([this] { wait_for_work(); });
  }
}

RowThreads::~RowThreads() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  has_work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void RowThreads::run(std::size_t n, std::size_t most,
                     const std::function<void(std::size_t)>& work) {
  const std::lock_guard one(calls_);
  const std::size_t n_helpers = std::min({threads_.size(), most - 1, n > 0 ? n - 1 : 0});
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    n_ = n;
    next_ = 0;
    n_wanted_ = n_helpers;
  }
  for (std::size_t i = 0; i < n_helpers; ++i) has_work_.notify_one();
  take_all();
  std::unique_lock lock(mutex_);
  n_wanted_ = 0;  // who has not come yet finds nothing left
  is_done_.wait(lock, [&] { return n_working_ == 0; });
  work_ = nullptr;
}

void RowThreads::take_all() {
  for (std::size_t i = next_++; i < n_; i = next_++) (*work_)(i);
}

void RowThreads::wait_for_work() {
  is_without_gil = true;
  std::unique_lock lock(mutex_);
  while (true) {
    has_work_.wait(lock, [&] { return ends_ || n_wanted_ > 0; });
    if (ends_) return;
    --n_wanted_;
    ++n_working_;
    lock.unlock();
    take_all();
    lock.lock();
    if (--n_working_ == 0) is_done_.notify_one();
  }
}

}  // namespace codespec
