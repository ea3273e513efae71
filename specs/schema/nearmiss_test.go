package schema

import (
	"math/rand/v2"
	"testing"
)

func TestDidYouMean(t *testing.T) {
	names := []string{"id", "client", "clientEncryption", "expectError", "expectEvents", "databaseName"}
	for _, test := range []struct{ reason, misspelt, want string }{
		{"a swap", "expectErorr", `; did you mean "expectError"?`},
		{"a letter left out", "clent", `; did you mean "client"?`},
		{"a letter too many", "clientts", `; did you mean "client"?`},
		{"upper and lower case", "DATABASENAME", `; did you mean "databaseName"?`},
		{"a short name bears one edit", "ix", `; did you mean "id"?`},
		{"a short name bears no two edits", "xy", ""},
		{"nothing like it", "filter", ""},
		{"the closest of two", "expectEvens", `; did you mean "expectEvents"?`},
		{"an empty name", "", ""},
		{"seven characters bear one edit", "cliennt", `; did you mean "client"?`},
		{"seven characters bear no two edits", "clienxx", ""},
		{"eight characters bear two edits", "clientxx", `; did you mean "client"?`},
		{"eight characters bear no three edits", "clieyyyx", ""},
		{"three characters bear one edit", "idx", `; did you mean "id"?`},
	} {
		if got := didYouMean(test.misspelt, names); got != test.want {
			t.Errorf("%s: %q gives %q, want %q", test.reason, test.misspelt, got, test.want)
		}
	}
}

// The table gives the same distances as the recursive definition.
func TestEditDistance(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		b := make([]byte, rng.IntN(6))
		for i := range b {
			b[i] = "abc"[rng.IntN(3)]
		}
		return string(b)
	}
	for range 5000 {
		a, b, limit := word(), word(), 1+rng.IntN(7)
		if got, want := editDistance(a, b, limit), min(naiveDistance(a, b), limit); got != want {
			t.Fatalf("from %q to %q, limit %d: got %d, want %d", a, b, limit, got, want)
		}
	}
}

func naiveDistance(a, b string) int {
	if a == "" || b == "" {
		return len(a) + len(b)
	}
	replace := 1
	if a[len(a)-1] == b[len(b)-1] {
		replace = 0
	}
	a1, b1 := a[:len(a)-1], b[:len(b)-1]
	d := min(naiveDistance(a1, b)+1, naiveDistance(a, b1)+1, naiveDistance(a1, b1)+replace)
	if len(a) > 1 && len(b) > 1 && a[len(a)-1] == b[len(b)-2] && a[len(a)-2] == b[len(b)-1] {
		d = min(d, naiveDistance(a[:len(a)-2], b[:len(b)-2])+1)
	}
	return d
}
