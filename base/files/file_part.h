#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace sluice {

/// The bytes [begin, begin + bytes) of a regular file; fewer where it ends before. Unlike a map it may be read while the file is
/// cut. Throws UserError naming the path, as read_file() does.
std::string read_part_of_file(const std::filesystem::path& path, int64_t begin, int64_t bytes);

}  // namespace sluice
