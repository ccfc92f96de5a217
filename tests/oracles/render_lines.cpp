// Renders what standard input says, for the comparison with the reference (tests/oracles/chat_template_reference.py).
//
// One JSON object a line: {"template": "...", "variables": {...}}. One answer a line: {"text": "...", "generations": [[begin,
// end], ...]} or {"error": "..."}. The time is 2024-07-26 14:05:09, a Friday.
#include <ctime>
#include <iostream>
#include <string>

#include "base/error.h"
#include "base/json/json.h"
#include "text/jinja/template.h"

namespace {

using sluice::Json;

std::tm fixed_time() {
  std::tm time{};
  time.tm_year = 124;
  time.tm_mon = 6;
  time.tm_mday = 26;
  time.tm_hour = 14;
  time.tm_min = 5;
  time.tm_sec = 9;
  time.tm_wday = 5;
  time.tm_yday = 207;
  return time;
}

Json answer(const std::string& line) {
  try {
    const Json input = sluice::parse_json(line, "input");
    const sluice::text::jinja::Template source(input.at("template").get<std::string>(), "template");
    const auto rendered = source.render(input.at("variables"), fixed_time());
    return {{"text", rendered.text}, {"generations", rendered.generations}};
  } catch (const sluice::UserError& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) std::cout << answer(line).dump() << "\n";
}
