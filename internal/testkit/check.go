package testkit

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Secret is a password for tests: no error and no output may hold it.
const Secret = "s3cret-pw"

// Check ends a test in which an error is not expected.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Read gives the text of a file.
func Read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	Check(t, err)
	return string(text)
}

// Equal compares values by how they are printed.
func Equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// Same compares values field by field, and shows the differences.
func Same(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

// Says reports the parts that a text lacks, and the Secret if it holds that.
func Says(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in: %s", part, text)
		}
	}
	if strings.Contains(text, Secret) {
		t.Errorf("it reveals the password: %s", text)
	}
}

// Fails reports that there is no error, or what Says reports about its text.
func Fails(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want %q", parts)
		return
	}
	Says(t, err.Error(), parts...)
}

// Ends expects an error that holds a text, or none if the text is empty.
func Ends(t testing.TB, what string, err error, text string) {
	t.Helper()
	if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("%s: error %v, want %q", what, err, text)
	}
}
