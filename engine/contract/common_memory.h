#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace sluice::engine {

/// Memory that all ranks which train have in common, so that what each of them would hold is there once.
///
/// Threads: one thread of a rank at a time. Failure: UserError where the ranks cannot have it, as on several hosts, or one of them
/// is lost.
class CommonMemory {
 public:
  virtual ~CommonMemory() = default;

  /// So many bytes, zero at first, which whoever asks for this name has too; a name is asked for once. They begin at a page, and are
  /// gone with the last handle of all ranks. A page takes memory once somebody writes to it. Waits for: all ranks to ask. Ends
  /// when: they do, or one is lost.
  virtual std::shared_ptr<std::byte> get(const std::string& name, size_t bytes) = 0;

  /// Waits for: all ranks to call it. Ends when: they do, or one is lost. Each sees afterwards what the others have written before.
  virtual void meet() = 0;

  /// The run is over, or a rank is lost: who waits for another one stops. From any thread.
  virtual bool is_over() const { return false; }
};

/// Of a rank that is alone.
class OwnMemory final : public CommonMemory {
 public:
  std::shared_ptr<std::byte> get(const std::string& name, size_t bytes) override;
  void meet() override {}
};

}  // namespace sluice::engine
