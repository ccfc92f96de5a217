#include "engine/contract/plugin/plugin.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "engine/contract/plugin/elf_file.h"
#include "tests/engine/toy_nodes.h"
#include "tests/source_folder.h"

namespace sluice::engine::testing::plugin_test {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr char kSanitizer[] = " -fsanitize=address";
#elif defined(__SANITIZE_THREAD__)
constexpr char kSanitizer[] = " -fsanitize=thread";
#else
constexpr char kSanitizer[] = "";
#endif

/// Compiles small plugins with the compiler of the machine, as a user would.
class Plugin : public ::testing::Test {
 protected:
  void SetUp() override {
    const bool has_compiler = std::system("c++ --version > /dev/null 2>&1") == 0;
    if (has_compiler) return;
    ASSERT_EQ(std::getenv("CI"), nullptr) << "no C++ compiler";
    GTEST_SKIP() << "no C++ compiler";
  }

  std::filesystem::path compiled(const std::string& name, const std::string& source) {
    const auto folder = std::filesystem::path(::testing::TempDir()) / "sluice_plugin_test";
    std::filesystem::create_directories(folder);
    const auto file = folder / (name + ".cpp"), library = folder / ("lib" + name + ".so");
    std::ofstream(file) << source;
    const std::string command = "c++ -std=c++20 -shared -fPIC" + std::string(kSanitizer) + " -I'" + tests::source_folder() +
                                "' -o '" + library.string() + "' '" + file.string() + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return library;
  }

  std::string refusal(const std::filesystem::path& path) {
    try {
      load_plugin(path, registry_);
    } catch (const UserError& error) {
      EXPECT_TRUE(registry_.nodes().empty() || registry_.find("gae") != nullptr);
      return error.problems()[0].message;
    }
    return "accepted";
  }

  Registry registry_;
};

constexpr char kDoubler[] = R"(#include "engine/contract/plugin/plugin.h"
namespace {
struct Params { std::string reads = "score"; };
class Doubler final : public sluice::engine::Node {
 public:
  static void describe(sluice::engine::Contract<Params>& c) {
    c.type("NAME", "twice the score");
    c.param("reads", &Params::reads);
  }
  explicit Doubler(const Params&) {}
  void process(sluice::engine::MicroBatch&) override {}
};
void add_nodes(sluice::engine::Registry& registry) { registry.add<Doubler>(); }
}
SLUICE_PLUGIN(add_nodes)
)";

TEST_F(Plugin, AddsItsNodeTypesAndTheyStay) {
  load_plugin(compiled("doubler", edited(kDoubler, "NAME", "doubler")), registry_);
  const NodeType* type = registry_.find("doubler");
  ASSERT_NE(type, nullptr);
  EXPECT_EQ(type->origin, "libdoubler.so");
  Problems problems;
  BindContext context{registry_, problems, "type \"doubler\""};
  const auto params = type->bind(Table{}, context);
  NodeResources resources;
  EXPECT_NE(type->make(params.get(), resources), nullptr);
}

TEST_F(Plugin, IsRefusedWhereANameIsTaken) {
  add_toy_nodes(registry_);
  EXPECT_EQ(refusal(compiled("taken", edited(kDoubler, "NAME", "gae"))),
            "node type \"gae\" of libtaken.so is already taken by builtin");
}

TEST_F(Plugin, IsRefusedWhereItWasBuiltForAnotherVersion) {
  const auto library = compiled("old", R"(extern "C" const char* sluice_plugin_abi() { return "sluice=0.0.9;c++=2017"; }
extern "C" void sluice_plugin_register(void*) {}
)");
  EXPECT_EQ(refusal(library), "plugin " + library.string() + " was built for sluice 0.0.9; this is sluice " + kVersionText);
}

TEST_F(Plugin, IsRefusedWhereItWasBuiltInAnotherWay) {
  std::string abi = abi_text();
  abi = edited(abi, "debug containers=0", "debug containers=1");
  const auto library = compiled("debug", "extern \"C\" const char* sluice_plugin_abi() { return \"" + abi +
                                             "\"; }\nextern \"C\" void sluice_plugin_register(void*) {}\n");
  EXPECT_EQ(refusal(library),
            "plugin " + library.string() + " was built with debug containers 1; this program has debug containers 0");
}

// Its headers are those of another version, and nothing but what they compile into it says so.
TEST_F(Plugin, IsRefusedWhereItsHeadersAreOfAnotherVersion) {
  const auto library = compiled("headers", R"(#include "engine/contract/version.h"
namespace sluice { constexpr char kOldVersion[] = "0.0.9"; }
#define kVersionText kOldVersion
#include "engine/contract/plugin/plugin.h"
static void add_nodes(sluice::engine::Registry&) {}
SLUICE_PLUGIN(add_nodes)
)");
  EXPECT_EQ(refusal(library), "plugin " + library.string() + " was built for sluice 0.0.9; this is sluice " + kVersionText);
}

TEST_F(Plugin, IsRefusedWhereItDoesNotSayHowItWasBuilt) {
  const auto library = compiled("silent", R"(extern "C" const char* sluice_plugin_abi() { return nullptr; }
extern "C" void sluice_plugin_register(void*) {}
)");
  EXPECT_EQ(refusal(library), "plugin " + library.string() + " was built for sluice nothing; this is sluice " + kVersionText);
}

// Where the constructor of its node fails, or what it needs: the error names type and plugin.
TEST_F(Plugin, IsNamedWhereItsTypesThrow) {
  const std::string needs = edited(edited(kDoubler, "NAME", "needy"), "c.param(",
                                   "c.needs([](const Params&, sluice::engine::NodeNeeds&) { throw 42; });\n    c.param(");
  load_plugin(compiled("needy", needs), registry_);
  load_plugin(
      compiled("unmade", edited(edited(kDoubler, "NAME", "unmade"), "(const Params&) {}", "(const Params&) { throw \"no\"; }")),
      registry_);
  const auto said = [&](const char* name, const auto& call) {
    Problems problems;
    BindContext context{registry_, problems, name};
    const NodeType* type = registry_.find(name);
    const auto params = type->bind(Table{}, context);
    NodeResources resources;
    resources.node = "mine";
    try {
      call(*type, params.get(), resources);
    } catch (const UserError& error) {
      return error.message();
    }
    return std::string();
  };
  EXPECT_EQ(
      said("needy", [](const NodeType& type, const void* params, NodeResources&) { type.needs(params); }),
      "what is needed of node type \"needy\" of plugin libneedy.so is not known: it threw something that is no std::exception");
  EXPECT_EQ(
      said("unmade", [](const NodeType& type, const void* params, NodeResources& resources) { type.make(params, resources); }),
      "node 'mine': the constructor of node type \"unmade\" of plugin libunmade.so failed: it threw something that is no "
      "std::exception");
}

TEST_F(Plugin, IsRefusedWhereItThrows) {
  const auto library = compiled("throws", R"(#include <stdexcept>
#include "engine/contract/plugin/plugin.h"
static void add_nodes(sluice::engine::Registry&) { throw std::runtime_error("no licence"); }
SLUICE_PLUGIN(add_nodes)
)");
  EXPECT_EQ(refusal(library), "plugin " + library.string() + " failed while it registered its types: no licence");
}

// Its initialisers run before anything of it is asked.
TEST_F(Plugin, IsRefusedWhereAnInitialiserOfItThrows) {
  const std::string thrower = R"(#include <stdexcept>
struct Thrower { Thrower() { throw WHAT; } };
static Thrower thrower;
)";
  const auto error = compiled("initialiser", edited(thrower, "WHAT", "std::runtime_error(\"no licence\")"));
  EXPECT_EQ(refusal(error), "plugin " + error.string() + " failed while it was loaded: no licence");
  const auto number = compiled("number", edited(thrower, "WHAT", "5"));
  EXPECT_EQ(refusal(number),
            "plugin " + number.string() + " failed while it was loaded: it threw something that is no std::exception");
}

TEST_F(Plugin, IsRefusedWhereItDeclaresWhatCouldNotBeReadAgain) {
  const auto library = compiled("odd", edited(edited(kDoubler, "NAME", "odd"), "c.param(\"reads\"", "c.param(\"a b\""));
  EXPECT_EQ(refusal(library),
            "plugin " + library.string() +
                " failed while it registered its types: node type \"odd\": parameter \"a b\" has a name that is no "
                "bare key of TOML: letters, digits, _ and -");
}

// Mapped as its header says it would end the process with SIGBUS at the first look after its end.
TEST_F(Plugin, IsRefusedWhereItsFileIsCutOff) {
  const auto library = compiled("whole", edited(kDoubler, "NAME", "whole")), cut = library.parent_path() / "libcut.so";
  const auto bytes = std::filesystem::file_size(library);
  EXPECT_FALSE(is_cut_off(library));
  for (const auto left : {bytes - 1, bytes / 2, bytes / 100, std::uintmax_t{100}}) {
    std::filesystem::copy_file(library, cut, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(cut, left);
    EXPECT_EQ(refusal(cut), "plugin " + cut.string() + " cannot be loaded: the file is cut off") << left << " of " << bytes;
  }
  std::filesystem::resize_file(cut, 10);
  EXPECT_TRUE(refusal(cut).starts_with("plugin " + cut.string() + " cannot be loaded: ")) << refusal(cut);
}

TEST_F(Plugin, IsRefusedWhereTheFileIsMissing) {
  EXPECT_EQ(refusal("/nowhere/libmine.so"), "there is no plugin /nowhere/libmine.so");
}

TEST_F(Plugin, IsRefusedWhereTheFileIsNoLibrary) {
  const auto file = std::filesystem::path(::testing::TempDir()) / "sluice_not_a_library.so";
  std::ofstream(file) << "hello";
  EXPECT_TRUE(refusal(file).starts_with("plugin " + file.string() + " cannot be loaded: ")) << refusal(file);
}

TEST_F(Plugin, IsRefusedWhereTheLibraryIsNoPlugin) {
  double (*function)(double) = std::cos;
  Dl_info info;
  ASSERT_NE(dladdr(reinterpret_cast<void*>(function), &info), 0);
  EXPECT_EQ(refusal(info.dli_fname), std::string(info.dli_fname) + " is a shared library but not a plugin of sluice");
}

}  // namespace
}  // namespace sluice::engine::testing::plugin_test
