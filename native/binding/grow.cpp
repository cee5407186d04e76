#include "bit_rows/bit_grower.hpp"
#include "records/record_grower.hpp"
#include "core/parallel.hpp"

namespace branchwise {

namespace {

template <typename W>
std::vector<Grown> grow_general(const Problem& problem, const Impurities& impurities,
                                const Watch& watch, ThreadPool& pool) {
    const Numbers numbers(problem, pool);
    return Team<RecordGrower<W>>(problem, watch, pool).grow([&](ThreadPool& sharing) {
        return RecordGrower<W>(problem, impurities, numbers, sharing);
    });
}

}  // namespace

std::vector<Grown> grow(const Problem& problem, const Impurities& impurities, const Watch& watch,
                        unsigned n_threads) {
    ThreadPool pool(n_threads, problem.worth_sharing);
    std::vector<uint32_t> values;
    if (BitGrower::suits(problem, values)) {
        BitGrower::Buffers buffers;
        return Team<BitGrower>(problem, watch, pool).grow([&](ThreadPool& sharing) {
            return BitGrower(problem, impurities, values, buffers, sharing);
        });
    }
    if (problem.weights || problem.fractions)
        return grow_general<double>(problem, impurities, watch, pool);
    return grow_general<uint32_t>(problem, impurities, watch, pool);
}

}  // namespace branchwise
