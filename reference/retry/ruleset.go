package retry

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// RuleSet is a set of rules: a bit for each row of table and transactionTable.
type RuleSet struct{ retries, transactions uint64 }

// ruleSet returns the set of rules with IDs that are separated by spaces.
func ruleSet(ids ...string) (s RuleSet) {
	for _, id := range strings.Fields(strings.Join(ids, " ")) {
		one := ruleOf(id)
		s = RuleSet{s.retries | one.retries, s.transactions | one.transactions}
	}
	return s
}

// ruleOf returns the set of one rule.
func ruleOf(id string) RuleSet {
	for i := range table {
		if table[i].ID == id {
			return RuleSet{retries: 1 << i}
		}
	}
	for i := range transactionTable {
		if transactionTable[i].ID == id {
			return RuleSet{transactions: 1 << i}
		}
	}
	panic(fmt.Sprintf("no rule has the ID %q", id))
}

// has reports whether a rule is in the set.
func (s RuleSet) has(id string) bool { return s.all(ruleOf(id)) }

// all reports whether all rules of another set are in the set.
func (s RuleSet) all(other RuleSet) bool {
	return s.retries&other.retries == other.retries && s.transactions&other.transactions == other.transactions
}

// Without returns the set without some rules.
func (s RuleSet) Without(ids ...string) RuleSet {
	without := ruleSet(ids...)
	return RuleSet{s.retries &^ without.retries, s.transactions &^ without.transactions}
}

// IDs returns the IDs of the rules in the order in which they are applied.
func (s RuleSet) IDs() []string {
	out := slices.Grow([]string(nil), bits.OnesCount64(s.retries)+bits.OnesCount64(s.transactions))
	for rest := s.retries; rest != 0; rest &= rest - 1 {
		out = append(out, table[bits.TrailingZeros64(rest)].ID)
	}
	for rest := s.transactions; rest != 0; rest &= rest - 1 {
		out = append(out, transactionTable[bits.TrailingZeros64(rest)].ID)
	}
	return out
}

// String returns the IDs, separated by spaces.
func (s RuleSet) String() string { return strings.Join(s.IDs(), " ") }
