#pragma once

#include <cstdint>

namespace sluice::comm {

/// The memory of other processes of this machine, out of which bytes are copied once, with no connection between
/// (process_vm_readv). Systems allow it for processes of one user, or do not (other users, containers, security modules): whoever
/// wants to read tries it first with a sample, which also shows that the number of the process means the same process to both.
///
/// Threads: any. Failure: functions that return false leave it to the caller what that means.

/// Some bytes of a process, and where they are: what it tells others.
struct MemorySample {
  uint64_t process = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;  // what lies there; random
};

/// Bytes of this process, for others to try; they stay as long as this.
class OwnSample {
 public:
  OwnSample();
  OwnSample(const OwnSample&) = delete;
  OwnSample& operator=(const OwnSample&) = delete;

  MemorySample sample() const;

 private:
  const uint64_t bytes_;
};

/// Lets the other processes that the one which started this has started read the memory of this one, where only a process's own
/// ancestors could (Yama).
void let_siblings_read();

bool can_read(const MemorySample& sample);

/// Copies `size` bytes from `address` of `process`. False: not all of them are there any more, or it has ended.
bool read_memory(uint64_t process, uint64_t address, void* into, uint64_t size);

}  // namespace sluice::comm
