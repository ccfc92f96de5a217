#include "cli/terminal/text_table.h"

#include <algorithm>
#include <utility>

#include "base/text/printable.h"
#include "base/text/strings.h"

namespace sluice::cli {

void TextTable::add(std::vector<std::string> row) {
  widths_.resize(std::max(widths_.size(), row.size()));
  for (size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], printed_width(row[i]));
  rows_.push_back(std::move(row));
}

std::string TextTable::text() const {
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line = "  ";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths_[i] - printed_width(row[i]), ' ');
      const bool is_text = i == 0 || (last_ == Last::kText && i + 1 == row.size());
      line += (i == 0 ? "" : "   ") + (is_text ? row[i] + space : space + row[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string simulated_duration(double seconds) {
  if (seconds >= 99.95) return human_seconds(seconds);
  if (seconds >= 0.9995) return fixed(seconds, seconds < 9.995 ? 2 : 1) + " s";
  return fixed(seconds * 1e3, seconds < 9.995e-3 ? 2 : 1) + " ms";
}

}  // namespace sluice::cli
