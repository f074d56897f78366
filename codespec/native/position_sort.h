// Sorts the positions of a text by their left context.
#pragma once

#include <cstdint>
#include <vector>

#include "segment_format.h"
#include "tokens.h"

namespace codespec {

// All positions of `text` that have a left context, in the order of these contexts read backwards,
// each cut at a break or at kMaxDepth tokens, whichever comes first; equal ones by position. `text`
// begins and ends with kBreak. Single-threaded; O(n log n) comparisons on any input.
//
// Groups of contexts that agree so far are sorted by their next few tokens, packed into a key, then
// the groups of equal keys by the tokens after those: large ones by radix, smaller ones by
// comparison.
//
// Source: Ng and Kakehi 2007, Cache efficient radix sort for string sorting; Bentley and Sedgewick
// 1997, Fast algorithms for sorting and searching strings.
std::vector<std::uint32_t> sort_positions(Tokens text, const KeyPacker& packer);

}  // namespace codespec
