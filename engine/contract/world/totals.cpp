#include "engine/contract/world/totals.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/contract/columns/contract_breach.h"

namespace sluice::engine {

Totals::Totals(const std::vector<std::string>& declared) : takes_all_(false) {
  for (const std::string& name : declared) {
    if (std::ranges::find(mine_, name, &Part::name) == mine_.end()) mine_.push_back({.name = name});
  }
  all_ = mine_;
}

ExactMoments& Totals::mine(const std::string& name) { return my_part(name).numbers; }

std::vector<int64_t>& Totals::my_counts(const std::string& name) { return my_part(name).counts; }

const ExactMoments& Totals::of_all(const std::string& name) const { return part_of_all(name).numbers; }

const std::vector<int64_t>& Totals::counts_of_all(const std::string& name) const { return part_of_all(name).counts; }

Part& Totals::my_part(const std::string& name) {
  auto found = std::ranges::find(mine_, name, &Part::name);
  if (found == mine_.end()) {
    if (!takes_all_) throw_contract_breach("it adds to total '" + name + "', which its contract does not declare");
    found = mine_.insert(mine_.end(), {.name = name});
  }
  found->recorded = true;
  return *found;
}

const Part& Totals::part_of_all(const std::string& name) const {
  static const Part kNothing;
  const auto found = std::ranges::find(all_, name, &Part::name);
  if (found != all_.end()) return *found;
  if (!takes_all_) throw_contract_breach("it reads total '" + name + "', which its contract does not declare");
  return kNothing;
}

Contribution Totals::contribution() {
  Contribution taken = mine_;
  for (Part& part : mine_) {
    part.numbers = {};
    part.counts.clear();
    part.recorded = false;
  }
  return taken;
}

}  // namespace sluice::engine
