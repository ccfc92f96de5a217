// A plugin that cannot register its types.
#include <stdexcept>

#include "engine/contract/plugin/plugin.h"

namespace {

void add_types(sluice::engine::Registry&) { throw std::runtime_error("no licence file"); }

}  // namespace

SLUICE_PLUGIN(add_types)
