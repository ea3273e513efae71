package compare

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// shown is a schedule with its differences, at least one. For the test of a suite, the schedule has only the topology.
type shown struct {
	Schedule
	differences []Difference
}

// condition decides about differences, and faultCondition about a fault. In YAML, both are a mapping of names to
// arguments, all of which must hold.
type (
	condition      func(shown) bool
	faultCondition func(Fault) bool
)

// UnmarshalYAML reads a condition.
func (c *condition) UnmarshalYAML(n *yaml.Node) (err error) {
	*c, err = allNamed(n, conditions())
	return err
}

// UnmarshalYAML reads a condition.
func (c *faultCondition) UnmarshalYAML(n *yaml.Node) (err error) {
	*c, err = allNamed(n, faultConditions())
	return err
}

// conditions are the conditions of differences by name.
func conditions() map[string]builder[shown] {
	return map[string]builder[shown]{
		// The first holds if any of the conditions does, and the second if its condition does not.
		"any": with(func(s shown, of []condition) bool {
			return slices.ContainsFunc(of, func(c condition) bool { return c(s) })
		}),
		"not": with(func(s shown, c condition) bool { return !c(s) }),

		// The schedule.
		"calls": with(func(s shown, names []operationName) bool {
			return slices.Contains(names, operationName(s.Operation))
		}),
		"topology": with(func(s shown, name topologyName) bool { return s.Topology == string(name) }),
		"options": with(func(s shown, values map[optionName]any) bool {
			for name, v := range values {
				if fmt.Sprint(s.Options[string(name)]) != fmt.Sprint(v) {
					return false
				}
			}
			return true
		}),
		"sets":   with(func(s shown, name optionName) bool { return s.Options[string(name)] != nil }),
		"writes": flag(shown.writes),

		// Faults: one of them, one after the first, the first, the second, at least two.
		"fault": with(func(s shown, c faultCondition) bool { return s.faults(c) > 0 }),
		"laterFault": with(func(s shown, c faultCondition) bool {
			return len(s.Faults) > 0 && slices.ContainsFunc(s.Faults[1:], c)
		}),
		"firstFault":  faultAt(0),
		"secondFault": faultAt(1),
		"twoFaults":   with(func(s shown, c faultCondition) bool { return s.faults(c) > 1 }),

		// All differences: there is only one, all have an aspect, a condition holds for each or for some.
		"alone": flag(func(s shown) bool { return len(s.differences) == 1 }),
		"only":  each(func(d Difference, name aspectName) bool { return d.Aspect == string(name) }),
		"each":  each(func(d Difference, c condition) bool { return c.alone(d) }),
		"some":  with(func(s shown, c condition) bool { return slices.ContainsFunc(s.differences, c.alone) }),
		// Only events differ, and only in text that a regular expression matches.
		"sameEvents": each(func(d Difference, p pattern) bool { return d.Aspect == "events" && d.sameWithout(p) }),
		// The lines of the first client whose events differ: a name of comparisons.
		"events": events(func(l, r []string, by comparison) bool { return by(l, r) }),
		// The next line of the left side, if the lines of the right side are a proper prefix.
		"nextLeft": events(func(l, r []string, p pattern) bool { return longer(l, r) && p.MatchString(l[len(r)]) }),

		// The first difference, whose text a regular expression matches or which is equal after a change of the left side.
		"aspect":      first(func(d Difference, name aspectName) bool { return d.Aspect == string(name) }),
		"left":        first(func(d Difference, p pattern) bool { return p.MatchString(d.Left) }),
		"right":       first(func(d Difference, p pattern) bool { return p.MatchString(d.Right) }),
		"sameWithout": first(Difference.sameWithout),
		"gains":       first(func(d Difference, text string) bool { return d.Left+text == d.Right }),
		"loses":       first(func(d Difference, text string) bool { return strings.Replace(d.Left, text, "", 1) == d.Right }),
		"replaces": first(func(d Difference, by [2]string) bool {
			return strings.Replace(d.Left, by[0], by[1], 1) == d.Right
		}),
		"replacesAll": first(func(d Difference, by [2]string) bool {
			return strings.ReplaceAll(d.Left, by[0], by[1]) == d.Right
		}),
	}
}

// faultConditions are the conditions of faults by name.
func faultConditions() map[string]builder[Fault] {
	return map[string]builder[Fault]{
		"not":  with(func(f Fault, c faultCondition) bool { return !c(f) }),
		"code": with(func(f Fault, code int) bool { return f.Code == code }),
		"labels": with(func(f Fault, names []string) bool {
			return !slices.ContainsFunc(names, func(l string) bool { return !slices.Contains(f.Labels, l) })
		}),
		"blocksLongerThanMS": with(func(f Fault, ms int) bool { return f.BlockMS > ms }),
		"commandError":       flag(func(f Fault) bool { return f.Code != 0 }),
		"writeConcernError":  flag(func(f Fault) bool { return f.WriteConcernError != 0 }),
		"hasLabels":          flag(func(f Fault) bool { return len(f.Labels) > 0 }),
		"ownLabels":          flag(func(f Fault) bool { return f.Labels != nil }),
		"innerLabels":        flag(func(f Fault) bool { return f.Inner != nil }),
		// The server chooses the labels of the error. They include NoWritesPerformed if the session wrote nothing.
		"labelsOfServer": flag(func(f Fault) bool {
			return f.Labels == nil && (slices.Contains(retryableCodes, f.Code) || slices.Contains(stateChangeCodes, f.Code))
		}),
		// A write concern error with a state change code, or of a server that is shutting down.
		"deposes":   flag(Fault.deposes),
		"shutsDown": flag(func(f Fault) bool { return slices.Contains(shutdownCodes, f.WriteConcernError) }),
		// The fault makes the server Unknown to the client.
		"unsettles": flag(func(f Fault) bool {
			return f.Close || f.LoseReply || slices.Contains(stateChangeCodes, f.Code) || f.deposes()
		}),
	}
}

// comparisons compare the lines of two logs by name.
func comparisons() map[string]comparison {
	return map[string]comparison{
		"longer":  longer,
		"shorter": func(l, r []string) bool { return longer(r, l) },
		"more":    func(l, r []string) bool { return len(r) > len(l) },
		// The right engine retries commitTransaction more often. Retries have a write concern (Transactions, "Majority
		// write concern is used when retrying commitTransaction").
		"commitsAgain": func(l, r []string) bool {
			retried := regexp.MustCompile(`send commitTransaction .*w "majority"`)
			count := func(lines []string) int { return len(retried.FindAllString(strings.Join(lines, "\n"), -1)) }
			return count(r) > count(l)
		},
	}
}

// longer reports whether the others are a proper prefix of the lines.
func longer(lines, others []string) bool {
	return len(lines) > len(others) && slices.Equal(lines[:len(others)], others)
}

// alone applies the condition to a difference.
func (c condition) alone(one Difference) bool { return c(shown{differences: []Difference{one}}) }

// sameWithout reports whether the sides differ, but not after the text that matches is removed.
func (d Difference) sameWithout(p pattern) bool {
	return d.Left != d.Right && p.ReplaceAllString(d.Left, "") == p.ReplaceAllString(d.Right, "")
}

// faults counts the faults for which the condition holds.
func (s Schedule) faults(holds faultCondition) (n int) {
	for _, f := range s.Faults {
		if holds(f) {
			n++
		}
	}
	return n
}

func (f Fault) deposes() bool { return slices.Contains(stateChangeCodes, f.WriteConcernError) }

// writes reports whether errors are raised as for a write. In this respect, runCommand is one (Client Backpressure,
// "Overload retry policy").
func (s Schedule) writes() bool {
	return parts().Operations[s.Operation].Write || s.Operation == "runCommand"
}

func (s Schedule) timed() bool { return s.Options["timeoutMS"] != nil }
