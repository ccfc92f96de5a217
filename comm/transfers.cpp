#include "comm/transfers.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>

#include "base/error.h"
#include "base/numbers/crc32c.h"

namespace sluice::comm {
namespace {

constexpr int kTagOfSamples = 5;     // those before are of sums, of what is gathered, announced and exchanged
constexpr int kHasRead = 8;          // added to a tag: of what says that floats with that tag were read
constexpr int kNotRead = 16;         // likewise: of floats that nobody can read
constexpr int kChecksum = 32;        // likewise: of the checksum of floats that went over the connection
constexpr int64_t kSlice = 1 << 20;  // floats that are copied before somebody may give up

// Gloo's own limit is the time to connect. Whether a rank lives is known sooner from others than Gloo.
constexpr std::chrono::hours kWithoutEnd{24};

std::vector<at::Tensor> as_tensors(float* floats, int64_t count) { return {at::from_blob(floats, {count}, at::kFloat)}; }

uint32_t checksum_of(const float* floats, int64_t count) {
  return crc32c({reinterpret_cast<const char*>(floats), static_cast<size_t>(count) * sizeof(float)});
}

float* as_floats(MemorySample& sample) { return reinterpret_cast<float*>(&sample); }
constexpr int64_t kFloatsOfASample = sizeof(MemorySample) / sizeof(float);

}  // namespace

Transfers::Transfers(std::shared_ptr<c10d::Backend> ranks, int batches, Reach reach)
    : ranks_(std::move(ranks)), reach_(std::move(reach)), batches_(static_cast<size_t>(batches)) {}

Transfers::~Transfers() { close(); }

void Transfers::find_near() {
  if (!reach_.read) return;
  let_siblings_read();
  const int own = ranks_->getRank();
  const auto size = static_cast<size_t>(ranks_->getSize());
  const auto with_each_other = [&](auto&& begin) {
    for (int rank = 0; rank < static_cast<int>(size); ++rank)
      if (rank != own) begin(rank);
    wait(0);
  };
  std::vector<MemorySample> samples(size);
  MemorySample mine = sample_.sample();
  with_each_other([&](int rank) {
    receive(0, as_floats(samples[static_cast<size_t>(rank)]), kFloatsOfASample, rank, kTagOfSamples);
    send(0, as_floats(mine), kFloatsOfASample, rank, kTagOfSamples);
  });
  std::vector<float> reads(size), is_read(size);
  std::ranges::transform(samples, reads.begin(), [](const MemorySample& sample) { return can_read(sample) ? 1.0F : 0.0F; });
  with_each_other([&](int rank) {
    receive(0, &is_read[static_cast<size_t>(rank)], 1, rank, kTagOfSamples);
    send(0, &reads[static_cast<size_t>(rank)], 1, rank, kTagOfSamples);
  });
  for (const MemorySample& sample : samples) processes_.push_back(sample.process);
  near_ = std::move(reads);
  near_to_ = std::move(is_read);
}

bool Transfers::is_near(const std::vector<float>& ranks, int rank, int64_t count) const {
  return !ranks.empty() && ranks[static_cast<size_t>(rank)] > 0 && count > kFewFloats;
}

Transfers::Work Transfers::begin_send(const float* from, int64_t count, int rank, int tag) {
  auto tensors = as_tensors(const_cast<float*>(from), count);
  return ranks_->send(tensors, rank, tag);
}

Transfers::Work Transfers::begin_receive(float* into, int64_t count, int rank, int tag) {
  auto tensors = as_tensors(into, count);
  return ranks_->recv(tensors, rank, tag);
}

// With the lock, as the next one.
void Transfers::send_checked(Batch& in, const float* from, int64_t count, int rank, int tag) {
  const uint64_t checksum = checksum_of(from, count);
  Note& told = in.notes.emplace_back();
  static_assert(sizeof told == sizeof checksum);
  std::memcpy(&told, &checksum, sizeof told);
  in.works.push_back(begin_send(from, count, rank, tag));
  in.works.push_back(begin_send(told.data(), std::ssize(told), rank, tag + kChecksum));
}

void Transfers::receive_checked(Batch& in, float* into, int64_t count, int rank, int tag) {
  Note& told = in.notes.emplace_back();
  in.works.push_back(begin_receive(into, count, rank, tag));
  in.works.push_back(begin_receive(told.data(), std::ssize(told), rank, tag + kChecksum));
  in.checks.push_back({.told = &told, .floats = into, .count = count, .rank = rank});
}

// What nobody else can read this process cannot read in this way, either.
bool Transfers::others_can_read(const float* from, int64_t count) const {
  const uint64_t process = sample_.sample().process;
  const auto can = [&](const float* place) {
    float value = 0;
    return reach_.read(process, reinterpret_cast<uint64_t>(place), &value, sizeof value);
  };
  return can(from) && can(from + count - 1);
}

void Transfers::send(int batch_number, const float* from, int64_t count, int rank, int tag) {
  const std::lock_guard lock(mutex_);
  throw_if_given_up();
  Batch& to = batch(batch_number);
  if (!is_near(near_to_, rank, count)) return send_checked(to, from, count, rank, tag);
  Note& where = to.notes.emplace_back();
  if (others_can_read(from, count)) {
    static_assert(sizeof where == sizeof from);
    std::memcpy(&where, &from, sizeof where);
    to.works.push_back(begin_receive(to.notes.emplace_back().data(), 1, rank, tag + kHasRead));
  } else {
    send_checked(to, from, count, rank, tag + kNotRead);
  }
  to.works.push_back(begin_send(where.data(), std::ssize(where), rank, tag));
}

void Transfers::receive(int batch_number, float* into, int64_t count, int rank, int tag) {
  const std::lock_guard lock(mutex_);
  throw_if_given_up();
  Batch& to = batch(batch_number);
  if (!is_near(near_, rank, count)) return receive_checked(to, into, count, rank, tag);
  Note& where = to.notes.emplace_back();
  to.arrivals.push_back({.told = begin_receive(where.data(), std::ssize(where), rank, tag),
                         .where = &where,
                         .into = into,
                         .count = count,
                         .rank = rank,
                         .tag = tag});
}

// What others wait for is done first. Without the lock, which give_up() needs: only this thread changes the batch.
void Transfers::wait(int batch_number) {
  Batch& all = batch(batch_number);
  try {
    for (const Arrival& arrival : all.arrivals) fetch(all, arrival);
    std::ranges::for_each(all.works, wait_for);
    std::ranges::for_each(all.checks, check);
  } catch (...) {  // the memory may be the caller's own, and go with it
    let_go(all);
    throw;
  }
  let_go(all);
}

// Returns when nothing touches its memory any more.
void Transfers::let_go(Batch& of) {
  const std::lock_guard lock(mutex_);
  of.works.clear();
  of.arrivals.clear();
  of.checks.clear();
  of.notes.clear();
}

void Transfers::wait_for(const Work& work) {
  if (!work->wait(kWithoutEnd)) throw GivenUp();
}

void Transfers::check(const Check& arrived) {
  uint64_t told = 0;
  std::memcpy(&told, arrived.told, sizeof told);
  const uint32_t is = checksum_of(arrived.floats, arrived.count);
  if (is == told) return;
  throw UserError("floats came damaged from rank " + std::to_string(arrived.rank) + ": their checksum is " + checksum_text(is) +
                      " and not " + checksum_text(static_cast<uint32_t>(told)),
                  "look for faults of the memory and the network of both machines");
}

void Transfers::fetch(Batch& of, const Arrival& arrival) {
  wait_for(arrival.told);
  uint64_t from = 0;
  std::memcpy(&from, arrival.where, sizeof from);
  if (from != 0) copy(from, arrival);
  const std::lock_guard lock(mutex_);
  throw_if_given_up();
  if (from == 0) return receive_checked(of, arrival.into, arrival.count, arrival.rank, arrival.tag + kNotRead);
  of.works.push_back(begin_send(of.notes.emplace_back().data(), 1, arrival.rank, arrival.tag + kHasRead));
}

void Transfers::copy(uint64_t from, const Arrival& arrival) {
  for (int64_t begin = 0; begin < arrival.count; begin += kSlice) {
    {
      const std::lock_guard lock(mutex_);
      throw_if_given_up();
    }
    const auto offset = static_cast<uint64_t>(begin) * sizeof(float);
    const auto size = static_cast<uint64_t>(std::min(kSlice, arrival.count - begin)) * sizeof(float);
    if (!reach_.read(processes_[static_cast<size_t>(arrival.rank)], from + offset, arrival.into + begin, size))
      throw std::runtime_error("rank " + std::to_string(arrival.rank) + " has ended, or left the others");
  }
}

void Transfers::throw_if_given_up() {
  if (given_up_) throw GivenUp();
}

// Also ends a wait that begins later.
void Transfers::give_up() {
  const std::lock_guard lock(mutex_);
  given_up_ = true;
  for (const Batch& batch : batches_) {
    for (const Work& work : batch.works) work->abort();
    for (const Arrival& arrival : batch.arrivals) arrival.told->abort();
  }
}

void Transfers::close() {
  {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
  }
  for (Batch& batch : batches_) let_go(batch);
  ranks_.reset();  // as long as it were open, Gloo would look again and again for what has come and whereto
}

}  // namespace sluice::comm
