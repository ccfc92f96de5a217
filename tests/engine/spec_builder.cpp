#include "tests/engine/spec_builder.h"

#include <cctype>
#include <stdexcept>

#include "base/text/strings.h"

namespace sluice::engine::testing {
namespace {

class Reader {
 public:
  Reader(const std::string& text, const std::string& file) : source_(std::make_shared<SourceText>(SourceText{file, text})) {
    spec_.where = {source_, 0, 0, 0};
  }

  PipelineSpec read() {
    for (const std::string& line : split(source_->text, '\n')) {
      line_ = line;
      at_ = 0;
      ++number_;
      skip_blank();
      if (at_ == line_.size() || peek() == '#') continue;
      if (peek() == '[')
        open_table();
      else
        read_entry(*entries_);
    }
    take_out_node_keys();
    return std::move(spec_);
  }

 private:
  char peek() const { return at_ < line_.size() ? line_[at_] : '\0'; }
  void skip_blank() {
    while (peek() == ' ') ++at_;
  }
  SourceSpan span_from(size_t begin) const {
    return {source_, number_, static_cast<int>(begin) + 1, static_cast<int>(at_ - begin)};
  }
  [[noreturn]] void fail() const { throw std::logic_error("spec_of cannot read line " + std::to_string(number_) + ": " + line_); }
  void expect(char c) {
    skip_blank();
    if (peek() != c) fail();
    ++at_;
    skip_blank();
  }

  std::string word() {
    const size_t begin = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_' || peek() == '-' || peek() == '.' || peek() == '+')
      ++at_;
    if (begin == at_) fail();
    return line_.substr(begin, at_ - begin);
  }

  void open_table() {
    const size_t begin = at_;
    expect('[');
    const std::string path = word();
    expect(']');
    at_ = line_.find(']') + 1;
    const SourceSpan header = span_from(begin);
    const size_t dot = path.starts_with("cluster.roles.") ? path.rfind('.') : path.find('.');
    const std::string name = dot == std::string::npos ? std::string() : path.substr(dot + 1);
    const Name named{name, {source_, number_, static_cast<int>(begin + dot) + 3, static_cast<int>(name.size())}};
    if (path.starts_with("nodes.")) {
      spec_.nodes.push_back({.name = named, .params = {{}, header}});
      entries_ = &spec_.nodes.back().params.entries;
    } else if (path.starts_with("models.")) {
      spec_.models.push_back({named, {{}, header}});
      entries_ = &spec_.models.back().params.entries;
    } else if (path.starts_with("cluster.roles.")) {
      spec_.roles.push_back({named, {{}, header}});
      entries_ = &spec_.roles.back().params.entries;
    } else {
      Table& table = settings(path);
      table.where = header;
      entries_ = &table.entries;
    }
  }

  Table& settings(const std::string& name) {
    if (name == "pipeline") return spec_.pipeline;
    if (name == "budget") return spec_.budget;
    if (name == "schedule") return spec_.schedule;
    if (name == "runtime") return spec_.runtime;
    if (name == "checkpoint") return spec_.checkpoint;
    if (name == "log") return spec_.log;
    if (name == "cluster") return spec_.cluster;
    fail();
  }

  void read_entry(std::vector<Entry>& entries) {
    const size_t begin = at_;
    std::string key = word();
    const SourceSpan where = span_from(begin);
    expect('=');
    entries.push_back({std::move(key), where, read_value()});
  }

  Value read_value() {
    const size_t begin = at_;
    Value value;
    if (peek() == '"')
      value.data = read_string();
    else if (peek() == '[')
      value.data = read_array();
    else if (peek() == '{')
      value.data = read_table();
    else
      value.data = read_scalar();
    value.where = span_from(begin);
    return value;
  }

  std::string read_string() {
    const size_t end = line_.find('"', at_ + 1);
    if (end == std::string::npos) fail();
    std::string text = line_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return text;
  }

  Array read_array() {
    Array array;
    for (expect('['); peek() != ']';) {
      array.push_back(read_value());
      skip_blank();
      if (peek() == ',') expect(',');
    }
    ++at_;
    return array;
  }

  Table read_table() {
    Table table;
    const size_t begin = at_;
    for (expect('{'); peek() != '}';) {
      read_entry(table.entries);
      skip_blank();
      if (peek() == ',') expect(',');
    }
    ++at_;
    table.where = {source_, number_, static_cast<int>(begin) + 1, 1};
    return table;
  }

  std::variant<bool, int64_t, double, std::string, Array, Table> read_scalar() {
    const std::string text = word();
    if (text == "true" || text == "false") return text == "true";
    if (text.find_first_of(".en") != std::string::npos) return std::stod(text);
    return static_cast<int64_t>(std::stoll(text));
  }

  void take_out_node_keys() {
    for (NodeSpec& node : spec_.nodes) {
      for (const Entry& entry : node.params.entries) {
        const Value& value = entry.value;
        if (entry.key == "type") node.type = {std::get<std::string>(value.data), value.where};
        if (entry.key == "metrics_prefix") node.metrics_prefix = {std::get<std::string>(value.data), value.where};
        if (entry.key == "on") node.on = {std::get<std::string>(value.data), value.where};
        if (entry.key != "inputs") continue;
        for (const Value& input : std::get<Array>(value.data))
          node.inputs.push_back({std::get<std::string>(input.data), input.where});
      }
      std::erase_if(node.params.entries, [](const Entry& e) {
        return e.key == "type" || e.key == "on" || e.key == "inputs" || e.key == "metrics_prefix";
      });
    }
  }

  std::shared_ptr<const SourceText> source_;
  PipelineSpec spec_;
  std::vector<Entry>* entries_ = nullptr;
  std::string line_;
  int number_ = 0;
  size_t at_ = 0;
};

}  // namespace

PipelineSpec spec_of(const std::string& text, const std::string& file) { return Reader(text, file).read(); }

}  // namespace sluice::engine::testing
