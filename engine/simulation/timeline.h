#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sluice::engine {

/// A quantity over time, as means over stretches of equal length. The stretches grow with the time, so that memory is constant.
class Timeline {
 public:
  /// `value` from `begin_ns` to `end_ns`; in order of time.
  void add(int64_t begin_ns, int64_t end_ns, double value) {
    while (end_ns > width_ns_ * kStretches) halve();
    while (begin_ns < end_ns) {
      const int64_t stretch = begin_ns / width_ns_;
      const int64_t until = std::min(end_ns, (stretch + 1) * width_ns_);
      areas_[static_cast<size_t>(stretch)] += value * static_cast<double>(until - begin_ns);
      begin_ns = until;
    }
    end_ns_ = end_ns;
  }

  /// Means over `parts` equal parts of the time so far.
  std::vector<double> means(size_t parts) const {
    std::vector<double> means(parts);
    const double part = static_cast<double>(end_ns_) / static_cast<double>(parts), width = static_cast<double>(width_ns_);
    if (end_ns_ == 0) return means;
    for (size_t i = 0; i < parts; ++i) {
      const double begin = part * static_cast<double>(i), end = begin + part;
      double area = 0;
      for (auto s = static_cast<size_t>(begin / width); s < areas_.size() && static_cast<double>(s) * width < end; ++s) {
        const double from = static_cast<double>(s) * width, to = std::min(from + width, static_cast<double>(end_ns_));
        if (to > from) area += areas_[s] * std::max(0.0, std::min(to, end) - std::max(from, begin)) / (to - from);
      }
      means[i] = area / part;
    }
    return means;
  }

 private:
  static constexpr int64_t kStretches = 4096;

  void halve() {
    for (size_t i = 0; i < areas_.size() / 2; ++i) areas_[i] = areas_[2 * i] + areas_[2 * i + 1];
    std::fill(areas_.begin() + static_cast<std::ptrdiff_t>(areas_.size() / 2), areas_.end(), 0);
    width_ns_ *= 2;
  }

  int64_t width_ns_ = 1;
  int64_t end_ns_ = 0;
  std::vector<double> areas_ = std::vector<double>(kStretches);
};

}  // namespace sluice::engine
