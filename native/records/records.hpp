// Reading the records and sorted numbers of a node, and writing those of the root.
//
// W is uint32_t where every row counts as one, Times where rows are repeated, double where they
// have weights.

#pragma once

#include <memory>
#include <numeric>

#include "records/byte_codes.hpp"
#include "records/subtree_lists.hpp"

namespace branchwise {

// An open node: its records, its sorted numbers, the columns still worth testing.
struct RecordJob {
    int64_t node = 0;
    int64_t depth = 0;
    std::shared_ptr<Arena> arena;
    int side = 0;
    size_t begin = 0;  // on its side
    size_t other = 0;  // where its children may begin, on the other side
    size_t end = 0;    // and how far they may go
    size_t n = 0;
    uint64_t key = 0;                // of its draws
    size_t lists = 0;                // where its lists begin, if children take their place
    std::vector<uint32_t> n_ranked;  // by slot of a list
    std::shared_ptr<const std::vector<uint32_t>> alive;  // columns; siblings have the same
    SubtreeLists* subtree = nullptr;  // its lists, if a subtree with the node has some of its own
};

// Target is uint32_t where records have labels, double where numbers are predicted.
template <typename W, typename Target = uint32_t>
class Records {
  public:
    static constexpr bool weighted = std::is_same<W, double>::value;
    static constexpr bool repeated = std::is_same<W, Times>::value;
    static constexpr bool has_labels = std::is_same<Target, uint32_t>::value;

    using Weight = std::conditional_t<weighted, double, uint32_t>;

    // Weights as records have them, and parts of cases: in steps of their grids. These
    // are whole numbers, so that adding one to another in memory is one instruction.
    using Steps = std::conditional_t<weighted, int64_t, uint32_t>;

    Records(const Problem& problem, const Numbers& numbers)
        : problem_(problem),
          numbers_(numbers),
          layout_(problem, numbers, weighted, sizeof(Target)),
          byte_codes_(problem, layout_),
          places_(numbers.rows.size(), problem.n_classes),
          share_step_(has_share() ? problem.case_step : 1.0),
          label_mask_(problem.n_classes <= most_numbered_classes && may_be_numbered
                          ? 0xffff
                          : ~uint32_t(0)) {
        slot_of_.assign(problem.columns.size(), 0);
        for (size_t j = 0; j < problem.columns.size(); ++j) {
            if (!is_list(j)) continue;
            slot_of_[j] = lists_.size();
            lists_.push_back(j);
        }
    }

    // ---- columns ---------------------------------------------------------------

    bool is_numeric(size_t column) const { return problem_.columns[column].numeric; }
    bool is_list(size_t column) const { return is_numeric(column) && !numbers_.counted(column); }
    size_t n_lists() const { return lists_.size(); }
    size_t slot(size_t column) const { return slot_of_[column]; }
    const DistinctNumbers& values(size_t column) const { return numbers_.values[column]; }
    bool all_apart(size_t column) const { return numbers_.all_apart[column]; }
    const RecordLayout& layout() const { return layout_; }
    size_t size() const { return layout_.size; }

    uint32_t missing_code(size_t column) const {
        if (is_numeric(column)) return uint32_t(numbers_.values[column].size());
        return problem_.columns[column].missing_code();
    }

    size_t most_codes() const {
        size_t most = 2;
        for (size_t j = 0; j < problem_.columns.size(); ++j)
            if (!is_list(j)) most = std::max<size_t>(most, missing_code(j) + 1);
        return most;
    }

    // ---- a node ----------------------------------------------------------------

    const uint8_t* first(const RecordJob& job) const {
        return job.arena->records[job.side].data() + job.begin * layout_.size;
    }
    uint8_t* first_to_write(const RecordJob& job) const {
        return job.arena->records[job.side].data() + job.begin * layout_.size;
    }
    Ranked* ranked(const RecordJob& job, size_t slot) const {
        if (lists_in_place()) return job.arena->lists[0][slot].data() + job.lists;
        return job.arena->lists[job.side][slot].data() + job.begin;
    }

    // Whether the lists of the children take the place of those of the node: none outgrows it.
    bool lists_in_place() const { return !problem_.fractions; }
    static void divide_lists(const RecordJob& job, std::vector<RecordJob>& children) {
        size_t next = job.lists;
        for (RecordJob& child : children) {
            child.lists = next;
            next += child.n;
        }
    }

    // ---- a record --------------------------------------------------------------

    // What is predicted: a label, or a number.
    Target target(const uint8_t* record) const { return load<Target>(record + layout_.target); }
    uint32_t label(const uint8_t* record) const { return target(record) & label_mask_; }
    // Its number in a subtree, if it has lists of its own: beside the label.
    uint32_t row(const uint8_t* record) const { return load<uint16_t>(record + row_at()); }
    Steps steps(const uint8_t* record) const {
        if constexpr (weighted) return load<int64_t>(record + layout_.weight);
        if constexpr (repeated) return load<Times>(record + layout_.weight);
        return Steps(1);
    }
    Weight weight_of(Steps steps) const {
        if constexpr (weighted) return double(steps) * problem_.weight_step;
        return steps;
    }
    Steps steps_of_weight(Weight weight) const {
        if constexpr (weighted)
            return steps_of(weight, problem_.weight_step);
        else
            return weight;
    }
    Weight weight(const uint8_t* record) const { return weight_of(steps(record)); }

    // The part of a case that a record is, or the number of cases.
    bool has_share() const { return weighted && problem_.fractions; }
    bool has_own_share() const { return has_share() && problem_.weights; }  // beside its weight
    Steps share_steps(const uint8_t* record) const {
        if constexpr (weighted)
            if (problem_.fractions) return load<int64_t>(record + layout_.share);
        if constexpr (repeated) return steps(record);
        return Steps(1);
    }
    // ---- an entry of a list, the records of its node beginning at `base` -----------

    const Places<W, Target>& places() const { return places_; }
    size_t position(const Ranked& entry) const { return places_.position(entry); }

    const uint8_t* record_of(const Ranked& entry, const uint8_t* base) const {
        return base + position(entry) * layout_.size;
    }
    Steps steps(const Ranked& entry, const uint8_t* base) const {
        if (repeated && places_.labelled()) return places_.times(entry);
        if constexpr (weighted || repeated) return steps(record_of(entry, base));
        return Steps(1);
    }
    Weight weight(const Ranked& entry, const uint8_t* base) const {
        return weight_of(steps(entry, base));
    }

    // A list as loops read it.
    class List {
      public:
        List() = default;
        List(const Records& records, const RecordJob& job, size_t slot)
            : entry_(records.ranked(job, slot)),
              labels_(records.first(job) + records.layout_.target),
              weights_(records.first(job) + records.layout_.weight),
              size_(records.layout_.size),
              places_(records.places_),
              n_(job.n_ranked[slot]),
              label_mask_(records.label_mask_) {}

        size_t size() const { return n_; }
        uint32_t rank(size_t i) const { return entry_[i].rank; }
        bool differs(size_t i) const { return rank(i) != rank(i + 1); }  // from the next
        size_t position(size_t i) const { return places_.position(entry_[i]); }
        uint32_t label(size_t i) const {
            if (places_.labelled()) return places_.label(entry_[i]);
            return load<uint32_t>(labels_ + position(i) * size_) & label_mask_;
        }
        Steps steps(size_t i) const {
            if constexpr (weighted) return load<int64_t>(weights_ + position(i) * size_);
            if constexpr (repeated) {
                if (places_.labelled()) return places_.times(entry_[i]);
                return load<Times>(weights_ + position(i) * size_);
            }
            return Steps(1);
        }
        bool is_from(size_t i, uint32_t lowest) const { return label(i) >= lowest; }
        // How many entries have at least this class, where each counts once.
        static constexpr bool counts = !weighted && !repeated;
        static constexpr size_t most_counted = 4;
        uint32_t count_from(size_t begin, size_t end, uint32_t lowest) const {
            uint32_t n = 0;
            if (places_.labelled())
                for (size_t i = begin; i < end; ++i) n += places_.label(entry_[i]) >= lowest;
            else
                for (size_t i = begin; i < end; ++i) n += label(i) >= lowest;
            return n;
        }
        Steps share_steps(const Records& records, size_t i) const {
            if (!records.has_share()) return repeated ? steps(i) : Steps(1);
            return records.share_steps(labels_ - records.layout_.target + position(i) * size_);
        }

      private:
        const Ranked* entry_ = nullptr;
        const uint8_t* labels_ = nullptr;
        const uint8_t* weights_ = nullptr;
        size_t size_ = 0;
        Places<W, Target> places_{0, 1};
        size_t n_ = 0;
        uint32_t label_mask_ = 0;
    };

    // One of a subtree that has lists of its own.
    class SubtreeList {
      public:
        SubtreeList() = default;
        SubtreeList(const RecordJob& job, size_t slot)
            : row_(job.subtree->rows(slot) + job.lists),
              order_(job.subtree->order(slot)),
              rank_(job.subtree->ranks(slot)),
              first_of_class_(job.subtree->first_of_class.data()),
              position_(job.subtree->positions.data()),
              label_(job.subtree->labels.data()),
              times_(job.subtree->times.data()),
              steps_(job.subtree->steps.data()),
              n_(job.n_ranked[slot]),
              tied_(job.subtree->tied(slot)) {}

        size_t size() const { return n_; }
        uint32_t rank(size_t i) const { return rank_[order_[row_[i]]]; }
        bool differs(size_t i) const { return !tied_ || order_[row_[i]] != order_[row_[i + 1]]; }
        size_t position(size_t i) const { return position_[row_[i]]; }
        uint32_t label(size_t i) const { return label_[row_[i]]; }
        Steps steps(size_t i) const {
            if constexpr (weighted) return steps_[row_[i]];
            if constexpr (repeated) return times_[row_[i]];
            return Steps(1);
        }
        Steps share_steps(const Records&, size_t i) const { return repeated ? steps(i) : Steps(1); }

        // Whether the class of an entry is at least so high, which the number of its row tells.
        bool is_from(size_t i, uint32_t lowest) const { return row_[i] >= first_of_class_[lowest]; }

        // Entries of which this is so are counted many at once.
        static constexpr bool counts = !weighted && !repeated;
        static constexpr size_t most_counted = 4;  // classes
        Steps count_from(size_t begin, size_t end, uint32_t lowest) const {
            const uint16_t first = first_of_class_[lowest];
            uint16_t sum = 0;
            for (size_t i = begin; i < end; ++i) sum = uint16_t(sum + (row_[i] >= first));
            return sum;
        }

      private:
        const uint16_t* row_ = nullptr;
        const uint16_t* order_ = nullptr;
        const uint32_t* rank_ = nullptr;
        const uint16_t* first_of_class_ = nullptr;
        const uint16_t* position_ = nullptr;
        const uint8_t* label_ = nullptr;
        const Times* times_ = nullptr;
        const int64_t* steps_ = nullptr;
        size_t n_ = 0;
        bool tied_ = true;
    };

    // use(list) of a column at a node.
    template <typename Use>
    decltype(auto) with_list(const RecordJob& job, size_t column, const Use& use) const {
        if constexpr (has_labels)
            if (job.subtree) return use(SubtreeList(job, slot(column)));
        return use(List(*this, job, slot(column)));
    }

    // ---- a subtree with lists of its own ---------------------------------------------

    // Whether most splits part lists in two: others make subtrees that are not worth it.
    bool parts_lists_in_two() const {
        return n_lists() > 0 &&
               (problem_.branching == Branching::two_way || n_lists() == problem_.columns.size());
    }

    // Whether the subtree of a node may have some. Surrogates read lists record by record.
    bool may_have_lists(const RecordJob& job) const {
        return may_be_numbered && parts_lists_in_two() && lists_in_place() && !job.subtree &&
               problem_.missing != Policy::surrogate && job.n <= SubtreeLists::most_rows &&
               job.n * n_lists() <= SubtreeLists::most_entries &&
               size_t(problem_.n_classes) <= SubtreeLists::most_classes;
    }

    // Give it some.
    void make_lists(RecordJob& job, SubtreeLists& lists) const {
        lists.reserve(n_lists(), job.n);
        const std::vector<uint16_t> row_of = number_rows(job, lists);
        uint8_t* record = first_to_write(job);
        for (size_t i = 0; i < job.n; ++i, record += size()) {
            const uint16_t row = row_of[i];
            lists.positions[row] = uint16_t(i);
            lists.labels[row] = uint8_t(label(record));
            if constexpr (weighted) lists.steps[row] = steps(record);
            if constexpr (repeated) lists.times[row] = Times(steps(record));
            store<uint16_t>(record + row_at(), row);
        }
        for (uint32_t j : *job.alive)
            if (is_list(j))
                lists.take(
                    slot(j), ranked(job, slot(j)), job.n_ranked[slot(j)],
                    [&](const Ranked& entry) { return position(entry); }, row_of);
        job.subtree = &lists;
        job.lists = 0;
    }

    // ---- the parts of a case ---------------------------------------------------------

    double share_of(Steps steps) const { return double(steps) * share_step_; }
    double share(const uint8_t* record) const { return share_of(share_steps(record)); }
    uint32_t code(const uint8_t* record, size_t column) const {
        const uint8_t* at = record + layout_.code[column];
        switch (layout_.width[column]) {
            case 1:
                return *at;
            case 2:
                return load<uint16_t>(at);
            default:
                return load<uint32_t>(at);
        }
    }

    // ---- the root --------------------------------------------------------------

    // The rows with weight, in order.
    const std::vector<uint32_t>& rows() const { return numbers_.rows; }
    double row_weight(uint32_t row) const {
        if constexpr (repeated) return problem_.times[row];
        return problem_.weights ? problem_.weights[row] : 1.0;
    }

    // All of them, with target_of(row).
    template <typename TargetOf>
    RecordJob make_root(ThreadPool& pool, const TargetOf& target_of) const {
        RecordJob root;
        root.n = numbers_.rows.size();
        root.key = problem_.draw_key;
        make_arena(root);
        const size_t cells = root.n * problem_.columns.size();
        const size_t blocks = (root.n + block - 1) / block;
        pool.each(blocks, cells,
                  [&](size_t i, unsigned) { fill_records(root, i * block, target_of); });
        root.n_ranked.assign(lists_.size(), 0);
        root.arena->lists[0].resize(lists_.size());
        if (!lists_in_place()) root.arena->make_lists(1, lists_.size());
        pool.each(lists_.size(), cells, [&](size_t slot, unsigned) { take_list(root, slot); });
        std::vector<uint32_t> alive(problem_.columns.size());
        std::iota(alive.begin(), alive.end(), 0);
        root.alive = std::make_shared<const std::vector<uint32_t>>(std::move(alive));
        return root;
    }

    // Give back what is free when a node is split that lies on top of all open ones: what comes
    // before its lists, and the records beyond its own and the room for those of its children.
    void give_back_free(const RecordJob& job) const {
        job.arena->give_back_lists(job.lists);
        job.arena->give_back_records(job.side, (job.begin + job.n) * layout_.size);
        job.arena->give_back_records(1 - job.side, (job.other + job.n) * layout_.size);
    }

    // Two buffers of its own for a node of job.n records.
    void take_arena(RecordJob& job) const {
        make_arena(job);
        job.arena->make_lists(0, lists_.size());
        if (!lists_in_place()) job.arena->make_lists(1, lists_.size());
    }

    // Where the children of a node go: to the other side, if there is room.
    RecordJob place_for_children(const RecordJob& job, size_t needed) const {
        RecordJob place;
        if (job.other + needed > job.end) {
            place.n = needed;
            take_arena(place);
            return place;
        }
        place.arena = job.arena;
        place.side = 1 - job.side;
        place.begin = job.other;
        place.other = job.begin;
        place.end = job.end;
        return place;
    }

    // If the child that is placed first is split last, all beyond a child is free by the
    // time it is split, on both sides.
    static void put_on_top(RecordJob& child, RecordJob& place) {
        child.arena = place.arena;
        child.side = place.side;
        child.begin = place.begin;
        child.other = place.other;
        child.end = place.end;
        place.begin += child.n;
    }

    // A range of both sides to itself; `needed` are the records that are left to place.
    static void put_in_range(RecordJob& child, RecordJob& place, size_t& needed) {
        const size_t spare = place.end - place.begin - needed;
        put_on_top(child, place);
        child.other = child.begin;
        child.end = place.begin + spare * child.n / needed;
        place.begin = child.end;
        needed -= child.n;
    }

  private:
    // Up to so many classes leave the upper two bytes of a label to the number of a row.
    static constexpr int most_numbered_classes = 1 << 16;
    static constexpr bool may_be_numbered = has_labels && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    size_t row_at() const { return layout_.target + 2; }

    // The rows of the records of a node, class by class.
    std::vector<uint16_t> number_rows(const RecordJob& job, SubtreeLists& lists) const {
        std::vector<uint16_t>& first = lists.first_of_class;
        first.assign(size_t(problem_.n_classes) + 1, 0);
        const uint8_t* record = this->first(job);
        for (size_t i = 0; i < job.n; ++i) ++first[label(record + i * size()) + 1];
        std::partial_sum(first.begin(), first.end(), first.begin());
        std::vector<uint16_t> next = first, row_of(job.n);
        for (size_t i = 0; i < job.n; ++i) row_of[i] = next[label(record + i * size())]++;
        return row_of;
    }

    // Without lists.
    void make_arena(RecordJob& job) const {
        job.end = Numbers::room_for(problem_, job.n);
        job.arena = std::make_shared<Arena>(job.end, layout_.size);
        job.side = 0;
        job.begin = job.other = job.lists = 0;
    }

    // Rows that are filled column by column while they are in the cache.
    static constexpr size_t block = 256;

    template <typename TargetOf>
    void fill_records(const RecordJob& root, size_t begin, const TargetOf& target_of) const {
        const size_t n = std::min(block, root.n - begin);
        const uint32_t* rows = numbers_.rows.data() + begin;
        uint8_t* out = first_to_write(root) + begin * layout_.size;
        uint8_t* record = out;
        for (size_t i = 0; i < n; ++i, record += layout_.size) {
            store<Target>(record + layout_.target, target_of(rows[i]));
            if constexpr (weighted) {
                store<int64_t>(record + layout_.weight,
                               steps_of(row_weight(rows[i]), problem_.weight_step));
                if (problem_.fractions && problem_.weights)
                    store<int64_t>(record + layout_.share, steps_of(1.0, problem_.case_step));
            }
            if constexpr (repeated) store<Times>(record + layout_.weight, problem_.times[rows[i]]);
        }
        const bool bytes_are_filled = byte_codes_.suits(rows, n);
        if (bytes_are_filled) byte_codes_.fill(rows[0], n, out);
        for (size_t j = 0; j < problem_.columns.size(); ++j) {
            if (is_list(j)) continue;
            uint8_t* at = out + layout_.code[j];
            if (is_numeric(j)) {
                const uint16_t* ranks = numbers_.ranks[j].data() + begin;
                const auto rank = [=](size_t i) { return ranks[i]; };
                if (layout_.width[j] == 1)
                    fill_codes<uint8_t>(at, n, rank);
                else
                    fill_codes<uint16_t>(at, n, rank);
                continue;
            }
            switch (layout_.width[j]) {
                case 1:
                    if (!bytes_are_filled) fill_codes<uint8_t>(at, n, codes_of<uint8_t>(j, rows));
                    break;
                case 2:
                    fill_codes<uint16_t>(at, n, codes_of<uint16_t>(j, rows));
                    break;
                default:
                    fill_codes<uint32_t>(at, n, codes_of<uint32_t>(j, rows));
            }
        }
    }

    template <typename Code>
    auto codes_of(size_t column, const uint32_t* rows) const {
        const auto* codes = static_cast<const Code*>(problem_.columns[column].codes);
        return [=](size_t i) { return codes[rows[i]]; };
    }

    // All it needs by value: bytes that are written might be anything else's.
    template <typename Code, typename CodeOf>
    void fill_codes(uint8_t* at, size_t n, const CodeOf code_of) const {
        const size_t step = layout_.size;
        for (size_t i = 0; i < n; ++i) store<Code>(at + i * step, Code(code_of(i)));
    }

    void take_list(RecordJob& root, size_t slot) const {
        SortedList& sorted = numbers_.sorted[lists_[slot]];
        root.n_ranked[slot] = uint32_t(sorted.n);
        if (places_.labelled())
            for (size_t i = 0; i < sorted.n; ++i) {
                uint32_t& place = sorted.entries[i].place;
                const uint32_t row = numbers_.rows[place];
                place =
                    places_(place, problem_.labels[row], problem_.times ? problem_.times[row] : 1);
            }
        root.arena->lists[0][slot].swap(sorted.entries);
    }

    const Problem& problem_;
    const Numbers& numbers_;
    const RecordLayout layout_;
    const ByteCodes byte_codes_;
    const Places<W, Target> places_;
    const double share_step_;
    const uint32_t label_mask_;    // of what is in the place of a label: a row may be beside it
    std::vector<size_t> lists_;    // numeric columns that are sorted lists
    std::vector<size_t> slot_of_;  // column -> position in lists_
};

}  // namespace branchwise
