#include "comm/parcels/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.h"

namespace sluice::comm {
namespace {

[[noreturn]] void throw_no_memory(size_t bytes) {
  throw UserError(
      "the system gives no " + std::to_string(bytes) + " bytes of memory to share with other ranks: " + std::strerror(errno),
      "let fewer tokens be in flight, or give the process more memory and more open files");
}

Descriptor new_memory(size_t bytes) {
  Descriptor memory(::memfd_create("sluice", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool is_made = memory && ::ftruncate(memory.number(), static_cast<off_t>(bytes)) == 0 &&
                       ::fcntl(memory.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  if (!is_made) throw_no_memory(bytes);
  return memory;
}

std::byte* mapped(const Descriptor& memory, size_t bytes) {
  void* const place = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.number(), 0);
  if (place == MAP_FAILED) throw_no_memory(bytes);
  return static_cast<std::byte*>(place);
}

}  // namespace

SharedMemory::SharedMemory(size_t bytes) : memory_(new_memory(bytes)), bytes_(bytes), data_(mapped(memory_, bytes)) {}

SharedMemory::SharedMemory(const Descriptor& memory, size_t bytes) : bytes_(bytes), data_(mapped(memory, bytes)) {}

SharedMemory SharedMemory::to_pass_on(Descriptor memory, size_t bytes) {
  SharedMemory passed(memory, bytes);
  passed.memory_ = std::move(memory);
  return passed;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : memory_(std::move(other.memory_)), bytes_(other.bytes_), data_(std::exchange(other.data_, nullptr)) {}

void SharedMemory::clear_from(size_t begin) {
  if (begin >= bytes_) return;
  const bool is_cleared = ::fallocate(memory_.number(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                                      static_cast<off_t>(bytes_ - begin)) == 0;
  SLUICE_CHECK(is_cleared, "pages of shared memory cannot be given back");
}

}  // namespace sluice::comm
