#include "data/jsonl_reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/files/open_file.h"
#include "base/numbers/crc32c.h"
#include "base/text/strings.h"
#include "data/columnar_scan.h"
#include "data/file_window.h"
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
      if (file.columnar())
        add_columnar(file);
      else
        add_text(file);
    }
    problems_.finish();
  }

 private:
  bool enough() const { return problems_.full() || reader_.rows_.size() - reader_.first_rows_.back() >= most_rows_; }

  void add_text(const RowFile& file) {
    FileWindow text(file.text());
    const uint64_t begin = text.from(0, kByteOrderMark.size()).starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    const uint64_t first = first_not_blank(text, begin);
    if (text.from(first).starts_with('['))
      add_elements(file);
    else
      add_lines(file, begin);
  }

  // After all blanks: the end of the text, if there is nothing else.
  static uint64_t first_not_blank(FileWindow& text, uint64_t at, uint32_t* lines = nullptr) {
    for (;;) {
      const std::string_view rest = text.from(at);
      const size_t blanks = std::min(rest.find_first_not_of(kBlanks), rest.size());
      if (lines != nullptr) *lines += static_cast<uint32_t>(std::ranges::count(rest.substr(0, blanks), '\n'));
      at += blanks;
      if (rest.empty() || blanks < rest.size()) return at;
    }
  }

  void add_lines(const RowFile& file, uint64_t begin) {
    FileWindow text(file.text());
    text.from(0, static_cast<size_t>(begin));
    for (uint32_t line = 1; begin < text.size() && !enough(); ++line) {
      std::string_view content = line_at(text, begin, place_of(file, line));
      const uint64_t end = begin + content.size();
      if (content.ends_with('\r')) content.remove_suffix(1);
      if (!trim(content).empty()) add({file, content, begin, line, RowUnit::kLine});
      begin = end + 1;
    }
  }

  // Up to the line break. No farther than a row may be long: a file may have none.
  static std::string_view line_at(FileWindow& text, uint64_t begin, const std::string& place) {
    for (size_t seen = 0;;) {
      const std::string_view rest = text.from(begin, seen + 1);
      const size_t length = std::min(rest.find('\n', seen), rest.size());
      if (length > kLongestRow) refuse_length("a line", place);
      if (length < rest.size() || begin + length == text.size()) return rest.substr(0, length);
      seen = length;
    }
  }

  void add_elements(const RowFile& file) {
    using Step = ArraySplitter::Step;
    FileWindow text(file.text());
    ArraySplitter splitter;
    uint32_t line = 1, first_line = 1;
    uint64_t begin = 0, at = 0;
    std::string_view element;  // from `begin` on, as far as it was read
    Step step = Step::kBefore;
    for (; at < text.size() && step != Step::kEnd; ++at) {
      if (at - begin >= element.size()) element = text.from(begin, static_cast<size_t>(at - begin) + 1);
      const auto length = static_cast<size_t>(at - begin);
      const char c = element[length];
      step = splitter.step(c);
      line += c == '\n';
      const bool inside = step == Step::kElement;
      if (!inside && step != Step::kBefore &&
          !add_element({file, trimmed(element.substr(0, length)), begin, first_line, RowUnit::kElement}, step == Step::kEnd))
        return;
      if (!inside || (length == 0 && is_blank(c))) {
        begin = at + 1, first_line = line;
        element.remove_prefix(length + 1);
      }
      if (at + 1 - begin > kLongestRow + 1) refuse_length("an element", place_of(file, first_line));
    }
    if (step != Step::kEnd) return report_end(file, begin, first_line, "the array is cut off: it has no ]");
    text.from(begin);
    const uint64_t rest = first_not_blank(text, at, &line);
    if (rest < text.size()) report_end(file, rest, line, "something follows the array of rows");
  }

  void add_columnar(RowFile& file) {
    ColumnarScan scan(file, reader_.fields_);
    uint32_t row = 1;
    try {
      for (ColumnarScan::Row next; !enough() && scan.next(next); ++row) {
        if (next.text.size() > kLongestRow) refuse_length("a row", place_of(file, row));
        const RowPlace place{file, next.text, next.begin, row, RowUnit::kRow, &scan.columns()};
        store(place);
        if (!next.is_proved) problems_.check(reader_.parser_, place);
      }
    } catch (const UserError& error) {
      problems_.add(error);
    }
  }

  static bool is_blank(char c) { return kBlanks.find(c) != std::string_view::npos; }

  static std::string_view trimmed(std::string_view content) {  // npos + 1: all blank
    return content.substr(0, content.find_last_not_of(kBlanks) + 1);
  }

  // False if no more is to be read: enough was, or it is no JSON, and then nothing is known of what follows it.
  bool add_element(const RowPlace& place, bool last) {
    const bool is_empty_array = place.content.empty() && last && reader_.rows_.size() == reader_.first_rows_.back();
    return is_empty_array || (add(place) && !enough());
  }

  bool add(const RowPlace& place) {
    store(place);
    return problems_.check(reader_.parser_, place);
  }

  void store(const RowPlace& place) {
    constexpr uint32_t kMostLines = std::numeric_limits<int32_t>::max();  // as places count them
    if (place.line >= kMostLines) refuse_length("a text", place_of(place.file, place.line));
    reader_.rows_.push_back({place.begin, static_cast<uint32_t>(place.content.size()), place.line, crc32c(place.content)});
  }

  void report_end(const RowFile& file, uint64_t at, uint32_t line, const std::string& message) {
    problems_.report({file, {}, at, line, RowUnit::kElement}, 0, 1, message, {}, "[{...}, {...}], or one JSON object a line");
  }

  static std::string place_of(const RowFile& file, uint32_t line) { return file.path().string() + ":" + std::to_string(line); }

  [[noreturn]] static void refuse_length(const std::string& what, const std::string& place) {
    throw UserError(place + ": " + what + " of more than 64 MiB",
                    "one JSON object a line, or one array of them, is expected; is this a data file?");
  }

  static constexpr std::string_view kBlanks = " \t\r\n";

  JsonlReader& reader_;
  const size_t most_rows_;
  RowProblems problems_;
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
  SLUICE_CHECK(!fault, "a row that was proved");
  std::vector<Json> values;
  for (const JsonlField& field : fields_) {
    const Json* value = find_field(parsed.fields, field.name);
    SLUICE_CHECK(value != nullptr || !field.required, "a row that was proved to have all fields");
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
  const RowFile& file = file_of(row);
  const StoredRow& stored = rows_[row];
  const std::string content = file.row(stored.begin, stored.length);
  return span_in_row({file, content, stored.begin, stored.line}, 0, content.size());
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

const RowFile& JsonlReader::file_of(size_t row) const {
  return files_[static_cast<size_t>(std::ranges::upper_bound(first_rows_, row) - first_rows_.begin()) - 1];
}

std::string JsonlReader::text_of(size_t row) const {
  const RowFile& file = file_of(row);
  const StoredRow& stored = rows_[row];
  std::string text = file.row(stored.begin, stored.length);
  if (crc32c(text) == stored.checksum) return text;
  throw UserError(file.path().string() + " has changed while it is being read: what was line " + std::to_string(stored.line) +
                      " when it was opened is another text now",
                  kBringFileBack);
}

std::string text_of(const Json& value) {
  if (value.is_null()) return {};
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace sluice::data
