#include "text/jinja/symbols.h"

#include "base/error.h"

namespace sluice::text::jinja {

const Symbols::Place* Symbols::find(const std::string& name) const {
  for (const Symbols* symbols = this; symbols; symbols = symbols->parent_) {
    const auto found = symbols->references_.find(name);
    if (found != symbols->references_.end()) return &found->second;
  }
  return nullptr;
}

void Symbols::define(const std::string& name, Load load) {
  const auto [slot, is_new] = slots_->emplace(name, function_->slots);
  if (is_new) ++function_->slots;
  load.slot = slot->second;
  references_[name] = {depth_, load.slot};
  loads_[load.slot] = std::move(load);
}

void Symbols::load(const std::string& name) {
  if (!find(name)) define(name, {.kind = Load::Kind::kResolve, .name = name});
}

Load Symbols::alias_or(const std::string& name, Load otherwise) const {
  const Place* outer = parent_ ? parent_->find(name) : nullptr;
  if (!outer) return otherwise;
  return {.kind = Load::Kind::kAlias, .from = {.hops = depth_ - outer->depth, .slot = outer->slot}};
}

void Symbols::store(const std::string& name) {
  stores_.insert(name);
  if (references_.count(name) == 0) define(name, alias_or(name, {.kind = Load::Kind::kUndefined}));
}

int Symbols::declare_parameter(const std::string& name) {
  stores_.insert(name);
  define(name, {.kind = Load::Kind::kParameter});
  return references_.at(name).slot;
}

void Symbols::merge(const std::vector<Symbols>& branches) {
  std::set<std::string> stored;
  for (const Symbols& branch : branches) stored.insert(branch.stores_.begin(), branch.stores_.end());
  for (const std::string& name : stores_) stored.erase(name);
  for (const Symbols& branch : branches) {
    for (const auto& [name, place] : branch.references_) references_[name] = place;
    for (const auto& [slot, load] : branch.loads_) loads_[slot] = load;
    stores_.insert(branch.stores_.begin(), branch.stores_.end());
  }
  // Not every branch sets it: without that, what is outside is seen.
  for (const std::string& name : stored) {
    const Place* place = find(name);
    Load load = alias_or(name, {.kind = Load::Kind::kResolve, .name = name});
    load.slot = place->slot;
    loads_[place->slot] = std::move(load);
  }
}

Reference Symbols::reference(const std::string& name, int depth) const {
  const Place* place = find(name);
  SLUICE_CHECK(place, "variable " + name + " was not bound");
  return {.hops = depth - place->depth, .slot = place->slot};
}

Scope Symbols::scope() const {
  Scope scope;
  for (const auto& [slot, load] : loads_) {
    if (load.kind != Load::Kind::kParameter) scope.push_back(load);
  }
  return scope;
}

}  // namespace sluice::text::jinja
