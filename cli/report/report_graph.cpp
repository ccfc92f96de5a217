#include "cli/report/report_graph.h"

#include <array>
#include <chrono>
#include <optional>

#include "base/error.h"
#include "base/process/subprocess.h"
#include "text/tokenizer/base64.h"

namespace sluice::cli {
namespace {

constexpr size_t kMostGraphBytes = 1 << 20;

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
  if (const auto svg = drawn(dot)) return {{"svg", text::to_base64(*svg)}};
  return {{"dot", dot}};
}

}  // namespace sluice::cli
