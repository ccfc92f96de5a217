#pragma once

#include <filesystem>
#include <string_view>

namespace sluice::cli {

/// What stands for standard output where a file can be named.
inline constexpr const char* kStandardOutput = "-";

/// Writes what a command makes where its user wants it (`-o FILE`): an ordinary file is replaced as a whole, links are followed,
/// and a device or a pipe, such as /dev/stdout, is written into; without one, or with "-", it is print_text(). Throws UserError
/// naming the path.
void write_output(const std::filesystem::path& path, std::string_view text);

}  // namespace sluice::cli
