#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "text/jinja/ast.h"

namespace sluice::text::jinja {

/// The variables of one scope while a template is bound. The rules are those of Jinja's compiler: a name that is assigned
/// anywhere in a scope belongs to it, one that is only read belongs to the nearest scope outwards that knows it, else to the
/// variables given.
class Symbols {
 public:
  /// `function`: whose slots the variables take. `depth`: how many functions it stands in.
  Symbols(const Symbols* parent, FunctionLayout& function, int depth)
      : parent_(parent), function_(&function), depth_(depth), slots_(std::make_shared<std::map<std::string, int>>()) {}

  void load(const std::string& name);
  void store(const std::string& name);
  int declare_parameter(const std::string& name);

  /// A copy for one branch of an if, which may define more; merged with the other branches afterwards.
  Symbols branch() const { return *this; }
  void merge(const std::vector<Symbols>& branches);

  /// As seen from a function at `depth`. The name must be known: load() or store() has seen it here or further out.
  Reference reference(const std::string& name, int depth) const;
  Scope scope() const;

 private:
  struct Place {
    int depth;
    int slot;
  };
  const Place* find(const std::string& name) const;
  void define(const std::string& name, Load load);
  Load alias_or(const std::string& name, Load otherwise) const;

  const Symbols* parent_;
  FunctionLayout* function_;
  int depth_;
  std::shared_ptr<std::map<std::string, int>> slots_;  // shared by the branches of an if: one name, one slot
  std::map<std::string, Place> references_;
  std::map<int, Load> loads_;
  std::set<std::string> stores_;
};

}  // namespace sluice::text::jinja
