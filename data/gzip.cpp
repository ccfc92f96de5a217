#include "data/gzip.h"

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "data/compressed_file.h"

namespace sluice::data {
namespace {

constexpr size_t kGzipMagicBytes = 2;
constexpr int kGzipOnly = 16 + MAX_WBITS;

// zlib's state of one file.
class Inflater {
 public:
  explicit Inflater(const OpenFile& compressed) : file_(compressed), piece_(CompressedFile::kPiece) {
    if (::inflateInit2(&stream_, kGzipOnly) != Z_OK) file_.fail_without_memory();
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
    if (!is_gzip(file_.next(kGzipMagicBytes))) return expect_padding(), true;
    ::inflateReset(&stream_);
    inside_member_ = true;
    return false;
  }

  void expect_padding() {
    uint64_t at = file_.read();
    for (std::string_view rest = file_.from(at); !rest.empty(); rest = file_.from(at)) {
      if (rest.find_first_not_of('\0') != std::string_view::npos)
        file_.fail("something that is not gzip follows the compressed data");
      at += rest.size();
    }
  }

  size_t step() {
    std::string_view given = file_.next();
    given = given.substr(0, std::numeric_limits<uInt>::max());
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(given.data()));  // zlib does not write there
    stream_.avail_in = static_cast<uInt>(given.size());
    stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
    stream_.avail_out = static_cast<uInt>(piece_.size());
    const int code = ::inflate(&stream_, Z_NO_FLUSH);
    file_.took(given.size() - stream_.avail_in);
    const size_t made = piece_.size() - stream_.avail_out;
    if (code == Z_STREAM_END)
      inside_member_ = false;
    else if (code == Z_BUF_ERROR)  // nothing is left to read
      file_.fail_cut_off();
    else if (code != Z_OK)
      file_.fail("the compressed data is damaged (" + std::string(stream_.msg == nullptr ? "bad data" : stream_.msg) + ")");
    return made;
  }

  CompressedFile file_;
  std::vector<char> piece_;
  z_stream stream_{};
  bool inside_member_ = false;
};

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1F\x8B"); }

void gunzip(const OpenFile& compressed, const std::function<bool(std::string_view)>& sink) {
  Inflater inflater(compressed);
  hand_over(inflater, sink);
}

}  // namespace sluice::data
