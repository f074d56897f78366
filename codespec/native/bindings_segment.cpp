// Python bindings of segments.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <tuple>

#include "bindings.h"
#include "mapped_file.h"
#include "segment.h"
#include "segment_build.h"

using namespace nanobind::literals;

namespace codespec {
namespace {

using OffsetArray = Vector<std::int64_t>;

}  // namespace

Segment::Dead as_dead(const std::optional<AnyVector>& dead, const Segment& segment) {
  if (!dead) return {};
  const bool bytes = dead->dtype().bits == 8 && dead->dtype().lanes == 1;
  if (!bytes) throw nb::type_error("dead must be an array of bool or uint8");
  if (dead->size() != segment.header().n_docs) {
    throw nb::value_error("dead must have one element per document");
  }
  return {static_cast<const std::uint8_t*>(dead->data()), dead->size()};
}

void bind_segment(nb::module_& m) {
  m.def(
      "map_file",
      [](const std::filesystem::path& path) {
        auto* kept = new MappedFile(path);
        const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<MappedFile*>(p); });
        const auto bytes = kept->bytes();
        return nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>(
            reinterpret_cast<const std::uint8_t*>(bytes.data()), {bytes.size()}, owner);
      },
      "path"_a);

  m.def(
      "build_segment",
      [](const std::filesystem::path& path, const TokenArray& tokens,
         const OffsetArray& doc_starts) {
        const nb::gil_scoped_release release;
        build_segment(path, as_span(tokens), {doc_starts.data(), doc_starts.size()});
      },
      "path"_a, "tokens"_a.noconvert(), "doc_starts"_a.noconvert());

  nb::class_<Segment>(m, "Segment", nb::is_final())
      .def_static(
          "open", [](const std::filesystem::path& path) { return new Segment(path); }, "path"_a)
      .def_prop_ro("n_tokens", [](const Segment& s) { return s.header().n_tokens; })
      .def_prop_ro("n_docs", [](const Segment& s) { return s.header().n_docs; })
      .def_prop_ro("n_vocab", [](const Segment& s) { return s.header().n_vocab; })
      .def_prop_ro("n_bytes", [](const Segment& s) { return s.layout().file_bytes; })
      .def_prop_ro("token_bits", [](const Segment& s) { return s.layout().token_bits; })
      .def_prop_ro("n_blocks", [](const Segment& s) { return s.layout().n_blocks; })
      .def_prop_ro("is_checked", &Segment::is_checked)
      .def("check_some", &Segment::check_some, "n_blocks"_a,
           nb::call_guard<nb::gil_scoped_release>())
      .def("verify", &Segment::verify, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "match",
          [](const Segment& s, const TokenArray& context) {
            const Interval found = s.match(as_span(context));
            return std::tuple(found.length, found.lo, found.hi);
          },
          "context"_a.noconvert())
      .def(
          "holders",
          [](const Segment& s, const TokenArray& string, std::size_t most) {
            if (string.size() < 1 || string.size() > kMaxDepth) {
              throw nb::value_error("the string must have 1 to 64 tokens");
            }
            return s.holders(as_span(string), most);
          },
          "string"_a.noconvert(), "most"_a)
      .def(
          "draft",
          [](const Segment& s, const TokenArray& context, int n_max, int min_length,
             const std::optional<AnyVector>& dead, const std::optional<TokenArray>& allowed) {
            check_limits(n_max, min_length);
            return s.draft(as_span(context), n_max, min_length, as_dead(dead, s),
                           as_allowed(allowed));
          },
          "context"_a.noconvert(), "n_max"_a, "min_length"_a = 1, "dead"_a = nb::none(),
          "allowed"_a.noconvert() = nb::none())
      .def(
          "locate",
          [](const Segment& s, std::int64_t position) {
            const Segment::Place place = s.locate(position);
            return std::tuple(place.doc, place.offset);
          },
          "position"_a)
      .def(
          "doc_tokens",
          [](const Segment& s, std::int64_t doc) {
            return as_numpy(s.doc_tokens(static_cast<std::uint64_t>(doc)));
          },
          "doc"_a);
}

}  // namespace codespec
