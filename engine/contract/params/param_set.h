#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/contract/params/param_table.h"
#include "engine/contract/params/param_values.h"

namespace sluice::engine {

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
