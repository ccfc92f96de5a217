#include "tests/models/cuda/host_block.h"

#include <numeric>
#include <stdexcept>

namespace sluice::tests {
namespace {

constexpr size_t kStackBytes = size_t{32} << 10;
constexpr unsigned kHalf = 32;  // bits
constexpr int kProduct = -1;    // a kind of exchange; those across lanes have their step

// Of the two bfloat16 in a word.
float number(uint32_t word, int place) { return std::bit_cast<float>(place == 0 ? word << 16 : word & 0xffff0000u); }

}  // namespace

HostBlock::HostBlock(int threads, uint64_t seed)
    : fibers_(static_cast<size_t>(threads)), exchanged_(static_cast<size_t>(threads / kLanes)), random_(seed, 0) {
  for (Fiber& fiber : fibers_) fiber.stack = std::make_unique<char[]>(kStackBytes);
}

void HostBlock::run(int x, int y, const std::function<void(const Thread&)>& code) {
  x_ = x, y_ = y, code_ = &code;
  const int threads = static_cast<int>(fibers_.size());
  for (int i = 0; i < threads; ++i) start(i);
  do {
    std::vector<int> ready(static_cast<size_t>(threads / kLanes));  // warps
    std::iota(ready.begin(), ready.end(), 0);
    while (!ready.empty()) {
      const size_t chosen = random_.below(ready.size());
      if (!warp_goes_on(ready[chosen])) ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
  } while (block_goes_on());
}

// Every lane to where it waits; false: no lane waits for others of its warp.
bool HostBlock::warp_goes_on(int warp) {
  for (int i = warp * kLanes; i < (warp + 1) * kLanes; ++i) {
    if (fibers_[static_cast<size_t>(i)].waiting == Waiting::kForNothing) go_on(i);
  }
  const int for_lanes = waiting(warp * kLanes, kLanes, Waiting::kForLanes);
  if (for_lanes == 0) return false;
  if (for_lanes < kLanes) throw std::logic_error("lanes of a warp wait for others that are elsewhere");
  end_exchange(warp);
  return true;
}

void HostBlock::end_exchange(int warp) {
  Fiber* const lanes = &fibers_[static_cast<size_t>(warp * kLanes)];
  for (int lane = 0; lane < kLanes; ++lane) {
    if (lanes[lane].given.kind != lanes[0].given.kind) throw std::logic_error("lanes of a warp exchange across different steps");
    exchanged_[static_cast<size_t>(warp)][static_cast<size_t>(lane)] = lanes[lane].given;
    lanes[lane].waiting = Waiting::kForNothing;
  }
}

// False: all threads are at their end.
bool HostBlock::block_goes_on() {
  const int threads = static_cast<int>(fibers_.size());
  if (waiting(0, threads, Waiting::kForever) == threads) return false;
  if (waiting(0, threads, Waiting::kForBlock) < threads)
    throw std::logic_error("threads of a block wait for others that have ended");
  for (Fiber& fiber : fibers_) fiber.waiting = Waiting::kForNothing;
  return true;
}

int HostBlock::waiting(int first, int count, Waiting what) const {
  int found = 0;
  for (int i = first; i < first + count; ++i) found += fibers_[static_cast<size_t>(i)].waiting == what ? 1 : 0;
  return found;
}

void HostBlock::start(int index) {
  Fiber& fiber = fibers_[static_cast<size_t>(index)];
  getcontext(&fiber.place);
  fiber.place.uc_stack.ss_sp = fiber.stack.get();
  fiber.place.uc_stack.ss_size = kStackBytes;
  fiber.place.uc_link = &scheduler_;
  fiber.waiting = Waiting::kForNothing;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&fiber.place, reinterpret_cast<void (*)()>(&enter), 2, static_cast<unsigned>(self),
              static_cast<unsigned>(self >> kHalf));
}

void HostBlock::enter(unsigned low, unsigned high) {
  auto& block = *reinterpret_cast<HostBlock*>(uintptr_t{low} | uintptr_t{high} << kHalf);
  (*block.code_)(Thread(block, block.current_));
  block.fibers_[static_cast<size_t>(block.current_)].waiting = Waiting::kForever;
}

void HostBlock::go_on(int index) {
  current_ = index;
  swapcontext(&scheduler_, &fibers_[static_cast<size_t>(index)].place);
}

void HostBlock::wait(int index, Waiting what) {
  Fiber& fiber = fibers_[static_cast<size_t>(index)];
  fiber.waiting = what;
  swapcontext(&fiber.place, &scheduler_);
}

const HostBlock::OfWarp& HostBlock::exchange(int index, const Given& given) {
  fibers_[static_cast<size_t>(index)].given = given;
  wait(index, Waiting::kForLanes);
  return exchanged_[static_cast<size_t>(index / kLanes)];
}

float HostBlock::Thread::of_lane_across(int step, float x) const {
  const OfWarp& lanes = block_.exchange(index_, {step, {std::bit_cast<uint32_t>(x)}});
  return std::bit_cast<float>(lanes[static_cast<size_t>((index_ % kLanes) ^ step)].words[0]);
}

// PTX ISA, "Matrix fragments for mma.m16n8k16": lane 4 r + t has of a (16 x 16) rows r and r + 8, of b (16 x 8) column r, and of
// both k = 2 t, 2 t + 1 and 8 more; of the sums (16 x 8) rows r and r + 8, columns 2 t and 2 t + 1.
void HostBlock::Thread::multiply(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) const {
  const OfWarp& lanes = block_.exchange(index_, {kProduct, {a[0], a[1], a[2], a[3], b[0], b[1]}});
  const int lane = index_ % kLanes;
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + (i < 2 ? 0 : 8), column = lane % 4 * 2 + i % 2;
    for (int k = 0; k < 16; ++k) {
      const auto holder = [&](int line) -> const Given& { return lanes[static_cast<size_t>(line % 8 * 4 + k % 8 / 2)]; };
      const size_t of_a = (k < 8 ? 0 : 2) + (row < 8 ? 0 : 1), of_b = k < 8 ? 4 : 5;
      sums[i] += number(holder(row).words[of_a], k % 2) * number(holder(column).words[of_b], k % 2);
    }
  }
}

}  // namespace sluice::tests
