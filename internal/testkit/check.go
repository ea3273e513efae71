package testkit

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Secret is a password for tests. Errors and output must not contain it.
const Secret = "s3cret-pw"

// Check fails the test immediately if err is not nil.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Read returns the text of a file.
func Read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	Check(t, err)
	return string(text)
}

// Equal compares values of one type.
func Equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	format := "%s: %v, want %v"
	if fmt.Sprint(got) == fmt.Sprint(want) { // print what distinguishes them, such as types
		format = "%s: %#v, want %#v"
	}
	t.Errorf(format, what, got, want)
}

// Same compares values with cmp.Diff.
func Same(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

// Contains fails the test if a text lacks one of the parts, or contains Secret.
func Contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing from: %s", part, text)
		}
	}
	if strings.Contains(text, Secret) {
		t.Errorf("the password is in: %s", text)
	}
}

// ErrorContains fails the test if err is nil, or if Contains fails for its message.
func ErrorContains(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want %q", parts)
		return
	}
	Contains(t, err.Error(), parts...)
}

// WantError expects an error that contains a text, or no error if the text is empty.
func WantError(t testing.TB, what string, err error, text string) {
	t.Helper()
	if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("%s: error %v, want %q", what, err, text)
	}
}

// Either returns yes if a condition holds, and no otherwise.
func Either[T any](condition bool, yes, no T) T {
	if condition {
		return yes
	}
	return no
}
