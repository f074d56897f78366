// Python bindings of the vocabulary, the tokenizer and the boundary at the cursor.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.h"
#include "boundary.h"
#include "encoder.h"

using namespace nanobind::literals;

namespace codespec {
namespace {

nb::bytes as_bytes(std::string_view text) { return nb::bytes(text.data(), text.size()); }

Vocabulary make_vocabulary(const std::vector<nb::bytes>& pieces) {
  std::vector<std::string_view> views;
  for (const nb::bytes& piece : pieces) views.push_back(as_view(piece));
  return Vocabulary(views);
}

Encoder make_encoder(std::uintptr_t tokenize, std::uintptr_t vocabulary, const nb::bytes& lead,
                     std::size_t n_lead) {
  return {pointer<Encoder::Function>(tokenize), pointer<const void*>(vocabulary),
          std::string(as_view(lead)), n_lead};
}

auto encode(const Encoder& self, const nb::bytes& text) {
  std::vector<Token> tokens;
  {
    const nb::gil_scoped_release release;
    tokens = self(as_view(text));
  }
  return as_numpy(std::move(tokens));
}

Boundary make_boundary(const TokenArray& left, const nb::bytes& healed, Vocabulary& vocabulary,
                       nb::object encode) {
  Boundary::Encode tokens;
  if (nb::isinstance<Encoder>(encode)) {
    tokens = nb::cast<Encoder>(encode);
  } else {
    tokens = [encode = std::move(encode)](std::string_view text) {
      const auto found = nb::cast<TokenArray>(encode(as_bytes(text)));
      return std::vector<Token>(found.data(), found.data() + found.size());
    };
  }
  return {as_span(left), std::string(as_view(healed)), vocabulary, std::move(tokens)};
}

}  // namespace

void bind_boundary(nb::module_& m) {
  nb::class_<Vocabulary>(m, "Vocabulary", nb::is_final())
      .def(nb::new_(&make_vocabulary), "pieces"_a)
      .def("__len__", &Vocabulary::size)
      .def(
          "compatible",
          [](Vocabulary& self, const nb::bytes& wanted) {
            if (wanted.size() == 0) throw nb::value_error("nothing is wanted");
            return as_numpy(self.compatible(as_view(wanted)));
          },
          "wanted"_a)
      .def(
          "containing",
          [](const Vocabulary& self, const nb::bytes& part) {
            return as_numpy(self.containing(as_view(part)));
          },
          "part"_a);
  nb::class_<Encoder>(m, "Encoder", nb::is_final())
      .def(nb::new_(&make_encoder), "tokenize"_a, "vocabulary"_a, "lead"_a, "n_lead"_a)
      .def("__call__", &encode, "text"_a);
  nb::class_<Boundary>(m, "Boundary", nb::is_final())
      .def(nb::new_(&make_boundary), nb::keep_alive<0, 4>(), "left"_a.noconvert(), "healed"_a,
           "vocabulary"_a, "encode"_a)
      .def_prop_ro("n_base", &Boundary::n_base)
      .def(
          "is_within",
          [](Boundary& self, const TokenArray& emitted) {
            return !self.query(as_span(emitted)).wanted.empty();
          },
          "emitted"_a.noconvert())
      .def(
          "ask",
          [](Boundary& self, const TokenArray& emitted, const TokenArray& path, int n_max,
             Sources& sources) {
            check_limits(n_max, 1);
            return self.ask(as_span(emitted), as_span(path), n_max, sources);
          },
          "emitted"_a.noconvert(), "path"_a.noconvert(), "n_max"_a, "sources"_a);
}

}  // namespace codespec
