package testkit

import (
	"fmt"
	"strings"
	"testing"
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

// Equal compares values by how they are printed.
func Equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
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
