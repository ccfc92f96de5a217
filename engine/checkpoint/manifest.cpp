#include "engine/checkpoint/manifest.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/inner_path.h"
#include "base/files/mapped_file.h"
#include "base/json/json.h"
#include "base/numbers/crc32c.h"
#include "base/text/strings.h"
#include "engine/contract/state_json.h"

namespace sluice::engine {
namespace fs = std::filesystem;
namespace {

constexpr int kFormat = 1;
constexpr std::string_view kFirstLine = "{\"crc32c_of_what_follows\":\"";
constexpr std::string_view kFirstLineEnd = "\",\n";

std::string hex(uint32_t value) {
  char digits[8];
  for (int i = 7; i >= 0; --i, value >>= 4) digits[i] = "0123456789abcdef"[value & 15];
  return {digits, 8};
}

uint32_t from_hex(const std::string& text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != 8 || error != std::errc() || end != text.data() + text.size())
    throw UserError("a checksum is not eight digits");
  return value;
}

Json json_of(const Manifest& manifest) {
  Json metrics = Json::array(), pipeline = Json::array(), files = Json::array();
  Json nodes = Json::object(), growing = Json::object();
  for (const auto& [name, value] : manifest.metrics)
    metrics.push_back({name, std::isfinite(value) ? Json(value) : Json(nullptr)});
  for (const EffectiveKey& key : manifest.pipeline) pipeline.push_back({key.table, key.key, key.text});
  for (const Manifest::File& file : manifest.files)
    files.push_back({{"path", file.path}, {"bytes", file.bytes}, {"crc32c", hex(file.crc32c)}});
  for (const auto& [name, state] : manifest.nodes) nodes[name] = json_of(state);
  for (const auto& [name, bytes] : manifest.growing) growing[name] = bytes;
  return {{"format", kFormat},
          {"program_version", manifest.program_version},
          {"saved_at", manifest.saved_at},
          {"iterations", manifest.iterations},
          {"oldest_version", manifest.oldest_version},
          {"files", std::move(files)},
          {"growing", std::move(growing)},
          {"nodes", std::move(nodes)},
          {"metrics", std::move(metrics)},
          {"pipeline", std::move(pipeline)}};
}

// A manifest is data, perhaps a stranger's: what it names lies in its folder, or the run's.
void check_paths(const Manifest& manifest) {
  const auto check = [](const std::string& path) {
    const std::string fault = fault_of_inner_path(path);
    if (!fault.empty()) throw UserError("it names a file " + sluice::quoted(path) + ", which no run writes: " + fault);
  };
  for (const Manifest::File& file : manifest.files) check(file.path);
  for (const auto& [name, bytes] : manifest.growing) check(name);
  for (const auto& [node, state] : manifest.nodes) {
    for (const auto& [name, bytes] : state.files) check(name);
  }
}

Manifest manifest_of(const Json& json) {
  if (json.at("format").get<int>() != kFormat) {
    throw UserError("it has format " + json.at("format").dump() + "; this program knows format " + std::to_string(kFormat));
  }
  Manifest manifest;
  manifest.program_version = json.at("program_version").get<std::string>();
  manifest.saved_at = json.at("saved_at").get<std::string>();
  manifest.iterations = json.at("iterations").get<int64_t>();
  manifest.oldest_version = json.at("oldest_version").get<int64_t>();
  for (const Json& file : json.at("files")) {
    manifest.files.push_back({.path = file.at("path").get<std::string>(),
                              .bytes = file.at("bytes").get<int64_t>(),
                              .crc32c = from_hex(file.at("crc32c").get<std::string>())});
  }
  for (const auto& [name, bytes] : json.at("growing").items()) manifest.growing[name] = bytes.get<int64_t>();
  for (const auto& [name, state] : json.at("nodes").items()) manifest.nodes[name] = state_of(state);
  for (const Json& metric : json.at("metrics")) {
    const double value = metric.at(1).is_null() ? std::numeric_limits<double>::quiet_NaN() : metric.at(1).get<double>();
    manifest.metrics.emplace_back(metric.at(0).get<std::string>(), value);
  }
  for (const Json& key : json.at("pipeline")) {
    manifest.pipeline.push_back({.table = key.at(0).get<std::string>(),
                                 .key = key.at(1).get<std::string>(),
                                 .text = key.at(2).get<std::string>(),
                                 .origin = {}});
  }
  check_paths(manifest);
  return manifest;
}

}  // namespace

Manifest::File described(const fs::path& checkpoint, const fs::path& path) {
  const MappedFile mapped(path);
  return {.path = path.lexically_relative(checkpoint).generic_string(),
          .bytes = static_cast<int64_t>(mapped.bytes().size()),
          .crc32c = crc32c(mapped)};
}

std::string manifest_json(const Manifest& manifest) {
  const std::string rest = json_of(manifest).dump(1).substr(1) + "\n";  // without its brace, which the first line has
  return std::string(kFirstLine) + hex(crc32c(rest)) + std::string(kFirstLineEnd) + rest;
}

Manifest parse_manifest(const std::string& text, const fs::path& path) {
  const size_t begin = kFirstLine.size() + 8 + kFirstLineEnd.size();
  const std::string_view rest = std::string_view(text).substr(std::min(begin, text.size()));
  if (!text.starts_with(kFirstLine) || text.substr(kFirstLine.size(), 8) != hex(crc32c(rest))) {
    throw UserError(path.string() + " is damaged: its checksum is not that of its content");
  }
  try {
    return manifest_of(parse_json(text, path.string()));
  } catch (const Json::exception& error) {
    throw UserError(path.string() + " is not what a run writes: " + reason_of_json_error(error.what()));
  } catch (const UserError& error) {
    throw UserError(path.string() + " cannot be used: " + error.message());
  }
}

Manifest read_manifest(const fs::path& checkpoint) {
  const fs::path path = checkpoint / kManifestName;
  return parse_manifest(read_file(path), path);
}

}  // namespace sluice::engine
