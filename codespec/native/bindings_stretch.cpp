// Python bindings of stretches, and of other calls of llama.cpp's functions.
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstdint>
#include <exception>

#include "bindings.h"
#include "stretch.h"

using namespace nanobind::literals;

namespace codespec {
namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;  // rows may be apart

std::span<const double> row(const Matrix& matrix, std::size_t i) {
  return {matrix.data() + static_cast<std::ptrdiff_t>(i) * matrix.stride(0), matrix.shape(1)};
}

// Keeps all arguments alive.
struct PyDrafting {
  nb::object sources, boundary, planner;
  Matrix costs;
  bool is_back = true;
  std::size_t width = 1;
};

struct Ends {
  std::vector<std::uint8_t> marks;
};

template <typename T>
void check_is(const nb::object& object, const char* what) {
  if (!nb::isinstance<T>(object)) throw nb::type_error(what);
}

PyDrafting make_drafting(nb::object sources, nb::object boundary, nb::object planner,
                         Matrix costs) {
  check_is<Sources>(sources, "no sources");
  if (!boundary.is_none()) check_is<Boundary>(boundary, "no boundary");
  check_is<Planner>(planner, "no planner");
  if (costs.shape(0) != 2 || costs.stride(1) != 1)
    throw nb::value_error("costs must be two rows without gaps");
  for (const std::size_t i : {0, 1}) check_costs(row(costs, i));
  return {std::move(sources), std::move(boundary), std::move(planner), std::move(costs)};
}

nb::list list_of(const std::vector<std::int32_t>& values) {
  nb::list list;
  for (const std::int32_t value : values) list.append(value);
  return list;
}

// Rounded to a tenth of a microsecond, as people read the numbers.
nb::list list_of(const std::vector<double>& ms) {
  nb::list list;
  for (const double value : ms) list.append(std::round(value * 1e4) / 1e4);
  return list;
}

nb::list unrounded(const std::vector<double>& values) {
  nb::list list;
  for (const double value : values) list.append(value);
  return list;
}

// Lists are converted once, not at each access.
struct PyStretch {
  explicit PyStretch(const Stretch& done)
      : tokens(list_of(done.tokens)),
        log_probs(unrounded(done.log_probs)),
        widths(list_of(done.widths)),
        n_drafted(list_of(done.n_drafted)),
        n_accepted(list_of(done.n_accepted)),
        draft_ms(list_of(done.draft_ms)),
        pass_ms(list_of(done.pass_ms)),
        is_damaged(done.is_damaged),
        code(done.code) {
    for (std::size_t source = 0; source < done.by_source.size(); ++source) {
      const auto [n_drafted, n_accepted] = done.by_source[source];
      if (n_drafted > 0) by_source.append(nb::make_tuple(source, n_drafted, n_accepted));
    }
  }

  nb::list tokens, log_probs, widths, n_drafted, n_accepted, draft_ms, pass_ms, by_source;
  bool is_damaged;
  std::int32_t code;
};

LlamaContext make_context(std::uintptr_t decode, std::uintptr_t logits, std::uintptr_t remove,
                          std::uintptr_t context, std::uintptr_t memory, std::uintptr_t batch,
                          std::size_t n_vocab, std::size_t n_ctx) {
  return {pointer<decltype(LlamaContext::decode)>(decode),
          pointer<decltype(LlamaContext::logits)>(logits),
          pointer<decltype(LlamaContext::remove)>(remove),
          pointer<void*>(context),
          pointer<void*>(memory),
          pointer<LlamaBatch*>(batch),
          n_vocab,
          n_ctx};
}

PyStretch stretch(const LlamaContext& self, const PyDrafting* py, std::vector<Token> emitted,
                  Token last, std::int32_t n_cached, const Ends& ends, std::size_t n_tokens,
                  std::size_t n_passes, std::size_t n_draft, double ms,
                  const nb::callable& interrupted, bool is_scored) {
  if (n_cached < 0) throw nb::value_error("n_cached must not be negative");
  if (ends.marks.size() != self.n_vocab)
    throw nb::value_error("ends must say something of each token");
  Drafting drafting;
  if (py != nullptr) {
    if (n_draft >= py->costs.shape(1)) throw nb::value_error("costs must have more than n_draft");
    if (py->width > 1 + n_draft) throw nb::value_error("width must be at most 1 + n_draft");
    drafting = {nb::cast<Sources*>(py->sources),
                py->boundary.is_none() ? nullptr : nb::cast<Boundary*>(py->boundary),
                nb::cast<Planner*>(py->planner),
                {row(py->costs, 0), row(py->costs, 1)},
                py->is_back,
                py->width};
    check_fits(*drafting.sources, *drafting.planner);
  }
  const auto is_over = [&] { return nb::cast<bool>(interrupted()); };
  const StretchLimits limits{n_tokens, n_passes, n_draft, is_scored, ms, ends.marks, is_over};
  return PyStretch(
      decode_stretch(self, std::move(drafting), limits, std::move(emitted), last, n_cached));
}

// Returns false where the function throws. In ctypes, which cannot pass an exception on, it would
// end the process.
bool accepts(std::uintptr_t accept, std::uintptr_t sampler, Token token) {
  const auto call = pointer<void (*)(void*, Token)>(accept);
  void* const taker = pointer<void*>(sampler);
  try {
    call(taker, token);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

// Abort callback of llama.cpp, called after each part of a pass: counts a step, never aborts. Other
// processes read the number; one thread writes it, and it need not be exact.
bool count_step(void* steps) {
  auto* const n = static_cast<volatile std::uint64_t*>(steps);
  *n = *n + 1;
  return false;
}

}  // namespace

void bind_stretch(nb::module_& m) {
  nb::class_<PyDrafting>(m, "Drafting", nb::is_final())
      .def(nb::new_(&make_drafting), "sources"_a, "boundary"_a.none(), "planner"_a,
           "costs"_a.noconvert())
      .def_rw("is_back", &PyDrafting::is_back)
      .def_rw("width", &PyDrafting::width);
  nb::class_<Ends>(m, "Ends", nb::is_final())
      .def(nb::new_([](const Vector<std::uint8_t>& marks) {
             const auto all = as_span(marks);
             return Ends{{all.begin(), all.end()}};
           }),
           "marks"_a.noconvert());
  nb::class_<PyStretch>(m, "Stretch", nb::is_final())
      .def_ro("tokens", &PyStretch::tokens)
      .def_ro("log_probs", &PyStretch::log_probs)
      .def_ro("widths", &PyStretch::widths)
      .def_ro("n_drafted", &PyStretch::n_drafted)
      .def_ro("n_accepted", &PyStretch::n_accepted)
      .def_ro("draft_ms", &PyStretch::draft_ms)
      .def_ro("pass_ms", &PyStretch::pass_ms)
      .def_ro("by_source", &PyStretch::by_source)
      .def_ro("is_damaged", &PyStretch::is_damaged)
      .def_ro("code", &PyStretch::code);
  m.attr("ENDS_STRETCH") = static_cast<int>(StretchLimits::kEndsStretch);
  m.attr("ENDS_TEXT") = static_cast<int>(StretchLimits::kEndsText);
  nb::class_<LlamaContext>(m, "LlamaContext", nb::is_final())
      .def(nb::new_(&make_context), "decode"_a, "logits"_a, "remove"_a, "context"_a, "memory"_a,
           "batch"_a, "n_vocab"_a, "n_ctx"_a)
      .def("stretch", &stretch, "drafting"_a.none(), "emitted"_a, "last"_a, "n_cached"_a, "ends"_a,
           "n_tokens"_a, "n_passes"_a, "n_draft"_a, "ms"_a, "interrupted"_a, "is_scored"_a = false);
  m.attr("STEP_COUNTER") = reinterpret_cast<std::uintptr_t>(&count_step);
  m.def("accepts", &accepts, "accept"_a, "sampler"_a, "token"_a);
}

}  // namespace codespec
