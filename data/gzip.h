#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace sluice::data {

/// True if `bytes` begin as a gzip file does, whatever the file is called.
bool is_gzip(std::span<const std::byte> bytes);

/// Decompresses a gzip file of one or more members and hands the text to `sink` in pieces of at most 256 KiB; false from it ends
/// the reading. Zeros behind the last member are padding. Memory: 300 KiB, however large the text is. Throws UserError that
/// begins with `name` when the file is cut off, damaged, or goes on with something else.
void gunzip(std::span<const std::byte> compressed, const std::string& name, const std::function<bool(std::string_view)>& sink);

}  // namespace sluice::data
