#include "engine/run/told_by_rank.h"

#include "base/numbers/bytes.h"

namespace sluice::engine {

std::string bytes_of(const ToldByRank& told) {
  ByteWriter bytes;
  bytes.number(static_cast<uint32_t>(told.rank));
  bytes.text(bytes_of(told.memory));
  bytes.text(told.costs ? bytes_of(*told.costs) : std::string());
  bytes.raw(told.slices);
  return bytes.take();
}

ToldByRank told_by_rank_from(const std::string& text) {
  ByteReader bytes(text);
  ToldByRank told{.rank = static_cast<int>(bytes.number<uint32_t>()), .memory = memory_report_from(bytes.text())};
  if (const std::string_view costs = bytes.text(); !costs.empty()) told.costs = rank_costs_from(costs);
  told.slices = bytes.rest();
  return told;
}

}  // namespace sluice::engine
