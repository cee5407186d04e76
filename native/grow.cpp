#include "bits.hpp"
#include "general.hpp"
#include "parallel.hpp"

namespace branchwise {

namespace {

template <typename W>
std::vector<Grown> grow_general(const Problem& problem, const Masses& masses, const Watch& watch, Crew& crew) {
    const Numbers numbers(problem, crew);
    return Team<GeneralGrower<W>>(problem, watch, crew).grow([&](Crew& sharing) {
        return GeneralGrower<W>(problem, masses, numbers, sharing);
    });
}

}  // namespace

std::vector<Grown> grow(const Problem& problem, const Masses& masses, const Watch& watch, unsigned n_threads) {
    Crew crew(n_threads, problem.worth_sharing);
    std::vector<uint32_t> values;
    if (BitGrower::suits(problem, values)) {
        BitGrower::Buffers buffers;
        return Team<BitGrower>(problem, watch, crew).grow([&](Crew& sharing) {
            return BitGrower(problem, masses, values, buffers, sharing);
        });
    }
    if (problem.weights || problem.fractions) return grow_general<double>(problem, masses, watch, crew);
    return grow_general<uint32_t>(problem, masses, watch, crew);
}

}  // namespace branchwise
