// A plugin whose node type has the name of a builtin one.
#include "engine/contract/node.h"
#include "engine/contract/plugin/plugin.h"
#include "engine/contract/registry.h"

namespace {

using namespace sluice;

struct NoParams {};

class Gae final : public engine::Node {
 public:
  static void describe(engine::Contract<NoParams>& c) { c.type("gae", "not the builtin one"); }
  explicit Gae(const NoParams&) {}
  void process(engine::MicroBatch&) override {}
};

void add_types(engine::Registry& registry) { registry.add<Gae>(); }

}  // namespace

SLUICE_PLUGIN(add_types)
