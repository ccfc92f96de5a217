#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/contract/params/preset.h"
#include "engine/contract/params/scheduled_number.h"
#include "engine/contract/spec/spec.h"
#include "engine/contract/world/metric_spec.h"

namespace sluice::engine {

class KnownNames;

enum class ParamKind {
  kBoolean,
  kInteger,
  kReal,
  kScheduled,
  kString,
  kChoice,
  kPath,
  kPaths,
  kReals,
  kStrings,
  kTable,
  kTables,
  kComponent
};

/// What people are told about a parameter: `describe`, docs/nodes.md and error texts are made of it.
struct ParamInfo {
  std::string name;
  ParamKind kind = ParamKind::kString;
  bool required = false;
  std::string default_text;       // as TOML; empty: unset by default
  std::optional<double> minimum;  // numbers
  std::optional<double> maximum;
  bool minimum_excluded = false;
  std::string unit;
  bool or_auto = false;     // kInteger: also "auto"
  bool must_exist = false;  // kPath, kPaths: something is there; a pattern of kPaths (*, ?, [) is left to the node
  bool harmless = false;    // a run that goes on from a checkpoint gives the same results with another value
  // kPath: what a path means that names no file, such as a model of a cache: from the text and the path. Throws UserError.
  std::function<std::filesystem::path(const std::string& text, const std::filesystem::path& path)> find;
  std::string doc;
  std::vector<std::string> choices;  // kChoice; kStrings: of each element, empty: any text
  std::string component;             // kComponent: the kind, such as "objective"
  std::vector<ParamInfo> children;   // kTable, kTables: of each
  std::string metric;                // kScheduled: what the engine records of each iteration where it changes; empty: nothing
};

/// "an integer from 1", "a number above 0 up to 1", "one of \"none\", \"iteration\"".
std::string expectation(const ParamInfo& info);

/// Where binding reports and what it may look up. `owner` is how messages call the table: `type "gae"`, `[budget]`.
struct BindContext {
  const KnownNames& known;
  Problems& problems;
  std::string owner;
  PresetScope preset = {};
  int64_t iterations = 0;  // of the run; 0: not known
};

/// The value of one parameter.
struct ParamText {
  std::string name;
  std::string text;  // as TOML
  bool harmless = false;
};

/// A member of a pipeline that is chosen by name and has parameters of its own, such as an objective:
/// `objective = "ppo_clip"` or `objective = { type = "ppo_clip", clip_low = 0.1 }`. Base has `static constexpr kComponent`.
template <class Base>
struct Component {
  std::string type;
  std::shared_ptr<const Base> object;
  std::vector<ParamText> parts;          // its type and every key, defaults among them
  std::vector<MetricSpec> metrics;       // what it declares
  std::vector<NamedSchedule> schedules;  // its scheduled parameters
};

/// One parameter, type-erased. `bind` writes the value into the params struct and reports what is wrong with it.
struct Param {
  ParamInfo info;
  std::function<void(void* params, const Value&, BindContext&, const ParamInfo&)> bind;
  std::function<std::string(const void* params)> text;                      // the value as TOML; empty: unset
  std::function<std::vector<ParamText>(const void* params)> parts;          // kComponent, kTable: the same key by key; else empty
  std::function<std::vector<NamedSchedule>(const void* params)> schedules;  // kScheduled: itself, kComponent: its own; else empty
};

/// The parameters of one table of a pipeline file.
class ParamTable {
 public:
  /// Binds every key of `table` into `params`. Reports unknown keys (with a did-you-mean), wrong types and ranges, and required
  /// keys that are missing (at table.where). Keys that are not written get the preset's value, or keep the value that `params`
  /// has; a component that is not written is made with its default parameters.
  void bind(void* params, const Table& table, BindContext& context) const;

  const Param* find(std::string_view name) const;
  const std::vector<Param>& params() const { return params_; }
  std::vector<ParamInfo> infos() const;

  /// Every value that is set.
  std::vector<ParamText> texts(const void* params) const;

  /// Every scheduled parameter, those of components among them, whether it changes or not.
  std::vector<NamedSchedule> schedules(const void* params) const;

  Param& add(Param param);

 private:
  std::vector<Param> params_;
};

/// An integer that may be left to the plan: `"auto"`.
struct IntegerOrAuto {
  int64_t value = 0;  // of "auto": what the plan chose, 0 before
  bool automatic = false;
};

/// Enumerations name their values through `enum_names(E)`, found by argument-dependent lookup, which returns an array of
/// {E value, const char* name} pairs.
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E e) {
  enum_names(e);
};

namespace detail {

/// In the bounds, and finite unless it is the upper one: `inf` where there may be no limit.
bool takes_number(const ParamInfo&, double);

bool read_boolean(const Value&, bool&, BindContext&, const ParamInfo&);
bool read_integer(const Value&, int64_t&, BindContext&, const ParamInfo&);
bool read_integer_or_auto(const Value&, IntegerOrAuto&, BindContext&, const ParamInfo&);
bool read_real(const Value&, double&, BindContext&, const ParamInfo&);
bool read_scheduled(const Value&, ScheduledNumber&, BindContext&, const ParamInfo&);
bool read_string(const Value&, std::string&, BindContext&, const ParamInfo&);
bool read_path(const Value&, std::filesystem::path&, BindContext&, const ParamInfo&);
bool read_paths(const Value&, std::vector<std::filesystem::path>&, BindContext&, const ParamInfo&);
bool read_reals(const Value&, std::vector<double>&, BindContext&, const ParamInfo&);
bool read_strings(const Value&, std::vector<std::string>&, BindContext&, const ParamInfo&);
bool read_choice(const Value&, size_t& index, BindContext&, const ParamInfo&);
/// Makes the component that `value` names, type and parts among it; without object when something was
/// reported.
Component<const void> read_component(const Value&, BindContext&, const ParamInfo&);
const Table* read_table(const Value&, BindContext&, const ParamInfo&);

/// The tables of an array; nothing where something was reported.
std::optional<std::vector<const Table*>> read_tables(const Value&, BindContext&, const ParamInfo&);

/// What the text of a path means: `~` and variables (base/files/user_path.h), relative to `base`, and ParamInfo::find. Throws
/// UserError.
std::filesystem::path meant_path(const std::string& text, const std::string& base, const ParamInfo&);

/// `{ a = 1, b = 2 }`
std::string inline_text(const std::vector<ParamText>& parts);

/// `[A, B]`; of none nothing.
std::string array_text(const std::vector<std::string>& elements);

std::string to_text(bool value);
std::string to_text(int64_t value);
std::string to_text(const IntegerOrAuto& value);
std::string to_text(double value);
std::string to_text(const ScheduledNumber& value);
std::string to_text(const std::string& value);
std::string to_text(const std::filesystem::path& value);
std::string to_text(const std::vector<std::filesystem::path>& value);
std::string to_text(const std::vector<double>& value);
std::string to_text(const std::vector<std::string>& value);

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
struct IsComponent : std::false_type {};
template <class T>
struct IsComponent<Component<T>> : std::true_type {};

template <class T>
constexpr ParamKind kind_of() {
  if constexpr (IsOptional<T>::value)
    return kind_of<typename T::value_type>();
  else if constexpr (IsComponent<T>::value)
    return ParamKind::kComponent;
  else if constexpr (std::is_same_v<T, bool>)
    return ParamKind::kBoolean;
  else if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, IntegerOrAuto>)
    return ParamKind::kInteger;
  else if constexpr (std::is_same_v<T, double>)
    return ParamKind::kReal;
  else if constexpr (std::is_same_v<T, ScheduledNumber>)
    return ParamKind::kScheduled;
  else if constexpr (std::is_same_v<T, std::string>)
    return ParamKind::kString;
  else if constexpr (std::is_same_v<T, std::filesystem::path>)
    return ParamKind::kPath;
  else if constexpr (std::is_same_v<T, std::vector<std::filesystem::path>>)
    return ParamKind::kPaths;
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return ParamKind::kReals;
  else if constexpr (std::is_same_v<T, std::vector<std::string>>)
    return ParamKind::kStrings;
  else {
    static_assert(
        NamedEnum<T>,
        "a parameter is bool, int64_t, double, ScheduledNumber, string, path, paths, numbers, strings, a named enum, an optional "
        "or a Component");
    return ParamKind::kChoice;
  }
}

template <class T>
void read(const Value& value, T& out, BindContext& context, const ParamInfo& info) {
  if constexpr (IsOptional<T>::value) {
    typename T::value_type inner{};
    read(value, inner, context, info);
    out = inner;
  } else if constexpr (IsComponent<T>::value) {
    using Base = std::remove_reference_t<decltype(*out.object)>;
    Component<const void> read = read_component(value, context, info);
    out = {std::move(read.type), std::static_pointer_cast<Base>(read.object), std::move(read.parts), std::move(read.metrics),
           std::move(read.schedules)};
  } else if constexpr (std::is_same_v<T, bool>) {
    read_boolean(value, out, context, info);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    read_integer(value, out, context, info);
  } else if constexpr (std::is_same_v<T, IntegerOrAuto>) {
    read_integer_or_auto(value, out, context, info);
  } else if constexpr (std::is_same_v<T, double>) {
    read_real(value, out, context, info);
  } else if constexpr (std::is_same_v<T, ScheduledNumber>) {
    read_scheduled(value, out, context, info);
  } else if constexpr (std::is_same_v<T, std::string>) {
    read_string(value, out, context, info);
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    read_path(value, out, context, info);
  } else if constexpr (std::is_same_v<T, std::vector<std::filesystem::path>>) {
    read_paths(value, out, context, info);
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    read_reals(value, out, context, info);
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    read_strings(value, out, context, info);
  } else {
    size_t index = 0;
    if (read_choice(value, index, context, info)) out = enum_names(T{})[index].first;
  }
}

template <class T>
std::string text_of(const T& value) {
  if constexpr (IsOptional<T>::value) {
    return value ? text_of(*value) : std::string();
  } else if constexpr (IsComponent<T>::value) {
    if (value.parts.empty()) return value.type.empty() ? std::string() : to_text(value.type);
    return inline_text(value.parts);
  } else if constexpr (NamedEnum<T>) {
    for (const auto& [candidate, name] : enum_names(T{})) {
      if (candidate == value) return to_text(std::string(name));
    }
    return {};
  } else {
    return to_text(value);
  }
}

}  // namespace detail

/// Refines a parameter just declared: `.between(0, 1).unit("tokens").doc("...")`.
class ParamBuilder {
 public:
  explicit ParamBuilder(ParamInfo& info) : info_(info) {}

  ParamBuilder& doc(std::string text) { return info_.doc = std::move(text), *this; }
  ParamBuilder& unit(std::string text) { return info_.unit = std::move(text), *this; }
  ParamBuilder& each_of(std::vector<std::string> names) { return info_.choices = std::move(names), *this; }
  ParamBuilder& must_exist() { return info_.must_exist = true, *this; }
  ParamBuilder& found_by(decltype(ParamInfo::find) find) { return info_.find = std::move(find), *this; }
  ParamBuilder& recorded_as(std::string metric) { return info_.metric = std::move(metric), *this; }
  ParamBuilder& harmless() { return info_.harmless = true, *this; }
  ParamBuilder& required() { return info_.required = true, info_.default_text.clear(), *this; }
  ParamBuilder& between(double low, double high) { return info_.minimum = low, info_.maximum = high, *this; }
  ParamBuilder& at_least(double low) { return info_.minimum = low, *this; }
  ParamBuilder& at_most(double high) { return info_.maximum = high, *this; }
  ParamBuilder& above(double low) { return info_.minimum = low, info_.minimum_excluded = true, *this; }

 private:
  ParamInfo& info_;  // valid until the next parameter is declared
};

/// The parameters of one table, bound to the members of P. Defaults are those of `P{}`.
template <class P>
class ParamSet {
 public:
  /// `member` may be one of a struct that P derives from: parameters that several types have.
  template <class T, class B>
  requires std::derived_from<P, B> ParamBuilder param(std::string name, T B::*member_of_base) {
    const auto member = static_cast<T P::*>(member_of_base);
    ParamInfo info{.name = std::move(name), .kind = detail::kind_of<T>(), .default_text = detail::text_of(P{}.*member)};
    describe_choices<T>(info);
    Param& added = table_.add({std::move(info),
                               [member](void* params, const Value& value, BindContext& context, const ParamInfo& of) {
                                 detail::read(value, static_cast<P*>(params)->*member, context, of);
                               },
                               [member](const void* params) { return detail::text_of(static_cast<const P*>(params)->*member); },
                               {},
                               {}});
    if constexpr (detail::IsComponent<T>::value) {
      added.parts = [member](const void* params) { return (static_cast<const P*>(params)->*member).parts; };
      added.schedules = [member](const void* params) { return (static_cast<const P*>(params)->*member).schedules; };
    } else if constexpr (std::is_same_v<T, ScheduledNumber>) {
      added.schedules = [member](const void* params) {
        return std::vector<NamedSchedule>{{.key = {}, .metric = {}, .number = static_cast<const P*>(params)->*member}};
      };
    }
    return ParamBuilder(added.info);
  }

  /// A table of its own: `optimizer = { type = "adamw", ... }`. Unset unless the key is written.
  template <class T>
  ParamBuilder table(std::string name, std::optional<T> P::*member, const ParamSet<T>& inner) {
    ParamInfo info{.name = std::move(name), .kind = ParamKind::kTable};
    info.children = inner.erased().infos();
    auto shared = std::make_shared<ParamTable>(inner.erased());
    Param& added =
        table_.add({std::move(info),
                    [member, shared](void* params, const Value& value, BindContext& context, const ParamInfo& of) {
                      const Table* table = detail::read_table(value, context, of);
                      BindContext inside{context.known, context.problems, of.name + " in " + context.owner,
                                         context.preset.within(of.name, context.preset.of + "." + of.name), context.iterations};
                      if (table != nullptr) shared->bind(&(static_cast<P*>(params)->*member).emplace(), *table, inside);
                    },
                    [member, shared](const void* params) {
                      const auto& value = static_cast<const P*>(params)->*member;
                      return value ? detail::inline_text(shared->texts(&*value)) : std::string();
                    },
                    [member, shared](const void* params) {
                      const auto& value = static_cast<const P*>(params)->*member;
                      return value ? shared->texts(&*value) : std::vector<ParamText>();
                    },
                    {}});
    return ParamBuilder(added.info);
  }

  /// Any number of tables with the same keys: `groups = [{ match = "...", ... }, ...]`.
  template <class T>
  ParamBuilder tables(std::string name, std::vector<T> P::*member, const ParamSet<T>& inner) {
    ParamInfo info{.name = std::move(name), .kind = ParamKind::kTables};
    info.children = inner.erased().infos();
    auto shared = std::make_shared<ParamTable>(inner.erased());
    Param& added = table_.add(
        {std::move(info),
         [member, shared](void* params, const Value& value, BindContext& context, const ParamInfo& of) {
           const auto tables = detail::read_tables(value, context, of);
           if (!tables) return;
           std::vector<T>& all = static_cast<P*>(params)->*member;
           all.clear();
           BindContext inside{context.known, context.problems, of.name + " in " + context.owner, {}, context.iterations};
           for (const Table* table : *tables) shared->bind(&all.emplace_back(), *table, inside);
         },
         [member, shared](const void* params) {
           std::vector<std::string> texts;
           for (const T& one : static_cast<const P*>(params)->*member) texts.push_back(detail::inline_text(shared->texts(&one)));
           return detail::array_text(texts);
         },
         {},
         {}});
    return ParamBuilder(added.info);
  }

  const ParamTable& erased() const { return table_; }

 private:
  template <class T>
  static void describe_choices(ParamInfo& info) {
    if constexpr (detail::IsOptional<T>::value) {
      describe_choices<typename T::value_type>(info);
    } else if constexpr (detail::IsComponent<T>::value) {
      using Base = std::remove_reference_t<decltype(*T{}.object)>;
      info.component = std::remove_const_t<Base>::kComponent;
    } else if constexpr (std::is_same_v<T, IntegerOrAuto>) {
      info.or_auto = true;
    } else if constexpr (NamedEnum<T>) {
      for (const auto& entry : enum_names(T{})) info.choices.emplace_back(entry.second);
    }
  }

  ParamTable table_;
};

}  // namespace sluice::engine
