#include "comm/gradient_sum.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::comm {
namespace {

constexpr int kTagOfParts = 0, kTagOfSums = 1;
constexpr int64_t kStretch = 1024;  // floats

int64_t staged_parts(const GradientCut& cut) { return cut.parts() - cut.parts_of(cut.world().rank); }

void add_floats(const float* a, const float* b, float* into, int64_t count) {
  for (int64_t i = 0; i < count; ++i) into[i] = a[i] + b[i];
}

}  // namespace

GradientSum::GradientSum(const GradientCut& cut, Transfers& transfers)
    : cut_(cut),
      transfers_(transfers),
      staging_(std::make_unique_for_overwrite<float[]>(
          static_cast<size_t>(GradientCut::kRounds * staged_parts(cut) * cut.piece_size()))),
      partial_(static_cast<size_t>(cut.parts() * kStretch)) {}

void GradientSum::run(std::span<float* const> parts, int64_t count, Result result, const engine::GradientGroup::Added& added) {
  SLUICE_CHECK(std::ssize(parts) == cut_.parts_of(cut_.world().rank), "not one buffer for each subtree of this rank");
  parts_.assign(parts.begin(), parts.end());
  count_ = count;
  result_ = result;
  const int64_t rounds = cut_.rounds(count);
  for (int64_t round = 0; round < rounds + GradientCut::kRounds; ++round) {
    if (round >= GradientCut::kRounds) finish(round - GradientCut::kRounds);
    if (round < rounds) exchange_parts(round);
    const int64_t arrived = round - (GradientCut::kRounds - 1);
    if (0 <= arrived && arrived < rounds) add(arrived, added);
  }
}

// Where a part of another rank goes.
float* GradientSum::staged(int64_t round, int part) const {
  const engine::World world = cut_.world();
  const int behind_own = part < cut_.first_part(world.rank) ? part : part - cut_.parts_of(world.rank);
  return staging_.get() + (incoming(round) * staged_parts(cut_) + behind_own) * cut_.piece_size();
}

// Where the parts of all ranks of this rank's own piece are.
std::vector<float*> GradientSum::values(int64_t round, FloatRange piece) const {
  const int first = cut_.first_part(cut_.world().rank);
  std::vector<float*> found;
  for (int part = 0; part < cut_.parts(); ++part) {
    const bool own = first <= part && part < first + std::ssize(parts_);
    found.push_back(own ? parts_[static_cast<size_t>(part - first)] + piece.begin : staged(round, part));
  }
  return found;
}

// Where something is to go is said first, for all: what is sent before that waits for a reply.
void GradientSum::exchange_parts(int64_t round) {
  const int rank = cut_.world().rank, size = cut_.world().size;
  const FloatRange own = cut_.piece(count_, rank, round);
  for (int i = 1; i < size; ++i) {
    const int other = (rank + size - i) % size;
    for (int part = cut_.first_part(other); own.size() > 0 && part < cut_.first_part(other + 1); ++part)
      transfers_.receive(incoming(round), staged(round, part), own.size(), other, kTagOfParts);
    const FloatRange theirs = cut_.piece(count_, other, round);
    if (theirs.size() > 0 && result_ == Result::kWhole)
      transfers_.receive(others(round), parts_[0] + theirs.begin, theirs.size(), other, kTagOfSums);
  }
  for (int i = 1; i < size; ++i) {
    const int owner = (rank + i) % size;  // each rank begins with another one
    const FloatRange theirs = cut_.piece(count_, owner, round);
    for (const float* part : parts_)
      if (theirs.size() > 0) transfers_.send(others(round), part + theirs.begin, theirs.size(), owner, kTagOfParts);
  }
}

void GradientSum::add(int64_t round, const engine::GradientGroup::Added& added) {
  const int rank = cut_.world().rank, size = cut_.world().size;
  const FloatRange own = cut_.piece(count_, rank, round);
  transfers_.wait(incoming(round));
  auto at = values(round, own);
  for (int64_t begin = own.begin; begin < own.end; begin += GradientCut::kBlock) {
    const int64_t count = std::min(GradientCut::kBlock, own.end - begin);
    add_block(at, parts_[0] + begin, count);
    if (added) added(begin, {parts_[0] + begin, static_cast<size_t>(count)});
  }
  if (result_ == Result::kOwned) return;
  for (int i = 1; i < size && own.size() > 0; ++i)
    transfers_.send(others(round), parts_[0] + own.begin, own.size(), (rank + i) % size, kTagOfSums);
}

// Moves `values` after the block.
void GradientSum::add_block(std::vector<float*>& values, float* sum, int64_t count) {
  for (int64_t begin = 0; begin < count; begin += kStretch)
    add_stretch(values, begin, std::min(kStretch, count - begin), sum + begin);
  for (float*& one : values) one += count;
}

// What parts of the tree come to stays in the nearest cache: each value is read once from farther away, and each sum written
// once.
void GradientSum::add_stretch(const std::vector<float*>& values, int64_t begin, int64_t count, float* sum) {
  std::vector<const float*> at(values.size());
  std::ranges::transform(values, at.begin(), [begin](const float* value) { return value + begin; });
  const auto& additions = cut_.additions();
  for (size_t i = 0; i < additions.size(); ++i) {
    const auto first = static_cast<size_t>(additions[i].first), second = static_cast<size_t>(additions[i].second);
    float* const into = i + 1 == additions.size() ? sum : partial_.data() + first * kStretch;
    add_floats(at[first], at[second], into, count);
    at[first] = into;
  }
}

bool GradientSum::holds_sum(size_t part, int owner) const {
  return part == 0 && (result_ == Result::kWhole || owner == cut_.world().rank);
}

// The gradient is as it should be in all pieces of the round.
void GradientSum::finish(int64_t round) {
  transfers_.wait(others(round));
  for (size_t part = 0; part < parts_.size(); ++part) {
    for (int owner = 0; owner < cut_.world().size; ++owner) {
      if (holds_sum(part, owner)) continue;
      const FloatRange piece = cut_.piece(count_, owner, round);
      std::fill(parts_[part] + piece.begin, parts_[part] + piece.end, 0.0F);
    }
  }
}

}  // namespace sluice::comm
