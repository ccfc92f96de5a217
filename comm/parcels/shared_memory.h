#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/descriptor.h"

namespace sluice::comm {

/// Memory that processes of one host may map: a memfd, which has no name anywhere. The system frees it with the last process that
/// has its descriptor or has it mapped, however that ends. Nobody can make it shorter, so that no other process can make a reader
/// fail.
///
/// Pages are there once they were written, in all processes that map them. Failure: UserError where the system has no more.
class SharedMemory {
 public:
  /// New.
  explicit SharedMemory(size_t bytes);

  /// What another process has made, and has passed on. The descriptor is not needed any more then.
  SharedMemory(const Descriptor& memory, size_t bytes);

  /// Likewise, with the descriptor, so that it can be passed on once more.
  static SharedMemory to_pass_on(Descriptor memory, size_t bytes);

  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  int descriptor() const { return memory_.number(); }  // to pass on; of what was made here, or is to be passed on

  /// Gives the pages from `begin` on back to the system, in all processes: they are zero then. Of what was made here.
  void clear_from(size_t begin);

 private:
  Descriptor memory_;
  const size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace sluice::comm
