// The part of the bindings that is about planning drafts.
#pragma once

#include <nanobind/nanobind.h>

namespace codespec {

void bind_planner(nanobind::module_& m);

}  // namespace codespec
