#include "comm/all_gather.h"

#include <algorithm>

#include "base/error.h"
#include "base/numbers/float_range.h"

namespace sluice::comm {
namespace {

constexpr int kTag = 2;              // those before are of sums
constexpr int64_t kPiece = 1 << 20;  // floats
constexpr int kBatches = 3;          // that are under way at once

FloatRange piece_of(const std::vector<int64_t>& begins, int rank, int64_t round) {
  const int64_t first = begins[static_cast<size_t>(rank)], end = begins[static_cast<size_t>(rank) + 1];
  const int64_t begin = std::min(end, first + round * kPiece);
  return {begin, std::min(end, begin + kPiece)};
}

int64_t rounds_of(const std::vector<int64_t>& begins) {
  int64_t most = 0;
  for (size_t rank = 0; rank + 1 < begins.size(); ++rank) most = std::max(most, begins[rank + 1] - begins[rank]);
  return (most + kPiece - 1) / kPiece;
}

}  // namespace

// Where something is to go is said first, for all: what is sent before that waits for a reply.
void all_gather(engine::World world, Transfers& transfers, float* values, const std::vector<int64_t>& begins) {
  SLUICE_CHECK(std::ssize(begins) == world.size + 1 && std::ranges::is_sorted(begins), "not a range for each rank");
  const int64_t rounds = rounds_of(begins);
  for (int64_t round = 0; round < rounds + kBatches; ++round) {
    const int batch = static_cast<int>(round % kBatches);
    if (round >= kBatches) transfers.wait(batch);
    for (int i = 1; i < world.size; ++i) {
      const int other = (world.rank + world.size - i) % world.size;
      const FloatRange theirs = piece_of(begins, other, round);
      if (theirs.size() > 0) transfers.receive(batch, values + theirs.begin, theirs.size(), other, kTag);
    }
    const FloatRange own = piece_of(begins, world.rank, round);
    for (int i = 1; i < world.size && own.size() > 0; ++i)
      transfers.send(batch, values + own.begin, own.size(), (world.rank + i) % world.size, kTag);
  }
}

}  // namespace sluice::comm
