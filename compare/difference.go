package compare

import (
	"fmt"
	"slices"
	"strings"
)

// Difference is one aspect in which two observations differ.
type Difference struct {
	// Aspect is "verdict", "operation" or "events".
	Aspect string `json:"aspect"`
	// Where names the operation or client.
	Where string `json:"where,omitempty"`
	// Left and Right are a line each, or lines that a line break parts.
	Left  string `json:"left"`
	Right string `json:"right"`
}

// differ lists what differs between two observations, in the order in which
// it happened; where the order is chance, the verdict alone.
func differ(left, right observation) []Difference {
	var out []Difference
	if left.Status != right.Status {
		out = append(out, Difference{"verdict", "", verdict(left), verdict(right)})
	}
	if left.concurrent || right.concurrent {
		return out
	}
	for i := range max(len(left.Operations), len(right.Operations)) {
		l, r := at(left.Operations, i), at(right.Operations, i)
		if l != r {
			out = append(out, Difference{"operation", fmt.Sprintf("operations[%d]", i), l, r})
		}
	}
	for i := range max(len(left.Clients), len(right.Clients)) {
		var l, r clientLog
		if i < len(left.Clients) {
			l = left.Clients[i]
		}
		if i < len(right.Clients) {
			r = right.Clients[i]
		}
		if l.Client != r.Client || !slices.Equal(l.Lines, r.Lines) {
			where := l.Client
			if where == "" {
				where = r.Client
			}
			out = append(out, Difference{"events", where, strings.Join(l.Lines, "\n"), strings.Join(r.Lines, "\n")})
		}
	}
	return out
}

func verdict(o observation) string {
	if o.Reason != "" {
		return string(o.Status) + ": " + o.Reason
	}
	return string(o.Status)
}

// at is the i-th line, or nothing.
func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}
