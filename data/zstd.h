#pragma once

#include <functional>
#include <string_view>

#include "base/files/open_file.h"

namespace sluice::data {

/// True if `bytes` begin as a file of zstd does, whatever the file is called.
bool is_zstd(std::string_view bytes);

/// Decompresses a file of one or more zstd frames and hands the text to `sink` in pieces of at most 256 KiB; false from it ends
/// the reading. Memory: what the frame's window takes, at most 128 MiB; files that zstd --long=28 or more has made are refused.
/// Throws UserError that begins with the file's path when it is cut off, damaged, or goes on with something else.
void unzstd(const OpenFile& compressed, const std::function<bool(std::string_view)>& sink);

}  // namespace sluice::data
