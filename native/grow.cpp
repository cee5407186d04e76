#include "bits.hpp"
#include "general.hpp"
#include "parallel.hpp"

namespace branchwise {

namespace {

template <typename W>
std::vector<Grown> grow_general(const Problem& problem, const Masses& masses, const Watch& watch, unsigned n_threads) {
    const Numbers numbers(problem);
    return Team<GeneralGrower<W>>(watch, n_threads).grow([&] { return GeneralGrower<W>(problem, masses, numbers); });
}

}  // namespace

std::vector<Grown> grow(const Problem& problem, const Masses& masses, const Watch& watch, unsigned n_threads) {
    std::vector<uint32_t> values;
    if (BitGrower::suits(problem, values)) {
        BitGrower::Buffers buffers;
        return Team<BitGrower>(watch, n_threads).grow([&] { return BitGrower(problem, masses, values, buffers); });
    }
    if (problem.weights || problem.fractions) return grow_general<double>(problem, masses, watch, n_threads);
    return grow_general<uint32_t>(problem, masses, watch, n_threads);
}

}  // namespace branchwise
