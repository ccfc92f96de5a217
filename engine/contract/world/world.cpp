#include "engine/contract/world/world.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace sluice::engine {
namespace {

// The larger of two, whatever comes first: also of zeros, and NaN is above all.
double larger(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  if (a == b) return std::signbit(a) ? b : a;
  return std::max(a, b);
}

}  // namespace

void Part::add(const Part& other) {
  SLUICE_CHECK(kind == other.kind, "ranks have metric '" + name + "' of two kinds");
  if (!other.recorded) return;
  raise(other.top);
  numbers.add(other.numbers);
  counts.resize(std::max(counts.size(), other.counts.size()));
  for (size_t i = 0; i < other.counts.size(); ++i) counts[i] += other.counts[i];
}

void Part::raise(double value) {
  top = recorded ? larger(top, value) : value;
  recorded = true;
}

Part sum_part(std::string name, double number) {
  Part part{.name = std::move(name), .kind = Metric::kSum, .numbers = {}, .recorded = true};
  part.numbers.sum.add(number);
  return part;
}

Part maximum_part(std::string name, double number) {
  return {.name = std::move(name), .kind = Metric::kMaximum, .numbers = {}, .top = number, .recorded = true};
}

// The declared parts come first and in one order on every rank, so the rest is what is not found.
void add_contribution(Contribution& all, const Contribution& other) {
  for (const Part& part : other) {
    const auto found = std::ranges::find(all, part.name, &Part::name);
    if (found == all.end())
      all.push_back(part);
    else
      found->add(part);
  }
}

}  // namespace sluice::engine
