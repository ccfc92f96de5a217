#include "data/zstd.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <memory>
#include <vector>

#include "base/error.h"

namespace sluice::data {
namespace {

constexpr size_t kZstdPiece = size_t{256} << 10;
constexpr int kMostWindowLog = 27;

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ::ZSTD_freeDCtx(context); }
};

// The first four bytes, the lowest first.
uint32_t magic_of(std::span<const std::byte> bytes) {
  uint32_t magic = 0;
  for (size_t i = 0; i < 4 && i < bytes.size(); ++i) magic |= static_cast<uint32_t>(bytes[i]) << (8 * i);
  return magic;
}

bool is_frame(uint32_t magic) {
  return magic == ZSTD_MAGICNUMBER || (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

// zstd's state of one file.
class ZstdReader {
 public:
  ZstdReader(std::span<const std::byte> compressed, const std::string& name)
      : name_(name), context_(::ZSTD_createDCtx()), piece_(kZstdPiece), input_{compressed.data(), compressed.size(), 0} {
    if (context_ == nullptr) throw UserError(name + ": no memory to decompress it");
    ::ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMostWindowLog);
  }

  // The next piece; empty at the end of the file.
  std::string_view next() {
    while (inside_frame_ || input_.pos < input_.size) {
      if (!inside_frame_) begin_frame();
      ZSTD_outBuffer output{piece_.data(), piece_.size(), 0};
      const size_t before = input_.pos;
      const size_t left = ::ZSTD_decompressStream(context_.get(), &output, &input_);
      if (::ZSTD_isError(left)) refuse(left);
      inside_frame_ = left != 0;
      if (output.pos > 0) return {piece_.data(), output.pos};
      if (inside_frame_ && input_.pos == before)  // nothing is left to read
        fail("the compressed data is cut off", "the file was not copied or written to its end; fetch it again");
    }
    return {};
  }

 private:
  void begin_frame() {
    const auto* const bytes = static_cast<const std::byte*>(input_.src);
    if (!is_frame(magic_of({bytes + input_.pos, input_.size - input_.pos})))
      fail("something that is not zstd follows the compressed data");
    inside_frame_ = true;
  }

  [[noreturn]] void refuse(size_t code) const {
    if (::ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge)
      fail("the compressed data needs more than 128 MiB of memory", "compress it again without --long, or with --long=27");
    fail("the compressed data is damaged (" + std::string(::ZSTD_getErrorName(code)) + ")");
  }

  [[noreturn]] void fail(const std::string& what, std::string help = {}) const {
    throw UserError(name_ + ": " + what + ", at byte " + std::to_string(input_.pos) + " of " + std::to_string(input_.size),
                    std::move(help));
  }

  const std::string& name_;
  std::unique_ptr<ZSTD_DCtx, FreeContext> context_;
  std::vector<char> piece_;
  ZSTD_inBuffer input_;
  bool inside_frame_ = false;
};

}  // namespace

bool is_zstd(std::span<const std::byte> bytes) { return bytes.size() >= 4 && is_frame(magic_of(bytes)); }

void unzstd(std::span<const std::byte> compressed, const std::string& name, const std::function<bool(std::string_view)>& sink) {
  ZstdReader reader(compressed, name);
  for (std::string_view piece = reader.next(); !piece.empty(); piece = reader.next()) {
    if (!sink(piece)) return;
  }
}

}  // namespace sluice::data
