// Python bindings of the table of words.
#include <nanobind/stl/pair.h>

#include <cstdint>
#include <span>
#include <utility>

#include "bindings.h"
#include "words.h"

using namespace nanobind::literals;

namespace codespec {
namespace {

using SpanArray = nb::ndarray<const std::int64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;
using WordSpan = WordTable::Span;
static_assert(sizeof(WordSpan) == 2 * sizeof(std::int64_t));

// Throws for spans that are not within the text, not ascending or empty.
std::span<const WordSpan> as_spans(const SpanArray& array, const nb::bytes& text, bool ascending) {
  const std::span spans(reinterpret_cast<const WordSpan*>(array.data()), array.shape(0));
  std::int64_t at = 0;
  for (const auto& [begin, end] : spans) {
    const bool in_range =
        begin >= 0 && begin < end && end <= static_cast<std::int64_t>(text.size());
    if (!in_range || begin < at) throw nb::value_error("spans must be ascending, in the text");
    if (ascending) at = end;
  }
  return spans;
}

}  // namespace

void bind_words(nb::module_& m) {
  using Lengths = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using Spans = nb::ndarray<nb::numpy, const std::int64_t, nb::shape<-1, 2>>;
  m.attr("MAX_WORD_BYTES") = WordTable::kMaxWordBytes;
  nb::class_<WordTable>(m, "WordTable", nb::is_final())
      .def(
          "__init__",
          [](WordTable* self, int splitting, std::size_t max_words) {
            if (splitting < 0 || splitting >= kNumSplittings) {
              throw nb::value_error("no such splitting");
            }
            new (self) WordTable(static_cast<Splitting>(splitting), max_words);
          },
          "splitting"_a, "max_words"_a)
      .def("__len__", &WordTable::size)
      .def(
          "encode",
          [](const WordTable& table, const nb::bytes& text, const SpanArray& opaque) {
            const auto spans = as_spans(opaque, text, true);
            WordTable::Encoded found;
            {
              const nb::gil_scoped_release release;
              found = table.encode(as_view(text), spans);
            }
            auto* kept = new std::vector<WordSpan>(std::move(found.unknown));
            const nb::capsule owner(
                kept, [](void* p) noexcept { delete static_cast<std::vector<WordSpan>*>(p); });
            const auto* cells = reinterpret_cast<const std::int64_t*>(kept->data());
            return std::pair(as_numpy(std::move(found.tokens)),
                             Spans(cells, {kept->size(), 2}, owner));
          },
          "text"_a, "opaque"_a.noconvert())
      .def(
          "learn",
          [](WordTable& table, const nb::bytes& text, const SpanArray& words,
             const TokenArray& tokens, const Lengths& lengths) {
            const auto spans = as_spans(words, text, false);
            std::int64_t left = static_cast<std::int64_t>(tokens.size());
            for (std::size_t i = 0; i < lengths.size(); ++i) {
              if (lengths.data()[i] < 0 || lengths.data()[i] > left) left = -1;
              if (left < 0) break;
              left -= lengths.data()[i];
            }
            if (left != 0 || lengths.size() != spans.size()) {
              throw nb::value_error("lengths must say how many tokens each word has");
            }
            const nb::gil_scoped_release release;
            table.learn(as_view(text), spans, as_span(tokens), {lengths.data(), lengths.size()});
          },
          "text"_a, "words"_a.noconvert(), "tokens"_a.noconvert(), "lengths"_a.noconvert());
}

}  // namespace codespec
