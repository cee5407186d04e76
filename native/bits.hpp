// The fast representation: rows as one-hot bits, counted by positional popcount.
//
// It serves rows that count as one and have only categories (missing being one).
// A value of a column with V values is one bit of V - 1; the last value is the
// absence of the others. A column's bits never straddle a 64-bit word. Within a
// node, rows are sorted by class, so the label needs no space and the weight of
// (value, class) is the number of set bits in one position of one segment.
//
// Identities: the last value's count is the segment's size less the other counts;
// a child's class segments follow from the counts of the chosen column, so rows can
// be moved to their places in one pass; a column that is constant at a node is
// constant below it. A node owns [begin, begin + n) of one of two buffers, and its
// children the same range of the other (see rows.hpp).

#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "choose.hpp"

namespace branchwise {

using Pair = uint64_t __attribute__((vector_size(16)));  // two words of a row

class BitGrower {
  public:
    static constexpr size_t most_columns = 256;
    static constexpr size_t most_values = 64;
    static constexpr size_t most_words = 64;
    static constexpr size_t most_classes = 64;

    // Whether the representation can hold the problem; `values` gets the number of
    // values of each column.
    static bool suits(const Problem& problem, std::vector<uint32_t>& values) {
        if (problem.weights || problem.fractions) return false;
        if (problem.columns.size() > most_columns || problem.n_classes > int(most_classes)) return false;
        values.clear();
        size_t words = 0;
        size_t room = 0;
        for (const Column& column : problem.columns) {
            if (column.numeric || column.n_codes > most_values + 1) return false;
            const bool some_missing = has_missing(column, problem.n_rows);
            if (some_missing && problem.missing != Policy::branch) return false;
            const uint32_t count = column.n_codes - (some_missing ? 0 : 1);
            if (count > most_values) return false;
            values.push_back(count);
            const size_t bits = count ? count - 1 : 0;
            if (bits > room) {
                ++words;
                room = 64;
            }
            room -= bits;
        }
        return words <= most_words;
    }

    // Rows, shared by all growers of a tree; each touches only those of its nodes.
    struct Buffers {
        Array<Pair> side[2];
    };

    BitGrower(const Problem& problem, const Masses& masses, const std::vector<uint32_t>& values, Buffers& buffers)
        : problem_(problem), masses_(masses), buffers_(buffers), classes_(size_t(problem.n_classes)) {
        lay_out(values);
        stride_ = (n_words_ + 1) / 2 * 2;
        counts_.resize(classes_ * stride_ * 64);
        candidates_.resize(problem.columns.size());
        size_t most = 1;
        for (const Field& field : fields_) most = std::max<size_t>(most, field.values);
        cells_.resize(most * classes_);
        sizes_.resize(most);
        starts_.resize(most);
        for (auto& places : places_) places.resize(most);
        counts_of_class_.resize(classes_);
    }

    // An open node: its rows and the columns still worth asking.
    struct Job {
        int64_t node = 0;
        int64_t depth = 0;
        size_t begin = 0;
        size_t n = 0;
        int side = 0;
        uint64_t alive[most_columns / 64] = {};
    };

    size_t n_nodes() const { return grown_.nodes.size(); }
    size_t work(const Job& job) const { return job.n * n_words_; }
    Grown take() { return std::move(grown_); }

    // Make the root, an open node unless it is a leaf.
    void plant(std::vector<Job>& jobs) {
        Job root = make_root();
        if (may_be_split(counts_of_class_.data(), root.n, 0)) jobs.push_back(root);
    }

    // Make a root of one's own for an open node of another grower.
    int64_t adopt(const Job& job, const Grown& from) {
        const int64_t node = add_nodes(1);
        Node& root = grown_.nodes[size_t(node)];
        root.code = from.nodes[size_t(job.node)].code;
        root.cases = double(job.n);
        std::copy_n(&from.weights[size_t(job.node) * classes_], classes_, &grown_.weights[size_t(node) * classes_]);
        return node;
    }

    // Split an open node, or leave it a leaf; its open children are added to the jobs.
    void split(const Job& job, std::vector<Job>& stack) {
        const double* weights = &grown_.weights[size_t(job.node) * classes_];
        for (size_t c = 0; c < classes_; ++c) counts_of_class_[c] = uint32_t(weights[c]);
        const Scale scale(double(job.n), masses_, problem_);
        const int64_t whole = masses_.impurity(problem_.criterion, counts_of_class_.data(), problem_.n_classes,
                                               uint32_t(job.n));
        const uint64_t* node_rows = rows(job.side) + job.begin * stride_;
        const bool small = job.n <= small_node;
        if (!small) count_bits(node_rows);
        const auto count = [&](size_t j) {
            if (small) count_small(node_rows, j);
            else count_from_bits(j);
        };
        Job below = job;
        double top = no_score;
        for_each_alive(job, fields_.size(), [&](size_t j) {
            count(j);
            int64_t drop = -1;
            candidates_[j].score = score(j, whole, scale, below, drop);
            top = std::max(top, candidates_[j].score);
            // Nothing beats branches that are all pure, and a later column would lose
            // the tie. An impure branch costs bits, which no tolerance covers here.
            return !(small && drop == whole && problem_.criterion == Criterion::gain);
        });
        if (top == no_score) return;
        const double least = scale.least(top);
        size_t best = 0;
        for_each_alive(job, fields_.size(), [&](size_t j) {
            best = j;
            return candidates_[j].score < least;
        });
        count(best);
        carry_out(job, below, best, node_rows, stack);
    }

  private:
    static constexpr size_t small_node = 16;

    // Where a column's bits lie.
    struct Field {
        size_t word = 0;
        unsigned shift = 0;
        uint32_t values = 0;
        uint64_t mask = 0;
        uint64_t last = 0;  // the bit that stands for the last value, once extracted

        uint32_t value(const uint64_t* row) const {
            return static_cast<uint32_t>(__builtin_ctzll(((row[word] >> shift) & mask) | last));
        }
    };

    static bool has_missing(const Column& column, size_t n_rows) {
        if (column.width != 1) return true;  // more than 254 values: not for this path
        const void* found = std::memchr(column.codes, int(column.missing_code()), n_rows);
        return found != nullptr;
    }

    void lay_out(const std::vector<uint32_t>& values) {
        unsigned room = 0;
        for (uint32_t count : values) {
            Field field;
            const unsigned bits = count ? count - 1 : 0;
            if (bits > room) {
                ++n_words_;
                room = 64;
            }
            field.word = n_words_ ? n_words_ - 1 : 0;
            field.shift = bits ? 64 - room : 0;
            field.values = count;
            field.last = uint64_t(1) << bits;
            field.mask = field.last - 1;
            room -= bits;
            fields_.push_back(field);
        }
        n_words_ = std::max<size_t>(n_words_, 1);
    }

    // Rows as bits, sorted by class.
    Job make_root() {
        Job root;
        std::fill(counts_of_class_.begin(), counts_of_class_.end(), 0);
        for (size_t row = 0; row < problem_.n_rows; ++row) ++counts_of_class_[problem_.labels[row]];
        std::vector<size_t> next(classes_, 0);
        for (size_t c = 1; c < classes_; ++c) next[c] = next[c - 1] + counts_of_class_[c - 1];
        for (auto& side : buffers_.side) side.resize(problem_.n_rows * stride_ / 2);
        constexpr size_t block = 1024;
        std::vector<uint64_t> words(block * stride_);
        for (size_t start = 0; start < problem_.n_rows; start += block) {
            const size_t n = std::min(block, problem_.n_rows - start);
            std::fill(words.begin(), words.end(), 0);
            for (size_t j = 0; j < fields_.size(); ++j) set_bits(words.data(), j, start, n);
            for (size_t i = 0; i < n; ++i)
                std::memcpy(rows(0) + next[problem_.labels[start + i]]++ * stride_, &words[i * stride_],
                            stride_ * sizeof(uint64_t));
        }
        root.n = problem_.n_rows;
        for (size_t j = 0; j < fields_.size(); ++j)
            if (fields_[j].values > 1) root.alive[j / 64] |= uint64_t(1) << (j % 64);
        add_nodes(1);
        grown_.nodes[0].cases = double(root.n);
        for (size_t c = 0; c < classes_; ++c) grown_.weights[c] = counts_of_class_[c];
        return root;
    }

    void set_bits(uint64_t* words, size_t j, size_t start, size_t n) const {
        const Field& field = fields_[j];
        const auto* codes = static_cast<const uint8_t*>(problem_.columns[j].codes) + start;
        uint64_t* word = words + field.word;
        const uint64_t mask = field.mask << field.shift;
        // The last value's bit falls outside the mask, or wraps to nothing.
        for (size_t i = 0; i < n; ++i, word += stride_)
            *word |= ((uint64_t(1) << codes[i]) << field.shift) & mask;
    }

    uint64_t* rows(int side) const { return reinterpret_cast<uint64_t*>(buffers_.side[side].data()); }

    int64_t add_nodes(size_t count) {
        const auto first = int64_t(grown_.nodes.size());
        grown_.nodes.resize(grown_.nodes.size() + count);
        grown_.weights.resize(grown_.weights.size() + count * classes_, 0.0);
        return first;
    }

    bool may_be_split(const uint32_t* counts, size_t n, int64_t depth) const {
        if (problem_.max_depth >= 0 && depth >= problem_.max_depth) return false;
        if (double(n) < problem_.cases_to_split) return false;
        size_t present = 0;
        for (size_t c = 0; c < classes_; ++c) present += counts[c] > 0;
        return present > 1;
    }

    template <typename Visit>
    static void for_each_alive(const Job& job, size_t n_columns, Visit visit) {
        for (size_t base = 0; base < n_columns; base += 64)
            for (uint64_t left = job.alive[base / 64]; left; left &= left - 1)
                if (!visit(base + size_t(__builtin_ctzll(left)))) return;
    }

    // ---- counting ------------------------------------------------------------

    static void add(Pair& ones, Pair& carry, Pair a, Pair b) {  // a full adder on all bits
        const Pair half = ones ^ a;
        carry = (ones & a) | (half & b);
        ones = half ^ b;
    }

    // counts_[c][bit] for every bit of the rows of every class.
    void count_bits(const uint64_t* node_rows) {
        const uint64_t* segment = node_rows;
        for (size_t c = 0; c < classes_; ++c) {
            uint32_t* out = &counts_[c * stride_ * 64];
            for (size_t word = 0; word < n_words_; word += 2)
                count_segment(segment + word, counts_of_class_[c], out + word * 64);
            segment += counts_of_class_[c] * stride_;
        }
    }

    // One pair of words: sixteen rows at a time through a tree of adders, whose last
    // carry goes into byte counters; those are emptied before they overflow.
    void count_segment(const uint64_t* first, size_t n, uint32_t* out) const {
        std::memset(out, 0, 128 * sizeof(uint32_t));
        const auto* row = reinterpret_cast<const Pair*>(first);
        const size_t step = stride_ / 2;
        Pair bytes[8] = {};
        Pair ones = {}, twos = {}, fours = {}, eights = {};
        size_t i = 0;
        size_t groups = 0;
        for (; i + 16 <= n; i += 16) {
            Pair a, b, c, d, e, f, sixteens;
            add(ones, a, row[0], row[step]);
            add(ones, b, row[2 * step], row[3 * step]);
            add(twos, c, a, b);
            add(ones, a, row[4 * step], row[5 * step]);
            add(ones, b, row[6 * step], row[7 * step]);
            add(twos, d, a, b);
            add(fours, e, c, d);
            add(ones, a, row[8 * step], row[9 * step]);
            add(ones, b, row[10 * step], row[11 * step]);
            add(twos, c, a, b);
            add(ones, a, row[12 * step], row[13 * step]);
            add(ones, b, row[14 * step], row[15 * step]);
            add(twos, d, a, b);
            add(fours, f, c, d);
            add(eights, sixteens, e, f);
            spread(bytes, sixteens);
            row += 16 * step;
            if (++groups == 255) {
                empty(bytes, out, 16);
                groups = 0;
            }
        }
        empty(bytes, out, 16);
        Pair rest[8] = {};
        for (; i < n; ++i, row += step) spread(rest, *row);
        spread(rest, ones);
        for (int k = 0; k < 2; ++k) spread(rest, twos);
        for (int k = 0; k < 4; ++k) spread(rest, fours);
        for (int k = 0; k < 8; ++k) spread(rest, eights);
        empty(rest, out, 1);
    }

    // bytes[k], byte b counts bit 8 b + k.
    static void spread(Pair bytes[8], Pair bits) {
        const Pair low = {0x0101010101010101ULL, 0x0101010101010101ULL};
        for (int k = 0; k < 8; ++k) bytes[k] += (bits >> k) & low;
    }

    static void empty(Pair bytes[8], uint32_t* out, uint32_t times) {
        for (int k = 0; k < 8; ++k) {
            uint8_t byte[16];
            std::memcpy(byte, &bytes[k], 16);
            for (int b = 0; b < 16; ++b) out[8 * b + k] += times * byte[b];
            bytes[k] = Pair{};
        }
    }

    // cells_[value][class] and sizes_[value] of one column.
    void count_from_bits(size_t j) {
        const Field& field = fields_[j];
        const size_t last = field.values - 1;
        std::fill_n(sizes_.begin(), field.values, 0);
        for (size_t c = 0; c < classes_; ++c) {
            const uint32_t* bit = &counts_[(c * stride_ + field.word) * 64 + field.shift];
            uint32_t left = counts_of_class_[c];
            for (size_t v = 0; v < last; ++v) {
                cells_[v * classes_ + c] = bit[v];
                sizes_[v] += bit[v];
                left -= bit[v];
            }
            cells_[last * classes_ + c] = left;
            sizes_[last] += left;
        }
    }

    void count_small(const uint64_t* node_rows, size_t j) {
        const Field& field = fields_[j];
        std::fill_n(cells_.begin(), field.values * classes_, 0);
        std::fill_n(sizes_.begin(), field.values, 0);
        const uint64_t* row = node_rows;
        for (size_t c = 0; c < classes_; ++c)
            for (uint32_t i = 0; i < counts_of_class_[c]; ++i, row += stride_) {
                const uint32_t value = field.value(row);
                ++cells_[value * classes_ + c];
                ++sizes_[value];
            }
    }

    double score(size_t j, int64_t whole, const Scale& scale, Job& below, int64_t& drop) {
        const size_t values = fields_[j].values;
        const uint32_t* cell = cells_.data();
        size_t branches = 0;
        uint32_t fewest = ~uint32_t(0);
        int64_t in_branches = 0;
        int64_t information = 0;
        for (size_t v = 0; v < values; ++v, cell += classes_) {
            const uint32_t size = sizes_[v];
            if (!size) continue;
            ++branches;
            fewest = std::min(fewest, size);
            in_branches += masses_.impurity(problem_.criterion, cell, problem_.n_classes, size);
            if (problem_.criterion == Criterion::gain_ratio) information -= masses_.x_log2_x(size);
        }
        if (branches < 2) {
            below.alive[j / 64] &= ~(uint64_t(1) << (j % 64));
            return no_score;
        }
        if (double(fewest) < problem_.cases_in_leaf) return no_score;
        drop = std::max<int64_t>(whole - in_branches, 0);
        if (problem_.criterion == Criterion::gain_ratio)
            information += masses_.x_log2_x(uint32_t(scale.total));
        return scale.enough(drop) ? scale.score(drop, information) : no_score;
    }

    // ---- moving --------------------------------------------------------------

    void carry_out(const Job& job, Job& below, size_t j, const uint64_t* node_rows, std::vector<Job>& stack) {
        const Field& field = fields_[j];
        below.alive[j / 64] &= ~(uint64_t(1) << (j % 64));
        below.depth = job.depth + 1;
        below.side = 1 - job.side;
        size_t n_branches = 0;
        for (size_t v = 0; v < field.values; ++v) n_branches += sizes_[v] > 0;
        const int64_t first = add_nodes(n_branches);
        record_split(job, j, first, n_branches);

        size_t begin = job.begin;
        size_t branch = 0;
        const size_t before = stack.size();
        for (size_t v = 0; v < field.values; ++v) {
            starts_[v] = begin;
            if (!sizes_[v]) continue;
            const int64_t node = first + int64_t(branch++);
            record_child(node, j, v);
            if (may_be_split(&cells_[v * classes_], sizes_[v], below.depth)) {
                below.node = node;
                below.begin = begin;
                below.n = sizes_[v];
                stack.push_back(below);
            }
            begin += sizes_[v];
        }
        if (stack.size() == before) return;
        std::reverse(stack.begin() + std::ptrdiff_t(before), stack.end());
        move_rows(job, field, node_rows);
    }

    void record_split(const Job& job, size_t j, int64_t first, size_t n_branches) {
        const Column& column = problem_.columns[j];
        const Field& field = fields_[j];
        const bool own = field.values == column.n_codes && sizes_[column.missing_code()] > 0;
        branch_sizes_.clear();
        for (size_t v = 0; v < field.values; ++v)
            if (sizes_[v]) branch_sizes_.push_back(sizes_[v]);
        const int32_t largest = largest_branch(branch_sizes_);
        const int32_t missing_branch = own ? int32_t(n_branches) - 1 : stop_here;
        Node& node = grown_.nodes[size_t(job.node)];
        node.column = int32_t(j);
        node.cut = std::numeric_limits<double>::quiet_NaN();
        node.n_children = int32_t(n_branches);
        node.first_child = uint32_t(first);
        node.missing_to = missing_route(problem_, largest, missing_branch);
        node.unseen_to = unseen_route(problem_, largest, node.missing_to);
    }

    void record_child(int64_t at, size_t j, size_t v) {
        Node& node = grown_.nodes[size_t(at)];
        node.code = v == problem_.columns[j].missing_code() ? no_code : int32_t(v);
        node.cases = sizes_[v];
        double* weights = &grown_.weights[size_t(at) * classes_];
        for (size_t c = 0; c < classes_; ++c) weights[c] = cells_[v * classes_ + c];
    }

    // Class by class, so that each child stays sorted by class. Two classes at a time:
    // their places do not depend on each other, so neither waits for the other.
    void move_rows(const Job& job, const Field& field, const uint64_t* node_rows) {
        const uint64_t* row = node_rows;
        for (size_t c = 0; c < classes_; c += 2) {
            const bool pair = c + 1 < classes_;
            const size_t n0 = counts_of_class_[c];
            const size_t n1 = pair ? counts_of_class_[c + 1] : 0;
            for (size_t v = 0; v < field.values; ++v) {
                places_[0][v] = starts_[v];
                starts_[v] += cells_[v * classes_ + c];
                places_[1][v] = starts_[v];
                if (pair) starts_[v] += cells_[v * classes_ + c + 1];
            }
            move_segments(job, field, row, n0, n1);
            row += (n0 + n1) * stride_;
        }
    }

    void move_segments(const Job& job, const Field& field, const uint64_t* row, size_t n0, size_t n1) {
        uint64_t* out = rows(1 - job.side);
        const uint64_t* other = row + n0 * stride_;
        const auto put = [&](const uint64_t* from, size_t* places) {
            uint64_t* to = out + places[field.value(from)]++ * stride_;
            if (stride_ == 2) {
                to[0] = from[0];
                to[1] = from[1];
            } else {
                std::memcpy(to, from, stride_ * sizeof(uint64_t));
            }
        };
        size_t* places0 = places_[0].data();
        size_t* places1 = places_[1].data();
        const size_t both = std::min(n0, n1);
        for (size_t i = 0; i < both; ++i) {
            put(row + i * stride_, places0);
            put(other + i * stride_, places1);
        }
        for (size_t i = both; i < n0; ++i) put(row + i * stride_, places0);
        for (size_t i = both; i < n1; ++i) put(other + i * stride_, places1);
    }

    const Problem& problem_;
    const Masses& masses_;
    Buffers& buffers_;
    const size_t classes_;
    size_t n_words_ = 0;
    size_t stride_ = 0;  // words of a row, an even number
    std::vector<Field> fields_;
    Grown grown_;

    // Scratch, kept between nodes.
    std::vector<Candidate> candidates_;
    std::vector<uint32_t> counts_, cells_, sizes_;
    std::vector<uint32_t> counts_of_class_;  // rows of each class at the node
    std::vector<size_t> starts_;             // of each value's rows, once moved
    std::vector<size_t> places_[2];          // where the next row of a value goes
    std::vector<double> branch_sizes_;
};

}  // namespace branchwise
