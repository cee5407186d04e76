// The border of memory that is kept from tree to tree.

#include "core/kept_memory.hpp"

#include <nanobind/nanobind.h>

#include "binding/arguments.hpp"

namespace branchwise {

namespace {

// A context of `with`: what the calling thread grows meanwhile takes its memory from here.
class KeptMemory {
  public:
    void enter() {
        if (used_) refuse("kept memory must be entered by one thread at a time");
        used_ = true;
        before_ = std::exchange(KeptBlocks::of_thread(), &blocks_);
        nb::find(this).inc_ref();  // until it is left
    }

    void leave() {
        if (!used_ || KeptBlocks::of_thread() != &blocks_)
            refuse("kept memory must be left by the thread that has entered it last");
        used_ = false;
        KeptBlocks::of_thread() = before_;
        nb::find(this).dec_ref();
    }

  private:
    KeptBlocks blocks_;
    KeptBlocks* before_ = nullptr;
    bool used_ = false;
};

}  // namespace

}  // namespace branchwise

void bind_kept_memory(nanobind::module_& m) {
    using branchwise::KeptMemory;
    namespace nb = nanobind;
    nb::class_<KeptMemory>(m, "KeptMemory")
        .def(nb::init<>())
        .def("__enter__", &KeptMemory::enter)
        .def("__exit__", [](KeptMemory& memory, const nb::args&) { memory.leave(); });
}
