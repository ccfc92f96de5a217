#include "engine/simulation/simulated_time.h"

#include <cmath>

#include "base/error.h"

namespace sluice::engine {
namespace {

constexpr double kYear_ns = 365.0 * 24 * 3600 * 1e9;
constexpr double kLongestPiece_ns = kYear_ns, kLongest_ns = 100 * kYear_ns;
constexpr const char* kHelp = "costs are microseconds, rates GB/s and GFLOP/s; or simulate fewer iterations";

}  // namespace

int64_t simulated_ns(double ns) {
  if (ns > kLongestPiece_ns)
    throw UserError("one piece of work or one transfer takes more than a year in this simulation", kHelp);
  return std::llround(ns);
}

void check_simulated_time(int64_t now_ns) {
  if (static_cast<double>(now_ns) > kLongest_ns) throw UserError("this simulation takes more than a hundred years", kHelp);
}

}  // namespace sluice::engine
