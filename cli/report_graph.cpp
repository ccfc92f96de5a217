#include "cli/report_graph.h"

#include <array>
#include <chrono>
#include <optional>

#include "base/error.h"
#include "base/subprocess.h"

namespace sluice::cli {
namespace {

constexpr size_t kMostGraphBytes = 1 << 20;

std::string base64(const std::string& bytes) {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t k) { return i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U; };
    const unsigned three = byte(0) << 16 | byte(1) << 8 | byte(2);
    text += kDigits[three >> 18];
    text += kDigits[three >> 12 & 63];
    text += i + 1 < bytes.size() ? kDigits[three >> 6 & 63] : '=';
    text += i + 2 < bytes.size() ? kDigits[three & 63] : '=';
  }
  return text;
}

std::optional<std::string> drawn(const std::string& dot) {
  constexpr std::chrono::seconds kLimit{20};
  if (!find_program("dot")) return std::nullopt;
  try {
    Subprocess process({.arguments = {"dot", "-Tsvg"}, .most_output = kMostGraphBytes});
    process.send(dot);
    process.end_input();
    const auto until = Subprocess::Clock::now() + kLimit;
    while (!process.ended() && !process.overflowed() && Subprocess::Clock::now() < until) {
      const std::array<Subprocess*, 1> all{&process};
      Subprocess::exchange(all, until);
    }
    if (process.succeeded()) return process.take_output();
  } catch (const UserError&) {
    return std::nullopt;  // it cannot be started: the text tells the same
  }
  return std::nullopt;
}

}  // namespace

Json report_graph(const std::string& dot) {
  if (dot.size() > kMostGraphBytes) return nullptr;
  if (const auto svg = drawn(dot)) return {{"svg", base64(*svg)}};
  return {{"dot", dot}};
}

}  // namespace sluice::cli
