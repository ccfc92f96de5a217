#include "engine/contract/world/common_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace sluice::engine {

std::shared_ptr<std::byte> OwnMemory::get(const std::string& /*name*/, size_t bytes) {
  const size_t mapped = std::max<size_t>(bytes, 1);
  void* const memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<std::byte*>(memory), [mapped](std::byte* of) { ::munmap(of, mapped); }};
}

}  // namespace sluice::engine
