#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/jinja/sandbox.h"

namespace sluice::text::jinja {

enum class Kind : uint8_t {
  kMissing,  // no value at all: a variable that was never set
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kDictView,
  kRange,
  kIterator,
  kNamespace,
  kLoop,
  kCallable,
  kCycler,
  kActivation,  // the variables of a running function; never seen by a template
};

/// A Python value as a template sees it. Cheap to copy; counts references without locks, so it stays in the thread of its render.
class Value {
 public:
  Value() : integer_(0) {}
  Value(const Value& other) : kind_(other.kind_), integer_(other.integer_) { retain(); }
  Value(Value&& other) noexcept : kind_(other.kind_), integer_(other.integer_) { other.kind_ = Kind::kMissing; }
  Value& operator=(Value other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(integer_, other.integer_);
    return *this;
  }
  ~Value() { drop(); }

  static Value none() { return Value(Kind::kNone, 0); }
  static Value boolean(bool value) { return Value(Kind::kBool, value ? 1 : 0); }
  static Value integer(int64_t value) { return Value(Kind::kInt, value); }
  static Value real(double value) {
    Value result(Kind::kFloat, 0);
    result.real_ = value;
    return result;
  }

  /// A new object of `sandbox`; its class says of which kind it is, or the first argument does (List: list or tuple).
  template <class T, class... Args>
  static Value make(Sandbox& sandbox, Args&&... args) {
    T* object = new T(std::forward<Args>(args)...);
    sandbox.adopt(object, object->extra_bytes());
    return refer(*object);
  }
  /// One more reference to an object.
  template <class T>
  static Value refer(T& object) {
    Value result(object.kind(), 0);
    result.object_ = &object;
    ++result.object_->references_;
    return result;
  }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_missing() const { return kind_ == Kind::kMissing; }
  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_sequence() const { return kind_ == Kind::kList || kind_ == Kind::kTuple; }
  /// bool is an int in Python.
  bool is_integer() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }
  bool is_number() const { return is_integer() || kind_ == Kind::kFloat; }

  bool as_bool() const { return integer_ != 0; }
  int64_t as_integer() const { return integer_; }  // of kInt and kBool
  double as_real() const { return kind_ == Kind::kFloat ? real_ : static_cast<double>(integer_); }
  template <class T>
  T& as() const {
    return static_cast<T&>(*object_);
  }
  std::string_view text() const;            // of kString
  const std::vector<Value>& items() const;  // of kList and kTuple
  /// The same object, or the same None, bool or int.
  bool same_as(const Value& other) const { return kind_ == other.kind_ && integer_ == other.integer_; }

 private:
  Value(Kind kind, int64_t integer) : kind_(kind), integer_(integer) {}
  bool counted() const { return kind_ == Kind::kUndefined || kind_ >= Kind::kString; }
  void retain() {
    if (counted()) ++object_->references_;
  }
  void drop() {
    if (counted() && --object_->references_ == 0) object_->sandbox_->release(object_);
  }

  Kind kind_ = Kind::kMissing;
  union {
    int64_t integer_;
    double real_;
    Object* object_;
  };
};

/// What an expression gives that finds nothing. Prints as nothing; most other uses fail with its message.
struct Undefined final : Object {
  explicit Undefined(std::string why) : message(std::move(why)) {}
  Kind kind() const { return Kind::kUndefined; }
  size_t extra_bytes() const { return message.size(); }
  std::string message;
};

/// UTF-8. `length` counts code points. `markup`: escaped HTML, which escapes what is added to it.
struct String final : Object {
  explicit String(std::string bytes, bool is_markup = false);
  Kind kind() const { return Kind::kString; }
  size_t extra_bytes() const { return text.size(); }
  bool is_ascii() const { return length == text.size(); }
  const std::string text;
  const size_t length;
  const bool markup;
};

/// A list or a tuple. Never changes once made.
struct List final : Object {
  List(Kind list_or_tuple, std::vector<Value> values) : sort(list_or_tuple), items(std::move(values)) {}
  Kind kind() const { return sort; }
  size_t extra_bytes() const { return items.capacity() * sizeof(Value); }
  void clear() override { items.clear(); }
  const Kind sort;
  std::vector<Value> items;
  bool is_group = false;  // a pair that groupby gives: .grouper and .list
};

/// Keys in order of insertion. Never changes once it is visible to the template (a namespace's is not visible).
class Dict final : public Object {
 public:
  using Entry = std::pair<Value, Value>;
  Kind kind() const { return Kind::kDict; }
  size_t extra_bytes() const { return 0; }
  void clear() override { entries_.clear(); }

  const std::vector<Entry>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }
  /// Null when absent. Throws Failure when `key` cannot be a key (a list, a dict).
  const Value* find(Sandbox& sandbox, const Value& key) const;
  const Value* find(Sandbox& sandbox, std::string_view key) const;
  /// As in Python an equal key that is there stays. The dict must have been adopted by `sandbox`.
  void set(Sandbox& sandbox, const Value& key, Value value);

 private:
  size_t position(Sandbox& sandbox, const Value& key, uint64_t hash) const;
  void index_all(Sandbox& sandbox);

  std::vector<Entry> entries_;
  std::unordered_multimap<uint64_t, size_t> index_;  // only of dicts that are not small
};

enum class View : uint8_t { kKeys, kValues, kItems };

struct DictView final : Object {
  DictView(Value of, View what) : dict(std::move(of)), view(what) {}
  Kind kind() const { return Kind::kDictView; }
  size_t extra_bytes() const { return 0; }
  void clear() override { dict = Value(); }
  size_t size() const { return dict.as<Dict>().size(); }
  Value dict;
  const View view;
};

struct Range final : Object {
  Range(int64_t first, int64_t end, int64_t distance, int64_t count) : start(first), stop(end), step(distance), size(count) {}
  Kind kind() const { return Kind::kRange; }
  size_t extra_bytes() const { return 0; }
  int64_t at(int64_t index) const { return start + index * step; }
  const int64_t start, stop, step, size;
};

/// Gives its elements once (a Python generator).
struct Iterator : Object {
  explicit Iterator(const char* python_name) : name(python_name) {}
  Kind kind() const { return Kind::kIterator; }
  size_t extra_bytes() const { return 0; }
  virtual bool next(Value& element) = 0;  // false at the end
  const char* name;
};

/// The one value that a template can change: {% set ns.x = 1 %}.
struct Namespace final : Object {
  explicit Namespace(Value attributes_dict) : attributes(std::move(attributes_dict)) {}
  Kind kind() const { return Kind::kNamespace; }
  size_t extra_bytes() const { return 0; }
  void clear() override { attributes = Value(); }
  Value attributes;
};

Value make_undefined(Sandbox& sandbox, std::string message);
Value make_string(Sandbox& sandbox, std::string text, bool markup = false);
Value make_list(Sandbox& sandbox, std::vector<Value> items);
Value make_tuple(Sandbox& sandbox, std::vector<Value> items);
Value make_pair(Sandbox& sandbox, const Value& first, const Value& second);
Value make_dict(Sandbox& sandbox);

/// str, list, NoneType, ...: what Python calls the type.
std::string type_name(const Value& value);
/// a str, an int.
std::string with_article(const Value& value);

}  // namespace sluice::text::jinja
