#include "text/jinja/sandbox.h"

#include <memory>

#include "base/text/strings.h"

namespace sluice::text::jinja {

void Sandbox::adopt(Object* object, size_t extra_bytes) {
  constexpr size_t kObject = 96;  // the larger of our objects, with what the allocator adds
  std::unique_ptr<Object> guard(object);
  expect(extra_bytes + kObject);
  guard.release();
  object->sandbox_ = this;
  object->bytes_ = static_cast<int64_t>(extra_bytes + kObject);
  live_bytes_ += object->bytes_;
  object->next_ = first_;
  if (first_) first_->previous_ = object;
  first_ = object;
}

void Sandbox::grow(Object& object, size_t bytes) {
  expect(bytes);
  object.bytes_ += static_cast<int64_t>(bytes);
  live_bytes_ += static_cast<int64_t>(bytes);
}

void Sandbox::unlink(Object* object) {
  (object->previous_ ? object->previous_->next_ : first_) = object->next_;
  if (object->next_) object->next_->previous_ = object->previous_;
}

// What an object holds dies after it, from the same loop: a chain of a million lists takes no stack.
void Sandbox::release(Object* object) {
  unlink(object);
  object->next_ = dead_;
  dead_ = object;
  if (draining_) return;
  draining_ = true;
  while (dead_) {
    Object* dying = dead_;
    dead_ = dying->next_;
    live_bytes_ -= dying->bytes_;
    delete dying;
  }
  draining_ = false;
}

// Whatever is left hangs on a cycle. Nothing may die while its neighbours still point to it, hence the extra reference.
Sandbox::~Sandbox() {
  for (Object* object = first_; object; object = object->next_) ++object->references_;
  for (Object* object = first_; object; object = object->next_) object->clear();
  while (first_) {
    Object* object = first_;
    first_ = object->next_;
    delete object;
  }
}

void Sandbox::spend(size_t steps) {
  steps_ += static_cast<int64_t>(steps);
  if (steps_ > limits_.steps)
    throw Failure("the template takes more than " + std::to_string(limits_.steps) + " steps, the most that it may");
}

void Sandbox::expect(size_t bytes) {
  if (bytes <= static_cast<size_t>(limits_.live_bytes) && live_bytes_ + static_cast<int64_t>(bytes) <= limits_.live_bytes) return;
  throw Failure("the template's values take more than " + human_bytes(limits_.live_bytes) + " of memory, the most that they may");
}

void Sandbox::written(size_t bytes) {
  written_ += static_cast<int64_t>(bytes);
  work(bytes);
  if (written_ <= limits_.output_bytes) return;
  throw Failure("the template writes more than " + human_bytes(limits_.output_bytes) + ", the most that it may");
}

void Sandbox::enter() {
  if (++depth_ <= limits_.depth) return;
  --depth_;
  throw Failure("calls or data nest deeper than " + std::to_string(limits_.depth) + " levels");
}

void Sandbox::raise_limits(int64_t steps, int64_t bytes) {
  limits_.steps += steps;
  limits_.live_bytes += bytes;
  limits_.output_bytes += bytes;
}

}  // namespace sluice::text::jinja
