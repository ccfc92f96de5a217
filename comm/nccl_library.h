#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

namespace sluice::comm {

/// What is used of NVIDIA's NCCL, by its C interface, which has been the same since version 2.7. It is asked for by name, so that
/// nothing of it is needed where this is built or packed; LibTorch's CUDA part has loaded it.
struct NcclLibrary {
  /// Names a group of ranks: one of them makes it, and all have it.
  struct UniqueId {
    std::array<char, 128> bytes;
  };
  struct Communicator;  // of one rank of a group

  static constexpr int kDone = 0;     // what a function returns that went well
  static constexpr int kFloat32 = 7;  // ncclFloat32
  static constexpr const char* kFile = "libnccl.so.2";

  int (*make_id)(UniqueId* id) = nullptr;
  int (*join)(Communicator** made, int ranks, UniqueId id, int rank) = nullptr;  // waits for all ranks
  int (*abort)(Communicator* communicator) = nullptr;                            // ends it, and what the device waits for
  int (*destroy)(Communicator* communicator) = nullptr;
  int (*send)(const void* from, size_t count, int type, int rank, Communicator* communicator, void* stream) = nullptr;
  int (*receive)(void* to, size_t count, int type, int rank, Communicator* communicator, void* stream) = nullptr;
  int (*begin_group)() = nullptr;
  int (*end_group)() = nullptr;
  const char* (*text_of)(int result) = nullptr;

  /// Null: there is no such library, or it lacks one of these. It stays loaded.
  static std::shared_ptr<const NcclLibrary> load(const std::string& file = kFile);
};

}  // namespace sluice::comm
