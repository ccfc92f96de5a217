#include "data/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/error.h"

namespace sluice::data {
namespace {

constexpr size_t kPiece = size_t{256} << 10;
constexpr int kGzipOnly = 16 + MAX_WBITS;

// zlib's state of one file. Compressed bytes are given to it as they lie.
class Inflater {
 public:
  Inflater(std::span<const std::byte> compressed, const std::string& name)
      : compressed_(compressed), name_(name), piece_(kPiece) {
    if (::inflateInit2(&stream_, kGzipOnly) != Z_OK) throw UserError(name + ": no memory to decompress it");
  }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // The next piece; empty at the end of the file.
  std::string_view next() {
    size_t made = 0;
    while (made == 0 && !at_end()) made = step();
    return {piece_.data(), made};
  }

 private:
  bool at_end() {
    if (inside_member_) return false;
    const auto rest = compressed_.subspan(read_);
    if (std::ranges::all_of(rest, [](std::byte byte) { return byte == std::byte{0}; })) return true;
    if (!is_gzip(rest)) fail("something that is not gzip follows the compressed data");
    ::inflateReset(&stream_);
    inside_member_ = true;
    return false;
  }

  size_t step() {
    const size_t given = std::min<size_t>(compressed_.size() - read_, std::numeric_limits<uInt>::max());
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(compressed_.data() + read_));  // zlib does not write there
    stream_.avail_in = static_cast<uInt>(given);
    stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
    stream_.avail_out = static_cast<uInt>(piece_.size());
    const int code = ::inflate(&stream_, Z_NO_FLUSH);
    read_ += given - stream_.avail_in;
    const size_t made = piece_.size() - stream_.avail_out;
    if (code == Z_STREAM_END)
      inside_member_ = false;
    else if (code == Z_BUF_ERROR)  // nothing is left to read
      fail("the compressed data is cut off", "the file was not copied or written to its end; fetch it again");
    else if (code != Z_OK)
      fail("the compressed data is damaged (" + std::string(stream_.msg == nullptr ? "bad data" : stream_.msg) + ")");
    return made;
  }

  [[noreturn]] void fail(const std::string& what, std::string help = {}) const {
    throw UserError(name_ + ": " + what + ", at byte " + std::to_string(read_) + " of " + std::to_string(compressed_.size()),
                    std::move(help));
  }

  std::span<const std::byte> compressed_;
  const std::string& name_;
  std::vector<char> piece_;
  z_stream stream_{};
  size_t read_ = 0;
  bool inside_member_ = false;
};

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

void gunzip(std::span<const std::byte> compressed, const std::string& name, const std::function<bool(std::string_view)>& sink) {
  Inflater inflater(compressed, name);
  for (std::string_view piece = inflater.next(); !piece.empty(); piece = inflater.next()) {
    if (!sink(piece)) return;
  }
}

}  // namespace sluice::data
