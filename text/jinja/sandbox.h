#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace sluice::text::jinja {

/// What one render may use. A template is a program from a stranger: every one of these is needed.
struct Limits {
  int64_t steps = 1'000'000;        // a node evaluated, an element visited, 32 bytes copied or searched: one step each
  int64_t live_bytes = 64 << 20;    // of the values that are alive at once, the data given to the template included
  int64_t output_bytes = 32 << 20;  // written in all, also into blocks that are captured
  int64_t depth = 1000;             // of calls and of nested data
};

/// Why a template cannot be rendered. Whoever knows the line adds it and makes a UserError of it.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Sandbox;

/// A value that lives on the heap of one render: counted by its Values, charged to its Sandbox.
class Object {
 public:
  Object() = default;
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  /// Lets go of every Value that it holds; what it is afterwards does not matter, only that it can be destroyed.
  virtual void clear() {}

 private:
  friend class Sandbox;
  friend class Value;
  Sandbox* sandbox_ = nullptr;
  Object* next_ = nullptr;
  Object* previous_ = nullptr;
  int64_t bytes_ = 0;
  uint32_t references_ = 0;
};

/// Owns the objects of one render and counts what it uses. One thread. Must outlive every Value made in it; cycles of objects are
/// freed at the end. Destruction never recurses, however deep a value is.
class Sandbox {
 public:
  explicit Sandbox(const Limits& limits) : limits_(limits) {}
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  /// Takes over a new object that holds `extra_bytes` besides itself. Throws Failure, and frees it, when that is over the limit.
  void adopt(Object* object, size_t extra_bytes);
  void grow(Object& object, size_t bytes);
  void release(Object* object);

  /// Throws Failure when the render has taken more steps than it may.
  void spend(size_t steps = 1);
  /// `bytes` are about to be copied or searched.
  void work(size_t bytes) { spend(1 + bytes / 32); }
  /// `bytes` are about to be allocated: refused at once when they would be over the limit.
  void expect(size_t bytes);
  void written(size_t bytes);

  void enter();
  void leave() { --depth_; }

  int64_t live_bytes() const { return live_bytes_; }
  void raise_limits(int64_t steps, int64_t bytes);

 private:
  void unlink(Object* object);

  Limits limits_;
  Object* first_ = nullptr;
  Object* dead_ = nullptr;  // to be deleted, linked by next_
  bool draining_ = false;
  int64_t live_bytes_ = 0;
  int64_t steps_ = 0;
  int64_t written_ = 0;
  int64_t depth_ = 0;
};

/// One level of a recursion over calls or data.
class Nesting {
 public:
  explicit Nesting(Sandbox& sandbox) : sandbox_(sandbox) { sandbox_.enter(); }
  ~Nesting() { sandbox_.leave(); }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  Sandbox& sandbox_;
};

}  // namespace sluice::text::jinja
