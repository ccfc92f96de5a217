#include "cli/run_folder/growing_lines.h"

#include "base/error.h"
#include "base/files/file_part.h"
#include "base/files/path_kind.h"

namespace sluice::cli {

bool GrowingLines::is_another() const {
  if (file_bytes(path_) < end_) return true;
  return !lines_.empty() && read_part_of_file(path_, lines_.back().begin, lines_.back().bytes) != last_;
}

bool GrowingLines::look() {
  constexpr int64_t kPiece = 1 << 20;
  const bool another = is_another();
  if (another) lines_.clear(), last_.clear(), end_ = 0, ends_ = 0;
  const size_t known = lines_.size();
  int64_t at = end_;
  for (std::string piece = read_part_of_file(path_, at, kPiece); !piece.empty(); piece = read_part_of_file(path_, at, kPiece)) {
    for (size_t newline = piece.find('\n'); newline != std::string::npos; newline = piece.find('\n', newline + 1)) {
      const int64_t line_end = at + static_cast<int64_t>(newline);
      ++ends_;
      if (line_end > end_) lines_.push_back({end_, line_end - end_, ends_});
      end_ = line_end + 1;
    }
    at += static_cast<int64_t>(piece.size());
  }
  if (lines_.size() > known) last_ = line(lines_.size() - 1);
  return another;
}

std::vector<std::string> GrowingLines::read(size_t begin, size_t end) const {
  if (begin == end) return {};
  const int64_t first = lines_[begin].begin;
  const std::string text = read_part_of_file(path_, first, lines_[end - 1].begin + lines_[end - 1].bytes - first);
  std::vector<std::string> found;
  for (size_t i = begin; i < end; ++i) {
    const auto at = static_cast<size_t>(lines_[i].begin - first), bytes = static_cast<size_t>(lines_[i].bytes);
    if (at + bytes > text.size()) throw UserError("cannot read " + place(i) + ": the file was cut meanwhile");
    found.push_back(text.substr(at, bytes));
  }
  return found;
}

std::string GrowingLines::place(size_t index) const { return path_.string() + ", line " + std::to_string(lines_[index].number); }

}  // namespace sluice::cli
