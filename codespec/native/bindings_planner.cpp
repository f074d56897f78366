// Python bindings of the planner.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <tuple>

#include "bindings.h"
#include "sources.h"

using namespace nanobind::literals;

namespace codespec {

Planner::Classes as_classes(const Vector<std::uint8_t>& classes, int n_sources) {
  if (n_sources < 1 || n_sources > AcceptanceModel::kMaxSources) {
    throw nb::value_error("n_sources must be 1 to 32");
  }
  const auto ids = as_span(classes);
  for (const std::uint8_t c : ids) {
    if (c >= AcceptanceModel::kNumClasses) throw nb::value_error("a class must be 0 to 15");
  }
  return std::make_shared<const std::vector<std::uint8_t>>(ids.begin(), ids.end());
}

namespace {

Planner make_planner(const Vector<std::uint8_t>& classes, int n_sources) {
  return {as_classes(classes, n_sources), n_sources};
}

nb::object plan(Planner& self, const Sources& sources, int n_max, int max_leaves,
                const Vector<double>& costs, double again, int n_tail) {
  check_costs(as_span(costs));
  if (!(again >= 0) || n_tail < 1) throw nb::value_error("again >= 0, n_tail >= 1");
  check_fits(sources, self);
  Draft d = self.plan(sources.offers(), {n_max, max_leaves, as_span(costs), again, n_tail});
  if (d.tokens.empty()) return nb::none();
  return nb::make_tuple(as_numpy(std::move(d.tokens)), as_numpy(std::move(d.parents)),
                        as_numpy(std::move(d.probs)), as_numpy(std::move(d.sources)),
                        as_numpy(std::move(d.ends)));
}

auto outcomes(const Planner& self) {
  std::vector<std::int8_t> sources;
  std::vector<std::int32_t> lengths;
  std::vector<float> probs;
  std::vector<std::uint8_t> accepted;
  std::vector<std::uint16_t> features;
  for (const Outcome& o : self.outcomes()) {
    sources.push_back(o.source);
    lengths.push_back(o.match_length);
    probs.push_back(o.prob);
    accepted.push_back(o.accepted ? 1 : 0);
    features.insert(features.end(), o.features.begin(), o.features.end());
  }
  return nb::make_tuple(as_numpy(std::move(sources)), as_numpy(std::move(lengths)),
                        as_numpy(std::move(probs)), as_numpy(std::move(accepted)),
                        as_numpy(std::move(features)));
}

}  // namespace

void bind_planner(nb::module_& m) {
  nb::class_<Planner>(m, "Planner", nb::is_final())
      .def(nb::new_(&make_planner), "classes"_a.noconvert(), "n_sources"_a)
      .def_prop_ro_static("n_shared", [](nb::handle) { return AcceptanceModel::n_shared(); })
      .def_prop_ro_static("n_by_source", [](nb::handle) { return AcceptanceModel::n_by_source(); })
      .def_prop_ro_static("max_sources", [](nb::handle) { return AcceptanceModel::kMaxSources; })
      .def_prop_ro("n_sources", [](const Planner& self) { return self.model.n_sources(); })
      .def_prop_ro("n_weights", [](const Planner& self) { return self.model.n_weights(); })
      .def_prop_ro_static("n_features", [](nb::handle) { return AcceptanceModel::kNumTables; })
      .def("state",
           [](const Planner& self) { return as_numpy(std::vector<float>(self.model.state())); })
      .def(
          "load",
          [](Planner& self, const Vector<float>& state) {
            if (!self.model.load(as_span(state))) {
              throw nb::value_error("not the state of a planner of this version");
            }
          },
          "state"_a.noconvert())
      .def(
          "begin",
          [](Planner& self, const Vector<Token>& before, const Vector<Token>& after) {
            self.begin(as_span(before), as_span(after));
          },
          "before"_a.noconvert(), "after"_a.noconvert())
      .def("plan", &plan, "sources"_a, "n_max"_a, "max_leaves"_a, "costs"_a.noconvert(),
           "again"_a = 0.0, "n_tail"_a = 1)
      .def("ended", &Planner::ended, "n_emitted"_a)
      .def(
          "learn",
          [](Planner& self, const std::vector<Token>& known, std::int64_t n_emitted) {
            if (n_emitted < 0 || static_cast<std::size_t>(n_emitted) > known.size()) {
              throw nb::value_error("n_emitted must be 0 to the number of known tokens");
            }
            self.learn(known, static_cast<std::size_t>(n_emitted));
          },
          "known"_a, "n_emitted"_a)
      .def("outcomes", &outcomes);
}

}  // namespace codespec
