#include "engine/run/rank_costs.h"

#include "base/numbers/bytes.h"

namespace sluice::engine {

std::string bytes_of(const RankCosts& costs) {
  ByteWriter bytes;
  bytes.number(costs.read_prompt_tokens);
  bytes.number(costs.sample_prompt_tokens);
  bytes.number(uint64_t{costs.nodes.size()});
  for (const auto& [name, node] : costs.nodes) {
    bytes.text(name);
    write_node_costs(bytes, node);
  }
  return bytes.take();
}

RankCosts rank_costs_from(std::string_view text) {
  ByteReader bytes(text);
  RankCosts costs{.read_prompt_tokens = bytes.whole_number(), .sample_prompt_tokens = bytes.whole_number(), .nodes = {}};
  for (auto left = bytes.number<uint64_t>(); left > 0; --left) {
    const std::string name(bytes.text());
    costs.nodes[name] = read_node_costs(bytes);
  }
  bytes.expect_end();
  return costs;
}

}  // namespace sluice::engine
