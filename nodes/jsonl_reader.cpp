#include "nodes/jsonl_reader.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/strings.h"

namespace sluice::nodes {
namespace {

constexpr size_t kMostProblems = 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_text(const Json& value) { return value.is_string() || value.is_number(); }

std::string as_text(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// Columns count code points: all bytes but those that continue one.
int column_of_byte(std::string_view content, int byte) {
  const std::string_view before = content.substr(0, static_cast<size_t>(std::max(byte, 1) - 1));
  return 1 +
         static_cast<int>(std::ranges::count_if(before, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string fields_of(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names.empty() ? "the object is empty" : "fields here: " + join(names, ", ");
}

std::string nearest_text_field(const std::string& wrong, const Json& object) {
  std::vector<std::string> candidates;
  for (const auto& [name, value] : object.items()) {
    if (is_text(value)) candidates.push_back(name);
  }
  return did_you_mean(wrong, candidates);
}

// A text in which line `line` is `content`: a problem shows its line, and a data file may be too large to copy.
std::shared_ptr<const SourceText> one_line_source(const std::string& name, int line, std::string_view content) {
  return std::make_shared<SourceText>(SourceText{name, std::string(static_cast<size_t>(line - 1), '\n') + std::string(content)});
}

}  // namespace

int64_t longest_text(const std::filesystem::path& path) {
  constexpr size_t kMostBytes = size_t{256} << 20;
  constexpr size_t kNumber = 32;  // "1e5" becomes "100000.0"
  try {
    const MappedFile file(path);
    const auto bytes = file.bytes().first(std::min(file.bytes().size(), kMostBytes));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    size_t longest = kNumber;
    for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
      end = std::min(text.find('\n', begin), text.size());
      longest = std::max(longest, end - begin);
    }
    return static_cast<int64_t>(longest);
  } catch (const UserError&) {
    return 0;  // who opens it to read it will say why
  }
}

// The one pass over the file that finds the rows and what is wrong with them.
class JsonlReader::Scan {
 public:
  explicit Scan(const JsonlReader& reader) : reader_(reader) {}

  std::vector<Row> run() {
    const std::string_view text = reader_.text();
    size_t begin = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    for (uint32_t line = 1; begin < text.size() && problems_.size() < kMostProblems; ++line) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      std::string_view content = text.substr(begin, end - begin);
      if (content.ends_with('\r')) content.remove_suffix(1);
      if (!trim(content).empty()) add({begin, checked_length(content, line), line}, content);
      begin = end + 1;
    }
    finish();
    return std::move(rows_);
  }

 private:
  uint32_t checked_length(std::string_view content, uint32_t line) const {
    if (content.size() < std::numeric_limits<uint32_t>::max()) return static_cast<uint32_t>(content.size());
    throw UserError(reader_.path_.string() + ":" + std::to_string(line) + ": a line of 4 GiB or more",
                    "one JSON object a line is expected; is this a JSONL file?");
  }

  void add(const Row& row, std::string_view content) {
    rows_.push_back(row);
    const std::optional<Json> object = parse(row, content);
    if (!object) return;
    for (size_t i = 0; i < reader_.fields_.size(); ++i) check_field(row, content, *object, i);
  }

  std::optional<Json> parse(const Row& row, std::string_view content) {
    try {
      Json value = parse_json(content, reader_.path_.string());
      if (value.is_object()) return value;
      report(row, content, 1, content.size(), "each line must be a JSON object", std::string("this is ") + value.type_name());
    } catch (const UserError& error) {
      const Problem& cause = error.problems().front();
      report(row, content, column_of_byte(content, cause.where.column), 1, "this line is not a JSON object",
             cause.where.known() ? cause.caret : cause.message);
    }
    return std::nullopt;
  }

  void check_field(const Row& row, std::string_view content, const Json& object, size_t index) {
    const JsonlField& field = reader_.fields_[index];
    const auto found = object.find(field.name);
    if (found != object.end()) {
      if (is_text(*found)) return;
      const std::string kind = found->type_name();
      report(row, content, 1, content.size(), "field " + sluice::quoted(field.name) + " must be a string or a number",
             "it is " + kind);
      return;
    }
    // When the parameter is wrong every line lacks the field: that is one problem, not twenty.
    if (lacking_[index]++ > 0) return;
    lacking_problem_[index] = problems_.size();
    report(row, content, 1, content.size(), "no field " + sluice::quoted(field.name), fields_of(object));
    const std::string nearest = nearest_text_field(field.name, object);
    problems_.back().help =
        nearest.empty() ? field.param + " names the field to read" : field.param + " = " + sluice::quoted(nearest) + "?";
  }

  void report(const Row& row, std::string_view content, int column, size_t length, std::string message, std::string caret) {
    const int line = static_cast<int>(row.line);
    problems_.push_back(
        {.where = {one_line_source(reader_.path_.string(), line, content), line, column, static_cast<int>(length)},
         .message = std::move(message),
         .caret = std::move(caret),
         .notes = {},
         .help = {}});
  }

  void finish() {
    for (const auto& [index, count] : lacking_) {
      if (count > 1)
        problems_[lacking_problem_[index]].notes.push_back("so do " + plural(count - 1, "more line") + " that were read");
    }
    if (problems_.size() >= kMostProblems)
      problems_.back().notes.push_back("reading stopped here: " + plural(kMostProblems, "broken line"));
    if (!problems_.empty()) throw UserError(std::move(problems_));
    if (rows_.empty()) throw UserError(reader_.path_.string() + " holds no rows", "one JSON object a line is expected");
  }

  const JsonlReader& reader_;
  std::vector<Row> rows_;
  Problems problems_;
  std::map<size_t, int64_t> lacking_;         // lines without the field, by index of the field
  std::map<size_t, size_t> lacking_problem_;  // where the first of them is in problems_
};

JsonlReader::JsonlReader(const std::filesystem::path& path, std::vector<JsonlField> fields)
    : path_(path), file_(path), fields_(std::move(fields)) {
  rows_ = Scan(*this).run();
}

std::vector<std::string> JsonlReader::texts(size_t row) const {
  const Json object = parse_json(text_of(rows_[row]), path_.string());
  std::vector<std::string> texts;
  for (const JsonlField& field : fields_) {
    const auto found = object.find(field.name);
    if (found == object.end() || !is_text(*found)) throw UserError(path_.string() + " was changed while it was being read");
    texts.push_back(as_text(*found));
  }
  return texts;
}

SourceSpan JsonlReader::where(size_t row) const {
  const int line = static_cast<int>(rows_[row].line);
  const std::string_view content = text_of(rows_[row]);
  return {one_line_source(path_.string(), line, content), line, 1, static_cast<int>(content.size())};
}

std::string_view JsonlReader::text() const {
  const auto bytes = file_.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace sluice::nodes
