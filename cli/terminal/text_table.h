#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sluice::cli {

/// Rows of cells under a header; the first column is left-aligned, and numbers are right-aligned: all the others, or all but
/// the last.
class TextTable {
 public:
  enum class Last { kNumber, kText };

  explicit TextTable(std::vector<std::string> header, Last last = Last::kNumber) : last_(last) { add(std::move(header)); }

  void add(std::vector<std::string> row);
  std::string text() const;

 private:
  const Last last_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> widths_;
};

/// Three digits, whatever the unit: simulations of toys take milliseconds, of large models days.
std::string simulated_duration(double seconds);

}  // namespace sluice::cli
