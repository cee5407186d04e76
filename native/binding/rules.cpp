// The border of generalising and selecting rules.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "binding/tree_arrays.hpp"
#include "rules/chosen_rules.hpp"
#include "rules/generalised_rules.hpp"
#include "rules/rule_counts.hpp"
#include "rules/vote_sums.hpp"

using namespace branchwise;

namespace {

// Sets of rows, a line each.
struct Sets {
    Span<const uint64_t> words;
    size_t n_sets;
    size_t n_words;
};

Sets read_sets(Arrays& arrays, nb::handle array, const char* name) {
    const Py_buffer& view = arrays.view(array, name, 2);
    return {Arrays::entries<const uint64_t>(view, name), size_t(view.shape[0]),
            size_t(view.shape[1])};
}

void check_words(const char* name, size_t n_words, size_t wanted) {
    if (n_words != wanted)
        refuse(std::string(name) + " must have " + std::to_string(wanted) + " words. Got " +
               std::to_string(n_words));
}

// Refuse sets that have a row beyond the last.
void check_rows(const char* name, const Sets& sets, size_t n_rows) {
    if (n_rows > most_rows || n_rows > sets.n_words * rows_of_word)
        refuse(std::string(name) + " must have a bit for each row");
    const size_t whole = n_rows / rows_of_word, rest = n_rows % rows_of_word;
    for (size_t set = 0; set < sets.n_sets; ++set) {
        const uint64_t* words = sets.words.data() + set * sets.n_words;
        uint64_t beyond = 0;
        for (size_t word = whole; word < sets.n_words; ++word)
            beyond |= word == whole ? words[word] >> rest : words[word];
        if (beyond) refuse(std::string(name) + " must have no bit beyond the last row");
    }
}

void check_below(const char* name, const Span<const int64_t>& numbers, size_t end) {
    for (const int64_t number : numbers)
        if (number < 0 || size_t(number) >= end)
            refuse(std::string(name) + " must be between 0 and " + std::to_string(end) + " - 1");
}

// Generalise rules: those that are left with conditions, each once. They have the first rule that
// each comes from, where its conditions begin, these, its error rate, and the rows that it covers.
nb::tuple generalise_rules(nb::handle holds, nb::handle starts, nb::handle conditions,
                           nb::handle labels, nb::handle of_class, nb::handle counted,
                           nb::handle weights, double log_confidence, double z) {
    Arrays arrays;
    const Sets sets = read_sets(arrays, holds, "holds");
    const Sets classes = read_sets(arrays, of_class, "of_class");
    check_words("of_class", classes.n_words, sets.n_words);
    const auto all = arrays.vector<uint64_t>(counted, "counted");
    check_words("counted", all.size(), sets.n_words);
    const auto codes = arrays.vector<int64_t>(conditions, "conditions");
    check_below("conditions", codes, sets.n_sets);
    const auto label = arrays.vector<int64_t>(labels, "labels");
    check_below("labels", label, classes.n_sets);
    const auto start = arrays.vector<int64_t>(starts, "starts", label.size() + 1);
    for (size_t rule = 0; rule < label.size(); ++rule)
        if (start[rule] < 0 || start[rule] > start[rule + 1] ||
            size_t(start[rule + 1]) > codes.size())
            refuse("starts must not fall, and not be beyond the conditions");
    if (!(log_confidence < 0 && log_confidence > -1e6 && z > -1e6 && z < 1e6))
        refuse("log_confidence must be below 0");
    Span<const double> weight;
    if (!weights.is_none()) {
        weight = arrays.vector<double>(weights, "weights");
        check_rows("counted", {all, 1, all.size()}, weight.size());
    }
    const RuleProblem problem{sets.words.data(), classes.words.data(), all.data(), sets.n_words,
                              RowSum{weights.is_none() ? nullptr : weight.data()}};
    const Estimate estimate{log_confidence, z, 0, 0};
    PythonInterruptCheck python{nb::none()};
    const Watch watch = std::ref(python);
    GeneralRules found;
    {
        ReleasedGil released;
        Generalisation general(problem, sets.n_sets, estimate);
        InterruptCheck interrupts(watch);
        for (size_t rule = 0; rule < label.size(); ++rule) {
            const Span<const int64_t> own(codes.data() + start[rule],
                                          size_t(start[rule + 1] - start[rule]));
            if (!general.add(rule, own, size_t(label[rule]), interrupts)) break;
        }
        found = std::move(general.rules());
    }
    if (python.interrupted()) throw nb::python_error();
    const size_t n_rules = found.origins.size(), n_conditions = found.conditions.size();
    return nb::make_tuple(
        own(std::move(found.origins), n_rules), own(std::move(found.starts), n_rules + 1),
        own(std::move(found.conditions), n_conditions), own(std::move(found.rates), n_rules),
        own(std::move(found.sets), n_rules * sets.n_words));
}

ChosenRules* choose_none(nb::handle sets, nb::handle right, nb::handle wrong) {
    Arrays arrays;
    const Sets given = read_sets(arrays, sets, "sets");
    const auto rights = arrays.vector<double>(right, "right");
    const auto wrongs = arrays.vector<double>(wrong, "wrong", rights.size());
    if (given.n_sets > most_rows) refuse("sets must be below 2**31");
    check_rows("sets", given, rights.size());
    ReleasedGil released;
    return new ChosenRules(given.words.data(), given.n_sets, given.n_words, rights, wrongs);
}

nb::object sums(const ChosenRules& chosen) {
    Array<double> copy(chosen.sums().begin(), chosen.sums().end());
    const size_t n_rules = chosen.n_rules();
    if (n_rules == 0) return own(std::move(copy), 0);
    return own(std::move(copy), 4, n_rules);
}

void toggle(ChosenRules& chosen, int64_t rule, bool comes) {
    if (rule < 0 || size_t(rule) >= chosen.n_rules()) refuse("rule must be one of the rules");
    if (!comes && !chosen.may_go(size_t(rule))) refuse("rule must have come before it goes");
    chosen.toggle(size_t(rule), comes);
}

// Sums of whole numbers up to here do not overflow.
constexpr double largest_weight = 4611686018427387904.0;

VoteSums* no_votes(nb::handle sets, nb::handle labels, nb::handle target, nb::handle weights,
                   nb::handle powers) {
    Arrays arrays;
    const Sets given = read_sets(arrays, sets, "sets");
    const auto label = arrays.vector<int64_t>(labels, "labels", given.n_sets);
    const auto power = arrays.vector<double>(powers, "powers");
    const auto rows = arrays.vector<int64_t>(target, "target");
    const auto weight = arrays.vector<double>(weights, "weights", rows.size());
    check_below("labels", label, power.size());
    check_below("target", rows, power.size());
    check_rows("sets", given, rows.size());
    double total = 0;
    for (const double one : weight) total += one >= 0 ? one : largest_weight;
    if (!(total < largest_weight)) refuse("weights must be at least 0, and add up to below 2**62");
    for (const double one : power)
        if (!(one > 0 && one < largest_weight)) refuse("powers must be above 0 and below 2**62");
    ReleasedGil released;
    return new VoteSums(given.words.data(), given.n_words, label, rows, weight, power);
}

size_t rule_of(const VoteSums& sums, int64_t rule) {
    if (rule < 0 || size_t(rule) >= sums.n_rules()) refuse("rule must be one of the rules");
    return size_t(rule);
}

// A line of first and one of second derivatives, of some rules.
nb::object sums_of(const VoteSums& sums, nb::handle rules) {
    Arrays arrays;
    const auto some = arrays.vector<int64_t>(rules, "rules");
    check_below("rules", some, sums.n_rules());
    Array<double> found(2 * some.size());
    {
        ReleasedGil released;
        sums.add_up(some, found.data(), found.data() + some.size());
    }
    if (some.size() == 0) return own(std::move(found), 0);
    return own(std::move(found), 2, some.size());
}

void vote(VoteSums& sums, int64_t rule, double factor) {
    if (!(factor > 0 && factor < largest_weight)) refuse("factor must be above 0 and below 2**62");
    sums.vote(rule_of(sums, rule), factor);
}

// The votes of some rules after a Newton step for each in turn, and the largest change.
nb::tuple adjust(VoteSums& sums, nb::handle rules, nb::handle votes, double grid, double ridge) {
    Arrays arrays;
    const auto some = arrays.vector<int64_t>(rules, "rules");
    check_below("rules", some, sums.n_rules());
    const auto before = arrays.vector<double>(votes, "votes", some.size());
    for (const double one : before)
        if (!(one >= 0 && one < largest_weight)) refuse("votes must be at least 0 and below 2**62");
    if (!(grid > 0 && ridge > 0)) refuse("grid and ridge must be above 0");
    Array<double> after(before.begin(), before.end());
    double largest = 0;
    {
        ReleasedGil released;
        largest = sums.adjust(some, after.data(), grid, ridge);
    }
    const size_t n_rules = after.size();
    return nb::make_tuple(own(std::move(after), n_rules), largest);
}

nb::object rows_of_rule(const VoteSums& sums, int64_t rule) {
    const auto rows = sums.rows(rule_of(sums, rule));
    Array<int64_t> copy(rows.begin(), rows.end());
    const size_t n_rows = copy.size();
    return own(std::move(copy), n_rows);
}

}  // namespace

void bind_rules(nb::module_& m) {
    m.def("generalise_rules", &generalise_rules, nb::arg("holds").none(), nb::arg("starts").none(),
          nb::arg("conditions").none(), nb::arg("labels").none(), nb::arg("of_class").none(),
          nb::arg("counted").none(), nb::arg("weights").none(), nb::arg("log_confidence"),
          nb::arg("z"));
    nb::class_<ChosenRules>(m, "ChosenRules")
        .def(nb::new_(&choose_none), nb::arg("sets").none(), nb::arg("right").none(),
             nb::arg("wrong").none())
        .def("sums", &sums)
        .def("toggle", &toggle, nb::arg("rule"), nb::arg("comes"));
    nb::class_<VoteSums>(m, "VoteSums")
        .def(nb::new_(&no_votes), nb::arg("sets").none(), nb::arg("labels").none(),
             nb::arg("target").none(), nb::arg("weights").none(), nb::arg("powers").none())
        .def("sums_of", &sums_of, nb::arg("rules").none())
        .def("vote", &vote, nb::arg("rule"), nb::arg("factor"))
        .def("adjust", &adjust, nb::arg("rules").none(), nb::arg("votes").none(), nb::arg("grid"),
             nb::arg("ridge"))
        .def("rows", &rows_of_rule, nb::arg("rule"));
}
