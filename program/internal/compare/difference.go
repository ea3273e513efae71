package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Difference is a difference between two observations.
type Difference struct {
	// Aspect is "verdict", "operation" or "events".
	Aspect string `json:"aspect"`
	// Where names the operation or client.
	Where string `json:"where,omitempty"`
	// Left and Right are lines, separated by line breaks.
	Left  string `json:"left"`
	Right string `json:"right"`
}

// differ lists the differences between two observations: only the verdict if the order of commands is random.
func differ(left, right observation, random bool) []Difference {
	var out []Difference
	if left.Status != right.Status {
		out = append(out, Difference{"verdict", "", verdict(left), verdict(right)})
	}
	if random {
		return out
	}
	for i := range max(len(left.Operations), len(right.Operations)) {
		l, r := cmp.Or(at(left.Operations, i), "nothing"), cmp.Or(at(right.Operations, i), "nothing")
		if l != r {
			out = append(out, Difference{"operation", fmt.Sprintf("operations[%d]", i), l, r})
		}
	}
	for i := range max(len(left.Clients), len(right.Clients)) {
		l, r := at(left.Clients, i), at(right.Clients, i)
		if l.Client != r.Client || !slices.Equal(l.Lines, r.Lines) {
			out = append(out, Difference{"events", cmp.Or(l.Client, r.Client), strings.Join(l.Lines, "\n"),
				strings.Join(r.Lines, "\n")})
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

// at returns list[i], or the zero value.
func at[T any](list []T, i int) (element T) {
	if i < len(list) {
		element = list[i]
	}
	return element
}
