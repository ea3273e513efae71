package processgroup

import (
	"errors"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestTail(t *testing.T) {
	failed := errors.New("it failed")
	for _, r := range []struct {
		reason          string
		written         []string
		kept, line, err string
	}{
		{"nothing", nil, "", "", "it failed"},
		{"only blanks", []string{" \n"}, "", "", "it failed"},
		{"a part of a line", []string{"one\ntw", "o\n"}, "one\ntwo", "two", "it failed; its last output:\none\ntwo"},
		{"progress on one line", []string{"10 %\r20 %"}, "10 %\r20 %", "20 %", "it failed; its last output:\n10 %\r20 %"},
		{"more than is kept", []string{"first", strings.Repeat("x", tailBytes-2), "\nz"},
			strings.Repeat("x", tailBytes-2) + "\nz", "z", ""},
	} {
		var tail Tail
		for _, text := range r.written {
			_, _ = tail.Write([]byte(text))
		}
		err := tail.Explain(failed)
		testkit.Equal(t, r.reason, []string{tail.String(), tail.Line()}, []string{r.kept, r.line})
		testkit.Equal(t, r.reason+": the error is wrapped", errors.Is(err, failed), true)
		if r.err != "" {
			testkit.Equal(t, r.reason+": error", err.Error(), r.err)
		}
	}
}
