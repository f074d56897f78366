// The Python face of the folder: checks and converts arguments, guards threads. See _core.pyi.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "automaton.h"
#include "bindings_planner.h"
#include "segment.h"
#include "segment_build.h"
#include "words.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace codespec {
namespace {

using TokenArray = nb::ndarray<const Token, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OffsetArray = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using AnyVector = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using NumpyTokens = nb::ndarray<nb::numpy, const std::int32_t, nb::ndim<1>>;

Tokens as_span(const TokenArray& array) { return {array.data(), array.size()}; }

NumpyTokens as_numpy(std::vector<Token>&& tokens) {
  auto* kept = new std::vector<Token>(std::move(tokens));
  const nb::capsule owner(kept,
                          [](void* p) noexcept { delete static_cast<std::vector<Token>*>(p); });
  return {kept->data(), {kept->size()}, owner};
}

NumpyTokens as_numpy(Tokens tokens) {  // a copy
  return as_numpy(std::vector<Token>(tokens.begin(), tokens.end()));
}

Allowed as_allowed(const std::optional<TokenArray>& ids) {
  return ids ? Allowed(as_span(*ids)) : std::nullopt;
}

// A view; as a property it keeps the proposal alive.
template <Proposal::Column column>
NumpyTokens view(const Proposal& proposal) {
  const auto cells = proposal.column(column);
  return {cells.data(), {cells.size()}};
}

nb::ndarray<nb::numpy, const std::int32_t, nb::ndim<2>> all_columns(const Proposal& proposal) {
  return {proposal.tokens().data(),
          {static_cast<std::size_t>(Proposal::kNumColumns), proposal.tokens().size()},
          nb::handle(),
          {proposal.capacity(), 1}};
}

void check_limits(int n_max, int min_length) {
  if (n_max < 0) throw nb::value_error("n_max must not be negative");
  if (min_length < 1) throw nb::value_error("min_length must be at least 1");
}

// An automaton that threads may share. Who has to wait for it lets the GIL go meanwhile.
class SharedAutomaton {
 public:
  explicit SharedAutomaton(int max_depth) : automaton_(max_depth) {}

  // For calls of some microseconds: giving up the GIL may cost more than they do.
  template <typename F>
  auto quick(F f) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
      const nb::gil_scoped_release release;
      lock.lock();
    }
    return f(automaton_);
  }

  // For changes of any number of tokens.
  template <typename F>
  void change(std::size_t n_tokens, F f) {
    constexpr std::size_t kQuick = 64;
    if (n_tokens <= kQuick) return quick(f);
    const nb::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    f(automaton_);
  }

 private:
  SuffixAutomaton automaton_;
  std::mutex mutex_;
};

// Where a context that grows stands in several automata: nothing is matched twice.
class Matcher {
 public:
  explicit Matcher(const std::vector<nb::object>& automata) {
    for (const nb::object& o : automata) readers_.push_back({o, nb::cast<SharedAutomaton*>(o)});
  }

  // The draft of the automaton with the longest match, the first of equals.
  Proposal draft(Tokens context, int n_max, int min_length, const Allowed& allowed) {
    const Tokens more = grown(context);
    Proposal best(0);
    int best_length = 0;
    for (Reader& reader : readers_) {
      reader.automaton->quick([&](SuffixAutomaton& a) {
        const bool knows = reader.n_changes == a.n_changes() && is_grown_;
        if (knows) {
          for (const Token token : more) reader.match = a.grow(reader.match, token);
        } else {
          reader.match = a.find(context);
          reader.n_changes = a.n_changes();
        }
        // A draft's match is no longer than that of its context.
        if (reader.match.length <= best_length) return;
        Proposal found = a.follow(reader.match, n_max, min_length, allowed);
        const int length = found.size() > 0 ? found.column(Proposal::kMatchLengths)[0] : 0;
        if (length <= best_length) return;
        best = std::move(found);
        best_length = length;
      });
    }
    return best;
  }

 private:
  struct Reader {
    nb::object owner;
    SharedAutomaton* automaton;
    SuffixAutomaton::Match match{};
    std::uint64_t n_changes = ~std::uint64_t{0};
  };

  // The tokens that `context` has more than the last one, and whether that is all.
  Tokens grown(Tokens context) {
    constexpr auto kTail = static_cast<std::size_t>(kMaxDepth);
    const std::size_t n_more = context.size() - std::min(n_context_, context.size());
    const Tokens before = context.first(context.size() - n_more);
    is_grown_ = n_context_ <= context.size() && n_context_ > 0 &&
                std::ranges::equal(before.last(std::min(kTail, before.size())), tail_);
    n_context_ = context.size();
    const Tokens tail = context.last(std::min(kTail, context.size()));
    tail_.assign(tail.begin(), tail.end());
    return context.last(n_more);
  }

  std::vector<Reader> readers_;
  std::vector<Token> tail_;  // of the last context
  std::size_t n_context_ = 0;
  bool is_grown_ = false;
};

void bind_proposal(nb::module_& m) {
  nb::class_<Proposal>(m, "Proposal", nb::is_final())
      .def("__len__", &Proposal::size)
      .def_prop_ro("tokens", &view<Proposal::kTokens>)
      .def_prop_ro("counts", &view<Proposal::kCounts>)
      .def_prop_ro("totals", &view<Proposal::kTotals>)
      .def_prop_ro("match_lengths", &view<Proposal::kMatchLengths>)
      .def_prop_ro("alt_tokens", &view<Proposal::kAltTokens>)
      .def_prop_ro("alt_counts", &view<Proposal::kAltCounts>)
      .def_prop_ro("columns", &all_columns)
      .def_prop_ro(
          "match_length",
          [](const Proposal& p) { return p.size() > 0 ? p.column(Proposal::kMatchLengths)[0] : 0; })
      .def_ro("n_matches", &Proposal::n_matches)
      .def_ro("position", &Proposal::position);
}

void bind_automaton(nb::module_& m) {
  using Shared = SharedAutomaton;
  using Automaton = SuffixAutomaton;
  nb::class_<Shared>(m, "SuffixAutomaton", nb::is_final())
      .def(nb::init<int>(), "max_depth"_a = kMaxDepth)
      .def("__len__", [](Shared& s) { return s.quick([](Automaton& a) { return a.size(); }); })
      .def_prop_ro("max_depth",
                   [](Shared& s) { return s.quick([](Automaton& a) { return a.max_depth(); }); })
      .def_prop_ro("n_states",
                   [](Shared& s) { return s.quick([](Automaton& a) { return a.n_states(); }); })
      .def_prop_ro("n_bytes",
                   [](Shared& s) { return s.quick([](Automaton& a) { return a.n_bytes(); }); })
      .def_prop_ro(
          "text",
          [](Shared& s) { return s.quick([](Automaton& a) { return as_numpy(a.text()); }); },
          nb::rv_policy::automatic)
      .def(
          "extend",
          [](Shared& s, const TokenArray& tokens) {
            s.change(tokens.size(), [&](Automaton& a) { a.extend(as_span(tokens)); });
          },
          "tokens"_a.noconvert())
      .def(
          "assign",
          [](Shared& s, const TokenArray& tokens) {
            const Tokens text = as_span(tokens);
            const std::size_t n =
                s.quick([&](Automaton& a) { return a.size() + text.size() - 2 * a.n_same(text); });
            s.change(n, [&](Automaton& a) { a.assign(text); });
          },
          "tokens"_a.noconvert())
      .def("extend_break",
           [](Shared& s) { s.quick([](Automaton& a) { a.extend(Tokens(&kBreak, 1)); }); })
      .def(
          "truncate",
          [](Shared& s, std::int64_t n) {
            s.change(SIZE_MAX, [&](Automaton& a) {
              if (n < 0 || static_cast<std::size_t>(n) > a.size()) {
                throw std::invalid_argument("n must be 0 to the length of the text");
              }
              a.truncate(static_cast<std::size_t>(n));
            });
          },
          "n"_a)
      .def(
          "count",
          [](Shared& s, const TokenArray& string) {
            return s.quick([&](Automaton& a) {
              if (string.size() < 1 || string.size() > static_cast<std::size_t>(a.max_depth())) {
                throw nb::value_error("the string must have 1 to max_depth tokens");
              }
              return a.count(as_span(string));
            });
          },
          "string"_a.noconvert())
      .def(
          "followers",
          [](Shared& s, const TokenArray& string) {
            return s.quick([&](Automaton& a) {
              if (string.size() < 1 || string.size() > static_cast<std::size_t>(a.max_depth())) {
                throw nb::value_error("the string must have 1 to max_depth tokens");
              }
              return a.followers(as_span(string));
            });
          },
          "string"_a.noconvert())
      .def(
          "match",
          [](Shared& s, const TokenArray& context) {
            return s.quick([&](Automaton& a) { return a.match(as_span(context)); });
          },
          "context"_a.noconvert())
      .def(
          "draft",
          [](Shared& s, const TokenArray& context, int n_max, int min_length,
             const std::optional<TokenArray>& allowed) {
            check_limits(n_max, min_length);
            return s.quick([&](Automaton& a) {
              return a.draft(as_span(context), n_max, min_length, as_allowed(allowed));
            });
          },
          "context"_a.noconvert(), "n_max"_a, "min_length"_a = 1,
          "allowed"_a.noconvert() = nb::none())
      .def(
          "draft_tail",
          [](Shared& s, int n_max, int min_length, const std::optional<TokenArray>& allowed) {
            check_limits(n_max, min_length);
            return s.quick(
                [&](Automaton& a) { return a.draft_tail(n_max, min_length, as_allowed(allowed)); });
          },
          "n_max"_a, "min_length"_a = 1, "allowed"_a.noconvert() = nb::none());

  nb::class_<Matcher>(m, "Matcher", nb::is_final())
      .def(nb::init<const std::vector<nb::object>&>(), "automata"_a)
      .def(
          "draft",
          [](Matcher& matcher, const TokenArray& context, int n_max, int min_length,
             const std::optional<TokenArray>& allowed) {
            check_limits(n_max, min_length);
            return matcher.draft(as_span(context), n_max, min_length, as_allowed(allowed));
          },
          "context"_a.noconvert(), "n_max"_a, "min_length"_a = 1,
          "allowed"_a.noconvert() = nb::none());
}

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

using SpanArray = nb::ndarray<const std::int64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;
using WordSpan = WordTable::Span;
static_assert(sizeof(WordSpan) == 2 * sizeof(std::int64_t));

std::string_view as_view(const nb::bytes& text) { return {text.c_str(), text.size()}; }

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

void raise_os_error(const std::exception_ptr& p, void*) {
  try {
    std::rethrow_exception(p);
  } catch (const std::filesystem::filesystem_error& e) {
    errno = e.code().default_error_condition().value();
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, e.path1().string().c_str());
  }
}

}  // namespace
}  // namespace codespec

NB_MODULE(_core, m) {
  using namespace codespec;
  nb::register_exception_translator(raise_os_error);
  nb::exception<DamagedSegment>(m, "DamagedSegmentError", PyExc_ValueError);
  m.attr("MAX_DEPTH") = kMaxDepth;
  bind_proposal(m);
  bind_automaton(m);
  bind_segment(m);
  bind_words(m);
  bind_planner(m);
}
