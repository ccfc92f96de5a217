#include "comm/weights/arrival_rate.h"

#include <algorithm>

namespace sluice::comm {

double ArrivalRate::fastest() const {
  constexpr size_t kParts = 8, kLeastBytes = size_t{16} << 20;
  size_t all = 0;
  for (size_t i = 1; i < arrivals_.size(); ++i) all += arrivals_[i].bytes;
  const size_t stretch = std::min(std::max(all / kParts, kLeastBytes), all);
  double fastest = 0;
  size_t begin = 0, bytes = 0;  // of what came after the piece `begin`
  for (size_t end = 1; end < arrivals_.size(); ++end) {
    bytes += arrivals_[end].bytes;
    while (bytes - arrivals_[begin + 1].bytes >= stretch) bytes -= arrivals_[++begin].bytes;
    const double seconds = arrivals_[end].seconds - arrivals_[begin].seconds;
    if (bytes >= stretch && seconds > 0) fastest = std::max(fastest, static_cast<double>(bytes) / seconds);
  }
  return fastest;
}

}  // namespace sluice::comm
