#include "bench/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/json/json.h"
#include "base/text/strings.h"

namespace sluice::bench {
namespace {

// Four digits that count: more would be noise.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

struct Verdict {
  std::vector<std::string> bounds;
  bool met = true;

  void at_most(const std::optional<double>& bound, double value, const std::string& what) {
    if (!bound) return;
    bounds.push_back(what + " <= " + text_of(*bound));
    met = met && value <= *bound;
  }
  void at_least(const std::optional<double>& bound, double value, const std::string& what) {
    if (!bound) return;
    bounds.push_back(what + " >= " + text_of(*bound));
    met = met && value >= *bound;
  }
};

}  // namespace

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void print(const Case& result) {
  std::vector<double> ratios;
  for (size_t i = 0; i < result.ours.size(); ++i)
    ratios.push_back(result.ours[i] / result.reference[i % result.reference.size()]);
  const double ours = median(result.ours), reference = median(result.reference), ratio = median(ratios);
  Verdict verdict;
  verdict.at_most(result.goal.ours_at_most, ours, "ours");
  verdict.at_most(result.goal.above_reference_at_most, ours - reference, "ours - reference");
  verdict.at_most(result.goal.ratio_at_most, ratio, "ratio");
  verdict.at_least(result.goal.ratio_at_least, ratio, "ratio");
  Json line = {{"bench", result.bench},
               {"case", result.name},
               {"unit", result.unit},
               {"ours", rounded(ours)},
               {"ours_low", rounded(std::ranges::min(result.ours))},
               {"ours_high", rounded(std::ranges::max(result.ours))},
               {"reference", rounded(reference)},
               {"reference_low", rounded(std::ranges::min(result.reference))},
               {"reference_high", rounded(std::ranges::max(result.reference))},
               {"ratio", rounded(ratio)},
               {"goal", nullptr},
               {"met", nullptr},
               {"repetitions", result.ours.size()}};
  if (!verdict.bounds.empty()) {
    line["goal"] = join(verdict.bounds, ", ");
    line["met"] = verdict.met;
  }
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

bool is_smoke(int argc, char** argv) {
  if (argc == 1) return false;
  if (argc == 2 && std::string_view(argv[1]) == "--smoke") return true;
  std::fprintf(stderr, "usage: %s [--smoke]\n", argv[0]);
  std::exit(64);
}

}  // namespace sluice::bench
