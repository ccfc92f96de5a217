#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::models {

/// The weight_map of a `model.safetensors.index.json`: for each file the tensors that it promises in it. Files are plain names,
/// in the folder of the index. What else the index says is skipped.
///
/// text       the index; at most 100 MB
/// file_name  named in errors
///
/// Throws UserError naming the file and what is wrong: not JSON, no weight_map, a place that is no file name, a tensor twice.
/// Memory stays within a small multiple of the text.
std::map<std::string, std::vector<std::string>> parse_safetensors_index(std::string_view text, const std::string& file_name);

}  // namespace sluice::models
