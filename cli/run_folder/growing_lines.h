#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sluice::cli {

/// The lines of a file that a run may be writing, without those that are empty and without a last one that does not end. Each
/// look reads what is new; a line is read when it is asked for, so that a file of any size takes 16 bytes a line. A run that
/// goes on from a checkpoint cuts its files: then all begins anew. One thread. Throws UserError where the file cannot be read.
class GrowingLines {
 public:
  explicit GrowingLines(std::filesystem::path path) : path_(std::move(path)) {}

  /// True: there are other lines than before, not only more.
  bool look();

  size_t size() const { return lines_.size(); }
  const std::filesystem::path& path() const { return path_; }

  /// The lines [begin, end), of those that the last look has found.
  std::vector<std::string> read(size_t begin, size_t end) const;
  std::string line(size_t index) const { return read(index, index + 1).front(); }

  /// Of a line, for messages: "runs/ppo/metrics.jsonl, line 3".
  std::string place(size_t index) const;

 private:
  struct Line {
    int64_t begin = 0;
    int64_t bytes = 0;
    size_t number = 0;  // in the file, from 1
  };

  bool is_another() const;

  std::filesystem::path path_;
  std::vector<Line> lines_;
  std::string last_;  // the text of the last line
  int64_t end_ = 0;   // of what was looked at: after the end of a line
  size_t ends_ = 0;   // lines until there, empty ones too
};

}  // namespace sluice::cli
