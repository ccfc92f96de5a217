#include "data/zstd.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/file_window.h"

namespace sluice::data {
namespace {

constexpr size_t kZstdPiece = size_t{256} << 10;
constexpr size_t kZstdMagicBytes = 4;
constexpr int kMostWindowLog = 27;

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ::ZSTD_freeDCtx(context); }
};

// The first four bytes, the lowest first.
uint32_t magic_of(std::string_view bytes) {
  uint32_t magic = 0;
  for (size_t i = 0; i < kZstdMagicBytes && i < bytes.size(); ++i)
    magic |= uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return magic;
}

bool is_frame(uint32_t magic) {
  return magic == ZSTD_MAGICNUMBER || (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

// zstd's state of one file.
class ZstdReader {
 public:
  explicit ZstdReader(const OpenFile& compressed)
      : compressed_(compressed), window_(compressed), context_(::ZSTD_createDCtx()), piece_(kZstdPiece) {
    if (context_ == nullptr) throw UserError(name() + ": no memory to decompress it");
    ::ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMostWindowLog);
  }

  // The next piece; empty at the end of the file.
  std::string_view next() {
    while (inside_frame_ || read_ < compressed_.size()) {
      const std::string_view given = window_.from(read_, kZstdMagicBytes);
      if (!inside_frame_) begin_frame(given);
      ZSTD_inBuffer input{given.data(), given.size(), 0};
      ZSTD_outBuffer output{piece_.data(), piece_.size(), 0};
      const size_t left = ::ZSTD_decompressStream(context_.get(), &output, &input);
      read_ += input.pos;
      if (::ZSTD_isError(left)) refuse(left);
      inside_frame_ = left != 0;
      if (output.pos > 0) return {piece_.data(), output.pos};
      if (inside_frame_ && input.pos == 0)  // nothing is left to read
        fail("the compressed data is cut off", "the file was not copied or written to its end; fetch it again");
    }
    return {};
  }

 private:
  void begin_frame(std::string_view bytes) {
    if (!is_frame(magic_of(bytes))) fail("something that is not zstd follows the compressed data");
    inside_frame_ = true;
  }

  [[noreturn]] void refuse(size_t code) const {
    if (::ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge)
      fail("the compressed data needs more than 128 MiB of memory", "compress it again without --long, or with --long=27");
    fail("the compressed data is damaged (" + std::string(::ZSTD_getErrorName(code)) + ")");
  }

  std::string name() const { return compressed_.path().string(); }

  [[noreturn]] void fail(const std::string& what, std::string help = {}) const {
    throw UserError(name() + ": " + what + ", at byte " + std::to_string(read_) + " of " + std::to_string(compressed_.size()),
                    std::move(help));
  }

  const OpenFile& compressed_;
  FileWindow window_;
  std::unique_ptr<ZSTD_DCtx, FreeContext> context_;
  std::vector<char> piece_;
  uint64_t read_ = 0;
  bool inside_frame_ = false;
};

}  // namespace

bool is_zstd(std::string_view bytes) { return bytes.size() >= kZstdMagicBytes && is_frame(magic_of(bytes)); }

void unzstd(const OpenFile& compressed, const std::function<bool(std::string_view)>& sink) {
  ZstdReader reader(compressed);
  for (std::string_view piece = reader.next(); !piece.empty(); piece = reader.next()) {
    if (!sink(piece)) return;
  }
}

}  // namespace sluice::data
