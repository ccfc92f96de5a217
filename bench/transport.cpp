// transport RANK PORT PROMPTS SAMPLES TOKENS: one of three ranks between which columns go; bench/transport.py asks all at once.
//
//   {"ask": "parcels", "wire": "memory", "times": 1}   the batch from rank 1 to rank 2, as often; {"seconds"} of rank 2
//   {"ask": "memory of parcels", ...}                  likewise, newly connected; {"extra_bytes"} resident at most, {"credit_bytes"}
//   {"ask": "gloo"}                                    the batch as padded tensors from rank 1 over rank 0 to rank 2; {"seconds"}
//   {"ask": "copy"}                                    rank 1 copies the batch from mapped shared memory to another; {"seconds"}
//
// "wire": "memory" or "stream". The batch has a parcel for each prompt: 36 bytes a token, one column of int64 and seven of
// float32.

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "base/error.h"
#include "bench/countdown.h"
#include "bench/questions.h"
#include "comm/parcels/direct_parcels.h"
#include "comm/parcels/shared_memory.h"
#include "comm/process_group.h"
#include "comm/transfers.h"

namespace sluice::bench {
namespace {

using engine::ColumnData;
using engine::DType;
using engine::Parcel;

constexpr int kRelay = 0, kSender = 1, kReceiver = 2, kRanks = 3;
constexpr int kFloatColumns = 7;
constexpr size_t kTokenBytes = sizeof(int64_t) + kFloatColumns * sizeof(float);
constexpr int64_t kGrantedAtOnce = 4;  // parcels

struct BatchSize {
  int64_t prompts = 1, samples = 1, tokens = 1;

  size_t group_tokens() const { return static_cast<size_t>(samples * tokens); }
  size_t group_bytes() const { return group_tokens() * kTokenBytes; }
  size_t bytes() const { return static_cast<size_t>(prompts) * group_bytes(); }
};

// All groups in memory of one piece that was written before.
class Batch {
 public:
  explicit Batch(BatchSize size) : size_(size), memory_(std::make_shared<comm::SharedMemory>(size.bytes())) {
    std::memset(memory_->data(), 1, size.bytes());
  }

  std::byte* group(int64_t number) const { return memory_->data() + static_cast<size_t>(number) * size_.group_bytes(); }

  Parcel parcel(int64_t number) const {
    Parcel parcel{.header = "group " + std::to_string(number), .columns = {}};
    std::byte* place = group(number);
    const auto add = [&](DType dtype) {
      parcel.columns.emplace_back(dtype, size_.group_tokens(), std::shared_ptr<void>(memory_, place));
      place += size_.group_tokens() * static_cast<size_t>(engine::entry_bytes(dtype));
    };
    add(DType::kInt64);
    for (int i = 0; i < kFloatColumns; ++i) add(DType::kFloat32);
    return parcel;
  }

 private:
  const BatchSize size_;
  const std::shared_ptr<comm::SharedMemory> memory_;
};

// VmRSS: what is resident; VmHWM: the most that was since forget_peak().
int64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":")) return std::atoll(line.c_str() + name.size() + 1) * 1024;
  throw InternalError("the system does not tell " + name);
}

void forget_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

class Rank {
 public:
  Rank(int rank, uint16_t port, BatchSize size) : world_{rank, kRanks}, size_(size) {
    c10d::TCPStoreOptions options;
    options.port = port;
    options.isServer = rank == 0;
    options.waitWorkers = false;
    store_ = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
    gloo_ = comm::connect_ranks(*store_, "gloo", world_);
    transfers_ = std::make_unique<comm::Transfers>(comm::connect_ranks(*store_, "relay", world_), kBatches);
    if (rank == kSender) batch_ = std::make_unique<Batch>(size);
  }

  Json answer(const Json& question) {
    const std::string ask = question.at("ask");
    const int64_t times = question.value("times", 1);
    if (ask == "parcels") return {{"seconds", seconds_of_parcels(parcels_of(question.at("wire")), times)}};
    if (ask == "memory of parcels") return memory_of_parcels(question.at("wire"), times);
    if (ask == "gloo") return {{"seconds", seconds_of_gloo()}};
    if (ask == "copy") return {{"seconds", seconds_of_copy()}};
    throw UserError("nobody answers '" + ask + "'");
  }

 private:
  static constexpr int kBatches = 2;

  void meet() { gloo_->barrier()->wait(); }

  std::unique_ptr<comm::DirectParcels> connected(const std::string& wire) {
    const std::string prefix = "parcels/" + std::to_string(connections_++);
    return std::make_unique<comm::DirectParcels>(world_,
                                                 comm::meet_peers(*store_, prefix, world_, {.shares_memory = wire == "memory"}),
                                                 [](const std::exception_ptr&) { std::abort(); });
  }

  comm::DirectParcels& parcels_of(const std::string& wire) {
    auto& parcels = wire == "memory" ? over_memory_ : over_stream_;
    if (!parcels) parcels = connected(wire);
    return *parcels;
  }

  double seconds_of_parcels(comm::DirectParcels& parcels, int64_t times) {
    const int64_t count = times * size_.prompts;
    meet();
    return seconds_of([&] {
      if (world_.rank == kSender) send(parcels, count);
      if (world_.rank == kReceiver) receive(parcels, count);
      ++round_;
    });
  }

  void send(comm::DirectParcels& parcels, int64_t count) {
    Countdown left(count);
    for (int64_t i = 0; i < count; ++i)
      parcels.send(kReceiver, {"bench", round_, i}, batch_->parcel(i % size_.prompts), [&left] { left.count(); });
    left.wait();
  }

  // Grants another one when one is gone.
  void receive(comm::DirectParcels& parcels, int64_t count) {
    Countdown left(count);
    std::function<void(int64_t)> grant = [&](int64_t number) {
      if (number >= count) return;
      parcels.receive(kSender, {"bench", round_, number}, credit(), [&, number](const Parcel&) {
        grant(number + kGrantedAtOnce);
        left.count();
      });
    };
    for (int64_t i = 0; i < kGrantedAtOnce; ++i) grant(i);
    left.wait();
  }

  int64_t credit() const { return static_cast<int64_t>(size_.group_bytes()) + 1024; }  // of a parcel: with its header

  Json memory_of_parcels(const std::string& wire, int64_t times) {
    const auto parcels = connected(wire);
    meet();
    const int64_t before = status_bytes("VmRSS");
    forget_peak();
    seconds_of_parcels(*parcels, times);
    const int64_t extra = status_bytes("VmHWM") - before;
    meet();
    return {{"extra_bytes", extra}, {"credit_bytes", kGrantedAtOnce * credit()}};
  }

  // Group by group; the relay gets one while it hands on the one before.
  double seconds_of_gloo() {
    const auto floats = static_cast<int64_t>(size_.group_bytes() / sizeof(float));
    if (world_.rank != kSender) staging_.resize(kBatches * static_cast<size_t>(floats));
    meet();
    return seconds_of([&] {
      for (int64_t i = 0; i < size_.prompts + 1; ++i) {
        const int batch = static_cast<int>(i % kBatches), before = static_cast<int>((i + 1) % kBatches);
        float* const place = staging_.data() + batch * floats;
        const bool is_one = i < size_.prompts;
        if (world_.rank == kSender && is_one)
          transfers_->send(batch, reinterpret_cast<const float*>(batch_->group(i)), floats, kRelay, 0);
        if (world_.rank == kRelay && is_one) transfers_->receive(batch, place, floats, kSender, 0);
        if (world_.rank == kReceiver && is_one) transfers_->receive(batch, place, floats, kRelay, 0);
        if (i > 0) transfers_->wait(before);
        if (world_.rank == kRelay && i > 0) transfers_->send(before, staging_.data() + before * floats, floats, kReceiver, 0);
        if (world_.rank == kRelay && i > 1) transfers_->wait(before);
      }
      for (int batch = 0; batch < kBatches; ++batch) transfers_->wait(batch);
    });
  }

  double seconds_of_copy() {
    if (world_.rank == kSender && !copy_) {
      copy_ = std::make_unique<comm::SharedMemory>(size_.bytes());
      std::memset(copy_->data(), 1, size_.bytes());
    }
    meet();
    return seconds_of([&] {
      for (int64_t i = 0; world_.rank == kSender && i < size_.prompts; ++i)
        std::memcpy(copy_->data() + static_cast<size_t>(i) * size_.group_bytes(), batch_->group(i), size_.group_bytes());
    });
  }

  const engine::World world_;
  const BatchSize size_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
  std::shared_ptr<c10d::Backend> gloo_;
  std::unique_ptr<comm::Transfers> transfers_;
  std::unique_ptr<Batch> batch_;              // of the sender
  std::unique_ptr<comm::SharedMemory> copy_;  // likewise
  std::vector<float> staging_;
  int connections_ = 0;
  int64_t round_ = 0;
  std::unique_ptr<comm::DirectParcels> over_memory_, over_stream_;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice::bench;
  if (argc != 6) return 2;
  return answer_questions([&] {
    const BatchSize size{std::atoll(argv[3]), std::atoll(argv[4]), std::atoll(argv[5])};
    const auto rank = std::make_shared<Rank>(std::atoi(argv[1]), static_cast<uint16_t>(std::atoi(argv[2])), size);
    return [rank](const sluice::Json& question) { return rank->answer(question); };
  });
}
