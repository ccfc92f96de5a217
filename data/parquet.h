#pragma once

#include <filesystem>
#include <string_view>

namespace sluice::data {

/// The name of a Parquet file, and the first bytes of one.
bool is_parquet(const std::filesystem::path& path);
bool begins_like_parquet(std::string_view bytes);

/// Parquet is not read: throws a UserError with a command for a shell that makes JSON lines of the file, beside it, and needs
/// nothing but Python with pip.
[[noreturn]] void refuse_parquet(const std::filesystem::path& path);

}  // namespace sluice::data
