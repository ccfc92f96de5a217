#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace sluice::data {

/// True if `bytes` begin as a file of zstd does, whatever the file is called.
bool is_zstd(std::span<const std::byte> bytes);

/// Decompresses a file of one or more zstd frames and hands the text to `sink` in pieces of at most 256 KiB; false from it ends
/// the reading. Memory: what the frame's window takes, at most 128 MiB; files that zstd --long=28 or more has made are refused.
/// Throws UserError that begins with `name` when the file is cut off, damaged, or goes on with something else.
void unzstd(std::span<const std::byte> compressed, const std::string& name, const std::function<bool(std::string_view)>& sink);

}  // namespace sluice::data
