// Growth over records: serves weights, fractions, numbers and any number of values.
//
// W is uint32_t where every row counts as one, double where rows have weights.

#pragma once

#include "rows.hpp"

namespace branchwise {

template <typename W>
class GeneralGrower {
  public:
    GeneralGrower(const Problem& problem, const Masses& masses, const Numbers& numbers)
        : problem_(problem),
          masses_(masses),
          numbers_(numbers),
          layout_(problem, numbers, weighted),
          classes_(static_cast<size_t>(problem.n_classes)) {
        slot_of_.assign(problem.columns.size(), 0);
        size_t most_codes = 2;
        for (size_t j = 0; j < problem.columns.size(); ++j) {
            if (is_list(j)) {
                slot_of_[j] = lists_.size();
                lists_.push_back(j);
            } else {
                most_codes = std::max<size_t>(most_codes, missing_code(j) + 1);
            }
        }
        const size_t most_cells = most_codes * classes_;
        cells_.assign(most_cells, W(0));
        sizes_.assign(most_codes, W(0));
        code_cases_.assign(weighted ? most_codes : 0, 0.0);
        branch_of_code_.assign(most_codes, stop_here);
        left_.resize(classes_);
        right_.resize(classes_);
        known_.resize(classes_);
        missing_.resize(classes_);
        candidates_.resize(problem.columns.size());
    }

    // An open node: its records, its sorted numbers, the columns still worth asking.
    struct Job {
        int64_t node;
        int64_t depth;
        std::shared_ptr<Arena> arena;
        int side;
        size_t begin;
        size_t n;
        std::vector<uint32_t> n_ranked;  // by slot of a list
        std::vector<uint32_t> alive;     // columns
    };

    size_t n_nodes() const { return grown_.nodes.size(); }
    size_t work(const Job& job) const { return job.n * (job.alive.size() + 1); }
    Grown take() { return std::move(grown_); }

    // Make the root, an open node unless it is a leaf.
    void plant(std::vector<Job>& jobs) {
        Job root = make_root();
        if (may_be_split(0, 0)) jobs.push_back(std::move(root));
    }

    // Make a root of one's own for an open node of another grower.
    int64_t adopt(const Job& job, const Grown& from) {
        const int64_t node = add_nodes(1);
        const auto there = static_cast<size_t>(job.node);
        const auto here = static_cast<size_t>(node);
        grown_.nodes[here].code = from.nodes[there].code;
        grown_.nodes[here].cases = from.nodes[there].cases;
        std::copy_n(&from.weights[there * classes_], classes_, &grown_.weights[here * classes_]);
        return node;
    }

    // Split an open node, or leave it a leaf; its open children are added to the jobs.
    void split(Job& job, std::vector<Job>& stack) {
        const auto node = static_cast<size_t>(job.node);
        totals_.assign(grown_.weights.begin() + static_cast<std::ptrdiff_t>(node * classes_),
                       grown_.weights.begin() + static_cast<std::ptrdiff_t>((node + 1) * classes_));
        double total = 0;
        for (double w : totals_) total += w;
        const Scale scale(total, masses_, problem_);
        std::vector<uint32_t> still_alive;
        for (auto& candidate : candidates_) candidate = Candidate();
        for (uint32_t j : job.alive) {
            const bool varies =
                problem_.columns[j].numeric ? score_numeric(job, j, scale) : score_values(job, j, scale);
            if (varies) still_alive.push_back(j);
        }
        const int best = first_best_column(candidates_, scale);
        if (best < 0) return;
        job.alive.swap(still_alive);
        carry_out(job, static_cast<size_t>(best), stack);
    }

  private:
    static constexpr bool weighted = std::is_same<W, double>::value;

    bool is_list(size_t column) const { return problem_.columns[column].numeric && !numbers_.counted(column); }
    uint32_t missing_code(size_t column) const {
        if (problem_.columns[column].numeric) return static_cast<uint32_t>(numbers_.values[column].size());
        return problem_.columns[column].missing_code();
    }

    const uint8_t* records(const Job& job) const {
        return job.arena->records[job.side].data() + job.begin * layout_.size;
    }
    const Ranked* ranked(const Job& job, size_t slot) const {
        return job.arena->ranked[job.side].data() + slot * job.arena->capacity + job.begin;
    }
    uint32_t label(const uint8_t* record) const { return load<uint32_t>(record + layout_.label); }
    W weight(const uint8_t* record) const {
        if constexpr (weighted) return load<double>(record + layout_.weight);
        return W(1);
    }
    double share(const uint8_t* record) const {
        if constexpr (weighted)
            if (problem_.fractions) return load<double>(record + layout_.share);
        return 1.0;
    }
    uint32_t code(const uint8_t* record, size_t column) const {
        const uint8_t* at = record + layout_.code[column];
        switch (layout_.width[column]) {
            case 1: return *at;
            case 2: return load<uint16_t>(at);
            default: return load<uint32_t>(at);
        }
    }

    int64_t add_nodes(size_t count) {
        const auto first = static_cast<int64_t>(grown_.nodes.size());
        grown_.nodes.resize(grown_.nodes.size() + count);
        grown_.weights.resize(grown_.weights.size() + count * classes_, 0.0);
        return first;
    }

    bool may_be_split(int64_t node, int64_t depth) const {
        if (problem_.max_depth >= 0 && depth >= problem_.max_depth) return false;
        const auto at = static_cast<size_t>(node);
        int present = 0;
        for (size_t c = 0; c < classes_; ++c) present += grown_.weights[at * classes_ + c] > 0;
        return present > 1 && grown_.nodes[at].cases >= problem_.cases_to_split;
    }

    Job make_root() {
        Job job;
        job.node = add_nodes(1);
        job.depth = 0;
        job.side = 0;
        job.begin = 0;
        job.n = numbers_.rows.size();
        job.arena = std::make_shared<Arena>(job.n, layout_.size, lists_.size());
        fill_records(job);
        fill_ranked(job);
        for (size_t j = 0; j < problem_.columns.size(); ++j) job.alive.push_back(static_cast<uint32_t>(j));
        return job;
    }

    void fill_records(const Job& job) {
        const std::vector<uint32_t>& rows = numbers_.rows;
        uint8_t* out = job.arena->records[0].data();
        double* weights = grown_.weights.data();
        for (size_t i = 0; i < rows.size(); ++i) {
            uint8_t* record = out + i * layout_.size;
            const uint32_t row = rows[i];
            store<uint32_t>(record + layout_.label, problem_.labels[row]);
            double row_weight = 1.0;
            if constexpr (weighted) {
                if (problem_.weights) row_weight = problem_.weights[row];
                store<double>(record + layout_.weight, row_weight);
                if (problem_.fractions) store<double>(record + layout_.share, 1.0);
            }
            weights[problem_.labels[row]] += row_weight;
        }
        grown_.nodes[0].cases = static_cast<double>(rows.size());
        for (size_t j = 0; j < problem_.columns.size(); ++j) {
            if (is_list(j)) continue;
            uint8_t* at = out + layout_.code[j];
            const bool counted = problem_.columns[j].numeric;
            for (size_t i = 0; i < rows.size(); ++i, at += layout_.size) {
                const uint32_t value = counted ? numbers_.ranks[j][i] : problem_.columns[j].at(rows[i]);
                if (layout_.width[j] == 1) *at = static_cast<uint8_t>(value);
                else if (layout_.width[j] == 2) store<uint16_t>(at, static_cast<uint16_t>(value));
                else store<uint32_t>(at, value);
            }
        }
    }

    void fill_ranked(Job& job) {
        job.n_ranked.assign(lists_.size(), 0);
        for (size_t slot = 0; slot < lists_.size(); ++slot) {
            const std::vector<Numbered>& sorted = numbers_.sorted[lists_[slot]];
            const std::vector<double>& values = numbers_.values[lists_[slot]];
            job.n_ranked[slot] = static_cast<uint32_t>(sorted.size());
            Ranked* out = job.arena->ranked[0].data() + slot * job.arena->capacity;
            uint32_t rank = 0;
            for (size_t i = 0; i < sorted.size(); ++i) {
                while (values[rank] != number_of(sorted[i].key)) ++rank;
                out[i] = {rank, sorted[i].position, problem_.labels[numbers_.rows[sorted[i].position]]};
            }
        }
    }

    // ---- scoring -------------------------------------------------------------

    // Count one column of codes; leaves cells_ and sizes_ filled for `present_`.
    void count_values(const Job& job, size_t j) {
        switch (layout_.width[j]) {
            case 1: return count_codes<uint8_t>(job, j);
            case 2: return count_codes<uint16_t>(job, j);
            default: return count_codes<uint32_t>(job, j);
        }
    }

    template <typename Code>
    void count_codes(const Job& job, size_t j) {
        const uint8_t* record = records(job);
        const size_t code_at = layout_.code[j];
        const uint32_t n_codes = missing_code(j) + 1;
        present_.clear();
        if (n_codes > job.n) {  // few rows: note which codes they have
            for (size_t i = 0; i < job.n; ++i, record += layout_.size) {
                const uint32_t value = load<Code>(record + code_at);
                const W w = weight(record);
                if (sizes_[value] == 0) present_.push_back(value);
                sizes_[value] += w;
                cells_[value * classes_ + label(record)] += w;
                if constexpr (weighted) code_cases_[value] += share(record);
            }
            return;
        }
        for (size_t i = 0; i < job.n; ++i, record += layout_.size) {
            const uint32_t value = load<Code>(record + code_at);
            cells_[value * classes_ + label(record)] += weight(record);
            if constexpr (weighted) code_cases_[value] += share(record);
        }
        for (uint32_t value = 0; value < n_codes; ++value) {
            W size = 0;
            for (size_t c = 0; c < classes_; ++c) size += cells_[value * classes_ + c];
            if (!(size > 0)) continue;
            sizes_[value] = size;
            present_.push_back(value);
        }
    }

    void forget_values() {
        for (uint32_t value : present_) {
            sizes_[value] = 0;
            std::fill_n(cells_.begin() + static_cast<std::ptrdiff_t>(value * classes_), classes_, W(0));
            if constexpr (weighted) code_cases_[value] = 0;
        }
    }

    double cases_of(uint32_t value) const {
        if constexpr (weighted) return code_cases_[value];
        return static_cast<double>(sizes_[value]);
    }

    // Score one branch per value. Returns whether the column can still split below.
    bool score_values(const Job& job, size_t j, const Scale& scale) {
        count_values(job, j);
        const uint32_t missing = missing_code(j);
        const bool own_branch = problem_.missing == Policy::branch;
        size_t branches = 0;
        bool admissible = true;
        int64_t in_branches = 0;
        int64_t sizes = 0;
        W unknown = 0;
        for (size_t c = 0; c < classes_; ++c) known_[c] = static_cast<W>(totals_[c]);
        for (uint32_t value : present_) {
            const W* cell = &cells_[value * classes_];
            if (value == missing && !own_branch) {
                unknown = sizes_[value];
                for (size_t c = 0; c < classes_; ++c) known_[c] -= cell[c];
                continue;
            }
            ++branches;
            admissible = admissible && cases_of(value) >= problem_.cases_in_leaf;
            in_branches += masses_.impurity(problem_.criterion, cell, problem_.n_classes, sizes_[value]);
            if (problem_.criterion == Criterion::gain_ratio) sizes += masses_.x_log2_x(sizes_[value]);
        }
        if (branches >= 2 && admissible) {
            const W known_total = static_cast<W>(scale.total) - unknown;
            const int64_t drop = std::max<int64_t>(
                masses_.impurity(problem_.criterion, known_.data(), problem_.n_classes, known_total) - in_branches, 0);
            int64_t information = 0;
            if (problem_.criterion == Criterion::gain_ratio)
                information = masses_.x_log2_x(static_cast<W>(scale.total)) - masses_.x_log2_x(unknown) - sizes;
            if (scale.enough(drop)) candidates_[j].score = scale.score(drop, information);
        }
        forget_values();
        return branches >= 2;
    }

    // Score every cut, then, where none can be made, known against missing. Returns
    // whether the column can still split below.
    bool score_numeric(const Job& job, size_t j, const Scale& scale) {
        const bool varies = is_list(j) ? count_list(job, slot_of_[j]) : count_ranks(job, j);
        const bool own_branch = problem_.missing == Policy::branch;
        Sides sides{0, 0, known_cases_, 0, own_branch};
        for (size_t c = 0; c < classes_; ++c) {
            missing_[c] = static_cast<W>(totals_[c]) - known_[c];
            sides.known_total += known_[c];
        }
        sides.missing_total = static_cast<W>(scale.total) - sides.known_total;
        sides.missing_cases = grown_.nodes[static_cast<size_t>(job.node)].cases - known_cases_;
        const bool asks_missing = own_branch && sides.missing_total > 0 && sides.known_total > 0;
        const bool few_missing = own_branch && sides.missing_cases > 0 && sides.missing_cases < problem_.cases_in_leaf;
        if (varies && !few_missing) {
            begin_cuts(sides, scale);
            if (is_list(j)) sweep_list(job, slot_of_[j]);
            else sweep_ranks();
            choose_cut(j);
        }
        if (asks_missing && candidates_[j].score == no_score) score_known(j, sides, scale);
        if (!is_list(j)) forget_values();
        return varies || asks_missing;
    }

    // Class weights of the known numbers, into known_; returns whether they differ.
    bool count_list(const Job& job, size_t slot) {
        const Ranked* entry = ranked(job, slot);
        const size_t n = job.n_ranked[slot];
        const bool varies = n > 0 && entry[0].rank != entry[n - 1].rank;
        if (n == job.n) {
            for (size_t c = 0; c < classes_; ++c) known_[c] = static_cast<W>(totals_[c]);
            known_cases_ = grown_.nodes[static_cast<size_t>(job.node)].cases;
            return varies;
        }
        std::fill(known_.begin(), known_.end(), W(0));
        known_cases_ = weighted ? 0.0 : static_cast<double>(n);
        const uint8_t* base = records(job);
        for (size_t i = 0; i < n; ++i) {
            const uint8_t* record = base + entry[i].position * layout_.size;
            if constexpr (weighted) {
                known_[entry[i].label] += weight(record);
                known_cases_ += share(record);
            } else {
                ++known_[entry[i].label];
            }
        }
        return varies;
    }

    // The same from counted ranks, which are left in order in present_.
    bool count_ranks(const Job& job, size_t j) {
        count_values(job, j);
        std::sort(present_.begin(), present_.end());
        std::fill(known_.begin(), known_.end(), W(0));
        known_cases_ = 0;
        n_known_ranks_ = present_.size();
        if (n_known_ranks_ && present_.back() == missing_code(j)) --n_known_ranks_;
        for (size_t i = 0; i < n_known_ranks_; ++i) {
            const W* cell = &cells_[present_[i] * classes_];
            for (size_t c = 0; c < classes_; ++c) known_[c] += cell[c];
            known_cases_ += cases_of(present_[i]);
        }
        return n_known_ranks_ > 1;
    }

    // What the cases of a node come to on a column: known or missing.
    struct Sides {
        W known_total;
        W missing_total;
        double known_cases;
        double missing_cases;
        bool own_branch;
    };

    struct Cut {
        double score;
        uint32_t rank;  // the last on the left
        uint32_t next;  // the first on the right
    };

    // ---- cuts: weight goes from right to left, and between two ranks the cut is scored

    void begin_cuts(const Sides& sides, const Scale& scale) {
        sides_ = &sides;
        scale_ = &scale;
        entropy_ = problem_.criterion != Criterion::gini;
        std::fill(left_.begin(), left_.end(), W(0));
        right_ = known_;
        left_total_ = 0;
        left_cases_ = 0;
        left_inner_ = right_inner_ = 0;
        if (entropy_)
            for (size_t c = 0; c < classes_; ++c) right_inner_ += masses_.x_log2_x(right_[c]);
        whole_ = known_mass(sides);
        information_ = 0;
        if (problem_.criterion == Criterion::gain_ratio)
            information_ = masses_.x_log2_x(static_cast<W>(scale.total)) - masses_.x_log2_x(sides.missing_total);
        cuts_.clear();
    }

    void to_left(size_t c, W w) {
        if (entropy_) {
            left_inner_ -= masses_.x_log2_x(left_[c]);
            right_inner_ -= masses_.x_log2_x(right_[c]);
        }
        left_[c] += w;
        right_[c] -= w;
        if (entropy_) {
            left_inner_ += masses_.x_log2_x(left_[c]);
            right_inner_ += masses_.x_log2_x(right_[c]);
        }
        left_total_ += w;
    }

    void score_cut(uint32_t rank, uint32_t next) {
        if (std::min(left_cases_, sides_->known_cases - left_cases_) < problem_.cases_in_leaf) return;
        const W right_total = sides_->known_total - left_total_;
        int64_t in_branches;
        if (entropy_) {
            in_branches = (masses_.x_log2_x(left_total_) - left_inner_) + (masses_.x_log2_x(right_total) - right_inner_);
        } else {
            in_branches = masses_.impurity(problem_.criterion, left_.data(), problem_.n_classes, left_total_) +
                          masses_.impurity(problem_.criterion, right_.data(), problem_.n_classes, right_total);
        }
        const int64_t drop = std::max<int64_t>(whole_ - in_branches, 0);
        int64_t information = 0;
        if (problem_.criterion == Criterion::gain_ratio)
            information = information_ - masses_.x_log2_x(left_total_) - masses_.x_log2_x(right_total);
        offer_cut(drop, information, rank, next);
    }

    // Keep a cut that is better than all before it: the first of the best is one of these.
    void offer_cut(int64_t drop, int64_t information, uint32_t rank, uint32_t next) {
        const double score = scale_->score(drop, information);
        if ((cuts_.empty() || score > cuts_.back().score) && scale_->enough(drop)) cuts_.push_back({score, rank, next});
    }

    // The common case in a tight loop: rows that count as one, scored by gain.
    void sweep_list_of_ones(const Ranked* entry, size_t n) {
        const int64_t* table = masses_.table();
        uint32_t* left = reinterpret_cast<uint32_t*>(left_.data());
        uint32_t* right = reinterpret_cast<uint32_t*>(right_.data());
        const auto fewest = static_cast<uint32_t>(std::ceil(problem_.cases_in_leaf));
        int64_t inner = right_inner_;
        int64_t most = -1;
        for (uint32_t i = 0; i + 1 < n; ++i) {
            const uint32_t c = entry[i].label;
            inner += table[left[c] + 1] - table[left[c]] + table[right[c] - 1] - table[right[c]];
            ++left[c];
            --right[c];
            if (entry[i].rank == entry[i + 1].rank) continue;
            const auto n_left = i + 1;
            const auto n_right = static_cast<uint32_t>(n) - n_left;
            const int64_t drop = std::max<int64_t>(whole_ - (table[n_left] + table[n_right] - inner), 0);
            if (drop <= most || n_left < fewest || n_right < fewest) continue;
            most = drop;
            offer_cut(drop, 0, entry[i].rank, entry[i + 1].rank);
        }
    }

    void sweep_list(const Job& job, size_t slot) {
        const Ranked* entry = ranked(job, slot);
        if (!weighted && problem_.criterion == Criterion::gain && masses_.has_table_for(job.n) &&
            problem_.cases_in_leaf < 4e9) {
            sweep_list_of_ones(entry, job.n_ranked[slot]);
            return;
        }
        const uint8_t* base = records(job);
        for (size_t i = 0; i + 1 < job.n_ranked[slot]; ++i) {
            if constexpr (weighted) {
                const uint8_t* record = base + entry[i].position * layout_.size;
                to_left(entry[i].label, weight(record));
                left_cases_ += share(record);
            } else {
                to_left(entry[i].label, 1);
                left_cases_ += 1;
            }
            if (entry[i].rank != entry[i + 1].rank) score_cut(entry[i].rank, entry[i + 1].rank);
        }
    }

    void sweep_ranks() {
        for (size_t i = 0; i + 1 < n_known_ranks_; ++i) {
            const W* cell = &cells_[present_[i] * classes_];
            for (size_t c = 0; c < classes_; ++c)
                if (cell[c] > 0) to_left(c, cell[c]);
            left_cases_ += cases_of(present_[i]);
            score_cut(present_[i], present_[i + 1]);
        }
    }

    // The first of the best cuts.
    void choose_cut(size_t j) {
        if (cuts_.empty()) return;
        const double least = scale_->least(cuts_.back().score);
        const auto best =
            std::find_if(cuts_.begin(), cuts_.end(), [&](const Cut& cut) { return cut.score >= least; });
        const std::vector<double>& values = numbers_.values[j];
        Candidate& candidate = candidates_[j];
        candidate.score = best->score;
        candidate.boundary = best->rank;
        candidate.cut = midpoint(values[best->rank], values[best->next]);
    }

    // Mass of the cases that a cut shares out, less that of the branch of missing ones.
    int64_t known_mass(const Sides& sides) {
        if (!sides.own_branch)
            return masses_.impurity(problem_.criterion, known_.data(), problem_.n_classes, sides.known_total);
        all_.resize(classes_);
        for (size_t c = 0; c < classes_; ++c) all_[c] = static_cast<W>(totals_[c]);
        const W total = sides.known_total + sides.missing_total;
        return masses_.impurity(problem_.criterion, all_.data(), problem_.n_classes, total) -
               masses_.impurity(problem_.criterion, missing_.data(), problem_.n_classes, sides.missing_total);
    }

    void score_known(size_t j, const Sides& sides, const Scale& scale) {
        const double least = std::max(problem_.cases_in_leaf, std::numeric_limits<double>::min());
        if (std::min(sides.known_cases, sides.missing_cases) < least) return;
        const int64_t drop = std::max<int64_t>(
            known_mass(sides) -
                masses_.impurity(problem_.criterion, known_.data(), problem_.n_classes, sides.known_total),
            0);
        int64_t information = 0;
        if (problem_.criterion == Criterion::gain_ratio)
            information = masses_.x_log2_x(static_cast<W>(scale.total)) -
                          masses_.x_log2_x(sides.known_total) - masses_.x_log2_x(sides.missing_total);
        if (!scale.enough(drop)) return;
        candidates_[j].score = scale.score(drop, information);
        candidates_[j].cut = std::numeric_limits<double>::quiet_NaN();
    }

    // ---- moving --------------------------------------------------------------

    // Branches of the chosen split: the code that leads there and the known weight.
    struct Branches {
        std::vector<int32_t> code;
        std::vector<double> size;
        int32_t missing_branch = stop_here;
        int32_t missing_to = stop_here;
    };

    Branches make_branches(const Job& job, size_t j) {
        Branches made;
        double missing_size = 0;
        if (problem_.columns[j].numeric) {
            const bool uncut = std::isnan(candidates_[j].cut);
            double side[2] = {0, 0};
            const auto add = [&](uint32_t rank, W w) {
                side[!uncut && rank > candidates_[j].boundary] += static_cast<double>(w);
            };
            if (is_list(j)) {
                const Ranked* entry = ranked(job, slot_of_[j]);
                const uint8_t* base = records(job);
                for (size_t i = 0; i < job.n_ranked[slot_of_[j]]; ++i)
                    add(entry[i].rank, weight(base + entry[i].position * layout_.size));
            } else {
                count_values(job, j);
                for (uint32_t rank : present_)
                    if (rank != missing_code(j)) add(rank, sizes_[rank]);
                forget_values();
            }
            made.code = uncut ? std::vector<int32_t>{both_sides} : std::vector<int32_t>{0, 1};
            made.size.assign(side, side + made.code.size());
            double total = 0;
            for (double w : totals_) total += w;
            missing_size = total - side[0] - side[1];
        } else {
            count_values(job, j);
            std::sort(present_.begin(), present_.end());
            for (uint32_t value : present_) {
                if (value == missing_code(j)) {
                    missing_size = static_cast<double>(sizes_[value]);
                } else {
                    branch_of_code_[value] = static_cast<int32_t>(made.code.size());
                    made.code.push_back(static_cast<int32_t>(value));
                    made.size.push_back(static_cast<double>(sizes_[value]));
                }
            }
            forget_values();
        }
        if (missing_size > 0 && problem_.missing == Policy::branch) {
            made.missing_branch = static_cast<int32_t>(made.code.size());
            made.code.push_back(no_code);
            made.size.push_back(missing_size);
        }
        return made;
    }

    void carry_out(Job& job, size_t j, std::vector<Job>& stack) {
        Branches made = make_branches(job, j);
        const auto n_branches = made.code.size();
        const int32_t largest = largest_branch(made.size);
        made.missing_to = missing_route(problem_, largest, made.missing_branch);
        const int64_t first = add_nodes(n_branches);
        Node& node = grown_.nodes[static_cast<size_t>(job.node)];
        node.column = static_cast<int32_t>(j);
        node.cut = problem_.columns[j].numeric ? candidates_[j].cut : std::numeric_limits<double>::quiet_NaN();
        node.n_children = static_cast<int32_t>(n_branches);
        node.first_child = static_cast<uint32_t>(first);
        node.missing_to = made.missing_to;
        node.unseen_to = unseen_route(problem_, largest, made.missing_to);
        for (size_t b = 0; b < n_branches; ++b) grown_.nodes[static_cast<size_t>(first) + b].code = made.code[b];

        find_branches(job, j, made);
        count_children(job, made, first);
        open_.assign(n_branches, false);
        bool any_open = false;
        size_t needed = 0;
        for (size_t b = 0; b < n_branches; ++b) {
            open_[b] = may_be_split(first + static_cast<int64_t>(b), job.depth + 1);
            any_open = any_open || open_[b];
            if (open_[b]) needed += child_rows_[b];
        }
        if (any_open) move(job, j, made, first, needed, stack);
        if (!problem_.columns[j].numeric)
            for (int32_t value : made.code)
                if (value >= 0) branch_of_code_[static_cast<size_t>(value)] = stop_here;
    }

    // The branch of every record, into branch_.
    void find_branches(const Job& job, size_t j, const Branches& made) {
        branch_.assign(job.n, made.missing_to);
        const bool numeric = problem_.columns[j].numeric;
        const bool uncut = std::isnan(candidates_[j].cut);
        if (is_list(j)) {
            const Ranked* entry = ranked(job, slot_of_[j]);
            for (size_t i = 0; i < job.n_ranked[slot_of_[j]]; ++i)
                branch_[entry[i].position] = !uncut && entry[i].rank > candidates_[j].boundary;
            return;
        }
        const uint32_t missing = missing_code(j);
        const uint8_t* record = records(job);
        for (size_t i = 0; i < job.n; ++i, record += layout_.size) {
            const uint32_t value = code(record, j);
            if (value == missing) continue;
            branch_[i] = numeric ? !uncut && value > candidates_[j].boundary : branch_of_code_[value];
        }
    }

    double on_grid(double amount, double step) const { return std::rint(amount / step) * step; }

    // Class weights, cases and numbers of records of the children.
    void count_children(const Job& job, const Branches& made, int64_t first) {
        const size_t n_branches = made.code.size();
        child_rows_.assign(n_branches, 0);
        double known = 0;
        for (double size : made.size) known += size;
        const uint8_t* record = records(job);
        double* weights = &grown_.weights[static_cast<size_t>(first) * classes_];
        for (size_t i = 0; i < job.n; ++i, record += layout_.size) {
            const int32_t branch = branch_[i];
            if (branch >= 0) {
                add_to_child(weights, first, static_cast<size_t>(branch), label(record),
                             static_cast<double>(weight(record)), share(record));
            } else if (branch == every_branch) {
                for (size_t b = 0; b < n_branches; ++b) {
                    const double fraction = made.size[b] / known;
                    const double part = on_grid(static_cast<double>(weight(record)) * fraction, problem_.weight_step);
                    if (part > 0)
                        add_to_child(weights, first, b, label(record), part,
                                     on_grid(share(record) * fraction, problem_.case_step));
                }
            }
        }
    }

    void add_to_child(double* weights, int64_t first, size_t branch, uint32_t c, double w, double part) {
        weights[branch * classes_ + c] += w;
        grown_.nodes[static_cast<size_t>(first) + branch].cases += part;
        ++child_rows_[branch];
    }

    void move(Job& job, size_t j, const Branches& made, int64_t first, size_t needed, std::vector<Job>& stack) {
        const size_t n_branches = made.code.size();
        const bool roomy = needed <= job.n;
        std::shared_ptr<Arena> arena =
            roomy ? job.arena : std::make_shared<Arena>(needed, layout_.size, lists_.size());
        const int side = roomy ? 1 - job.side : 0;
        size_t begin = roomy ? job.begin : 0;
        std::vector<Job> children(n_branches);
        next_.assign(n_branches, 0);
        for (size_t b = 0; b < n_branches; ++b) {
            if (!open_[b]) continue;
            Job& child = children[b];
            child.node = first + static_cast<int64_t>(b);
            child.depth = job.depth + 1;
            child.arena = arena;
            child.side = side;
            child.begin = begin;
            child.n = child_rows_[b];
            child.n_ranked.assign(lists_.size(), 0);
            for (uint32_t column : job.alive)
                if (column != j || problem_.columns[j].numeric) child.alive.push_back(column);
            begin += child.n;
        }
        move_records(job, made, children);
        for (uint32_t column : job.alive)
            if (is_list(column)) move_ranked(job, slot_of_[column], children);
        for (size_t b = n_branches; b-- > 0;)
            if (open_[b]) stack.push_back(std::move(children[b]));
    }

    // Where a record went: the branch in the upper half, the new position in the lower.
    // Sorted lists look this up in random order, so it is one number.
    static constexpr uint64_t nowhere = ~uint64_t(0);
    static constexpr uint64_t in_parts = uint64_t(1) << 63;  // the lower half: where they are listed

    static uint64_t place(size_t branch, size_t position) { return uint64_t(branch) << 32 | uint64_t(position); }

    void move_records(const Job& job, const Branches& made, std::vector<Job>& children) {
        double known = 0;
        for (double size : made.size) known += size;
        const bool lists = !lists_.empty();
        parts_.clear();
        if (lists) places_.assign(job.n, nowhere);
        const uint8_t* record = records(job);
        for (size_t i = 0; i < job.n; ++i, record += layout_.size) {
            if (branch_[i] >= 0) {
                const auto branch = static_cast<size_t>(branch_[i]);
                if (!open_[branch]) continue;
                if (lists) places_[i] = place(branch, next_[branch]);
                copy_record(record, children[branch], branch);
            } else if (branch_[i] == every_branch) {
                if (lists) places_[i] = in_parts | parts_.size();
                for (size_t b = 0; b < children.size(); ++b) {
                    const double fraction = made.size[b] / known;
                    const double part = on_grid(static_cast<double>(weight(record)) * fraction, problem_.weight_step);
                    const bool goes = part > 0 && open_[b];
                    if (lists) parts_.push_back(goes ? place(b, next_[b]) : nowhere);
                    if (!goes) continue;
                    uint8_t* copy = copy_record(record, children[b], b);
                    store<double>(copy + layout_.weight, part);
                    store<double>(copy + layout_.share, on_grid(share(record) * fraction, problem_.case_step));
                }
            }
        }
    }

    uint8_t* copy_record(const uint8_t* record, const Job& child, size_t b) {
        uint8_t* out = child.arena->records[child.side].data() + (child.begin + next_[b]++) * layout_.size;
        std::memcpy(out, record, layout_.size);
        return out;
    }

    void move_ranked(const Job& job, size_t slot, std::vector<Job>& children) {
        std::vector<Ranked*> out(children.size(), nullptr);
        for (size_t b = 0; b < children.size(); ++b)
            if (open_[b]) out[b] = children[b].arena->ranked[children[b].side].data() +
                                   slot * children[b].arena->capacity + children[b].begin;
        const std::vector<Ranked*> begin = out;
        const Ranked* entry = ranked(job, slot);
        const auto put = [&](uint64_t to, const Ranked& from) {
            *out[to >> 32]++ = {from.rank, static_cast<uint32_t>(to), from.label};
        };
        for (const Ranked* last = entry + job.n_ranked[slot]; entry < last; ++entry) {
            const uint64_t to = places_[entry->position];
            if (to == nowhere) continue;
            if (!(to & in_parts)) {
                put(to, *entry);
                continue;
            }
            const uint64_t* part = &parts_[to & ~in_parts];
            for (size_t b = 0; b < children.size(); ++b)
                if (part[b] != nowhere) put(part[b], *entry);
        }
        for (size_t b = 0; b < children.size(); ++b)
            if (open_[b]) children[b].n_ranked[slot] = static_cast<uint32_t>(out[b] - begin[b]);
    }

    const Problem& problem_;
    const Masses& masses_;
    const Numbers& numbers_;
    const RecordLayout layout_;
    const size_t classes_;
    std::vector<size_t> lists_;    // numeric columns that are sorted lists
    std::vector<size_t> slot_of_;  // column -> position in lists_
    Grown grown_;

    // Scratch, kept between nodes.
    std::vector<Candidate> candidates_;
    std::vector<double> totals_;
    std::vector<W> cells_, sizes_, known_, missing_, left_, right_, all_;
    std::vector<double> code_cases_;
    std::vector<uint32_t> present_;
    size_t n_known_ranks_ = 0;
    double known_cases_ = 0;

    // The sweep over the cuts of one column.
    const Sides* sides_ = nullptr;
    const Scale* scale_ = nullptr;
    bool entropy_ = true;
    W left_total_ = 0;
    double left_cases_ = 0;
    int64_t left_inner_ = 0, right_inner_ = 0, whole_ = 0, information_ = 0;
    std::vector<Cut> cuts_;

    std::vector<int32_t> branch_of_code_;
    std::vector<int32_t> branch_;
    std::vector<size_t> child_rows_, next_;
    std::vector<uint64_t> places_, parts_;  // where records, and parts of them, went
    std::vector<bool> open_;
};

}  // namespace branchwise
