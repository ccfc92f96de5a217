#include <algorithm>

#include "base/error.h"
#include "base/text/strings.h"
#include "engine/check/check_draft.h"

namespace sluice::engine::checking {
namespace {

SourceSpan header_of(const DraftModel& model) {
  return model.spec->params.where.known() ? model.spec->params.where : model.spec->name.where;
}

std::string readable(const std::string& head) { return head == "language_model" ? "language model" : head; }

std::vector<std::string> model_names(const Draft& draft) {
  std::vector<std::string> names;
  for (const DraftModel& model : draft.models) names.push_back(model.spec->name.text);
  return names;
}

// What is known of a model that is another one's base is known of that one; it takes no memory of its own.
void take_facts_of_base(Draft& draft, DraftModel& model) {
  const std::string name = model.spec->name.text, base_of = model.facts.base_of;
  const SourceSpan where = place_of(model.spec->params, "base_of", model.spec->name.where);
  const int found = draft.find_model(base_of);
  if (found < 0) {
    const std::string near = did_you_mean(base_of, model_names(draft));
    model.params = nullptr;  // nothing is known of it
    return draft.error("unknown-model", where,
                       "'" + name + "' is the base of '" + base_of + "', which the pipeline does not have",
                       near.empty() ? std::string() : "did you mean " + sluice::quoted(near) + "?");
  }
  const DraftModel& other = draft.models[static_cast<size_t>(found)];
  const bool usable = other.params != nullptr && other.facts.has_base;
  if (!usable) model.params = nullptr;
  if (other.params == nullptr) return;
  if (!usable) {
    return draft.error("model-without-base", where,
                       "'" + name + "' is the base of '" + base_of + "', of whose weights none stays as it was", {},
                       "lora = { ... } in [models." + base_of + "], or checkpoint in [models." + name + "]");
  }
  model.facts = other.facts;
  model.facts.base_of = base_of;
  model.facts.head = "language_model";  // a value head is trained as a whole: it has no base
  model.facts.has_base = model.facts.trainable = false;
  model.facts.weight_bytes = model.facts.gradient_bytes = model.facts.optimizer_bytes = 0;
}

void report_unknown_model(Draft& draft, const DraftNode& node, const ModelNeed& need) {
  std::vector<std::string> removal = removal_notes(draft, "models." + need.model);
  const std::string near = removal.empty() ? did_you_mean(need.model, model_names(draft)) : std::string();
  draft.error("unknown-model", place_of(node, need.param),
              "'" + node.name() + "' uses model '" + need.model + "', which the pipeline does not have",
              near.empty() ? std::string() : "did you mean " + sluice::quoted(near) + "?",
              near.empty() && removal.empty() ? "add [models." + need.model + "]" : std::string(), std::move(removal));
}

void check_head(Draft& draft, const DraftNode& node, const ModelNeed& need, const DraftModel& model) {
  if (model.params == nullptr || need.head.empty() || model.facts.has_head(need.head)) return;
  draft.error("model-head-mismatch", place_of(node, need.param),
              "'" + node.name() + "' needs a model with a " + readable(need.head) + " head; '" + need.model + "' has a " +
                  readable(model.facts.head) + " head",
              {}, "head = " + sluice::quoted(need.head) + " in [models." + need.model + "], or name another model");
}

// One node may train a model, and one publish it: otherwise the order in which they do so would decide the result.
void take_sole_role(Draft& draft, const char* kind, int index, const ModelNeed& need, int& role, const std::string& verb) {
  if (role < 0) {
    role = index;
  } else if (role != index) {
    draft.error(kind, place_of(draft.node(index), need.param),
                "'" + draft.node(index).name() + "' " + verb + " model '" + need.model + "', which '" + draft.node(role).name() +
                    "' " + verb + " too");
  }
}

void check_trainable(Draft& draft, const DraftNode& node, const ModelNeed& need, const DraftModel& model) {
  if (model.params == nullptr || model.facts.trainable) return;
  draft.error("model-frozen", place_of(node, need.param),
              "'" + node.name() + "' trains model '" + need.model + "', which has no optimizer", "it is frozen",
              "optimizer = { type = \"adamw\", learning_rate = 1e-6 } in [models." + need.model + "]");
}

// It would train in some iterations, with what they lead to measured by nobody.
void check_may_train(Draft& draft, const DraftNode& node, const ModelNeed& need) {
  if (!draft.measures(node)) return;
  const DraftNode& source = draft.node(draft.path_of(node)->source);
  const char* key = source.source.every_iterations ? "every_iterations" : "before_training";
  draft.error("measuring-path-trains", place_of(node, need.param),
              "'" + node.name() + "' trains model '" + need.model + "' on a path that only measures",
              std::string(key) + " in [nodes." + source.name() + "] says that it does",
              std::string("take ") + key + " away there, or move '" + node.name() + "' after another source");
}

// While a path without the trainer samples a version, the trainer goes on.
void note_sampling_apart(Draft& draft) {
  for (const DraftNode& node : draft.nodes) {
    if (!node.needs) continue;
    for (const ModelNeed& need : node.needs->models) {
      const int found = draft.find_model(need.model);
      if (found < 0 || need.use != ModelUse::kSamples) continue;
      DraftModel& model = draft.models[static_cast<size_t>(found)];
      if (model.updater >= 0 && draft.node(model.updater).path != node.path) model.sampled_apart = true;
    }
  }
}

void note_use(Draft& draft, int index, const ModelNeed& need) {
  const int found = draft.find_model(need.model);
  if (found < 0) return report_unknown_model(draft, draft.node(index), need);
  DraftModel& model = draft.models[static_cast<size_t>(found)];
  check_head(draft, draft.node(index), need, model);
  if (!may_use_average(need.use) && !model.facts.average_of.empty()) return;  // told by note_averages()
  switch (need.use) {
    case ModelUse::kReads:
      if (model.reader < 0) model.reader = index;
      model.has_live_reader |= draft.node(index).type->kind != NodeKind::kSource;
      break;
    case ModelUse::kSamples:
      if (model.sampler < 0 || (draft.measures(draft.node(model.sampler)) && !draft.measures(draft.node(index))))
        model.sampler = index;
      break;
    case ModelUse::kUpdates:
      check_may_train(draft, draft.node(index), need);
      take_sole_role(draft, "model-trained-twice", index, need, model.updater, "trains");
      check_trainable(draft, draft.node(index), need, model);
      break;
    case ModelUse::kAverages:
      model.updater = index;
      break;
    case ModelUse::kPublishes:
      take_sole_role(draft, "model-published-twice", index, need, model.publisher, "publishes");
      break;
  }
}

const ModelNeed& need_of(const DraftNode& node, const std::string& model, ModelUse use) {
  const auto& needs = node.needs->models;
  const auto found =
      std::find_if(needs.begin(), needs.end(), [&](const ModelNeed& n) { return n.model == model && n.use == use; });
  SLUICE_CHECK(found != needs.end(), "a use of a model was noted that its node does not declare");
  return *found;
}

std::string publishing_type(const Draft& draft) {
  for (const auto& [name, type] : draft.registry.nodes()) {
    const auto node = with_default_params(type, draft.registry);
    if (!node) continue;
    const auto& models = node->needs.models;
    if (std::any_of(models.begin(), models.end(), [](const ModelNeed& need) { return need.use == ModelUse::kPublishes; }))
      return name;
  }
  return {};
}

void check_unpublished(Draft& draft, const DraftModel& model) {
  if (model.sampler < 0 || model.updater < 0 || model.publisher >= 0) return;
  const std::string& name = model.spec->name.text;
  const DraftNode& sampler = draft.node(model.sampler);
  const DraftNode& updater = draft.node(model.updater);
  const std::string type = publishing_type(draft);
  draft.error(
      "model-not-published", place_of(sampler, need_of(sampler, name, ModelUse::kSamples).param),
      "'" + sampler.name() + "' samples from model '" + name + "', which '" + updater.name() + "' trains but no node publishes",
      "it would wait for version 1 for ever",
      type.empty() ? std::string()
                   : "add a node of type " + sluice::quoted(type) + " with inputs = [" + sluice::quoted(updater.name()) +
                         "] and model = " + sluice::quoted(name),
      notes_of_removed_nodes(draft));
}

void check_publisher(Draft& draft, const DraftModel& model) {
  if (model.publisher < 0) return;
  const std::string& name = model.spec->name.text;
  const DraftNode& publisher = draft.node(model.publisher);
  const SourceSpan where = place_of(publisher, need_of(publisher, name, ModelUse::kPublishes).param);
  if (model.updater < 0) {
    draft.error("publisher-without-trainer", where,
                "'" + publisher.name() + "' publishes model '" + name + "', which no node trains",
                "every version would be the same", {}, notes_of_removed_nodes(draft));
  } else if (model.publisher != model.updater && !draft.before(model.updater, model.publisher) && publisher.sealed) {
    const std::string& updater = draft.node(model.updater).name();
    draft.error(
        "publisher-too-early", where,
        "'" + publisher.name() + "' publishes model '" + name + "' without waiting for '" + updater + "', which trains it", {},
        "inputs = [" + sluice::quoted(updater) + "] in [nodes." + publisher.name() + "]");
  } else if (model.sampler < 0) {
    draft.warning("publisher-without-reader", where,
                  "'" + publisher.name() + "' publishes model '" + name + "', but no node samples from it");
  }
}

// Which weights a node sees that is not in front of the trainer would depend on timing.
void check_side_reader(Draft& draft, int index, const ModelNeed& need) {
  const DraftModel& model = draft.models[static_cast<size_t>(draft.find_model(need.model))];
  const DraftNode& reader = draft.node(index);
  if (need.use != ModelUse::kReads || reader.type->kind != NodeKind::kOrdinary) return;
  if (model.updater < 0 || model.updater == index || draft.before(index, model.updater)) return;
  const std::string& updater = draft.node(model.updater).name();
  const bool may_meet = reader.path == draft.node(model.updater).path;
  draft.error("model-read-while-trained", place_of(reader, need.param),
              "'" + reader.name() + "' reads model '" + need.model + "' while '" + updater + "' may be training it",
              may_meet ? "it is not in front of '" + updater + "'" : "'" + updater + "' is after another source",
              may_meet ? "name " + sluice::quoted(reader.name()) + " in inputs of [nodes." + updater +
                             "], or give it a frozen copy of the model"
                       : "give it a frozen copy of the model, or train it after the same source");
}

void warn_of_idle(Draft& draft, const DraftModel& model) {
  const std::string& name = model.spec->name.text;
  if (!model.used()) {
    draft.warning("model-unused", header_of(model), "model '" + name + "' is not used by any node");
  } else if (model.facts.trainable && model.updater < 0 && !model.is_idle_critic()) {
    draft.warning("optimizer-unused", place_of(model.spec->params, "optimizer", model.spec->name.where),
                  "the optimizer of model '" + name + "' has no effect: no node trains the model", {}, {},
                  notes_of_removed_nodes(draft));
  }
}

// With lag 0 nothing is sampled while weights are published.
void check_update(Draft& draft) {
  const ScheduleSettings& schedule = draft.plan.schedule;
  const bool updates = schedule.update == WeightUpdate::kImmediately;
  if (updates && schedule.policy_lag == 0) {
    draft.error("setting-without-effect", place_of(draft.spec.schedule, "update", draft.spec.where),
                "update = \"immediately\" has no effect with policy_lag = 0: no sample runs when weights are published", {},
                "policy_lag = 1, or remove update");
  }
  // The default says nothing: an effective pipeline has it written.
  if (!updates && schedule.update_kv != ScheduleSettings().update_kv) {
    draft.error("setting-without-effect", place_of(draft.spec.schedule, "update_kv", draft.spec.where),
                "update_kv has no effect with update = \"exact\": no sample sees two versions", {},
                "update = \"immediately\", or remove update_kv");
  }
}

void check_lag(Draft& draft) {
  if (!draft.right.schedule) return;
  check_update(draft);
  if (draft.plan.schedule.policy_lag == 0) return;
  const SourceSpan where = place_of(draft.spec.schedule, "policy_lag", draft.spec.where);
  const auto is_trained = [&](const DraftModel& m) { return draft.trains_what_it_samples(m); };
  const auto model = std::find_if(draft.models.begin(), draft.models.end(), is_trained);
  if (model == draft.models.end()) {
    draft.error("lag-without-training", where, "policy_lag has no effect: no rollout samples from a model that is trained here",
                {}, "remove policy_lag");
    return;
  }
  const DraftNode& sampler = draft.node(model->sampler);
  const DraftNode& updater = draft.node(model->updater);
  if (sampler.executor != updater.executor) return;
  draft.warning(
      "lag-gains-nothing", where,
      "policy_lag gains nothing: '" + sampler.name() + "' and '" + updater.name() + "' share executor " + sampler.executor,
      "one iteration cannot be sampled while another is trained",
      "on = \"cpu:1\" in [nodes." + updater.name() + "], or policy_lag = 0");
}

}  // namespace

void bind_models(Draft& draft) {
  const ModelType* type = draft.registry.model_type();
  for (const ModelSpec& spec : draft.spec.models) {
    DraftModel& model = draft.models.emplace_back();
    model.spec = &spec;
    // Of a name in a file the reader of the file has said so, at its very place.
    if (!is_plain_name(spec.name.text) && !spec.name.where.known()) {
      draft.error("bad-name", spec.name.where, sluice::quoted(spec.name.text) + " cannot be the name of a model",
                  "letters, digits, _ and -");
    }
    if (type == nullptr) {
      draft.error("unknown-model", header_of(model), "model '" + spec.name.text + "': this program knows no models");
      continue;
    }
    BindContext context{draft.registry, draft.problems, "[models." + spec.name.text + "]",
                        preset_scope(draft, &model.preset_uses), draft.right.pipeline ? draft.plan.pipeline.iterations : 0};
    try {
      model.params = type->bind(spec, context, model.facts);
    } catch (const UserError& error) {
      draft.add("model-folder-unusable", error);
    }
  }
  for (DraftModel& model : draft.models) {
    if (!model.facts.base_of.empty()) take_facts_of_base(draft, model);
    if (!model.facts.average_of.empty()) take_facts_of_averaged(draft, model);
  }
}

void check_models(Draft& draft) {
  note_averages(draft);
  for (size_t i = 0; i < draft.nodes.size(); ++i) {
    if (!draft.nodes[i].needs) continue;
    for (const ModelNeed& need : draft.nodes[i].needs->models) note_use(draft, static_cast<int>(i), need);
  }
  check_forward_models(draft);
  check_shared_models(draft);
  note_sampling_apart(draft);
  const bool all_found = std::none_of(draft.nodes.begin(), draft.nodes.end(), [&](const DraftNode& node) {
    return node.needs && std::any_of(node.needs->models.begin(), node.needs->models.end(),
                                     [&](const ModelNeed& need) { return draft.find_model(need.model) < 0; });
  });
  // An unknown or broken node may be the one that trains or publishes.
  const bool all_known =
      std::all_of(draft.nodes.begin(), draft.nodes.end(), [](const DraftNode& n) { return n.needs && n.bound; });
  if (!all_known) return;
  for (const DraftModel& model : draft.models) {
    check_unpublished(draft, model);
    check_publisher(draft, model);
    check_average(draft, model);
    if (all_found) warn_of_idle(draft, model);
  }
  check_lag(draft);
}

void check_order_of_readers(Draft& draft) {
  for (size_t i = 0; i < draft.nodes.size(); ++i) {
    for (const ModelNeed& need : draft.nodes[i].needs->models) check_side_reader(draft, static_cast<int>(i), need);
  }
}

}  // namespace sluice::engine::checking
