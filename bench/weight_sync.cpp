// weight_sync RANK RANKS STORE PORT ADDRESS OWNERS TENSORS TENSOR_BYTES: one of the ranks between which weights go;
// bench/weight_sync.py asks all at once. The first OWNERS ranks own the weights, the others receive them. STORE and ADDRESS: of
// rank 0, and of this rank.
//
//   {"ask": "publish", "wire": "memory"}   one version, from all owners to all receivers (comm/weights): written from the weights
//   {"ask": "from rank 0", "wire": ...}    the same bytes, each receiver gets all of them from rank 0 (comm/parcels)
//   {"ask": "broadcast"}                   tensor by tensor from rank 0, by Gloo
//   {"ask": "pull"}                        rank 0 writes all of it to memory that receivers have mapped, and each copies it from there
//
// "wire": "memory" or "stream". Each answers {"seconds"}: from when all have begun until this rank is done.

#include <ATen/ops/ones.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "base/error.h"
#include "base/numbers/crc32c.h"
#include "base/numbers/float_range.h"
#include "bench/countdown.h"
#include "bench/questions.h"
#include "comm/parcels/direct_parcels.h"
#include "comm/parcels/shared_memory.h"
#include "comm/process_group.h"
#include "comm/weights/direct_publication.h"

namespace sluice::bench {
namespace {

struct Options {
  engine::World world;
  std::string store;
  uint16_t port = 0;
  std::string address;
  int owners = 1;
  int64_t tensors = 1, tensor_bytes = 4;

  size_t bytes() const { return static_cast<size_t>(tensors * tensor_bytes); }
  bool receives() const { return world.rank >= owners; }
};

// As gradients are shared out: of each bucket every owner has a part.
engine::PublicationLayout layout_of(const Options& options) {
  engine::PublicationLayout layout{.model = "actor", .buckets = {}, .receivers = {}, .hosts = {}};
  for (const FloatRange& bucket : buckets_of(static_cast<int64_t>(options.bytes() / sizeof(float)))) {
    auto& ranges = layout.buckets.emplace_back();
    for (int owner = 0; owner < options.owners; ++owner) {
      const FloatRange own = owned_floats(bucket.size(), owner, options.owners);
      const auto byte = [&](int64_t place) { return static_cast<size_t>(bucket.begin + place) * sizeof(float); };
      if (own.size() > 0) ranges.push_back({owner, {byte(own.begin), byte(own.end)}});
    }
  }
  for (int rank = options.owners; rank < options.world.size; ++rank) layout.receivers.push_back(rank);
  return layout;
}

std::shared_ptr<std::byte> filled_memory(size_t bytes) {
  const std::shared_ptr<std::byte> memory(new std::byte[bytes], std::default_delete<std::byte[]>());
  std::memset(memory.get(), 1, bytes);
  return memory;
}

// What one wire has: connections, the publication over them, and a receiver's ring of two versions.
class Wire {
 public:
  Wire(const Options& options, c10d::Store& store, const std::string& wire)
      : options_(options),
        parcels_(options.world,
                 comm::meet_peers(store, wire, options.world, {.host = options.address, .shares_memory = wire == "memory"}),
                 [](const std::exception_ptr&) { std::abort(); }) {
    publication_ = std::make_unique<comm::DirectPublication>(
        parcels_, layout_of(options),
        engine::Publication::Events{.landed = [this](int64_t version, uint32_t) { publication_->acknowledge(version); },
                                    .opened = [this](const engine::PublishedVersion&) { opened_->count(); }});
    for (int i = 0; options.receives() && i < 2; ++i) ring_.push_back(publication_->new_landing());
    if (options.receives()) landing_ = parcels_.new_landing(options.bytes());
    if (options.receives()) return;
    source_ = publication_->new_source(options.bytes());
    weights_ = filled_memory(options.bytes());
    std::memset(source_.get(), 1, options.bytes());
  }

  void expect_version() {
    opened_ = std::make_unique<Countdown>(1);
    if (options_.receives()) publication_->receive(version_, ring_[static_cast<size_t>(version_) % ring_.size()]);
  }
  void publish() {
    for (const auto& bucket : layout_of(options_).buckets)
      for (const engine::OwnedBytes& owned : bucket)
        if (owned.owner == options_.world.rank)
          publication_->offer(version_, owned.range, {source_, source_.get() + owned.range.begin}, written(owned.range));
    opened_->wait();
    ++version_;
  }

  void expect_from_rank_0() {
    const auto ranges = buckets_of(static_cast<int64_t>(options_.bytes()), kPiece);
    const size_t parcels =
        options_.world.rank == 0 ? ranges.size() * static_cast<size_t>(options_.world.size - options_.owners) : ranges.size();
    opened_ = std::make_unique<Countdown>(parcels);
    for (size_t i = 0; options_.receives() && i < ranges.size(); ++i)
      parcels_.receive_bytes(0, key(i), {landing_, static_cast<size_t>(ranges[i].begin), static_cast<size_t>(ranges[i].size())},
                             [this](const comm::ByteParcel&) { opened_->count(); });
  }
  void from_rank_0() {
    const auto ranges = buckets_of(static_cast<int64_t>(options_.bytes()), kPiece);
    for (size_t i = 0; options_.world.rank == 0 && i < ranges.size(); ++i)
      for (int rank = options_.owners; rank < options_.world.size; ++rank)
        parcels_.send_bytes(rank, key(i), {{source_, source_.get() + ranges[i].begin}, static_cast<size_t>(ranges[i].size()), {}},
                            [this] { opened_->count(); });
    if (options_.world.rank == 0 || options_.receives()) opened_->wait();
    ++round_;
  }

 private:
  static constexpr int64_t kPiece = 4 << 20;  // bytes, as of a publication
  static constexpr size_t kInCache = 64 << 10;

  // As a run does it whose weights are sampled with as they are.
  std::vector<uint32_t> written(engine::Range range) {
    std::vector<uint32_t> checksums;
    for (const engine::Range& stretch : publication_->stretches(range)) {
      uint32_t checksum = 0;
      for (size_t begin = stretch.begin; begin < stretch.end; begin += kInCache) {
        const size_t size = std::min(kInCache, stretch.end - begin);
        std::memcpy(source_.get() + begin, weights_.get() + begin, size);
        checksum = crc32c({reinterpret_cast<const char*>(source_.get() + begin), size}, checksum);
      }
      checksums.push_back(checksum);
    }
    return checksums;
  }

  engine::ParcelKey key(size_t piece) const { return {"from rank 0", round_, static_cast<int64_t>(piece)}; }

  const Options options_;
  std::unique_ptr<Countdown> opened_;
  comm::DirectParcels parcels_;
  std::vector<std::shared_ptr<engine::Landing>> ring_;
  std::shared_ptr<comm::Block> landing_;
  std::shared_ptr<std::byte> source_, weights_;
  int64_t version_ = 0, round_ = 0;
  std::unique_ptr<comm::DirectPublication> publication_;
};

class Rank {
 public:
  explicit Rank(const Options& options) : options_(options), weights_(filled_memory(options.bytes())) {
    c10d::TCPStoreOptions store;
    store.port = options.port;
    store.isServer = options.world.rank == 0;
    store.waitWorkers = false;
    store_ = c10::make_intrusive<c10d::TCPStore>(options.store, store);
    gloo_ = comm::connect_ranks(*store_, "gloo", options.world, {.host = options.address});
  }

  Json answer(const Json& question) {
    const std::string ask = question.at("ask");
    if (ask == "broadcast") return broadcast();
    if (ask == "pull") return pull();
    auto& wire = wires_[question.at("wire")];
    if (!wire) wire = std::make_unique<Wire>(options_, *store_, question.at("wire"));
    if (ask == "publish") {
      wire->expect_version();
      return timed([&] { wire->publish(); });
    }
    if (ask == "from rank 0") {
      wire->expect_from_rank_0();
      return timed([&] { wire->from_rank_0(); });
    }
    throw UserError("nobody answers '" + ask + "'");
  }

 private:
  template <class Work>
  Json timed(const Work& work) {
    gloo_->barrier()->wait();
    return {{"seconds", seconds_of(work)}};
  }

  Json broadcast() {
    for (int64_t i = std::ssize(tensors_); i < options_.tensors; ++i)
      tensors_.push_back(at::ones({options_.tensor_bytes / static_cast<int64_t>(sizeof(float))}));
    return timed([&] {
      for (at::Tensor& tensor : tensors_) {
        std::vector<at::Tensor> one{tensor};
        gloo_->broadcast(one)->wait();
      }
    });
  }

  // Memory without a name, which others of this user reach through the process that has it.
  Json pull() {
    if (!pulled_ && options_.world.rank == 0) {
      pulled_ = std::make_unique<comm::SharedMemory>(options_.bytes());
      std::memset(pulled_->data(), 1, options_.bytes());
      const std::string place = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(pulled_->descriptor());
      store_->set("pulled", std::vector<uint8_t>(place.begin(), place.end()));
    }
    if (!pulled_) {
      const std::vector<uint8_t> place = store_->get("pulled");
      const comm::Descriptor memory(::open(std::string(place.begin(), place.end()).c_str(), O_RDWR | O_CLOEXEC));
      pulled_ = std::make_unique<comm::SharedMemory>(memory, options_.bytes());
    }
    return timed([&] {
      if (options_.world.rank == 0) std::memcpy(pulled_->data(), weights_.get(), options_.bytes());
      gloo_->barrier()->wait();
      if (options_.receives()) std::memcpy(weights_.get(), pulled_->data(), options_.bytes());
    });
  }

  const Options options_;
  const std::shared_ptr<std::byte> weights_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
  std::shared_ptr<c10d::Backend> gloo_;
  std::map<std::string, std::unique_ptr<Wire>> wires_;
  std::vector<at::Tensor> tensors_;
  std::unique_ptr<comm::SharedMemory> pulled_;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice::bench;
  if (argc != 9) return 2;
  return answer_questions([&] {
    const auto number = [&](int place) { return std::atoll(argv[place]); };
    const Options options{.world = {static_cast<int>(number(1)), static_cast<int>(number(2))},
                          .store = argv[3],
                          .port = static_cast<uint16_t>(number(4)),
                          .address = argv[5],
                          .owners = static_cast<int>(number(6)),
                          .tensors = number(7),
                          .tensor_bytes = number(8)};
    const auto rank = std::make_shared<Rank>(options);
    return [rank](const sluice::Json& question) { return rank->answer(question); };
  });
}
