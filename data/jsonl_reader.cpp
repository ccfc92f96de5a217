#include "data/jsonl_reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/strings.h"
#include "data/jsonl_scan.h"

namespace sluice::data {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::vector<std::string> members_of_all(const std::vector<JsonlField>& fields) {
  std::vector<std::string> names;
  for (const JsonlField& field : fields) {
    for (std::string& name : members_of(field.name)) names.push_back(std::move(name));
  }
  return names;
}

std::string names_of(const std::vector<std::filesystem::path>& files) {
  std::string text = files.empty() ? "no file" : files.front().string();
  return files.size() < 2 ? text : text + " (and " + plural(static_cast<int64_t>(files.size() - 1), "more file") + ")";
}

}  // namespace

// The one pass over the files that finds the rows and what is wrong with them.
class JsonlReader::Scan {
 public:
  explicit Scan(JsonlReader& reader) : reader_(reader), problems_(reader.fields_) {}

  void run() {
    for (const RowFile& file : reader_.files_) {
      reader_.first_rows_.push_back(reader_.rows_.size());
      add_rows(file.text(), file.path().string());
    }
    problems_.finish();
  }

 private:
  void add_rows(std::string_view text, const std::string& file) {
    size_t begin = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    for (uint32_t line = 1; begin < text.size() && !problems_.full(); ++line) {
      std::string_view content = line_at(text, begin, file, line);
      const size_t end = begin + content.size();
      if (content.ends_with('\r')) content.remove_suffix(1);
      if (!trim(content).empty()) {
        reader_.rows_.push_back({begin, static_cast<uint32_t>(content.size()), line});
        problems_.check(reader_.parser_, file, line, content);
      }
      begin = end + 1;
    }
  }

  // Up to the line break. No farther than a line may be long: a file may have none.
  static std::string_view line_at(std::string_view text, size_t begin, const std::string& file, uint32_t line) {
    const std::string_view window = text.substr(begin, kLongestLine + 1);
    const size_t length = std::min(window.find('\n'), window.size());
    if (length <= kLongestLine && line < std::numeric_limits<int32_t>::max()) return window.substr(0, length);
    throw UserError(file + ":" + std::to_string(line) + ": a line of more than 64 MiB",
                    "one JSON object a line is expected; is this a JSONL file?");
  }

  JsonlReader& reader_;
  RowProblems problems_;
};

JsonlReader::JsonlReader(const std::vector<std::filesystem::path>& files, std::vector<JsonlField> fields,
                         const std::filesystem::path& scratch)
    : fields_(std::move(fields)), parser_(members_of_all(fields_)) {
  for (const std::filesystem::path& file : files) files_.emplace_back(file, scratch);
  Scan(*this).run();
  if (rows_.empty()) throw UserError(names_of(files) + " holds no rows", "one JSON object a line is expected");
  SLUICE_CHECK(rows_.size() <= std::numeric_limits<uint32_t>::max(), "rows are counted in 32 bits");
}

std::vector<Json> JsonlReader::values(size_t row) const {
  Row parsed;
  const auto fault = parser_.parse(text_of(row), parsed);
  const auto changed = [&] { return UserError(files_[file_of(row)].path().string() + " was changed while it was being read"); };
  if (fault) throw changed();
  std::vector<Json> values;
  for (const JsonlField& field : fields_) {
    const Json* value = find_field(parsed.fields, field.name);
    if (value == nullptr && field.required) throw changed();
    values.push_back(value == nullptr ? Json() : *value);
  }
  return values;
}

std::vector<std::string> JsonlReader::texts(size_t row) const {
  std::vector<std::string> texts;
  for (const Json& value : values(row)) texts.push_back(data::text_of(value));
  return texts;
}

SourceSpan JsonlReader::where(size_t row) const {
  const std::string_view content = text_of(row);
  return span_in_line(files_[file_of(row)].path().string(), rows_[row].line, content, 0, content.size());
}

void JsonlReader::keep_only(const std::vector<bool>& keep) {
  SLUICE_CHECK(keep.size() == rows_.size(), "keep_only needs one entry a row");
  std::vector<RowPlace> kept;
  std::vector<size_t> first_rows;
  for (size_t row = 0; row < rows_.size(); ++row) {
    while (first_rows.size() < first_rows_.size() && first_rows_[first_rows.size()] <= row) first_rows.push_back(kept.size());
    if (keep[row]) kept.push_back(rows_[row]);
  }
  first_rows.resize(first_rows_.size(), kept.size());
  rows_ = std::move(kept);
  first_rows_ = std::move(first_rows);
}

size_t JsonlReader::file_of(size_t row) const {
  return static_cast<size_t>(std::ranges::upper_bound(first_rows_, row) - first_rows_.begin()) - 1;
}

std::string_view JsonlReader::text_of(size_t row) const {
  return files_[file_of(row)].text().substr(rows_[row].begin, rows_[row].length);
}

std::string text_of(const Json& value) {
  if (value.is_null()) return {};
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace sluice::data
