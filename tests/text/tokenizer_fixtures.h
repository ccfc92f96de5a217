#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "tests/sanitized.h"
#include "tests/source_folder.h"
#include "tests/temporary_folder.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::text {

using nlohmann::json;
namespace fs = std::filesystem;

/// Bytes of a text for which a quadratic step would take hours; sanitizers, which are twenty times slower, look at other faults.
constexpr size_t kLongText = tests::kSanitized ? size_t{1} << 16 : size_t{1} << 18;

inline fs::path golden_tokenizer_folder() { return fs::path(tests::source_folder()) / "tests/golden/text/tokenizer"; }

/// Folder of a real tokenizer, or nothing where the test data is not installed: then a test skips, but not under CI=true.
inline std::optional<fs::path> real_tokenizer(const std::string& name) {
  const char* data = std::getenv("SLUICE_TEST_DATA");
  const fs::path folder = (data ? fs::path(data) : fs::path(tests::source_folder()) / "../shared/data") / "tokenizers" / name;
  if (fs::exists(folder / "tokenizer.json")) return folder;
  const char* ci = std::getenv("CI");
  if (ci && std::string(ci) == "true") throw std::runtime_error(folder.string() + " is missing; set SLUICE_TEST_DATA");
  return std::nullopt;
}

/// The small tokenizer of variants.json: 256 bytes (ids in the order of the bytes) and a few merges.
inline json small_tokenizer() { return json::parse(read_file(golden_tokenizer_folder() / "variants.json")).at("base"); }

inline Tokenizer load_text(const std::string& text) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", text);
  return Tokenizer::load(folder.path());
}

inline Tokenizer load_json(const json& tokenizer) { return load_text(tokenizer.dump()); }

}  // namespace sluice::text
