#include "base/process/world_environment.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/text/slurm_text.h"
#include "base/text/strings.h"

namespace sluice {
namespace {

constexpr int64_t kMostRanks = 1'000'000;
constexpr int64_t kLastPort = 65'535;
constexpr const char* kServedByTorchrun = "TORCHELASTIC_USE_AGENT_STORE";
constexpr int64_t kFirstSlurmPort = 20'000, kSlurmPorts = 10'000;
// Slurm numbers from here on what is no step of srun: the script of a job, and the shell that salloc opens.
constexpr int64_t kFirstSpecialStep = 0xffff'fff0;

// How one way of starting calls what it tells.
struct Starter {
  std::string name;
  std::string sets_both;
  std::string rank, size, local_rank, local_size;
};

Starter torchrun() {
  return {"torchrun or rlhf-run launch",
          "torchrun and rlhf-run launch set both",
          "RANK",
          "WORLD_SIZE",
          "LOCAL_RANK",
          "LOCAL_WORLD_SIZE"};
}

Starter open_mpi() {
  const std::string world = "OMPI_COMM_WORLD_";
  return {"Open MPI", "mpirun sets both", world + "RANK", world + "SIZE", world + "LOCAL_RANK", world + "LOCAL_SIZE"};
}

Starter mpich() {
  return {"MPICH or Intel MPI", "mpiexec sets both", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
}

// What the environment says, as one way of starting sets it.
class Told {
 public:
  Told(const EnvironmentVariable& variable, Starter starter) : variable_(variable), starter_(std::move(starter)) {}

  const Starter& starter() const { return starter_; }
  bool has(const std::string& name) const { return text(name).has_value(); }

  std::optional<std::string> text(const std::string& name) const {
    auto value = variable_(name);
    return value && !value->empty() ? value : std::nullopt;
  }

  std::string needed(const std::string& name) const {
    if (auto value = text(name)) return *value;
    const std::string& known = has(starter_.rank) ? starter_.rank : starter_.size;
    refuse(known + " is " + text(known).value_or("") + ", but " + name + " is not set: " + starter_.sets_both);
  }

  int64_t number(const std::string& name, int64_t least, int64_t most) const {
    const std::string value = needed(name);
    const char* const end = value.data() + value.size();
    int64_t number = 0;
    const auto [read_to, error] = std::from_chars(value.data(), end, number);
    if (error == std::errc() && read_to == end && least <= number && number <= most) return number;
    refuse(name + " is " + sluice::quoted(value) + ", which is no whole number from " + std::to_string(least) + " to " +
           std::to_string(most));
  }
  int count(const std::string& name) const { return static_cast<int>(number(name, 1, kMostRanks)); }
  int index(const std::string& name) const { return static_cast<int>(number(name, 0, kMostRanks)); }

  void demand(bool agree, const std::string& one, const std::string& other) const {
    if (!agree) refuse(one + " is " + needed(one) + ", but " + other + " is " + needed(other));
  }

  [[noreturn]] void refuse(const std::string& message) const {
    throw UserError(message, "this is read as a start by " + starter_.name + "; to run one process alone, unset " +
                                 starter_.rank + " and " + starter_.size);
  }

 private:
  const EnvironmentVariable& variable_;
  const Starter starter_;
};

// The first of two names that is set: a step may have fewer tasks and nodes than its job, and older versions do not tell.
std::string of_step_or_job(const EnvironmentVariable& variable, const std::string& step, const std::string& job) {
  return variable(step) ? step : job;
}

Starter slurm(const EnvironmentVariable& variable) {
  return {"Slurm",         "srun sets both",
          "SLURM_PROCID",  of_step_or_job(variable, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
          "SLURM_LOCALID", of_step_or_job(variable, "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE")};
}

// Rank and size; false: the process is alone.
bool read_ranks(const Told& told, WorldEnvironment& world) {
  const Starter& names = told.starter();
  if (told.text(names.size) == "1" && !told.has(names.rank)) return false;
  world.rank = told.index(names.rank);
  world.size = told.count(names.size);
  told.demand(world.rank < world.size, names.rank, names.size);
  return world.size > 1;
}

int tasks_of_this_node(const Told& told) {
  const std::string& name = told.starter().local_size;
  const std::string tasks = told.needed(name);
  const int node = told.index("SLURM_NODEID");
  if (const auto count = tasks_of_node(tasks, node)) return *count;
  told.refuse(name + " is " + sluice::quoted(tasks) + ", which does not say how many tasks node " + std::to_string(node) +
              " has");
}

void read_local_ranks(const Told& told, int local_size, WorldEnvironment& world) {
  const Starter& names = told.starter();
  world.local_rank = told.index(names.local_rank);
  world.local_size = local_size;
  told.demand(world.local_rank < world.local_size, names.local_rank, names.local_size);
  told.demand(world.local_rank <= world.rank, names.local_rank, names.rank);
  told.demand(world.local_size <= world.size, names.local_size, names.size);
}

int port(const Told& told) { return static_cast<int>(told.number("MASTER_PORT", 1, kLastPort)); }

std::optional<WorldEnvironment> by_torchrun(const Told& told) {
  WorldEnvironment world{.from = told.starter().name};
  if (!read_ranks(told, world)) return std::nullopt;
  read_local_ranks(told, told.count(told.starter().local_size), world);
  world.host = told.needed("MASTER_ADDR");
  world.port = port(told);
  world.served = told.text(kServedByTorchrun) == "True";
  return world;
}

std::optional<WorldEnvironment> by_mpi(const Told& told) {
  WorldEnvironment world{.from = told.starter().name};
  if (!read_ranks(told, world)) return std::nullopt;
  read_local_ranks(told, told.count(told.starter().local_size), world);
  if (world.local_size < world.size && !told.has("MASTER_ADDR")) {
    throw UserError("the " + std::to_string(world.size) + " ranks of " + world.from +
                        " are on several hosts, and MASTER_ADDR does not say on which rank 0 is",
                    "give all ranks MASTER_ADDR, the name of the first host, and MASTER_PORT unless it is " +
                        std::to_string(kDefaultWorldPort));
  }
  world.host = told.text("MASTER_ADDR").value_or("127.0.0.1");
  world.port = told.has("MASTER_PORT") ? port(told) : kDefaultWorldPort;
  return world;
}

std::string first_host_of_step(const Told& told) {
  const std::string name = told.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  const std::string hosts = told.needed(name);
  if (const auto first = first_host(hosts)) return *first;
  told.refuse(name + " is " + sluice::quoted(hosts) + ", which is no list of hosts");
}

// The same on all hosts of a job, and hardly that of another job on one of them.
int port_of_job(const Told& told) {
  constexpr int64_t kLastJob = int64_t{1} << 32;
  return static_cast<int>(kFirstSlurmPort + told.number("SLURM_JOB_ID", 0, kLastJob) % kSlurmPorts);
}

std::optional<WorldEnvironment> by_slurm(const Told& told) {
  WorldEnvironment world{.from = told.starter().name};
  if (!read_ranks(told, world)) return std::nullopt;
  read_local_ranks(told, tasks_of_this_node(told), world);
  const auto host = told.text("MASTER_ADDR");
  world.host = host ? *host : first_host_of_step(told);
  world.port = told.has("MASTER_PORT") ? port(told) : port_of_job(told);
  return world;
}

bool is_step_of_srun(const Told& told) {
  if (!told.has("SLURM_PROCID") || !told.has("SLURM_STEP_ID")) return false;
  return told.number("SLURM_STEP_ID", 0, std::numeric_limits<uint32_t>::max()) < kFirstSpecialStep;
}

// srun speaks to MPI programs by PMI too. Other starters run inside of a step of one task a host, whose numbers are not theirs.
bool is_of_slurm(const Told& mpich, const Told& slurm) {
  const auto agree = [&](const std::string& one, const std::string& other) { return mpich.text(one) == slurm.text(other); };
  return is_step_of_srun(slurm) && agree(mpich.starter().rank, slurm.starter().rank) &&
         agree(mpich.starter().size, slurm.starter().size);
}

bool is_there(const Told& told) { return told.has(told.starter().rank) || told.has(told.starter().size); }

}  // namespace

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::vector<std::string> environment_for(const WorldEnvironment& world) {
  const std::vector<std::pair<std::string, std::string>> told{
      {"RANK", std::to_string(world.rank)},
      {"WORLD_SIZE", std::to_string(world.size)},
      {"LOCAL_RANK", std::to_string(world.local_rank)},
      {"LOCAL_WORLD_SIZE", std::to_string(world.local_size)},
      {"MASTER_ADDR", world.host},
      {"MASTER_PORT", std::to_string(world.port)},
      {kServedByTorchrun, world.served ? "True" : "False"},
  };
  std::vector<std::string> variables;
  for (char** variable = ::environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    if (std::ranges::none_of(told, [&](const auto& one) { return one.first == name; })) variables.emplace_back(text);
  }
  for (const auto& [name, value] : told) variables.push_back(name + "=" + value);
  return variables;
}

std::optional<WorldEnvironment> world_environment(const EnvironmentVariable& variable) {
  const Told torchrun_told(variable, torchrun()), open_mpi_told(variable, open_mpi()), mpich_told(variable, mpich()),
      slurm_told(variable, slurm(variable));
  if (is_there(torchrun_told)) return by_torchrun(torchrun_told);
  if (is_there(open_mpi_told)) return by_mpi(open_mpi_told);
  if (is_there(mpich_told) && !is_of_slurm(mpich_told, slurm_told)) return by_mpi(mpich_told);
  if (is_step_of_srun(slurm_told)) return by_slurm(slurm_told);
  return std::nullopt;
}

}  // namespace sluice
