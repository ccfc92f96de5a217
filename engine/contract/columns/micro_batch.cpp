#include "engine/contract/columns/micro_batch.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/contract/columns/contract_breach.h"

namespace sluice::engine {
namespace {

int slot_of(std::string_view name, DType dtype, Extent extent, const ColumnSpecs& slots, const std::vector<int>& allowed) {
  for (size_t i = 0; i < allowed.size(); ++i) {
    const ColumnSpec& spec = slots[static_cast<size_t>(allowed[i])];
    if (spec.name == name && spec.dtype == dtype && spec.extent == extent) return static_cast<int>(i);
  }
  return -1;
}

int slot_of(const ColumnSpec& spec, const ColumnSpecs& slots, const std::vector<int>& allowed) {
  return slot_of(spec.name, spec.dtype, spec.extent, slots, allowed);
}

std::string form_of(const ColumnSpec& spec) { return std::string(name_of(spec.dtype)) + " of each " + name_of(spec.extent); }

// Under that name its contract has another type or extent, or nothing. `does`: "reads".
[[noreturn]] void refuse(const std::string& does, const ColumnSpec& spec, const ColumnSpecs& slots,
                         const std::vector<int>& allowed) {
  for (const int slot : allowed) {
    const ColumnSpec& declared = slots[static_cast<size_t>(slot)];
    if (declared.name != spec.name) continue;
    throw_contract_breach("it " + does + " column '" + spec.name + "' as " + form_of(spec) + ", and its contract says " +
                          form_of(declared));
  }
  throw_contract_breach("it " + does + " column '" + spec.name + "', which its contract does not say");
}

}  // namespace

void ByteMeter::add(int64_t bytes) {
  const int64_t live = live_.fetch_add(bytes) + bytes;
  int64_t peak = peak_.load();
  while (live > peak && !peak_.compare_exchange_weak(peak, live)) {
  }
}

ColumnData& Group::add(NamedColumn column) {
  if (std::ranges::any_of(columns, [&](const NamedColumn& c) { return c.spec.name == column.spec.name; })) {
    throw_contract_breach("column '" + column.spec.name + "' is written twice");
  }
  return columns.emplace_back(std::move(column)).data;
}

const ColumnData& Group::find(const ColumnSpec& spec) const {
  const auto found = std::ranges::find(columns, spec, &NamedColumn::spec);
  if (found == columns.end()) throw_contract_breach("the group has no column '" + spec.name + "'");
  return found->data;
}

BatchState::BatchState(int64_t iteration_, int64_t id_, Layout layout_, std::vector<int64_t> group_indices_,
                       std::vector<Credit> credits, const Readers& readers, ByteMeter& meter_)
    : iteration(iteration_),
      id(id_),
      layout(std::move(layout_)),
      group_indices(std::move(group_indices_)),
      drawn_groups(static_cast<int64_t>(group_indices.size())),
      slots(readers.columns.size()),
      meter(meter_),
      readers_(readers),
      token_readers_left_(readers.tokens),
      credits_(std::move(credits)) {
  if (readers.tokens == 0) credits_.clear();
}

BatchState::~BatchState() {
  for (Slot& slot : slots) meter.remove(slot.bytes);
}

void BatchState::store(size_t index, ColumnData data) {
  const int readers = readers_.columns[index];
  if (readers == 0) return;  // nobody wants it
  Slot& slot = slots[index];
  SLUICE_CHECK(slot.data.empty(), "a column is stored twice");
  slot.bytes = data.bytes();
  slot.data = std::move(data);
  slot.readers_left = readers;
  meter.add(slot.bytes);
}

void BatchState::release_one_reader(size_t index) {
  Slot& slot = slots[index];
  if (slot.readers_left.fetch_sub(1) != 1) return;
  slot.data = ColumnData();
  meter.remove(std::exchange(slot.bytes, 0));
}

void BatchState::release_one_token_reader() {
  if (token_readers_left_.fetch_sub(1) == 1) credits_.clear();
}

std::shared_ptr<BatchState> BatchState::thinned(std::span<const uint8_t> keep, const ColumnSpecs& specs,
                                                const std::vector<int>& slots_to_copy, const Readers& readers_behind) const {
  std::vector<int64_t> indices;
  std::vector<Credit> credits;
  for (size_t g = 0; g < layout.groups(); ++g) {
    if (keep[g] == 0) continue;
    indices.push_back(group_indices[g]);
    credits.push_back(credits_[g]);
  }
  const bool all = indices.size() == layout.groups();
  auto thin = std::make_shared<BatchState>(iteration, id, all ? layout : layout.selected(keep), std::move(indices),
                                           std::move(credits), readers_behind, meter);
  thin->drawn_groups = drawn_groups;
  thin->slot = slot;
  thin->is_last = is_last;
  for (const int index : slots_to_copy) {
    const auto column = static_cast<size_t>(index);
    const ColumnData& data = slots[column].data;
    thin->store(column, all ? data : data.selected(layout.entries_of(keep, specs[column].extent)));
  }
  return thin;
}

bool MicroBatch::has(const ColumnSpec& spec) const { return slot_of(spec, *specs_, *reads_) >= 0; }

const ColumnSpec& MicroBatch::column(std::string_view name) const {
  for (const int slot : *reads_) {
    const ColumnSpec& spec = (*specs_)[static_cast<size_t>(slot)];
    if (spec.name == name) return spec;
  }
  throw_contract_breach("it reads column '" + std::string(name) + "', which its contract does not say");
}

const ColumnData& MicroBatch::read(const ColumnSpec& spec) const { return read(spec.name, spec.dtype, spec.extent); }

const ColumnData& MicroBatch::read(std::string_view name, DType dtype, Extent extent) const {
  const int place = slot_of(name, dtype, extent, *specs_, *reads_);
  if (place < 0) refuse("reads", {.name = std::string(name), .dtype = dtype, .extent = extent}, *specs_, *reads_);
  return state_->slots[static_cast<size_t>((*reads_)[static_cast<size_t>(place)])].data;
}

const ColumnData& MicroBatch::write(const ColumnSpec& spec) {
  const int place = slot_of(spec, *specs_, *writes_);
  if (place < 0) refuse("writes", spec, *specs_, *writes_);
  ColumnData& data = written_[static_cast<size_t>(place)];
  if (!data.empty()) throw_contract_breach("column '" + spec.name + "' is written twice");
  return data = ColumnData(spec.dtype, layout().count(spec.extent));
}

const ColumnData& MicroBatch::written(const ColumnSpec& spec) const {
  const int place = slot_of(spec, *specs_, *writes_);
  if (place < 0 || written_[static_cast<size_t>(place)].empty())
    throw_contract_breach("column '" + spec.name + "' was not written yet");
  return written_[static_cast<size_t>(place)];
}

void MicroBatch::drop_group(size_t group) {
  if (group >= groups()) throw_contract_breach("it drops group " + std::to_string(group) + " of " + std::to_string(groups()));
  dropped_.resize(groups());
  dropped_[group] = 1;
}

}  // namespace sluice::engine
