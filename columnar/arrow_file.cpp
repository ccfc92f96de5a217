#include "columnar/arrow_file.h"

#include <algorithm>
#include <exception>

#include "base/error.h"
#include "base/text/strings.h"
#include "data/row_parser.h"

namespace sluice::columnar {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostMemory = int64_t{1} << 30;
constexpr size_t kTextAtOnce = size_t{4} << 20;
constexpr size_t kFewValues = 400'000;  // bytes of a row that cannot hold too many for RowParser: each takes two at least

[[noreturn]] void refuse(const std::string& what, const arrow::Status& status) {
  const std::string reason(first_line(status.message()));
  throw UserError(what + ": " + reason, status.IsOutOfMemory()
                                            ? "a batch of it is too large; write it again with smaller row groups or batches"
                                            : "the file is damaged, or was not copied or written to its end; fetch it again");
}

// What Arrow gives. It reports most by a status, and Parquet some by exceptions.
template <class Ask>
auto asked(const std::string& what, const Ask& ask) {
  try {
    auto result = ask();
    if (!result.ok()) refuse(what, result.status());
    return std::move(result).ValueUnsafe();
  } catch (const UserError&) {
    throw;
  } catch (const std::bad_alloc&) {
    refuse(what, arrow::Status::OutOfMemory("no memory"));
  } catch (const std::exception& error) {
    refuse(what, arrow::Status::Invalid(error.what()));
  }
}

std::set<std::string> columns_of(const std::vector<data::ColumnarField>& fields) {
  std::set<std::string> names;
  for (const data::ColumnarField& field : fields) {
    for (std::string& name : data::members_of(field.name)) names.insert(std::move(name));
  }
  return names;
}

}  // namespace

ArrowFile::ArrowFile(fs::path path, data::ColumnarFormat format, std::vector<data::ColumnarField> fields)
    : path_(std::move(path)), fields_(std::move(fields)), pool_(arrow::system_memory_pool(), kMostMemory) {
  batches_ = asked(path_.string() + " cannot be read", [&] {
    return format == data::ColumnarFormat::kParquet ? open_parquet(path_, &pool_)
                                                    : open_arrow(path_, format == data::ColumnarFormat::kArrowStream, &pool_);
  });
  for (const auto& field : batches_->schema().fields())
    columns_.push_back({field->name(), json_type(*field->type()), field->type()->ToString()});
  choose_columns();
}

void ArrowFile::choose_columns() {
  chosen_ = columns_of(fields_);
  arrow::FieldVector chosen;
  std::set<std::string> seen;
  for (const auto& field : batches_->schema().fields()) {
    if (!chosen_.empty() && !chosen_.contains(field->name())) continue;
    if (!seen.insert(field->name()).second)
      throw UserError(path_.string() + " has the column " + sluice::quoted(field->name()) + " twice",
                      "which of them counts nobody can tell; write it again with one");
    chosen.push_back(field);
  }
  const arrow::Schema schema(std::move(chosen));
  is_within_limits_ = is_within_limits(schema);
  for (const data::ColumnarField& field : fields_) places_.push_back(place_of(field, schema));
  for (const FieldPlace& place : places_) kinds_.push_back(place.kind);
  asked(path_.string() + " cannot be read", [&] {
    const arrow::Status status = batches_->choose(chosen_);
    return status.ok() ? arrow::Result<bool>(true) : arrow::Result<bool>(status);
  });
}

bool ArrowFile::next(data::ColumnarRows& rows) {
  rows.lengths.clear();
  rows.proved.clear();
  while (batch_ == nullptr || row_ == batch_->num_rows()) {
    if (!read_batch()) return false;
  }
  for (; row_ < batch_->num_rows() && text_.size() < kTextAtOnce; ++row_) add_row(rows);
  text_.move_to(rows.text);
  return true;
}

bool ArrowFile::read_batch() {
  if (batch_ != nullptr) rows_before_ += batch_->num_rows();
  proofs_.clear();
  writers_.clear();
  batch_.reset();  // before the next one takes memory
  row_ = 0;
  batch_ = asked(path_.string() + ":" + std::to_string(rows_before_ + 1) + ": this row, or one soon after it, cannot be read",
                 [&] { return batches_->next(); });
  if (batch_ == nullptr) return false;
  for (int i = 0; i < batch_->num_columns(); ++i) {
    if (chosen_.empty() || chosen_.contains(batch_->column_name(i)))
      writers_.emplace_back(batch_->column_name(i), value_writer(batch_->column(i)));
  }
  for (size_t i = 0; i < fields_.size(); ++i) proofs_.emplace_back(fields_[i], places_[i], *batch_);
  return true;
}

void ArrowFile::add_row(data::ColumnarRows& rows) {
  text_.begin_row();
  char before = '{';
  for (const auto& [name, writer] : writers_) {
    text_.append(std::exchange(before, ','));
    text_.append_string(name);
    text_.append(':');
    writer->write(row_, text_);
  }
  text_.append(before == '{' ? "{}" : "}");
  const bool is_valid = is_within_limits_ && text_.is_valid();
  const size_t bytes = text_.end_row();
  rows.lengths.push_back(static_cast<uint32_t>(bytes));
  rows.proved.push_back(is_valid && bytes < kFewValues &&
                        std::ranges::all_of(proofs_, [this](const FieldProof& proof) { return proof.holds(row_); }));
}

}  // namespace sluice::columnar

extern "C" const sluice::data::ColumnarLibrary* sluice_columnar_library() {
  static const sluice::data::ColumnarLibrary library{
      .version = sluice::data::kColumnarVersion,
      .open = [](const std::filesystem::path& path, sluice::data::ColumnarFormat format,
                 const std::vector<sluice::data::ColumnarField>& fields) -> std::unique_ptr<sluice::data::ColumnarFile> {
        return std::make_unique<sluice::columnar::ArrowFile>(path, format, fields);
      }};
  return &library;
}
