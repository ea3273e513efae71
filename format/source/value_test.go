package source

import (
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// Where all scalars are texts, numbers, truth values and keys keep the characters of the file.
func TestAsWritten(t *testing.T) {
	for _, r := range []struct{ reason, in, want string }{
		{"versions", "[8.10, 1e3, 0x1F, 010]", `["8.10","1e3","0x1F","010"]`},
		{"truth values, strings and null", "[True, no, 'False', ~]", `["True","no","False",null]`},
		{"keys", "{8.10: 1, True: 2, '1.0': 3}", `{"8.10":"1","True":"2","1.0":"3"}`},
		{"aliases and merged keys", "{a: &v 8.10, b: *v, *v : *v, <<: {1.0: 2.0}}",
			`{"a":"8.10","b":"8.10","8.10":"8.10","1.0":"2.0"}`},
		{"JSON", `{"a": [1.50, true]}`, `{"a":["1.50","true"]}`},
	} {
		v, err := Parse("f", []byte(r.in))
		testkit.Check(t, err)
		testkit.Equal(t, r.reason, v.AsWritten().JSON(), r.want)
	}
}
