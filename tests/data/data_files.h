#pragma once

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace sluice::data {

/// `text` as one gzip member.
inline std::string gzip(const std::string& text, int level = 6) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2");
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  out.erase(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// So many bytes of one letter as one gzip member, made piece by piece.
inline std::string gzip_of_one_letter(char letter, size_t bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2");
  std::string piece(1 << 20, letter), out, buffer(1 << 20, '\0');
  for (size_t left = bytes; left > 0;) {
    const size_t now = std::min(left, piece.size());
    left -= now;
    stream.next_in = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_in = static_cast<uInt>(now);
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      deflate(&stream, left == 0 ? Z_FINISH : Z_NO_FLUSH);
      out.append(buffer, 0, buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  }
  deflateEnd(&stream);
  return out;
}

/// `text` as one zstd frame with a checksum, which says that so much is to be kept in memory.
inline std::string zstd(const std::string& text, int window_log = 0) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  ZSTD_outBuffer output{out.data(), out.size(), 0};
  // In two parts, so that the frame does not know its size, which would make the window smaller.
  ZSTD_inBuffer first{text.data(), text.size() / 2, 0}, second{text.data() + text.size() / 2, text.size() - text.size() / 2, 0};
  ZSTD_compressStream2(context, &output, &first, ZSTD_e_continue);
  const size_t left = ZSTD_compressStream2(context, &output, &second, ZSTD_e_end);
  ZSTD_freeCCtx(context);
  if (left != 0) throw std::runtime_error("ZSTD_compressStream2");
  return out.substr(0, output.pos);
}

/// A frame that holds something else, as pzstd puts before each of its frames.
inline std::string zstd_skippable(const std::string& content) {
  std::string frame("\x50\x2A\x4D\x18", 4);
  for (int i = 0; i < 4; ++i) frame += static_cast<char>(content.size() >> (8 * i) & 0xFF);
  return frame + content;
}

}  // namespace sluice::data
