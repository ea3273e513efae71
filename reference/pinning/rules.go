package pinning

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
)

// The rules that differ between revisions.
const (
	same   = "P13" // a read with the preference that pinned the thread
	unpins = "P11" // a read with another preference
	old    = "P14" // 2.2: as long as the member matches
)

// limit is how many members a read is tried on.
const limit = 3

// row is a rule for some kinds of input. It applies if when returns true.
type row struct {
	retry.Rule
	on   InputKind // one or more
	when func(*step) bool
	then func(*step)
}

// choosing are the inputs after which a member is chosen.
const choosing = Read | Broken

func always(*step) bool { return true }

func reading(s *step) bool { return s.t.Reading != nil }

func rule(id, statement, section string) retry.Rule {
	return retry.Rule{ID: id, Statement: statement, Section: "Driver Read Preferences, " + section, Revision: "2014-02-14"}
}

// table lists the rules in the order in which they are applied.
func table() []row {
	modes := func(of ...selection.Mode) func(*step) bool {
		return func(s *step) bool { return reading(s) && slices.Contains(of, s.t.Reading.Preference.Reads()) }
	}
	return []row{
		{rule("P1", "A thread is in a request from the start of the request to its end.", "Requests"), StartRequest, always,
			func(s *step) { s.t.inRequest = true }},
		{rule("P2", "The end of a request unpins the thread.", "Requests"), endRequest, always,
			func(s *step) { s.t.inRequest = false; s.unpin() }},

		// Changes of the replica set.
		{rule("P3", "A new primary unpins all threads.", "Requests"), Refreshed,
			func(s *step) bool { p := primary(s.in.Members); return s.t.Pinned != "" && p != "" && p != s.t.primary },
			func(s *step) { s.unpin() }},
		{rule("P4", "A pinned member that becomes primary or secondary and therefore no longer matches the mode is unpinned. "+
			"Changes of tags and ping times do not unpin.", "Requests"), Refreshed,
			func(s *step) bool {
				return slices.ContainsFunc(s.up(),
					func(v selection.Server) bool { return v.Address == s.t.Pinned && misplaced(v, s.t.by) })
			},
			func(s *step) { s.unpin() }},

		// The end of an attempt.
		{rule("P5", "When a read succeeds in a request, the thread is pinned to its member, and its read preference is remembered.",
			"Requests"), Answered,
			func(s *step) bool { return reading(s) && s.t.inRequest },
			func(s *step) { s.t.Pinned, s.t.by = s.t.Reading.member, s.t.Reading.Preference }},
		{rule("P6", "Any reply ends the read, even an error: only socket errors are retried.", "Auto-retry"),
			Answered | Refused,
			reading, func(s *step) { s.end(ReturnReply) }},
		{rule("P7", "After a socket error, the member is not tried again for this read, and the client checks the set as soon as possible.", "Auto-retry"), Broken,
			reading,
			func(s *step) {
				r := *s.t.Reading
				r.failed = append(slices.Clone(r.failed), r.member)
				s.t.Reading, s.d.Refresh = &r, true
			}},
		{rule("P9", "After three members in all, the error is raised, and the next read starts unpinned.", "Auto-retry"),
			Broken,
			func(s *step) bool { return reading(s) && len(s.t.Reading.failed) >= limit }, func(s *step) { s.raise("") }},

		// The choice of a member.
		{rule("P25", "Of generic commands, only some obey a read preference; all others run on the primary. They are sent once, because they may write.",
			"Generic Command Helper"), choosing,
			func(s *step) bool { return reading(s) && s.t.Reading.ignores },
			func(s *step) {
				if s.in.Kind == Broken {
					s.raise("")
				} else {
					s.t.Reading.Preference.Preference = selection.Preference{}
				}
			}},
		{rule(unpins, "A read with a different mode, tags or latency unpins the thread, and another member may be chosen.",
			"Requests"), Read,
			func(s *step) bool { return s.t.Pinned != "" && !equal(s.t.by, s.t.Reading.Preference) },
			func(s *step) { s.unpin() }},
		{rule("P12", "Reads go only to primaries and secondaries that are up, whatever the mode.", "Mode"), choosing, reading,
			func(s *step) {
				s.left = selection.Filter(s.in.Members, func(v selection.Server) bool {
					return (v.Type == selection.RSPrimary || v.Type == selection.RSSecondary) &&
						!slices.Contains(s.t.Reading.failed, v.Address)
				})
			}},
		{rule("P8", "A pinned member that is down, because of a socket error or by monitoring, is no longer pinned once a "+
			"read has to try another.", "Auto-retry"), choosing,
			func(s *step) bool { return reading(s) && s.t.Pinned != "" && !in(s.left, s.t.Pinned) },
			func(s *step) { s.unpin() }},
		{rule(same, "Reads with the same read preference go to the pinned member while it is up.", "Requests"), Read,
			func(s *step) bool { return s.t.Pinned != "" }, // after P8 and P11
			func(s *step) { s.send(s.t.Pinned) }},
		{rule(old, "In 2.2, a thread stays pinned while its member matches the mode, the tags and the latency of the next "+
			"read, even if another member is preferred.", "Note On Pinning"), Read,
			func(s *step) bool { return s.stays() }, func(s *step) { s.send(s.t.Pinned) }},
		{rule("P15", "Mode primary: the primary.", "Mode"), choosing, modes(selection.Primary),
			func(s *step) { s.left = ofType(s.left, selection.RSPrimary) }},
		{rule("P16", "Mode primaryPreferred: the primary if it is up, whatever its tags; otherwise a secondary that matches the tags.", "How Modes Interact With Tag Sets"), choosing,
			modes(selection.PrimaryPreferred),
			func(s *step) { s.left = first(ofType(s.left, selection.RSPrimary), s.matching(selection.RSSecondary)) }},
		{rule("P17", "Mode secondary: a secondary that matches the tags.", "How Modes Interact With Tag Sets"), choosing,
			modes(selection.Secondary),
			func(s *step) { s.left = s.matching(selection.RSSecondary) }},
		{rule("P18", "Mode secondaryPreferred: a secondary that matches the tags; otherwise the primary, whatever its tags "+
			"and its ping time.", "How Modes Interact With Tag Sets"), choosing,
			modes(selection.SecondaryPreferred),
			func(s *step) { s.left = first(s.matching(selection.RSSecondary), ofType(s.left, selection.RSPrimary)) }},
		{rule("P19", "Mode nearest: any member that matches the tags.", "How Modes Interact With Tag Sets"), choosing,
			modes(selection.Nearest),
			func(s *step) { s.left = s.matching(selection.RSPrimary, selection.RSSecondary) }},
		{rule("P20", "If no member matches, the error is raised immediately, without network traffic and without another check of the set. "+
			"The next read starts unpinned.", "Errors"), choosing,
			func(s *step) bool { return reading(s) && len(s.left) == 0 },
			func(s *step) {
				text := "" // the socket error
				if len(s.t.Reading.failed) == 0 {
					text = noMember(s.t.Reading.Preference)
				}
				s.raise(text)
			}},
		{rule("P21", "Matching members are near if they are at most secondaryAcceptableLatencyMS farther than the nearest one.",
			"Ping Times"), choosing, reading,
			func(s *step) { s.left = selection.InWindow(s.left, s.t.Reading.Preference.Latency) }},
		{rule("P22", "One of the near members is chosen at random.", "Ping Times"), choosing,
			func(s *step) bool { return len(s.left) > 0 },
			func(s *step) { s.send(s.left[min(int(s.in.Random*float64(len(s.left))), len(s.left)-1)].Address) }},
	}
}

// matching returns the candidates of the types that match the first tag set with any match.
func (s *step) matching(types ...selection.ServerType) []selection.Server {
	of, sets := ofType(s.left, types...), s.t.Reading.Preference.TagSets
	for _, set := range sets {
		if found := selection.Filter(of,
			func(v selection.Server) bool { return selection.HasTags(v.Tags, set) }); len(found) > 0 {
			return found
		}
	}
	if len(sets) > 0 {
		return nil
	}
	return of
}

// stays reports whether the pinned member matches the read under the rules of 2.2, where primaryPreferred and
// secondaryPreferred match both types.
func (s *step) stays() bool {
	p := s.t.Reading.Preference
	for _, v := range s.in.Members {
		if v.Address != s.t.Pinned || misplaced(v, p) {
			continue
		}
		near := in(selection.InWindow(s.up(), p.Latency), v.Address)
		return near && (v.Type == selection.RSPrimary && p.Reads() != selection.Nearest || len(p.TagSets) == 0 ||
			slices.ContainsFunc(p.TagSets, func(set map[string]string) bool { return selection.HasTags(v.Tags, set) }))
	}
	return false
}

func (s *step) up() []selection.Server {
	return ofType(s.in.Members, selection.RSPrimary, selection.RSSecondary)
}

// misplaced reports whether the mode excludes the member's type.
func misplaced(v selection.Server, p Preference) bool {
	switch p.Reads() {
	case selection.Primary:
		return v.Type != selection.RSPrimary
	case selection.Secondary:
		return v.Type != selection.RSSecondary
	}
	return v.Type != selection.RSPrimary && v.Type != selection.RSSecondary
}

// constants lists the names of the modes in the document.
func constants() map[selection.Mode]string {
	return map[selection.Mode]string{selection.Primary: "PRIMARY", selection.PrimaryPreferred: "PRIMARY_PREFERRED",
		selection.Secondary: "SECONDARY", selection.SecondaryPreferred: "SECONDARY_PREFERRED", selection.Nearest: "NEAREST"}
}

// ModeOf returns the mode with the name of a constant of the document, or like selection.ModeOf.
func ModeOf(name string) selection.Mode {
	for mode, constant := range constants() {
		if constant == name {
			return mode
		}
	}
	return selection.ModeOf(name)
}

// noMember returns the error message for a read that no member matches, as given in "Errors".
func noMember(p Preference) string {
	mode := constants()[p.Reads()]
	switch {
	case p.Tagged():
		return fmt.Sprintf("No replica set member available for query with ReadPreference %s and tags %s", mode,
			formatTags(p.TagSets))
	case p.Reads() == selection.Primary, p.Reads() == selection.Secondary:
		return fmt.Sprintf("No replica set %s available for query with ReadPreference %s", strings.ToLower(mode), mode)
	}
	return "No replica set members available for query"
}

// formatTags formats tag sets, sorted by name.
func formatTags(sets []map[string]string) string {
	var out []string
	for _, set := range sets {
		var tags []string
		for _, name := range slices.Sorted(maps.Keys(set)) {
			tags = append(tags, name+": "+set[name])
		}
		out = append(out, "{"+strings.Join(tags, ", ")+"}")
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func equal(a, b Preference) bool {
	return a.Reads() == b.Reads() && a.Latency == b.Latency && slices.EqualFunc(a.TagSets, b.TagSets, maps.Equal)
}

// primary returns the address of the primary, or "".
func primary(members []selection.Server) string {
	for _, v := range ofType(members, selection.RSPrimary) {
		return v.Address
	}
	return ""
}

func in(members []selection.Server, address string) bool {
	return slices.ContainsFunc(members, func(v selection.Server) bool { return v.Address == address })
}

func ofType(members []selection.Server, types ...selection.ServerType) []selection.Server {
	return selection.Filter(members, selection.OfType(types...))
}

// first returns members, or others if members is empty.
func first(members, others []selection.Server) []selection.Server {
	if len(members) > 0 {
		return members
	}
	return others
}
