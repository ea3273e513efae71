package suites

import "testing"

func TestMerge(t *testing.T) {
	for _, r := range [][3]string{
		{"{}", "", "{}"}, {"{}", "a: 1", "{ a: 1 }"}, {"{ a: {} }", "b: 2", "{ a: {}, b: 2 }"}, {"{ a: { b: 1 } }", "c: 3", "{ a: { b: 1 }, c: 3 }"},
	} {
		if got := Merge(r[0], r[1]); got != r[2] {
			t.Errorf("%s and %s: %s, want %s", r[0], r[1], got, r[2])
		}
	}
}

// Two files of one name would overwrite each other.
func TestFilesOfOneName(t *testing.T) {
	f := func() *File {
		f := &File{Name: "twice", Description: "d", Database: "x", Clients: []Client{SetupClient()}, Require: []string{Anywhere}}
		f.Add(Test{Description: "t", Operations: []string{FailPoint("find", Times(1), Closes)}})
		return f
	}
	if _, err := (Specification{Files: []*File{f()}}).Render(); err != nil {
		t.Error(err)
	}
	if _, err := (Specification{Files: []*File{f(), f()}}).Render(); err == nil {
		t.Error("two files of one name were rendered")
	}
}

// What no schemaVersion allows is an error, not a file.
func TestInvalidFile(t *testing.T) {
	f := &File{Name: "invalid", Description: "d", Database: "x", Clients: []Client{SetupClient()}, Require: []string{Anywhere}}
	f.Add(Test{Description: "t", Operations: []string{"{ nosuch: 1 }"}})
	if _, err := (Specification{Files: []*File{f}}).Render(); err == nil {
		t.Error("an invalid suite was rendered")
	}
}
