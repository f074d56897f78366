// Python bindings of drafts for the rows of an engine.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "bindings.h"
#include "row_drafts.h"

using namespace nanobind::literals;

namespace codespec {
namespace {

using Clock = std::chrono::steady_clock;
using CostTable = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
constexpr std::size_t kMostThreads = 64;
// Fewer rows are done before another thread has woken up.
constexpr std::size_t kRowsOfThread = 4;

using SharedCalibration = std::shared_ptr<Calibration>;

struct PyCalibration {
  SharedCalibration shared;
  int n_sources;
};

PyCalibration make_calibration(const Vector<std::uint8_t>& classes, int n_sources,
                               const Vector<float>& start) {
  auto kinds = as_classes(classes, n_sources);
  return {std::make_shared<Calibration>(std::move(kinds), n_sources, as_span(start)), n_sources};
}

// Keeps its sources alive.
struct PyRequest {
  nb::object sources;
  std::unique_ptr<DraftedRequest> native;
};

PyRequest make_request(const PyCalibration& calibration, nb::object sources, const TokenArray& left,
                       const TokenArray& right) {
  auto& own = nb::cast<Sources&>(sources);
  if (own.n_sources() > calibration.n_sources) {
    throw nb::value_error("the calibration was made for fewer sources");
  }
  auto native =
      std::make_unique<DraftedRequest>(calibration.shared, own, as_span(left), as_span(right));
  return {std::move(sources), std::move(native)};
}

void end(const PyRequest& self) {
  const nb::gil_scoped_release release;
  const std::lock_guard turn(self.native->turn);
  self.native->end();
}

auto by_source(const PyRequest& self) {
  const nb::gil_scoped_release release;
  std::vector<std::pair<std::int64_t, std::int64_t>> counts;
  const std::lock_guard turn(self.native->turn);
  for (const auto& [n_drafted, n_accepted] : self.native->by_source()) {
    counts.emplace_back(n_drafted, n_accepted);
  }
  return counts;
}

struct RowResult {
  std::vector<Token> tokens;
  enum State : std::uint8_t { kDone, kLate, kFailed } state = kDone;
};

RowResult drafted(DraftedRequest& request, Tokens fresh, std::span<const double> costs,
                  Clock::time_point until) {
  RowResult result;
  const std::unique_lock turn(request.turn, std::try_to_lock);
  if (!turn.owns_lock()) return {{}, RowResult::kFailed};
  try {
    request.read(fresh);
    if (Clock::now() > until) return {{}, RowResult::kLate};
    result.tokens = request.draft(costs);
  } catch (const std::exception&) {
    return {{}, RowResult::kFailed};
  }
  return result;
}

// requests: kept alive here, as the caller's list may change while the GIL is released.
auto draft(RowThreads& self, const std::vector<nb::object>& requests,
           const std::vector<std::vector<Token>>& fresh, const std::vector<std::int32_t>& n_max,
           const CostTable& costs, double ms) {
  const std::size_t n = requests.size();
  if (fresh.size() != n || n_max.size() != n) throw nb::value_error("one element a request");
  const std::span<const double> all_costs{costs.data(), costs.size()};
  check_costs(all_costs);
  std::vector<DraftedRequest*> natives;
  for (const nb::object& request : requests) {
    if (!nb::isinstance<PyRequest>(request)) throw nb::type_error("not a request");
    natives.push_back(nb::cast<const PyRequest&>(request).native.get());
  }
  std::vector<RowResult> results(n);
  {
    const nb::gil_scoped_release release;
    const auto most = std::chrono::duration<double, std::milli>(std::clamp(ms, 0.0, 1e9));
    const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(most);
    is_without_gil = true;
    self.run(n, 1 + n / kRowsOfThread, [&](std::size_t i) {
      const auto k = static_cast<std::size_t>(std::max(n_max[i], 0));
      const auto row_costs = all_costs.first(std::min(all_costs.size(), k + 1));
      results[i] = drafted(*natives[i], fresh[i], row_costs, until);
    });
    is_without_gil = false;
  }
  std::size_t n_late = 0, n_failed = 0;
  std::vector<std::vector<Token>> chains;
  for (RowResult& result : results) {
    n_late += result.state == RowResult::kLate;
    n_failed += result.state == RowResult::kFailed;
    chains.push_back(std::move(result.tokens));
  }
  return nb::make_tuple(std::move(chains), n_late, n_failed);
}

}  // namespace

void bind_serving(nb::module_& m) {
  nb::class_<PyCalibration>(m, "Calibration", nb::is_final())
      .def(nb::new_(&make_calibration), "classes"_a.noconvert(), "n_sources"_a,
           "start"_a.noconvert())
      .def("weights", [](const PyCalibration& self) { return as_numpy(self.shared->weights()); })
      .def_prop_ro("n_open", [](const PyCalibration& self) { return self.shared->n_open(); });
  nb::class_<PyRequest>(m, "DraftedRequest", nb::is_final())
      .def(nb::new_(&make_request), "calibration"_a, "sources"_a, "left"_a.noconvert(),
           "right"_a.noconvert())
      .def("end", &end)
      .def_prop_ro("by_source", &by_source);
  nb::class_<RowThreads>(m, "RowThreads", nb::is_final())
      .def(
          "__init__",
          [](RowThreads* self, std::size_t n) {
            if (n < 1 || n > kMostThreads) throw nb::value_error("n must be 1 to 64");
            new (self) RowThreads(n);
          },
          "n"_a)
      .def("__len__", &RowThreads::size)
      .def("draft", &draft, "requests"_a, "fresh"_a, "n_max"_a, "costs"_a.noconvert(), "ms"_a);
}

}  // namespace codespec
