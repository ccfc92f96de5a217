#include "nodes/models/weights/remote_publisher.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/numbers/crc32c.h"
#include "nodes/models/language_model.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::remote_publisher_test {
namespace {

/// A publication that keeps what is offered. Its stretches are as long as no tensor is.
class KeptPublication final : public engine::Publication {
 public:
  struct Kept {
    std::vector<std::byte> bytes;
    std::vector<std::pair<uint32_t, uint32_t>> checksums;  // those that came, and those of the bytes
    std::vector<engine::Range> ranges;
  };

  KeptPublication(Kept& kept, size_t bytes) : kept_(kept) { kept_.bytes.resize(bytes); }

  std::shared_ptr<std::byte> new_source(size_t bytes) override {
    const auto memory = std::make_shared<std::vector<std::byte>>(bytes, std::byte{0xff});
    return {memory, memory->data()};
  }
  std::vector<engine::Range> stretches(engine::Range range) const override {
    constexpr size_t kBytes = 1088;
    std::vector<engine::Range> all;
    for (size_t begin = range.begin; begin < range.end; begin += kBytes)
      all.push_back({begin, std::min(begin + kBytes, range.end)});
    return all;
  }
  void offer(int64_t, engine::Range range, std::shared_ptr<const std::byte> bytes, std::vector<uint32_t> checksums) override {
    std::copy_n(bytes.get(), range.size(), kept_.bytes.begin() + static_cast<int64_t>(range.begin));
    kept_.ranges.push_back(range);
    const std::vector<engine::Range> all = stretches(range);
    ASSERT_EQ(checksums.size(), all.size());
    for (size_t i = 0; i < all.size(); ++i)
      kept_.checksums.emplace_back(checksums[i],
                                   crc32c({reinterpret_cast<const char*>(kept_.bytes.data()) + all[i].begin, all[i].size()}));
  }
  std::shared_ptr<engine::Landing> new_landing() override { throw InternalError("nobody receives here"); }
  void receive(int64_t, std::shared_ptr<engine::Landing>) override { throw InternalError("nobody receives here"); }
  void acknowledge(int64_t) override { throw InternalError("nobody receives here"); }

 private:
  Kept& kept_;
};

class KeptPublications final : public engine::Publications {
 public:
  std::unique_ptr<engine::Publication> publication(engine::PublicationLayout layout, engine::Publication::Events) override {
    return std::make_unique<KeptPublication>(kept, layout.bytes());
  }

  KeptPublication::Kept kept;
};

class RemotePublishers : public ::testing::TestWithParam<models::Precision> {};

// Each of two owners writes its part. What lies between tensors is zero.
TEST_P(RemotePublishers, WriteWhatIsSampledWithAndItsChecksums) {
  const testing::TinyFolder folder;
  const auto model = testing::tiny_model(folder.path(), {});
  const models::Transformer& transformer = model->forward().transformer();
  const WireLayout layout(transformer.config(), models::Head::kLanguageModel, GetParam(), transformer.weights().named());
  std::vector<std::byte> all(layout.bytes());
  size_t written = 0;
  for (int owner = 0; owner < 2; ++owner) {
    KeptPublications publications;
    RemotePublisher publisher("actor", layout, transformer.weights().named(), {.own = owner, .owners = 2, .receivers = {2}},
                              publications);
    publisher.publish(1);
    const KeptPublication::Kept& kept = publications.kept;
    for (const auto& [came, expected] : kept.checksums) EXPECT_EQ(came, expected);
    for (const engine::Range& range : kept.ranges) {
      std::copy_n(kept.bytes.begin() + static_cast<int64_t>(range.begin), range.size(),
                  all.begin() + static_cast<int64_t>(range.begin));
      written += range.size();
    }
  }
  EXPECT_EQ(written, layout.bytes());
  size_t last = 0;
  for (size_t i = 0; i < layout.tensors.size(); ++i) {
    const WireTensor& tensor = layout.tensors[i];
    for (size_t gap = last; gap < tensor.range.begin; ++gap) EXPECT_EQ(all[gap], std::byte{0});
    last = tensor.range.end;
    EXPECT_TRUE(at::equal(layout.views(all.data())[i].second, transformer.weights().named()[i].second.to(tensor.dtype)))
        << tensor.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, RemotePublishers,
                         ::testing::Values(models::Precision::kFloat32, models::Precision::kBfloat16),
                         [](const auto& info) { return info.param == models::Precision::kFloat32 ? "Float32" : "Bfloat16"; });

}  // namespace
}  // namespace sluice::nodes::remote_publisher_test
