#pragma once

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text/strings.h"
#include "tests/source_folder.h"
#include "tests/temporary_folder.h"
#include "text/chat/chat_template.h"

namespace sluice::text {

inline std::filesystem::path golden_chat_folder() {
  return std::filesystem::path(tests::source_folder()) / "tests/golden/text/chat_templates";
}

inline std::vector<Json> golden_lines(const std::string& file) {
  std::vector<Json> cases;
  for (const std::string& line : split(read_file(golden_chat_folder() / file), '\n')) {
    if (!line.empty()) cases.push_back(parse_json(line, file));
  }
  return cases;
}

/// Text of a template of a published model, or nothing where the test data is not installed: then a test skips, but not under
/// CI=true.
inline std::optional<std::string> published_template(const std::string& name) {
  const char* data = std::getenv("SLUICE_TEST_DATA");
  const std::filesystem::path root =
      data ? std::filesystem::path(data) : std::filesystem::path(tests::source_folder()) / "../shared/data";
  const std::filesystem::path file = root / "chat_templates" / (name + ".jinja");
  if (std::filesystem::exists(file)) return read_file(file);
  const char* ci = std::getenv("CI");
  if (ci && std::string(ci) == "true") throw std::runtime_error(file.string() + " is missing; set SLUICE_TEST_DATA");
  return std::nullopt;
}

/// The time at which the expected texts were written: Friday, 2024-07-26 14:05:09.
inline std::tm golden_time() {
  std::tm time{};
  time.tm_year = 124, time.tm_mon = 6, time.tm_mday = 26;
  time.tm_hour = 14, time.tm_min = 5, time.tm_sec = 9;
  time.tm_wday = 5, time.tm_yday = 207;
  return time;
}

/// What `action` throws as UserError; "accepted" when it does not.
template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace sluice::text
