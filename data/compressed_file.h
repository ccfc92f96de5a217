#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "data/file_window.h"

namespace sluice::data {

/// A file that gzip or zstd decompresses in one pass: its bytes, how many of them are read, and what is said where it is not
/// whole. `file` outlives it. Not thread-safe. What fails is a UserError that names the file and the byte.
class CompressedFile {
 public:
  static constexpr size_t kPiece = size_t{256} << 10;  // of text, at most

  explicit CompressedFile(const OpenFile& file) : file_(file), window_(file) {}

  uint64_t read() const { return read_; }
  bool is_read() const { return read_ >= file_.size(); }

  /// As FileWindow::from(), which is at read() where nothing else is said.
  std::string_view next(size_t least = 1) { return window_.from(read_, least); }
  std::string_view from(uint64_t begin) { return window_.from(begin); }

  void took(size_t bytes) { read_ += bytes; }

  [[noreturn]] void fail(const std::string& what, std::string help = {}) const {
    throw UserError(name() + ": " + what + ", at byte " + std::to_string(read_) + " of " + std::to_string(file_.size()),
                    std::move(help));
  }
  [[noreturn]] void fail_cut_off() const {
    fail("the compressed data is cut off", "the file was not copied or written to its end; fetch it again");
  }
  [[noreturn]] void fail_without_memory() const { throw UserError(name() + ": no memory to decompress it"); }

 private:
  std::string name() const { return file_.path().string(); }

  const OpenFile& file_;
  FileWindow window_;
  uint64_t read_ = 0;
};

/// Hands what `reader.next()` gives to `sink`, until it gives nothing or `sink` says false.
template <class Reader>
void hand_over(Reader& reader, const std::function<bool(std::string_view)>& sink) {
  for (std::string_view piece = reader.next(); !piece.empty(); piece = reader.next()) {
    if (!sink(piece)) return;
  }
}

}  // namespace sluice::data
