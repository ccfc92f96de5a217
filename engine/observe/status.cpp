#include "engine/observe/status.h"

#include "base/error.h"
#include "base/json/json.h"

namespace sluice::engine {
namespace {

// One list of fields a struct, for both directions.
template <class Archive>
void fields(Archive& a, auto& e, const RunStatus::Executor*) {
  a("name", e.name), a("threads", e.threads), a("working_on", e.working_on), a("for_seconds", e.for_seconds);
  a("busy_seconds", e.busy_seconds), a("queued", e.queued);
}

template <class Archive>
void fields(Archive& a, auto& n, const RunStatus::Node*) {
  a("name", n.name), a("executor", n.executor), a("micro_batches", n.micro_batches), a("tokens", n.tokens);
  a("busy_seconds", n.busy_seconds), a("queued", n.queued), a("held", n.held), a("waits_for", n.waits_for);
}

template <class Archive>
void fields(Archive& a, auto& e, const RunStatus::Edge*) {
  a("from", e.from), a("to", e.to), a("micro_batches", e.micro_batches), a("tokens", e.tokens), a("bytes", e.bytes);
}

template <class Archive>
void fields(Archive& a, auto& c, const MemoryClass*) {
  a("name", c.name), a("planned_bytes", c.planned_bytes), a("peak_bytes", c.peak_bytes);
}

template <class Archive>
void fields(Archive& a, auto& r, const RankSeen*) {
  a("rank", r.rank), a("host", r.host), a("pid", r.pid), a("doing", r.last.doing);
  a("iterations_done", r.last.iterations_done), a("tokens_in_flight", r.last.tokens_in_flight);
  a("resident_bytes", r.last.resident_bytes), a("silent_seconds", r.silent_seconds);
}

template <class Archive>
void fields(Archive& a, auto& s, const RunStatus*) {
  a("pipeline", s.pipeline), a("state", s.state), a("pid", s.pid), a("seconds", s.seconds), a("iterations", s.iterations);
  a("iterations_done", s.iterations_done), a("iterations_before", s.iterations_before);
  a("sampling_iteration", s.sampling_iteration);
  a("running_samples", s.running_samples), a("tokens_in_flight", s.tokens_in_flight);
  a("tokens_in_flight_peak", s.tokens_in_flight_peak), a("budget", s.budget), a("column_bytes", s.column_bytes);
  a("column_bytes_peak", s.column_bytes_peak), a("resident_bytes", s.resident_bytes),
      a("resident_bytes_peak", s.memory.peak_bytes), a("planned_bytes", s.memory.planned_bytes);
  a("machine_bytes", s.memory.machine_bytes), a.list("memory", s.memory.classes);
  a.list("executors", s.executors), a.list("nodes", s.nodes), a.list("edges", s.edges);
  a.list("ranks", s.ranks);
}

struct Writer {
  Json json = Json::object();

  template <class T>
  void operator()(const char* name, const T& value) {
    json[name] = value;
  }
  template <class T>
  void list(const char* name, const std::vector<T>& items) {
    Json& array = json[name] = Json::array();
    for (const T& item : items) {
      Writer inner;
      fields(inner, item, static_cast<const T*>(nullptr));
      array.push_back(std::move(inner.json));
    }
  }
};

struct Reader {
  const Json& json;

  template <class T>
  void operator()(const char* name, T& value) {
    json.at(name).get_to(value);
  }
  template <class T>
  void list(const char* name, std::vector<T>& items) {
    for (const Json& element : json.at(name)) {
      Reader inner{element};
      fields(inner, items.emplace_back(), static_cast<const T*>(nullptr));
    }
  }
};

}  // namespace

std::string status_json(const RunStatus& status) {
  Writer writer;
  fields(writer, status, static_cast<const RunStatus*>(nullptr));
  return writer.json.dump() + "\n";
}

RunStatus parse_status(const std::string& text, const std::string& name) {
  RunStatus status;
  try {
    const Json json = parse_json(text, name);
    Reader reader{json};
    fields(reader, status, static_cast<const RunStatus*>(nullptr));
  } catch (const Json::exception& error) {
    throw UserError(name + " is not the status of a run: " + reason_of_json_error(error.what()));
  }
  return status;
}

}  // namespace sluice::engine
