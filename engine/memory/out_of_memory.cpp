#include "engine/memory/out_of_memory.h"

#include <algorithm>
#include <array>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/memory/memory_report.h"

namespace sluice::engine {

OutOfMemory explained(Problem failed, const Plan& plan, const MemoryReport& report) {
  for (std::string& line : memory_lines(report)) failed.notes.push_back(std::move(line));
  failed.help = memory_advice(plan, report);
  return OutOfMemory(std::move(failed));
}

std::exception_ptr explained(const std::exception_ptr& error, const Plan& plan, const MemoryReport& report) {
  try {
    std::rethrow_exception(error);
  } catch (const OutOfMemory& failed) {
    return std::make_exception_ptr(explained(failed.problems().front(), plan, report));
  } catch (...) {
    return error;
  }
}

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (const auto* system = dynamic_cast<const std::system_error*>(&error); system != nullptr)
    return system->code() == std::errc::not_enough_memory;
  // LibTorch throws exceptions of its own, of which the text alone tells.
  constexpr std::array<std::string_view, 6> kTexts{"DefaultCPUAllocator",      "not enough memory", "out of memory",
                                                   "no memory for a KV cache", "bad_alloc",         "CUBLAS_STATUS_ALLOC_FAILED"};
  const std::string_view text = error.what();
  return std::ranges::any_of(kTexts, [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

}  // namespace sluice::engine
