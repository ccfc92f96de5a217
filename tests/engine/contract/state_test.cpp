#include "engine/contract/state.h"

#include <gtest/gtest.h>

#include <limits>

#include "engine/checkpoint/manifest.h"

namespace sluice::engine::state_test {
namespace {

int64_t manifest_bytes(const NodeState& state) {
  Manifest manifest;
  manifest.nodes["node"] = state;
  return std::ssize(manifest_json(manifest));
}

// The bound of what a node may keep is one of the manifest that has it.
TEST(NodeState, TakesNoMoreInAManifestThanIsCounted) {
  const double widest = -std::numeric_limits<double>::min();
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
  const std::vector<NodeState::Value> values{std::numeric_limits<int64_t>::min(),
                                             widest,
                                             -std::numeric_limits<double>::infinity(),
                                             every_byte,
                                             std::string(1000, '\x01'),
                                             std::string(1000, '\xff'),
                                             std::string(1000, '"'),
                                             std::vector<int64_t>(1000, std::numeric_limits<int64_t>::min()),
                                             std::vector<double>(1000, widest),
                                             std::vector<double>(1000, -std::numeric_limits<double>::infinity()),
                                             std::vector<double>{}};
  for (size_t i = 0; i < values.size(); ++i) {
    NodeState state;
    state.values["name \"\\ " + std::string(20, '\n')] = values[i];
    state.files["file.jsonl"] = std::numeric_limits<int64_t>::max();
    EXPECT_LE(manifest_bytes(state) - manifest_bytes({}), state_bytes(state)) << i;
  }
}

TEST(NodeState, AnOrdinaryTextCountsAsMuchAsItHas) {
  NodeState state;
  state.values["text"] = std::string(1'000'000, 'x');
  EXPECT_LT(state_bytes(state), 1'000'200);
}

}  // namespace
}  // namespace sluice::engine::state_test
