#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

namespace sluice {

using Json = nlohmann::ordered_json;

/// Parses `text`. Throws UserError with the position under `name` when it is not JSON, nests deeper than 512, or
/// has an object of more than 4096 keys. `first_line`: of the text, in what is called so.
Json parse_json(std::string_view text, const std::string& name, int64_t first_line = 1);

/// Likewise of a text that somebody else has written: a discarded value where parse_json throws.
Json json_or_discarded(std::string_view text);

/// Why a text is no JSON, from what the library says: without its place and its jargon.
std::string reason_of_json_error(const std::string& what);

/// read_file and parse_json.
Json read_json(const std::filesystem::path& path);

}  // namespace sluice
