#include "engine/ranks/group_parcel.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/numbers/bytes.h"

namespace sluice::engine {
namespace {

void write(ByteWriter& bytes, const std::vector<int64_t>& numbers) {
  bytes.number(static_cast<uint64_t>(numbers.size()));
  for (const int64_t number : numbers) bytes.number(number);
}

std::vector<int64_t> read_numbers(ByteReader& bytes) {
  std::vector<int64_t> numbers(bytes.number<uint64_t>());
  for (int64_t& number : numbers) number = bytes.whole_number();
  return numbers;
}

// There may be one for each token, which is too much for a header.
ColumnData column_of(const std::vector<int64_t>& numbers) {
  ColumnData column(DType::kInt64, numbers.size());
  std::ranges::copy(numbers, column.entries<int64_t>().begin());
  return column;
}

}  // namespace

Parcel parcel_of(const Group& group) {
  ByteWriter header;
  header.number(group.iteration);
  header.number(group.index);
  header.number(static_cast<uint64_t>(group.slot));
  write(header, group.layout.group_offsets);
  write(header, group.layout.token_offsets);
  write(header, group.layout.action_offsets);
  Parcel parcel;
  parcel.columns.push_back(column_of(group.layout.action_tokens));
  for (const Group::NamedColumn& column : group.columns) {
    header.text(column.spec.name);
    header.number(static_cast<uint8_t>(column.spec.dtype));
    header.number(static_cast<uint8_t>(column.spec.extent));
    parcel.columns.push_back(column.data);
  }
  parcel.header = header.take();
  return parcel;
}

Group group_of(const Parcel& parcel) {
  ByteReader header(parcel.header);
  Group group;
  group.iteration = header.whole_number();
  group.index = header.whole_number();
  group.slot = static_cast<int>(header.number<uint64_t>());
  group.layout.group_offsets = read_numbers(header);
  group.layout.token_offsets = read_numbers(header);
  group.layout.action_offsets = read_numbers(header);
  SLUICE_CHECK(!parcel.columns.empty() && parcel.columns[0].dtype() == DType::kInt64, "a parcel without the tokens of actions");
  const auto actions = parcel.columns[0].entries<int64_t>();
  group.layout.action_tokens.assign(actions.begin(), actions.end());
  for (size_t c = 1; c < parcel.columns.size(); ++c) {
    ColumnSpec spec{.name = std::string(header.text())};
    spec.dtype = static_cast<DType>(header.number<uint8_t>());
    spec.extent = static_cast<Extent>(header.number<uint8_t>());
    SLUICE_CHECK(spec.dtype == parcel.columns[c].dtype(), "column '" + spec.name + "' came as another kind of column");
    group.columns.push_back({std::move(spec), parcel.columns[c]});
  }
  header.expect_end();
  return group;
}

}  // namespace sluice::engine
