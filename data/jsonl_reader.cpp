#include "data/jsonl_reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/strings.h"
#include "data/columnar_scan.h"
#include "data/jsonl_scan.h"
#include "data/messages.h"
#include "data/row_meter.h"

namespace sluice::data {
namespace {

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
  Scan(JsonlReader& reader, size_t most_rows) : reader_(reader), most_rows_(most_rows), problems_(reader.fields_) {}

  void run() {
    for (RowFile& file : reader_.files_) {
      reader_.first_rows_.push_back(reader_.rows_.size());
      file_ = file.path().string();
      text_ = file.text();
      if (file.columnar())
        add_columnar(file);
      else if (is_array_of_rows(text_))
        add_elements();
      else
        add_lines();
    }
    problems_.finish();
  }

 private:
  bool enough() const { return problems_.full() || reader_.rows_.size() - reader_.first_rows_.back() >= most_rows_; }

  void add_lines() {
    size_t begin = text_.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    for (uint32_t line = 1; begin < text_.size() && !enough(); ++line) {
      std::string_view content = line_at(begin, line);
      const size_t end = begin + content.size();
      if (content.ends_with('\r')) content.remove_suffix(1);
      if (!trim(content).empty()) add({file_, text_, begin, content.size(), line, RowUnit::kLine});
      begin = end + 1;
    }
  }

  // Up to the line break. No farther than a row may be long: a file may have none.
  std::string_view line_at(size_t begin, uint32_t line) const {
    const std::string_view window = text_.substr(begin, kLongestRow + 1);
    const size_t length = std::min(window.find('\n'), window.size());
    if (length > kLongestRow) refuse_length("a line", line);
    return window.substr(0, length);
  }

  void add_elements() {
    using Step = ArraySplitter::Step;
    ArraySplitter splitter;
    uint32_t line = 1, first_line = 1;
    size_t begin = 0, at = 0;
    Step step = Step::kBefore;
    for (; at < text_.size() && step != Step::kEnd; ++at) {
      step = splitter.step(text_[at]);
      line += text_[at] == '\n';
      const bool inside = step == Step::kElement;
      if (!inside && step != Step::kBefore && !add_element(begin, at, first_line, /*last=*/step == Step::kEnd)) return;
      if (!inside || is_blank(begin, at)) begin = at + 1, first_line = line;
      if (at - begin + 1 > kLongestRow + 1) refuse_length("an element", first_line);
    }
    if (step != Step::kEnd) return report_end(begin, first_line, "the array is cut off: it has no ]");
    const size_t rest = text_.find_first_not_of(" \t\r\n", at);
    if (rest == std::string_view::npos) return;
    line += static_cast<uint32_t>(std::ranges::count(text_.substr(at, rest - at), '\n'));
    report_end(rest, line, "something follows the array of rows");
  }

  void add_columnar(RowFile& file) {
    ColumnarScan scan(file, reader_.fields_);
    uint32_t row = 1;
    try {
      for (ColumnarScan::Row next; !enough() && scan.next(next); ++row) {
        if (next.text.size() > kLongestRow) refuse_length("a row", row);
        if (row >= kMostLines) refuse_length("a file", row);
        reader_.rows_.push_back({next.begin, static_cast<uint32_t>(next.text.size()), row});
        if (!next.is_proved)
          problems_.check(reader_.parser_, {file_, next.text, 0, next.text.size(), row, RowUnit::kRow, &scan.columns()});
      }
    } catch (const UserError& error) {
      problems_.add(error);
    }
  }

  // Nothing but blanks before `at`, and there too.
  bool is_blank(size_t begin, size_t at) const {
    return begin == at && std::string_view(" \t\r\n").find(text_[at]) != std::string_view::npos;
  }

  // False if no more is to be read: enough was, or it is no JSON, and then nothing is known of what follows it.
  bool add_element(size_t begin, size_t end, uint32_t line, bool last) {
    const size_t length = trim_end(text_.substr(begin, end - begin));
    const bool is_empty_array = length == 0 && last && reader_.rows_.size() == reader_.first_rows_.back();
    return is_empty_array || (add({file_, text_, begin, length, line, RowUnit::kElement}) && !enough());
  }

  static size_t trim_end(std::string_view content) { return content.find_last_not_of(" \t\r\n") + 1; }  // npos + 1: all blank

  bool add(const RowPlace& place) {
    if (place.line >= kMostLines) refuse_length("a text", place.line);
    reader_.rows_.push_back({place.begin, static_cast<uint32_t>(place.length), place.line});
    return problems_.check(reader_.parser_, place);
  }

  void report_end(size_t at, uint32_t line, const std::string& message) {
    const size_t length = std::min<size_t>(1, text_.size() - at);
    problems_.report({file_, text_, at, length, line, RowUnit::kElement}, 0, 1, message, {},
                     "[{...}, {...}], or one JSON object a line");
  }

  static constexpr uint32_t kMostLines = std::numeric_limits<int32_t>::max();  // as places count them

  [[noreturn]] void refuse_length(const std::string& what, uint32_t line) const {
    throw UserError(file_ + ":" + std::to_string(line) + ": " + what + " of more than 64 MiB",
                    "one JSON object a line, or one array of them, is expected; is this a data file?");
  }

  JsonlReader& reader_;
  const size_t most_rows_;
  RowProblems problems_;
  std::string file_;  // of the file that is read, as the next
  std::string_view text_;
};

JsonlReader::JsonlReader(const std::vector<std::filesystem::path>& files, std::vector<JsonlField> fields,
                         const std::filesystem::path& scratch, size_t most_rows)
    : fields_(std::move(fields)), parser_(members_of_all(fields_)) {
  for (const std::filesystem::path& file : files) files_.emplace_back(file, scratch, most_rows);
  Scan(*this, most_rows).run();
  if (rows_.empty())
    throw UserError(names_of(files) + " holds no rows", "one JSON object a line, or one array of them, is expected");
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
    const bool is_conversation = value != nullptr && value->is_array() && field.kind != FieldKind::kText;
    values.push_back(value == nullptr ? Json() : is_conversation ? with_roles(*value) : *value);
  }
  return values;
}

std::vector<std::string> JsonlReader::texts(size_t row) const {
  std::vector<std::string> texts;
  for (const Json& value : values(row)) texts.push_back(data::text_of(value));
  return texts;
}

SourceSpan JsonlReader::where(size_t row) const {
  const RowFile& file = files_[file_of(row)];
  const std::string name = file.path().string();
  const StoredRow& stored = rows_[row];
  if (!file.columnar()) return span_in_row({name, file.text(), stored.begin, stored.length, stored.line}, 0, stored.length);
  const std::string text = file.row(stored.begin, stored.length);
  return span_in_row({name, text, 0, text.size(), stored.line, RowUnit::kRow}, 0, text.size());
}

void JsonlReader::keep_only(const std::vector<bool>& keep) {
  SLUICE_CHECK(keep.size() == rows_.size(), "keep_only needs one entry a row");
  std::vector<StoredRow> kept;
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

std::string JsonlReader::text_of(size_t row) const { return files_[file_of(row)].row(rows_[row].begin, rows_[row].length); }

std::string text_of(const Json& value) {
  if (value.is_null()) return {};
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace sluice::data
