package suites

import "testing"

// Merge adds keys to a document in flow style.
func TestMerge(t *testing.T) {
	for _, r := range []struct{ reason, into, add, want string }{
		{"nothing into nothing", "{}", "", "{}"},
		{"a key into nothing", "{}", "a: 1", "{ a: 1 }"},
		{"a key beside an empty document", "{ a: {} }", "b: 2", "{ a: {}, b: 2 }"},
		{"a key beside a document", "{ a: { b: 1 } }", "c: 3", "{ a: { b: 1 }, c: 3 }"},
	} {
		if got := Merge(r.into, r.add); got != r.want {
			t.Errorf("%s: %s, want %s", r.reason, got, r.want)
		}
	}
}

// Two files of one name would overwrite each other.
func TestFilesOfOneName(t *testing.T) {
	f := func() *File {
		f := &File{Name: "twice", Description: "d", Require: []string{Servers("4.2", "")}}
		f.Tests = []Test{{Description: "t", Operations: []string{FailPoint("find", Times(1), Closes)}}}
		return f
	}
	if _, err := (Specification{Title: "s", Database: "x", Files: []*File{f()}}).Render(); err != nil {
		t.Error(err)
	}
	if _, err := (Specification{Title: "s", Database: "x", Files: []*File{f(), f()}}).Render(); err == nil {
		t.Error("two files of one name were rendered")
	}
}

// A suite that no schemaVersion allows is an error.
func TestInvalidFile(t *testing.T) {
	f := &File{Name: "invalid", Description: "d", Require: []string{Servers("4.2", "")}}
	f.Tests = []Test{{Description: "t", Operations: []string{"{ nosuch: 1 }"}}}
	if _, err := (Specification{Title: "s", Database: "x", Files: []*File{f}}).Render(); err == nil {
		t.Error("an invalid suite was rendered")
	}
}
