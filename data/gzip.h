#pragma once

#include <functional>
#include <string_view>

#include "base/files/open_file.h"

namespace sluice::data {

/// True if `bytes` begin as a gzip file does, whatever the file is called.
bool is_gzip(std::string_view bytes);

/// Decompresses a gzip file of one or more members and hands the text to `sink` in pieces of at most 256 KiB; false from it ends
/// the reading. Zeros after the last member are padding. Memory: 2 MiB, however large the text is. Throws UserError that begins
/// with the file's path when it is cut off, damaged, or goes on with something else.
void gunzip(const OpenFile& compressed, const std::function<bool(std::string_view)>& sink);

}  // namespace sluice::data
