#include "data/zstd.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/compressed_file.h"

namespace sluice::data {
namespace {

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
      : file_(compressed), context_(::ZSTD_createDCtx()), piece_(CompressedFile::kPiece) {
    if (context_ == nullptr) file_.fail_without_memory();
    ::ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMostWindowLog);
  }

  // The next piece; empty at the end of the file.
  std::string_view next() {
    while (inside_frame_ || !file_.is_read()) {
      const std::string_view given = file_.next(kZstdMagicBytes);
      if (!inside_frame_) begin_frame(given);
      ZSTD_inBuffer input{given.data(), given.size(), 0};
      ZSTD_outBuffer output{piece_.data(), piece_.size(), 0};
      const size_t left = ::ZSTD_decompressStream(context_.get(), &output, &input);
      file_.took(input.pos);
      if (::ZSTD_isError(left)) refuse(left);
      inside_frame_ = left != 0;
      if (output.pos > 0) return {piece_.data(), output.pos};
      if (inside_frame_ && input.pos == 0)  // nothing is left to read
        file_.fail_cut_off();
    }
    return {};
  }

 private:
  void begin_frame(std::string_view bytes) {
    if (!is_frame(magic_of(bytes))) file_.fail("something that is not zstd follows the compressed data");
    inside_frame_ = true;
  }

  [[noreturn]] void refuse(size_t code) const {
    if (::ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge)
      file_.fail("the compressed data needs more than 128 MiB of memory", "compress it again without --long, or with --long=27");
    file_.fail("the compressed data is damaged (" + std::string(::ZSTD_getErrorName(code)) + ")");
  }

  CompressedFile file_;
  std::unique_ptr<ZSTD_DCtx, FreeContext> context_;
  std::vector<char> piece_;
  bool inside_frame_ = false;
};

}  // namespace

bool is_zstd(std::string_view bytes) { return bytes.size() >= kZstdMagicBytes && is_frame(magic_of(bytes)); }

void unzstd(const OpenFile& compressed, const std::function<bool(std::string_view)>& sink) {
  ZstdReader reader(compressed);
  hand_over(reader, sink);
}

}  // namespace sluice::data
