#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace sluice::engine {

/// A group of ranks that have memory in common, as one of them sees it. All ranks that train are one such group, or several of
/// the same size. Those of a host that only sample are one of their own.
struct SharingRanks {
  int place = 0;                        // of this rank among them
  std::vector<int> members = {0};       // by place: their numbers in the run
  int group = 0;                        // which of all groups it is
  std::vector<int> counterparts = {0};  // by group: who has this place there, as a number among all that train; of those that do

  int count() const { return static_cast<int>(members.size()); }
  int groups() const { return static_cast<int>(counterparts.size()); }
};

/// Memory that ranks have in common, so that what each of them would hold is there once.
///
/// Threads: one thread of a rank at a time. Failure: UserError where the ranks cannot have it, as on several hosts, or one of
/// them is lost.
class CommonMemory {
 public:
  virtual ~CommonMemory() = default;

  /// Who has it. "All ranks" below are these.
  virtual const SharingRanks& ranks() const = 0;

  /// So many bytes, zero at first, which whoever asks for this name has too; a name is asked for once. They begin at a page, and
  /// are gone with the last handle of all ranks. A page takes memory once somebody writes to it. Waits for: all ranks to ask.
  /// Ends when: they do, or one is lost.
  virtual std::shared_ptr<std::byte> get(const std::string& name, size_t bytes) = 0;

  /// Waits for: all ranks to call it. Ends when: they do, or one is lost. Each sees afterwards what the others have written
  /// before.
  virtual void meet() = 0;

  /// The run is over, or a rank is lost: who waits for another one stops. From any thread.
  virtual bool is_over() const { return false; }
};

/// Of a rank that is alone.
class OwnMemory final : public CommonMemory {
 public:
  const SharingRanks& ranks() const override { return ranks_; }
  std::shared_ptr<std::byte> get(const std::string& name, size_t bytes) override;
  void meet() override {}

 private:
  const SharingRanks ranks_ = {};
};

}  // namespace sluice::engine
