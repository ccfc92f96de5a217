#include "engine/trace_cut.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace sluice::engine {
namespace {

constexpr size_t kChunk = 1 << 20;

// A line is one event, perhaps with a comma behind it; anything else is a bracket, or was cut off.
Json event_of(std::string_view line) {
  if (line.ends_with(',')) line.remove_suffix(1);
  return line.starts_with('{') ? Json::parse(line, nullptr, /*allow_exceptions=*/false) : Json(Json::value_t::discarded);
}

// The names of the rows are written again by whoever goes on.
bool stays(const Json& event, int64_t iterations) {
  return event.is_object() && event.value("ph", "") == "X" && event.at("args").value("iteration", iterations) < iterations;
}

int64_t end_ns(const Json& event) { return std::llround((event.value("ts", 0.0) + event.value("dur", 0.0)) * 1e3); }

}  // namespace

int64_t cut_trace(const std::filesystem::path& path, int64_t iterations, FileSystem& files) {
  std::ifstream old(path);
  if (!old) return 0;
  std::filesystem::path shorter = path;
  shorter += ".tmp";
  OutputFile file(shorter, OutputFile::Mode::kTruncate, files);
  std::string text = "[\n", line;
  int64_t last_ns = 0;
  while (std::getline(old, line)) {
    const Json event = event_of(line);
    if (!stays(event, iterations)) continue;
    text += line + (line.ends_with(',') ? "\n" : ",\n");
    last_ns = std::max(last_ns, end_ns(event));
    if (text.size() < kChunk) continue;
    file.write(text);
    text.clear();
  }
  file.write(text);
  file.close();
  replace_path(shorter, path, files);
  return last_ns;
}

}  // namespace sluice::engine
