#pragma once

#include <ucontext.h>

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/numbers/random.h"

namespace sluice::tests {

/// A thread block of a GPU on the host: runs the code of a kernel with its numbers of blocks, threads, warps and lanes, each
/// thread on a stack of its own, one at a time. Warps go on in a random order, each until it meets others, so what lacks a
/// meeting reads what is not there yet. Finds threads that wait for each other. Used by one thread of the host.
class HostBlock {
 public:
  static constexpr int kLanes = 32;

  /// What a kernel's code is given (models/cuda/gpu_thread.h).
  class Thread {
   public:
    int block_x() const { return block_.x_; }
    int block_y() const { return block_.y_; }
    int index() const { return index_; }
    float of_lane_across(int step, float x) const;
    void multiply(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) const;
    void meet() const { block_.wait(index_, Waiting::kForBlock); }
    void follow() const {}

   private:
    friend class HostBlock;
    Thread(HostBlock& block, int index) : block_(block), index_(index) {}
    HostBlock& block_;
    int index_;
  };

  /// threads: a multiple of kLanes. The seed decides which warp goes on.
  HostBlock(int threads, uint64_t seed);

  /// Runs `code` as every thread of block (x, y). Throws std::logic_error when no thread can go on; `code` itself throws nothing.
  void run(int x, int y, const std::function<void(const Thread&)>& code);

 private:
  enum class Waiting { kForNothing, kForLanes, kForBlock, kForever };
  // What a lane gives to the others of its warp, who all give the same kind of it.
  struct Given {
    int kind = 0;
    std::array<uint32_t, 6> words{};
  };
  using OfWarp = std::array<Given, kLanes>;
  struct Fiber {
    ucontext_t place{};
    std::unique_ptr<char[]> stack;
    Waiting waiting = Waiting::kForNothing;
    Given given;
  };

  static void enter(unsigned low, unsigned high);  // the address of the block in halves
  void start(int index);
  void go_on(int index);
  const OfWarp& exchange(int index, const Given& given);
  void wait(int index, Waiting what);
  bool warp_goes_on(int warp);
  void end_exchange(int warp);
  bool block_goes_on();
  int waiting(int first, int count, Waiting what) const;

  std::vector<Fiber> fibers_;
  std::vector<OfWarp> exchanged_;  // of each warp, in its last exchange
  RandomStream random_;
  const std::function<void(const Thread&)>* code_ = nullptr;
  ucontext_t scheduler_{};
  int x_ = 0, y_ = 0, current_ = 0;
};

}  // namespace sluice::tests
