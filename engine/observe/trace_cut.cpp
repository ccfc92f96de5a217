#include "engine/observe/trace_cut.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/mapped_file.h"
#include "base/files/path_kind.h"
#include "base/json/json.h"

namespace sluice::engine {
namespace {

constexpr size_t kChunk = 1 << 20;
constexpr size_t kLongestLine = 1 << 16;  // a run writes some 100 bytes

// What is kept of a line.
struct Event {
  int64_t iteration = 0;
  int64_t end_ns = 0;
};

// A line is one event, perhaps with a comma after it: work, or an end of an arrow. Nothing: it is a bracket, was cut off, is
// none that a run writes, or names a row, which whoever goes on writes again.
std::optional<Event> event_of(std::string_view line) {
  if (line.ends_with(',')) line.remove_suffix(1);
  if (!line.starts_with('{') || line.size() > kLongestLine) return std::nullopt;
  try {
    const Json event = parse_json(line, "trace.json");
    const std::string phase = event.at("ph").get<std::string>();
    if (phase != "X" && phase != "s" && phase != "f") return std::nullopt;
    return Event{
        .iteration = event.at("args").at("iteration").get<int64_t>(),
        .end_ns = std::llround((event.at("ts").get<double>() + (phase == "X" ? event.at("dur").get<double>() : 0)) * 1e3)};
  } catch (const Json::exception&) {
    return std::nullopt;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// Into `shorter`; returns the end of its last event.
int64_t write_events_before(int64_t iterations, const MappedFile& old, const std::filesystem::path& shorter, FileSystem& files) {
  std::string_view rest(reinterpret_cast<const char*>(old.bytes().data()), old.bytes().size());
  OutputFile file(shorter, OutputFile::Mode::kTruncate, files);
  std::string text = "[\n";
  int64_t last_ns = 0;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const auto event = event_of(line);
    if (!event || event->iteration >= iterations) continue;
    text.append(line) += line.ends_with(',') ? "\n" : ",\n";
    last_ns = std::max(last_ns, event->end_ns);
    if (text.size() < kChunk) continue;
    file.write(text);
    text.clear();
    old.drop(0, old.bytes().size() - rest.size());
  }
  file.write(text);
  file.close();
  return last_ns;
}

}  // namespace

int64_t cut_trace(const std::filesystem::path& path, int64_t iterations, FileSystem& files) {
  if (!is_there(path)) return 0;
  const MappedFile old(path);
  std::filesystem::path shorter = path;
  shorter += ".tmp";
  try {
    const int64_t last_ns = write_events_before(iterations, old, shorter, files);
    replace_path(shorter, path, files);
    return last_ns;
  } catch (...) {
    files.remove_file(shorter);  // on a full disk it would take what space is left
    throw;
  }
}

}  // namespace sluice::engine
