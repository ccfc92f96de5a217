#include "text/jinja/iterate.h"

#include "text/jinja/loop.h"
#include "text/jinja/unicode.h"

namespace sluice::text::jinja {
namespace {

struct VectorIterator final : Iterator {
  VectorIterator(const char* python_name, std::vector<Value> values) : Iterator(python_name), items(std::move(values)) {}
  size_t extra_bytes() const { return items.capacity() * sizeof(Value); }
  void clear() override { items.clear(); }
  bool next(Value& element) override {
    if (position >= items.size()) return false;
    element = items[position++];
    return true;
  }
  std::vector<Value> items;
  size_t position = 0;
};

struct LazyIterator final : Iterator {
  explicit LazyIterator(std::function<std::vector<Value>()> function) : Iterator("generator"), evaluate(std::move(function)) {}
  void clear() override {
    evaluate = nullptr;
    items.clear();
  }
  bool next(Value& element) override {
    if (evaluate) items = std::exchange(evaluate, nullptr)();
    if (position >= items.size()) return false;
    element = items[position++];
    return true;
  }
  std::function<std::vector<Value>()> evaluate;
  std::vector<Value> items;
  size_t position = 0;
};

Value entry(Sandbox& sandbox, const Dict& dict, View view, size_t index) {
  const auto& [key, value] = dict.entries()[index];
  if (view == View::kKeys) return key;
  return view == View::kValues ? value : make_pair(sandbox, key, value);
}

}  // namespace

bool is_iterable(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kDictView:
    case Kind::kRange:
    case Kind::kIterator:
    case Kind::kLoop:
      return true;
    default:
      return false;
  }
}

Cursor::Cursor(Sandbox& sandbox, Value over) : sandbox_(&sandbox), over_(std::move(over)) {
  if (is_iterable(over_)) return;
  throw Failure(with_article(over_) + " has no elements to go through");
}

bool Cursor::next(Value& element) {
  sandbox_->spend();
  switch (over_.kind()) {
    case Kind::kString: {
      const std::string_view text = over_.text();
      if (position_ >= text.size()) return false;
      const size_t begin = position_;
      unicode::next(text, position_);
      element = make_string(*sandbox_, std::string(text.substr(begin, position_ - begin)));
      return true;
    }
    case Kind::kList:
    case Kind::kTuple:
      if (position_ >= over_.items().size()) return false;
      element = over_.items()[position_++];
      return true;
    case Kind::kDict:
      if (position_ >= over_.as<Dict>().size()) return false;
      element = entry(*sandbox_, over_.as<Dict>(), View::kKeys, position_++);
      return true;
    case Kind::kDictView: {
      const auto& view = over_.as<DictView>();
      if (position_ >= view.size()) return false;
      element = entry(*sandbox_, view.dict.as<Dict>(), view.view, position_++);
      return true;
    }
    case Kind::kRange:
      if (static_cast<int64_t>(position_) >= over_.as<Range>().size) return false;
      element = Value::integer(over_.as<Range>().at(static_cast<int64_t>(position_++)));
      return true;
    case Kind::kIterator: {
      const Nesting nesting(*sandbox_);  // iterators over iterators over ...
      return over_.as<Iterator>().next(element);
    }
    case Kind::kLoop:
      throw Failure("going through the loop variable itself is not supported");
    default:
      return false;
  }
}

void for_each(Sandbox& sandbox, const Value& over, const std::function<bool(const Value&)>& visit) {
  Cursor cursor(sandbox, over);
  Value element;
  while (cursor.next(element)) {
    if (!visit(element)) return;
  }
}

std::vector<Value> elements_of(Sandbox& sandbox, const Value& over) {
  if (over.is_sequence()) {
    sandbox.spend(over.items().size());
    sandbox.expect(over.items().size() * sizeof(Value));
    return over.items();
  }
  std::vector<Value> items;
  Cursor cursor(sandbox, over);
  Value element;
  while (cursor.next(element)) items.push_back(std::move(element));
  return items;
}

bool is_reversible(const Value& value) { return is_iterable(value) && !value.is(Kind::kIterator) && !value.is(Kind::kLoop); }

int64_t length_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return static_cast<int64_t>(value.as<String>().length);
    case Kind::kList:
    case Kind::kTuple:
      return static_cast<int64_t>(value.items().size());
    case Kind::kDict:
      return static_cast<int64_t>(value.as<Dict>().size());
    case Kind::kDictView:
      return static_cast<int64_t>(value.as<DictView>().size());
    case Kind::kRange:
      return value.as<Range>().size;
    case Kind::kLoop:
      return value.as<Loop>().length();
    default:
      return -1;
  }
}

Value make_iterator(Sandbox& sandbox, const char* python_name, std::vector<Value> items) {
  return Value::make<VectorIterator>(sandbox, python_name, std::move(items));
}

Value make_lazy(Sandbox& sandbox, std::function<std::vector<Value>()> evaluate) {
  return Value::make<LazyIterator>(sandbox, std::move(evaluate));
}

}  // namespace sluice::text::jinja
