#include "engine/ranks/contribution_bytes.h"

#include <cstdint>
#include <string>

namespace sluice::engine {
namespace {

constexpr auto kLastKind = static_cast<uint8_t>(Metric::kValue);

// Where nothing is recorded there is nothing after the name.
void write_part(ByteWriter& bytes, const Part& part) {
  bytes.text(part.name);
  bytes.number(static_cast<uint8_t>(part.kind));
  bytes.number(static_cast<uint8_t>(part.recorded));
  if (!part.recorded) return;
  bytes.number(part.top);
  part.numbers.write(bytes);
  bytes.number(static_cast<uint32_t>(part.counts.size()));
  for (const int64_t count : part.counts) bytes.number(count);
}

Part read_part(ByteReader& bytes) {
  Part part;
  part.name = std::string(bytes.text());
  const auto kind = bytes.number<uint8_t>(), recorded = bytes.number<uint8_t>();
  SLUICE_CHECK(kind <= kLastKind && recorded <= 1, "bytes that are no contribution");
  part.kind = static_cast<Metric>(kind);
  part.recorded = recorded == 1;
  if (!part.recorded) return part;
  part.top = bytes.real_number();
  part.numbers = ExactMoments::read(bytes);
  for (auto left = bytes.number<uint32_t>(); left > 0; --left) part.counts.push_back(bytes.whole_number());
  return part;
}

}  // namespace

void write_contribution(ByteWriter& bytes, const Contribution& contribution) {
  bytes.number(static_cast<uint32_t>(contribution.size()));
  for (const Part& part : contribution) write_part(bytes, part);
}

Contribution read_contribution(ByteReader& bytes) {
  Contribution contribution;
  for (auto left = bytes.number<uint32_t>(); left > 0; --left) contribution.push_back(read_part(bytes));
  return contribution;
}

}  // namespace sluice::engine
