#include "data/columnar_scan.h"

#include <algorithm>

#include "data/columnar.h"

namespace sluice::data {
namespace {

std::vector<ColumnarField> columnar_fields(const std::vector<JsonlField>& fields) {
  std::vector<ColumnarField> asked;
  for (const JsonlField& field : fields) asked.push_back({field.name, !field.required || field.nullable, !field.required});
  return asked;
}

// Whether what is proved of a column of that kind is all that a field of this kind needs.
bool fits(FieldKind field, ColumnKind column) {
  switch (column) {
    case ColumnKind::kMissing:
      return true;  // rows are proved only if it may be missing
    case ColumnKind::kText:
      return field == FieldKind::kText || field == FieldKind::kTextOrMessages;
    case ColumnKind::kMessages:
      return field == FieldKind::kMessages || field == FieldKind::kTextOrMessages;
    case ColumnKind::kOther:
      break;
  }
  return false;
}

}  // namespace

ColumnarScan::ColumnarScan(RowFile& file, const std::vector<JsonlField>& fields)
    : file_(file), rows_(open_columnar(file.path(), *file.columnar(), columnar_fields(fields))) {
  for (size_t i = 0; i < fields.size(); ++i) kinds_fit_ = kinds_fit_ && fits(fields[i].kind, rows_->kinds()[i]);
}

bool ColumnarScan::next(Row& row) {
  if (row_ == read_.lengths.size()) {
    if (!rows_->next(read_)) return false;
    begin_ = file_.append(read_.text);
    row_ = at_ = 0;
  }
  const size_t length = read_.lengths[row_];
  row = {std::string_view(read_.text).substr(at_, length), begin_ + at_, kinds_fit_ && read_.proved[row_]};
  at_ += length + 1;
  ++row_;
  return true;
}

int64_t longest_columnar_row(const std::filesystem::path& path, ColumnarFormat format, size_t most_bytes) {
  const auto file = open_columnar(path, format, {});
  ColumnarRows rows;
  size_t longest = 0;
  for (size_t seen = 0; seen < most_bytes && file->next(rows); seen += rows.text.size()) {
    for (const uint32_t length : rows.lengths) longest = std::max<size_t>(longest, length);
  }
  return static_cast<int64_t>(longest);
}

}  // namespace sluice::data
